//! Agents: processes that say something and may ask for more. They outlive a worker that is killed, until somebody ends
//! them.

use annals_engine::ErrorKind;
use annals_engine::id::StreamName;
use annals_engine::session::event::{Cleanup, RunStatus, Sandbox, SpawnMode};
use annals_engine::session::run::{Asked, End, Requester, Send, Spawn, send, spawn};

use super::world::{LIMITS, SESSIONS, World};

/// A process of an agent.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) run_id: String,
    pub(crate) claim: u64,
    pub(crate) session: String,
    /// How often it does something before it ends.
    pub(crate) left: u32,
}

impl World {
    /// Starts the process of a run; no other may be at work on its session.
    pub(crate) fn start_process(&mut self, run_id: &str, claim: u64, session: &str) {
        if let Some(other) = self.processes.iter().find(|other| other.session == session) {
            self.wrong.push(format!("{run_id} was started beside {other:?}"));
        }
        let left = self.rng.u32(0..4);
        let (run_id, session) = (run_id.to_owned(), session.to_owned());
        self.processes.push(Process { run_id, claim, session, left });
    }

    /// Ends the processes of a run.
    pub(crate) fn reap(&mut self, run_id: &str) {
        self.processes.retain(|process| process.run_id != run_id);
    }

    /// Some agent does something, whoever started it.
    pub(crate) fn agent_acts(&mut self) {
        if self.processes.is_empty() {
            return;
        }
        let at = self.rng.usize(0..self.processes.len());
        let process = &mut self.processes[at];
        if process.left == 0 {
            return;
        }
        process.left -= 1;
        let (run_id, session) = (process.run_id.clone(), process.session.clone());
        if !self.calm && self.rng.u8(0..3) > 0 {
            self.asks_for_more(&session, Some(&run_id));
        }
    }

    /// How an agent's process ended that has no more to do.
    pub(crate) fn ended(&mut self) -> End {
        let ok = End { reason: None, runtime_ms: 5, ..End::without_output(RunStatus::Ok, "") };
        let resumed = self.rng.bool().then(|| "own".to_owned());
        let ok = End { agent_session_id: resumed, ..ok };
        match self.rng.usize(0..12) {
            0 => End::without_output(RunStatus::Error, "exit"),
            1 => End::without_output(RunStatus::Timeout, "run"),
            2 => ok.saying("NO_REPLY"),
            3 => ok.saying("REPLY_SKIP"),
            4 => ok.saying("ANNOUNCE_SKIP"),
            5 => ok,
            6 => ok.saying("Result: all is well\nNotes: none"),
            _ => ok.saying("all is well"),
        }
    }

    /// Asks for a send or a child, in the name of a session. One that does not know whether it was heard asks again.
    pub(crate) fn asks_for_more(&mut self, from: &str, run: Option<&str>) {
        let from = StreamName::new(from).unwrap();
        let run_id = self.new_id();
        let to = SESSIONS[self.rng.usize(0..SESSIONS.len())].0;
        let to = StreamName::new(to).unwrap();
        let (rounds, wait) = (self.rng.u32(0..6), self.rng.u64(0..2) * 30);
        let spawns = self.rng.bool();
        let (child, part) = (self.new_id(), self.new_id());
        let agent = ["main", "ops"][self.rng.usize(0..2)];
        let child = StreamName::new(format!("agent:{agent}:subagent:{child}")).unwrap();
        for _ in 0..2 {
            let requester = || Requester { key: &from, run_id: run, opening: None };
            let can_run = |agent: &str| agent != "gone";
            let asked = if spawns {
                let keys = [from.clone(), child.clone()];
                self.decide(&keys, |stage, batch| {
                    let wish = child_of(requester(), &child, (&part, &run_id), agent);
                    spawn(stage, batch, &wish)
                })
            } else {
                let keys = [from.clone(), to.clone()];
                self.decide(&keys, |stage, batch| {
                    let wish = Send {
                        verb: "sessions_send",
                        from: requester(),
                        to: &to,
                        named: to.as_str(),
                        label: None,
                        message: "how are you?",
                        wait_seconds: wait,
                        run_id: &run_id,
                        idempotency_key: Some("k"),
                        rounds_max: rounds,
                        hops_max: 4,
                        runs_max: 1_000,
                        can_run: &can_run,
                        blocked: None,
                    };
                    send(stage, batch, &wish)
                })
            };
            match asked {
                Ok(Asked::Accepted { .. } | Asked::Refused(_)) => return,
                Err(error) if *error.kind() == ErrorKind::Indeterminate => {}
                Err(error) => return self.or_unclear(Some(error)),
            }
        }
    }
}

/// A child that is wished for.
pub(crate) fn child_of<'a>(
    from: Requester<'a>,
    child: &'a StreamName,
    (session_id, run_id): (&'a str, &'a str),
    agent: &'a str,
) -> Spawn<'a> {
    Spawn {
        from,
        agent,
        child,
        session_id,
        run_id,
        task: "count the words",
        preamble: None,
        label: None,
        model: None,
        thinking: None,
        timeout_seconds: 0,
        thread: false,
        mode: SpawnMode::Run,
        cleanup: Cleanup::Keep,
        sandbox: Sandbox::Inherit,
        confined: false,
        attachments: &[],
        mount_path: None,
        idempotency_key: None,
        origin: None,
        limits: LIMITS,
        refused: [None, None],
    }
}
