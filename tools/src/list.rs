//! `sessions_list`: which sessions there are.

use annals_engine::id::StreamName;
use annals_engine::session::event::SessionKind;
use annals_engine::session::history::{HistoryQuery, Message, history};
use annals_engine::session::index::{Archived, Found, ListQuery, Row, Sessions, Shape};
use annals_engine::store::EventStore;
use annals_engine::{Error, Result};

use crate::caller::{Caller, MainBucket, Seat};
use crate::history::Shown;
use crate::mask::Mask;
use crate::view::View;
use crate::wire::{ArchivedArg, ListArgs, ListReply, Listed};

/// How many rows there are when nobody says.
const LIMIT: usize = 50;

/// Lists the sessions that the caller sees, as of what the view has seen. Secrets in messages of other sessions than the
/// caller's own are masked.
///
/// # Errors
/// `InvalidInput` for an unknown kind or a cursor that no answer gave; whatever reading meets.
pub fn sessions_list(caller: &Caller, view: &View<'_>, args: &ListArgs) -> Result<ListReply> {
    list(caller, view, args, Shape::Any)
}

/// The same for sessions whose keys have a shape.
///
/// # Errors
/// As [`sessions_list`].
pub fn list(caller: &Caller, view: &View<'_>, args: &ListArgs, shape: Shape) -> Result<ListReply> {
    let View { store, sessions, lens, config, .. } = *view;
    let query = ListQuery {
        kinds: args.kinds.iter().map(|word| kind(word)).collect::<Result<_>>()?,
        shape,
        active: args.active_minutes.map(|minutes| (lens.now, minutes)),
        archived: match args.archived {
            ArchivedArg::Without => Archived::Without,
            ArchivedArg::Only => Archived::Only,
            ArchivedArg::All => Archived::With,
        },
        global: shape == Shape::Any && caller.main == MainBucket::Shared,
        limit: None,
    };
    let mut list = sessions.state().list(&query, &lens);
    if caller.seat != Seat::Operator {
        list.rows.retain(|row| caller.sees(sessions.state(), row));
        list.total = list.rows.len();
    }
    let rows = match &args.cursor {
        Some(cursor) => behind(&list.rows, &Place::read(cursor)?),
        None => list.rows.as_slice(),
    };
    let limit = args.limit.unwrap_or(LIMIT).clamp(1, caller.bounds.rows);
    let page = rows.get(..limit).unwrap_or(rows);
    let truncated = page.len() < rows.len();
    let messages = args.message_limit.unwrap_or(0).min(caller.bounds.messages);
    let files = store.files()?;
    let mask = Mask::of(config);
    let listed = |row: &&Row| {
        let mut messages = last_messages(store, sessions.state(), row, messages)?;
        let shown = Shown { caller, mask: &mask, key: &row.key };
        messages.iter_mut().flatten().for_each(|message| shown.prepare(message));
        let mut row = sessions.state().row_at(&row.key, &lens).unwrap_or_else(|| (*row).clone());
        // Where all that everybody says lies is the owner's to know.
        if caller.seat == Seat::Operator {
            sessions.state().locate(&mut row, &files);
        }
        row.context_tokens = row.context_tokens.or_else(|| config.context_tokens(&row.agent_id));
        if let Ok(shown) = StreamName::new(caller.shown(&row.key)) {
            row.key = shown;
        }
        Ok(Listed { row, messages })
    };
    let mut listed: Vec<Listed> = page.iter().map(listed).collect::<Result<_>>()?;
    let messages_truncated = newest_within(&mut listed, caller.bounds.bytes);
    Ok(ListReply {
        sessions: listed,
        messages_truncated,
        total: list.total,
        truncated,
        cursor: page.last().filter(|_| truncated).map(|row| Place::of(row).to_string()),
        lost: match caller.seat {
            Seat::Operator => sessions.state().lost_whole(),
            Seat::Session { .. } => 0,
        },
        visibility: caller.told(sessions.state()),
        as_of: sessions.as_of().0,
    })
}

fn kind(word: &str) -> Result<SessionKind> {
    SessionKind::from_word(word).ok_or_else(|| {
        let words: Vec<&str> = SessionKind::ALL.iter().map(|kind| kind.as_str()).collect();
        Error::invalid(format!("no session is of the kind {word:?}"))
            .field("kinds")
            .hint(format!("kinds are {}", words.join(", ")))
    })
}

fn last_messages(
    store: &dyn EventStore,
    sessions: &Sessions,
    row: &Row,
    limit: usize,
) -> Result<Option<Vec<Message>>> {
    if limit == 0 {
        return Ok(None);
    }
    let found = Found { key: row.key.clone(), part: None };
    let query = HistoryQuery { limit, ..HistoryQuery::default() };
    history(store, sessions, &found, &query).map(|page| Some(page.messages))
}

/// Leaves the newest messages that have at most so many bytes together, whichever rows they stand with; gives whether any
/// were left out.
fn newest_within(listed: &mut [Listed], bytes_max: usize) -> bool {
    if bytes_max == usize::MAX {
        return false;
    }
    let messages = listed.iter().flat_map(|row| row.messages.iter().flatten());
    let size = |message: &Message| serde_json::to_string(message).map_or(0, |text| text.len());
    let mut sizes: Vec<(u64, usize)> = messages.map(|m| (m.seq, size(m))).collect();
    sizes.sort_unstable_by_key(|(seq, _)| std::cmp::Reverse(*seq));
    let mut left = bytes_max;
    let over = sizes.iter().find(|(_, bytes)| match left.checked_sub(*bytes) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    });
    let Some((last_out, _)) = over else { return false };
    for messages in listed.iter_mut().filter_map(|row| row.messages.as_mut()) {
        messages.retain(|message| message.seq > *last_out);
    }
    true
}

/// A place in a list, behind a row: when that row changed, and its key.
struct Place<'a> {
    micros: i64,
    key: &'a str,
}

impl<'a> Place<'a> {
    fn of(row: &'a Row) -> Self {
        Self { micros: row.updated_at.as_micros(), key: row.key.as_str() }
    }

    fn read(cursor: &'a str) -> Result<Self> {
        let place = cursor
            .split_once('.')
            .and_then(|(micros, key)| Some(Self { micros: micros.parse().ok()?, key }));
        place.ok_or_else(|| {
            Error::invalid(format!("{cursor:?} is not a cursor"))
                .field("cursor")
                .hint("take the cursor as an earlier answer gave it")
        })
    }
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.micros, self.key)
    }
}

/// The rows behind a place: those that changed earlier, and of the same moment those with a greater key.
fn behind<'a>(rows: &'a [&'a Row], place: &Place<'_>) -> &'a [&'a Row] {
    let before = |row: &&Row| {
        let micros = row.updated_at.as_micros();
        micros > place.micros || micros == place.micros && row.key.as_str() <= place.key
    };
    rows.get(rows.partition_point(before)..).unwrap_or_default()
}
