//! The sessions view: scenes and the rows that must come of them.

use std::collections::BTreeMap;

use super::*;
use crate::clock::Timestamp;
use crate::projection::{Digestible, Projection};
use crate::session::event::SessionKind;
use crate::session::key::{AgentId, SessionKey};
use crate::session::scene::{START, Scene, gap};

/// Compares fields of a row, as they are shown, with JSON in which single quotes stand for double ones.
fn check(sessions: &Sessions, key: &str, expect: &str) {
    let row = sessions.row(&StreamName::new(key).unwrap()).unwrap_or_else(|| panic!("no {key}"));
    let row: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(&serde_json::to_string(row).unwrap()).unwrap();
    let expect: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(&expect.replace('\'', "\"")).unwrap();
    for (field, value) in expect {
        assert_eq!(row.get(&field), Some(&value), "{key}: {field}");
    }
}

fn second(n: i64) -> i64 {
    START + n * 1_000
}

/// Goal: a session's whole life shows in its row. Method: a chat that is opened, used, patched and reset, with each
/// field that follows.
#[test]
fn a_chat_and_its_row() {
    let scene = Scene::new();
    let more = ",'label':'desk','displayName':'परिवार','origin':{'channel':'telegram','to':'42','accountId':'a'}";
    scene.opened("telegram:42", "s1", more);
    check(
        &scene.sessions(),
        "telegram:42",
        &format!(
            "{{'key':'telegram:42','kind':'other','channel':'telegram','agentId':'main','sessionId':'s1','label':'desk',
              'displayName':'परिवार','createdAt':{0},'updatedAt':{0},'status':'idle','turns':0,'parts':1,
              'lastTo':'42','deliveryContext':{{'channel':'telegram','to':'42','accountId':'a'}},'lastHumanAt':null}}",
            second(1)
        ),
    );
    scene
        .turn("telegram:42", "s1", "user", ",'provenance':{'sourceChannel':'matrix'}", "hello")
        .turn("telegram:42", "s1", "assistant", ",'model':'m1','tokens':{'in':10,'out':2}", "hi")
        .event(
            "telegram:42",
            "session.patched",
            "{'sessionId':'s1','set':{'label':null,'sendPolicy':'deny','thinkingLevel':'high','x':1}}",
        );
    check(
        &scene.sessions(),
        "telegram:42",
        &format!(
            "{{'turns':2,'totalTokens':12,'model':'m1','lastChannel':'matrix','channel':'matrix','label':null,
              'sendPolicy':'deny','thinkingLevel':'high','updatedAt':{},'lastHumanAt':{}}}",
            second(3),
            second(2)
        ),
    );
    scene.event(
        "telegram:42",
        "session.reset",
        "{'sessionId':'s2','previousSessionId':'s1','reason':'manual','effectiveAt':'2026-04-01T00:00:05.000000Z'}",
    );
    let reset = "{'sessionId':'s2','turns':0,'totalTokens':0,'parts':2,'sendPolicy':'deny'}";
    check(&scene.sessions(), "telegram:42", reset);
    scene.event("telegram:42", "session.resumed", "{'sessionId':'s1','previousSessionId':'s2'}");
    let resumed = "{'sessionId':'s1','turns':2,'totalTokens':12,'parts':2,'status':'idle'}";
    check(&scene.sessions(), "telegram:42", resumed);
}

/// Goal: what happened elsewhere or earlier counts from when it happened, and an older event never makes a session
/// look older. Method: turns with `at`, out of order.
#[test]
fn at_beats_time() {
    let scene = Scene::new();
    scene.event("pi:1", "session.opened", "{'at':'2025-01-01T00:00:00.000000Z','sessionId':'s','kind':'other','agentId':'main','spawnDepth':0,'program':'pi','sourcePath':'a.jsonl'}");
    for text in ["2025-01-03T00:00:00.000000Z", "2025-01-02T00:00:00.000000Z"] {
        scene.event(
            "pi:1",
            "turn",
            &format!(
                "{{'at':'{text}','sessionId':'s','role':'user','from':'external','content':'x'}}"
            ),
        );
    }
    check(
        &scene.sessions(),
        "pi:1",
        "{'createdAt':1735689600000,'updatedAt':1735862400000,'lastHumanAt':1735862400000,'transcriptPath':'a.jsonl'}",
    );
}

