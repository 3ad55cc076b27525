//! Who is asking. It is bound where a caller comes in and is never an argument of a tool.

use annals_engine::id::StreamName;
use annals_engine::session::index::Names;
use annals_engine::session::key::AgentId;

use crate::visibility::Visibility;

/// How much one answer may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Rows or messages of a page.
    pub rows: usize,
    /// Messages shown with each row of a list.
    pub messages: usize,
    /// Bytes of all messages of a page, as JSON; one message is shown whole in any case.
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
        Self { agent, names: Names::Prefix, bounds: Bounds::NONE, seat: Seat::Operator }
    }

    /// A session that calls a tool.
    #[must_use]
    pub const fn session(agent: AgentId, key: StreamName, visibility: Visibility) -> Self {
        let seat = Seat::Session { key, visibility };
        Self { agent, names: Names::Whole, bounds: Bounds::TOOL, seat }
    }
}
