//! The view of the work at hand.

use super::Work;
use crate::projection::Folded;
use crate::session::scene::Scene;
use crate::store::View;

fn work(scene: &Scene) -> Work {
    Folded::<Work>::of(&scene.store, View::Durable).unwrap().state().clone()
}

/// Goal: what another program did is no work of ours. Method: an imported run without an end, an announce and a delivery
/// of earlier.
#[test]
fn history_is_no_work() {
    let scene = Scene::new();
    let at = "'at':'2026-01-02T03:04:05.000006Z',";
    scene.event(
        "run:r",
        "run.requested",
        "{'runId':'r','sessionKey':'cli:a','sessionId':'p','kind':'spawn','agentId':'main','chainId':'c','hop':0,\
         'timeoutSeconds':0,'deliver':true,'imported':true}",
    );
    scene.event("cli:a", "announce.requested", &format!("{{{at}'runId':'r','childKey':'k'}}"));
    scene.event("cli:a", "delivery.requested", &format!("{{{at}'runId':'r'}}"));
    scene.event("cli:a", "send.accepted", &format!("{{{at}'runId':'r','targetKey':'k','hop':0}}"));
    assert_eq!(work(&scene), Work::default());
}

/// Goal: a run is at hand until its first end, and a token finds it as long. Method: request, claim, end, a late claim.
#[test]
fn a_run_at_hand() {
    let scene = Scene::new();
    scene.run("r", "cli:a", "p", "");
    assert!(!work(&scene).is_busy("cli:a") && work(&scene).run("r").is_some());
    let claim = "{'runId':'r','worker':'w','pid':1,'processStart':'s','bootId':'b','host':'h',\
                 'leaseUntil':'2026-04-01T00:10:00.000000Z','tokenSha256':'t'}";
    scene.event("run:r", "run.claimed", claim);
    assert!(work(&scene).is_busy("cli:a") && work(&scene).holder_of("t").is_some());
    scene.finished("r", "ok", "").event("run:r", "run.claimed", claim);
    assert_eq!(work(&scene), Work::default());
}