/// Goal: a row says what another program knew and its events do not show: that a run had started, when, and that the last
/// one was cut short; and a patch with a value that is none leaves what is known. Method: a run without a start, patches
/// as an index has them, a thread that is a number.
#[test]
fn what_another_program_knew() {
    let scene = Scene::new();
    scene.opened("cli:a", "s", "").run("r", "cli:a", "s", ",'imported':true");
    let end = "{'at':'2026-04-01T00:01:40.000000Z','runId':'r','status':'ok','runtimeMs':40000}";
    scene.event("run:r", "run.finished", end);
    check(
        &scene.sessions(),
        "cli:a",
        "{'status':'done','startedAt':1775001660000,'systemSent':true,'abortedLastRun':false}",
    );
    scene.opened("cli:b", "t", ",'label':'desk'");
    let patched = |set: &str| {
        scene.event("cli:b", "session.patched", &format!("{{'sessionId':'t','set':{{{set}}}}}"));
    };
    patched(
        "'systemSent':true,'abortedLastRun':true,'deliveryContext':{'channel':'telegram','to':'7','threadId':42}",
    );
    let row = "{'systemSent':true,'abortedLastRun':true,'status':'interrupted','label':'desk','deliveryContext':{'channel':'telegram','to':'7','threadId':'42'}}";
    check(&scene.sessions(), "cli:b", row);
    patched("'label':7,'deliveryContext':'nowhere','abortedLastRun':false");
    check(&scene.sessions(), "cli:b", row);
    patched("'label':null,'deliveryContext':null");
    check(&scene.sessions(), "cli:b", "{'label':null,'deliveryContext':null,'systemSent':true}");
}

/// Goal: a row says which file holds the last turn of its current part. Method: files that begin at several places; a
/// session before its first turn, one in each file, one that was imported, one whose new part is empty.
#[test]
fn files_of_last_turns() {
    let scene = Scene::new();
    scene.opened("cli:a", "a", "").opened("cli:b", "b", "").opened("cli:c", "c", "");
    scene.opened("cli:d", "d", "").event(
        "pi:e",
        "session.opened",
        "{'sessionId':'e','kind':'other','agentId':'main','spawnDepth':0,'sourcePath':'e.jsonl'}",
    );
    for (key, part) in
        [("cli:b", "b"), ("cli:c", "c"), ("cli:d", "d"), ("pi:e", "e"), ("cli:c", "c")]
    {
        scene.turn(key, part, "user", "", "x");
    }
    scene.event("cli:d", "session.reset", "{'sessionId':'n','previousSessionId':'d','reason':'manual','effectiveAt':'2026-04-01T00:00:05.000000Z'}");
    let files = [(Seq(1), "1".into()), (Seq(6), "6".into()), (Seq(7), "7".into())];
    let sessions = scene.sessions();
    let file = |key: &str| {
        let mut row = sessions.row(&StreamName::new(key).unwrap()).unwrap().clone();
        sessions.locate(&mut row, &files);
        row.transcript_path
    };
    let found = ["cli:a", "cli:b", "cli:c", "cli:d", "pi:e"].map(file);
    assert_eq!(
        found.each_ref().map(Option::as_deref),
        [None, Some("6"), Some("7"), None, Some("e.jsonl")]
    );
}

/// Goal: a message that comes in pieces counts once, by its largest numbers. Method: pieces that grow, with a tool
/// result between them, beside a message without an id.
#[test]
fn pieces_of_a_message_count_once() {
    let scene = Scene::new();
    let piece = |n: u64| format!(",'messageId':'m','tokens':{{'in':100,'out':{n}}}");
    scene
        .opened("cc:1", "s", "")
        .turn("cc:1", "s", "user", "", "do it")
        .turn("cc:1", "s", "assistant", &piece(1), "a")
        .turn("cc:1", "s", "toolResult", ",'callId':'c'", "r")
        .turn("cc:1", "s", "assistant", &piece(40), "b")
        .turn("cc:1", "s", "assistant", &piece(7), "c")
        .turn("cc:1", "s", "assistant", ",'tokens':{'in':1,'out':1}", "d");
    check(&scene.sessions(), "cc:1", "{'turns':3,'totalTokens':142}");
}

