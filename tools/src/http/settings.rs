//! The settings of the server.

use annals_engine::config::Config;
use annals_engine::{Error, Result};

use super::tokens::Tokens;
use super::webhook::Hook;

/// The settings of the server.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Where it listens: a name or an address, and a port.
    pub address: String,
    /// The names by which callers may address it, beside those of this machine.
    pub(super) allowed_hosts: Vec<String>,
    /// The most bytes of a body.
    pub(super) body_max: usize,
    pub(super) tokens: Tokens,
    pub(super) hook: Option<Hook>,
}

/// The most bytes of a body where nothing is said: a spawn with all its attachments, and more.
const BODY_MAX: usize = 16 << 20;

/// The name of a host, or its address; the port of a request may be any.
fn host(name: &str) -> Result<String> {
    let address =
        name.parse::<std::net::IpAddr>().is_ok() || (name.starts_with('[') && name.ends_with(']'));
    if name.is_empty() || (!address && name.contains([':', '/', ' '])) {
        return Err(Error::invalid(format!("{name:?} is no name of a host"))
            .field("http.allowedHosts")
            .hint("name it without scheme and port, such as annals.example.org"));
    }
    Ok(name.to_ascii_lowercase())
}

impl HttpSettings {
    /// What a configuration says.
    ///
    /// # Errors
    /// `InvalidInput` for a token that is too short or given twice, and for a webhook that anybody could call.
    pub fn of(config: &Config) -> Result<Self> {
        let address = config.text("http.address").ok_or_else(|| {
            Error::invalid("there is no address to listen on").field("http.address")
        })?;
        let body_max = config.number("http.maxBodyBytes").and_then(|n| usize::try_from(n).ok());
        Ok(Self {
            address: address.to_owned(),
            allowed_hosts: config
                .texts("http.allowedHosts")
                .into_iter()
                .map(host)
                .collect::<Result<_>>()?,
            body_max: body_max.unwrap_or(BODY_MAX),
            tokens: Tokens::of(config)?,
            hook: Hook::of(config)?,
        })
    }

    /// Whether anybody but the runs has a token.
    #[must_use]
    pub fn lets_somebody_in(&self) -> bool {
        !self.tokens.is_empty() || self.hook.is_some()
    }
}
