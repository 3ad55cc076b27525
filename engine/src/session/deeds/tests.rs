//! Deeds from whole stories.

use super::*;
use crate::session::audit::Audit;
use crate::session::scene::Scene;

const A: &str = "agent:main:main";
const B: &str = "telegram:7";
const CHILD: &str = "agent:main:subagent:1";

fn deeds(scene: &Scene) -> Deeds {
    let (mut audit, mut deeds) = (Audit::default(), Deeds::default());
    for record in scene.records() {
        if let Some(message) = audit.message(&record, 40) {
            deeds.take(&message);
        }
    }
    deeds
}

fn told(scene: &Scene) -> Vec<String> {
    let line = |deed: &Deed| {
        let why = deed.reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        format!("{} {} {} {}{why}", deed.from, deed.kind, deed.to, deed.outcome)
    };
    deeds(scene).all().iter().map(line).collect()
}

fn request(scene: &Scene, id: &str, key: &str, kind: &str, by: &str) {
    let data = format!(
        "{{'runId':'{id}','sessionKey':'{key}','sessionId':'p','kind':'{kind}','agentId':'main','requesterKey':'{by}',\
         'chainId':'c','hop':0,'timeoutSeconds':0,'deliver':false}}"
    );
    scene.event(&format!("run:{id}"), "run.requested", &data);
}

fn said(scene: &Scene, to: &str, from: &str, run: &str, text: &str) {
    let round = if text == "fine" { 2 } else { 1 };
    let data = format!(
        "{{'sessionId':'p','role':'user','from':'inter_session','provenance':{{'sourceSessionKey':'{from}','runId':'{run}',\
         'round':{round}}},'content':'{text}'}}"
    );
    scene.event(to, "turn", &data);
}

/// Goal: a send with its words and its end is one deed, a round is a reply, a spawn with its announce and the delivery of
/// it are one each, a refusal is there with its reason. Method: a story of all of them.
#[test]
fn a_story() {
    let scene = Scene::new();
    said(&scene, B, A, "r1", "how are you?");
    request(&scene, "r1", B, "send", A);
    scene.event(A, "send.accepted", &format!("{{'runId':'r1','targetKey':'{B}','hop':0}}"));
    scene.finished("r1", "ok", "");
    said(&scene, A, B, "r1", "fine");
    request(&scene, "r2", A, "reply", B);
    scene.finished("r2", "timeout", ",'reason':'deadline'");
    scene.event(A, "exchange.ended", "{'runId':'r1','rounds':2,'reason':'error'}");
    request(&scene, "r3", CHILD, "spawn", B);
    scene.event(B, "spawn.accepted", &format!("{{'runId':'r3','targetKey':'{CHILD}','hop':0}}"));
    let announce = format!("{{'runId':'r3','childKey':'{CHILD}','sink':'exec'}}");
    scene.event(B, "announce.requested", &announce).event(B, "announce.attempted", &announce);
    said(&scene, B, CHILD, "r3", "Status: ok");
    scene.event(B, "announce.delivered", &announce);
    scene.event(A, "spawn.refused", "{'verb':'sessions_spawn','target':'main','reason':'depth'}");
    assert_eq!(
        told(&scene),
        [
            "agent:main:main send telegram:7 ok",
            "telegram:7 reply agent:main:main timeout (deadline)",
            "telegram:7 spawn agent:main:subagent:1 open",
            "agent:main:subagent:1 announce telegram:7 delivered",
            "agent:main:main refusal main refused (depth)",
        ]
    );
    let deeds = deeds(&scene);
    assert_eq!(
        (deeds.all()[0].rounds, deeds.all()[0].text.as_deref()),
        (Some(2), Some("how are you?"))
    );
    assert_eq!(unjoined(deeds.all()), 0);
}

/// Goal: words whose send stands nowhere are a deed of their own and counted as unjoined where their sender is not known.
/// Method: two such turns.
#[test]
fn known_at_one_end() {
    let scene = Scene::new();
    said(&scene, B, A, "lost", "hello");
    scene.event(
        B,
        "turn",
        "{'sessionId':'p','role':'user','from':'inter_session','content':'who?'}",
    );
    assert_eq!(
        told(&scene),
        ["agent:main:main message telegram:7 said", "? message telegram:7 said"]
    );
    assert_eq!(unjoined(deeds(&scene).all()), 1);
}

/// Goal: an edge counts what it joins, each outcome by itself. Method: three sends with two outcomes one way, one back.
#[test]
fn edges() {
    let scene = Scene::new();
    for (id, from, to, end) in
        [("1", A, B, "ok"), ("2", A, B, "ok"), ("3", A, B, "error"), ("4", B, A, "")]
    {
        request(&scene, id, to, "send", from);
        scene.event(
            from,
            "send.accepted",
            &format!("{{'runId':'{id}','targetKey':'{to}','hop':0}}"),
        );
        if !end.is_empty() {
            scene.finished(id, end, "");
        }
    }
    let edges = graph(deeds(&scene).all());
    let told: Vec<_> = edges
        .iter()
        .map(|edge| format!("{} {} {} {:?}", edge.from, edge.to, edge.count, edge.outcomes))
        .collect();
    assert_eq!(
        told,
        [
            r#"agent:main:main telegram:7 3 {"error": 1, "ok": 2}"#,
            r#"telegram:7 agent:main:main 1 {"open": 1}"#,
        ]
    );
    assert!(edges[0].first < edges[0].last);
}
