//! `sessions_history`: what was said in a session, the newest page first.

use annals_engine::id::{StreamName, Version};
use annals_engine::projection::Folded;
use annals_engine::session::event::Json;
use annals_engine::session::history::{HistoryQuery, Message, Page, Span, ToolResults, history};
use annals_engine::session::index::{Found, Sessions};
use annals_engine::{Error, Result};

use crate::caller::Caller;
use crate::mask::Mask;
use crate::view::View;
use crate::wire::{HistoryArgs, HistoryReply};

/// How many messages there are when nobody says.
const LIMIT: usize = 50;

/// A page of a session's history as of what the view has seen. Secrets of another session than the caller's own are
/// masked.
///
/// # Errors
/// `NotFound` when there is no such session; `Ambiguous` when the name fits several; `InvalidInput` for a cursor that no
/// answer gave; `Corrupt` when all that is known of the session is that it was lost; whatever reading meets.
pub fn sessions_history(
    caller: &Caller,
    view: &View<'_>,
    args: &HistoryArgs,
    span: Span,
) -> Result<HistoryReply> {
    let View { store, sessions, config, .. } = *view;
    let found = caller.find(sessions.state(), &args.session_key)?;
    let mut query = HistoryQuery {
        span,
        tool_results: if args.include_tools { ToolResults::Shown } else { ToolResults::Hidden },
        limit: args.limit.unwrap_or(LIMIT).clamp(1, caller.bounds.rows),
        before: args.cursor.as_deref().map(version).transpose()?,
    };
    let shown = Shown { caller, mask: &Mask::of(config), key: &found.key };
    let mut page = history(store, sessions.state(), &found, &query)?;
    page.messages.iter_mut().for_each(|message| shown.prepare(message));
    let fits = newest_within(&page.messages, caller.bounds.bytes);
    if fits < page.messages.len() {
        query.limit = fits;
        page = history(store, sessions.state(), &found, &query)?;
        page.messages.iter_mut().for_each(|message| shown.prepare(message));
    }
    let reply = reply(page, sessions, &found);
    let session_key = caller.shown(&found.key).to_owned();
    Ok(HistoryReply { session_key, visibility: caller.told(sessions.state()), ..reply })
}

fn reply(page: Page, sessions: &Folded<Sessions>, found: &Found) -> HistoryReply {
    let parts = sessions.state().parts(&found.key).into_iter();
    let others = parts.filter(|id| page.session_id.as_deref().is_some_and(|shown| shown != *id));
    HistoryReply {
        session_key: page.key.to_string(),
        other_parts: others.map(str::to_owned).collect(),
        truncated: page.truncated(),
        cursor: page.before.map(|version| version.to_string()),
        session_id: page.session_id,
        messages: page.messages,
        total: page.total,
        damaged: page.damaged,
        visibility: None,
        as_of: sessions.as_of().0,
    }
}

fn version(cursor: &str) -> Result<Version> {
    cursor.parse().map(Version).map_err(|e| {
        Error::invalid(format!("{cursor:?} is not a cursor"))
            .field("cursor")
            .hint("take the cursor as an earlier answer gave it")
            .caused_by(e)
    })
}

/// How messages of one session are shown to a caller.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) mask: &'a Mask,
    /// The session.
    pub(crate) key: &'a StreamName,
}

impl Shown<'_> {
    /// Masks what the caller may not read, and leaves out the content of a message that alone has more bytes than an
    /// answer may have, which is said in its place.
    pub(crate) fn prepare(&self, message: &mut Message) {
        if self.caller.is_masked(self.key.as_str())
            && let Some(masked) = message.content.as_ref().and_then(|c| self.mask.content(c))
        {
            message.content = Some(masked);
        }
        let bytes = message.content.as_ref().map_or(0, |content| content.as_str().len());
        if bytes.saturating_add(ENVELOPE) <= self.caller.bounds.bytes {
            return;
        }
        message.omitted_bytes = u64::try_from(bytes).ok();
        message.content = Json::of("[sessions_history omitted: message too large]").ok();
    }
}

/// So many bytes of a message beside its content at the most, roughly.
const ENVELOPE: usize = 2 << 10;

/// How many of the newest messages have at most so many bytes together; at least one.
fn newest_within(messages: &[Message], bytes_max: usize) -> usize {
    let mut left = bytes_max;
    let fits = |message: &&Message| {
        let bytes = serde_json::to_string(message).map_or(0, |text| text.len());
        let fits = bytes <= left;
        left = left.saturating_sub(bytes);
        fits
    };
    messages.iter().rev().take_while(fits).count().max(1).min(messages.len())
}
