//! The help, as it stands: every change of it is seen.

use expect_test::expect_file;

use crate::support::Home;

/// Goal: help says the same to a pipe and to `-h`, fits a page, and changes on purpose only. Method: the help of the
/// program and of each verb against a file; set `UPDATE_EXPECT=1` to write them anew.
#[test]
fn help_is_as_written_down() {
    let home = Home::new();
    let check = |name: &str, args: &[&str]| {
        let text = home.ok(args);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        expect_file![format!("{}/../tests/cli/help/{name}.txt", env!("CARGO_MANIFEST_DIR"))]
            .assert_eq(&text);
    };
    check("annals", &["--help"]);
    for verb in [
        "quickstart",
        "tail",
        "log",
        "stats",
        "sessions",
        "session",
        "import",
        "export",
        "verify",
        "repair",
        "completions",
    ] {
        check(verb, &[verb, "--help"]);
    }
    check("session-push", &["session", "push", "--help"]);
    check("sessions-list", &["sessions", "list", "--help"]);
    check("sessions-history", &["sessions", "history", "--help"]);
    assert_eq!(home.ok(&["-h"]), home.ok(&["--help"]));
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
    home.fails(&["completions", "tcsh"], 2, "usage");
}
