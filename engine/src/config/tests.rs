//! Configurations as people write them.

use std::path::Path;

use super::*;
use crate::session::event::{ChatType, ResetMode};
use crate::session::policy::{DecidedBy, Outbound, SendAction};
use crate::session::reset::{SessionType, Zone};

fn read(text: &str, variables: &[(&str, &str)]) -> crate::error::Result<(Config, Vec<Warning>)> {
    let variable = |name: &str| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into())
    };
    load(&Sources {
        flags: &[],
        variable: &variable,
        file: Some((Path::new("/c/annals.json5"), text)),
    })
}

fn config(text: &str, variables: &[(&str, &str)]) -> Config {
    let (config, warnings) = read(text, variables).unwrap();
    assert_eq!(warnings, []);
    config
}

fn check_error(text: &str, variables: &[(&str, &str)], words: &[&str]) {
    let error = read(text, variables).unwrap_err();
    let shown = format!("{error} / {}", error.hint_text().unwrap_or_default());
    for word in words {
        assert!(shown.contains(word), "{word:?} is not in {shown}");
    }
}

/// Goal: what stands in the documents that people copy from works as it is. Method: their two snippets, verbatim.
#[test]
fn known_snippets() {
    let policy = config(
        r#"{
  "session": {
    "sendPolicy": {
      "rules": [
        {
          "match": { "channel": "discord", "chatType": "group" },
          "action": "deny"
        }
      ],
      "default": "allow"
    }
  }
}"#,
        &[],
    )
    .send_policy();
    let verdict = policy.decide(Outbound {
        key: "agent:main:discord:group:1",
        channel: "discord",
        chat_type: Some(ChatType::Group),
        own: None,
    });
    assert_eq!((verdict.action, verdict.by), (SendAction::Deny, DecidedBy::Rule(0)));
    let visible = config(
        r#"{
  tools: {
    sessions: {
      // "self" | "tree" | "agent" | "all"
      // default: "tree"
      visibility: "tree",
    },
  },
  agents: {
    defaults: {
      sandbox: {
        // default: "spawned"
        sessionToolsVisibility: "spawned", // or "all"
      },
    },
  },
}"#,
        &[],
    );
    assert_eq!(visible.text("tools.sessions.visibility"), Some("tree"));
    assert_eq!(visible.text("agents.defaults.sandbox.sessionToolsVisibility"), Some("spawned"));
}

/// Goal: the environment beats the file, a plain name its alias, and each value knows where it came from. Method: one
/// setting said in three places.
#[test]
fn origins() {
    let text = "{session: {maxTurns: 7, scope: 'global'}}";
    let origin = |config: &Config, path: &str| {
        let held = config.get(path).unwrap();
        format!("{} from {}", held.value, held.origin)
    };
    let of_file = config(text, &[]);
    assert_eq!(origin(&of_file, "session.maxTurns"), "7 from file");
    assert_eq!(origin(&of_file, "session.scope"), "\"global\" from file");
    assert_eq!(origin(&of_file, "session.chatId"), "\"default\" from default");
    let alias =
        config(text, &[("HERMES_SESSION_MAX_TURNS", "8"), ("MESSAGE_SESSION_MAX_TURNS", "")]);
    assert_eq!(origin(&alias, "session.maxTurns"), "8 from environment HERMES_SESSION_MAX_TURNS");
    let both = [("HERMES_SESSION_MAX_TURNS", "8"), ("MESSAGE_SESSION_MAX_TURNS", "9")];
    let plain = config(text, &both);
    assert_eq!(origin(&plain, "session.maxTurns"), "9 from environment MESSAGE_SESSION_MAX_TURNS");
    let flags = [("session.maxTurns", "10".to_owned())];
    let sources = Sources { flags: &flags, variable: &|_| None, file: None };
    let (flagged, _) = load(&sources).unwrap();
    assert_eq!(origin(&flagged, "session.maxTurns"), "10 from flag");
    assert_eq!(of_file.file().unwrap().sha256.len(), 64);
}

