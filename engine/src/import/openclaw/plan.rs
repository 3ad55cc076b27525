//! What becomes of a state folder: its index gives keys to transcripts, archives of resets are earlier parts where they
//! can be tied to a key, and every other transcript has a key of its own, `openclaw:<its id>`.
//!
//! An archive is tied to a key when the index counts its id to the key's family; else when exactly one key of the agent
//! went on within a minute after the reset; else when exactly one key went on after it at all. Sub-agents and single
//! runs of jobs do not go on. What cannot be tied is not guessed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use super::folder::{AgentFolder, State};
use super::index::{self, Row};
use super::queue::{self, Waiting};
use super::registry;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::import::claude::Lane;
use crate::import::damage::Damage;
use crate::import::discover::{Source, Transcript};
use crate::import::plan::{
    FilePlan, IndexState, Opening, PartPlan, Peek, SessionPlan, Twin, name_from, own_key, peek,
};
use crate::import::run::Run;
use crate::import::sniff::Program;
use crate::import::tree::SourceTree;
use crate::session::event::{ArchiveReason, Ingress, Provenance, SessionKind, Source as Record};
use crate::session::key::{AgentId, Parts, SessionKey};

/// How soon after a reset a session goes on that somebody reset by hand.
const GOES_ON: Duration = Duration::from_secs(60);

/// Everything that a state folder holds.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    pub(crate) sessions: Vec<SessionPlan>,
    pub(crate) runs: Vec<Run>,
    pub(crate) waiting: Vec<Waiting>,
    pub(crate) damages: Vec<Damage>,
}

impl Planned {
    /// Leaves out runs between sessions that are not imported.
    pub(crate) fn keep_runs_of_sessions(&mut self) {
        let main = AgentId::parse("main").ok();
        let keys: HashSet<&str> =
            self.sessions.iter().map(|session| session.key.as_str()).collect();
        let is_here = |text: &Option<String>| {
            let key = text.as_deref().zip(main.as_ref());
            let key = key.and_then(|(text, main)| SessionKey::parse(text, main).ok());
            key.is_some_and(|key| keys.contains(key.as_str()))
        };
        self.runs.retain(|run| is_here(&run.requester) || is_here(&run.target));
    }
}

/// Plans the sessions of a state folder, parents before children.
///
/// # Errors
/// `InvalidInput` when an agent's folder has a name that no agent can have;
/// whatever reading meets.
pub(crate) fn plan(tree: &dyn SourceTree, source: &Source) -> Result<Planned> {
    let mut planned = Planned::default();
    let Some(state) = &source.state else { return Ok(planned) };
    for folder in &state.agents {
        let agent = Agent::read(tree, source, folder, &mut planned.damages)?;
        if let Some(agent) = agent {
            planned.sessions.extend(agent.sessions()?);
        }
    }
    if let Some(path) = &state.registry {
        let (runs, damages) = registry::read(tree, path, &name_from(&source.root, path))?;
        planned.runs = runs;
        planned.damages.extend(damages);
    }
    for path in &state.queue {
        match queue::read(tree, path, &name_from(&source.root, path))? {
            Ok(waiting) => planned.waiting.push(waiting),
            Err(damage) => planned.damages.push(damage),
        }
    }
    adopt(&mut planned);
    planned.sessions.sort_by(|a, b| a.key.as_str().cmp(b.key.as_str()));
    planned.sessions = parents_first(std::mem::take(&mut planned.sessions));
    Ok(planned)
}

/// An agent's index and transcripts.
struct Agent<'a> {
    id: AgentId,
    rows: Vec<Row>,
    index: String,
    transcripts: Vec<(&'a Transcript, &'a str, State, Peek)>,
    root: &'a Path,
}

impl<'a> Agent<'a> {
    /// Reads what is known of an agent's sessions; `None` when its index cannot be read.
    fn read(
        tree: &dyn SourceTree,
        source: &'a Source,
        folder: &AgentFolder,
        damages: &mut Vec<Damage>,
    ) -> Result<Option<Self>> {
        let id = AgentId::parse(&folder.agent).map_err(|e| e.path(&folder.sessions))?;
        let index = folder.index.as_deref().map(|path| name_from(&source.root, path));
        let mut rows = Vec::new();
        if let (Some(path), Some(name)) = (&folder.index, &index) {
            let read = index::read(tree, path, name)?;
            damages.extend(read.damages);
            let Some(read) = read.rows else { return Ok(None) };
            rows = read;
        }
        let mut transcripts = Vec::new();
        for transcript in &source.transcripts {
            let Some(place) = transcript.place.as_ref().filter(|p| p.agent == folder.agent) else {
                continue;
            };
            let peek = peek(tree, &transcript.path)?;
            transcripts.push((transcript, place.stem.as_str(), place.state, peek));
        }
        let index = index.unwrap_or_default();
        Ok(Some(Self { id, rows, index, transcripts, root: &source.root }))
    }