/// Goal: the status follows the runs. Method: one run after another through its phases, the row looked at each time.
#[test]
fn runs_decide_the_status() {
    let scene = Scene::new();
    let key = "agent:main:main";
    let status = |expect: &str| check(&scene.sessions(), key, expect);
    scene.opened(key, "s", "").run("r1", key, "s", "");
    status("{'status':'waiting','openRuns':1,'systemSent':false}");
    scene.event("run:r1", "run.claimed", "{'runId':'r1','worker':'w','pid':1,'processStart':'1','bootId':'b','host':'h','leaseUntil':'2026-04-01T00:00:05.000000Z'}");
    status("{'status':'running','startedAt':null}");
    scene.event("run:r1", "run.started", "{'runId':'r1','command':['a'],'cwd':'/'}");
    status(&format!("{{'status':'running','startedAt':{},'systemSent':true}}", second(4)));
    scene.run("r2", key, "s", "").finished("r1", "ok", "");
    status("{'status':'waiting','openRuns':1,'abortedLastRun':false}");
    for (run, word, shown, aborted) in [
        ("r2", "error", "failed", false),
        ("r3", "timeout", "timeout", true),
        ("r4", "killed", "killed", true),
        ("r5", "lost", "interrupted", true),
        ("r6", "interrupted", "interrupted", true),
        ("r7", "ok", "done", false),
    ] {
        scene.run(run, key, "s", "").finished(run, word, "");
        status(&format!("{{'status':'{shown}','openRuns':0,'abortedLastRun':{aborted}}}"));
    }
    scene.finished("r3", "ok", "").finished("r0", "killed", "");
    status("{'status':'done','openRuns':0}");
}

/// Goal: tokens that a run reports are counted, and not again when its turns told them. Method: a run whose turn tells
/// a part of them, and one whose turns tell none.
#[test]
fn tokens_of_runs() {
    let scene = Scene::new();
    let key = "cli:default";
    scene
        .opened(key, "s", "")
        .run("r1", key, "s", "")
        .turn(key, "s", "assistant", ",'runId':'r1','tokens':{'in':10,'out':5}", "a")
        .finished("r1", "ok", ",'tokens':{'in':12,'out':6}");
    check(&scene.sessions(), key, "{'totalTokens':18}");
    scene.run("r2", key, "s", "").finished("r2", "ok", ",'tokens':{'in':1,'out':1}");
    check(&scene.sessions(), key, "{'totalTokens':20}");
}

/// Goal: parents are known however it is told. Method: a child whose opening says it, one that is only accepted
/// afterwards, one that is accepted before it opens.
#[test]
fn children_and_announces() {
    let scene = Scene::new();
    let child = |n: u32| format!("agent:main:subagent:{n}");
    let accepted = |n: u32| format!("{{'runId':'r{n}','targetKey':'{}','hop':0}}", child(n));
    scene
        .opened("cli:default", "s", "")
        .opened(&child(1), "c1", ",'parentKey':'cli:default'")
        .opened(&child(2), "c2", "")
        .event("cli:default", "spawn.accepted", &accepted(2))
        .event("cli:default", "spawn.accepted", &accepted(3))
        .opened(&child(3), "c3", "");
    for n in 1..=3 {
        check(&scene.sessions(), &child(n), "{'parentKey':'cli:default'}");
    }
    let announce = "{'runId':'r1','childKey':'agent:main:subagent:1'}";
    scene.event("cli:default", "announce.requested", announce);
    check(&scene.sessions(), "cli:default", "{'pendingAnnounces':1}");
    scene.event("cli:default", "announce.attempted", announce);
    check(&scene.sessions(), "cli:default", "{'pendingAnnounces':1}");
    scene.event("cli:default", "announce.delivered", announce);
    check(&scene.sessions(), "cli:default", "{'pendingAnnounces':0}");
}

/// Goal: the channel is told as each kind tells it. Method: one session a kind.
#[test]
fn channels() {
    let scene = Scene::new();
    scene
        .opened("agent:main:slack:group:g", "g", ",'channel':'slack'")
        .turn("agent:main:slack:group:g", "g", "user", ",'provenance':{'sourceChannel':'cli'}", "x")
        .opened("cron:j", "c", ",'channel':'slack'")
        .opened("agent:main:main", "m", "");
    check(&scene.sessions(), "agent:main:slack:group:g", "{'channel':'slack','lastChannel':'cli'}");
    check(&scene.sessions(), "cron:j", "{'channel':'internal'}");
    check(&scene.sessions(), "agent:main:main", "{'channel':'unknown'}");
}