/// Goal: a bad value says which variable or path, and what is legal. Method: one of each kind.
#[test]
fn bad_values() {
    check_error("{}", &[("MESSAGE_SESSIONS", "perhaps")], &["MESSAGE_SESSIONS", "1 or 0"]);
    check_error(
        "{}",
        &[("MESSAGE_SESSION_MAX_TURNS", "0")],
        &["MESSAGE_SESSION_MAX_TURNS", "from 1"],
    );
    check_error(
        "{}",
        &[("MESSAGE_SESSION_CHANNEL", "run")],
        &["MESSAGE_SESSION_CHANNEL", "reserved"],
    );
    check_error("{session: {reset: {atHour: 24}}}", &[], &["session.reset.atHour", "from 0 to 23"]);
    check_error(
        "{session: {reset: {timeZone: 'Mars'}}}",
        &[],
        &["session.reset.timeZone", "Europe"],
    );
    check_error("{session: {reset: 'daily'}}", &[], &["session.reset", "atHour, idleMinutes"]);
    check_error(
        "{session: {sendPolicy: {rules: [{action: 'ask'}]}}}",
        &[],
        &["sendPolicy", "ask", "deny"],
    );
    check_error("{agents: {list: [{id: 'a b'}]}}", &[], &["agents.list[0].id", "agent id"]);
    check_error(
        "{tools: {sessions: {visibility: 'some'}}}",
        &[],
        &["visibility", "self, tree, agent, all"],
    );
    check_error("{\n  session: }", &[], &["/c/annals.json5", "line 2"]);
    check_error("[]", &[], &["not an object"]);
    check_error(&"{a:".repeat(100_000), &[], &["nested deeper"]);
}

/// Goal: a secret is told in no error. Method: values that are no text, from the file and from the environment.
#[test]
fn secrets_stay_secret() {
    let held = config("{webhook: {token: 'hush'}}", &[]);
    assert!(held.get("webhook.token").unwrap().secret);
    assert!(!held.get("webhook.enabled").unwrap().secret);
    for text in ["{webhook: {token: 4711}}", "{webhook: {token: ['4711']}}"] {
        let error = read(text, &[]).unwrap_err();
        let shown = format!("{error} {error:?} {}", error.hint_text().unwrap_or_default());
        assert!(shown.contains("webhook.token") && !shown.contains("4711"), "{shown}");
    }
}

/// Goal: an agent without an id, and a type of session that is none, are not passed over. Method: one of each.
#[test]
fn lists_and_types() {
    check_error("{agents: {list: [{name: 'x'}, {id: 'ops'}]}}", &[], &["agents.list[0]", "id"]);
    let (_, warnings) = read("{session: {resetByType: {groups: {idleMinutes: 5}}}}", &[]).unwrap();
    let shown: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["session.resetByType.groups is not a setting; did you mean group?"]);
}

/// Goal: what is no setting is told with the nearest that is one, and does not stop anything; what others keep in the
/// same file is accepted. Method: slips of the pen on three levels.
#[test]
fn unknown_settings_warn() {
    let text =
        "{sesion: {}, session: {maxTurn: 3, reset: {atHours: 4}, threadBindings: {a: {b: 1}}},
        channels: {discord: {threadBindings: {on: true}}}, plugins: {x: 1}}";
    let (_, warnings) = read(text, &[]).unwrap();
    let shown: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "plugins is not a setting",
            "sesion is not a setting; did you mean session?",
            "session.maxTurn is not a setting; did you mean maxTurns?",
            "session.reset.atHours is not a setting; did you mean atHour?",
        ]
    );
}

fn rule(config: &Config, sort: SessionType, channel: &str, chat: bool) -> String {
    let rule = config.reset_rules(Zone::utc()).of(sort, Some(channel), chat);
    format!("{} {} {} {}", rule.mode, rule.at_hour, rule.idle_minutes, rule.zone.name())
}

