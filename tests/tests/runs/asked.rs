//! What a process is given: prompt, arguments, environment, files.

use serde_json::json;

use crate::trial::Trial;

/// Goal: the prompt comes on standard input, which then ends, and the reply is what was printed without its last line
/// feed. Method: an agent that prints its input, with prompts that are empty, long and odd.
#[test]
fn on_standard_input() {
    let long = "zähes Gespräch\n".repeat(100_000);
    for (prompt, reply) in [
        ("", "ok - -"),
        ("what now?", "ok - \"what now?\""),
        ("a\n\n", "ok - \"a\\n\""),
        ("a\0b", "ok - \"a\\0b\""),
    ] {
        assert_eq!(Trial::of(&["echo"]).prompt(prompt).run().told(), reply, "{prompt:?}");
    }
    let made = Trial::of(&["echo"]).prompt(&long).run();
    assert_eq!(made.outcome.reply.text.as_deref(), long.strip_suffix('\n'));
}

/// Goal: a process that does not read its input hangs nobody and fails nothing. Method: a prompt that fits no pipe, to
/// one that ends at once, and to one that first prints more than a pipe holds.
#[test]
fn input_that_nobody_reads() {
    let long = "x".repeat(4 << 20);
    assert_eq!(Trial::of(&["say=done"]).prompt(&long).run().told(), "ok - \"done\"");
    let made = Trial::of(&["flood=1000000", "read", "say=done"]).prompt(&long).run();
    assert!(made.outcome.reply.text.unwrap().ends_with("done"));
}

/// Goal: the prompt can be an argument, and input then is at its end. Method: named in the arguments, and behind them; an
/// agent that reads its input first.
#[test]
fn as_an_argument() {
    let named = Trial::of(&["read", "say=<{prompt}>"]).prompt("{model} \"x\"").run();
    assert_eq!(named.told(), "ok - \"<{model} \\\"x\\\">\"");
    let behind = Trial::of(&["read", "rest", "--"]).set("input", json!("arg")).run();
    assert_eq!(behind.told(), "ok - \"what now?\"");
    let shown = format!("{:?}", behind.heard[0]);
    assert!(shown.contains("{prompt}") && !shown.contains("what now?"), "{shown}");
}

/// Goal: a prompt that no argument can be is an error that says what to do, and nothing is started. Method: one that is
/// too long, one with a NUL byte.
#[test]
fn what_is_no_argument() {
    let trial = Trial::of(&["rest", "--"]).set("input", json!("arg")).prompt(&"x".repeat(200_000));
    let made = trial.run();
    assert_eq!(made.told(), "error prompt_too_long -");
    assert!(
        made.detail().contains("200000 bytes") && made.detail().contains("stdin"),
        "{}",
        made.detail()
    );
    assert_eq!(made.heard, []);
    let made = Trial::of(&["say={prompt}"]).prompt("a\0b").run();
    assert_eq!(made.told(), "error spawn_failed -");
    assert!(made.detail().contains("NUL"), "{}", made.detail());
}

/// Goal: prompt and context can be files, which nobody else may read and which are gone afterwards. Method: an agent that
/// prints them, and one that gets the path behind its arguments.
#[test]
fn as_files() {
    use std::os::unix::fs::PermissionsExt;
    let mut trial = Trial::of(&["cat={promptFile}", "say=", "cat={contextFile}"]);
    let without = trial.run();
    assert_eq!(without.told(), "ok - \"what now?\"");
    trial.job.context = Some("USER: hello".to_owned());
    assert_eq!(trial.run().told(), "ok - \"what now?\\nUSER: hello\"");
    let mut modes = Vec::new();
    let trial = Trial::of(&["rest", "forever", "--"]).set("input", json!("file"));
    let made = trial.run_and(|heard, stop| {
        if let annals_tools::run::Heard::Output { text, .. } = heard {
            modes.push(std::fs::metadata(text.trim()).unwrap().permissions().mode() & 0o777);
            stop.send_replace(Some(annals_tools::run::Stop::Kill));
        }
    });
    assert_eq!(modes, [0o600]);
    assert!(!std::path::Path::new(&made.outcome.reply.text.unwrap()).exists());
}

