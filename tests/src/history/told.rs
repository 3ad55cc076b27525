//! What callers were told, and what they may rely on from then on.

use std::collections::{BTreeMap, BTreeSet};

use annals_engine::id::{EventId, Seq, Version};
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
    /// The batch that each process is appending.
    under_way: BTreeMap<Pid, usize>,
    /// What was answered wrongly.
    pub wrong: Vec<String>,
}

impl Told {
    /// Takes a new batch and gives its number.
    pub fn send(&mut self, events: Vec<NewEvent>) -> usize {
        self.sent.push(events);
        self.sent.len() - 1
    }

    /// A process begins to append a batch.
    pub fn begin(&mut self, process: Pid, batch: usize) {
        self.under_way.insert(process, batch);
    }

    /// The answer that it got.
    pub fn answer(&mut self, process: Pid, durability: Durability, result: &Result<Appended>) {
        let Some(batch) = self.under_way.remove(&process) else { return };
        match result {
            Ok(appended) => self.acknowledge(batch, durability, appended),
            Err(error) if *error.kind() == ErrorKind::Indeterminate => {
                self.possible.insert(batch);
            }
            Err(_) => {}
        }
    }

    /// A process is gone; an answer that was under way never comes.
    pub fn died(&mut self, process: Pid) {
        self.possible.extend(self.under_way.remove(&process));
    }

    /// Every process is gone.
    pub fn all_died(&mut self) {
        self.possible.extend(std::mem::take(&mut self.under_way).into_values());
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
        self.possible.contains(&batch) || self.under_way.values().any(|other| *other == batch)
    }

    fn acknowledge(&mut self, batch: usize, durability: Durability, appended: &Appended) {
        self.possible.insert(batch);
        let sent = self.sent[batch].clone();
        for (position, event) in appended.positions.iter().zip(&sent) {
            let now = (position.seq, position.version, event.clone());
            let before = self.promise(event.id);
            if before.is_some_and(|before| *before != now) || position.id != event.id {
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
