//! One sink: what the settings say of it, and what became of a try.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use annals_engine::config::Config;
use annals_engine::session::run::Tried;
use annals_engine::{Error, Result};

use super::exec::Exec;
use super::file::File;
use super::http::Http;
use crate::run::worker::Parcel;

/// How messages of a channel go out.
#[derive(Debug)]
pub struct Sink {
    sort: Sort,
    /// Whether the channel has threads.
    pub threads: bool,
}

#[derive(Debug)]
enum Sort {
    Exec(Exec),
    Http(Http),
    File(File),
    Log,
}

/// What a sink needs of the machine that it works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs<'a> {
    /// A program, named as a shell would be told it, and the folder that it is started in, where that is known.
    Program(&'a str, Option<&'a Path>),
    /// A file that can be appended to.
    File(&'a Path),
    /// Nothing that could be looked at.
    Nothing,
}

/// What became of one try: with a reason code that stays, and what was seen, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It arrived.
    Delivered,
    /// It certainly did not arrive, and may the next time.
    Retry {
        /// The reason code.
        reason: &'static str,
        /// What was seen.
        detail: String,
    },
    /// It did not arrive, and another try would not either.
    Refused {
        /// The reason code.
        reason: &'static str,
        /// What was seen.
        detail: String,
    },
    /// It may have arrived.
    Unknown {
        /// The reason code.
        reason: &'static str,
        /// What was seen.
        detail: String,
    },
}

/// So long one try takes at the most when nobody says.
const TIMEOUT: Duration = Duration::from_secs(30);

impl Sink {
    /// The sink without one: the event is the delivery.
    pub(super) fn log() -> Self {
        Self { sort: Sort::Log, threads: false }
    }

    /// The sink of a channel.
    ///
    /// # Errors
    /// `InvalidInput` for one without what its sort needs, and for what it cannot use.
    pub(super) fn of(config: &Config, channel: &str) -> Result<Self> {
        let place = format!("sinks.{channel}");
        let seconds = config.number(&format!("{place}.timeoutSeconds"));
        let said = Said { config, place, timeout: seconds.map_or(TIMEOUT, Duration::from_secs) };
        let sort = match said.needed("type", "exec, http, file or log")? {
            "exec" => Sort::Exec(Exec::of(&said)?),
            "http" => Sort::Http(Http::of(&said)?),
            "file" => Sort::File(File::of(&said)?),
            _ => Sort::Log,
        };
        Ok(Self { sort, threads: config.is_on(&said.path("threads")) })
    }

    /// The word for its sort.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self.sort {
            Sort::Exec(_) => "exec",
            Sort::Http(_) => "http",
            Sort::File(_) => "file",
            Sort::Log => "log",
        }
    }

    /// What it needs here.
    #[must_use]
    pub fn needs(&self) -> Needs<'_> {
        match &self.sort {
            Sort::Exec(exec) => exec.needs(),
            Sort::File(file) => Needs::File(file.path()),
            Sort::Http(_) | Sort::Log => Needs::Nothing,
        }
    }

    /// Tries once.
    pub async fn send(&self, parcel: &Parcel) -> Sent {
        match &self.sort {
            Sort::Exec(exec) => exec.send(parcel).await,
            Sort::Http(http) => http.send(parcel).await,
            Sort::File(file) => file.send(parcel).await,
            Sort::Log => Sent::Delivered,
        }
    }
}

/// The channels that a sink is said for.
pub(super) fn channels(config: &Config) -> BTreeSet<&str> {
    let paths = config.iter().filter_map(|(path, _)| path.strip_prefix("sinks."));
    // A channel may have dots in its name, and a variable too: what is behind the first known word is not the channel.
    let words = [
        ".type",
        ".command",
        ".args",
        ".env.",
        ".url",
        ".secret",
        ".path",
        ".threads",
        ".timeoutSeconds",
    ];
    let ends = |path: &str| words.iter().filter_map(|word| path.find(word)).min();
    paths.filter_map(|path| path.get(..ends(path)?)).collect()
}

/// What the settings say of one sink.
pub(super) struct Said<'a> {
    pub(super) config: &'a Config,
    place: String,
    /// How long one try takes at the most.
    pub(super) timeout: Duration,
}

impl<'a> Said<'a> {
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}.{name}", self.place)
    }

    /// A text that there must be.
    pub(super) fn needed(&self, name: &str, what: &str) -> Result<&'a str> {
        let path = self.path(name);
        self.config.text(&path).ok_or_else(|| {
            Error::invalid(format!("{} has no {name}", self.place))
                .field(&path)
                .hint(format!("{path} is {what}"))
        })
    }

    /// An error about one of its settings.
    pub(super) fn unfit(&self, name: &str, message: &str, hint: &str) -> Error {
        let path = self.path(name);
        Error::invalid(format!("{path} {message}")).field(path).hint(hint)
    }
}

/// So many characters of what was seen are told at the most.
const DETAIL_CHARS: usize = 300;

impl Sent {
    pub(super) fn retry(reason: &'static str, detail: &dyn fmt::Display) -> Self {
        Self::Retry { reason, detail: short(&detail.to_string()) }
    }

    pub(super) fn refused(reason: &'static str, detail: &dyn fmt::Display) -> Self {
        Self::Refused { reason, detail: short(&detail.to_string()) }
    }

    pub(super) fn unknown(reason: &'static str, detail: &dyn fmt::Display) -> Self {
        Self::Unknown { reason, detail: short(&detail.to_string()) }
    }
}

/// A text on one line, its beginning.
fn short(text: &str) -> String {
    let line = text.split(|c: char| c.is_whitespace() || c.is_control());
    let line = line.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(DETAIL_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// In the log the reason is the code, and behind a colon what was seen.
impl From<Sent> for Tried {
    fn from(sent: Sent) -> Self {
        let told = |reason: &str, detail: &str| match detail {
            "" => reason.to_owned(),
            _ => format!("{reason}: {detail}"),
        };
        match sent {
            Sent::Delivered => Self::Delivered,
            Sent::Retry { reason, detail } => Self::Retry(told(reason, &detail)),
            Sent::Refused { reason, detail } => Self::Refused(told(reason, &detail)),
            Sent::Unknown { reason, detail } => Self::Unknown(told(reason, &detail)),
        }
    }
}
