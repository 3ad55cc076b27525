//! Simulated workers: each step is one that the worker of the product makes, and between any two of them it may die.

use std::sync::Arc;
use std::time::Duration;

use annals_engine::clock::Clock;
use annals_engine::engine::Role;
use annals_engine::id::StreamName;
use annals_engine::session::event::RunStatus;
use annals_engine::session::run::{
    Claimed, Claimer, End, Starting, Trial, Tried, Wording, announce, attempt, claim, claim_again,
    finish, start, tried,
};
use annals_engine::session::work::{Address, Claim, Job, Waybill, Work};
use annals_engine::{ErrorKind, Result};
use annals_tools::run::worker::before_the_end;

use super::world::{Boot, World};

/// A worker.
pub(crate) struct Worker {
    pub(crate) name: String,
    boot: Boot,
    role: Option<Role>,
    /// Tries of the worker that had the role before, which nobody knows the end of.
    settling: Vec<(Waybill, String)>,
    tasks: Vec<Task>,
}

/// How far it is with something.
#[derive(Debug)]
enum Task {
    Ready(Claimed),
    Runs(Claimed),
    Ended(Claimed, End),
    Wants(Waybill),
    Carries(Waybill, String, Address),
    Carried(Waybill, String, Tried),
}

/// Whether it did something; an error when it does not know whether its append happened.
type Step = Result<bool>;

/// So many runs at a time.
const RUNS_MAX: usize = 2;

impl World {
    /// A worker comes, in the place of another or beside the others.
    pub(crate) fn hire(&mut self) -> Worker {
        self.names += 1;
        let name = format!("w{}", self.names);
        let (role, settling, tasks) = (None, Vec::new(), Vec::new());
        Worker { name, boot: self.boot, role, settling, tasks }
    }

    /// A worker is killed, and another one comes. Processes that it had started go on.
    pub(crate) fn die(&mut self, at: usize) {
        let new = self.hire();
        drop(std::mem::replace(&mut self.workers[at], new));
    }

    /// A worker makes one step. Whether there was one to make.
    pub(crate) fn worker_acts(&mut self, at: usize) -> bool {
        let mut worker = {
            let placeholder = Worker {
                name: String::new(),
                boot: self.boot,
                role: None,
                settling: Vec::new(),
                tasks: Vec::new(),
            };
            std::mem::replace(&mut self.workers[at], placeholder)
        };
        let stepped = self.step(&mut worker);
        if let Err(error) = &stepped {
            // It breaks off: its agents end with it, its program ends or begins anew.
            if *error.kind() != ErrorKind::Indeterminate {
                self.wrong.push(format!("a worker broke off: {error}"));
            }
            for task in worker.tasks.drain(..) {
                if let Task::Ready(run) | Task::Runs(run) | Task::Ended(run, _) = task {
                    self.reap(&run.run.run_id);
                }
            }
            (worker.role, worker.settling) = (None, Vec::new());
            if self.rng.bool() {
                worker = self.hire();
            }
        }
        self.workers[at] = worker;
        stepped.unwrap_or(true)
    }

    fn step(&mut self, worker: &mut Worker) -> Step {
        let work = self.work();
        if worker.role.is_none() && (self.calm || self.rng.bool()) {
            worker.role = self.engine.take_worker_role()?;
            if worker.role.is_some() {
                let work = self.work();
                let open = work.outgoing().into_iter();
                let tries = open.filter_map(|(waybill, out)| {
                    Some((waybill.clone(), out.trying.as_ref()?.attempt_id.clone()))
                });
                worker.settling = tries.collect();
                return Ok(true);
            }
        }
        if let Some((waybill, attempt_id)) = worker.settling.pop() {
            self.tell(&waybill, &attempt_id, &Tried::Unknown("unconfirmed".to_owned()))?;
            return Ok(true);
        }
        if self.recover(worker, &work)? {
            return Ok(true);
        }
        let begins = self.rng.bool();
        if (begins || worker.tasks.is_empty())
            && (self.claims(worker)? || self.begins_to_send(worker, &work))
        {
            return Ok(true);
        }
        if worker.tasks.is_empty() {
            return Ok(false);
        }
        let task = worker.tasks.remove(self.rng.usize(0..worker.tasks.len()));
        self.goes_on(worker, task)
    }