/// Goal: a list is newest first, filtered, bounded and the same each time. Method: sessions of several kinds and ages,
/// two of one age, one archived, one reserved.
#[test]
fn lists() {
    let scene = Scene::new();
    for (key, day) in [
        ("agent:main:main", 1),
        ("cron:j", 4),
        ("x:b", 3),
        ("x:a", 3),
        ("cli:old", 2),
        ("global", 5),
    ] {
        let kind = SessionKey::of_stream(&StreamName::new(key).unwrap()).unwrap().kind_at_opening();
        scene.event(key, "session.opened", &format!("{{'at':'2026-03-0{day}T00:00:00.000000Z','sessionId':'{key}','kind':'{kind}','agentId':'main','spawnDepth':0}}"));
    }
    let archived =
        "{'sessionId':'s','reason':'manual','effectiveAt':'2026-04-01T00:00:05.000000Z'}";
    scene.event("cli:old", "session.archived", archived);
    let sessions = scene.sessions();
    let rules = TimeRules::none();
    let lens = Lens { rules: &rules, now: Timestamp::from_millis(START) };
    let list = |query: &ListQuery| {
        let list = sessions.list(query, &lens);
        let keys: Vec<&str> = list.rows.iter().map(|row| row.key.as_str()).collect();
        format!("{} of {}", keys.join(" "), list.total)
    };
    let all = ListQuery::default();
    assert_eq!(list(&all), "cron:j x:a x:b agent:main:main of 4");
    assert_eq!(list(&ListQuery { limit: Some(2), ..all.clone() }), "cron:j x:a of 4");
    assert_eq!(list(&ListQuery { archived: Archived::Only, ..all.clone() }), "cli:old of 1");
    let with = ListQuery { archived: Archived::With, shape: Shape::ChannelChat, ..all.clone() };
    assert_eq!(list(&with), "x:a x:b cli:old of 3");
    let kinds = vec![SessionKind::Cron, SessionKind::Main];
    assert_eq!(list(&ListQuery { kinds, ..ListQuery::default() }), "cron:j agent:main:main of 2");
    let noon = Timestamp::from_text(b"2026-03-04T12:00:00.000000Z").unwrap();
    let active = |minutes| ListQuery { active: Some((noon, minutes)), ..all.clone() };
    assert_eq!(list(&active(36 * 60)), "cron:j x:a x:b of 3");
    assert_eq!(list(&active(36 * 60 - 1)), "cron:j of 1");
    assert_eq!(list(&active(u64::MAX)), "cron:j x:a x:b agent:main:main of 4");
}

/// Goal: somebody who writes again brings an archived session back. Method: a turn of the agent, then one of a person.
#[test]
fn archived_until_somebody_writes() {
    let scene = Scene::new();
    let archived =
        "{'sessionId':'s','reason':'manual','effectiveAt':'2026-04-01T00:00:05.000000Z'}";
    scene.opened("cli:1", "s", "").event("cli:1", "session.archived", archived);
    scene.turn("cli:1", "s", "assistant", "", "late");
    check(&scene.sessions(), "cli:1", "{'status':'archived'}");
    scene.turn("cli:1", "s", "user", "", "again");
    check(&scene.sessions(), "cli:1", "{'status':'idle'}");
}

/// Goal: damage shows at the sessions that it touched. Method: a gap that names a stream, before and after its row; a
/// gap that names none but takes a version away; refusals before a session opens, which are no damage.
#[test]
fn damage_is_marked() {
    let scene = Scene::new();
    scene
        .event("cli:1", "access.denied", "{'verb':'v','target':'t','reason':'r'}")
        .opened("cli:1", "s", "")
        .turn("cli:1", "s", "user", "", "a")
        .turn("cli:1", "s", "user", "", "b");
    let mut sessions = scene.sessions();
    check(&sessions, "cli:1", "{'status':'idle'}");
    sessions.gap(&gap(&["cli:1", "cli:lost"]));
    check(&sessions, "cli:1", "{'status':'damaged','turns':2}");
    assert_eq!(sessions.losses_of_unknown_streams(), 0);

    let sessions = scene.sessions_without(3..=3);
    check(&sessions, "cli:1", "{'status':'damaged','turns':1}");
    assert_eq!(sessions.losses_of_unknown_streams(), 1);

    let mut sessions = Sessions::default();
    sessions.gap(&gap(&["cli:1"]));
    for record in scene.records() {
        sessions.apply(&record.fields());
    }
    check(&sessions, "cli:1", "{'status':'damaged'}");
}

