//! The audit view: scenes and the lines that must come of them.

use super::*;
use crate::session::scene::Scene;

/// A message as a line: who, to whom, what sort, then what else is known.
fn line(m: &Message) -> String {
    let mut line = format!("{} {} -> {} {}", m.seq, m.from, m.to, m.kind);
    let mut add = |name: &str, value: Option<String>| {
        line.extend(value.map(|value| format!(" {name}={value}")));
    };
    add("run", m.run.clone());
    add("round", m.round.map(|round| round.to_string()));
    add("decision", m.decision.clone());
    add("reason", m.reason.clone());
    add("text", m.text.clone());
    line
}

fn check(scene: &Scene, expect: &[&str]) {
    let mut audit = Audit::default();
    let messages: Vec<Message> =
        scene.records().iter().filter_map(|record| audit.message(record, 20)).collect();
    assert_eq!(messages.iter().map(line).collect::<Vec<_>>(), expect);
    let mut audit = Audit::default();
    let records = scene.records();
    let silent: Vec<Message> = records.iter().filter_map(|r| audit.message(r, 0)).collect();
    let without = |message: &Message| Message { text: None, ..message.clone() };
    assert_eq!(silent, messages.iter().map(without).collect::<Vec<_>>());
}

fn sent(scene: &Scene, key: &str, provenance: &str, content: &str) {
    scene.event(
        key,
        "turn",
        &format!(
            "{{'sessionId':'s','role':'user','from':'inter_session'{provenance},'content':{content}}}"
        ),
    );
}

const OPS: &str = "agent:ops:main";

/// Goal: an exchange reads as what it is. Method: a send with its turn, its run, a second round and its end.
#[test]
fn a_send_and_its_rounds() {
    let scene = Scene::new();
    scene.opened("cli:a", "a", "").turn("cli:a", "a", "user", "", "ask ops");
    sent(
        &scene,
        OPS,
        ",'provenance':{'sourceSessionKey':'cli:a','runId':'r1','round':1}",
        "'how\\nare you?'",
    );
    scene
        .run("r1", OPS, "s", ",'requesterKey':'cli:a'")
        .event(
            "cli:a",
            "send.accepted",
            "{'runId':'r1','targetKey':'agent:ops:main','hop':0,'round':1}",
        )
        .turn(OPS, "s", "assistant", ",'runId':'r1'", "fine")
        .finished("r1", "ok", "");
    sent(
        &scene,
        "cli:a",
        ",'provenance':{'sourceSessionKey':'agent:ops:main','runId':'r2','round':2}",
        "[{'type':'text','text':'and you, how do you do?'},{'type':'image'}]",
    );
    scene
        .event("cli:a", "exchange.ended", "{'runId':'r1','rounds':2,'reason':'reply_skip'}")
        .finished("r9", "ok", "");
    check(
        &scene,
        &[
            "3 cli:a -> agent:ops:main turn run=r1 round=1 text=how are you?",
            "5 cli:a -> agent:ops:main send run=r1 round=1 decision=accepted",
            "7 agent:ops:main -> cli:a send run=r1 decision=ok",
            "8 agent:ops:main -> cli:a turn run=r2 round=2 text=and you, how do you…",
            "9 cli:a -> agent:ops:main send run=r1 round=2 decision=ended reason=reply_skip",
        ],
    );
}

