//! Runs: one turn of an agent's work on one session, from the request to its one end.

use crate::clock::Timestamp;

use super::define::{payload, words};
use super::turn::Tokens;

words! {
    /// What caused a run.
    pub enum RunKind {
        /// Somebody asked on the command line.
        Ask = "ask",
        /// A webhook.
        Webhook = "webhook",
        /// A send from another session.
        Send = "send",
        /// A spawn.
        Spawn = "spawn",
        /// A round of a reply-back exchange.
        Reply = "reply",
        /// An announce step.
        Announce = "announce",
        /// A watch rule.
        Watch = "watch",
    }
}

payload! {
    /// `run.requested`: work is wanted. Durable before anything starts.
    pub struct RunRequested {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The run.
        run_id: String,
        /// The session that it works on.
        session_key: String,
        /// The part that it works on.
        session_id: String,
        /// What caused it.
        kind: RunKind,
        /// The agent that does it.
        agent_id: String,
        /// The session that asked for it.
        requester_key: Option<String>,
        /// The part that asked for it.
        requester_session_id: Option<String>,
        /// The chain of sends that it belongs to.
        chain_id: String,
        /// How many sends lie before it in the chain.
        hop: u32,
        /// The round of an exchange, from 1.
        round: Option<u32>,
        /// The time limit in seconds; 0 for none.
        timeout_seconds: u64,
        /// Whether the reply goes to the session's channel.
        deliver: bool,
        /// The caller's idempotency key.
        idempotency_key: Option<String>,
        /// The run that it follows up: the first send's, of a reply round and of the announce step after it; the child's,
        /// of its announce step.
        follows_run_id: Option<String>,
        /// The model asked for.
        model: Option<String>,
        /// The thinking level asked for.
        thinking: Option<String>,
        /// The position of the turn to answer.
        turn_seq: Option<u64>,
        /// The block put before the prompt.
        preamble: Option<String>,
        /// Whether it is history of another program: never to be claimed.
        imported: Option<bool>,
    }
}

payload! {
    /// `run.claimed`: one worker has it.
    pub struct RunClaimed {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The run.
        run_id: String,
        /// The worker.
        worker: String,
        /// The worker's process.
        pid: u32,
        /// When that process started, as its system says it: compared for equality and nothing else.
        process_start: String,
        /// Which boot of which system: compared for equality and nothing else.
        boot_id: String,
        /// The machine's name.
        host: String,
        /// Until when the claim stands without a sign of life.
        lease_until: Timestamp,
        /// SHA-256 of the token that the run calls tools with, in lower-case hexadecimal.
        token_sha256: Option<String>,
    }
}

payload! {
    /// `run.started`: the agent's process runs.
    pub struct RunStarted {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The run.
        run_id: String,
        /// The command and its arguments, secrets masked.
        command: Vec<String>,
        /// The folder that it runs in; empty when it is not known.
        cwd: String,
    }
}

words! {
    /// Where a piece of output came from.
    pub enum OutputStream {
        /// The reply as it is written.
        Stdout = "stdout",
        /// Diagnostics.
        Stderr = "stderr",
        /// A report of progress.
        Progress = "progress",
    }
}

payload! {
    /// `run.output`: the run said something.
    pub struct RunOutput {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The run.
        run_id: String,
        /// Where it came from.
        stream: OutputStream,
        /// What it said.
        text: String,
    }
}

payload! {
    /// `run.kill_requested`: somebody wants the run to end.
    pub struct RunKillRequested {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The run.
        run_id: String,
        /// Who.
        by: String,
        /// Why.
        reason: String,
    }
}

words! {
    /// How a run ended, from facts and never from text.
    pub enum RunStatus {
        /// Well.
        Ok = "ok",
        /// With an error.
        Error = "error",
        /// Past its time limit.
        Timeout = "timeout",
        /// Killed on request.
        Killed = "killed",
        /// Stopped with its worker or its machine.
        Interrupted = "interrupted",
        /// Its process was gone.
        Lost = "lost",
    }
}

payload! {
    /// `run.finished`: the one end of a run.
    pub struct RunFinished {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The run.
        run_id: String,
        /// How it ended.
        status: RunStatus,
        /// A code that says more.
        reason: Option<String>,
        /// The process's exit code.
        exit: Option<i32>,
        /// The number of the signal that ended the process.
        signal: Option<i32>,
        /// How long it ran, in milliseconds.
        runtime_ms: u64,
        /// Tokens used.
        tokens: Option<Tokens>,
        /// What it cost, in millionths of a dollar.
        cost_micros: Option<u64>,
        /// The position of the turn that is the reply.
        reply_seq: Option<u64>,
        /// The id that the agent gives its own session.
        agent_session_id: Option<String>,
        /// What went wrong, in words.
        detail: Option<String>,
        /// The end of the diagnostics.
        stderr_tail: Option<String>,
    }
}
