//! Who calls with which token: those of the settings, and those of the runs at work.

use std::collections::BTreeMap;

use annals_engine::config::Config;
use annals_engine::{Error, ErrorKind, Result};

use crate::caller::{Caller, TokenHash};
use crate::host::{Host, Identity};

/// The shortest token that the settings may hold, in bytes: 16 bytes are out of reach of guessing over a network.
const TOKEN_MIN: usize = 16;

/// Whom a token of the settings stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Bearer {
    /// The store's owner.
    Operator,
    /// The session of this name, when there is one.
    Session(String),
}

/// The tokens of the settings, by their hashes: a comparison of hashes tells nobody how much of a token was right.
#[derive(Clone, Debug, Default)]
pub(super) struct Tokens(BTreeMap<String, Bearer>);

impl Tokens {
    /// The tokens that the settings hold.
    ///
    /// # Errors
    /// `InvalidInput` for a token that is too short or given twice, and for a name without one.
    pub(super) fn of(config: &Config) -> Result<Self> {
        let mut tokens = Self::default();
        if let Some(token) = config.text("http.token") {
            tokens.add("http.token", token, Bearer::Operator)?;
        }
        for name in config.http_callers() {
            let path = format!("http.tokens.{name}.token");
            let token = config.text(&path).ok_or_else(|| {
                Error::invalid(format!("the caller {name:?} has no token")).field(path.clone())
            })?;
            let session = config.text(&format!("http.tokens.{name}.session"));
            let bearer = session.map_or(Bearer::Operator, |name| Bearer::Session(name.to_owned()));
            tokens.add(&path, token, bearer)?;
        }
        Ok(tokens)
    }

    fn add(&mut self, path: &str, token: &str, bearer: Bearer) -> Result<()> {
        check(path, token)?;
        match self.0.insert(TokenHash::of(token).as_str().to_owned(), bearer) {
            None => Ok(()),
            Some(_) => {
                Err(Error::invalid("this token is another caller's already").field(path.to_owned()))
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Who calls with a token, as of now. It reads the store.
    ///
    /// # Errors
    /// `Refused` for a token of nobody and for one whose run has ended; `NotFound` for one whose session is not there;
    /// whatever reading meets.
    pub(super) fn identify(&self, host: &Host, token: &str) -> Result<Identity> {
        let hash = TokenHash::of(token);
        let who = match self.0.get(hash.as_str()) {
            Some(Bearer::Operator) => return Ok(Identity::Operator),
            Some(Bearer::Session(name)) => {
                let sessions = host.engine().sessions()?;
                let found = Caller::operator_of(host.config())?.find(sessions.state(), name);
                let found = found.map_err(|error| absent(name, error))?;
                return Ok(Identity::Session(found.key));
            }
            None => Identity::Run(hash),
        };
        host.caller(&who).map(|_| who)
    }
}

/// Refuses a token that could be guessed, or that no header carries.
///
/// # Errors
/// `InvalidInput`, with the path of the setting.
pub(super) fn check(path: &str, token: &str) -> Result<()> {
    if token.len() >= TOKEN_MIN && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    let message =
        format!("a token has {TOKEN_MIN} characters or more, without spaces, all of ASCII");
    Err(Error::invalid(message).field(path).hint("`openssl rand -hex 32` makes one"))
}

/// The caller's session is not there: that is nothing that the caller named.
fn absent(name: &str, error: Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::Ambiguous => {
            let message = format!("the token's session {name:?} is not there");
            Error::new(ErrorKind::Refused, message)
                .hint("a session comes to be with its first turn: `annals session push`")
                .caused_by(error)
        }
        _ => error,
    }
}