    fn sessions(&self) -> Result<Vec<SessionPlan>> {
        let mut used = HashSet::new();
        let mut keyed = self.keyed(&mut used)?;
        self.tie_archives(&mut keyed, &mut used);
        let mut sessions: Vec<SessionPlan> = keyed.into_values().collect();
        let mut own: BTreeMap<String, (SessionPlan, State)> = BTreeMap::new();
        for (at, (_, stem, state, peek)) in self.transcripts.iter().enumerate() {
            if used.contains(&at) {
                continue;
            }
            let id = peek.session_id.as_deref().unwrap_or(stem);
            let id = if own_id_fits(id, stem) { id } else { stem };
            let (session, last) = match own.get_mut(id) {
                Some(session) => session,
                None => own.entry(id.to_owned()).or_insert((self.own_session(id)?, *state)),
            };
            if let Some(part) = session.parts.first_mut() {
                self.add_file(part, at);
            }
            *last = (*last).max(*state);
        }
        sessions.extend(own.into_values().map(|(mut session, last)| {
            session.archived = match last {
                State::Live => None,
                State::Reset(at) => Some((ArchiveReason::Ended, at)),
                State::Deleted(at) => Some((ArchiveReason::Cleanup, at)),
            };
            session
        }));
        Ok(sessions)
    }

    /// The sessions that the index names.
    fn keyed(&self, used: &mut HashSet<usize>) -> Result<BTreeMap<SessionKey, SessionPlan>> {
        let mut keyed: BTreeMap<SessionKey, SessionPlan> = BTreeMap::new();
        let mut newest: HashMap<SessionKey, Option<Timestamp>> = HashMap::new();
        // The shorter key is the session itself, a longer one an alias or a single run of it.
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by(|a, b| (a.key.len(), &a.key).cmp(&(b.key.len(), &b.key)));
        let mut first_of: BTreeSet<&str> = BTreeSet::new();
        for row in rows {
            let key = match SessionKey::parse(&row.key, &self.id) {
                Ok(key) if !key.is_reserved() => key,
                _ => self.own_key(&row.session_id)?,
            };
            let twin = if first_of.insert(&row.session_id) { Twin::First } else { Twin::Second };
            let part = self.part_of_row(row, twin, used);
            let Some(session) = keyed.get_mut(&key) else {
                newest.insert(key.clone(), row.updated);
                let mut session = self.session_of_row(key.clone(), row);
                session.parts.push(part);
                keyed.insert(key, session);
                continue;
            };
            if session.parts.iter().any(|have| have.session_id == part.session_id) {
                continue;
            }
            // Spellings of one key that stand side by side: the one used last says what the session is now.
            if newest.get(&key).is_none_or(|at| *at <= row.updated) {
                newest.insert(key.clone(), row.updated);
                let mut parts = std::mem::take(&mut session.parts);
                parts.push(part);
                *session = SessionPlan { parts, ..self.session_of_row(key, row) };
            } else {
                session.parts.insert(0, part);
            }
        }
        Ok(keyed)
    }

    fn part_of_row(&self, row: &Row, twin: Twin, used: &mut HashSet<usize>) -> PartPlan {
        let mut part = self.part(&row.session_id, twin);
        let named = row.file.as_deref().and_then(|file| Path::new(file).file_name());
        for (at, (transcript, stem, state, peek)) in self.transcripts.iter().enumerate() {
            let by_name = named.is_some() && transcript.path.file_name() == named;
            let by_stem = *stem == row.session_id;
            let by_header = peek.session_id.as_deref() == Some(row.session_id.as_str());
            let live = *state == State::Live;
            if by_name || by_stem || (live && by_header && named.is_none()) {
                used.insert(at);
                self.add_file(&mut part, at);
            }
        }
        part
    }

    fn add_file(&self, part: &mut PartPlan, at: usize) {
        let Some((transcript, .., peek)) = self.transcripts.get(at) else { return };
        part.files.push(FilePlan {
            path: transcript.path.clone(),
            name: name_from(self.root, &transcript.path),
            bytes: transcript.bytes,
            lane: Lane::Whole,
        });
        // Archives sort before what goes on from them, oldest first.
        let state = |file: &FilePlan| {
            let found = self.transcripts.iter().find(|(t, ..)| t.path == file.path);
            found.map(|(_, _, state, _)| *state)
        };
        part.files.sort_by_key(state);
        part.began = match (part.began, peek.began) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if part.forked_from.is_none() {
            part.forked_from.clone_from(&peek.forked_from);
        }
    }

