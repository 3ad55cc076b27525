//! The help, as it stands: every change of it is seen.

use expect_test::expect_file;

use crate::support::{Home, on_terminal};

/// How the lines of examples begin that go on with no other.
const BEGINNINGS: [&str; 6] =
    ["  annals ", "  git ", "  claude ", "  curl ", "  ANNALS_", "  eval "];

/// Goal: help says the same to a pipe and to `-h`, fits a page, and changes on purpose only. Method: the help of the
/// program and of each verb against a file; set `UPDATE_EXPECT=1` to write them anew. Examples, which somebody copies, are
/// broken nowhere but where a shell goes on.
#[test]
fn help_is_as_written_down() {
    let home = Home::new();
    let check = |name: &str, args: &[&str]| {
        let text = home.ok(args);
        examples_can_be_copied(name, &text);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        expect_file![format!("{}/../tests/cli/help/{name}.txt", env!("CARGO_MANIFEST_DIR"))]
            .assert_eq(&text);
    };
    check("annals", &["--help"]);
    for verb in [
        "quickstart",
        "ask",
        "subagent",
        "tail",
        "log",
        "stats",
        "usage",
        "replay",
        "runs",
        "agents",
        "sessions",
        "session",
        "import",
        "export",
        "verify",
        "repair",
        "config",
        "tools",
        "mcp",
        "serve",
        "heartbeat",
        "completions",
        "graph",
        "timeline",
        "doctor",
        "worker",
        "watch",
    ] {
        check(verb, &[verb, "--help"]);
    }
    check("session-push", &["session", "push", "--help"]);
    for verb in ["context", "resume", "reset", "status", "patch", "archive"] {
        check(&format!("session-{verb}"), &["session", verb, "--help"]);
    }
    check("sessions-search", &["sessions", "search", "--help"]);
    for verb in ["init", "show", "set"] {
        check(&format!("config-{verb}"), &["config", verb, "--help"]);
    }
    check("tools-call", &["tools", "call", "--help"]);
    check("sessions-list", &["sessions", "list", "--help"]);
    check("sessions-history", &["sessions", "history", "--help"]);
    check("agents-try", &["agents", "try", "--help"]);
    for verb in ["spawn", "list", "resume", "status", "kill"] {
        check(&format!("subagent-{verb}"), &["subagent", verb, "--help"]);
    }
    for verb in ["send", "spawn"] {
        check(&format!("sessions-{verb}"), &["sessions", verb, "--help"]);
    }
    check("runs-wait", &["runs", "wait", "--help"]);
    check("runs-kill", &["runs", "kill", "--help"]);
    check("runs-list", &["runs", "list", "--help"]);
    check("runs-show", &["runs", "show", "--help"]);
    assert_eq!(home.ok(&["-h"]), home.ok(&["--help"]));
    assert_eq!(home.ok(&["help"]), home.ok(&["--help"]));
    assert_eq!(home.ok(&["help", "session", "push"]), home.ok(&["session", "push", "--help"]));
    home.fails(&["help", "nonsense"], 2, "usage");
}

/// Of the lines of the examples each begins one, or goes on with one that says so.
#[track_caller]
fn examples_can_be_copied(name: &str, text: &str) {
    let examples = text.split_once("Examples:").map_or("", |(_, examples)| examples);
    let examples = examples.split("\n\n").next().unwrap_or_default();
    let lines: Vec<&str> = examples.lines().collect();
    for pair in lines.windows(2) {
        let strange = !BEGINNINGS.iter().any(|b| pair[1].starts_with(b));
        assert!(pair[1].is_empty() || !strange || pair[0].ends_with('\\'), "{name}: {}", pair[1]);
    }
}

/// Goal: help fits the screen, and its paragraphs fill it. Method: terminals of four widths; no line is wider than the
/// screen or than 100 columns, and of a paragraph only the last line is short.
#[test]
fn help_fits_the_screen() {
    let home = Home::new();
    for width in [60, 80, 100, 160] {
        for args in [&["--help"][..], &["log", "--help"], &["session", "push", "--help"]] {
            let (code, text) = on_terminal(home.command(args), width);
            assert_eq!(code, Some(0));
            let wrapped = text.lines().filter(|line| !line.starts_with("Usage: "));
            let widest = wrapped.map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest <= usize::from(width.min(100)), "{widest} at {width}: {text}");
        }
        let (_, text) = on_terminal(home.command(&["log", "--help"]), width);
        let behind = text.lines().skip_while(|line| !line.starts_with("In JSON and CSV"));
        let paragraph: Vec<&str> = behind.take_while(|line| !line.is_empty()).collect();
        for pair in paragraph.windows(2) {
            let next = pair[1].split(' ').next().unwrap_or_default();
            assert!(
                pair[0].len() + 1 + next.len() > usize::from(width.min(100)),
                "{width}: {text}"
            );
        }
    }
}

/// Goal: no arguments are a question, answered on standard error with exit code 2. Method: run it bare.
#[test]
fn no_arguments() {
    let home = Home::new();
    let ran = home.run(&[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("annals quickstart"), "{ran:#?}");
    assert_eq!(home.ok(&["--version"]), format!("annals {}\n", env!("CARGO_PKG_VERSION")));
}

/// Goal: completion scripts name the verbs. Method: each shell's script.
#[test]
fn completions_of_every_shell() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.ok(&["completions", shell]);
        for verb in ["tail", "sessions"] {
            assert!(script.contains(verb), "{shell}: {verb}");
        }
    }
    let zsh = home.ok(&["completions", "zsh"]);
    for option in ["--session", "--type", "--from", "--agent", "--since", "--grep", "--after"] {
        let offers = zsh.lines().filter(|line| {
            line.contains(&format!("'{option}=[")) || line.contains(&format!("'*{option}=["))
        });
        let offers: Vec<&str> = offers.collect();
        assert!(!offers.is_empty(), "{option}");
        assert!(
            offers.iter().all(|line| !line.contains("_files") && !line.contains("_default")),
            "{offers:?}"
        );
    }
    home.fails(&["completions", "tcsh"], 2, "usage");
}
