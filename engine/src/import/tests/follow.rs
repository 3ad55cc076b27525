//! Transcripts that grow, on the disk.
#![expect(clippy::disallowed_methods, reason = "the tests make their own sources")]

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use super::*;

/// A folder that a program writes into.
struct Source(tempfile::TempDir);

impl Source {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn append(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let mut file =
            fs::OpenOptions::new().create(true).append(true).open(self.path(name)).unwrap();
        file.write_all(bytes.as_ref()).unwrap();
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    /// Writes the file anew beside the old one, and puts it in its place.
    fn replace(&self, name: &str, bytes: impl AsRef<[u8]>) {
        self.put("beside.tmp", bytes);
        fs::rename(self.path("beside.tmp"), self.path(name)).unwrap();
    }

    fn follow<'w>(&self, world: &'w World) -> Following<'w> {
        let paths = vec![self.0.path().to_path_buf()];
        let files = Box::new(files_under(&paths, false).unwrap());
        Following::new(&world.store, &*world.clock, &DiskTree, files, paths).unwrap()
    }
}

/// Imports what is new, and returns how many events and bytes that was, and the damages.
fn round(following: &mut Following<'_>) -> (u64, u64, Vec<String>) {
    let Some(report) = following.round(&mut |_| {}).unwrap() else { return (0, 0, Vec::new()) };
    (report.totals().new, report.totals().bytes, damages(&report))
}

/// What an import at once makes of these files: the events of sessions, sorted.
fn at_once(source: &Source) -> Vec<String> {
    let world = World::new();
    world.import(&DiskTree, source.0.path().to_str().unwrap());
    events(&world)
}

/// The events of sessions and runs, sorted by stream.
fn events(world: &World) -> Vec<String> {
    let of_import = |r: &Record| r.stream.as_str() == "import";
    let records = world.records().into_iter().filter(|r| !of_import(r));
    let mut told: Vec<(String, u64, String)> = records
        .map(|r| (r.stream.to_string(), r.version.0, format!("{} {}", r.id, r.data.as_str())))
        .collect();
    told.sort();
    told.into_iter().map(|(stream, _, told)| format!("{stream} {told}")).collect()
}

