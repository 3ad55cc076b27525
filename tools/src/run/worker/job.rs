//! One run, from its claim to its end.

use std::sync::Arc;

use annals_engine::engine::Engine;
use annals_engine::id::{EventId, StreamName};
use annals_engine::session::event::{Event, Links, OutputStream, RunOutput, RunStatus, run_stream};
use annals_engine::session::run::{
    Batch, Claimed, Earlier, End, Finished, Stage, Starting, announce, finish, start,
};
use annals_engine::session::work::Job as Wanted;
use annals_engine::store::Append;
use annals_engine::{ErrorKind, Result};
use sha2::{Digest, Sha256};
use tokio::sync::{mpsc, oneshot, watch};

use crate::mask::Mask;

use super::super::prompt::{Ready, ready};
use super::super::runner::{Heard, Stop};
use super::super::spec::AgentSpec;
use super::shift::{Done, Shift};
use super::{Worker, blocking, turns, was_not_taken};

/// A token, and its hash.
pub(super) fn token() -> (String, String) {
    let token = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
    let hash = hash_of(&token);
    (token, hash)
}

/// The hash of a token, as the log has it.
#[must_use]
pub fn hash_of(token: &str) -> String {
    Sha256::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How many pieces of output wait to be recorded before the agent has to wait.
const HEARD_MAX: usize = 64;

impl Shift<'_> {
    /// Begins a run that this worker has claimed.
    pub(super) fn begin(&mut self, claimed: Claimed, token: String) {
        let (tell, stop) = watch::channel(None);
        let run_id = claimed.run.run_id.clone();
        self.runs.insert(run_id.clone(), tell);
        let (worker, done) = (self.worker.clone(), self.done.clone());
        self.tasks.spawn(async move {
            let ended = worker.run(claimed, token, stop).await;
            // The shift may be over.
            let _ = done.send(Done::Run(run_id));
            ended
        });
    }
}

impl Worker {
    async fn run(
        &self,
        claimed: Claimed,
        token: String,
        stop: watch::Receiver<Option<Stop>>,
    ) -> Result<()> {
        let run = Arc::clone(&claimed.run);
        let Some(spec) = self.setup.agents.get(&run.agent_id).cloned() else {
            let detail = format!("no command is configured for agent {:?}", run.agent_id);
            return self.ends_before(&claimed, "no_agent", detail).await;
        };
        let ready = {
            let (engine, setup) = (self.engine.clone(), Arc::clone(&self.setup));
            let (spec, run) = (spec.clone(), Arc::clone(&run));
            blocking(move || ready(&engine, &setup, &spec, &run)).await
        };
        let Ready { mut job, trimmed } = match ready {
            Ok(ready) => ready,
            Err(error) => return self.ends_before(&claimed, "unreadable", error.to_string()).await,
        };
        job.token = Some(token);
        let starting = Starting {
            command: shown(&spec, job.agent_session_id.is_some(), &Mask::of(&self.setup.config)),
            cwd: spec.cwd.display().to_string(),
            trimmed,
        };
        let (id, claim) = (run.run_id.clone(), claimed.claim);
        let may = move |stage: &Stage<'_>, batch: &mut Batch<'_>| {
            start(stage, batch, (&id, claim), &starting)
        };
        // Where it may have been recorded, nobody starts it: the run is one that was interrupted.
        if !self.again(was_not_taken, || self.decide(Vec::new(), may.clone())).await? {
            let end = End::without_output(RunStatus::Killed, "kill");
            return self.finish(&claimed, end).await;
        }
        let (tell, heard) = mpsc::channel(HEARD_MAX);
        let (ended, has_ended) = oneshot::channel::<()>();
        let recorder =
            tokio::spawn(record(self.engine.clone(), run.run_id.clone(), heard, has_ended));
        let mut outcome = self.runner.run(&spec, &job, stop, tell).await;
        if let Some(session) = outcome.reply.agent_session_id.clone() {
            let (engine, run) = (self.engine.clone(), Arc::clone(&run));
            let before = blocking(move || announce::used_before(engine.store(), &run, &session));
            // What was used before and cannot be read is no reason to lose what was said now.
            if let Ok(before) = before.await {
                outcome.reply.beyond(&before);
            }
        }
        // What was said before the end is recorded before it.
        drop(ended);
        let late = recorder.await;
        self.finish(&claimed, turns::end(outcome)).await?;
        if let Ok(Some(late)) = late {
            // What is late is recorded behind the end, and nobody waits for it.
            let never = std::future::pending::<()>();
            drop(tokio::spawn(record(self.engine.clone(), run.run_id.clone(), late, never)));
        }
        Ok(())
    }

    /// Ends a run that was never started.
    async fn ends_before(&self, claimed: &Claimed, reason: &str, detail: String) -> Result<()> {
        let end = End::without_output(RunStatus::Error, reason);
        self.finish(claimed, End { detail: Some(detail), ..end }).await
    }

    /// Records the end of a run with all that follows from it.
    pub(super) async fn finish(&self, claimed: &Claimed, end: End) -> Result<()> {
        let end = self.put_ahead(claimed, end).await?;
        match self.record_end(&claimed.run, claimed.claim, end.clone()).await {
            Err(error) if must_be_smaller(error.kind()) => {
                let smaller = turns::without_content(end, &error);
                self.record_end(&claimed.run, claimed.claim, smaller).await.map(drop)
            }
            other => other.map(drop),
        }
    }

