//! State folders of OpenClaw: keys, parts, what the index says, and the files that lie between the transcripts.

use super::*;
use crate::id::StreamName;
use crate::session::index::Names;
use crate::session::key::AgentId;

/// Goal: a session that a person began beside another one is its child and no spawn; a folder that no agent can own and
/// an id that no key can hold stop nothing. Method: one of each.
#[test]
fn odd_folders_and_ids() {
    let long = "l".repeat(2_000);
    let mut tree = state(
        r#"{"agent:main:main":{"sessionId":"a"},"agent:main:side":{"sessionId":"b","parentSessionKey":"agent:main:main"},"agent:main:none":{"sessionId":""}}"#,
        &[
            ("a.jsonl", one("a", "09:00:00", "x")),
            ("b.jsonl", one("b", "09:01:00", "mine")),
            ("c.jsonl", one(&long, "09:01:00", "long")),
        ],
    );
    tree.put("o/agents/No Agent!/sessions/d.jsonl", one("d", "09:00:00", "x"));
    let world = World::new();
    let report = world.import(&tree, "o");
    assert_eq!(report.totals().sessions, 3);
    assert_eq!(report.sources[0].copies.len(), 1);
    assert_eq!(world.stream("agent:main:side")[1], r#"user external "mine""#);
    let side = world.sessions().row(&StreamName::new("agent:main:side").unwrap()).unwrap().clone();
    assert_eq!(side.parent_key.as_deref(), Some("agent:main:main"));
    assert!(
        report.sources[0]
            .sessions
            .iter()
            .any(|s| s.key.starts_with("openclaw:") && s.key.len() == 73)
    );
}

/// Goal: a row says everything that the index says of its session. Method: an entry with all that a row has a place for, in
/// the spellings that occur; one that knows nothing but where the session came from.
#[test]
fn rows_are_whole() {
    let full = r#"{"sessionId":"a","updatedAt":1772355601000,"chatType":"group","channel":"discord","displayName":"Family","label":"fam",
        "model":"m-1","contextTokens":32000,"thinkingLevel":"high","verboseLevel":"on","systemSent":true,"abortedLastRun":true,
        "sendPolicy":"deny","lastChannel":"discord","lastTo":"g-1","deliveryContext":{"channel":"discord","to":"g-1","accountId":"bot","threadId":42}}"#;
    let bare = r#"{"sessionId":"b","origin":{"provider":"discord","to":"peer"}}"#;
    let index = format!(
        r#"{{"agent:main:discord:group:g-1":{},"agent:main:main":{bare}}}"#,
        full.replace('\n', "")
    );
    let files = [("a.jsonl", one("a", "09:00:00", "x")), ("b.jsonl", one("b", "09:00:00", "y"))];
    let world = World::new();
    world.import(&state(&index, &files), "o");
    let sessions = world.sessions();
    let check = |key: &str, expect: &str| {
        let row = serde_json::to_value(sessions.row(&StreamName::new(key).unwrap()).unwrap());
        let (row, expect): (Value, Value) = (row.unwrap(), serde_json::from_str(expect).unwrap());
        for (field, value) in expect.as_object().unwrap() {
            assert_eq!(&row[field], value, "{field} of {key}");
        }
    };
    check(
        "agent:main:discord:group:g-1",
        r#"{"kind":"group","channel":"discord","displayName":"Family","label":"fam","model":"m-1","contextTokens":32000,
            "thinkingLevel":"high","verboseLevel":"on","systemSent":true,"abortedLastRun":true,"sendPolicy":"deny",
            "lastChannel":"discord","lastTo":"g-1","chatType":"group","agentId":"main","status":"interrupted",
            "deliveryContext":{"channel":"discord","to":"g-1","accountId":"bot","threadId":"42"},"sessionId":"a",
            "transcriptPath":"o/agents/main/sessions/a.jsonl","turns":1,"parts":1}"#,
    );
    check(
        "agent:main:main",
        r#"{"kind":"main","channel":"discord","lastChannel":"discord","lastTo":"peer","systemSent":false,"status":"idle"}"#,
    );
}