    fn part(&self, session_id: &str, twin: Twin) -> PartPlan {
        PartPlan {
            session_id: session_id.to_owned(),
            scope: format!("{}/{session_id}", self.id),
            files: Vec::new(),
            began: None,
            reset: None,
            ended: None,
            twin,
            forked_from: None,
        }
    }

    /// Ties archives of resets to the keys that went on from them.
    fn tie_archives(
        &self,
        keyed: &mut BTreeMap<SessionKey, SessionPlan>,
        used: &mut HashSet<usize>,
    ) {
        let mut archives: Vec<(Timestamp, usize)> = Vec::new();
        for (at, (_, _, state, _)) in self.transcripts.iter().enumerate() {
            if let State::Reset(reset) = state
                && !used.contains(&at)
            {
                archives.push((*reset, at));
            }
        }
        archives.sort();
        // The newest first: what it is tied to begins with it from then on.
        for (reset, at) in archives.into_iter().rev() {
            let Some((_, stem, _, peek)) = self.transcripts.get(at) else { continue };
            let Some(key) = self.successor(keyed, stem, reset) else { continue };
            let Some(session) = keyed.get_mut(&key) else { continue };
            used.insert(at);
            if let Some(next) = session.parts.first_mut() {
                next.reset = Some(reset);
            }
            let id = peek.session_id.as_deref().unwrap_or(stem);
            let mut part = self.part(id, Twin::First);
            part.ended = Some(reset);
            self.add_file(&mut part, at);
            session.parts.insert(0, part);
        }
    }

    /// The key that went on after a reset.
    fn successor(
        &self,
        keyed: &BTreeMap<SessionKey, SessionPlan>,
        stem: &str,
        reset: Timestamp,
    ) -> Option<SessionKey> {
        let family = |row: &&Row| row.family.iter().any(|id| id == stem);
        if let Some(row) = self.rows.iter().find(family) {
            let key = SessionKey::parse(&row.key, &self.id).ok()?;
            return keyed.contains_key(&key).then_some(key);
        }
        let after = |session: &&SessionPlan| {
            session.parts.first().and_then(|part| part.began).is_some_and(|began| began >= reset)
        };
        let candidates: Vec<&SessionPlan> =
            keyed.values().filter(|session| goes_on(session)).filter(after).collect();
        let soon = candidates
            .iter()
            .filter(|session| session.began().is_some_and(|began| began <= reset.plus(GOES_ON)));
        let soon: Vec<&&SessionPlan> = soon.collect();
        match (soon.as_slice(), candidates.as_slice()) {
            ([one], _) => Some(one.key.clone()),
            ([], [one]) => Some(one.key.clone()),
            _ => None,
        }
    }

    fn session_of_row(&self, key: SessionKey, row: &Row) -> SessionPlan {
        let key_of = |text: &Option<String>| SessionKey::parse(text.as_deref()?, &self.id).ok();
        let mut session = self.bare_session(key, key_of(&row.spawned_by));
        // A session that was begun beside another one has a parent, and its first turn is a person's all the same.
        if let Some(parent) = key_of(&row.begun_beside).filter(|_| session.parent.is_none()) {
            session.opening.0.parent_key = Some(parent.to_string());
            session.parent = Some(parent);
        }
        let opened = &mut session.opening.0;
        let origin = row.origin.clone().unwrap_or_default();
        opened.channel = row.channel.clone().or(opened.channel.take());
        opened.chat_type = row.chat_type;
        opened.account_id.clone_from(&origin.account_id);
        opened.thread_id.clone_from(&origin.thread_id);
        opened.spawn_depth = row
            .spawn_depth
            .and_then(|depth| u32::try_from(depth).ok())
            .unwrap_or(opened.spawn_depth);
        opened.label.clone_from(&row.label);
        opened.display_name.clone_from(&row.display_name);
        opened.origin.clone_from(&row.origin);
        session.index = Some(IndexState {
            at: row.updated,
            set: row.set.clone(),
            source: Record { file: self.index.clone(), ..row.source.clone() },
        });
        session
    }

    fn own_session(&self, id: &str) -> Result<SessionPlan> {
        let mut session = self.bare_session(self.own_key(id)?, None);
        session.parts.push(self.part(id, Twin::First));
        Ok(session)
    }

    fn own_key(&self, id: &str) -> Result<SessionKey> {
        own_key(Program::OpenClaw.code(), id)
    }

