//! How the sessions view takes what a stretch of the log does to it.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::format::Fields;
use crate::id::StreamName;
use crate::projection::{Digestible, Projection};
use crate::session::event::{Event, RunFinished, RunRequested, SessionKind, SpawnAccepted};
use crate::session::key::SessionKey;
use crate::store::Damage;

use super::digest::{Digest, Happened, Seen, Step};
use super::entry::{Entry, RunPhase};
use super::part::id_hash;
use super::turns::{Texts, Turns, Versions};
use super::{OpenRun, Sessions};

impl Projection for Sessions {
    fn apply(&mut self, fields: &Fields<'_>) {
        let mut digest = Digest::default();
        digest.apply(fields);
        self.take(digest);
    }

    fn gap(&mut self, damage: &Damage) {
        if let (true, Some(seqs)) = (damage.touched.is_empty(), damage.seqs) {
            self.losses.insert(seqs);
        }
        for touched in &damage.touched {
            self.damaged.insert(touched.stream.clone());
            if let Some(entry) = self.entries.get_mut(touched.stream.as_str()) {
                let entry = Arc::make_mut(entry);
                entry.damaged = true;
                entry.settle();
            }
        }
    }
}

impl Digestible for Sessions {
    type Digest = Digest;

    fn take(&mut self, digest: Digest) {
        self.passed_over += digest.passed_over;
        for step in digest.steps {
            match step {
                Step::Turns(stream, turns) => self.turns(&stream, &turns, &digest.texts),
                Step::Seen(stream, seen) => self.seen(&stream, seen),
                Step::Event(happened) => self.event(*happened),
                Step::Gap(damage) => self.gap(&damage),
            }
        }
    }
}

impl Sessions {
    fn turns(&mut self, stream: &StreamName, turns: &Turns, texts: &Texts) {
        // The runs are lent to the change of the entry, which does not look at them.
        let mut runs = std::mem::take(&mut self.runs);
        self.session(stream, turns.versions, turns.first_at, |entry| {
            entry.turns(turns, texts, &mut |run, tokens| {
                if let Some(run) = runs.get_mut(&run) {
                    run.tokens = run.tokens.saturating_add(tokens);
                }
            });
        });
        self.runs = runs;
    }

    fn seen(&mut self, stream: &StreamName, seen: Seen) {
        if self.row_of(stream, seen.versions, |_| {}) || seen.of_run {
            return;
        }
        if SessionKey::of_stream(stream).is_some() {
            self.rowless.insert(stream.clone(), seen.versions.last);
        }
    }

    fn event(&mut self, happened: Happened) {
        let Happened { stream, version, at, of_run, event } = happened;
        let versions = Versions::of(version);
        let taken = match event {
            Event::SessionOpened(e) => {
                self.session(&stream, versions, at, |entry| entry.opened(e, at));
                true
            }
            Event::SessionReset(e) => {
                self.session(&stream, versions, at, |entry| entry.entered(&e.session_id, at));
                true
            }
            Event::SessionResumed(e) => {
                self.session(&stream, versions, at, |entry| entry.entered(&e.session_id, at));
                true
            }
            Event::SessionPatched(e) => {
                self.session(&stream, versions, at, |row| row.patched(&e.session_id, &e.set));
                true
            }
            Event::SessionArchived(e) => {
                self.session(&stream, versions, at, |row| row.archived(&e.session_id));
                true
            }
            Event::AnnounceRequested(e) => {
                self.child(&e.child_key, |child| child.announces(&e.run_id));
                self.row_of(&stream, versions, |entry| entry.announce_requested(&e))
            }
            Event::AnnounceDelivered(e)
            | Event::AnnounceSuppressed(e)
            | Event::AnnounceFailed(e)
            | Event::AnnounceUnknown(e) => {
                self.child(&e.child_key, |child| child.announced(&e.run_id, at));
                self.row_of(&stream, versions, |entry| entry.announce_settled(&e))
            }
            other => {
                self.run_event(&stream, other, at);
                false
            }
        };
        if !taken {
            self.seen(&stream, Seen { versions, of_run });
        }
    }