/// Goal: archives of resets are earlier parts of the key that went on, and of no key when that is not certain. Method:
/// one key and an archive; two keys, of which one goes on at once; two keys that go on later; a family in the index.
#[test]
fn archives_of_resets() {
    let archive = ("old.jsonl.reset.2026-03-01T09-30-00.000Z", one("old", "09:00:00", "before"));
    let a = ("a.jsonl", one("a", "10:00:00", "after"));
    let parts = [
        "opened old",
        r#"user external "before""#,
        "reset old > a",
        "opened a",
        r#"user external "after""#,
    ];
    let world = World::new();
    let tree = state(r#"{"agent:main:main":{"sessionId":"a"}}"#, &[archive.clone(), a.clone()]);
    world.import(&tree, "o");
    assert_eq!(world.stream("agent:main:main"), parts);
    assert_eq!(world.import(&tree, "o").totals().new, 0);

    let two =
        r#"{"agent:main:main":{"sessionId":"a"},"agent:main:web:direct:1":{"sessionId":"b"}}"#;
    let soon = ("b.jsonl", one("b", "09:30:02", "soon"));
    let world = World::new();
    world.import(&state(two, &[archive.clone(), a.clone(), soon]), "o");
    assert_eq!(world.stream("agent:main:web:direct:1")[2], "reset old > b");
    assert_eq!(world.stream("agent:main:main")[0], "opened a");

    let later = ("b.jsonl", one("b", "10:00:01", "later"));
    let world = World::new();
    world.import(&state(two, &[archive.clone(), a.clone(), later.clone()]), "o");
    assert_eq!(
        world.stream("openclaw:old"),
        ["opened old", r#"user external "before""#, "archived old ended",]
    );

    let family =
        two.replace(r#""sessionId":"a""#, r#""sessionId":"a","usageFamilySessionIds":["old","a"]"#);
    let world = World::new();
    world.import(&state(&family, &[archive, a, later]), "o");
    assert_eq!(world.stream("agent:main:main")[..5], parts);
}

/// Goal: what was decided stands when the source changes. Method: a session is imported while it lives, then reset; an
/// archive that was missing turns up after its successor; an index that is lost and comes back.
#[test]
fn decisions_stand() {
    let index = r#"{"agent:main:main":{"sessionId":"a"}}"#;
    let world = World::new();
    world.import(&state(index, &[("a.jsonl", one("a", "09:00:00", "one"))]), "o");
    let more = format!("{}{}\n", one("a", "09:00:00", "one"), said("a2", 5, "two"));
    let after = state(
        r#"{"agent:main:main":{"sessionId":"b"}}"#,
        &[
            ("a.jsonl.reset.2026-03-01T09-30-00.000Z", more),
            ("b.jsonl", one("b", "09:31:00", "three")),
        ],
    );
    let report = world.import(&after, "o");
    assert_eq!((report.totals().new, report.totals().known), (4, 2));
    let stream = [
        "opened a",
        r#"user external "one""#,
        r#"user external "two""#,
        "reset a > b",
        "opened b",
        r#"user external "three""#,
    ];
    assert_eq!(world.stream("agent:main:main"), stream);

    let mut late = after;
    late.put(
        format!("o/{MAIN}/z.jsonl.reset.2026-03-01T08-30-00.000Z"),
        one("z", "08:00:00", "zero"),
    );
    let report = world.import(&late, "o");
    assert_eq!(report.sources[0].damage_count(DamageClass::KeyTaken), 1);
    assert_eq!(world.stream("agent:main:main"), stream);
    let zero = ["opened z", r#"user external "zero""#, "archived z ended"];
    assert_eq!(world.stream("openclaw:z"), zero);

    late.remove(Path::new(&format!("o/{MAIN}/sessions.json")));
    assert_eq!(world.import(&late, "o").totals().new, 0);
    assert_eq!(world.stream("agent:main:main"), stream);

    let b = format!("o/{MAIN}/b.jsonl");
    late.remove(Path::new(&b));
    late.put(format!("{b}.deleted.2026-03-01T11-00-00.000Z"), one("b", "09:31:00", "three"));
    assert_eq!(world.import(&late, "o").totals().new, 1);
    assert_eq!(world.stream("agent:main:main").last().unwrap(), "archived b cleanup");
}

/// Goal: deleted sessions and those that the index does not know are there under their own ids; copies are not sessions
/// and are named. Method: a file of each sort that lies in a folder of sessions.
#[test]
fn every_file_of_a_folder() {
    let world = World::new();
    let tree = state(
        "{\n \"agent:main:main\": {\"sessionId\": \"a\"}\n}",
        &[
            ("a.jsonl", one("a", "09:00:00", "one")),
            ("b-topic-7.jsonl", one("b", "09:00:00", "topic")),
            ("b.jsonl", one("b", "09:00:00", "plain")),
            ("gone.jsonl.deleted.2026-03-01T09-30-00.000Z", one("gone", "09:00:00", "gone")),
            (
                "a.checkpoint.5f3d2c1b-0a9e-4d8c-b7a6-123456789abc.jsonl",
                one("a", "09:00:00", "one"),
            ),
            ("a.trajectory.jsonl", "{}\n".to_owned()),
            ("a.jsonl.bak-7-1737420882", one("a", "09:00:00", "one")),
            ("c.jsonl.reset.2026-03-01T09-30-00.000Z.zst", "\u{28}".to_owned()),
        ],
    );
    let report = world.import(&tree, "o");
    assert_eq!(world.stream("openclaw:gone")[2], "archived gone cleanup");
    assert_eq!(world.stream("openclaw:b")[1], r#"user external "plain""#);
    assert_eq!(world.stream("openclaw:b-topic-7")[1], r#"user external "topic""#);
    assert_eq!(report.totals().sessions, 4);
    let copies: Vec<&str> =
        report.sources[0].copies.iter().map(|c| c.path.rsplit('/').next().unwrap()).collect();
    assert_eq!(copies.len(), 4);
    assert!(report.sources[0].copies.iter().any(|c| c.reason.contains("Zstandard")));
    let named = world.try_import(&tree, &format!("o/{MAIN}/a.trajectory.jsonl")).unwrap_err();
    assert!(named.to_string().contains("a trace of a session's runs"), "{named}");
}

/// Goal: spellings of one key that stand side by side become one session with all turns reachable, the last used one
/// last. Method: an index with `main`, `agent:main:main` and a spelling in capitals.
#[test]
fn aliases_are_joined() {
    let index = r#"{"main":{"sessionId":"a","updatedAt":1775001663000},"agent:main:main":{"sessionId":"b","updatedAt":1775001661000},"AGENT:main:MAIN":{"sessionId":"c","updatedAt":1775001662000}}"#;
    let files = ["a", "b", "c"].map(|id| (format!("{id}.jsonl"), one(id, "09:00:00", id)));
    let files: Vec<(&str, String)> = files.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
    let world = World::new();
    world.import(&state(index, &files), "o");
    let stream = world.stream("agent:main:main");
    let said: Vec<&String> = stream.iter().filter(|t| t.starts_with("user")).collect();
    assert_eq!(said.len(), 3);
    assert_eq!(stream.iter().rfind(|t| t.starts_with("opened")).unwrap(), "opened a");
}

/// Goal: one session id under two keys leads to both: each key has the whole transcript, and usage is counted once.
/// Method: a job and the run of it that has its id, imported twice and once more when the job has gone on.
#[test]
fn one_id_under_two_keys() {
    let paid = r#"{"type":"message","id":"r","timestamp":"2026-03-01T09:00:04Z","message":{"role":"assistant","content":[],"usage":{"input":5,"output":6}}}"#;
    let transcript = format!("{}{paid}\n", one("a", "09:00:00", "go"));
    let index = r#"{"cron:j1:run:r1":{"sessionId":"a"},"cron:j1":{"sessionId":"a"}}"#;
    let world = World::new();
    let tree = state(index, &[("a.jsonl", transcript.clone())]);
    world.import(&tree, "o");
    let expect = ["opened a", r#"user internal "go""#, "assistant internal []"];
    assert_eq!(world.stream("cron:j1")[1], r#"user internal "go""#);
    assert_eq!(world.stream("cron:j1:run:r1").len(), expect.len());
    let counted = |world: &World| {
        let with = world.records().into_iter().filter(|r| r.data.as_str().contains("\"tokens\":"));
        with.map(|r| r.stream.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(counted(&world), ["cron:j1"]);
    assert_eq!(world.import(&tree, "o").totals().new, 0);
    let main = AgentId::parse("main").unwrap();
    let ambiguous = world.sessions().find("a", &main, Names::Whole).unwrap_err();
    assert!(ambiguous.to_string().contains("ambiguous"), "{ambiguous}");
    for key in ["cron:j1", "cron:j1:run:r1"] {
        assert!(ambiguous.to_string().contains(key), "{ambiguous}");
        assert_eq!(world.sessions().find(key, &main, Names::Whole).unwrap().key.as_str(), key);
    }
    let index = r#"{"cron:j1:run:r1":{"sessionId":"a"},"cron:j1":{"sessionId":"b"}}"#;
    let tree = state(index, &[("a.jsonl", transcript), ("b.jsonl", one("b", "10:00:00", "next"))]);
    assert_eq!(world.import(&tree, "o").totals().new, 3);
    assert_eq!(
        world.stream("cron:j1")[3..],
        ["reset a > b", "opened b", r#"user internal "next""#]
    );
    assert_eq!(world.stream("cron:j1:run:r1").len(), expect.len());
    assert_eq!(counted(&world).len(), 1);
}

/// Goal: ids are bytes, labels stay as they are, and nothing is lost for its script. Method: two spellings of one
/// letter as chat ids, and a label in Hindi.
#[test]
fn ids_and_labels_of_any_script() {
    let index = "{\"agent:main:web:direct:\u{e9}\":{\"sessionId\":\"a\",\"label\":\"नमस्ते\"},\"agent:main:web:direct:e\u{301}\":{\"sessionId\":\"b\"}}";
    let world = World::new();
    let tree = state(
        index,
        &[("a.jsonl", one("a", "09:00:00", "x")), ("b.jsonl", one("b", "09:00:00", "y"))],
    );
    world.import(&tree, "o");
    assert_eq!(
        world.stream("agent:main:web:direct:\u{e9}")[..2],
        ["opened a", r#"user external "x""#]
    );
    assert_eq!(
        world.stream("agent:main:web:direct:e\u{301}")[..2],
        ["opened b", r#"user external "y""#]
    );
    let opened = world.records().into_iter().find(|r| r.data.as_str().contains("\"label\""));
    assert!(opened.unwrap().data.as_str().contains("\"label\":\"नमस्ते\""));
}

/// Goal: two copies of a folder may be imported in turn: the newer index stands, and nothing is added. Method: the newer
/// first and last, and the older between and behind.
#[test]
fn an_older_index_says_nothing() {
    let world = World::new();
    let go = |day: u64| {
        let at = 1_775_001_660_000 + day * 86_400_000;
        let entry = format!(r#"{{"sessionId":"a","updatedAt":{at},"sendPolicy":"day {day}"}}"#);
        let index = format!(r#"{{"agent:main:main":{entry}}}"#);
        let tree = state(&index, &[("a.jsonl", one("a", "09:00:00", "x"))]);
        world.import(&tree, "o").totals().new
    };
    assert_eq!([go(1), go(2), go(1), go(2), go(1), go(3)], [3, 1, 0, 0, 0, 1]);
    let told = world.stream("agent:main:main");
    let patches: Vec<&String> = told.iter().filter(|told| told.starts_with("patched")).collect();
    assert_eq!(
        patches,
        ["1", "2", "3"]
            .map(|d| format!("patched {{\"sendPolicy\":\"day {d}\"}}"))
            .iter()
            .collect::<Vec<_>>()
    );
}

/// Goal: what the index says of a session is a patch when it says something new, and only then. Method: a policy that
/// changes, changes back, and stays.
#[test]
fn the_index_patches() {
    let world = World::new();
    let go = |policy: &str| {
        let index = format!(r#"{{"agent:main:main":{{"sessionId":"a","sendPolicy":"{policy}"}}}}"#);
        let tree = state(&index, &[("a.jsonl", one("a", "09:00:00", "x"))]);
        world.import(&tree, "o").totals().new
    };
    assert_eq!([go("allow"), go("allow"), go("deny"), go("allow"), go("allow")], [3, 0, 1, 1, 0]);
    let patches: Vec<String> =
        world.stream("agent:main:main").into_iter().filter(|t| t.starts_with("patched")).collect();
    assert_eq!(
        patches,
        ["allow", "deny", "allow"].map(|p| format!("patched {{\"sendPolicy\":\"{p}\"}}"))
    );
}