    /// One step of something that it has begun.
    fn goes_on(&mut self, worker: &mut Worker, task: Task) -> Step {
        let next = match task {
            Task::Ready(claimed) => self.starts(claimed)?,
            Task::Runs(claimed) => {
                let wished = self.work().run(&claimed.run.run_id).is_some_and(|r| r.kill.is_some());
                let mut own = self.processes.iter().filter(|p| p.claim == claimed.claim);
                let over = own.next().is_none_or(|process| process.left == 0);
                match (wished, over) {
                    (true, _) => {
                        self.reap(&claimed.run.run_id);
                        Some(Task::Ended(claimed, End::without_output(RunStatus::Killed, "kill")))
                    }
                    (false, true) => {
                        self.reap(&claimed.run.run_id);
                        let end = self.ended();
                        Some(Task::Ended(claimed, end))
                    }
                    (false, false) => {
                        worker.tasks.push(Task::Runs(claimed));
                        self.agent_acts();
                        return Ok(true);
                    }
                }
            }
            Task::Ended(claimed, end) => {
                self.ends(&claimed.run, claimed.claim, &end)?;
                None
            }
            Task::Wants(waybill) => self.tries(waybill)?,
            Task::Carries(waybill, attempt_id, target) => {
                let became = self.carry(&waybill, &attempt_id, &target);
                Some(Task::Carried(waybill, attempt_id, became))
            }
            Task::Carried(waybill, attempt_id, became) => {
                self.tell(&waybill, &attempt_id, &became)?;
                None
            }
        };
        worker.tasks.extend(next);
        Ok(true)
    }

    fn claims(&mut self, worker: &mut Worker) -> Step {
        let of_runs = |task: &&Task| matches!(task, Task::Ready(_) | Task::Runs(_));
        if worker.tasks.iter().filter(of_runs).count() >= RUNS_MAX
            || self.work().next_claim(|_| true).is_none()
        {
            return Ok(false);
        }
        let who = self.claimer(worker);
        let claimed = self.decide(&[], |stage, batch| claim(stage, batch, &who, |_| true))?;
        let did = claimed.is_some();
        worker.tasks.extend(claimed.map(Task::Ready));
        Ok(did)
    }

    fn claimer(&self, worker: &Worker) -> Claimer {
        Claimer {
            worker: worker.name.clone(),
            pid: 1,
            process_start: worker.name.clone(),
            boot_id: worker.boot.to_string(),
            host: "h".to_owned(),
            lease_until: self.clock.now().plus(Duration::from_secs(60)),
            token_sha256: "t".to_owned(),
        }
    }

    fn starts(&mut self, claimed: Claimed) -> Result<Option<Task>> {
        let run = Arc::clone(&claimed.run);
        if !self.rules.agents.contains_key(&run.agent_id) {
            let end = End::without_output(RunStatus::Error, "no_agent");
            return Ok(Some(Task::Ended(claimed, end)));
        }
        let starting =
            Starting { command: vec!["agent".to_owned()], cwd: String::new(), trimmed: None };
        let may = self.decide(&[], |stage, batch| {
            start(stage, batch, (&run.run_id, claimed.claim), &starting)
        })?;
        if !may {
            let end = End::without_output(RunStatus::Killed, "kill");
            return Ok(Some(Task::Ended(claimed, end)));
        }
        self.start_process(&run.run_id, claimed.claim, &run.session_key);
        Ok(Some(Task::Runs(claimed)))
    }

    fn ends(&mut self, run: &Arc<Job>, claim: u64, end: &End) -> Result<()> {
        let (earlier, keys) = before_the_end(&self.engine, run)?;
        let rules = self.rules.clone();
        let at = (run.run_id.as_str(), Some(claim));
        self.decide(&keys, |stage, batch| finish(stage, batch, &rules, at, (end, &earlier)))?;
        Ok(())
    }