/// Goal: turns whose session never opened still show. Method: the opening is lost.
#[test]
fn a_session_without_its_opening() {
    let scene = Scene::new();
    scene.opened("cron:j", "s", ",'label':'x'").turn("cron:j", "s", "user", "", "a");
    let sessions = scene.sessions_without(1..=1);
    check(
        &sessions,
        "cron:j",
        "{'kind':'cron','status':'damaged','turns':1,'sessionId':'s','agentId':''}",
    );
}

/// Goal: a name finds the one session that is meant or says why not. Method: names against four sessions.
#[test]
fn names() {
    let scene = Scene::new();
    scene
        .opened("agent:main:main", "0198c0de-aaaa", "")
        .opened("telegram:1234", "0198c0de-bbbb", "")
        .opened("telegram:1299", "5f3d2c1b", "")
        .event("telegram:1299", "session.reset", "{'sessionId':'5f3d9999','previousSessionId':'5f3d2c1b','reason':'manual','effectiveAt':'2026-04-01T00:00:05.000000Z'}")
        .opened("cc:1", "telegram-like", "");
    let mut sessions = scene.sessions();
    sessions.gap(&gap(&["cli:lost"]));
    let check = |name: &str, names: Names, expect: &str| {
        let got = match sessions.find(name, &AgentId::parse("main").unwrap(), names) {
            Ok(Found { key, part: None }) => key.to_string(),
            Ok(Found { key, part: Some(part) }) => format!("{key} {part}"),
            Err(error) => format!("{} {}", error.kind().code(), error.message()),
        };
        assert_eq!(got, expect, "{name}");
    };
    check("main", Names::Whole, "agent:main:main");
    check("Telegram:1234", Names::Whole, "telegram:1234");
    check("5f3d2c1b", Names::Whole, "telegram:1299 5f3d2c1b");
    check("0198c0de-a", Names::Whole, "not_found there is no session \"0198c0de-a\"");
    check("0198c0de-a", Names::Prefix, "agent:main:main 0198c0de-aaaa");
    check("telegram:123", Names::Prefix, "telegram:1234");
    check(
        "tele",
        Names::Prefix,
        "ambiguous \"tele\" is ambiguous: it fits telegram:1234, telegram:1299, telegram-like (cc:1)",
    );
    check(
        "5f3d",
        Names::Prefix,
        "ambiguous \"5f3d\" is ambiguous: it fits 5f3d2c1b (telegram:1299), 5f3d9999 (telegram:1299)",
    );
    check("5f3", Names::Prefix, "not_found there is no session \"5f3\"");
    check("", Names::Prefix, "not_found there is no session \"\"");
    check(
        "cli:lost",
        Names::Prefix,
        "corrupt every event of the session cli:lost lies in a damaged range",
    );
}

/// Goal: an id that two sessions have names neither, and what somebody does not see makes nothing ambiguous; a key stays
/// one. Method: a job and its run with the id of one transcript.
#[test]
fn one_id_under_two_keys() {
    let scene = Scene::new();
    scene.opened("cron:j1", "same", "").opened("cron:j1:run:r1", "same", "");
    let sessions = scene.sessions();
    let main = AgentId::parse("main").unwrap();
    let error = sessions.find("same", &main, Names::Whole).unwrap_err();
    assert_eq!(error.kind().code(), "ambiguous");
    assert!(error.message().contains("same (cron:j1), same (cron:j1:run:r1)"), "{error}");
    for key in ["cron:j1", "cron:j1:run:r1"] {
        assert_eq!(sessions.find(key, &main, Names::Whole).unwrap().key.as_str(), key);
        let sees = |name: &StreamName| name.as_str() == key;
        let seen = sessions.find_among("same", &main, Names::Whole, &sees).unwrap();
        assert_eq!((seen.key.as_str(), seen.part.as_deref()), (key, Some("same")));
    }
    let unknown = sessions.find("other", &main, Names::Whole).unwrap_err();
    assert_eq!(unknown.kind().code(), "not_found");
}

