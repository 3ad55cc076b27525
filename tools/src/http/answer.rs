//! Answers: an error as a status and the object that every edge of the program tells.

use annals_engine::{Error, ErrorKind};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::fault::fault;

/// What a handler answers.
pub(super) type Answer<T> = Result<T, Refusal>;

/// An error on its way out.
#[derive(Debug)]
pub(super) struct Refusal(StatusCode, Error);

impl Refusal {
    /// Something that was to come in did not come in time.
    pub(super) const fn late(error: Error) -> Self {
        Self(StatusCode::REQUEST_TIMEOUT, error)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(status_of(error.kind()), error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        told(self.0, &self.1)
    }
}

/// An error with this status.
pub(super) fn told(status: StatusCode, error: &Error) -> Response {
    let mut response = (status, Json(fault(error))).into_response();
    // A store that takes no appends until it is opened anew is not worth another try soon.
    if status == StatusCode::SERVICE_UNAVAILABLE && *error.kind() != ErrorKind::ReadOnly {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if status == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Bearer realm=\"annals\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// The status of an error (RFC 9110, section 15): 4xx where the caller can do something about it, 503 where the store may
/// take it later, 500 for what a person has to see to.
const fn status_of(kind: &ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::InvalidInput | ErrorKind::ReservedChannel => StatusCode::BAD_REQUEST,
        ErrorKind::Refused => StatusCode::FORBIDDEN,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict { .. }
        | ErrorKind::IdReused
        | ErrorKind::PartialDuplicate
        | ErrorKind::Ambiguous => StatusCode::CONFLICT,
        ErrorKind::HistoryChanged => StatusCode::GONE,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::ReadOnly => StatusCode::SERVICE_UNAVAILABLE,
        kind if kind.may_pass() => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
