//! How the program ends: the table of exit codes, and the one kind of failure that every command returns.

use std::borrow::Cow;
use std::io;
use std::process::ExitCode;

use annals_engine::{Error, ErrorKind};
use annals_tools::fault::with_causes;

/// The exit codes. Scripts rely on them: they are part of the interface, like the names of the verbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked for was done.
    Ok,
    /// It was not, for a reason that none of the other codes names.
    Failed,
    /// The command line, or a value in it or in the environment, makes no sense, or names what this program cannot
    /// take.
    Usage,
    /// There is nothing under the name given.
    NotFound,
    /// The time given passed.
    Timeout,
    /// A policy, a permission, a setting or a read-only file system says no.
    Denied,
    /// Stored bytes are damaged.
    Damage,
    /// Somebody else holds what is needed, or the history is not what the caller took it for.
    Busy,
    /// Stopped by this signal.
    Signal(i32),
}

impl Exit {
    /// The number that the shell sees.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Timeout => 4,
            Self::Denied => 5,
            Self::Damage => 6,
            Self::Busy => 7,
            Self::Signal(number) => u8::try_from(128 + number).unwrap_or(u8::MAX),
        }
    }

    fn of(kind: &ErrorKind) -> Self {
        match kind {
            ErrorKind::InvalidInput
            | ErrorKind::Ambiguous
            | ErrorKind::ReservedChannel
            | ErrorKind::TooLarge
            | ErrorKind::Unsupported => Self::Usage,
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::Refused | ErrorKind::ReadOnly => Self::Denied,
            ErrorKind::Corrupt => Self::Damage,
            ErrorKind::Busy
            | ErrorKind::Conflict { .. }
            | ErrorKind::IdReused
            | ErrorKind::PartialDuplicate
            | ErrorKind::HistoryChanged => Self::Busy,
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.number())
    }
}

/// Why a command did not do what it was asked for.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Whoever read standard output went away. Nothing is wrong and nothing is said.
    Closed,
    /// Something to tell.
    Told(Box<Told>),
}

/// What is told of a failure: what happened, a stable word for it, and what to do.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) exit: Exit,
    pub(crate) code: Cow<'static, str>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(
        exit: Exit,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        let (code, message) = (code.into(), message.into());
        Self::Told(Box::new(Told { exit, code, message, hint: None }))
    }

    /// A value that was given makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", message)
    }

    /// There is nothing under the name given.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Exit::NotFound, "not_found", message)
    }

    /// Adds what the reader can do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        if let Self::Told(told) = &mut self {
            told.hint = Some(hint.into());
        }
        self
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (exit, code, hint) = match io_kind(&error) {
            Some(io::ErrorKind::PermissionDenied) => (Exit::Denied, "denied", Some(PERMISSION)),
            Some(io::ErrorKind::IsADirectory) => (Exit::Damage, "corrupt", Some(FOLDER)),
            Some(io::ErrorKind::ReadOnlyFilesystem) => (Exit::Denied, "read_only", Some(MOUNT)),
            _ => (Exit::of(error.kind()), error.kind().code(), None),
        };
        let failure = Self::new(exit, code, with_causes(&error));
        match error.hint_text().or(hint) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

const PERMISSION: &str = "the files and folders of a store belong to who appends to it; verbs that read need to read them \
                          only";
const FOLDER: &str = "a folder stands where a file belongs: put back what was there";
const MOUNT: &str = "the file system is mounted read-only; verbs that read work there";

/// What writing to standard output says.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Closed;
        }
        Self::new(Exit::Failed, "io", format!("writing to standard output: {error}"))
    }
}

fn io_kind(error: &Error) -> Option<io::ErrorKind> {
    let source = std::error::Error::source(error)?;
    Some(source.downcast_ref::<io::Error>()?.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit_of(error: Error) -> (u8, Cow<'static, str>) {
        match Failure::from(error) {
            Failure::Told(told) => (told.exit.number(), told.code),
            Failure::Closed => panic!("an error of the engine is never a closed pipe"),
        }
    }

    /// Each kind that a script may act on has its own number; the rest are plain failures.
    #[test]
    fn kinds_to_codes() {
        let of = |kind| exit_of(Error::new(kind, "x"));
        assert_eq!(of(ErrorKind::InvalidInput), (2, "invalid_input".into()));
        assert_eq!(of(ErrorKind::NotFound), (3, "not_found".into()));
        assert_eq!(of(ErrorKind::Refused), (5, "refused".into()));
        assert_eq!(of(ErrorKind::Corrupt), (6, "corrupt".into()));
        assert_eq!(of(ErrorKind::Busy), (7, "busy".into()));
        assert_eq!(of(ErrorKind::HistoryChanged), (7, "history_changed".into()));
        assert_eq!(of(ErrorKind::Full), (1, "full".into()));
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(exit_of(Error::io("opening", denied)), (5, "denied".into()));
        assert_eq!(of(ErrorKind::Unsupported), (2, "unsupported".into()));
        assert_eq!(of(ErrorKind::ReadOnly), (5, "read_only".into()));
        let mount = io::Error::from(io::ErrorKind::ReadOnlyFilesystem);
        assert_eq!(exit_of(Error::io("opening", mount)), (5, "read_only".into()));
        let folder = io::Error::from(io::ErrorKind::IsADirectory);
        assert_eq!(exit_of(Error::io("opening", folder)), (6, "corrupt".into()));
    }

    /// A message says its causes once each, the outermost first.
    #[test]
    fn causes_are_said() {
        let error = Error::io("cannot open the store", io::Error::other("gremlins")).path("/s");
        let Failure::Told(told) = Failure::from(error) else { panic!("told") };
        assert_eq!(told.message, "cannot open the store (/s): gremlins");
        let inner = Error::new(ErrorKind::Corrupt, "it is broken").path("/s/x").offset(7);
        let outer = Error::new(ErrorKind::Corrupt, "stopped").path("/s/x").offset(7);
        let Failure::Told(told) = Failure::from(outer.caused_by(inner)) else { panic!("told") };
        assert_eq!(told.message, "stopped (/s/x, offset 7): it is broken");
    }
}
