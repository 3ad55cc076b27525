//! Full text search over what was said, the newest first. It is a scan: turns are looked through as they lie in the log,
//! several stretches at a time, so that a turn is found as soon as it is durable and nothing has to be kept in step.
//!
//! A query is words, all of which must occur in a turn, in any order and whatever the case of their letters; what stands
//! between double quotes is one word. A word may be part of a longer one: that is how scripts without spaces are searched.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use regex::{Regex, RegexBuilder};
use serde::Serialize;

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::format::Fields;
use crate::id::{Seq, StreamName, Version};
use crate::store::{Chain, Cursor, EventStore, Item, Read, Stretch, View};

use super::audit::snippet;
use super::content::plain;
use super::event::{Event, Role, Turn, TurnHead, happened_at};

/// What is searched for.
#[derive(Clone, Debug, Default)]
pub struct SearchQuery {
    /// The words.
    pub text: String,
    /// Only this session.
    pub key: Option<StreamName>,
    /// Only turns of this role.
    pub role: Option<Role>,
    /// Only what happened at this moment or later.
    pub since: Option<Timestamp>,
    /// Only what happened before this moment.
    pub until: Option<Timestamp>,
    /// The most turns; at least one is looked for.
    pub limit: usize,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matches {
    /// The turns, the newest first.
    pub hits: Vec<Hit>,
    /// Whether there may be older ones that were not looked for.
    pub truncated: bool,
    /// Whether events are missing in what was looked through.
    pub damaged: bool,
    /// The last event that was looked at.
    pub as_of: Seq,
}

/// A turn in which all words occur.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// The session.
    pub key: String,
    /// The part.
    pub session_id: String,
    /// The turn's position in the log.
    pub seq: u64,
    /// Whose turn it is.
    pub role: Role,
    /// When, in milliseconds since 1970.
    pub time: i64,
    /// The text around the first word, on one line.
    pub snippet: String,
}

/// So many characters a snippet has, and so many of them stand before the word.
const SNIPPET_CHARS: usize = 160;
const BEFORE_CHARS: usize = 48;

/// The most words of a query, and the most bytes of all of them.
const WORDS_MAX: usize = 32;
const QUERY_MAX: usize = 1_024;

/// How somebody sees the sessions.
#[derive(Clone, Copy)]
pub struct Sight<'a> {
    /// Whether he sees one, by its key.
    pub sees: &'a (dyn Fn(&str) -> bool + Sync),
    /// What he reads of a turn of one, by its key and the turn's text. Nothing else is looked for or shown.
    pub reads: &'a (dyn Fn(&str, String) -> String + Sync),
}

impl<'a> Sight<'a> {
    /// Whoever sees everything of the sessions that he sees.
    #[must_use]
    pub fn whole(sees: &'a (dyn Fn(&str) -> bool + Sync)) -> Self {
        Self { sees, reads: &|_, text| text }
    }
}

/// Searches the durable turns of the sessions that are seen.
///
/// # Errors
/// `InvalidInput` for a query without words or with too many, `TooLarge` over 1,024 bytes; whatever reading meets. Damage
/// is no error: the answer says so.
pub fn search(store: &dyn EventStore, query: &SearchQuery, sight: Sight<'_>) -> Result<Matches> {
    let matcher = Matcher::of(query, sight)?;
    let limit = query.limit.max(1);
    let as_of = store.end(View::Durable)?.map_or(Seq::ZERO, |end| end.seq());
    let mut found = match &query.key {
        Some(key) => in_order(store.read_stream(key, Version::ZERO)?, &matcher, limit)?,
        None => match newest_first(store, &matcher, limit)? {
            Some(found) => found,
            None => in_order(store.read(Read::default())?, &matcher, limit)?,
        },
    };
    let mut hits = Vec::new();
    while hits.len() < limit {
        let Some(raw) = found.raw.pop() else { break };
        match matcher.settle(store, raw)? {
            Settled::Hit(hit) => hits.push(hit),
            Settled::Nothing => {}
            Settled::Lost => found.damaged = true,
        }
    }
    found.truncated |= !found.raw.is_empty();
    Ok(Matches { hits, truncated: found.truncated, damaged: found.damaged, as_of })
}

/// What a scan gave, the oldest first.
#[derive(Default)]
struct Scanned {
    raw: Vec<Raw>,
    truncated: bool,
    damaged: bool,
}

/// A turn that was found, or one whose content lies apart and must be looked at.
enum Raw {
    Hit(Hit),
    Apart { stream: String, version: Version },
}

