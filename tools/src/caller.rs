//! Who is asking. It is bound where a caller comes in and is never an argument of a tool.

mod token;

use annals_engine::config::Config;
use annals_engine::id::StreamName;
use annals_engine::session::index::Names;
use annals_engine::session::key::{AgentId, SessionKey};

pub use annals_engine::session::key::MainBucket;
pub use token::TokenHash;

use crate::visibility::Visibility;

/// How much one answer may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Rows or messages of a page.
    pub rows: usize,
    /// Messages shown with each row of a list.
    pub messages: usize,
    /// Bytes of all messages of a page, also of a page of a list, as JSON; of a message that alone has more the content is left out.
    pub bytes: usize,
    /// Turns of a search.
    pub hits: usize,
}

impl Bounds {
    /// What an agent gets in one answer.
    pub const TOOL: Self = Self { rows: 200, messages: 20, bytes: 80 << 10, hits: 25 };

    /// No bounds: a person with a pager.
    pub const NONE: Self =
        Self { rows: usize::MAX, messages: usize::MAX, bytes: usize::MAX, hits: usize::MAX };
}

/// The key of the bucket that all share.
pub(crate) const GLOBAL: &str = "global";

/// Who is asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The agent that `main` stands for.
    pub agent: AgentId,
    /// Which ways of naming a session are taken.
    pub names: Names,
    /// How much one answer may hold.
    pub bounds: Bounds,
    /// Where the caller sits.
    pub seat: Seat,
    /// What `main` stands for.
    pub main: MainBucket,
    /// The run from inside which the caller asks, if it is known.
    pub run: Option<String>,
    /// The tools that the caller has.
    pub tools: Toolset,
}

/// Which tools a caller has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Toolset {
    /// All.
    #[default]
    All,
    /// Those that a spawned child is allowed.
    OfChild {
        /// The names that are allowed; `*` stands for all.
        allow: Vec<String>,
        /// The names that are not, whatever else is allowed.
        deny: Vec<String>,
    },
}

impl Toolset {
    /// Whether a tool is among them.
    #[must_use]
    pub fn has(&self, tool: &str) -> bool {
        match self {
            Self::All => true,
            Self::OfChild { allow, deny } => {
                let names = |list: &[String]| list.iter().any(|name| name == tool || name == "*");
                names(allow) && !names(deny)
            }
        }
    }

    /// Those of a spawned child: none, unless the configuration says so.
    #[must_use]
    pub fn of_child(config: &Config) -> Self {
        let list = |path: &str| config.texts(path).into_iter().map(str::to_owned).collect();
        Self::OfChild {
            allow: list("tools.subagents.tools.allow"),
            deny: list("tools.subagents.tools.deny"),
        }
    }
}

/// Where a caller sits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seat {
    /// At the command line of the store's owner: everything is seen.
    Operator,
    /// In a session.
    Session {
        /// Its key.
        key: StreamName,
        /// What it sees.
        visibility: Visibility,
    },
}

impl Caller {
    /// The operator at the command line: beginnings of names are taken and nothing is capped.
    #[must_use]
    pub fn operator(agent: AgentId) -> Self {
        Self {
            agent,
            names: Names::Prefix,
            bounds: Bounds::NONE,
            seat: Seat::Operator,
            main: MainBucket::OfAgent,
            run: None,
            tools: Toolset::All,
        }
    }

    /// A session that calls a tool.
    #[must_use]
    pub const fn session(agent: AgentId, key: StreamName, visibility: Visibility) -> Self {
        let seat = Seat::Session { key, visibility };
        Self {
            agent,
            names: Names::Whole,
            bounds: Bounds::TOOL,
            seat,
            main: MainBucket::OfAgent,
            run: None,
            tools: Toolset::All,
        }
    }

    /// Whether secrets of a session, by its key, are masked: a session reads its own as they are, and the operator all.
    #[must_use]
    pub fn is_masked(&self, key: &str) -> bool {
        match &self.seat {
            Seat::Operator => false,
            Seat::Session { key: own, .. } => own.as_str() != key,
        }
    }

    /// How a key is shown: the bucket that `main` stands for as `main`, to a session and where all share one; every other
    /// key as it is.
    #[must_use]
    pub fn shown<'a>(&self, key: &'a StreamName) -> &'a str {
        match (self.main, &self.seat) {
            (MainBucket::Shared, _) if key.as_str() == GLOBAL => "main",
            (MainBucket::OfAgent, Seat::Session { .. }) => {
                let of_agent = SessionKey::of_stream(key);
                let shown = of_agent.as_ref().map(|key| key.shown_to(&self.agent));
                if shown == Some("main") { "main" } else { key.as_str() }
            }
            _ => key.as_str(),
        }
    }
}
