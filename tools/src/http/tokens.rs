//! Who calls with which token: those of the settings, and those of the runs at work.

use std::collections::BTreeMap;

use annals_engine::config::Config;
use annals_engine::session::key::SessionKey;
use annals_engine::{Error, ErrorKind, Result};

use crate::caller::{Caller, TokenHash};
use crate::host::{Host, Identity};

/// The shortest token that the settings may hold, in bytes: 16 bytes are out of reach of guessing over a network.
const TOKEN_MIN: usize = 16;

/// Whom a token of the settings stands for. The owner's is said to be his; a token that says nothing is nobody's.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Bearer {
    /// The store's owner.
    Operator,
    /// The session of this key, when there is one.
    Session(SessionKey),
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
        let agent = Caller::operator_of(config)?.agent;
        for name in config.http_callers() {
            let path = format!("http.tokens.{name}.token");
            let token = config.text(&path).ok_or_else(|| {
                Error::invalid(format!("the caller {name:?} has no token")).field(path.clone())
            })?;
            check(&path, token)?;
            let named = format!("http.tokens.{name}.session");
            let session = config.text(&named).ok_or_else(|| {
                Error::invalid(format!("the caller {name:?} has no session"))
                    .field(named.clone())
                    .hint("name the session that calls with it; http.token is the owner's")
            })?;
            let key = SessionKey::parse(session, &agent).map_err(|e| e.field(named))?;
            let bearer = Bearer::Session(key);
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
    /// `Refused` for a token of nobody, for one whose run has ended, and for one whose session is not there; whatever
    /// reading meets.
    pub(super) fn identify(&self, host: &Host, token: &str) -> Result<Identity> {
        let hash = TokenHash::of(token);
        let who = match self.0.get(hash.as_str()) {
            Some(Bearer::Operator) => return Ok(Identity::Operator),
            Some(Bearer::Session(key)) => {
                // The very key: a session whose key only begins so is somebody else's.
                let sessions = host.engine().sessions()?;
                let there = sessions.state().row(key.stream()).is_some();
                let who = Identity::Session(key.stream().clone());
                return there.then_some(who).ok_or_else(|| absent(key));
            }
            None => Identity::Run(hash),
        };
        match host.caller(&who) {
            Ok(_) => Ok(who),
            Err(error) if *error.kind() == ErrorKind::Refused => Err(nobodys()),
            Err(error) => Err(error),
        }
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

/// The token is no caller's.
fn nobodys() -> Error {
    Error::new(ErrorKind::Refused, "no caller has this token").field("token").hint(
        "http.token is the owner's, http.tokens.NAME a session's; a run's ends with the run, and the webhook's is no caller's",
    )
}

/// The caller's session is not there: that is nothing that the caller named.
fn absent(key: &SessionKey) -> Error {
    Error::new(ErrorKind::Refused, format!("the token's session {key} is not there"))
        .hint("a session comes to be with its first turn: `annals session push`")
}