fn in_order(
    items: crate::store::Items<'_>,
    matcher: &Matcher<'_>,
    limit: usize,
) -> Result<Scanned> {
    let mut newest = Newest::new(limit);
    let mut damaged = false;
    for item in items {
        match item? {
            Item::Record(record) => newest.extend(matcher.look(&record.fields())),
            Item::Gap(_) => damaged = true,
        }
    }
    Ok(Scanned { truncated: newest.dropped, damaged, raw: newest.raw.into() })
}

/// The last turns that were found: as many as are wanted, and with them those whose content lies apart.
struct Newest {
    raw: VecDeque<Raw>,
    hits: usize,
    limit: usize,
    /// Whether there were more.
    dropped: bool,
}

impl Newest {
    fn new(limit: usize) -> Self {
        Self { raw: VecDeque::new(), hits: 0, limit, dropped: false }
    }

    fn extend(&mut self, found: Option<Raw>) {
        let Some(raw) = found else { return };
        self.hits += usize::from(matches!(raw, Raw::Hit(_)));
        self.raw.push_back(raw);
        while self.hits > self.limit {
            self.dropped = true;
            self.hits -= usize::from(matches!(self.raw.pop_front(), Some(Raw::Hit(_))));
        }
    }
}

/// Looks through stretches from the end of the log towards its beginning, until there are enough. `None` when something
/// is amiss that only reading in order can judge.
fn newest_first(
    store: &dyn EventStore,
    matcher: &Matcher<'_>,
    limit: usize,
) -> Result<Option<Scanned>> {
    let stretches = store.stretches(None, View::Durable)?;
    let read = Backwards::of(&stretches);
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(stretches.len());
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| read.work(matcher, limit));
        }
        read.work(matcher, limit);
    });
    let done = read.done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut all = Vec::new();
    let mut dropped = false;
    let mut follows: Option<Cursor> = None;
    let mut last = None;
    let looked_at = done.len();
    for outcome in done.into_iter().flatten() {
        let (chain, newest) = outcome?;
        match chain {
            Chain::Whole { follows: before, last: end, .. } => {
                if follows.is_some_and(|follows| follows != end) {
                    return Ok(None);
                }
                follows = Some(before);
                last = last.or(Some(end));
            }
            Chain::Empty => {}
            Chain::Broken => return Ok(None),
        }
        dropped |= newest.dropped;
        all.push(newest.raw);
    }
    let rest = in_order(store.read(Read::after(last))?, matcher, limit)?;
    let mut found = Scanned {
        truncated: dropped || rest.truncated || looked_at < stretches.len(),
        ..Scanned::default()
    };
    found.damaged = rest.damaged;
    found.raw = all.into_iter().rev().flatten().chain(rest.raw).collect();
    Ok(Some(found))
}

type Outcome = Result<(Chain, Newest)>;

/// Stretches that several threads take from the end.
struct Backwards<'a> {
    stretches: &'a [Box<dyn Stretch + 'a>],
    next: AtomicUsize,
    /// By their distance from the end.
    done: Mutex<Vec<Option<Outcome>>>,
    /// How many turns were found, those whose content lies apart not counted.
    hits: AtomicUsize,
}

impl<'a> Backwards<'a> {
    fn of(stretches: &'a [Box<dyn Stretch + 'a>]) -> Self {
        let (next, hits) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { stretches, next, done: Mutex::default(), hits }
    }

    fn work(&self, matcher: &Matcher<'_>, limit: usize) {
        while self.hits.load(Ordering::Relaxed) < limit {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(stretch) = self.stretches.iter().rev().nth(number) else { return };
            let mut newest = Newest::new(limit);
            let chain = stretch.read(&mut |fields| newest.extend(matcher.look(fields)));
            self.hits.fetch_add(newest.hits, Ordering::Relaxed);
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            if done.len() <= number {
                done.resize_with(number + 1, || None);
            }
            if let Some(place) = done.get_mut(number) {
                *place = Some(chain.map(|chain| (chain, newest)));
            }
        }
    }
}

/// What a turn turned out to be.
enum Settled {
    Hit(Hit),
    Nothing,
    /// Its content is lost: nobody knows.
    Lost,
}

/// A query that is ready.
struct Matcher<'a> {
    query: &'a SearchQuery,
    sight: Sight<'a>,
    words: Vec<Regex>,
    /// What must occur in the bytes of a line, unless these escape letters.
    sieve: Option<Regex>,
}

