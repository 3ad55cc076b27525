//! Who sent to whom. Calls of the session tools and the turns that they caused stand in different transcripts; they are
//! joined by the run's id, the child's key and the provenance of turns, within one source. What stays without its other
//! side is counted and read as `from -> ?`.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::value::RawValue;

use super::fields::{self, Fields};
use super::pi::Call;
use super::pursuit::Tail;
use super::report::Unresolved;
use super::run::{Party, Run, RunEvent, is_run_id};
use super::story::key;
use crate::clock::Timestamp;
use crate::session::event::{Provenance, RunKind, RunStatus};
use crate::session::key::{AgentId, SessionKey};

/// How many calls wait for their results in one transcript before the oldest are given up.
const CALLS_MAX: usize = 10_000;

/// The sessions of a source and the runs between them.
#[derive(Debug)]
pub(crate) struct Relations {
    program: String,
    /// The agent that `main` stands for where nothing else says.
    agent: AgentId,
    parties: HashMap<String, Party>,
    /// The sessions that the store has from elsewhere, by their keys there.
    stored: HashMap<String, Party>,
    /// The keys that sessions of the source have in the store.
    placed: HashSet<String>,
    labels: HashMap<String, String>,
    /// The keys that session ids stand for.
    ids: HashMap<String, String>,
    runs: BTreeMap<String, Told>,
    /// The ids of runs, by the sessions that they work on and by what those were asked.
    by_target: HashMap<String, Vec<String>>,
    by_prompt: HashMap<u64, Vec<String>>,
    /// Calls without a result, by the sessions that made them and their own ids.
    calls: HashMap<(String, String), Waiting>,
    unresolved: Vec<Unresolved>,
    /// The runs of sub-agents that calls began, by the ids of the calls.
    tasks: HashMap<String, String>,
    /// Where the first turns of sub-agents are in the log, by the keys of those.
    task_seqs: HashMap<String, u64>,
}

/// What the result of a call says of the sub-agent that it began.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) agent_id: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) runtime_ms: Option<u64>,
    pub(crate) is_error: bool,
    pub(crate) at: Option<Timestamp>,
}

/// A run, and what of it has been told.
#[derive(Debug)]
struct Told {
    run: Run,
    accepted: bool,
    announced: bool,
    /// Whether the call that began it was found.
    bound: bool,
    /// Whether all of it was told.
    told: bool,
}

/// A call of a session tool that has no result yet.
#[derive(Debug)]
struct Waiting {
    kind: RunKind,
    target: Option<String>,
    label: Option<String>,
    timeout_seconds: Option<u64>,
    at: Option<Timestamp>,
}

/// What the end of an import has to say of a run.
pub(crate) struct Leftover {
    /// The stream of the requester and what is still to be told there.
    pub(crate) requester: Option<(String, Vec<RunEvent>)>,
    /// The run, and what is told in its own stream.
    pub(crate) run_id: String,
    pub(crate) life: [RunEvent; 2],
}

impl Relations {
    pub(crate) fn new(program: &str, agent: AgentId, stored: HashMap<String, Party>) -> Self {
        Self {
            program: program.to_owned(),
            agent,
            parties: HashMap::new(),
            stored,
            placed: HashSet::new(),
            labels: HashMap::new(),
            ids: HashMap::new(),
            runs: BTreeMap::new(),
            by_target: HashMap::new(),
            by_prompt: HashMap::new(),
            calls: HashMap::new(),
            unresolved: Vec::new(),
            tasks: HashMap::new(),
            task_seqs: HashMap::new(),
        }
    }

    /// Makes a session known: under the key that the source gives it, and what else it may be called by.
    pub(crate) fn session(&mut self, key: &SessionKey, party: Party, label: Option<&str>) {
        if let Some(label) = label {
            self.labels.insert(label.to_owned(), key.to_string());
        }
        for (_, session_id) in &party.parts {
            self.ids.insert(session_id.clone(), key.to_string());
        }
        self.placed.insert(party.key.clone());
        self.parties.insert(key.to_string(), party);
    }

