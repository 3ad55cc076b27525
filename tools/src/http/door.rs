//! The door: who may come in. A request has to address a host that this is, since a page of another site can make a name
//! of its own point here (DNS rebinding); it must not come from such a page; and it brings a token.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use annals_engine::{Error, ErrorKind};
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::answer::{Refusal, told};
use super::settings::HttpSettings;
use super::tokens::Tokens;
use crate::calls::Calls;
use crate::host::Host;

/// What the door goes by.
#[derive(Clone, Debug)]
pub(super) struct Door(Arc<Terms>);

#[derive(Debug)]
struct Terms {
    hosts: Vec<String>,
    tokens: Tokens,
    host: Host,
    calls: Calls,
}

impl Door {
    pub(super) fn new(
        settings: &HttpSettings,
        address: SocketAddr,
        host: Host,
        calls: Calls,
    ) -> Self {
        let mut hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        if !address.ip().is_unspecified() {
            hosts.push(address.ip().to_string());
        }
        hosts.extend(settings.allowed_hosts.iter().map(|name| bare(name).to_owned()));
        Self(Arc::new(Terms { hosts, tokens: settings.tokens.clone(), host, calls }))
    }

    /// Whether a name is one of this host's, whatever the port.
    fn is_own(&self, name: &str) -> bool {
        let name = bare(name).to_ascii_lowercase();
        // One address is written in many ways.
        let same = |own: &String| match (own.parse::<IpAddr>(), name.parse::<IpAddr>()) {
            (Ok(own), Ok(name)) => own == name,
            _ => *own == name,
        };
        self.0.hosts.iter().any(same)
    }
}

/// The name of a host without the brackets of an address.
fn bare(name: &str) -> &str {
    name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name)
}

/// Lets in who addresses this host and comes from no other site.
pub(super) async fn guard(State(door): State<Door>, request: Request, next: Next) -> Response {
    match address_of(&door, request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err((status, error)) => told(status, &error),
    }
}

fn address_of(door: &Door, uri: &Uri, headers: &HeaderMap) -> Result<(), (StatusCode, Error)> {
    let mut named = headers.get_all(header::HOST).iter();
    let name = match (named.next(), named.next()) {
        (Some(name), None) => name.to_str().ok().and_then(|name| name.parse::<Authority>().ok()),
        _ => None,
    };
    let whole = uri.authority();
    let own = |authority: &Authority| door.is_own(authority.host());
    if !name.as_ref().is_some_and(own) || !whole.is_none_or(own) {
        let error = Error::new(ErrorKind::Refused, "the request addresses another host")
            .field("Host")
            .hint("http.allowedHosts in the configuration names the hosts that this is");
        return Err((StatusCode::MISDIRECTED_REQUEST, error));
    }
    let origins = headers.get_all(header::ORIGIN);
    let from_here = |origin: &axum::http::HeaderValue| {
        let origin = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok());
        origin.as_ref().and_then(Uri::authority).is_some_and(own)
    };
    if !origins.iter().all(from_here) {
        let error = Error::new(ErrorKind::Refused, "the request comes from a page of another site")
            .field("Origin")
            .hint("pages of this host alone may call, whatever port they come from");
        return Err((StatusCode::FORBIDDEN, error));
    }
    Ok(())
}

/// Lets in who brings a token, and says to the rest of the way who that is.
pub(super) async fn identify(
    State(door): State<Door>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(token) = bearer(request.headers()).map(str::to_owned) else {
        let error = Error::new(ErrorKind::Refused, "the request brings no token")
            .field("Authorization")
            .hint("send `Authorization: Bearer TOKEN`; http.token in the configuration is the owner's, http.tokens.NAME a session's, ANNALS_TOKEN a run's");
        return told(StatusCode::UNAUTHORIZED, &error);
    };
    let terms = Arc::clone(&door.0);
    let who = door.0.calls.look(move || terms.tokens.identify(&terms.host, &token)).await;
    match who {
        Ok(who) => {
            request.extensions_mut().insert(who);
            next.run(request).await
        }
        Err(error) if *error.kind() == ErrorKind::Refused => told(StatusCode::UNAUTHORIZED, &error),
        Err(error) => Refusal::from(error).into_response(),
    }
}

/// The token of a request: one header, of the scheme of RFC 6750, section 2.1.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (only, None) = (all.next()?, all.next()) else { return None };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
