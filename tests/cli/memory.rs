//! What the program needs of memory beside the files that it maps: bounded, however large the store. The kernel holds
//! the bound: what a process may write to of its own is limited, and one that asks for more is refused and ends.

use std::path::Path;

use annals_engine::engine::Options;

use crate::support::{Home, Ran, append_all};

/// What a verb that reads in order may have of its own, in MiB: its data and its stack.
const IN_ORDER_MIB_MAX: u64 = 32;

/// What a verb may have that folds with as many threads as there are, or looks at the whole segment that is written to.
const FOLDING_MIB_MAX: u64 = 96;

/// Runs the program under a limit and expects success.
#[track_caller]
fn bounded(home: &Home, mib: u64, args: &[&str]) -> String {
    let script = format!("ulimit -d {}; exec \"$0\" \"$@\"", mib << 10);
    let mut all = vec!["-c", &script, env!("CARGO_BIN_EXE_annals")];
    all.extend(args);
    let ran = Ran::of(home.other("bash", &all));
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    ran.stdout
}

/// Goal: no verb takes memory by the size of the store. Method: a store of more than a hundred megabytes, one huge
/// session with texts of 60 KB and a small one; verbs that read in order run in 32 MiB of their own, those that need the
/// sessions in 96, and `verify` too. A program that wants more shows that the limit holds.
#[test]
fn verbs_fit_into_bounded_memory() {
    let home = Home::new();
    let said = |part: &str, text: &str| {
        let head = format!("'sessionId':'{part}','role':'assistant','from':'internal'");
        format!("{{{head},'tokens':{{'in':3,'out':2}},'content':'{text}'}}")
    };
    let text = "and so on ".repeat(6_000);
    let huge = (0..1_900).map(|_| said("p0", &text));
    append_all(&home.store(), Options::default(), "telegram:0", "turn", huge);
    let small = (0..50).map(|_| said("p1", "short"));
    append_all(&home.store(), Options::default(), "telegram:1", "turn", small);
    assert!(bytes(&home.store().join("log")) > 100 << 20);
    let greedy = "ulimit -d 32768; exec dd if=/dev/zero of=/dev/null bs=48M count=1";
    assert_ne!(Ran::of(home.other("bash", &["-c", greedy])).code, Some(0), "the limit is none");

    let in_order = |args: &[&str]| bounded(&home, IN_ORDER_MIB_MAX, args);
    assert_eq!(in_order(&["tail", "-n", "20", "--json"]).lines().count(), 20);
    assert_eq!(
        in_order(&["log", "--type", "turn", "-n", "5000", "-o", "jsonl"]).lines().count(),
        1_950
    );
    let folding = |args: &[&str]| bounded(&home, FOLDING_MIB_MAX, args);
    assert!(folding(&["stats", "--json"]).contains("\"turn\":1950"));
    assert!(folding(&["sessions", "list", "--messages", "3", "--json"]).contains("telegram:1"));
    for key in ["telegram:0", "telegram:1"] {
        let page = folding(&["sessions", "history", key, "-n", "20", "--json"]);
        assert_eq!(page.matches("\"role\":\"assistant\"").count(), 20);
    }
    folding(&["session", "push", "telegram", "0", "user", "more"]);
    folding(&["session", "push", "telegram", "1", "user", "more"]);
    assert_eq!(
        folding(&["log", "--session", "telegram:0", "-n", "5000", "-o", "jsonl"]).lines().count(),
        1_901
    );
    assert_eq!(
        folding(&["log", "--session", "telegram:1", "-n", "5000", "-o", "jsonl"]).lines().count(),
        51
    );
    folding(&["verify"]);
}

fn bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").metadata().expect("its length").len()).sum()
}
