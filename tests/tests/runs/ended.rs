//! How runs end.

use std::time::Duration;

use annals_tools::run::{Heard, Runner, Stop};
use serde_json::json;
use tokio::sync::{mpsc, watch};

use crate::trial::{Trial, Watched, in_time};

/// Says a stop as soon as the agent says something.
fn stop_at_output(why: Stop) -> impl FnMut(&Heard, &watch::Sender<Option<Stop>>) {
    move |heard, stop| {
        if matches!(heard, Heard::Output { .. }) {
            stop.send_replace(Some(why));
        }
    }
}

/// Goal: exit codes and signals are the outcome, whatever was printed. Method: an agent that fails after its reply, one that
/// is ended by a signal, one that succeeds without a word.
#[test]
fn by_itself() {
    let made = Trial::of(&["say=all is well", "err=it is not", "exit=3"]).run();
    assert_eq!(made.told(), "error exit \"all is well\"");
    assert_eq!((made.outcome.exit, made.outcome.signal), (Some(3), None));
    assert_eq!(made.outcome.stderr_tail.as_deref(), Some("it is not\n"));
    assert!(made.detail().contains("exit code 3"), "{}", made.detail());
    let made = Trial::of(&["say=x", "kill=9"]).run();
    assert_eq!(made.told(), "error signal \"x\"");
    assert_eq!((made.outcome.exit, made.outcome.signal), (None, Some(9)));
    let made = Trial::of(&[]).run();
    assert_eq!((made.told().as_str(), made.outcome.exit), ("ok - -", Some(0)));
    assert_eq!((made.outcome.stderr_tail, made.outcome.detail), (None, None));
}

/// Goal: the time limit is the smaller of the run's and the agent's, and what was said until then is kept. Method: each of
/// them near and the other far, with an agent that never ends.
#[test]
fn at_the_deadline() {
    let far = Some(Duration::from_secs(3_600));
    let mut by_run = Trial::of(&["say=half", "forever"]).set("timeouts.run", json!(3_600));
    by_run.job.timeout = Some(Duration::from_secs(2));
    let mut by_agent = Trial::of(&["say=half", "forever"]).set("timeouts.run", json!(2));
    by_agent.job.timeout = far;
    for trial in [by_run, by_agent] {
        let made = trial.run();
        assert_eq!(made.told(), "timeout deadline \"half\"");
        assert_eq!(made.outcome.signal, Some(15));
        assert!(made.detail().contains("time limit"), "{}", made.detail());
    }
}

/// Goal: an agent that says nothing for too long is ended, also one that closed its output, and one that says something on
/// standard error is not silent. Method: agents that never end.
#[test]
fn in_silence() {
    for steps in [&["say=half", "forever"][..], &["say=half", "close"]] {
        let made = Trial::of(steps).set("timeouts.noOutput", json!(2)).run();
        assert_eq!(made.told(), "timeout no_output \"half\"");
    }
}

/// Goal: a wish to stop ends the run, and its cause is the status. Method: both causes, while it runs and before it starts.
#[test]
fn on_request() {
    for (why, told) in
        [(Stop::Kill, "killed kill \"half\""), (Stop::Shutdown, "interrupted shutdown \"half\"")]
    {
        let made = Trial::of(&["say=half", "forever"]).run_and(stop_at_output(why));
        assert_eq!((made.told().as_str(), made.outcome.signal), (told, Some(15)));
    }
    let trial = Trial::of(&["count=starts"]);
    let (_stop, stops) = watch::channel(Some(Stop::Kill));
    let (tell, _told) = mpsc::channel(1);
    let outcome =
        in_time(async { Runner::default().run(&trial.spec(), &trial.job, stops, tell).await });
    assert_eq!((outcome.status.as_str(), outcome.runtime), ("killed", Duration::ZERO));
    assert!(!trial.path("starts").exists());
}