/// Goal: the fold is total. Method: events of known types with payloads of other shapes, and types of nobody.
#[test]
fn odd_payloads_are_counted_and_passed_over() {
    let scene = Scene::new();
    scene.opened("cli:1", "s", "");
    let mut records = scene.records();
    let mut odd = records.remove(0);
    let mut sessions = scene.sessions();
    let before = sessions.row(&odd.stream).cloned();
    for (kind, data) in [
        ("turn", "{}"),
        ("session.opened", "{\"sessionId\":[]}"),
        ("run.requested", "{}"),
        ("x.acme.note", "{\"sessionId\":1}"),
        ("turn", "{\"v\":2}"),
    ] {
        odd.kind = crate::id::EventType::new(kind).unwrap();
        odd.data = crate::format::Payload::from_json(data).unwrap();
        odd.version = odd.version.next();
        sessions.apply(&odd.fields());
    }
    assert_eq!(sessions.passed_over(), 4);
    assert_eq!(sessions.row(&odd.stream), before.as_ref());
}

/// Goal: a digest of events that are only counted is worth what they are worth one by one. Method: a stream without a row
/// in which events of a run stand between others, in each order.
#[test]
fn counted_events_in_one_digest() {
    let scene = Scene::new();
    scene.opened("cli:1", "s", "");
    let mut record = scene.records().remove(0);
    record.data = crate::format::Payload::from_json("{}").unwrap();
    for kinds in [["x.acme.note", "run.output"], ["run.output", "x.acme.note"]] {
        let (mut each, mut together) = (Sessions::default(), Sessions::default());
        let mut digest = Digest::default();
        for (kind, version) in kinds.into_iter().zip(1..) {
            record.kind = crate::id::EventType::new(kind).unwrap();
            record.version = crate::id::Version(version);
            each.apply(&record.fields());
            digest.apply(&record.fields());
        }
        together.take(digest);
        let text = |sessions: &Sessions| serde_json::to_string(sessions).unwrap();
        assert_eq!(text(&together), text(&each), "{kinds:?}");
    }
}

const CHILD: &str = "agent:main:subagent:c";

/// A child that was spawned with these words in its acceptance, and whose run ended at second 5.
fn child(more: &str) -> Scene {
    let scene = Scene::new();
    scene.opened("agent:main:main", "s", "").opened(CHILD, "c1", "");
    scene.run("r", CHILD, "c1", "");
    let accepted =
        format!("{{'runId':'r','targetKey':'{CHILD}','targetSessionId':'c1','hop':0{more}}}");
    scene.event("agent:main:main", "spawn.accepted", &accepted).finished("r", "ok", "");
    scene
}

fn status_at(scene: &Scene, rules: &TimeRules, key: &str, at_second: i64) -> String {
    let lens = Lens { rules, now: Timestamp::from_millis(second(at_second)) };
    let sessions = scene.sessions();
    let row = sessions.row_at(&StreamName::new(key).unwrap(), &lens).unwrap();
    let listed = sessions.list(&ListQuery::default(), &lens);
    let there = listed.rows.iter().any(|row| row.key.as_str() == key);
    format!("{}{}", row.status, if there { "" } else { ", not listed" })
}

fn after(minutes: u64) -> TimeRules {
    let archive_after = Some(std::time::Duration::from_secs(60 * minutes));
    TimeRules { archive_after, ..TimeRules::none() }
}

/// Goal: a child leaves the lists so long after its end, not before its announce is settled, and every view shows it
/// from that moment on although no event says so. Method: the seconds around the moments; then the event.
#[test]
fn children_leave_the_lists() {
    let scene = child("");
    assert_eq!(status_at(&scene, &after(1), CHILD, 64), "done");
    assert_eq!(status_at(&scene, &after(1), CHILD, 65), "archived, not listed");
    assert_eq!(status_at(&scene, &TimeRules::none(), CHILD, 1_000_000), "done");
    let announce = |kind: &str| {
        let data = format!("{{'runId':'r','childKey':'{CHILD}'}}");
        scene.event("agent:main:main", kind, &data);
    };
    announce("announce.requested");
    assert_eq!(status_at(&scene, &after(1), CHILD, 1_000), "done");
    announce("announce.delivered");
    assert_eq!(status_at(&scene, &after(1), CHILD, 66), "done");
    assert_eq!(status_at(&scene, &after(1), CHILD, 67), "archived, not listed");
    let rules = after(1);
    let lens = |at| Lens { rules: &rules, now: Timestamp::from_millis(second(at)) };
    assert_eq!(scene.sessions().archives_due(&lens(66)), []);
    let due = scene.sessions().archives_due(&lens(1_000));
    let [(stream, event)] = due.as_slice() else { panic!("{due:?}") };
    assert_eq!((stream.as_str(), event.effective_at), (CHILD, Timestamp::from_millis(second(67))));
    let data = serde_json::to_string(event).unwrap();
    assert!(data.contains("archiveAfterMinutes\",\"value\":1"), "{data}");
    scene.event(CHILD, "session.archived", &data);
    assert_eq!(scene.sessions().archives_due(&lens(1_000)), []);
    assert_eq!(status_at(&scene, &after(1), CHILD, 1_000), "archived, not listed");
}

