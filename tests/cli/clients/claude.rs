//! Claude Code with the session tools: as an agent of ours, which gets them with its run, and as anybody's program that
//! speaks for a session. Its model is a stand-in that says what a test has written.

use std::path::Path;

use annals_tests::model_api::{Asked, ModelApi, Reply};
use serde_json::{Value, json};

use crate::support::{Home, Ran, fake_agent, write};

/// The variable that names a folder in whose `node_modules/.bin` the program is.
const FOLDER: &str = "ANNALS_AGENT_PROGRAMS";

/// Where Claude Code is; `None`, said on standard error, where it is absent.
fn claude() -> Option<String> {
    let found = std::env::var_os(FOLDER)
        .map(|folder| Path::new(&folder).join("node_modules/.bin/claude"))
        .filter(|path| path.is_file());
    if found.is_none() {
        super::skipped("claude", FOLDER);
    }
    found.map(|path| path.to_str().expect("UTF-8").to_owned())
}

/// What Claude Code needs to know of its model and of its home.
fn variables(home: &Home, api: &ModelApi) -> Vec<(&'static str, String)> {
    vec![
        ("CLAUDE_CONFIG_DIR", home.path().join(".claude").display().to_string()),
        ("ANTHROPIC_BASE_URL", api.url()),
        ("ANTHROPIC_API_KEY", "stand-in".to_owned()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ("DISABLE_AUTOUPDATER", "1".to_owned()),
    ]
}

/// A home with a chat of Claude's and a clerk, whose sessions it may see.
fn at_home(claude: &str, api: &ModelApi) -> Home {
    let home = Home::new();
    let env: serde_json::Map<String, Value> = variables(&home, api)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    let work = home.path().join("work");
    write(work.join("notes.txt"), "");
    let config = json!({
        "tools": {
            "sessions": { "visibility": "all" },
            "agentToAgent": { "enabled": true, "allow": ["main", "clerk"] },
        },
        "session": { "agentToAgent": { "maxPingPongTurns": 0 } },
        "agents": { "list": [
            { "id": "main", "default": true,
              "run": { "preset": "claude", "command": claude, "cwd": work, "env": env } },
            { "id": "clerk",
              "run": { "command": fake_agent(), "args": ["read", "say=shelf seven"], "cwd": work } },
        ] },
    });
    write(home.path().join(".config/annals/annals.json5"), config.to_string());
    home.ok(&["ask", "--key", "agent:clerk:main", "Good morning!"]);
    home
}

/// The names of our tools that a model was offered.
fn ours(asked: &Asked) -> Vec<&str> {
    asked.tools().into_iter().filter_map(|name| name.strip_prefix("mcp__annals__")).collect()
}

/// The turn with a text, of all the events.
fn turn(home: &Home, session: &str, text: &str) -> Value {
    let log = home.json_lines(&["log", "--session", session, "--type", "turn", "-o", "jsonl"]);
    let says = |event: &&Value| event["data"]["content"].to_string().contains(text);
    log.iter().find(says).unwrap_or_else(|| panic!("{text:?} is not in {log:#?}"))["data"].clone()
}

/// Goal: an agent that a configuration names with one word has the session tools, calls from the session that its run works
/// on, and what it sends says so. Method: a question at the command line, on which the model looks at the sessions, asks the
/// clerk, and answers.
#[test]
fn an_agent_sends() {
    let Some(claude) = claude() else { return };
    let send = json!({ "sessionKey": "agent:clerk:main", "message": "Which shelf?", "timeoutSeconds": 60 });
    let api = ModelApi::start([
        Reply::call("mcp__annals__sessions_list", json!({})),
        Reply::call("mcp__annals__sessions_send", send),
        Reply::text("It is on shelf seven."),
    ])
    .expect("a stand-in");
    let home = at_home(&claude, &api);
    let ran = home.run(&["ask", "Where is the atlas?"]);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "It is on shelf seven."), "{ran:#?}");
    let asked = api.asked();
    assert_eq!(asked.len(), 3, "{asked:#?}");
    assert_eq!(ours(&asked[0]).len(), 9, "{:?}", asked[0].tools());
    assert!(asked[1].holds("cli:default") && asked[2].holds("shelf seven"), "{asked:#?}");
    let sent = turn(&home, "agent:clerk:main", "Which shelf?");
    assert_eq!(sent["role"], "user", "{sent}");
    assert_eq!(sent["provenance"]["sourceSessionKey"], "cli:default", "{sent}");
    assert_eq!(sent["provenance"]["sourceTool"], "sessions_send", "{sent}");
}

/// Goal: a child has no session tools, and its parent has the result without any. Method: the model spawns a child, whose
/// model is offered none of them.
#[test]
fn a_child_has_none() {
    let Some(claude) = claude() else { return };
    let spawn = json!({ "task": "Count the words.", "label": "counter" });
    let api = ModelApi::start([
        Reply::call("mcp__annals__sessions_spawn", spawn).to("How many?"),
        Reply::text("Somebody counts.").to("How many?"),
        Reply::text("There are four."),
    ])
    .expect("a stand-in");
    let home = at_home(&claude, &api);
    let ran = home.run(&["ask", "How many?"]);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "Somebody counts."), "{ran:#?}");
    let list = home.json(&["subagent", "list", "--json"]);
    let run = list["children"][0]["runId"].as_str().expect("a run");
    let waited = home.json(&["runs", "wait", run, "--timeout", "60", "--json"]);
    assert_eq!(waited["runs"][0]["reply"], "There are four.", "{waited}");
    let asked = api.asked();
    let child = asked.iter().find(|asked| !asked.holds("How many?")).expect("a child");
    assert_eq!(ours(child), [] as [&str; 0]);
    assert!(child.tools().contains(&"Bash"), "{:?}", child.tools());
}

/// Goal: the program as people have it, which our server was added to for a session, speaks for that session. Method: the
/// program itself with a file that names the server; the model sends.
#[test]
fn for_a_session() {
    let Some(claude) = claude() else { return };
    let send = json!({ "sessionKey": "agent:clerk:main", "message": "Which shelf?", "timeoutSeconds": 60 });
    let api = ModelApi::start([
        Reply::call("mcp__annals__sessions_send", send),
        Reply::text("Shelf seven."),
    ])
    .expect("a stand-in");
    let home = at_home(&claude, &api);
    home.push("telegram", "42", "hello");
    let server =
        json!({ "command": env!("CARGO_BIN_EXE_annals"), "args": ["mcp", "--as", "telegram:42"] });
    let file = home.path().join("mcp.json");
    write(&file, json!({ "mcpServers": { "annals": server } }).to_string());
    let file = file.to_str().expect("UTF-8");
    let args = ["-p", "Where is it?", "--mcp-config", file, "--allowedTools=mcp__annals"];
    let mut command = home.other(&claude, &args);
    command.envs(variables(&home, &api));
    let ran = Ran::of(command);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "Shelf seven."), "{ran:#?}");
    let sent = turn(&home, "agent:clerk:main", "Which shelf?");
    assert_eq!(sent["provenance"]["sourceSessionKey"], "telegram:42", "{sent}");
}
