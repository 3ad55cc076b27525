//! Events of many sessions from a seed: the same seed gives the same events on any machine.
//!
//! A line of one has 250 bytes to 4 KB, 700 in the mean. Turns fall on [`Shape::sessions`] sessions by Zipf's law with
//! the exponent [`SKEW`]; every session opens before its first turn.

mod text;
mod zipf;

use annals_engine::clock::Timestamp;
use annals_engine::id::{EventId, StreamName};
use annals_engine::session::event::{
    ChatType, Event, Ingress, Json, Links, Origin, Provenance, Role, SessionKind, SessionOpened,
    Tokens, Turn,
};
use annals_engine::store::NewEvent;
use fastrand::Rng;
use uuid::{Builder, Uuid};

use zipf::Zipf;

/// The exponent of the law by which turns fall on sessions: of 10,000, the first has one turn in 27.
pub const SKEW: f64 = 0.8;

/// 2025-01-01T00:00:00Z, when the events of a stored workload begin.
const BEGIN: Timestamp = Timestamp::from_millis(1_735_689_600_000);

/// What a workload is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The seed.
    pub seed: u64,
    /// How many sessions there are.
    pub sessions: usize,
}

impl Default for Shape {
    fn default() -> Self {
        Self { seed: 1, sessions: 10_000 }
    }
}

impl Shape {
    /// The stream of the session with this rank; 0 is the one with the most turns.
    #[must_use]
    pub fn stream(self, rank: usize) -> StreamName {
        let id = 700_000_000 + rank;
        let name = match rank % 8 {
            5 => format!("agent:main:discord:channel:{id}"),
            6 => format!("agent:main:subagent:{}", self.session_id(rank)),
            7 => format!("agent:ops:telegram:group:-100{id}"),
            _ => format!("telegram:{id}"),
        };
        StreamName::new(name).unwrap()
    }

    /// The id of the one part of that session.
    fn session_id(self, rank: usize) -> Uuid {
        EventId::derived("key", &self.seed.to_string(), &rank.to_string()).0
    }
}

/// Events without an end, in the order of the log.
#[derive(Debug)]
pub struct Events {
    shape: Shape,
    random: Rng,
    zipf: Zipf,
    opened: Vec<bool>,
    now: Timestamp,
    gap_micros: u64,
    waiting: Option<NewEvent>,
}

impl Events {
    /// Events that happen a second apart in the mean, from 2025 on.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self {
            random: Rng::with_seed(shape.seed),
            zipf: Zipf::new(shape.sessions, SKEW),
            opened: vec![false; shape.sessions],
            now: BEGIN,
            gap_micros: 2_000_000,
            waiting: None,
            shape,
        }
    }

    /// Events that all happen now, whose ids a store takes from whoever appends today.
    #[must_use]
    pub fn at(shape: Shape, now: Timestamp) -> Self {
        Self { now, gap_micros: 1, ..Self::new(shape) }
    }

    fn turn(&mut self, rank: usize) -> NewEvent {
        let random = &mut self.random;
        let mut turn = Turn::new(
            self.shape.session_id(rank).to_string(),
            Role::User,
            Ingress::External,
            Json::of("").unwrap(),
        );
        let size = text::size(random);
        match random.u8(..20) {
            0..8 => {
                turn.content = Some(Json::of(&text::prose(random, size)).unwrap());
                turn.provenance = Some(Provenance {
                    source_channel: Some("telegram".to_owned()),
                    sender: Some(format!("u{}", 10_000 + rank)),
                    ..Provenance::default()
                });
            }
            8..17 => {
                turn.role = Role::Assistant;
                turn.from = Ingress::Internal;
                turn.run_id = Some(uuid_at(self.now, random).to_string());
                turn.model = Some("claude-opus-4-5".to_owned());
                turn.tokens = Some(Tokens {
                    r#in: random.u64(200..90_000),
                    out: random.u64(20..2_000),
                    cache_read: random.bool().then(|| random.u64(..80_000)),
                    cache_write: None,
                });
                turn.cost_micros = Some(random.u64(500..90_000));
                turn.content = Some(blocks(&text::mixed(random, size)));
            }
            _ => {
                turn.role = Role::ToolResult;
                turn.from = Ingress::Internal;
                turn.call_id = Some(format!("call_{:012x}", random.u64(..1 << 48)));
                turn.tool_name = Some("exec".to_owned());
                turn.content = Some(blocks(&text::code(random, size)));
            }
        }
        self.event(rank, &Event::Turn(turn))
    }

    fn opening(&mut self, rank: usize) -> NewEvent {
        let id = self.shape.session_id(rank).to_string();
        let chat = (700_000_000 + rank).to_string();
        let mut opened = SessionOpened::new(id, SessionKind::Other, "main");
        opened.channel = Some("telegram".to_owned());
        opened.chat_type = Some(ChatType::Direct);
        opened.chat_id = Some(chat.clone());
        opened.display_name = Some(format!("Chat {rank}"));
        opened.origin = Some(Origin {
            channel: Some("telegram".to_owned()),
            to: Some(chat),
            ..Origin::default()
        });
        self.event(rank, &Event::SessionOpened(opened))
    }

    fn event(&mut self, rank: usize, event: &Event) -> NewEvent {
        let id = EventId(uuid_at(self.now, &mut self.random));
        event.to_new(self.shape.stream(rank), id, Links::default()).unwrap()
    }
}

