//! What the compiler does not hold about the source: layers, sizes, names and what a comment may be. Everything is read
//! as text.
#![expect(clippy::unwrap_used, reason = "a source that cannot be read fails the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of the engine by layer. A module uses its own layer's words only through itself: everything that it
/// names as `crate::…` lies in a layer before it. The names of the first layer may use each other.
const LAYERS: [&[&str]; 10] = [
    &["id", "error", "clock"],
    &["format"],
    &["storage", "watch"],
    &["store"],
    &["log"],
    &["projection"],
    &["session"],
    &["config", "import"],
    &["engine"],
    &["watcher"],
];

/// Who may use the log on disk: everything else above the store knows `EventStore` alone.
const USERS_OF_THE_DISK: [&str; 2] = ["log", "engine"];

/// The packages that each package may use; the tests of the program stand with the program.
const PACKAGES: [(&str, &[&str]); 5] = [
    ("engine", &[]),
    ("tools", &["annals-engine"]),
    ("cli", &["annals-engine", "annals-tools", "annals-tests"]),
    ("benches", &["annals-engine", "annals-tools", "annals-tests"]),
    ("tests", &["annals-engine", "annals-tools"]),
];

/// Where the file system may be used directly. What the system says of processes is read as files, and files are handed
/// to children.
const USERS_OF_FILES: [&str; 7] = [
    "engine/src/storage/",
    "engine/src/watch/",
    "engine/src/import/",
    "engine/src/config/",
    "tools/src/run/attachments.rs",
    "tools/src/run/deliver/file.rs",
    "tools/src/run/process.rs",
];

/// Where processes may be started.
const STARTERS: [&str; 2] = ["tools/src/run/", "tests/"];

/// The longest file in lines, its tests left out; what nine in ten stay below; the highest median.
const LINES: (usize, usize, usize) = (600, 400, 150);

/// Reads every `use` of a module of the engine in code that is not a test, and holds it against the table.
#[test]
fn layers() {
    let mut wrong = Vec::new();
    for file in sources().iter().filter(|file| file.path.starts_with("engine/src/")) {
        let module = module_of(&file.path);
        if module == "lib" {
            continue;
        }
        let Some(layer) = layer_of(&module) else {
            wrong.push(format!("{}: the module {module} has no layer", file.path));
            continue;
        };
        let code = file.code();
        let at_root = [format!("{module}.rs"), format!("{module}/mod.rs")]
            .contains(&file.path["engine/src/".len()..].to_owned());
        if code.contains("super::super") || (at_root && code.contains("super::")) {
            wrong.push(format!("{}: a module of the root is named by super::", file.path));
        }
        for used in used_modules(&code) {
            let fits = match layer_of(&used) {
                _ if used == module => true,
                Some(below) => below < layer || layer == 0 && below == 0,
                // The names that lib.rs gives out at the root are those of the first layer.
                None => ["Error", "ErrorKind", "Result"].contains(&used.as_str()),
            };
            let at_disk = ["log", "storage"].contains(&used.as_str());
            let may = !at_disk || layer < 4 || USERS_OF_THE_DISK.contains(&module.as_str());
            if !fits || !may {
                wrong.push(format!("{}: {module} may not use {used}", file.path));
            }
        }
    }
    none(&wrong);
}

/// Reads the manifests, and the sources above the engine, which know no disk.
#[test]
fn packages() {
    let mut wrong = Vec::new();
    for (package, allowed) in PACKAGES {
        let manifest = fs::read_to_string(root().join(package).join("Cargo.toml")).unwrap();
        for line in manifest.lines().filter(|line| line.starts_with("annals-")) {
            let used = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if !allowed.contains(&used) {
                wrong.push(format!("{package} may not use {used}"));
            }
        }
    }
    for file in sources().iter().filter(|f| f.in_any(&["tools/src/", "cli/src/"])) {
        for line in file.code().lines() {
            for door in ["annals_engine::storage", "annals_engine::log"] {
                if line.contains(door) {
                    wrong.push(format!("{}: {door} is for the engine", file.path));
                }
            }
        }
    }
    none(&wrong);
}