    /// Makes a run known that the source has a record of.
    pub(crate) fn run(&mut self, mut run: Run) {
        let canonical = |key: &String| self.canonical(key);
        run.requester = run.requester.as_ref().map(canonical);
        run.target = run.target.as_ref().map(canonical);
        if let Some(target) = &run.target {
            self.by_target.entry(target.clone()).or_default().push(run.id.clone());
        }
        if let Some(prompt) = run.prompt {
            self.by_prompt.entry(prompt).or_default().push(run.id.clone());
        }
        let told = Told { run, accepted: false, announced: false, bound: false, told: false };
        self.runs.insert(told.run.id.clone(), told);
    }

    /// Makes a run known, or what the source has learned of one that is.
    pub(crate) fn run_by_now(&mut self, run: Run) {
        match self.runs.get_mut(&run.id) {
            None => self.run(run),
            Some(told) if told.run.status.is_none() => {
                told.run.status = run.status;
                told.run.started = run.started.or(told.run.started);
                told.run.ended = run.ended;
                told.run.detail = run.detail;
                told.run.result = run.result;
                told.run.runtime_ms = run.runtime_ms;
            }
            Some(_) => {}
        }
    }

    /// Learns which sessions the store has by now.
    pub(crate) fn stored(&mut self, stored: HashMap<String, Party>) {
        self.stored = stored;
    }

    pub(crate) fn run_count(&self) -> u64 {
        self.runs.len() as u64
    }

    /// The key in the store of the session that a text names; the text itself where it names none.
    pub(crate) fn key_of(&self, text: &str) -> String {
        let key = self.canonical(text);
        self.parties.get(&key).map_or(key, |party| party.key.clone())
    }

    fn canonical(&self, text: &str) -> String {
        SessionKey::parse(text, &self.agent).map_or_else(|_| text.to_owned(), |key| key.to_string())
    }

