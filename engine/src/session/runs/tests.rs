//! Runs from scenes.

use super::*;
use crate::projection::Folded;
use crate::session::scene::{START, Scene};
use crate::store::View;

fn runs(scene: &Scene) -> Runs {
    Folded::<Runs>::of(&scene.store, View::Durable).unwrap().state().clone()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(START + second * 1_000)
}

fn claim(scene: &Scene, id: &str, worker: &str) {
    let data = format!(
        "{{'runId':'{id}','worker':'{worker}','pid':7,'processStart':'1','bootId':'b','host':'h',\
         'leaseUntil':'2026-04-01T00:01:00.000000Z'}}"
    );
    scene.event(&format!("run:{id}"), "run.claimed", &data);
}

fn started(scene: &Scene, id: &str) {
    let data = format!("{{'runId':'{id}','command':['a'],'cwd':'/'}}");
    scene.event(&format!("run:{id}"), "run.started", &data);
}

/// Goal: a run shows how far it came after each of its events, with when, who and how it ended. Method: the whole life of
/// one, looked at after each step; a lease that another worker takes over; a kill.
#[test]
fn a_whole_life() {
    let scene = Scene::new();
    let state = |scene: &Scene| runs(scene).get("r1").unwrap().state;
    scene.run("r1", "telegram:1", "s1", ",'requesterKey':'cli:1'");
    assert_eq!(state(&scene), RunState::Requested);
    claim(&scene, "r1", "w1");
    assert_eq!(state(&scene), RunState::Claimed);
    started(&scene, "r1");
    assert_eq!(state(&scene), RunState::Running);
    claim(&scene, "r1", "w2");
    let output = "{'runId':'r1','stream':'stdout','text':'x'}";
    scene.event("run:r1", "run.output", output).event("run:r1", "run.output", output);
    let kill = "{'runId':'r1','by':'cli','reason':'enough'}";
    scene.event("run:r1", "run.kill_requested", kill);
    assert_eq!(runs(&scene).get("r1").unwrap().age(at(60)), Duration::from_secs(59));
    scene.finished("r1", "killed", ",'reason':'kill','signal':9");
    let runs = runs(&scene);
    let run = runs.get("r1").unwrap();
    assert_eq!((run.state, run.claims, run.outputs), (RunState::Killed, 2, 2));
    assert_eq!(run.session_key.as_deref(), Some("telegram:1"));
    assert_eq!(run.requester_key.as_deref(), Some("cli:1"));
    assert_eq!(run.owner.as_ref().map(|owner| owner.worker.as_str()), Some("w2"));
    assert_eq!(run.kill.as_ref().map(|kill| kill.by.as_str()), Some("cli"));
    assert_eq!(run.end.as_ref().and_then(|end| end.signal), Some(9));
    assert_eq!(run.age(at(600)), Duration::from_secs(7));
}

/// Goal: the first end is the end. Method: three more of them, and steps that come too late.
#[test]
fn one_end() {
    let scene = Scene::new();
    scene.run("r1", "telegram:1", "s1", "").finished("r1", "ok", ",'replySeq':1");
    scene.finished("r1", "error", "").finished("r1", "lost", "");
    started(&scene, "r1");
    scene.run("r1", "telegram:2", "s2", "");
    let runs = runs(&scene);
    let run = runs.get("r1").unwrap();
    assert_eq!((run.state, run.later_ends), (RunState::Ok, 2));
    assert_eq!(run.end.as_ref().and_then(|end| end.reply_seq), Some(1));
    assert_eq!(run.session_key.as_deref(), Some("telegram:1"));
}

/// Goal: a run of which events are lost is there with what is left. Method: one without a request, one with an output
/// alone; both are found in the order of what is known, and by the beginning of their ids.
#[test]
fn with_events_lost() {
    let scene = Scene::new();
    scene.finished("r1", "ok", "");
    scene.event("run:r2", "run.output", "{'runId':'r2','stream':'stdout','text':'x'}");
    scene.run("r0", "telegram:1", "s1", "");
    let runs = runs(&scene);
    let ids: Vec<&str> = runs.in_order().iter().map(|run| run.run_id.as_str()).collect();
    assert_eq!(ids, ["r1", "r0", "r2"]);
    let run = runs.get("r1").unwrap();
    assert_eq!((run.session_key.as_deref(), run.age(at(60))), (None, Duration::ZERO));
    assert_eq!(runs.beginning("r").count(), 3);
    assert_eq!(runs.beginning("r2").count(), 1);
    assert_eq!(runs.beginning("x").count(), 0);
}