/// The file system and processes are used where the table says, tests aside.
#[test]
fn doors() {
    let mut wrong = Vec::new();
    for file in sources().iter().filter(|f| f.in_any(&["engine/src/", "tools/src/", "cli/src/"])) {
        let code = file.code();
        if code.contains("std::fs") && !file.in_any(&USERS_OF_FILES) {
            wrong.push(format!("{}: std::fs", file.path));
        }
        if code.contains("process::Command") && !file.in_any(&STARTERS) {
            wrong.push(format!("{}: std::process::Command", file.path));
        }
        let mapped = file.path == "engine/src/storage/map.rs";
        if code.contains(joined(["unsafe", "_code"]).as_str()) && !mapped {
            wrong.push(format!("{}: unsafe code", file.path));
        }
    }
    none(&wrong);
}

/// Files are as long as one can read.
#[test]
fn sizes() {
    let (longest, most, median) = LINES;
    let mut sizes: Vec<(usize, String)> = sources()
        .iter()
        .filter(|f| f.in_any(&["engine/src/", "tools/src/", "cli/src/", "benches/src/"]))
        .filter(|file| !file.path.ends_with("/tests.rs"))
        .map(|file| (file.without_tests().lines().count(), file.path.clone()))
        .collect();
    sizes.sort();
    let at = |part: usize| sizes.get(sizes.len() * part / 100).map_or(0, |(lines, _)| *lines);
    assert!(at(50) <= median, "the median file has {} lines, at most {median}", at(50));
    assert!(at(90) <= most, "one file in ten has {} lines or more, at most {most}", at(90));
    let long: Vec<String> = sizes
        .iter()
        .filter(|(lines, _)| *lines > longest)
        .map(|(lines, path)| format!("{path}: {lines} lines without its tests"))
        .collect();
    none(&long);
}

/// Every file says what it is, and no name is a drawer for anything.
#[test]
fn names_and_openings() {
    let drawers = ["util", "utils", "common", "helper", "helpers", "types", "manager", "misc"];
    let mut wrong = Vec::new();
    for file in sources() {
        if !file.text.starts_with("//! ") {
            wrong.push(format!("{}: opens without //!", file.path));
        }
        for part in file.path.split(['/', '.']).filter(|part| drawers.contains(part)) {
            wrong.push(format!("{}: a drawer named {part}", file.path));
        }
    }
    none(&wrong);
}

/// Comments and attributes: nothing unfinished, switched off or excused without a reason.
#[test]
fn nothing_is_left_lying() {
    let unfinished =
        [["TO", "DO"], ["FIX", "ME"], ["XX", "X:"], ["todo", "!("], ["unimplemented", "!("]];
    let off = [["#[", "ignore"], ["#[", "allow("], ["#![", "allow("], ["thread::", "sleep"]];
    let words: Vec<String> = unfinished.into_iter().chain(off).map(joined).collect();
    let mut wrong = Vec::new();
    for file in sources() {
        for (line, number) in file.text.lines().zip(1..) {
            let text = line.trim_start();
            let commented = text.strip_prefix("// ").is_some_and(|comment| {
                let code = ["let ", "use ", "fn ", "pub ", "if ", "for ", "match ", "return "];
                comment.ends_with([';', '{']) && code.iter().any(|word| comment.starts_with(word))
            });
            let divider = ["// ---", "// ===", "// ***", "// ###", "////"];
            if commented || divider.iter().any(|rule| text.starts_with(rule)) {
                wrong.push(format!("{}:{number}: {text}", file.path));
            }
            for word in words.iter().filter(|word| text.contains(word.as_str())) {
                wrong.push(format!("{}:{number}: {word}", file.path));
            }
        }
        for excuse in file.text.split("expect(").skip(1) {
            let lint = ["clippy::", "unsafe_code", "dead_code", "missing_docs", "unused"];
            let of_a_lint = lint.iter().any(|name| excuse.trim_start().starts_with(name));
            if of_a_lint && !excuse.split(")]").next().unwrap_or_default().contains("reason") {
                wrong.push(format!("{}: an exception without a reason", file.path));
            }
        }
    }
    none(&wrong);
}