/// Goal: arguments are filled in, a model is the agent's own unless another is asked for, and a session that goes on has
/// arguments of its own. Method: all placeholders that are no files.
#[test]
fn arguments() {
    let words = "say={sessionId} {sessionKey} {runId} {cwd}";
    let mut trial =
        Trial::of(&[words, "say=m:{model}", "say=t:{thinking}", "say={agentSessionId}"])
            .set("resumeArgs", json!(["say=again {agentSessionId} {model}"]));
    let cwd = trial.path("").display().to_string();
    let cwd = cwd.trim_end_matches('/');
    let reply = |trial: &Trial| trial.run().outcome.reply.text.unwrap();
    assert_eq!(reply(&trial), format!("part-1 agent:a:main run-1 {cwd}"));
    trial.job.model = Some("large".to_owned());
    trial.job.thinking = Some("high".to_owned());
    assert_eq!(reply(&trial).lines().skip(1).collect::<Vec<_>>(), ["m:large", "t:high"]);
    trial.job.agent_session_id = Some("s-7".to_owned());
    assert_eq!(reply(&trial), "again s-7 large");
}

/// Goal: the process knows its run by its environment, and nothing of another run is left in it. Method: an agent that
/// prints variables, with a run that has everything and one that has little; a cleared environment.
#[test]
fn environment() {
    let kept = ["PATH", "HOME", "LANG", "TERM"];
    let other = |(name, value): &(String, String)| {
        !kept.contains(&name.as_str()) && !name.starts_with("ANNALS_") && value.lines().count() == 1
    };
    let (inherited, value) = std::env::vars().find(other).expect("a variable");
    let names = [
        "ANNALS_RUN_ID",
        "ANNALS_SESSION_KEY",
        "ANNALS_SESSION_ID",
        "ANNALS_AGENT_ID",
        "ANNALS_DEPTH",
        "ANNALS_PARENT_RUN_ID",
        "ANNALS_MCP_URL",
        "ANNALS_TOKEN",
        "TRACEPARENT",
        "ANNALS_DEADLINE",
        "OWN",
        "ANNALS_HOME",
        "ANNALS_CONFIG",
        &inherited,
    ];
    let steps: Vec<String> = names.iter().map(|name| format!("env={name}")).collect();
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let mut trial = Trial::of(&steps)
        .set("env", json!({ "OWN": "mine", "ANNALS_TOKEN": "forged", "ANNALS_RUN_ID": "forged" }));
    let lines = |trial: &Trial| -> Vec<String> {
        trial.run().outcome.reply.text.unwrap().lines().map(str::to_owned).collect()
    };
    let bare = lines(&trial);
    assert_eq!(bare[..5], ["run-1", "agent:a:main", "part-1", "a", "0"]);
    assert_eq!(bare[5..10], ["-"; 5]);
    assert_eq!(bare[10], "mine");
    assert_eq!(bare[11], trial.path("store").display().to_string());
    assert_eq!(bare[12], trial.path("annals.json5").display().to_string());
    assert_eq!(bare[13], value);
    trial.job.depth = 2;
    trial.job.parent_run_id = Some("run-0".to_owned());
    trial.job.mcp_url = Some("http://127.0.0.1:1/mcp".to_owned());
    trial.job.token = Some("t-1".to_owned());
    trial.job.traceparent = Some("00-1-2-01".to_owned());
    trial.job.timeout = Some(std::time::Duration::from_secs(3_600));
    let trial = trial.set("clearEnv", json!(true));
    let full = lines(&trial);
    assert_eq!(full[4..9], ["2", "run-0", "http://127.0.0.1:1/mcp", "t-1", "00-1-2-01"]);
    assert!(full[9].ends_with('Z') && full[9].len() == 27, "{}", full[9]);
    assert_eq!((full[10].as_str(), full[13].as_str()), ("mine", "-"));
}

/// Goal: a command that cannot be started says which and what to do. Method: none of that name, none at that path, a file
/// that is no program, a folder that is not there.
#[test]
fn what_cannot_start() {
    let check = |trial: Trial, words: &[&str]| {
        let made = trial.run();
        assert_eq!(made.told(), "error spawn_failed -");
        assert!(words.iter().all(|word| made.detail().contains(word)), "{}", made.detail());
        assert_eq!((made.outcome.exit, made.heard.len()), (None, 0));
    };
    check(Trial::of(&[]).set("command", json!("no-such-agent")), &["no-such-agent", "PATH"]);
    check(Trial::of(&[]).set("command", json!("./no-such-agent")), &["not there"]);
    let plain = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    check(Trial::of(&[]).set("command", json!(plain)), &["chmod"]);
    check(Trial::of(&[]).set("cwd", json!("nowhere")), &["nowhere", "run.cwd"]);
}
