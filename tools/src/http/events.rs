//! The log as it comes, for its owner: server-sent events, whose readers go on after the last id that they saw, lines of JSON as `annals tail
//! -f --json` prints them, or one batch of CloudEvents after the other. Every event has the cursor to go on from, and
//! what is missing is told as a gap where it is missing.

mod feed;

use annals_engine::store::{Cursor, Filter, NamePattern, Read, View};
use annals_engine::{Error, ErrorKind, Result};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use self::feed::{Form, Looks, Reader};
use super::answer::{Answer, told};
use super::query::pairs;
use crate::calls::Calls;
use crate::host::{Host, Identity};

/// So many pieces wait for a reader that is slower than the log; then the log waits for it.
const PIECES_MAX: usize = 64;

/// What somebody wants to hear.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    after: After,
    filter: Filter,
    masked: bool,
    /// The most events of a batch.
    limit: Option<usize>,
}

/// Where to begin.
#[derive(Debug, PartialEq, Eq)]
enum After {
    /// What comes from now on.
    Now,
    /// All that there is, and what comes.
    Beginning,
    /// What stands behind this.
    Cursor(Cursor),
}

/// Answers with the log.
///
/// # Errors
/// `Refused` for anybody but the owner; `InvalidInput` for a query that cannot be; `HistoryChanged` for a cursor of another
/// history; `Busy` when as many follow as may; whatever reading meets.
pub(super) async fn answer(
    host: Host,
    calls: &Calls,
    who: Identity,
    headers: &HeaderMap,
    query: Option<&str>,
) -> Answer<Response> {
    if who != Identity::Operator {
        let error = Error::new(ErrorKind::Refused, "the log is its owner's to follow");
        let hint = "a session hears of itself with session_status, or over MCP by its resource";
        return Err(error.hint(hint).into());
    }
    let wanted = Wanted::read(query.unwrap_or_default(), headers)?;
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let Some(form) = Form::of(accept.unwrap_or_default()) else {
        let error = Error::invalid("the log comes in none of these forms").field("Accept");
        let error = error.hint("it comes as text/event-stream, application/x-ndjson or application/cloudevents-batch+json");
        return Ok(told(StatusCode::NOT_ACCEPTABLE, &error));
    };
    let looks = Looks::new(&host, wanted.filter, wanted.masked, form);
    let after = wanted.after;
    let read_from = move || -> Result<Read> {
        let after = match after {
            After::Now => host.engine().end(View::Durable)?,
            After::Beginning => None,
            After::Cursor(cursor) => Some(cursor),
        };
        Ok(Read::after(after).view(View::Durable))
    };
    if form == Form::Batch {
        let batch = calls.look(move || looks.batch(read_from()?, wanted.limit)).await?;
        return Ok(batch.into_response());
    }
    let (pieces, taken) = mpsc::channel(PIECES_MAX);
    let (begun, has_begun) = oneshot::channel();
    let reader = Reader { begun, pieces };
    calls.feed(move |stop| looks.feed(read_from, reader, stop))?;
    // What cannot be followed is told with the status of the answer; what happens later, in its place.
    has_begun.await.unwrap_or_else(|e| {
        Err(Error::new(ErrorKind::Unavailable, "the follower broke off").caused_by(e))
    })?;
    let body = ReceiverStream::new(taken).map(Ok::<_, std::convert::Infallible>);
    let mut response = Body::from_stream(body).into_response();
    let own = response.headers_mut();
    own.insert(header::CONTENT_TYPE, HeaderValue::from_static(form.content_type()));
    own.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A proxy that gathers would keep events back.
    own.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

impl Wanted {
    /// What a query says; the header by which a reader goes on counts before it.
    fn read(query: &str, headers: &HeaderMap) -> Result<Self> {
        let mut wanted =
            Self { after: After::Now, filter: Filter::default(), masked: true, limit: None };
        for pair in pairs(query) {
            let (name, text) = pair?;
            match name.as_str() {
                "after" if text == "0" => wanted.after = After::Beginning,
                "after" => wanted.after = After::Cursor(text.parse()?),
                "session" => wanted.filter.streams.extend(patterns(&text)),
                "type" => wanted.filter.types.extend(patterns(&text)),
                "mask" if ["true", "false"].contains(&text.as_str()) => {
                    wanted.masked = text == "true";
                }
                "limit" if text.parse::<usize>().is_ok_and(|most| most > 0) => {
                    wanted.limit = text.parse().ok();
                }
                _ => {
                    let error = Error::invalid(format!("the query says {name}={text}")).field(name);
                    return Err(error.hint(
                        "it takes after=CURSOR or after=0, session=KEY and type=TYPE, several with commas or with a * at the end, mask=false, and limit=N for a batch",
                    ));
                }
            }
        }
        if let Some(last) = headers.get("last-event-id").filter(|last| !last.is_empty()) {
            let last = last.to_str().map_err(|e| Error::invalid("no cursor").caused_by(e))?;
            wanted.after =
                After::Cursor(last.parse::<Cursor>().map_err(|e| e.field("Last-Event-ID"))?);
        }
        Ok(wanted)
    }
}

/// Names with commas between them; a star at the end of one stands for any ending.
fn patterns(text: &str) -> impl Iterator<Item = NamePattern> {
    let names = text.split(',').filter(|name| !name.is_empty());
    names.map(|name| match name.strip_suffix('*') {
        Some(beginning) => NamePattern::Prefix(beginning.to_owned()),
        None => NamePattern::Exact(name.to_owned()),
    })
}
