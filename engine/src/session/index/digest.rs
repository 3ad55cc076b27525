//! What a stretch of the log does to the sessions view, worked out without the view: any thread can make it, and taking
//! the digests of neighbouring stretches in order gives what taking their events one by one gives.
//!
//! Turns make up nearly all of a log. Those of one stream are summed up as long as nothing comes that could see only
//! some of them: another event of the stream, or one that reaches into other streams. All else is kept as it is, in
//! order.

use std::collections::HashMap;

use crate::clock::Timestamp;
use crate::format::Fields;
use crate::id::{StreamName, Version};
use crate::projection::Projection;
use crate::session::event::{Event, TurnHead, happened_at};
use crate::store::Damage;

use super::hash::Seed;
use super::turns::{Texts, Turns, Versions};

/// The digest of a stretch of the log.
#[derive(Debug, Default)]
pub struct Digest {
    pub(super) steps: Vec<Step>,
    pub(super) texts: Texts,
    /// Events of a known type whose payload is not of its shape.
    pub(super) passed_over: u64,
    streams: HashMap<StreamName, Open, Seed>,
    /// How many steps were taken that may reach into any stream.
    reaches: u64,
}

/// One step of a digest.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all steps are turns, and a box each would cost a look elsewhere"
)]
pub(super) enum Step {
    /// Turns of a stream.
    Turns(StreamName, Turns),
    /// Events that say nothing to the view but that they are there.
    Seen(StreamName, Seen),
    /// An event of a session or a run.
    Event(Box<Happened>),
    /// Events are missing.
    Gap(Box<Damage>),
}

/// Events that are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) versions: Versions,
    /// Whether they are events of runs.
    pub(super) of_run: bool,
}

/// An event and where it stands.
#[derive(Debug)]
pub(super) struct Happened {
    pub(super) stream: StreamName,
    pub(super) version: Version,
    pub(super) at: Timestamp,
    pub(super) of_run: bool,
    pub(super) event: Event,
}

/// The last step of a stream, to which more can be added while `reaches` stays what it is.
#[derive(Clone, Copy, Debug)]
struct Open {
    step: usize,
    reaches: u64,
}

impl Digest {
    /// The last step of a stream, and whether nothing has come since that could tell its events apart.
    fn last(&mut self, stream: &str) -> Option<(&StreamName, &mut Step, bool)> {
        let (name, open) = self.streams.get_key_value(stream)?;
        Some((name, self.steps.get_mut(open.step)?, open.reaches == self.reaches))
    }

    fn push(&mut self, stream: StreamName, step: Step) {
        let open = Open { step: self.steps.len(), reaches: self.reaches };
        self.streams.insert(stream, open);
        self.steps.push(step);
    }

    fn turn(&mut self, fields: &Fields<'_>) {
        let Some(head) = TurnHead::read(fields.data) else {
            self.passed_over += 1;
            return self.seen(fields);
        };
        let at = head.at.map_or(fields.time, |_| happened_at(fields.time, fields.data));
        // The texts are lent to the step, which is a part of the digest as they are.
        let mut texts = std::mem::take(&mut self.texts);
        let name = match self.last(&fields.stream) {
            Some((_, Step::Turns(_, turns), true)) => {
                turns.push(&head, (fields.seq, fields.version), at, &mut texts);
                self.texts = texts;
                return;
            }
            Some((name, ..)) => Some(name.clone()),
            None => StreamName::new(fields.stream.as_ref()).ok(),
        };
        if let Some(name) = name {
            let turns = Turns::of(&head, (fields.seq, fields.version), at, &mut texts);
            self.push(name.clone(), Step::Turns(name, turns));
        }
        self.texts = texts;
    }

    fn seen(&mut self, fields: &Fields<'_>) {
        let of_run = is_of_run(fields.kind);
        let name = match self.last(&fields.stream) {
            Some((_, Step::Seen(_, seen), true)) if seen.of_run == of_run => {
                return seen.versions.push(fields.version);
            }
            Some((name, ..)) => Some(name.clone()),
            None => StreamName::new(fields.stream.as_ref()).ok(),
        };
        let Some(name) = name else { return };
        let seen = Seen { versions: Versions::of(fields.version), of_run };
        self.push(name.clone(), Step::Seen(name, seen));
    }

    fn event(&mut self, fields: &Fields<'_>) {
        let Some(event) = Event::told_by(fields) else {
            self.passed_over += 1;
            return self.seen(fields);
        };
        let reach = Reach::of(&event);
        let stream = StreamName::new(fields.stream.as_ref());
        let (Ok(stream), true) = (stream, reach != Reach::Nothing) else {
            return self.seen(fields);
        };
        let happened = Happened {
            stream: stream.clone(),
            version: fields.version,
            at: happened_at(fields.time, fields.data),
            of_run: is_of_run(fields.kind),
            event,
        };
        self.push(stream, Step::Event(Box::new(happened)));
        self.reaches += u64::from(reach == Reach::Everything);
    }
}

impl Projection for Digest {
    fn apply(&mut self, fields: &Fields<'_>) {
        match fields.kind {
            "turn" => self.turn(fields),
            "run.output" | "turn.blocked" => self.seen(fields),
            kind if Event::TYPES.contains(&kind) => self.event(fields),
            _ => self.seen(fields),
        }
    }

    fn gap(&mut self, damage: &Damage) {
        self.steps.push(Step::Gap(Box::new(damage.clone())));
        self.reaches += 1;
    }
}

/// What an event may change or look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Nothing of the view.
    Nothing,
    /// The session of its stream.
    OwnStream,
    /// Any session.
    Everything,
}

impl Reach {
    const fn of(event: &Event) -> Self {
        match event {
            Event::SessionOpened(_)
            | Event::SessionPatched(_)
            | Event::SessionReset(_)
            | Event::SessionResumed(_)
            | Event::SessionArchived(_)
            | Event::AnnounceRequested(_)
            | Event::AnnounceDelivered(_)
            | Event::AnnounceSuppressed(_)
            | Event::AnnounceFailed(_)
            | Event::AnnounceUnknown(_) => Self::OwnStream,
            Event::RunRequested(_)
            | Event::RunClaimed(_)
            | Event::RunStarted(_)
            | Event::RunFinished(_)
            | Event::SpawnAccepted(_) => Self::Everything,
            _ => Self::Nothing,
        }
    }
}

fn is_of_run(kind: &str) -> bool {
    kind.starts_with("run.")
}
