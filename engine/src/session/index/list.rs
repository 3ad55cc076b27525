//! Lists of sessions: newest first, filtered, bounded.

use std::cmp::Reverse;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::session::event::SessionKind;
use crate::session::key::{Parts, SessionKey};

use super::lens::Lens;
use super::row::Row;
use super::{Entry, Sessions};

/// Which archived sessions are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Archived {
    /// None.
    #[default]
    Without,
    /// Nothing else.
    Only,
    /// Them too.
    With,
}

/// Which shapes of keys are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// All.
    #[default]
    Any,
    /// Chats on a channel, `<channel>:<id>`.
    ChannelChat,
}

/// Which sessions are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Kinds, any of these; empty wants all.
    pub kinds: Vec<SessionKind>,
    /// Shapes of keys.
    pub shape: Shape,
    /// Those in which something happened so many minutes before an instant, or later.
    pub active: Option<(Timestamp, u64)>,
    /// Archived ones.
    pub archived: Archived,
    /// Whether the bucket that all share is shown, where `main` stands for it.
    pub global: bool,
    /// The most rows; `None` for all.
    pub limit: Option<usize>,
}

/// A list.
#[derive(Clone, Debug, PartialEq)]
pub struct List<'a> {
    /// The rows, the last changed first; of those that changed at the same time, by key.
    pub rows: Vec<&'a Row>,
    /// How many sessions fit, those over the limit counted.
    pub total: usize,
}

impl Sessions {
    /// Lists sessions as of a moment: what time has archived by then is archived. Reserved keys never show, `global` only
    /// where it is asked for.
    #[must_use]
    pub fn list(&self, query: &ListQuery, lens: &Lens<'_>) -> List<'_> {
        let mut rows: Vec<&Row> = self
            .entries
            .values()
            .filter(|entry| query.wants(entry, lens))
            .map(|entry| &entry.row)
            .collect();
        rows.sort_unstable_by_key(|row| (Reverse(row.updated_at), &row.key));
        let total = rows.len();
        rows.truncate(query.limit.unwrap_or(total));
        List { rows, total }
    }
}

impl ListQuery {
    fn wants(&self, entry: &Entry, lens: &Lens<'_>) -> bool {
        let row = &entry.row;
        let since = self
            .active
            .map(|(now, minutes)| now.minus(Duration::from_secs(minutes.saturating_mul(60))));
        let archived = match self.archived {
            Archived::Without => !lens.sees_archived(entry),
            Archived::Only => lens.sees_archived(entry),
            Archived::With => true,
        };
        archived
            && (self.kinds.is_empty() || self.kinds.contains(&row.kind))
            && since.is_none_or(|since| row.updated_at >= since)
            && (self.shape.fits(row) || self.global && row.key.as_str() == "global")
    }
}

impl Shape {
    fn fits(self, row: &Row) -> bool {
        let key = || SessionKey::of_stream(&row.key);
        match self {
            // A reserved key is one word, and nearly no other is.
            Self::Any => {
                row.key.as_str().contains(':')
                    || !key().as_ref().is_some_and(SessionKey::is_reserved)
            }
            Self::ChannelChat => {
                matches!(key().as_ref().map(SessionKey::parts), Some(Parts::Channel { .. }))
            }
        }
    }
}
