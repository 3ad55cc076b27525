//! `sessions_list`: which sessions there are.

use annals_engine::id::StreamName;
use annals_engine::session::event::SessionKind;
use annals_engine::session::history::{HistoryQuery, Message, history};
use annals_engine::session::index::{Archived, Found, ListQuery, Row, Sessions, Shape};
use annals_engine::store::EventStore;
use annals_engine::{Error, Result};

use crate::caller::{Caller, MainBucket, Seat};
use crate::history::omit_huge;
use crate::view::View;
use crate::wire::{ArchivedArg, ListArgs, ListReply, Listed};

/// How many rows there are when nobody says.
const LIMIT: usize = 50;

/// Lists the sessions that the caller sees, as of what the view has seen.
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
    let View { store, sessions, lens } = *view;
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
    let limit = args.limit.unwrap_or(LIMIT).min(caller.bounds.rows);
    let page = rows.get(..limit).unwrap_or(rows);
    let truncated = page.len() < rows.len();
    let messages = args.message_limit.unwrap_or(0).min(caller.bounds.messages);
    let files = store.files()?;
    let listed = |row: &&Row| {
        let mut messages = last_messages(store, sessions.state(), row, messages)?;
        for message in messages.iter_mut().flatten() {
            omit_huge(message, caller.bounds.bytes);
        }
        let mut row = sessions.state().row_at(&row.key, &lens).unwrap_or_else(|| (*row).clone());
        sessions.state().locate(&mut row, &files);
        if let Ok(shown) = StreamName::new(caller.shown(&row.key)) {
            row.key = shown;
        }
        Ok(Listed { row, messages })
    };
    Ok(ListReply {
        sessions: page.iter().map(listed).collect::<Result<_>>()?,
        total: list.total,
        truncated,
        cursor: page.last().filter(|_| truncated).map(|row| Place::of(row).to_string()),
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

/// A place in a list, behind a row: when that row changed, and its key.
struct Place<'a> {
    millis: i64,
    key: &'a str,
}

impl<'a> Place<'a> {
    fn of(row: &'a Row) -> Self {
        Self { millis: row.updated_at.as_millis(), key: row.key.as_str() }
    }

    fn read(cursor: &'a str) -> Result<Self> {
        let place = cursor
            .split_once('.')
            .and_then(|(millis, key)| Some(Self { millis: millis.parse().ok()?, key }));
        place.ok_or_else(|| {
            Error::invalid(format!("{cursor:?} is not a cursor"))
                .field("cursor")
                .hint("take the cursor as an earlier answer gave it")
        })
    }
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.millis, self.key)
    }
}

/// The rows behind a place: those that changed earlier, and of the same moment those with a greater key.
fn behind<'a>(rows: &'a [&'a Row], place: &Place<'_>) -> &'a [&'a Row] {
    let before = |row: &&Row| {
        let millis = row.updated_at.as_millis();
        millis > place.millis || millis == place.millis && row.key.as_str() <= place.key
    };
    rows.get(rows.partition_point(before)..).unwrap_or_default()
}
