//! What callers were told, and what they may rely on from then on.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use annals_engine::id::{Crc, EventId, Seq, Version};
use annals_engine::store::{Appended, Durability, NewEvent};
use annals_engine::{ErrorKind, Result};

use crate::disk::Pid;

/// The batches that were sent, by number, and the answers.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Every batch that was sent.
    pub sent: Vec<Vec<NewEvent>>,
    /// Events that were acknowledged as durable.
    pub synced: BTreeMap<EventId, (Seq, Version, NewEvent)>,
    /// Events that were acknowledged as written: they outlive the process, not the machine.
    pub written: BTreeMap<EventId, (Seq, Version, NewEvent)>,
    /// Whether a failed sync may take what was only written, as a power loss does.
    pub syncs_fail: bool,
    /// Batches that may be in the log although nobody was told so.
    possible: BTreeSet<usize>,
    /// The batches that each process is appending: more than one when it decided more than once.
    under_way: BTreeMap<Pid, Vec<usize>>,
    /// Lines that a reader was shown as durable, by their checksums.
    pub shown: BTreeMap<Seq, Crc>,
    /// Every answer that was an error, in words, with the number of its batch.
    pub errors: Vec<(usize, String)>,
    /// What was answered wrongly.
    pub wrong: Vec<String>,
}

impl Told {
    /// Takes a new batch and gives its number.
    pub fn send(&mut self, events: Vec<NewEvent>) -> usize {
        self.sent.push(events);
        self.sent.len() - 1
    }

    /// A process begins to append a batch, perhaps in place of another that it had decided on before.
    pub fn begin(&mut self, process: Pid, batch: usize) {
        self.under_way.entry(process).or_default().push(batch);
    }

    /// The answer that it got.
    pub fn answer(&mut self, process: Pid, durability: Durability, result: &Result<Appended>) {
        let batches = self.under_way.remove(&process).unwrap_or_default();
        match result {
            Ok(appended) => self.acknowledge(&batches, durability, appended),
            Err(error) => {
                let words = format!("{:?}: {error}: {:?}", error.kind(), error.source());
                self.errors.extend(batches.iter().map(|batch| (*batch, words.clone())));
                if *error.kind() == ErrorKind::Indeterminate {
                    self.possible.extend(batches);
                }
            }
        }
    }

    /// A reader was shown a line as durable.
    pub fn show(&mut self, seq: Seq, crc: Crc) {
        if self.shown.insert(seq, crc).is_some_and(|before| before != crc) {
            self.wrong.push(format!("readers were shown two lines at {seq} as durable"));
        }
    }

    /// A process is gone; an answer that was under way never comes.
    pub fn died(&mut self, process: Pid) {
        self.possible.extend(self.under_way.remove(&process).into_iter().flatten());
    }

    /// Every process is gone.
    pub fn all_died(&mut self) {
        self.possible.extend(std::mem::take(&mut self.under_way).into_values().flatten());
    }

    /// The machine lost its power: what was only written may be gone.
    pub fn power_loss(&mut self) {
        self.all_died();
        self.written.clear();
    }

    fn promise(&self, id: EventId) -> Option<&(Seq, Version, NewEvent)> {
        let written = (!self.syncs_fail).then_some(&self.written);
        self.synced.get(&id).or_else(|| written?.get(&id))
    }

    /// What must be in the log.
    pub fn promised(&self) -> impl Iterator<Item = (&EventId, &(Seq, Version, NewEvent))> {
        let written = (!self.syncs_fail).then_some(&self.written);
        self.synced.iter().chain(written.into_iter().flatten())
    }

    /// Whether the batch may be in the log.
    #[must_use]
    pub fn may_be_there(&self, batch: usize) -> bool {
        self.possible.contains(&batch) || self.under_way.values().flatten().any(|n| *n == batch)
    }

    fn acknowledge(&mut self, batches: &[usize], durability: Durability, appended: &Appended) {
        let ids = || appended.positions.iter().map(|position| position.id);
        let answered = |batch: &&usize| self.sent[**batch].iter().map(|event| event.id).eq(ids());
        let Some(batch) = batches.iter().find(answered).copied() else {
            self.wrong.push(format!("batches {batches:?} are answered by {appended:?}"));
            return;
        };
        self.possible.insert(batch);
        let sent = self.sent[batch].clone();
        for (position, event) in appended.positions.iter().zip(&sent) {
            let now = (position.seq, position.version, event.clone());
            let before = self.promise(event.id);
            if before.is_some_and(|before| *before != now) {
                let wrong = format!("{} was at {before:?} and is now at {now:?}", event.id);
                self.wrong.push(wrong);
            }
            let kept = match durability {
                Durability::Synced => &mut self.synced,
                Durability::Buffered => &mut self.written,
            };
            kept.insert(event.id, now);
        }
    }
}