    fn bare_session(&self, key: SessionKey, parent: Option<SessionKey>) -> SessionPlan {
        let kind = kind(&key);
        let agent = key.agent().unwrap_or_else(|| self.id.clone());
        let mut opening = Opening::bare(kind, agent.to_string(), Program::OpenClaw.code());
        let opened = &mut opening.0;
        match key.parts() {
            Parts::Chat { channel, id, .. } => {
                opened.channel = Some(channel.to_string());
                opened.chat_id = Some(id.to_owned());
            }
            Parts::Channel { channel, id } if channel.as_str() != Program::OpenClaw.code() => {
                opened.channel = Some(channel.to_string());
                opened.chat_id = Some(id.to_owned());
            }
            _ => {}
        }
        let door = if kind == SessionKind::Cron { Ingress::Internal } else { Ingress::External };
        let mut session = SessionPlan {
            key,
            opening,
            task: None,
            door,
            parts: Vec::new(),
            index: None,
            archived: None,
            parent: None,
        };
        if let Some(parent) = parent {
            adopt_by(&mut session, parent);
        }
        session
    }
}

/// Whether a transcript without a key goes by the id in its header: where the name says more, it goes by the name.
fn own_id_fits(id: &str, stem: &str) -> bool {
    !stem.starts_with(id) || stem == id
}

/// The kind of a session. Jobs and webhooks of an agent say in their keys what they are.
fn kind(key: &SessionKey) -> SessionKind {
    match key.parts() {
        Parts::Own { name, .. } if name.starts_with("cron:") => SessionKind::Cron,
        Parts::Own { name, .. } if name.starts_with("hook:") => SessionKind::Hook,
        _ => key.kind_at_opening(),
    }
}

/// Whether a session goes on after a reset under the same key.
fn goes_on(session: &SessionPlan) -> bool {
    let own = match session.key.parts() {
        Parts::Subagent { .. } => false,
        Parts::Own { name, .. } => !name.contains(":run:"),
        Parts::Cron { id } => !id.contains(":run:"),
        _ => true,
    };
    own && session.parent.is_none()
}

/// Makes a session the child of another.
fn adopt_by(session: &mut SessionPlan, parent: SessionKey) {
    session.opening.0.parent_key = Some(parent.to_string());
    session.opening.0.spawn_depth = session.opening.0.spawn_depth.max(1);
    session.task = Some(Provenance {
        source_session_key: Some(parent.to_string()),
        source_channel: None,
        source_tool: Some("sessions_spawn".to_owned()),
        sender: None,
        run_id: None,
        round: None,
    });
    session.parent = Some(parent);
}

/// Gives children their parents where only the registry of runs knows them, and finds the parts that spawned them.
fn adopt(planned: &mut Planned) {
    let main = AgentId::parse("main").ok();
    let key = |text: &Option<String>| SessionKey::parse(text.as_deref()?, main.as_ref()?).ok();
    let places: HashMap<SessionKey, usize> =
        planned.sessions.iter().enumerate().map(|(at, s)| (s.key.clone(), at)).collect();
    for run in &planned.runs {
        let (Some(child), Some(parent)) = (key(&run.target), key(&run.requester)) else { continue };
        let session = places.get(&child).and_then(|at| planned.sessions.get_mut(*at));
        if let Some(orphan) = session.filter(|s| s.parent.is_none() && child != parent) {
            adopt_by(orphan, parent);
        }
    }
    let parts: HashMap<SessionKey, Vec<(Option<Timestamp>, String)>> = planned
        .sessions
        .iter()
        .map(|s| (s.key.clone(), s.parts.iter().map(|p| (p.began, p.session_id.clone())).collect()))
        .collect();
    for session in &mut planned.sessions {
        let Some(parts) = session.parent.as_ref().and_then(|parent| parts.get(parent)) else {
            continue;
        };
        let began = session.parts.iter().find_map(|part| part.began);
        let before = parts.iter().rfind(|(at, _)| began.is_none() || *at <= began);
        session.opening.0.parent_session_id = before.or(parts.first()).map(|(_, id)| id.clone());
    }
}

/// Sorts sessions by their beginnings, those that began at once as they come, but no child before its parent.
pub(crate) fn parents_first(mut sessions: Vec<SessionPlan>) -> Vec<SessionPlan> {
    sessions.sort_by_key(SessionPlan::began);
    let places: HashMap<SessionKey, usize> =
        sessions.iter().enumerate().map(|(at, session)| (session.key.clone(), at)).collect();
    let parent_of =
        |at: usize| -> Option<usize> { places.get(sessions.get(at)?.parent.as_ref()?).copied() };
    let mut placed = vec![false; sessions.len()];
    let mut order = Vec::with_capacity(sessions.len());
    for at in 0..sessions.len() {
        let mut ancestors = Vec::new();
        let mut next = Some(at);
        // Sessions that are each other's ancestors are taken as they come.
        while let Some(at) = next.filter(|at| placed.get(*at) == Some(&false)) {
            if let Some(seen) = placed.get_mut(at) {
                *seen = true;
            }
            ancestors.push(at);
            next = parent_of(at);
        }
        order.extend(ancestors.into_iter().rev());
    }
    let mut sessions: Vec<Option<SessionPlan>> = sessions.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| sessions.get_mut(at)?.take()).collect()
}