/// Goal: an agent that ignores the request is ended after the grace, and its whole group with it, also what ignores the
/// request behind an agent that obeys. Method: a deaf agent with a child; an obedient one with a deaf child.
#[test]
fn the_whole_group() {
    let deaf = Trial::of(&["child=pid", "deaf", "say=ready", "forever"])
        .set("timeouts.killGrace", json!(1));
    let mut child = None;
    let made = deaf.run_and(|heard, stop| {
        if matches!(heard, Heard::Output { .. }) {
            child = Some(Watched::pid(&deaf.line("pid")));
            stop.send_replace(Some(Stop::Kill));
        }
    });
    assert_eq!((made.told().as_str(), made.outcome.signal), ("killed kill \"ready\"", Some(9)));
    child.unwrap().ends();
    let script =
        "(trap '' TERM; echo $$ > pid; exec \"$0\" say=ready forever) & exec \"$0\" forever";
    let agent = env!("CARGO_BIN_EXE_fake-agent");
    let deaf_child = Trial::of(&["-c", script, agent])
        .set("command", json!("/bin/sh"))
        .set("timeouts.killGrace", json!(1));
    let made = deaf_child.run_and(stop_at_output(Stop::Kill));
    assert_eq!((made.told().as_str(), made.outcome.signal), ("killed kill \"ready\"", Some(15)));
}

/// Goal: a process that left the group and holds the pipes is not waited for when the agent ends, and lives on; when the
/// agent is ended, it is ended too, unless it has nothing of the run's any more. Method: a child in a session of its own,
/// held in each case.
#[test]
fn what_left_the_group() {
    let trial = Trial::of(&["session=pid", "say=done"]);
    let made = trial.run();
    assert_eq!(made.told(), "ok - \"done\"");
    let child = Watched::pid(&trial.line("pid"));
    assert!(!child.ended());
    child.end();
    let stopped = |trial: &Trial| {
        let mut child = None;
        let made = trial.run_and(|heard, stop| {
            if matches!(heard, Heard::Output { .. }) {
                child = Some(Watched::pid(&trial.line("pid")));
                stop.send_replace(Some(Stop::Kill));
            }
        });
        assert_eq!(made.told(), "killed kill \"ready\"");
        child.unwrap()
    };
    stopped(&Trial::of(&["session=pid", "say=ready", "forever"])).ends();
    let script = "env -u ANNALS_RUN_ID \"$0\" session=pid; exec \"$0\" say=ready forever";
    let agent = env!("CARGO_BIN_EXE_fake-agent");
    let child = stopped(&Trial::of(&["-c", script, agent]).set("command", json!("/bin/sh")));
    assert!(!child.ended());
    child.end();
}

/// Goal: a run that nobody wants any more leaves no process behind. Method: the future is dropped while the agent waits.
#[test]
fn dropped() {
    let trial = Trial::of(&["child=pid", "deaf", "say=ready", "forever"]);
    let (agent, child) = in_time(async {
        let (_stop, stops) = watch::channel(None);
        let (tell, mut told) = mpsc::channel(8);
        let (spec, runner) = (trial.spec(), Runner::default());
        let mut run = Box::pin(runner.run(&spec, &trial.job, stops, tell));
        let mut agent = None;
        loop {
            let heard = tokio::select! {
                heard = told.recv() => heard,
                outcome = &mut run => panic!("it ended: {outcome:?}"),
            };
            match heard {
                Some(Heard::Started { pid, .. }) => agent = Some(Watched::pid(&pid.to_string())),
                _ => break (agent.unwrap(), Watched::pid(&trial.line("pid"))),
            }
        }
    });
    agent.ends();
    child.ends();
}

/// Goal: whoever does not take what was heard slows the agent down, and neither hangs a run that has to end nor makes the
/// agent a silent one. Method: room for one, of which nothing is taken after the start, and more output than everything
/// between holds; a wish to stop; a limit of silence that would pass before the time limit does.
#[test]
fn nobody_takes_what_is_heard() {
    let deaf_ear = |trial: Trial, wish: Option<Stop>| {
        in_time(async {
            let (stop, stops) = watch::channel(None);
            let (tell, mut told) = mpsc::channel(1);
            let (spec, runner) = (trial.spec(), Runner::default());
            let mut run = std::pin::pin!(runner.run(&spec, &trial.job, stops, tell));
            tokio::select! {
                _ = told.recv() => {}
                outcome = &mut run => panic!("it ended: {outcome:?}"),
            }
            stop.send_replace(wish);
            run.await
        })
    };
    let flood = ["flood=8000000"];
    let outcome = deaf_ear(Trial::of(&flood), Some(Stop::Kill));
    assert_eq!(outcome.reason, Some("kill"));
    let mut trial = Trial::of(&flood).set("timeouts.noOutput", json!(2));
    trial.job.timeout = Some(Duration::from_secs(5));
    assert_eq!(deaf_ear(trial, None).reason, Some("deadline"));
}
