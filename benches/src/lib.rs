//! Workloads of the benchmarks: turns of many sessions, the same ones for the same seed.
#![expect(clippy::unwrap_used, reason = "a workload that cannot be made ends the run")]

use annals_engine::format::Payload;
use annals_engine::id::{EventId, EventType, StreamName};
use annals_engine::store::NewEvent;
use fastrand::Rng;

/// How many sessions the turns are spread over.
pub const SESSIONS: u64 = 1_000;

/// Turns without an end. A line of one has 300 bytes to 4 KB, about 700 in the mean; a tenth of the sessions has a
/// third of them.
#[derive(Debug)]
pub struct Turns {
    random: Rng,
    seed: u64,
    count: u64,
}

impl Turns {
    /// The turns of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { random: Rng::with_seed(seed), seed, count: 0 }
    }
}

impl Iterator for Turns {
    type Item = NewEvent;

    fn next(&mut self) -> Option<NewEvent> {
        self.count += 1;
        let random = &mut self.random;
        // The product of two even spreads: a tenth of the sessions has a third of the turns.
        let place = random.f64() * random.f64();
        let session = (0..SESSIONS).nth(scaled(place, SESSIONS)).unwrap_or_default();
        let role = if random.bool() { "user" } else { "assistant" };
        let from = if role == "user" { "external" } else { "internal" };
        let words = 4 + scaled(random.f64().powi(10), 430);
        let mut text = String::new();
        for _ in 0..words {
            text.push_str(WORDS[random.usize(..WORDS.len())]);
            text.push(' ');
        }
        let data = format!(
            r#"{{"sessionId":"s{session}","role":"{role}","from":"{from}","tokens":{{"in":{words},"out":{words}}},"content":"{text}"}}"#
        );
        Some(NewEvent {
            id: EventId::derived("key", &self.seed.to_string(), &self.count.to_string()),
            stream: StreamName::new(format!("telegram:{session}")).unwrap(),
            kind: EventType::new("turn").unwrap(),
            cause: None,
            flow: None,
            data: Payload::from_json(&data).unwrap(),
        })
    }
}

/// Words of prose, of other scripts, and what escapes in JSON.
const WORDS: [&str; 16] = [
    "the",
    "session",
    "asks",
    "for",
    "a",
    "path",
    "größer",
    "世界",
    "fn main() {}",
    r"\n",
    r#"\"x\""#,
    "append",
    "event",
    "0.125",
    "https://example.org/a?b=c",
    "🎛️",
];

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a share of a small count"
)]
fn scaled(share: f64, count: u64) -> usize {
    (share * count as f64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same seed gives the same payloads, and they are as big as the benchmarks say, their heads of 300 bytes left
    /// out.
    #[test]
    fn as_announced() {
        let of = |seed| Turns::new(seed).take(5_000).map(|turn| turn.data).collect::<Vec<_>>();
        let turns = of(7);
        assert_eq!(turns, of(7));
        let bytes: Vec<usize> = turns.iter().map(|data| data.as_str().len()).collect();
        let mean = bytes.iter().sum::<usize>() / bytes.len();
        assert!((350..450).contains(&mean), "{mean} in the mean");
        assert!(bytes.iter().all(|bytes| (100..4_500).contains(bytes)));
    }
}