    /// A run whose worker is gone ends, or is claimed again.
    fn recover(&mut self, worker: &mut Worker, work: &Work) -> Step {
        for run in work.runs() {
            let Some(claim) = run.claim.as_ref() else { continue };
            if claim.worker != worker.name && worker.role.is_none() {
                continue;
            }
            let Some(status) = self.fate(worker, claim) else { continue };
            self.reap(&run.run_id);
            if run.claims < 2 && run.kill.is_none() && run.agent_id == "ops" {
                let who = self.claimer(worker);
                let at = (run.run_id.as_str(), claim.seq);
                let again = self.decide(&[], |stage, batch| claim_again(stage, batch, &who, at))?;
                worker.tasks.extend(again.map(Task::Ready));
                return Ok(true);
            }
            let status = if run.kill.is_some() { RunStatus::Killed } else { status };
            self.ends(run, claim.seq, &End::without_output(status, "worker_gone"))?;
            return Ok(true);
        }
        Ok(false)
    }

    /// How a claimed run ended, if nobody is at it any more.
    fn fate(&self, worker: &Worker, claim: &Claim) -> Option<RunStatus> {
        let holds = |task: &Task| match task {
            Task::Ready(run) | Task::Runs(run) | Task::Ended(run, _) => run.claim == claim.seq,
            _ => false,
        };
        if claim.worker == worker.name {
            let mine = worker.tasks.iter().any(holds);
            return (!mine).then_some(RunStatus::Interrupted);
        }
        if claim.boot_id != worker.boot.to_string() {
            return Some(RunStatus::Interrupted);
        }
        let lives = self.workers.iter().any(|other| other.name == claim.worker);
        (!lives).then_some(RunStatus::Lost)
    }

    fn begins_to_send(&mut self, worker: &mut Worker, work: &Work) -> bool {
        if worker.role.is_none() {
            return false;
        }
        let sends = |waybill: &Waybill| {
            worker.tasks.iter().any(|task| match task {
                Task::Wants(own) | Task::Carries(own, ..) | Task::Carried(own, ..) => {
                    own == waybill
                }
                _ => false,
            })
        };
        let now = self.clock.now();
        let due = work.outgoing().into_iter().find(|(waybill, out)| {
            let waits = match waybill {
                Waybill::Announce { requester, .. } => {
                    out.turn_seq.is_none() && work.is_busy(requester)
                }
                Waybill::Delivery { .. } => false,
            };
            work.is_due(out, now) && !waits && !sends(waybill)
        });
        let Some((waybill, _)) = due else { return false };
        worker.tasks.push(Task::Wants(waybill.clone()));
        true
    }

    fn tries(&mut self, waybill: Waybill) -> Result<Option<Task>> {
        let work = self.work();
        let Some(out) = work.on_its_way(&waybill) else { return Ok(None) };
        let wording = match (&waybill, out.turn_seq) {
            (Waybill::Announce { run_id, .. }, None) => {
                announce::wording(self.engine.store(), run_id, out, &self.rules.silent)?
            }
            _ => Wording::default(),
        };
        let keys = [StreamName::new(waybill.stream())?];
        let rules = self.rules.clone();
        let trial =
            self.decide(&keys, |stage, batch| attempt(stage, batch, &rules, (&waybill, &wording)))?;
        Ok(match trial {
            Trial::Send { attempt_id, target, .. } => {
                Some(Task::Carries(waybill, attempt_id, target))
            }
            Trial::Settled | Trial::NotNow => None,
        })
    }

    fn tell(&mut self, waybill: &Waybill, attempt_id: &str, became: &Tried) -> Result<()> {
        let keys = [StreamName::new(waybill.stream())?];
        let rules = self.rules.clone();
        self.decide(&keys, |stage, batch| {
            tried(stage, batch, &rules, (waybill, attempt_id), became)
        })
    }
}