impl Iterator for Events {
    type Item = NewEvent;

    fn next(&mut self) -> Option<NewEvent> {
        if let Some(turn) = self.waiting.take() {
            return Some(turn);
        }
        let gap = self.random.u64(..self.gap_micros);
        self.now = self.now.plus(std::time::Duration::from_micros(gap));
        let rank = self.zipf.draw(&mut self.random);
        if self.opened.get_mut(rank).is_some_and(|opened| !std::mem::replace(opened, true)) {
            let opening = self.opening(rank);
            self.waiting = Some(self.turn(rank));
            return Some(opening);
        }
        Some(self.turn(rank))
    }
}

/// A UUIDv7 whose other bits come from the seed.
fn uuid_at(now: Timestamp, random: &mut Rng) -> Uuid {
    let mut bits = [0; 10];
    random.fill(&mut bits);
    Builder::from_unix_timestamp_millis(now.as_millis().unsigned_abs(), &bits).into_uuid()
}

/// Text as a model's interface carries it.
fn blocks(text: &str) -> Json {
    let text = Json::of(text).unwrap();
    Json::from_text(format!(r#"[{{"type":"text","text":{}}}]"#, text.as_str())).unwrap()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use annals_engine::clock::ManualClock;
    use annals_engine::session::event::TurnHead;
    use annals_engine::store::{Append, EventStore, Item, MemoryStore, Read};

    use super::*;

    /// Goal: a seed names one workload. Method: the same seed twice gives equal events, another one does not.
    #[test]
    fn a_seed_is_a_workload() {
        let of =
            |seed| Events::new(Shape { seed, ..Shape::default() }).take(3_000).collect::<Vec<_>>();
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
    }

    /// Goal: lines are as long as announced. Method: the lines that a store makes of the turns among 40,000 events.
    #[test]
    fn lines_have_the_announced_length() {
        let store = MemoryStore::new(Arc::new(ManualClock::new(BEGIN)));
        for event in Events::at(Shape::default(), BEGIN).take(40_000) {
            store.append(Append::new(vec![event])).unwrap();
        }
        let lengths: Vec<usize> = store
            .read(Read::default())
            .unwrap()
            .filter_map(|item| match item.unwrap() {
                Item::Record(record) if record.kind.as_str() == "turn" => {
                    Some(record.to_line().len())
                }
                _ => None,
            })
            .collect();
        let mean = lengths.iter().sum::<usize>() / lengths.len();
        assert!((690..720).contains(&mean), "{mean} bytes in the mean");
        assert!(lengths.iter().all(|length| (200..4_096).contains(length)));
        assert!(lengths.iter().any(|length| *length > 3_000));
    }

    /// Goal: every turn is one of the domain, in the form that folds read without a parser, and holds what makes JSON
    /// hard. Method: read the heads, and look for escapes, code and letters beyond ASCII.
    #[test]
    fn turns_are_of_the_domain() {
        let events: Vec<_> = Events::new(Shape::default()).take(5_000).collect();
        let turns: Vec<_> = events.iter().filter(|event| event.kind.as_str() == "turn").collect();
        assert!(turns.iter().all(|turn| TurnHead::read(turn.data.as_str()).is_some()));
        for part in [r"\n", r#"\""#, "fn ", "größer", "世界", "🎛"] {
            let with = turns.iter().filter(|turn| turn.data.as_str().contains(part)).count();
            assert!(with > turns.len() / 50, "{part} stands in {with} turns");
        }
        let opened = events.iter().filter(|event| event.kind.as_str() == "session.opened");
        let streams: std::collections::HashSet<_> =
            events.iter().map(|event| event.stream.clone()).collect();
        assert_eq!(opened.count(), streams.len());
    }

    /// Goal: sessions are as uneven as announced. Method: of 100,000 turns the hottest session has one in 27, and the
    /// first tenth of the sessions has 57 %.
    #[test]
    fn turns_follow_zipf() {
        let shape = Shape::default();
        let zipf = Zipf::new(shape.sessions, SKEW);
        let mut random = Rng::with_seed(3);
        let mut turns = HashMap::new();
        for _ in 0..100_000 {
            *turns.entry(zipf.draw(&mut random)).or_insert(0_u64) += 1;
        }
        let hottest = turns.get(&0).copied().unwrap_or_default();
        assert!((3_400..4_000).contains(&hottest), "{hottest}");
        let tenth: u64 = (0..1_000).filter_map(|rank| turns.get(&rank)).sum();
        assert!((55_000..60_000).contains(&tenth), "{tenth}");
    }
}
