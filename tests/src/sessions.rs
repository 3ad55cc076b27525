//! Sessions at random: events of every sort that the sessions view folds, and of sorts that it passes over, in a few
//! streams that keep meeting each other.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "an event that cannot be made ends the test"
)]

use annals_engine::format::Payload;
use annals_engine::id::{EventId, EventType, StreamName};
use annals_engine::store::NewEvent;
use fastrand::Rng;

/// Events without an end, the same ones for the same seed.
#[derive(Debug)]
pub struct Sessions {
    random: Rng,
    seed: u64,
    count: u64,
}

/// The keys that the events belong to.
const KEYS: [&str; 6] =
    ["agent:main:main", "cli:default", "telegram:42", "agent:main:subagent:1", "cron:j", "x:ü"];

impl Sessions {
    /// The events of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { random: Rng::with_seed(seed), seed, count: 0 }
    }

    /// The next few events of one append.
    pub fn batch(&mut self) -> Vec<NewEvent> {
        let count = if self.random.u8(..4) == 0 { self.random.usize(2..12) } else { 1 };
        self.take(count).collect()
    }

    fn one(&mut self, of: &[&'static str]) -> &'static str {
        of[self.random.usize(..of.len())]
    }

    fn maybe(&mut self, text: String) -> String {
        if self.random.bool() { text } else { String::new() }
    }

    fn part(&mut self) -> String {
        format!("'sessionId':'s{}'", self.random.u8(..4))
    }

    fn at(&mut self) -> String {
        let at = format!("'at':'2026-03-0{}T00:00:00.000000Z',", self.random.u8(1..9));
        if self.random.u8(..3) == 0 { at } else { String::new() }
    }

    fn turn(&mut self) -> String {
        let role = self.one(&["user", "assistant", "assistant", "system", "toolResult"]);
        let from = self.one(&["external", "external", "internal", "inter_session"]);
        let (at, part) = (self.at(), self.part());
        let mut data = format!("{at}{part},'role':'{role}','from':'{from}'");
        let run = format!(",'runId':'r{}'", self.random.u8(..4));
        let message = format!(",'messageId':'m{}'", self.random.u8(..24));
        let tokens = format!(
            ",'tokens':{{'in':{},'out':{}}}",
            self.random.u64(..1_000),
            if self.random.u8(..20) == 0 { u64::MAX } else { self.random.u64(..1_000) }
        );
        let channel = self.one(&["telegram", "matrix", "cli"]);
        data += &self.maybe(run);
        data += &self.maybe(message);
        if role == "assistant" {
            data += &self.maybe(format!(",'model':'model {}'", self.count % 3));
        }
        data += &self.maybe(tokens);
        data += &self.maybe(format!(",'provenance':{{'sourceChannel':'{channel}'}}"));
        data + ",'content':'größer, \\\"quoted\\\", 世界'"
    }

    /// A stream, a type, and the inside of a payload.
    fn event(&mut self) -> (String, &'static str, String) {
        match self.random.u8(..48) {
            0..=21 => (self.one(&KEYS).to_owned(), "turn", self.turn()),
            22..=28 => self.of_session(),
            29..=36 => self.of_run(),
            37 => {
                let data = "'verb':'v','target':'t','reason':'r'".to_owned();
                (self.one(&KEYS).to_owned(), "access.denied", data)
            }
            38 => {
                let kind = self.one(&["turn", "session.opened", "run.started"]);
                (self.one(&KEYS).to_owned(), kind, String::new())
            }
            39 => {
                let stream = self.one(&["policy", "x.acme:lamp", "cli:default"]);
                (stream.to_owned(), "x.acme.note", String::new())
            }
            _ => self.of_others(),
        }
    }

    /// Events of the sorts that tell the sessions view little or nothing.
    fn of_others(&mut self) -> (String, &'static str, String) {
        let (key, at, part) = (self.one(&KEYS), self.at(), self.part());
        let run = format!("'runId':'r{}'", self.random.u8(..4));
        let kinds: &[&'static str] = &[
            "send.refused",
            "spawn.refused",
            "access.denied",
            "session.trimmed",
            "turn.blocked",
            "exchange.ended",
            "run.kill_requested",
            "send.accepted",
            "policy.changed",
        ];
        let data = match self.random.u8(..4) {
            0 => return self.outbound(&format!("{at}{run}")),
            1 => return self.of_machines(),
            _ => match self.one(kinds) {
                kind @ "session.trimmed" => {
                    (key, kind, format!("{at}{part},'kept':40,'fromSeq':1,'toSeq':2"))
                }
                kind @ "turn.blocked" => {
                    let gate = "'gate':'g','rule':'r','bytes':1,'sha256':'00'";
                    (key, kind, format!("{at}'role':'user','from':'external',{gate}"))
                }
                kind @ "exchange.ended" => {
                    (key, kind, format!("{at}{run},'rounds':1,'reason':'empty'"))
                }
                kind @ "run.kill_requested" => {
                    (key, kind, format!("{at}{run},'by':'cli','reason':'enough'"))
                }
                kind @ "send.accepted" => {
                    let target = self.one(&KEYS);
                    (key, kind, format!("{at}{run},'targetKey':'{target}','hop':1"))
                }
                kind @ "policy.changed" => {
                    let new = self.one(&["null", "[]", "['cli:1']"]);
                    ("policy", kind, format!("{at}'path':'owners','old':null,'new':{new}"))
                }
                kind => (key, kind, format!("{at}'verb':'v','target':'t','reason':'r'")),
            },
        };
        (data.0.to_owned(), data.1, data.2)
    }

    /// A step of an announce or a delivery of a run.
    fn outbound(&mut self, run: &str) -> (String, &'static str, String) {
        let key = self.one(&KEYS).to_owned();
        let more = self.one(&["", ",'attemptId':'a','sink':'log'", ",'reason':'busy'"]);
        let kind = self.one(&[
            "announce.requested",
            "announce.attempted",
            "announce.deferred",
            "announce.delivered",
            "announce.suppressed",
            "announce.failed",
            "announce.unknown",
            "delivery.requested",
            "delivery.attempted",
            "delivery.deferred",
            "delivery.delivered",
            "delivery.suppressed",
            "delivery.failed",
            "delivery.unknown",
            "delivery.expired",
        ]);
        let child =
            if kind.starts_with("announce") { ",'childKey':'agent:main:subagent:1'" } else { "" };
        (key, kind, format!("{run}{child}{more}"))
    }

    /// What watchers and imports tell.
    fn of_machines(&mut self) -> (String, &'static str, String) {
        let kind = self.one(&[
            "watch.fired",
            "watch.rescanned",
            "watch.degraded",
            "watch.stopped",
            "import.started",
            "import.finished",
            "import.damage",
        ]);
        let (stream, data) = match kind {
            "watch.fired" => {
                ("watch:w", "'rule':'w','path':'p','change':'create','sha256':'00','runId':'r0'")
            }
            kind if kind.starts_with("watch") => ("watch:w", "'rule':'w'"),
            "import.damage" => (
                "import",
                "'program':'pi','path':'p','class':'c','file':'f','offset':0,'bytes':1,'recovered':0",
            ),
            _ => ("import", "'program':'pi','path':'p'"),
        };
        (stream.to_owned(), kind, data.to_owned())
    }

    fn of_session(&mut self) -> (String, &'static str, String) {
        let (at, part) = (self.at(), self.part());
        let moment = "'reason':'manual','effectiveAt':'2026-04-01T00:00:05.000000Z'";
        let (kind, data) = match self.random.u8(..7) {
            0 => {
                let label = self.maybe(",'label':'desk'".to_owned());
                let origin = self.maybe(",'origin':{'channel':'irc','to':'7'}".to_owned());
                let parent = self.maybe(",'parentKey':'cli:default'".to_owned());
                let depth = format!("{parent},'spawnDepth':0{label}{origin}");
                ("session.opened", format!("{at}{part},'kind':'other','agentId':'main'{depth}"))
            }
            1 => ("session.reset", format!("{at}{part},'previousSessionId':'s0',{moment}")),
            2 => ("session.resumed", format!("{at}{part},'previousSessionId':'s0'")),
            3 => {
                let set = self.one(&["'label':null", "'sendPolicy':'deny'", "'model':'m','x':[1]"]);
                ("session.patched", format!("{at}{part},'set':{{{set}}}"))
            }
            4 => ("session.archived", format!("{at}{part},{moment}")),
            _ => {
                let kinds = ["announce.requested", "announce.delivered", "announce.attempted"];
                let run = self.random.u8(..4);
                let data = format!("{at}'runId':'r{run}','childKey':'agent:main:subagent:1'");
                (self.one(&kinds), data)
            }
        };
        (self.one(&KEYS).to_owned(), kind, data)
    }

    fn of_run(&mut self) -> (String, &'static str, String) {
        let key = self.one(&KEYS);
        let (at, part, run) = (self.at(), self.part(), self.random.u8(..4));
        let data = format!("{at}'runId':'r{run}'");
        let (kind, data) = match self.random.u8(..8) {
            0..=1 => {
                let more = "'chainId':'c','hop':0,'timeoutSeconds':0,'deliver':false";
                let more = format!("'kind':'send','agentId':'main',{more}");
                ("run.requested", format!("{data},'sessionKey':'{key}',{part},{more}"))
            }
            2 => {
                let more = "'worker':'w','pid':1,'processStart':'1','bootId':'b','host':'h'";
                let until = "'leaseUntil':'2026-04-01T00:00:05.000000Z'";
                ("run.claimed", format!("{data},{more},{until}"))
            }
            3 => ("run.started", format!("{data},'command':['a'],'cwd':'/'")),
            4..=5 => {
                let status = self.one(&["ok", "error", "killed", "lost"]);
                let tokens = self.maybe(",'tokens':{'in':500,'out':500}".to_owned());
                ("run.finished", format!("{data},'status':'{status}','runtimeMs':1{tokens}"))
            }
            6 => {
                let child = self.one(&KEYS);
                return (
                    key.to_owned(),
                    "spawn.accepted",
                    format!("{data},'targetKey':'{child}','hop':0"),
                );
            }
            _ => ("run.output", format!("{data},'stream':'stdout','text':'x'")),
        };
        (format!("run:r{run}"), kind, data)
    }
}

impl Iterator for Sessions {
    type Item = NewEvent;

    fn next(&mut self) -> Option<NewEvent> {
        self.count += 1;
        let (stream, kind, data) = self.event();
        Some(NewEvent {
            id: EventId::derived("key", &self.seed.to_string(), &self.count.to_string()),
            stream: StreamName::new(stream).expect("a name"),
            kind: EventType::new(kind).expect("a type"),
            cause: None,
            flow: None,
            data: Payload::from_json(&format!("{{{}}}", data.replace('\'', "\""))).expect("JSON"),
        })
    }
}
