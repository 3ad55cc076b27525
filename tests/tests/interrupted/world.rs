//! What the workers work in: a store, a clock, people who ask and kill, and what is remembered beside the log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use annals_engine::clock::{Clock, ManualClock, Timestamp};
use annals_engine::engine::Engine;
use annals_engine::id::{EventId, StreamName};
use annals_engine::session::event::{
    ArchiveReason, Event, Ingress, Json, Links, Origin, ResetReason, Role, RunKind, RunRequested,
    SessionArchived, SessionKind, SessionOpened, SessionReset, Turn, run_stream,
};
use annals_engine::session::policy::SendPolicy;
use annals_engine::session::run::{AnnounceWay, Batch, Limits, Rules, Stage, kill};
use annals_engine::session::silent::{Background, Tokens};
use annals_engine::session::work::Work;
use annals_engine::store::{Append, Item, MemoryStore, Read, Record};
use annals_engine::{ErrorKind, Result};
use annals_tools::run::worker::before_the_end;
use fastrand::Rng;

use super::agents::Process;
use super::flaky::{Fate, Flaky};
use super::sinks::Sinks;
use super::workers::Worker;

/// The sessions at the beginning: key, agent, channel.
pub(crate) const SESSIONS: [(&str, &str, Option<&str>); 6] = [
    ("agent:main:main", "main", None),
    ("telegram:7", "main", Some("telegram")),
    ("slack:c1", "ops", Some("slack")),
    ("signal:x", "main", Some("signal")),
    ("agent:ops:main", "ops", None),
    ("cli:old", "gone", None),
];

/// How many children there may be.
pub(crate) const LIMITS: Limits = Limits { depth: 2, of_one: 2, of_all: 3, chain: (10, 1_000) };

/// The boot, until the machine starts anew.
pub(crate) type Boot = u32;

