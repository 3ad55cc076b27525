//! What is heard of runs, and what becomes of odd output.

use annals_engine::session::event::OutputStream;
use annals_tools::run::{Heard, Runner};
use serde_json::json;
use tokio::sync::{mpsc, watch};

use crate::trial::{Trial, fifo, in_time, release};

/// Goal: everything that is printed is heard, the start first, each stream in its order, while the run goes on. Method: an
/// agent that waits in the middle until what it said first was heard.
#[test]
fn while_it_goes_on() {
    let trial = Trial::of(&["say=one", "err=two", "wait=fifo", "print=three"]);
    fifo(&trial.path("fifo"));
    let mut released = false;
    let made = trial.run_and(|heard, _| {
        if !released && matches!(heard, Heard::Output { stream: OutputStream::Stdout, .. }) {
            released = true;
            release(&trial.path("fifo"));
        }
    });
    assert_eq!(made.told(), "ok - \"one\\nthree\"");
    assert!(matches!(&made.heard[0], Heard::Started { pid: 1.., .. }), "{:?}", made.heard);
    assert_eq!(made.heard_on(OutputStream::Stdout), "one\nthree\n");
    assert_eq!(made.heard_on(OutputStream::Stderr), "two\n");
}

/// Goal: much output is heard whole and in pieces of a bounded size, however little room there is. Method: megabytes
/// through room for one.
#[test]
fn in_pieces() {
    let mut trial = Trial::of(&["flood=3000000", "say=done"]);
    trial.room = 1;
    let made = trial.run();
    let reply = made.outcome.reply.text.as_deref().unwrap();
    assert!(reply.len() > 3_000_000 && reply.ends_with("\ndone"));
    assert_eq!(made.heard_on(OutputStream::Stdout), format!("{reply}\n"));
    for heard in &made.heard {
        assert!(
            matches!(heard, Heard::Output { text, .. } if text.len() <= (64 << 10) + 3)
                || matches!(heard, Heard::Started { .. })
        );
    }
}

/// Goal: what a process that was left behind prints later is told as late and changes nothing. Method: a child that waits
/// until the outcome is there.
#[test]
fn late() {
    let trial = Trial::of(&["later=fifo=afterwards ä", "say=now"]);
    fifo(&trial.path("fifo"));
    let (outcome, late) = in_time(async {
        let (_stop, stops) = watch::channel(None);
        let (tell, mut told) = mpsc::channel(8);
        let outcome = Runner::default().run(&trial.spec(), &trial.job, stops, tell).await;
        release(&trial.path("fifo"));
        let mut late = String::new();
        while let Some(heard) = told.recv().await {
            if let Heard::Output { text, late: true, .. } = heard {
                late.push_str(&text);
            }
        }
        (outcome, late)
    });
    assert_eq!((outcome.status.as_str(), outcome.reply.text.as_deref()), ("ok", Some("now")));
    assert_eq!(late, "afterwards ä");
}

/// Goal: a line that is too long is cut with a mark, and the run goes on. Method: one of a megabyte and a limit of 100
/// bytes.
#[test]
fn a_huge_line() {
    let made = Trial::of(&["huge=1000000", "say=next"]).set("limits.lineBytes", json!(100)).run();
    let cut = format!("{} [cut: the line had 1000000 bytes]\nnext", "y".repeat(100));
    assert_eq!((made.outcome.status.as_str(), made.outcome.reply.text), ("ok", Some(cut)));
    assert_eq!(made.outcome.detail.as_deref(), Some("1 line of its output cut at 100 bytes"));
}

/// Goal: more output than is allowed ends the run with an error, whether the agent would end or not, and what was allowed is
/// kept. Method: both, and output that is just allowed.
#[test]
fn too_much() {
    for steps in [&["flood=1000000", "forever"][..], &["flood=1088"]] {
        let made = Trial::of(steps).set("limits.stdoutBytes", json!(1_024)).run();
        assert_eq!(
            (made.outcome.status.as_str(), made.outcome.reason),
            ("error", Some("output_limit"))
        );
        assert_eq!(made.outcome.reply.text.as_deref().map(str::len), Some(1_023));
        assert!(made.detail().contains("limits.stdoutBytes"), "{}", made.detail());
    }
    let made = Trial::of(&["flood=1024"]).set("limits.stdoutBytes", json!(1_024)).run();
    assert_eq!(made.outcome.status.as_str(), "ok");
}

/// Goal: bytes that are no UTF-8 are repaired and that is said; NUL bytes stay. Method: both.
#[test]
fn odd_bytes() {
    let made = Trial::of(&["hex=61ff62", "hex=0a", "hex=6300640a"]).run();
    assert_eq!(made.told(), "ok - \"a\u{fffd}b\\nc\\0d\"");
    assert_eq!(
        made.outcome.detail.as_deref(),
        Some("1 line of its output repaired, not being UTF-8")
    );
}

/// Goal: of standard error the end is kept, from a whole character on. Method: a limit inside a character.
#[test]
fn the_end_of_the_diagnostics() {
    let made =
        Trial::of(&["err=begin", "err=ääääää"]).set("limits.stderrTailBytes", json!(6)).run();
    assert_eq!(made.outcome.stderr_tail.as_deref(), Some("ää\n"));
    assert_eq!(made.heard_on(OutputStream::Stderr), "begin\nääääää\n");
}

/// Goal: the dialect makes the reply, the usage and the turns, and tells progress. Method: a whole native answer, one that
/// is torn, one that says it failed, one that is only a silent token.
#[test]
fn native() {
    let native = |steps: &[&str]| Trial::of(steps).set("dialect", json!("native")).run();
    let made = native(&["native=All \"done\""]);
    assert_eq!(made.told(), "ok - \"All \\\"done\\\"\"");
    let tokens = made.outcome.reply.tokens.as_ref().map(|tokens| (tokens.r#in, tokens.out));
    assert_eq!((tokens, made.outcome.reply.turns.len()), (Some((900, 300)), 1));
    assert_eq!(made.heard_on(OutputStream::Progress), "thinking\n");
    assert_eq!(native(&["native=NO_REPLY"]).told(), "ok - \"NO_REPLY\"");
    let made = native(&["say={\"type\":\"result\",\"status\":\"failed\",\"error\":\"no credit\"}"]);
    assert_eq!(made.told(), "error agent_error -");
    assert_eq!(made.detail(), "no credit");
    let made = native(&["native=whole", "torn=ha"]);
    assert!(made.told().starts_with("ok - \"whole"), "{}", made.told());
    let made = native(&["torn=ha", "exit=1"]);
    assert_eq!(made.outcome.reason, Some("exit"));
}