fn pi(count: u32) -> String {
    let lines: Vec<String> = (0..count).map(|n| said(&format!("m{n}"), n.min(59), "x")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    session("s", &lines)
}

/// Goal: a file that grows in pieces of any length gives at each moment the records that are whole, each once, and in
/// the end what an import at once gives. Method: sessions of every program that writes lines, cut at every 17th byte.
#[test]
fn pieces_of_any_length() {
    let rollout = concat!(
        "{\"timestamp\":\"2026-03-01T09:00:00Z\",\"type\":\"session_meta\",\"payload\":{\"id\":\"t1\"}}\n",
        "{\"timestamp\":\"2026-03-01T09:00:01Z\",\"type\":\"response_item\",\"payload\":{\"type\":\"function_call\",\"name\":\"ls\",\"arguments\":\"{}\",\"call_id\":\"c\"}}\n",
        "{\"timestamp\":\"2026-03-01T09:00:02Z\",\"type\":\"response_item\",\"payload\":{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"x\"}}\n",
        "{\"timestamp\":\"2026-03-01T09:00:03Z\",\"type\":\"event_msg\",\"payload\":{\"type\":\"token_count\",\"info\":{\"total_token_usage\":{\"input_tokens\":9,\"output_tokens\":2}}}}\n",
        "{\"timestamp\":\"2026-03-01T09:00:04Z\",\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"Ho\"}}\n",
    );
    let gemini = concat!(
        "{\"sessionId\":\"g\",\"projectHash\":\"h\",\"startTime\":\"2026-03-01T09:00:00Z\"}\n",
        "{\"id\":\"1\",\"type\":\"user\",\"content\":\"Hi\"}\n",
        "{\"id\":\"2\",\"type\":\"gemini\",\"content\":\"Ho\"}\n",
        "{\"id\":\"2\",\"type\":\"gemini\",\"content\":\"Ho\",\"toolCalls\":[{\"id\":\"c\",\"name\":\"ls\",\"args\":{},\"result\":\"x\"}]}\n",
    );
    let uuid = "0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f";
    let rows: String = (0..5)
        .map(|n| {
            format!(
                "{{\"parentUuid\":null,\"isSidechain\":false,\"sessionId\":\"{uuid}\",\"type\":\"user\",\
                 \"message\":{{\"role\":\"user\",\"content\":\"x{n}\"}},\
                 \"uuid\":\"0a1b2c3d-0000-4061-8071-00000000000{n}\",\"timestamp\":\"2026-03-01T09:00:0{n}Z\"}}\n"
            )
        })
        .collect();
    for (name, text) in [
        ("s.jsonl".to_owned(), pi(6)),
        ("rollout-1.jsonl".to_owned(), rollout.to_owned()),
        ("chats/session-1.jsonl".to_owned(), gemini.to_owned()),
        (format!("-w/{uuid}.jsonl"), rows),
    ] {
        let (source, world) = (Source::new(), World::new());
        let mut following = source.follow(&world);
        let mut bytes = 0;
        for (n, piece) in text.as_bytes().chunks(17).enumerate() {
            source.append(&name, piece);
            let (_, read, damages) = round(&mut following);
            assert_eq!(damages, [""; 0], "{name}");
            bytes += read;
            if n % 20 == 19 {
                // What is kept is thrown away: a restart reads all of the file, and brings nothing twice.
                following = source.follow(&world);
                let (new, _, _) = round(&mut following);
                assert_eq!(new, 0, "{name}");
            }
        }
        assert_eq!(bytes, text.len() as u64, "{name}: every byte is read once");
        assert_eq!(events(&world), at_once(&source), "{name}");
        assert_eq!(round(&mut following), (0, 0, vec![]));
    }
}

/// Goal: whatever becomes of a file, nothing comes twice and nothing is lost. Method: rotation, a file put in its place
/// with more in it, one that is cut and grows again, one that is taken away and comes back, also in the same place of
/// the disk; after each the store has what it had and what is new.
#[test]
fn files_of_all_fates() {
    let (source, world) = (Source::new(), World::new());
    let mut following = source.follow(&world);
    let turns = || world.stream("pi:s").iter().filter(|told| told.starts_with("user")).count();
    source.put("s.jsonl", pi(3));
    round(&mut following);
    assert_eq!(turns(), 3);
    fs::rename(source.path("s.jsonl"), source.path("s.1.jsonl")).unwrap();
    source.put("s.jsonl", pi(5));
    round(&mut following);
    assert_eq!(turns(), 5, "rotated, and begun anew with what was there");
    source.replace("s.jsonl", pi(8));
    round(&mut following);
    assert_eq!(turns(), 8, "replaced");
    source.put("s.jsonl", pi(2));
    assert_eq!(round(&mut following), (0, 0, vec![]), "cut");
    source.append("s.jsonl", &pi(9)[pi(2).len()..]);
    round(&mut following);
    assert_eq!(turns(), 9, "grown again");
    for more in 10..14 {
        fs::remove_file(source.path("s.jsonl")).unwrap();
        source.put("s.jsonl", pi(more));
        round(&mut following);
        assert_eq!(turns(), more as usize, "taken away and back");
    }
    let other = pi(14).replace("\"id\":\"s\"", "\"id\":\"other\"");
    source.put("s.jsonl", &other);
    round(&mut following);
    assert_eq!(turns(), 13);
    assert_eq!(world.stream("pi:other").len(), 15, "another session in place of the old one");
    following.finish().unwrap();
    let import = world.stream("import");
    let count = |kind: &str| import.iter().filter(|told| *told == kind).count();
    assert_eq!((count("import.started"), count("import.finished")), (1, 1));
}

/// Goal: only what is new is read, and new sessions are found. Method: a long file grows by a line, then others come.
#[test]
fn only_what_is_new() {
    let (source, world) = (Source::new(), World::new());
    source.put("a/s.jsonl", pi(500));
    let mut following = source.follow(&world);
    assert_eq!(round(&mut following).0, 501);
    let line = said("more", 59, "more") + "\n";
    source.append("a/s.jsonl", &line);
    assert_eq!(round(&mut following), (1, line.len() as u64, vec![]));
    source.put("b/c/t.jsonl", one("t", "09:00:00", "x"));
    source.put("b/notes.txt", "notes");
    let (new, bytes, _) = round(&mut following);
    assert_eq!((new, bytes), (2, one("t", "09:00:00", "x").len() as u64));
    source.append("b/c/t.jsonl", &line);
    assert_eq!(round(&mut following), (1, line.len() as u64, vec![]));
}

/// Goal: a file that is copied and then emptied, as programs that rotate logs do, gives each record once: those that the
/// copy alone has too. Method: three rotations, before and after what was written was seen, and with another session behind.
#[test]
fn copied_and_emptied() {
    let (source, world) = (Source::new(), World::new());
    let mut following = source.follow(&world);
    let mut written = 0;
    for rotation in 0..3 {
        let session = format!("r{rotation}");
        source.put("s.jsonl", header(&session, "09:00:00"));
        for n in 0..4 {
            source.append("s.jsonl", said(&format!("{session}-{n}"), n, "x") + "\n");
            if n < 3 {
                round(&mut following);
            }
        }
        written += 5;
        fs::copy(source.path("s.jsonl"), source.path(&format!("s.jsonl.{rotation}"))).unwrap();
        source.put("s.jsonl", "");
        let (_, _, damages) = round(&mut following);
        assert_eq!(damages, [""; 0]);
        assert_eq!(events(&world).len(), written, "after rotation {rotation}");
    }
    // The file is longer than it was when it is seen again, and nothing of what it was is left.
    source.put("s.jsonl", one("t", "10:00:00", "before"));
    round(&mut following);
    let text = session("u", &[&said("u1", 1, &"behind ".repeat(99))]);
    source.put("s.jsonl", &text);
    round(&mut following);
    assert_eq!(world.stream("pi:t").len(), 2);
    assert_eq!(world.stream("pi:u").len(), 2);
    assert_eq!(events(&world).len(), written + 4);
}

/// Goal: a record that had begun and was taken away before it was whole is told, once; one that was only put elsewhere or
/// is whole now is not. Method: a half line that is cut off, replaced, removed with its file, and finished in a file that is
/// put in the old one's place.
#[test]
fn a_record_that_never_became_whole() {
    let (source, world) = (Source::new(), World::new());
    let mut following = source.follow(&world);
    let (whole, half) = (pi(3), "{\"type\":\"message\",\"id\":\"half");
    let begun = format!("{whole}{half}");
    let torn = [format!("torn_tail s.jsonl {}+{}/0", whole.len(), half.len())];
    let mut tried = 0;
    for way in ["cut", "emptied", "replaced", "removed", "another"] {
        source.put("s.jsonl", &begun);
        assert_eq!(round(&mut following).2, [""; 0], "{way}: it is waited for");
        match way {
            "cut" => source.put("s.jsonl", &whole),
            "emptied" => source.put("s.jsonl", ""),
            "replaced" => source.replace("s.jsonl", &whole),
            "removed" => fs::remove_file(source.path("s.jsonl")).unwrap(),
            _ => source.put("s.jsonl", pi(9).replace("m0", "n0")),
        }
        assert_eq!(round(&mut following).2, torn, "{way}");
        assert_eq!(round(&mut following).2, [""; 0], "{way}: it was told");
        tried += 1;
        source.put("s.jsonl", &whole);
        round(&mut following);
    }
    assert_eq!(tried, 5);
    source.put("s.jsonl", &begun);
    round(&mut following);
    let text = format!("{whole}{}\n", said("half", 9, "whole"));
    source.replace("s.jsonl", text);
    assert_eq!(
        round(&mut following),
        (1, pi(3).len() as u64 + said("half", 9, "whole").len() as u64 + 1, vec![])
    );
}

/// Goal: a file that is written anew in the same tick of the file system's clock, in the same inode and as long as before,
/// is another file. Method: sessions that differ in a letter, each written over the one before, as fast as can be; a chat
/// that is one object likewise.
#[test]
fn written_anew_within_a_tick() {
    let (source, world) = (Source::new(), World::new());
    world.clock.set(crate::clock::SystemClock.now());
    let mut following = source.follow(&world);
    let chat = |n: u32| {
        format!(
            "{{\"key\":\"telegram:{n}\",\"channel\":\"telegram\",\"chat_id\":\"{n}\",\
             \"turns\":[{{\"role\":\"user\",\"text\":\"t\",\"ts\":1774929600.5}}]}}\n"
        )
    };
    for n in 0..20 {
        let (n, id) = (n + 10, format!("s{}", n + 10));
        source.put("s.jsonl", one(&id, "09:00:00", "x"));
        source.put("chats/1.json", chat(n));
        round(&mut following);
        assert_eq!(world.stream(&format!("pi:{id}")).len(), 2);
        assert_eq!(world.stream(&format!("telegram:{n}")).len(), 2);
    }
}

/// Goal: what is followed is what an import would take, wherever it lies, and what that would refuse is told, once. Method:
/// folders of names that watch rules pass over, a file of a session with its sub-agent beside it, a database.
#[test]
fn what_is_followed_is_what_is_imported() {
    let (source, world) = (Source::new(), World::new());
    source.put("target/.git/s.jsonl", one("s", "09:00:00", "x"));
    source.put("old.sqlite", [b"SQLite format 3\0", &[b'\n'; 84][..]].concat());
    let mut following = source.follow(&world);
    let report = following.round(&mut |_| {}).unwrap().unwrap();
    let refused: Vec<&str> = report.refused.iter().map(|skipped| skipped.path.as_str()).collect();
    assert_eq!(refused, [source.path("old.sqlite").to_str().unwrap()]);
    source.append("target/.git/s.jsonl", said("m", 2, "y") + "\n");
    let report = following.round(&mut |_| {}).unwrap().unwrap();
    assert_eq!((report.totals().new, report.refused.len()), (1, 0));
    source.put("late.zst", b"\x28\xb5\x2f\xfd and more\n");
    let report = following.round(&mut |_| {}).unwrap().unwrap();
    assert_eq!(report.refused.len(), 1);
    assert_eq!(events(&world), at_once(&source));

    let (source, world) = (Source::new(), World::new());
    let uuid = "0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f";
    let row = |of: &str, n: u32| {
        format!(
            "{{\"parentUuid\":null,\"isSidechain\":{},\"sessionId\":\"{uuid}\",{of}\"type\":\"user\",\
             \"message\":{{\"role\":\"user\",\"content\":\"x{n}\"}},\
             \"uuid\":\"0a1b2c3d-0000-4061-8071-00000000000{n}\",\"timestamp\":\"2026-03-01T09:00:0{n}Z\"}}\n",
            !of.is_empty()
        )
    };
    let (file, child) =
        (format!("-w/{uuid}.jsonl"), format!("-w/{uuid}/subagents/agent-0a1b.jsonl"));
    source.put(&file, row("", 1));
    let paths = vec![source.path(&file)];
    let files = Box::new(files_under(&paths, false).unwrap());
    let mut following =
        Following::new(&world.store, &*world.clock, &DiskTree, files, paths).unwrap();
    round(&mut following);
    source.put(&child, row("\"agentId\":\"0a1b\",", 2));
    round(&mut following);
    let once = World::new();
    once.import(&DiskTree, source.path(&file).to_str().unwrap());
    let sessions = |world: &World| {
        world.records().iter().filter(|r| r.kind.as_str() == "session.opened").count()
    };
    assert_eq!((sessions(&world), sessions(&once)), (2, 2));
}

/// Goal: an object that is written anew is taken when it is whole, and a sub-agent's run is told once it has ended.
/// Method: a chat that is half written, then whole, then has lost its first turn; a sub-agent that runs and is done.
#[test]
fn objects() {
    let (source, world) = (Source::new(), World::new());
    let mut following = source.follow(&world);
    let chat = |turns: &str| {
        format!(
            "{{\"key\":\"telegram:1\",\"channel\":\"telegram\",\"chat_id\":\"1\",\"turns\":[{turns}]}}\n"
        )
    };
    let turn = |n: u32| format!("{{\"role\":\"user\",\"text\":\"t{n}\",\"ts\":177492960{n}.5}}");
    let text = chat(&turn(1));
    source.put("chats/1.json", &text[..text.len() - 5]);
    assert_eq!(round(&mut following), (0, 0, vec![]));
    source.put("chats/1.json", &text);
    round(&mut following);
    source.replace("chats/1.json", chat(&format!("{},\n{}", turn(2), turn(3))));
    round(&mut following);
    let said: Vec<String> = world.stream("telegram:1").into_iter().skip(1).collect();
    assert_eq!(said, ["t1", "t2", "t3"].map(|text| format!("user external \"{text}\"")));
    let agent = |status: &str, result: &str| {
        format!(
            "{{\"id\":\"0123456789\",\"task\":\"Dig\",\"status\":\"{status}\",\"session_channel\":\"telegram\",\
             \"session_chat_id\":\"1\",\"created\":1774929610.0,\"result\":{result}}}"
        )
    };
    source.put("subagents/0123456789.json", agent("running", "null"));
    round(&mut following);
    assert_eq!(world.stream("run:0123456789"), [""; 0]);
    source.replace("subagents/0123456789.json", agent("done", "\"Dug\""));
    round(&mut following);
    assert_eq!(world.stream("run:0123456789")[1], "finished ok -");
    let key = "agent:arka:subagent:0123456789";
    assert_eq!(world.stream(key)[2], "assistant internal \"Dug\"");
}

/// Goal: a state folder is followed with its index: keys, patches, parts. Method: a session that grows, is reset and goes
/// on, while its index is written anew.
#[test]
fn a_state_folder() {
    let (source, world) = (Source::new(), World::new());
    let index = |id: &str, name: &str| {
        format!("{{\"agent:main:main\":{{\"sessionId\":\"{id}\",\"displayName\":\"{name}\"}}}}\n")
    };
    let file = |id: &str| format!("{MAIN}/{id}.jsonl");
    source.put(&format!("{MAIN}/sessions.json"), index("a", "A"));
    source.put(&file("a"), one("a", "09:00:00", "x"));
    let mut following = source.follow(&world);
    round(&mut following);
    source.append(&file("a"), said("a2", 2, "y") + "\n");
    round(&mut following);
    source.replace(&format!("{MAIN}/sessions.json"), index("a", "B"));
    round(&mut following);
    let archive = format!("{MAIN}/a.jsonl.reset.2026-03-01T09-30-00.000Z");
    fs::rename(source.path(&file("a")), source.path(&archive)).unwrap();
    source.put(&file("b"), one("b", "09:30:01", "z"));
    source.replace(&format!("{MAIN}/sessions.json"), index("b", "B"));
    round(&mut following);
    let said: Vec<String> = world
        .stream("agent:main:main")
        .into_iter()
        .filter(|told| !told.starts_with("patched"))
        .collect();
    assert_eq!(
        said,
        [
            "opened a",
            "user external \"x\"",
            "user external \"y\"",
            "reset a > b",
            "opened b",
            "user external \"z\"",
        ]
    );
    let patches = world.stream("agent:main:main");
    let patches = patches.iter().filter(|told| told.starts_with("patched")).count();
    assert!(patches >= 2, "the index was followed");
}

/// Goal: every line comes once while files grow as fast as they can. Method: threads append to files of their own while
/// rounds go on until all is there; `ANNALS_FOLLOW_LINES` makes it longer.
#[test]
fn every_line_once_under_load() {
    let lines: u32 = std::env::var("ANNALS_FOLLOW_LINES").map_or(2_000, |n| n.parse().unwrap());
    let (source, world) = (Source::new(), World::new());
    let mut following = source.follow(&world);
    let mut new = 0;
    std::thread::scope(|scope| {
        for file in 0..4 {
            let source = &source;
            scope.spawn(move || {
                let name = format!("f{file}.jsonl");
                source.append(&name, header(&format!("f{file}"), "09:00:00"));
                for n in 0..lines / 4 {
                    let line = said(&format!("m{n}"), 1, &"x".repeat(n as usize % 400)) + "\n";
                    let (first, second) = line.split_at(line.len() / 2);
                    source.append(&name, first);
                    source.append(&name, second);
                }
            });
        }
        while new < u64::from(lines / 4 + 1) * 4 {
            let (more, _, damages) = round(&mut following);
            assert_eq!(damages, [""; 0]);
            new += more;
        }
    });
    assert_eq!(round(&mut following).0, 0);
    assert_eq!(events(&world).len() as u64, new);
    let again = World::new();
    again.import(&DiskTree, source.0.path().to_str().unwrap());
    assert_eq!(events(&again), events(&world));
}