pub(crate) struct World {
    pub(crate) engine: Engine,
    store: Arc<Flaky>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) rng: Rng,
    pub(crate) rules: Rules,
    pub(crate) workers: Vec<Worker>,
    pub(crate) processes: Vec<Process>,
    pub(crate) sinks: Sinks,
    pub(crate) boot: Boot,
    pub(crate) names: u32,
    /// Whether things go wrong, and agents and people ask for more.
    pub(crate) calm: bool,
    pub(crate) wrong: Vec<String>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_790_000_000_000)));
        let store = Arc::new(Flaky::new(MemoryStore::new(Arc::clone(&clock) as _)));
        let engine = Engine::over(Arc::clone(&store) as _, Arc::clone(&clock) as _);
        let rules = Rules {
            policy: SendPolicy::default(),
            silent: Tokens::new([], Background::Exact),
            announce: [AnnounceWay::Auto, AnnounceWay::Step, AnnounceWay::Result][rng.usize(0..3)],
            announce_timeout: 120,
            announce_wakes: rng.bool(),
            runs_max: 1_000,
            agents: BTreeMap::from([("main".to_owned(), false), ("ops".to_owned(), true)]),
            sinks: BTreeMap::from([
                ("telegram".to_owned(), "exec".to_owned()),
                ("slack".to_owned(), "http".to_owned()),
            ]),
        };
        let mut world = Self {
            engine,
            store,
            clock,
            rng,
            rules,
            workers: Vec::new(),
            processes: Vec::new(),
            sinks: Sinks::default(),
            boot: 0,
            names: 0,
            calm: false,
            wrong: Vec::new(),
        };
        for (key, agent, channel) in SESSIONS {
            world.open(key, agent, channel);
        }
        world
    }

    fn open(&mut self, key: &str, agent: &str, channel: Option<&str>) {
        let to = |channel: &str| Origin {
            channel: Some(channel.to_owned()),
            to: Some("7".to_owned()),
            ..Origin::default()
        };
        let opened = SessionOpened {
            channel: channel.map(str::to_owned),
            origin: channel.map(to),
            ..SessionOpened::new(format!("part of {key}"), SessionKind::Other, agent)
        };
        self.append(key, &Event::SessionOpened(opened));
    }

    pub(crate) fn append(&mut self, stream: &str, event: &Event) {
        let id = EventId::new(self.clock.now());
        let new = event.to_new(StreamName::new(stream).unwrap(), id, Links::default()).unwrap();
        self.engine.append(Append::new(vec![new])).unwrap();
    }

    pub(crate) fn work(&self) -> Work {
        self.engine.work().unwrap().state().clone()
    }

    /// Whether something happens that has this chance.
    pub(crate) fn happens(&mut self, chance: f64) -> bool {
        !self.calm && self.rng.f64() < chance
    }

    /// Decides, and sometimes nobody knows whether it was appended.
    pub(crate) fn decide<T: Send>(
        &mut self,
        keys: &[StreamName],
        rule: impl FnMut(&Stage<'_>, &mut Batch<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        if self.happens(0.02) {
            let fate = if self.rng.bool() { Fate::Untold } else { Fate::Undone };
            self.store.next(fate);
        }
        let keys: Vec<&StreamName> = keys.iter().collect();
        self.engine.decide(&keys, rule).map(|(found, _)| found)
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        let items = self.engine.read(Read::default()).unwrap();
        items
            .map(|item| match item.unwrap() {
                Item::Record(record) => *record,
                Item::Gap(gap) => panic!("a gap in memory: {gap:?}"),
            })
            .collect()
    }

    /// Something happens.
    pub(crate) fn turn(&mut self) {
        let micros = self.rng.u64(1..2_000_000);
        self.clock.advance(Duration::from_micros(micros));
        self.weather();
        match self.rng.usize(0..10) {
            0 => self.people(),
            1 | 2 => self.agent_acts(),
            _ => {
                let at = self.rng.usize(0..self.workers.len());
                self.worker_acts(at);
            }
        }
    }

    /// What nobody wants.
    fn weather(&mut self) {
        if self.happens(0.004) {
            let by = Duration::from_secs(self.rng.u64(0..3_600));
            let now = self.clock.now();
            self.clock.set(if self.rng.bool() { now.minus(by) } else { now.plus(by) });
        }
        if self.happens(0.02) {
            let at = self.rng.usize(0..self.workers.len());
            self.die(at);
        }
        if self.happens(0.002) {
            self.boot += 1;
            self.processes.clear();
            (0..self.workers.len()).for_each(|at| self.die(at));
        }
    }

    /// People ask for a run, want one to end, or begin a session anew.
    fn people(&mut self) {
        let (key, _, _) = SESSIONS[self.rng.usize(0..SESSIONS.len())];
        match self.rng.usize(0..8) {
            0..=2 => self.ask(key),
            3 | 4 => self.wants_an_end(),
            5 => self.reset(key),
            6 if self.rng.u8(0..4) == 0 => self.archive(key),
            _ => self.asks_for_more(key, None),
        }
    }

    fn ask(&mut self, key: &str) {
        let name = StreamName::new(key).unwrap();
        let (run_id, deliver) = (self.new_id(), self.rng.u8(0..4) > 0);
        let asked = self.decide(std::slice::from_ref(&name), |stage, batch| {
            let row = stage.sessions.row(&name).unwrap();
            let content = Json::of("how are you?")?;
            let turn = Turn::new(row.session_id.clone(), Role::User, Ingress::External, content);
            let turn = batch.add(key, &Event::Turn(turn), None)?;
            let request = RunRequested {
                at: None,
                run_id: run_id.clone(),
                session_key: key.to_owned(),
                session_id: row.session_id.clone(),
                kind: RunKind::Ask,
                agent_id: row.agent_id.clone(),
                requester_key: None,
                requester_session_id: None,
                chain_id: run_id.clone(),
                hop: 0,
                round: None,
                timeout_seconds: 0,
                deliver,
                idempotency_key: None,
                follows_run_id: None,
                model: None,
                thinking: None,
                turn_seq: Some(turn.seq),
                preamble: None,
                imported: None,
            };
            batch.expect_none(run_stream(&run_id)?.as_str())?;
            let stream = run_stream(&run_id)?;
            batch.add(stream.as_str(), &Event::RunRequested(request), Some(turn.id)).map(drop)
        });
        self.or_unclear(asked.err());
    }

    fn wants_an_end(&mut self) {
        let work = self.work();
        let runs = work.runs();
        if runs.is_empty() {
            return;
        }
        let run = Arc::clone(runs[self.rng.usize(0..runs.len())]);
        let (earlier, keys) = before_the_end(&self.engine, &run).unwrap();
        let rules = self.rules.clone();
        let killed = self.decide(&keys, |stage, batch| {
            kill(stage, batch, &rules, &run.run_id, ("operator", "enough"), &earlier)
        });
        self.or_unclear(killed.err());
    }

    fn reset(&mut self, key: &str) {
        let part = self.new_id();
        let name = StreamName::new(key).unwrap();
        let reset = self.decide(std::slice::from_ref(&name), |stage, batch| {
            let row = stage.sessions.row(&name).unwrap();
            let reset = SessionReset {
                at: None,
                session_id: part.clone(),
                previous_session_id: row.session_id.clone(),
                reason: ResetReason::Manual,
                effective_at: stage.now,
                rule: None,
                deferred_by: None,
            };
            batch.add(key, &Event::SessionReset(reset), None).map(drop)
        });
        self.or_unclear(reset.err());
    }

    fn archive(&mut self, key: &str) {
        let name = StreamName::new(key).unwrap();
        let archived = self.decide(std::slice::from_ref(&name), |stage, batch| {
            let row = stage.sessions.row(&name).unwrap();
            let archived = SessionArchived {
                at: None,
                session_id: row.session_id.clone(),
                reason: ArchiveReason::Manual,
                effective_at: stage.now,
                rule: None,
            };
            batch.add(key, &Event::SessionArchived(archived), None).map(drop)
        });
        self.or_unclear(archived.err());
    }

    pub(crate) fn new_id(&self) -> String {
        EventId::new(self.clock.now()).to_string()
    }

    /// Whoever asked does not know, or was told that it cannot be; anything else is wrong.
    pub(crate) fn or_unclear(&mut self, error: Option<annals_engine::Error>) {
        let Some(error) = error else { return };
        match error.kind() {
            ErrorKind::Indeterminate | ErrorKind::NotFound | ErrorKind::Conflict { .. } => {}
            _ => self.wrong.push(format!("an append failed: {error}")),
        }
    }
}