/// Goal: rules on resets come out of the file as they were meant. Method: every level, an older name, and the variable
/// for the sessions of channels.
#[test]
fn resets() {
    let none = config("{}", &[]);
    assert_eq!(
        none.reset_rules(Zone::utc()).of(SessionType::Direct, None, true).mode,
        ResetMode::None
    );
    let full = config(
        "{session: {reset: {mode: 'daily', atHour: 4, timeZone: 'Asia/Shanghai', maxDeferMinutes: 5},
          resetByType: {dm: {mode: 'idle', idleMinutes: 1}, direct: {mode: 'idle', idleMinutes: 2}, thread: {idleMinutes: 180}},
          resetByChannel: {Discord: {idleMinutes: 9}, telegram: {mode: 'none'}}}}",
        &[],
    );
    assert_eq!(rule(&full, SessionType::Group, "x", false), "daily 4 0 Asia/Shanghai");
    assert_eq!(rule(&full, SessionType::Direct, "x", false), "idle 4 2 Asia/Shanghai");
    assert_eq!(rule(&full, SessionType::Thread, "x", false), "idle 4 180 Asia/Shanghai");
    assert_eq!(rule(&full, SessionType::Group, "discord", false), "idle 4 9 Asia/Shanghai");
    assert_eq!(rule(&full, SessionType::Direct, "telegram", true), "none 4 0 Asia/Shanghai");
    assert_eq!(full.reset_rules(Zone::utc()).defer_max.as_secs(), 300);
    let legacy = config("{session: {idleMinutes: 240}}", &[]);
    assert_eq!(rule(&legacy, SessionType::Direct, "x", false), "idle 4 240 UTC");
    let chats = config("{}", &[("MESSAGE_SESSION_IDLE_MINUTES", "30")]);
    assert_eq!(rule(&chats, SessionType::Direct, "x", true), "idle 4 30 UTC");
    assert_eq!(rule(&chats, SessionType::Direct, "x", false), "none 4 0 UTC");
}

/// Goal: every value that is not to leave is known, and told in no error. Method: named ones, those of a variable, and a
/// secret of a sink.
#[test]
fn masked_values() {
    let text = "{security: {maskValues: ['one'], maskEnv: ['KEY', 'ABSENT']},
        sinks: {telegram: {type: 'http', secret: 'whsec_x', env: {TOKEN: 'not one'}}}}";
    let held = config(text, &[("KEY", "two")]);
    assert_eq!(held.masked_values(), ["one", "two", "whsec_x"]);
    assert!(held.get("security.maskValues").unwrap().secret);
    assert!(held.get("sinks.telegram.env.TOKEN").unwrap().secret);
    let error = read("{security: {maskValues: ['one', 4711]}}", &[]).unwrap_err();
    assert!(!format!("{error:?}").contains("4711"), "{error:?}");
}

/// Goal: words that ask for silence can be added, and background lanes loosened. Method: with and without.
#[test]
fn silence() {
    use crate::session::silent::{Lane, Silence};
    let text = "{session: {silentTokens: ['Ruhe'], silence: {background: 'edge'}}}";
    let told = |text: &str, reply: &str, lane| {
        let tokens = config(text, &[]).silent_tokens();
        Silence::of(reply, &tokens, lane).token().map(str::to_owned)
    };
    assert_eq!(told(text, "ruhe", Lane::Foreground).as_deref(), Some("ruhe"));
    assert_eq!(told("{}", "ruhe", Lane::Foreground), None);
    let signed_off = "Nothing new. NO_REPLY";
    assert_eq!(told(text, signed_off, Lane::Background).as_deref(), Some("NO_REPLY"));
    assert_eq!(told("{}", signed_off, Lane::Background), None);
}

/// Goal: the agent of sessions without one. Method: none, several, one that is marked.
#[test]
fn the_default_agent() {
    let agent = |text| config(text, &[]).default_agent().unwrap().to_string();
    assert_eq!(agent("{}"), "main");
    assert_eq!(agent("{agents: {list: [{id: 'ops'}, {id: 'dev'}]}}"), "ops");
    assert_eq!(agent("{agents: {list: [{id: 'ops'}, {id: 'dev', default: true}]}}"), "dev");
}

/// Goal: the table is sound: every default is legal, no variable and no path stands twice. Method: all rows.
#[test]
fn the_table_is_sound() {
    let mut seen = std::collections::BTreeSet::new();
    for setting in table::SETTINGS {
        assert!(seen.insert(setting.path), "{} stands twice", setting.path);
        for name in setting.variables {
            assert!(seen.insert(name), "{name} stands twice");
        }
        if !setting.default.is_empty() {
            let value = serde_json::from_str(setting.default).unwrap();
            assert_eq!(setting.kind.check(&value).unwrap(), value, "{}", setting.path);
        }
    }
    assert_eq!(Config::defaults().number("session.maxTurns"), Some(40));
}