/// A test says its goal and method before it begins.
#[test]
fn tests_say_what_they_show() {
    let mut wrong = Vec::new();
    for file in sources() {
        let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
        for (index, _) in lines.iter().enumerate().filter(|(_, line)| **line == "#[test]") {
            let before = lines[..index].iter().rev().find(|line| !line.starts_with("#["));
            if !before.is_some_and(|line| line.starts_with("///")) {
                wrong.push(format!("{}:{}: a test that says nothing", file.path, index + 1));
            }
        }
    }
    none(&wrong);
}

/// The project speaks of itself alone: no path of a machine it was made on, no page that is not part of it.
#[test]
fn the_project_speaks_of_itself() {
    let words: Vec<String> = [
        ["/wor", "k/"],
        ["/tmp", "/wt"],
        ["work", "tree"],
        ["house", ".md"],
        ["style", ".md"],
        ["format", ".md"],
        ["events", ".md"],
        ["reliability", ".md"],
        ["interfaces", ".md"],
        ["sessions", ".md"],
        ["scale-out", ".md"],
        ["shared/", "design"],
        ["BRI", "EF"],
    ]
    .map(joined)
    .into();
    let mut wrong = Vec::new();
    for path in files() {
        let Ok(text) = fs::read_to_string(root().join(&path)) else { continue };
        for word in words.iter().filter(|word| text.contains(word.as_str())) {
            wrong.push(format!("{}: {word}", path.display()));
        }
    }
    none(&wrong);
}

/// A source file: its path from the root of the project, and its text.
struct Source {
    path: String,
    text: String,
}

impl Source {
    fn in_any(&self, folders: &[&str]) -> bool {
        folders.iter().any(|folder| self.path.starts_with(folder))
    }

    /// The text without the tests at its end.
    fn without_tests(&self) -> &str {
        &self.text[..self.text.find("#[cfg(test)]\nmod ").unwrap_or(self.text.len())]
    }

    /// The text without comments and without the tests at its end.
    fn code(&self) -> String {
        let lines = self.without_tests().lines();
        let code = lines.filter(|line| !line.trim_start().starts_with("//") || line.is_empty());
        code.collect::<Vec<_>>().join("\n")
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Every file of the project by its path from the root; what builds and version control keep is left out.
fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                let kept_out = ["target", ".git", "corpus", "artifacts"];
                if !kept_out.iter().any(|name| path.ends_with(name)) {
                    folders.push(path);
                }
            } else if !path.ends_with(".git") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn sources() -> Vec<Source> {
    let rust = files().into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs"));
    let read = |path: PathBuf| Source {
        text: fs::read_to_string(root().join(&path)).unwrap(),
        path: path.to_str().unwrap().to_owned(),
    };
    let sources: Vec<Source> = rust.map(read).collect();
    assert!(sources.len() > 20, "the sources were not found");
    sources
}

fn module_of(path: &str) -> String {
    let inside = path.trim_start_matches("engine/src/");
    inside.split(['/', '.']).next().unwrap_or_default().to_owned()
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The first names of all paths that begin with `crate::`, those in braces too.
fn used_modules(code: &str) -> BTreeSet<String> {
    let name = |text: &str| {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        text[..end].to_owned()
    };
    let mut used = BTreeSet::new();
    for path in code.split("crate::").skip(1) {
        let Some(group) = path.strip_prefix('{') else {
            used.insert(name(path));
            continue;
        };
        let mut depth = 0;
        let mut first = String::new();
        for c in group.chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    used.insert(name(first.trim()));
                    first.clear();
                }
                _ if depth == 0 => first.push(c),
                _ => {}
            }
        }
        used.insert(name(first.trim()));
    }
    used.remove("");
    used
}

/// A word that this file may name without holding it.
fn joined(parts: [&str; 2]) -> String {
    parts.concat()
}

fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