    fn run_event(&mut self, stream: &StreamName, event: Event, at: Timestamp) {
        match event {
            Event::RunRequested(e) => self.run_requested(e, at),
            Event::RunClaimed(e) => {
                self.run(&e.run_id, |entry| entry.run(&e.run_id, RunPhase::Claimed, at));
            }
            Event::RunStarted(e) => self.run(&e.run_id, |entry| entry.run_started(&e.run_id, at)),
            Event::RunFinished(e) => self.run_finished(&e, at),
            Event::SpawnAccepted(e) => self.spawned(stream, &e),
            _ => {}
        }
    }

    fn run_requested(&mut self, event: RunRequested, at: Timestamp) {
        let Ok(key) = StreamName::new(event.session_key) else { return };
        let (session_id, agent_id) = (event.session_id, event.agent_id);
        let run = OpenRun { key, session_id, agent_id, tokens: 0 };
        self.runs.insert(id_hash(&event.run_id), run);
        self.run(&event.run_id, |entry| entry.run(&event.run_id, RunPhase::Requested, at));
    }

    fn run_finished(&mut self, event: &RunFinished, at: Timestamp) {
        let told = event.tokens.as_ref().map_or(0, |t| t.r#in.saturating_add(t.out));
        let Some(run) = self.runs.get(&id_hash(&event.run_id)).cloned() else { return };
        self.run(&event.run_id, |entry| {
            entry.run_finished(&run.session_id, event, at);
            entry.add_tokens(&run.session_id, told.saturating_sub(run.tokens));
            entry.agent_told(&run.session_id, &run.agent_id, event);
        });
        self.runs.remove(&id_hash(&event.run_id));
    }

    fn spawned(&mut self, stream: &StreamName, event: &SpawnAccepted) {
        let Some(child) = &event.target_key else { return };
        if event.at.is_none() {
            self.child(child, |child| child.spawned(event.mode, event.cleanup));
        }
        match self.entries.get_mut(child.as_str()) {
            Some(entry) if entry.row.parent_key.is_some() => {}
            Some(entry) => Arc::make_mut(entry).row.parent_key = Some(stream.to_string()),
            None => {
                self.spawned.insert(child.clone(), stream.clone());
            }
        }
    }

    /// Changes a session without an event of its own stream, if there is one.
    fn child(&mut self, key: &str, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.entries.get_mut(key) {
            change(Arc::make_mut(entry));
        }
    }

    /// Changes the session that owns a stream, which is made when there is none.
    fn session(
        &mut self,
        stream: &StreamName,
        versions: Versions,
        at: Timestamp,
        change: impl FnOnce(&mut Entry),
    ) {
        if let Some(change) = self.change(stream, versions, change) {
            let entry = self.unseen(stream, at);
            self.entries.insert(stream.clone(), Arc::new(entry));
            self.directory.take();
            self.change(stream, versions, change);
        }
    }

    fn unseen(&mut self, key: &StreamName, at: Timestamp) -> Entry {
        let kind = SessionKey::of_stream(key).map(|key| key.kind_at_opening());
        let mut entry = Entry::new(key.clone(), kind.unwrap_or(SessionKind::Other), at);
        entry.damaged = self.damaged.contains(key.as_str());
        entry.version = self.rowless.remove(key).unwrap_or_default();
        let parent = self.spawned.remove(key.as_str());
        entry.row.parent_key = parent.map(|parent| parent.to_string());
        entry
    }

    /// Changes the session that owns a stream, if there is one; returns whether there is.
    fn row_of(
        &mut self,
        stream: &StreamName,
        versions: Versions,
        change: impl FnOnce(&mut Entry),
    ) -> bool {
        self.change(stream, versions, change).is_none()
    }

    /// Changes the session that owns a stream; gives the change back when there is none.
    fn change<F: FnOnce(&mut Entry)>(
        &mut self,
        stream: &StreamName,
        versions: Versions,
        change: F,
    ) -> Option<F> {
        let Some(entry) = self.entries.get_mut(stream) else { return Some(change) };
        let entry = Arc::make_mut(entry);
        let parts = entry.parts.len();
        change(entry);
        if entry.parts.len() > parts {
            self.directory.take();
        }
        entry.saw(versions);
        entry.settle();
        None
    }

    /// Changes the session that an open run works on.
    fn run(&mut self, run_id: &str, change: impl FnOnce(&mut Entry)) {
        let key = self.runs.get(&id_hash(run_id)).map(|run| &run.key);
        if let Some(entry) = key.and_then(|key| self.entries.get_mut(key)) {
            let entry = Arc::make_mut(entry);
            change(entry);
            entry.settle();
        }
    }
}