impl<'a> Matcher<'a> {
    fn of(query: &'a SearchQuery, sight: Sight<'a>) -> Result<Self> {
        if query.text.len() > QUERY_MAX {
            let message = format!("a query has at most {QUERY_MAX} bytes");
            return Err(Error::new(ErrorKind::TooLarge, message)
                .field("query")
                .hint("look for the words that tell it apart"));
        }
        let words = words(&query.text);
        if words.is_empty() || words.len() > WORDS_MAX {
            return Err(Error::invalid(format!("a query has 1 to {WORDS_MAX} words"))
                .field("query")
                .hint("words that must all occur; \"quotes\" keep words together"));
        }
        let sieve =
            words.iter().flat_map(|word| word.split(is_escaped)).max_by_key(|run| run.len());
        Ok(Self {
            query,
            sight,
            words: words.iter().map(|word| pattern(word)).collect::<Result<_>>()?,
            sieve: sieve.filter(|run| !run.is_empty()).map(pattern).transpose()?,
        })
    }

    fn look(&self, fields: &Fields<'_>) -> Option<Raw> {
        if fields.kind != "turn" || !self.may_hold(fields) {
            return None;
        }
        let query = self.query;
        let at = happened_at(fields.time, fields.data);
        if query.since.is_some_and(|since| at < since)
            || query.until.is_some_and(|until| at >= until)
        {
            return None;
        }
        let role = TurnHead::read(fields.data)?.role;
        if query.role.is_some_and(|wanted| wanted != role) || !(self.sight.sees)(&fields.stream) {
            return None;
        }
        if fields.blob.is_some() {
            let stream = fields.stream.to_string();
            return Some(Raw::Apart { stream, version: fields.version });
        }
        let turn: Turn = serde_json::from_str(fields.data).ok()?;
        self.hit(&fields.stream, fields.seq, at, &turn).map(Raw::Hit)
    }

    /// Whether a line can hold all words. Most lines end here.
    fn may_hold(&self, fields: &Fields<'_>) -> bool {
        fields.blob.is_some()
            || self.sieve.as_ref().is_none_or(|sieve| sieve.is_match(fields.data))
            || memchr::memmem::find(fields.data.as_bytes(), b"\\u").is_some()
    }

    fn hit(&self, key: &str, seq: Seq, at: Timestamp, turn: &Turn) -> Option<Hit> {
        let text = (self.sight.reads)(key, plain(turn.content.as_ref()?));
        let mut places = self.words.iter().map(|word| word.find(&text));
        let first = places.next()??;
        if !places.all(|place| place.is_some()) {
            return None;
        }
        Some(Hit {
            key: key.to_owned(),
            session_id: turn.session_id.clone(),
            seq: seq.0,
            role: turn.role,
            time: at.as_millis(),
            snippet: around(&text, first.start()),
        })
    }

    /// The hit; what lies apart is read now.
    fn settle(&self, store: &dyn EventStore, raw: Raw) -> Result<Settled> {
        let (stream, version) = match raw {
            Raw::Hit(hit) => return Ok(Settled::Hit(hit)),
            Raw::Apart { stream, version } => (StreamName::new(stream)?, version),
        };
        for item in store.read_stream(&stream, Version(version.0.saturating_sub(1)))? {
            let Item::Record(record) = item? else { continue };
            if record.version != version {
                break;
            }
            let payload = match store.payload(&record) {
                Err(e) if *e.kind() == ErrorKind::Corrupt => return Ok(Settled::Lost),
                other => other?,
            };
            let Ok(Event::Turn(turn)) = Event::parse(&record.kind, &payload) else { break };
            let at = happened_at(record.time, record.data.as_str());
            let hit = self.hit(stream.as_str(), record.seq, at, &turn);
            return Ok(hit.map_or(Settled::Nothing, Settled::Hit));
        }
        Ok(Settled::Nothing)
    }
}

/// The words of a query; what stands between double quotes is one.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, piece) in text.split('"').enumerate() {
        if index % 2 == 0 {
            words.extend(piece.split_whitespace().map(str::to_owned));
        } else if !piece.trim().is_empty() {
            words.push(piece.trim().to_owned());
        }
    }
    words
}

/// Whether JSON may spell a character otherwise than as itself.
fn is_escaped(c: char) -> bool {
    c.is_control() || matches!(c, '"' | '\\' | '/')
}

fn pattern(word: &str) -> Result<Regex> {
    RegexBuilder::new(&regex::escape(word))
        .case_insensitive(true)
        .build()
        .map_err(|e| Error::invalid("the query is too long").field("query").caused_by(e))
}

/// The text around a place.
fn around(text: &str, place: usize) -> String {
    let (before, behind) = text.split_at_checked(place).unwrap_or((text, ""));
    let begin = before.char_indices().rev().nth(BEFORE_CHARS).map_or(0, |(index, _)| index);
    let lead = before.get(begin..).unwrap_or_default();
    let cut = if begin > 0 { "…" } else { "" };
    snippet(&format!("{cut}{lead}{behind}"), SNIPPET_CHARS)
}

#[cfg(test)]
mod tests;