    /// Records the end of a run under the claim at a position.
    pub(super) async fn record_end(
        &self,
        run: &Arc<Wanted>,
        claim: u64,
        end: End,
    ) -> Result<Finished> {
        let (earlier, keys) = self.before_the_end(run).await?;
        let (rules, id) = (self.setup.rules.clone(), run.run_id.clone());
        let rule = move |stage: &Stage<'_>, batch: &mut Batch<'_>| {
            finish(stage, batch, &rules, (&id, Some(claim)), (&end, &earlier))
        };
        self.record(keys, rule).await
    }

    /// What is read before an end is decided on: what was said earlier, and which sessions it may touch.
    async fn before_the_end(&self, run: &Arc<Wanted>) -> Result<(Earlier, Vec<StreamName>)> {
        let read = || {
            let (engine, run) = (self.engine.clone(), Arc::clone(run));
            blocking(move || before_the_end(&engine, &run))
        };
        self.again(ErrorKind::may_pass, read).await
    }

    /// Records the first of very many turns ahead of the batch that ends the run.
    async fn put_ahead(&self, claimed: &Claimed, mut end: End) -> Result<End> {
        for turns in turns::ahead(&mut end) {
            let now = self.engine.clock().now();
            let batch: Vec<_> = turns.into_iter().map(|turn| (EventId::new(now), turn)).collect();
            let (run, claim) = (Arc::clone(&claimed.run), claimed.claim);
            let rule = move |stage: &Stage<'_>, into: &mut Batch<'_>| {
                let own = stage.work.run(&run.run_id).and_then(|run| run.claim.as_ref());
                if own.is_none_or(|own| own.seq != claim) {
                    return Ok(());
                }
                for (id, turn) in &batch {
                    let mut turn = turn.clone();
                    turn.session_id.clone_from(&run.session_id);
                    turn.run_id = Some(run.run_id.clone());
                    into.add_as(*id, &run.session_key, &Event::Turn(turn), None)?;
                }
                Ok(())
            };
            match self.record(Vec::new(), rule).await {
                // What no event can hold is not said.
                Err(error) if must_be_smaller(error.kind()) => {}
                // They are in the log, without what else would go with them now.
                Err(error) if *error.kind() == ErrorKind::PartialDuplicate => {}
                other => other?,
            }
        }
        Ok(end)
    }
}

const fn must_be_smaller(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::TooLarge | ErrorKind::InvalidInput)
}

/// What is read before an end is decided on: what was said earlier, and which sessions it may touch.
///
/// # Errors
/// Whatever reading meets.
pub fn before_the_end(engine: &Engine, run: &Wanted) -> Result<(Earlier, Vec<StreamName>)> {
    let work = engine.work()?;
    let first = run.follows.as_deref().unwrap_or(&run.run_id);
    let exchange = work.state().exchange(first).map(|exchange| &**exchange);
    let earlier = announce::earlier(engine.store(), run, exchange)?;
    let mut names = vec![run.session_key.as_str()];
    names.extend(exchange.iter().flat_map(|e| [e.requester.as_str(), e.target.as_str()]));
    names.extend(run.terms.as_ref().map(|terms| terms.requester.as_str()));
    let keys = names.into_iter().filter_map(|name| StreamName::new(name).ok()).collect();
    Ok((earlier, keys))
}

/// The command as it is recorded: placeholders stand for what is filled in, so that no text of anybody gets in, and
/// secrets that somebody wrote into the arguments are masked.
fn shown(spec: &AgentSpec, resuming: bool, mask: &Mask) -> Vec<String> {
    let command = spec.command.display().to_string();
    let all = std::iter::once(&command).chain(spec.arguments(resuming));
    all.map(|argument| mask.text(argument).into_owned()).collect()
}

/// Records what is heard of a run: until nothing can come any more, or until it has ended and nothing stands waiting; what
/// is late then comes through what is given back.
async fn record(
    engine: Engine,
    run_id: String,
    mut heard: mpsc::Receiver<Heard>,
    ended: impl Future,
) -> Option<mpsc::Receiver<Heard>> {
    let mut ended = std::pin::pin!(ended);
    loop {
        let said = tokio::select! {
            biased;
            said = heard.recv() => said?,
            _ = &mut ended => return Some(heard),
        };
        let Heard::Output { stream, text, .. } = said else { continue };
        let (engine, run_id) = (engine.clone(), run_id.clone());
        // A reply is recorded whole with the end; that a piece of it was not recorded before is no reason to end the run.
        let _ = blocking(move || output(&engine, run_id, stream, text)).await;
    }
}

fn output(engine: &Engine, run_id: String, stream: OutputStream, text: String) -> Result<()> {
    let to = run_stream(&run_id)?;
    let id = EventId::new(engine.clock().now());
    let event = Event::RunOutput(RunOutput { at: None, run_id, stream, text });
    let new = event.to_new(to, id, Links { cause: None, flow: Some(id) })?;
    engine.append(Append::new(vec![new])).map(drop)
}