    /// The run that a child's first turn belongs to.
    pub(crate) fn first_run_of(&self, child: &SessionKey) -> Option<&Run> {
        let ids = self.by_target.get(child.as_str())?;
        ids.iter()
            .filter_map(|id| self.runs.get(id).map(|told| &told.run))
            .min_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)))
    }

    /// A transcript ended: calls that are still open went nowhere that is known.
    pub(crate) fn transcript_ended(&mut self, from: &SessionKey) {
        for (_, waiting) in self.calls.drain() {
            self.unresolved.push(Unresolved {
                from: Some(from.to_string()),
                to: None,
                tool: tool(waiting.kind).to_owned(),
                named: waiting.target.or(waiting.label),
            });
        }
    }

    /// A session made tool calls.
    pub(crate) fn called(&mut self, from: &SessionKey, calls: &[Call<'_>], at: Option<Timestamp>) {
        for call in calls {
            // A tool that another server lends goes by that server's name first.
            let kind = match call.name.rsplit("__").next().unwrap_or_default() {
                "sessions_spawn" => RunKind::Spawn,
                "sessions_send" => RunKind::Send,
                _ => continue,
            };
            let arguments = call.arguments.and_then(|value| Fields::parse(value.get()));
            let text = |name: &str| {
                Some(arguments.as_ref()?.text(name)?.into_owned()).filter(|text| !text.is_empty())
            };
            let seconds =
                if kind == RunKind::Spawn { "runTimeoutSeconds" } else { "timeoutSeconds" };
            let seconds = arguments.as_ref().and_then(|a| a.get(seconds)).and_then(fields::count);
            let waiting = Waiting {
                kind,
                target: text("sessionKey"),
                label: text("label"),
                timeout_seconds: seconds,
                at,
            };
            if self.calls.len() < CALLS_MAX {
                self.calls.insert((from.to_string(), call.id.clone().into_owned()), waiting);
            }
        }
    }

    /// A sub-agent's first turn has this place in the log.
    pub(crate) fn task_at(&mut self, child: &SessionKey, seq: u64) {
        self.task_seqs.insert(child.to_string(), seq);
    }

    /// The part of a session that was current at a time.
    pub(crate) fn part_of(&self, key: &str, at: Option<Timestamp>) -> Option<String> {
        self.parties.get(key)?.part_at(at)
    }

    /// A session made tool calls, of which some may spawn sub-agents: what is to be told there of those.
    pub(crate) fn tasks_given(
        &mut self,
        from: &SessionKey,
        calls: &[Call<'_>],
        at: Option<Timestamp>,
    ) -> Vec<RunEvent> {
        let tasks = calls.iter().filter(|call| matches!(&*call.name, "Task" | "Agent"));
        let mut told = Vec::new();
        for call in tasks {
            let arguments = call.arguments.and_then(|value| Fields::parse(value.get()));
            let Some(prompt) = arguments.as_ref().and_then(|a| a.text("prompt")) else { continue };
            let Some(id) = self.task_of(from, key(&*prompt)) else { continue };
            if self.tasks.len() < CALLS_MAX {
                self.tasks.insert(call.id.clone().into_owned(), id.clone());
            }
            if let Some(run) = self.runs.get_mut(&id) {
                let text = |name: &str| Some(arguments.as_ref()?.text(name)?.into_owned());
                run.run.created = at.or(run.run.created);
                run.run.model = text("model");
                run.run.label = run.run.label.take().or_else(|| text("description"));
            }
            told.extend(self.bind(from, &id));
        }
        told
    }

    /// The first run that was asked this and whose call was not found. One that this session is said to have spawned
    /// comes before one of its own sub-agents.
    fn task_of(&self, from: &SessionKey, prompt: u64) -> Option<String> {
        let ids = self.by_prompt.get(&prompt)?;
        let open = ids.iter().filter_map(|id| self.runs.get(id)).filter(|told| !told.bound);
        let other = |told: &Told| told.run.requester.as_deref() != Some(from.as_str());
        let first = open.min_by_key(|told| (other(told), told.run.created));
        first.map(|told| told.run.id.clone())
    }

    /// A tool answered in a session: what is to be told there of the sub-agent that it was, if it was one.
    pub(crate) fn task_answered(
        &mut self,
        from: &SessionKey,
        call: &str,
        answer: Answer,
    ) -> Option<RunEvent> {
        let given = self.tasks.remove(call);
        let named = answer.agent_id.as_ref().and_then(|agent| {
            let session = from.as_str().rsplit(':').next().unwrap_or_default();
            let ids = [agent.clone(), format!("{session}/{agent}")];
            ids.into_iter().find(|id| self.runs.contains_key(id))
        });
        let id = named.or(given)?;
        let event = self.bind(from, &id);
        let told = self.runs.get_mut(&id)?;
        // A sub-agent that was sent to the background answers that it was, and ends later.
        let begun = answer.status.as_deref() == Some("async_launched");
        if told.run.status.is_none() && !begun {
            let failed = answer.is_error;
            told.run.status = Some(if failed { RunStatus::Error } else { RunStatus::Ok });
            told.run.reason = answer.status;
            told.run.runtime_ms = answer.runtime_ms;
            told.run.ended = answer.at;
        }
        event
    }

    /// Ties a run to the session whose call began it, and says that it was accepted there, once.
    fn bind(&mut self, from: &SessionKey, id: &str) -> Option<RunEvent> {
        let told = self.runs.get_mut(id)?;
        if std::mem::replace(&mut told.bound, true) {
            return None;
        }
        told.run.requester = Some(from.to_string());
        let party = self.parties.get(told.run.target.as_ref()?)?;
        told.accepted = true;
        Some(told.run.accepted(&self.program, party))
    }

    /// A session spawned the sub-agent of this run: what is to be told there of it, once.
    pub(crate) fn spawned(&mut self, from: &SessionKey, run_id: &str) -> Option<RunEvent> {
        self.bind(from, run_id)
    }

    /// The sub-agent that a session is came to an end; of several ends the last one counts.
    pub(crate) fn ended(&mut self, child: &SessionKey, status: RunStatus, at: Option<Timestamp>) {
        let ids = self.by_target.get(child.as_str());
        let Some(id) = ids.and_then(|ids| ids.last()) else { return };
        if let Some(told) = self.runs.get_mut(id) {
            told.run.status = Some(status);
            told.run.ended = at.or(told.run.ended);
        }
    }

    /// A tool answered in a session: what is to be told there of the run that it began.
    pub(crate) fn answered(
        &mut self,
        from: &SessionKey,
        call: &str,
        content: &str,
        at: Option<Timestamp>,
    ) -> Option<RunEvent> {
        let waiting = self.calls.remove(&(from.to_string(), call.to_owned()))?;
        let answer = answer_text(content)?;
        let answer = Fields::parse(&answer)?;
        let status = answer.text("status").unwrap_or_default().into_owned();
        let run_id = answer.text("runId").filter(|id| is_run_id(id))?.into_owned();
        let target = match waiting.kind {
            RunKind::Spawn => answer.text("childSessionKey").map(|key| self.canonical(&key)),
            _ => self.target(&waiting, answer.text("sessionKey").as_deref()),
        };
        if !self.runs.contains_key(&run_id) {
            let mut run = Run::new(run_id.clone(), waiting.kind);
            run.requester = Some(from.to_string());
            run.target.clone_from(&target);
            run.created = waiting.at;
            run.timeout_seconds = waiting.timeout_seconds;
            run.label.clone_from(&waiting.label);
            run.detail = answer.text("error").map(|text| text.into_owned());
            run.status = match (waiting.kind, status.as_str()) {
                (RunKind::Send, "ok") => Some(RunStatus::Ok),
                (_, "error" | "forbidden") => Some(RunStatus::Error),
                _ => None,
            };
            run.ended = run.status.and(at);
            self.run(run);
        }
        let party = target.and_then(|key| self.party(&key).cloned());
        let told = self.runs.get_mut(&run_id)?;
        if told.run.requester.as_deref() != Some(from.as_str()) || told.accepted {
            return None;
        }
        let party = party?;
        told.accepted = true;
        Some(told.run.accepted(&self.program, &party))
    }

    fn target(&self, waiting: &Waiting, told: Option<&str>) -> Option<String> {
        let named = waiting.target.as_deref().or(told);
        let by_label = || self.labels.get(waiting.label.as_deref()?).cloned();
        let Some(named) = named else { return by_label() };
        let key = self.canonical(named);
        if self.party(&key).is_some() {
            return Some(key);
        }
        Some(self.ids.get(named).cloned().unwrap_or(key))
    }

    /// A turn arrived in a session from another one: what is to be told there of the run that it announces.
    pub(crate) fn arrived(
        &mut self,
        to: &SessionKey,
        provenance: &Provenance,
        known: impl Fn(&str) -> bool,
    ) -> Vec<RunEvent> {
        let tool = provenance.source_tool.clone().unwrap_or_default();
        let source = provenance.source_session_key.as_deref();
        if !source.is_some_and(|key| self.has(key) || known(key)) {
            self.unresolved.push(Unresolved {
                from: None,
                to: Some(to.to_string()),
                tool,
                named: source.map(str::to_owned),
            });
            return Vec::new();
        }
        if tool != "subagent_announce" {
            return Vec::new();
        }
        let parties = &self.parties;
        let key_in_store = |key: &str| parties.get(key).map(|party| party.key.as_str());
        let announced = self.runs.values_mut().filter(|told| {
            let child = told.run.target.as_deref();
            !told.announced
                && told.run.requester.as_deref() == Some(to.as_str())
                && child.is_some()
                && (child == source || child.and_then(key_in_store) == source)
        });
        let Some(told) = announced.min_by_key(|told| told.run.ended) else { return Vec::new() };
        let Some(child) = told.run.target.as_ref().and_then(|key| parties.get(key)) else {
            return Vec::new();
        };
        told.announced = true;
        told.run.announced(&self.program, child)
    }

    /// Whether a key is one of the source's sessions, as the source or as the store names it.
    fn has(&self, key: &str) -> bool {
        self.parties.contains_key(key) || self.placed.contains(key)
    }

    /// A session of the source, or else of the store.
    fn party(&self, key: &str) -> Option<&Party> {
        self.parties.get(key).or_else(|| self.stored.get(key))
    }

    /// What is left to be told when all transcripts are read. Runs without a target that is known are not told at all.
    /// While a source grows, a run that has not ended is left for later.
    pub(crate) fn leftovers(&mut self, tail: Tail) -> Vec<Leftover> {
        let mut leftovers = Vec::new();
        let mut runs = std::mem::take(&mut self.runs);
        let left =
            |told: &&mut Told| !told.told && (tail == Tail::Final || told.run.status.is_some());
        for told in runs.values_mut().filter(left) {
            told.told = true;
            let run = told.run.clone();
            let requester = run.requester.as_ref().and_then(|key| self.party(key)).cloned();
            let target = run.target.as_ref().and_then(|key| self.party(key)).cloned();
            let (requester, target) = (requester.as_ref(), target.as_ref());
            if requester.is_none() || target.is_none() {
                self.unresolved.push(Unresolved {
                    from: requester.map(|party| party.key.clone()).or(run.requester.clone()),
                    to: target.map(|party| party.key.clone()),
                    tool: tool(run.kind).to_owned(),
                    named: run.target.clone(),
                });
            }
            let unknown;
            let target = match (target, &run.target) {
                (Some(target), _) => target,
                (None, Some(key)) => {
                    let agent = SessionKey::parse(key, &self.agent).ok().and_then(|k| k.agent());
                    unknown = Party {
                        key: key.clone(),
                        parts: Vec::new(),
                        agent_id: agent.unwrap_or_else(|| self.agent.clone()).to_string(),
                    };
                    &unknown
                }
                (None, None) => continue,
            };
            let mut events = Vec::new();
            if !told.accepted {
                events.push(run.accepted(&self.program, target));
            }
            if !told.announced {
                events.extend(run.announced(&self.program, target));
            }
            // Of several runs of one session each has a turn of its own, and only the first one's place is known.
            let only = run
                .target
                .as_ref()
                .filter(|target| self.by_target.get(*target).is_some_and(|ids| ids.len() == 1));
            let turn_seq = only.and_then(|target| self.task_seqs.get(target)).copied();
            leftovers.push(Leftover {
                requester: requester.map(|party| (party.key.clone(), events)),
                life: run.life(&self.program, target, requester, turn_seq),
                run_id: run.id,
            });
        }
        self.runs = runs;
        leftovers
    }

    /// What was not joined since this was asked last.
    pub(crate) fn take_unresolved(&mut self) -> Vec<Unresolved> {
        std::mem::take(&mut self.unresolved)
    }
}

/// The tool that begins a run of this kind.
fn tool(kind: RunKind) -> &'static str {
    if kind == RunKind::Spawn { "sessions_spawn" } else { "sessions_send" }
}

/// The text of a tool's answer: a string, or the first block of text.
fn answer_text(content: &str) -> Option<String> {
    let content: &RawValue = serde_json::from_str(content).ok()?;
    if let Some(text) = fields::text(content) {
        return Some(text.into_owned());
    }
    let blocks: Vec<Fields<'_>> = serde_json::from_str(content.get()).ok()?;
    blocks.iter().find_map(|block| block.text("text")).map(|text| text.into_owned())
}
