//! What a store holds of earlier imports: which sessions lie in which streams, so that what was decided once stands.

use std::collections::{HashMap, HashSet};

use super::run::Party;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::id::{EventId, StreamName};
use crate::session::event::{Event, happened_at};
use crate::session::key::SessionKey;
use crate::store::{Cursor, EventStore, Filter, Item, NamePattern, Read, View};

/// Sessions, runs and damage that a store knows.
#[derive(Debug, Default)]
pub(crate) struct Known {
    streams: HashMap<StreamName, Stream>,
    /// The streams of imported parts, by the ids of the events that opened them.
    homes: HashMap<EventId, StreamName>,
    /// Damages and runs that were imported.
    told: HashSet<EventId>,
    /// How far the store was read.
    read_to: Option<Cursor>,
}

/// The parts of one stream.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The program that it was imported from; `None` for a session of this program's own.
    pub(crate) program: Option<String>,
    pub(crate) agent_id: Option<String>,
    /// The ids of its parts with the time at which each began.
    pub(crate) parts: Vec<(String, Timestamp)>,
}

impl Known {
    pub(crate) fn read(store: &dyn EventStore) -> Result<Self> {
        let mut known = Self::default();
        known.catch_up(store)?;
        Ok(known)
    }

    /// Learns what the store has by now.
    pub(crate) fn catch_up(&mut self, store: &dyn EventStore) -> Result<()> {
        let end = store.end(View::Written)?;
        let types =
            ["session.opened", "session.reset", "run.requested", "run.finished", "import.damage"];
        let types = types.map(|name| NamePattern::Exact(name.to_owned())).into();
        let read = Read::after(self.read_to)
            .view(View::Written)
            .filter(Filter { streams: Vec::new(), types });
        let known = self;
        for item in store.read(read)? {
            let Item::Record(record) = item? else { continue };
            if !record.kind.as_str().starts_with("session.") {
                // What this program makes itself has ids of its own making, and is none of an import's affairs.
                if record.id.embedded_time().is_none() {
                    known.told.insert(record.id);
                }
                continue;
            }
            let at = happened_at(record.time, record.data.as_str());
            match Event::of(&record) {
                Ok(Event::SessionOpened(opened)) => {
                    known.homes.insert(record.id, record.stream.clone());
                    let stream = known.part(&record.stream, opened.session_id, at);
                    if stream.parts.len() == 1 {
                        stream.program = opened.program;
                        stream.agent_id = Some(opened.agent_id);
                    }
                }
                Ok(Event::SessionReset(reset)) => {
                    known.part(&record.stream, reset.session_id, at);
                }
                _ => {}
            }
        }
        known.read_to = end;
        Ok(())
    }

    fn part(&mut self, name: &StreamName, session_id: String, at: Timestamp) -> &mut Stream {
        let stream = self.streams.entry(name.clone()).or_default();
        if stream.parts.iter().all(|(id, _)| *id != session_id) {
            stream.parts.push((session_id, at));
        }
        stream
    }

    /// A stream that holds a session.
    pub(crate) fn stream(&self, name: &StreamName) -> Option<&Stream> {
        self.streams.get(name)
    }

    /// The stream that holds the part which an event of this id opened.
    pub(crate) fn home(&self, opened: EventId) -> Option<&StreamName> {
        self.homes.get(&opened)
    }

    /// Every session that the store holds, by its key.
    pub(crate) fn parties(&self) -> HashMap<String, Party> {
        let party = |(name, stream): (&StreamName, &Stream)| {
            let key = SessionKey::of_stream(name)?;
            let parts = stream.parts.iter().map(|(id, at)| (Some(*at), id.clone())).collect();
            let agent_id = key.agent().map(|agent| agent.to_string());
            let agent_id = agent_id.or(stream.agent_id.clone()).unwrap_or_default();
            Some((key.to_string(), Party { key: key.to_string(), parts, agent_id }))
        };
        self.streams.iter().filter_map(party).collect()
    }

    /// Whether a key names a session that the store holds.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        StreamName::new(key).is_ok_and(|name| self.streams.contains_key(&name))
    }

    /// Whether a damage or an event of a run is in the store.
    pub(crate) fn is_told(&self, id: EventId) -> bool {
        self.told.contains(&id)
    }
}