/// Goal: a spawn reads from the request to the announce and the delivery. Method: a child that fails.
#[test]
fn a_spawn_and_its_announce() {
    let scene = Scene::new();
    let child = "agent:main:subagent:1";
    scene.opened(child, "s", ",'parentKey':'cli:a'");
    sent(&scene, child, ",'provenance':{'sourceTool':'sessions_spawn'}", "'count words'");
    scene
        .event("run:r1", "run.requested", "{'runId':'r1','sessionKey':'agent:main:subagent:1','sessionId':'s','kind':'spawn','agentId':'main','requesterKey':'cli:a','chainId':'c','hop':0,'timeoutSeconds':0,'deliver':false}")
        .event("cli:a", "spawn.accepted", "{'runId':'r1','hop':0,'label':'count'}")
        .finished("r1", "timeout", ",'reason':'deadline'")
        .event("cli:a", "announce.requested", "{'runId':'r1','childKey':'agent:main:subagent:1','text':'Status: timeout'}")
        .event("cli:a", "announce.failed", "{'runId':'r1','childKey':'agent:main:subagent:1','reason':'no_route'}")
        .event("cli:a", "delivery.suppressed", "{'runId':'r1','reason':'silent','target':{'channel':'telegram','to':'42'}}");
    check(
        &scene,
        &[
            "2 cli:a -> agent:main:subagent:1 turn text=count words",
            "4 cli:a -> agent:main:subagent:1 spawn run=r1 decision=accepted text=count",
            "5 agent:main:subagent:1 -> cli:a spawn run=r1 decision=timeout reason=deadline",
            "6 agent:main:subagent:1 -> cli:a announce run=r1 decision=requested text=Status: timeout",
            "7 agent:main:subagent:1 -> cli:a announce run=r1 decision=failed reason=no_route",
            "8 cli:a -> telegram:42 delivery run=r1 decision=suppressed reason=silent",
        ],
    );
}

/// Goal: refusals and policy show with their reasons. Method: one event of each type.
#[test]
fn refusals_and_policy() {
    let scene = Scene::new();
    scene
        .event("cli:a", "send.refused", "{'verb':'sessions_send','target':'ops','reason':'loop'}")
        .event("cli:a", "spawn.refused", "{'verb':'sessions_spawn','target':'main','reason':'depth','detail':'1'}")
        .event("cli:a", "access.denied", "{'verb':'sessions_history','target':'x:1','reason':'visibility'}")
        .event("cli:a", "turn.blocked", "{'role':'user','from':'external','gate':'size','rule':'bytes','bytes':9,'sha256':'00','provenance':{'sender':'telegram:42'}}")
        .event("policy", "policy.changed", "{'path':'session.scope','old':null,'new':'global','file':'annals.json5'}");
    check(
        &scene,
        &[
            "1 cli:a -> ops refusal decision=refused reason=loop",
            "2 cli:a -> main refusal decision=refused reason=depth text=1",
            "3 cli:a -> x:1 refusal decision=denied reason=visibility",
            "4 telegram:42 -> cli:a refusal decision=blocked reason=size/bytes",
            "5 annals.json5 -> session.scope policy decision=changed text=null -> \"global\"",
        ],
    );
}

/// Goal: what is not known is said to be unknown, and what cannot be read is passed over. Method: unjoined imports,
/// a turn whose run works elsewhere, a run with a requester that nobody named, a payload of a later version.
#[test]
fn unknown_ends() {
    let scene = Scene::new();
    scene.event("pi:1", "send.accepted", "{'runId':'r1','hop':0}");
    sent(&scene, "pi:2", "", "'hello'");
    scene.run("r2", "pi:9", "s", ",'requesterKey':'pi:8'");
    sent(&scene, "pi:2", ",'runId':'r2','silent':'NO_REPLY'", "{'odd':1}");
    scene
        .event("pi:1", "send.accepted", "{'runId':'r3','hop':0,'label':'ops'}")
        .event("pi:1", "delivery.requested", "{}")
        .event("pi:1", "send.accepted", "{'v':2,'runId':'r4'}")
        .event("pi:1", "x.acme.note", "{}");
    check(
        &scene,
        &[
            "1 pi:1 -> ? send run=r1 decision=accepted",
            "2 ? -> pi:2 turn text=hello",
            "4 ? -> pi:2 turn run=r2 decision=silent",
            "5 pi:1 -> ops send run=r3 decision=accepted",
            "6 pi:1 -> ? delivery decision=requested",
        ],
    );
}
