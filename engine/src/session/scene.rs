//! What the tests of the domain set the stage with: a store in memory, a clock that stands still, and events in the
//! shortest form that says what matters.

use std::sync::Arc;
use std::time::Duration;

use super::event::{Event, Links};
use super::index::Sessions;
use crate::clock::{Clock, ManualClock, Timestamp};
use crate::format::Payload;
use crate::id::{EventId, EventType, StreamName};
use crate::projection::{Folded, Projection};
use crate::store::{
    Append, Damage, DamageClass, EventStore, Item, MemoryStore, Read, Record, Touched, View,
};

/// 2026-04-01T00:00:00Z, where every scene begins.
pub(crate) const START: i64 = 1_775_001_600_000;

pub(crate) struct Scene {
    pub(crate) store: MemoryStore,
    pub(crate) clock: Arc<ManualClock>,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
        Self { store: MemoryStore::new(clock.clone()), clock }
    }

    /// Appends one event, one second after the one before. Single quotes in `data` stand for double ones.
    pub(crate) fn event(&self, stream: &str, kind: &str, data: &str) -> &Self {
        self.clock.advance(Duration::from_secs(1));
        let data = Payload::from_json(&data.replace('\'', "\"")).unwrap();
        let event = Event::parse(&EventType::new(kind).unwrap(), &data).unwrap();
        let stream = StreamName::new(stream).unwrap();
        let new = event.to_new(stream, EventId::new(self.clock.now()), Links::default()).unwrap();
        self.store.append(Append::new(vec![new])).unwrap();
        self
    }

    pub(crate) fn opened(&self, key: &str, part: &str, more: &str) -> &Self {
        let kind = super::key::SessionKey::of_stream(&StreamName::new(key).unwrap()).unwrap();
        let kind = kind.kind_at_opening();
        self.event(
            key,
            "session.opened",
            &format!(
                "{{'sessionId':'{part}','kind':'{kind}','agentId':'main','spawnDepth':0{more}}}"
            ),
        )
    }

    pub(crate) fn turn(&self, key: &str, part: &str, role: &str, more: &str, text: &str) -> &Self {
        let from = if role == "user" { "external" } else { "internal" };
        self.event(
            key,
            "turn",
            &format!(
                "{{'sessionId':'{part}','role':'{role}','from':'{from}'{more},'content':'{text}'}}"
            ),
        )
    }

    pub(crate) fn run(&self, id: &str, key: &str, part: &str, more: &str) -> &Self {
        self.event(
            &format!("run:{id}"),
            "run.requested",
            &format!(
                "{{'runId':'{id}','sessionKey':'{key}','sessionId':'{part}','kind':'send','agentId':'main'{more},\
                 'chainId':'c','hop':0,'timeoutSeconds':0,'deliver':false}}"
            ),
        )
    }

    pub(crate) fn finished(&self, id: &str, status: &str, more: &str) -> &Self {
        let data = format!("{{'runId':'{id}','status':'{status}','runtimeMs':1{more}}}");
        self.event(&format!("run:{id}"), "run.finished", &data)
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        let items = self.store.read(Read::default()).unwrap();
        items
            .map(|item| match item.unwrap() {
                Item::Record(record) => *record,
                Item::Gap(gap) => panic!("a gap in memory: {gap:?}"),
            })
            .collect()
    }

    pub(crate) fn sessions(&self) -> Sessions {
        Folded::<Sessions>::of(&self.store, View::Durable).unwrap().state().clone()
    }

    /// The sessions as they are seen when these positions cannot be read.
    pub(crate) fn sessions_without(&self, lost: std::ops::RangeInclusive<u64>) -> Sessions {
        let mut sessions = Sessions::default();
        for record in self.records() {
            if record.seq.0 == *lost.start() {
                sessions.gap(&gap(&[]));
            }
            if !lost.contains(&record.seq.0) {
                sessions.apply(&record.fields());
            }
        }
        sessions
    }
}

/// A damaged range that took events from these streams.
pub(crate) fn gap(streams: &[&str]) -> Damage {
    let touched = |stream: &&str| Touched { stream: (*stream).to_owned(), versions: None };
    Damage {
        class: DamageClass::Corrupt,
        file: "log/00000000000000000001.jsonl".into(),
        offset: 0,
        bytes: 1,
        seqs: Some((crate::id::Seq(1), crate::id::Seq(1))),
        touched: streams.iter().map(touched).collect(),
        accepted: false,
        detail: String::new(),
    }
}