/// Goal: what describes an agent is checked like every setting, and its environment is a map of any names that nobody is
/// shown. Method: names with dots, an empty value, slips of the pen, values of other shapes.
#[test]
fn agents_that_run() {
    let text = "{agents: {list: [{id: 'ops', models: ['a'], run: {
        command: 'agent', args: ['-m', '{model}'], dialect: 'Native', timeouts: {killGrace: 3},
        env: {'a.b': 'x', 'A': '', 'list[0]': 'y'}}}, {id: 'dev', run: {command: 'x', env: {B: 'z'}}}]}}";
    let agents = config(text, &[]);
    let below = |path: &str| agents.texts_below(path).collect::<Vec<_>>();
    assert_eq!(below("agents.list[0].run.env"), [("A", ""), ("a.b", "x"), ("list[0]", "y")]);
    assert_eq!(below("agents.list[1].run.env"), [("B", "z")]);
    assert!(agents.get("agents.list[0].run.env.a.b").unwrap().secret);
    assert_eq!(agents.text("agents.list[0].run.dialect"), Some("native"));
    assert_eq!(agents.agents().map(|(_, id)| id).collect::<Vec<_>>(), ["ops", "dev"]);
    let of = |run: &str| format!("{{agents: {{list: [{{id: 'a', run: {run}}}]}}}}");
    check_error(&of("{dialect: 'klingon'}"), &[], &["run.dialect", "claude-stream-json"]);
    check_error(&of("{limits: {lineBytes: 0}}"), &[], &["limits.lineBytes", "from 1"]);
    check_error(&of("{env: {PORT: 8080}}"), &[], &["run.env.PORT", "its value is not a text"]);
    let (_, warnings) = read(&of("{comand: 'x', timeouts: {noOutputs: 1}}"), &[]).unwrap();
    let shown: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "agents.list[0].run.comand is not a setting; did you mean command?",
            "agents.list[0].run.timeouts.noOutputs is not a setting; did you mean noOutput?",
        ]
    );
}

/// Goal: nothing of a file is lost in silence: a name that stands twice and a number that is none are errors, with path and
/// line. Method: both, at the root and deep.
#[test]
fn nothing_is_lost_in_silence() {
    check_error(
        "{session: {scope: 'global'},\n session: {maxTurns: 3}}",
        &[],
        &["said twice", "(/c/annals.json5, field session)"],
    );
    check_error(
        "{agents: {list: [{id: 'a', run: {command: 'x', command: 'y'}}]}}",
        &[],
        &["said twice", "agents.list[0].run.command"],
    );
    check_error("{session: {maxTurns: NaN}}", &[], &["NaN", "session.maxTurns"]);
    check_error(
        "{session: {reset: {idleMinutes: Infinity}}}",
        &[],
        &["inf", "session.reset.idleMinutes"],
    );
}

/// Goal: a rule that goes by idle time and has none is told, and one that has it from elsewhere is not. Method: the general
/// rule, one of a type, one of a channel; minutes beside it, in the general rule, in the variable for chats.
#[test]
fn idle_without_minutes() {
    let told = |text: &str| -> Vec<String> {
        let (_, warnings) = read(text, &[]).unwrap();
        warnings.iter().map(ToString::to_string).collect()
    };
    let told_of = |text: &str| -> Vec<String> {
        let path = |warning: &String| warning.split(".mode is idle").next().unwrap().to_owned();
        told(text).iter().map(path).collect()
    };
    let general = told("{session: {reset: {mode: 'idle'}}}");
    assert!(general[0].contains("set session.reset.idleMinutes"), "{general:?}");
    assert_eq!(told_of("{session: {reset: {mode: 'idle', idleMinutes: 0}}}"), ["session.reset"]);
    assert_eq!(
        told_of("{session: {resetByType: {group: {mode: 'idle'}}}}"),
        ["session.resetByType.group"]
    );
    let both = "{session: {reset: {mode: 'idle', idleMinutes: 5}, resetByType: {group: {mode: 'idle'}}, resetByChannel: {irc: {mode: 'idle'}}}}";
    assert_eq!(told_of(both), ["session.resetByChannel.irc"]);
    for well in [
        "{session: {reset: {mode: 'idle', idleMinutes: 5}}}",
        "{session: {reset: {mode: 'idle'}, idleMinutes: 5}}",
        "{session: {reset: {mode: 'idle'}, channelIdleMinutes: 5}}",
        "{session: {reset: {mode: 'daily'}}}",
        "{}",
    ] {
        assert_eq!(told(well), [""; 0], "{well}");
    }
}