/// Goal: what a spawn asks for decides how its child ends. Method: cleanup and mode, before and after the time.
#[test]
fn what_becomes_of_children() {
    let delete = child(",'cleanup':'delete'");
    assert_eq!(status_at(&delete, &TimeRules::none(), CHILD, 5), "archived, not listed");
    let open = child(",'mode':'session','cleanup':'keep'");
    assert_eq!(status_at(&open, &after(1), CHILD, 1_000_000), "done");
    let busy = child("");
    busy.run("r2", CHILD, "c1", "");
    assert_eq!(status_at(&busy, &after(1), CHILD, 1_000_000), "waiting");
    let imported = child(",'at':'2025-01-01T00:00:00.000000Z'");
    assert_eq!(status_at(&imported, &after(1), CHILD, 1_000_000), "done");
}

/// Goal: a part that expired is shown as expired from the boundary on, without any event; a run puts it off. Method: an
/// idle rule over a chat, looked at before, at and behind the boundary.
#[test]
fn parts_expire() {
    let scene = Scene::new();
    scene.opened("telegram:1", "s", "").turn("telegram:1", "s", "user", "", "hello");
    let mut rules = TimeRules::none();
    rules.resets.channel_chats_idle_minutes = Some(1);
    let status = |scene: &Scene, at| status_at(scene, &rules, "telegram:1", at);
    assert_eq!(status(&scene, 62), "idle");
    assert_eq!(status(&scene, 63), "expired");
    scene.turn("telegram:1", "s", "assistant", "", "no person").event(
        "telegram:1",
        "turn",
        "{'sessionId':'s','role':'user','from':'inter_session','content':'no person either'}",
    );
    assert_eq!(status(&scene, 63), "expired");
    scene.run("r", "telegram:1", "s", "");
    assert_eq!(status(&scene, 63), "waiting");
    let lens = Lens { rules: &rules, now: Timestamp::from_millis(second(63)) };
    let key = StreamName::new("telegram:1").unwrap();
    let row = scene.sessions().row_at(&key, &lens).unwrap();
    assert_eq!((row.reset_deferred_by.as_deref(), row.expired_at), (Some("r"), None));
    let late = Lens { now: Timestamp::from_millis(second(62 + 3_600)), ..lens };
    let row = scene.sessions().row_at(&key, &late).unwrap();
    assert_eq!(row.expired_at, Some(Timestamp::from_millis(second(62))));
    scene.finished("r", "ok", "");
    scene.event("telegram:1", "session.reset", "{'sessionId':'t','previousSessionId':'s','reason':'idle','effectiveAt':'2026-04-01T00:01:02.000000Z'}");
    assert_eq!(status(&scene, 63), "done");
}

/// Goal: the id that an agent gives its own session is known for the next run of the same agent on the same part, until a
/// run fails without telling any. Method: runs that tell, are killed, fail; another agent, another part.
#[test]
fn the_session_of_the_agents_own() {
    let scene = Scene::new();
    scene.opened("cli:a", "p", "");
    let key = StreamName::new("cli:a").unwrap();
    let known = |agent: &str, part: &str| {
        scene.sessions().agent_session(&key, part, agent).map(str::to_owned)
    };
    let mut run = 0;
    let mut ends = |status: &str, more: &str| {
        run += 1;
        let id = format!("r{run}");
        scene.run(&id, "cli:a", "p", "").finished(&id, status, more);
    };
    assert_eq!(known("main", "p"), None);
    ends("ok", ",'agentSessionId':'x'");
    ends("killed", "");
    ends("ok", "");
    assert_eq!(known("main", "p").as_deref(), Some("x"));
    assert_eq!((known("bob", "p"), known("main", "q")), (None, None));
    ends("error", ",'agentSessionId':'y'");
    assert_eq!(known("main", "p").as_deref(), Some("y"));
    ends("error", "");
    assert_eq!(known("main", "p"), None);
}
