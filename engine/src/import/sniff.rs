//! What a file is, by its first bytes. Names are hints for people; programs rename their files, and what a file holds
//! it shows in its first records.

use std::io::{self, Read};

use super::tree::SourceTree;

/// How much of a file is looked at, in bytes: a little at first, and more when that tells nothing.
const PREFIX_BYTES: [u64; 2] = [8 << 10, 64 << 10];

/// How many lines of that are looked at before a file counts as unknown.
const LINES_MAX: usize = 16;

/// Programs whose files are known by sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Program {
    /// OpenClaw.
    OpenClaw,
    /// pi, the coding agent whose session format OpenClaw uses.
    Pi,
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Qwen Code.
    QwenCode,
    /// Hermes.
    Hermes,
    /// Arka.
    Arka,
    /// This one.
    Annals,
}

impl Program {
    /// The word for it in keys, ids and events.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::OpenClaw => "openclaw",
            Self::Pi => "pi",
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::QwenCode => "qwen-code",
            Self::Hermes => "hermes",
            Self::Arka => "arka",
            Self::Annals => "annals",
        }
    }

    /// Its name as people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenClaw => "OpenClaw",
            Self::Pi => "pi",
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::QwenCode => "Qwen Code",
            Self::Hermes => "Hermes",
            Self::Arka => "Arka",
            Self::Annals => "annals",
        }
    }
}

impl std::fmt::Display for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What a file looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looks {
    /// A session of pi, which is also what a transcript of OpenClaw is.
    Session,
    /// A transcript that annals wrote.
    Transcript,
    /// An index of sessions: OpenClaw's `sessions.json`.
    Index,
    /// A file of this program that cannot be imported.
    Of(Program),
    /// A SQLite database with this `user_version`.
    Sqlite(u32),
    /// Compressed with Zstandard.
    Zstd,
    /// Compressed with gzip.
    Gzip,
    /// Not a byte.
    Empty,
    /// Nothing known.
    Unknown,
}

/// Looks at a file.
pub(crate) fn sniff(tree: &dyn SourceTree, path: &std::path::Path) -> io::Result<Looks> {
    let mut file = tree.open(path)?;
    let mut prefix = Vec::new();
    let mut found = Looks::Unknown;
    for bytes in PREFIX_BYTES {
        file.by_ref().take(bytes - prefix.len() as u64).read_to_end(&mut prefix)?;
        found = looks(&prefix);
        if found != Looks::Unknown || (prefix.len() as u64) < bytes {
            break;
        }
    }
    let rollout = path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"rollout-"));
    Ok(match found {
        Looks::Unknown if rollout => Looks::Of(Program::Codex),
        looks => looks,
    })
}

/// The `user_version` of a SQLite database (<https://www.sqlite.org/fileformat.html>, section 1.3); `None` for bytes
/// that do not begin one.
pub(crate) fn sqlite_version(prefix: &[u8]) -> Option<u32> {
    let header = prefix.strip_prefix(b"SQLite format 3\0")?;
    let version = header.get(60 - 16..64 - 16)?;
    Some(u32::from_be_bytes(version.try_into().ok()?))
}

fn looks(prefix: &[u8]) -> Looks {
    if prefix.is_empty() {
        return Looks::Empty;
    }
    if let Some(version) = sqlite_version(prefix) {
        return Looks::Sqlite(version);
    }
    if prefix.starts_with(b"\x28\xb5\x2f\xfd") {
        return Looks::Zstd;
    }
    if prefix.starts_with(b"\x1f\x8b\x08") {
        return Looks::Gzip;
    }
    let prefix = prefix.strip_prefix(b"\xef\xbb\xbf").unwrap_or(prefix);
    // One object may go over many lines, so the whole is looked at as well: first where its first line is a brace alone,
    // and else when the lines tell nothing.
    let lines = prefix.split(|b| *b == b'\n').take(LINES_MAX);
    let first = prefix.trim_ascii_start();
    let alone = first.starts_with(b"{\n") || first.starts_with(b"{\r");
    let (before, after) = if alone {
        (Some(first), None)
    } else {
        (None, Some(first).filter(|f| f.starts_with(b"{")))
    };
    let pieces = before.into_iter().chain(lines).chain(after);
    pieces.map(line_looks).find(|looks| *looks != Looks::Unknown).unwrap_or(Looks::Unknown)
}

fn line_looks(line: &[u8]) -> Looks {
    let members = Members::of(line);
    let has = |name: &str| members.get(name).is_some();
    let kind = members.text("type");
    let known_entry = || {
        has("timestamp")
            && (has("message.role")
                || matches!(kind, "model_change" | "thinking_level_change" | "compaction"))
    };
    if (kind == "session" && has("id"))
        || (has("type") && !has("uuid") && !has("sessionId") && known_entry())
    {
        return Looks::Session;
    }
    if has("annals") && has("type") {
        return Looks::Transcript;
    }
    if has("seq") && has("stream") && has("prev") {
        return Looks::Of(Program::Annals);
    }
    if has("sessionId") && has("projectHash") {
        return Looks::Of(Program::Gemini);
    }
    if has("session_id") && (has("platform") || has("session_start") || has("messages")) {
        return Looks::Of(Program::Hermes);
    }
    if (has("chat_id") && has("turns")) || (has("task") && has("session_channel")) {
        return Looks::Of(Program::Arka);
    }
    let rollout = ["session_meta", "response_item", "event_msg", "turn_context", "compacted"];
    if (has("payload") && rollout.contains(&kind)) || has("record_type") {
        return Looks::Of(Program::Codex);
    }
    if has("sessionId") && has("message.parts") {
        return Looks::Of(Program::QwenCode);
    }
    let claude = has("leafUuid") || has("parentUuid") || has("isSidechain");
    if claude || ((has("uuid") || has("sessionId")) && (has("message") || has("type"))) {
        return Looks::Of(Program::ClaudeCode);
    }
    if members.0.iter().any(|(name, _)| name.ends_with(".sessionId")) {
        return Looks::Index;
    }
    Looks::Unknown
}

/// The members of an object and of the objects in it (`a.b`), as far as the bytes go, with the text of those that are
/// plain strings.
struct Members(Vec<(String, String)>);

impl Members {
    fn of(bytes: &[u8]) -> Self {
        let mut members = Self(Vec::new());
        let (mut at, mut depth, mut outer) = (0, 0_usize, String::new());
        let mut brackets: Vec<u8> = Vec::new();
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'{' | b'[' => {
                    brackets.push(*byte);
                    depth += 1;
                }
                b'}' | b']' => {
                    brackets.pop();
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        break;
                    }
                }
                b'"' => {
                    let (text, end) = string(bytes, at);
                    at = end;
                    let in_object = brackets.iter().all(|b| *b == b'{');
                    if depth <= 2 && in_object && next_byte(bytes, at) == Some(b':') {
                        let name = if depth == 2 { format!("{outer}.{text}") } else { text };
                        if depth == 1 {
                            outer.clone_from(&name);
                        }
                        members.0.push((name, value_text(bytes, at)));
                    }
                    continue;
                }
                _ if depth == 0 && !byte.is_ascii_whitespace() => break,
                _ => {}
            }
            at += 1;
        }
        members
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(have, _)| have == name).map(|(_, text)| text.as_str())
    }

    fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }
}

/// The string that begins at `at`, escapes not read, and where it ends.
fn string(bytes: &[u8], at: usize) -> (String, usize) {
    let rest = bytes.get(at + 1..).unwrap_or_default();
    let mut escaped = false;
    let len = rest
        .iter()
        .position(|b| {
            let end = *b == b'"' && !escaped;
            escaped = *b == b'\\' && !escaped;
            end
        })
        .unwrap_or(rest.len());
    let text = String::from_utf8_lossy(rest.get(..len.min(128)).unwrap_or_default()).into_owned();
    (text, at + 1 + len + 1)
}

fn next_byte(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at..)?.iter().copied().find(|b| !b.is_ascii_whitespace())
}

/// The text of the string behind the colon that comes next; empty for any other value.
fn value_text(bytes: &[u8], at: usize) -> String {
    let rest = bytes.get(at..).unwrap_or_default().trim_ascii_start();
    let rest = rest.strip_prefix(b":").unwrap_or_default().trim_ascii_start();
    if rest.first() == Some(&b'"') { string(rest, 0).0 } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: impl AsRef<[u8]>, expect: Looks) {
        let bytes = bytes.as_ref();
        assert_eq!(looks(bytes), expect, "{}", String::from_utf8_lossy(bytes));
    }

    /// Goal: each program's files are known by their first records. Method: the shortest beginning of each.
    #[test]
    fn known_by_sight() {
        check(
            r#"{"type":"session","version":3,"id":"a","timestamp":"t","cwd":"/"}"#,
            Looks::Session,
        );
        check(r#"{"type":"session","id":"a","timestamp":"t","provider":"p"}"#, Looks::Session);
        check(
            "{\"type\":\"sess\n{\"type\":\"message\",\"id\":\"1\",\"timestamp\":\"t\",\"message\":{\"role\":\"user\"}}",
            Looks::Session,
        );
        check(r#"{"annals":1,"session":"cli:a","type":"turn"}"#, Looks::Transcript);
        check("{\n  \"agent:main:main\": {\n    \"sessionId\": \"a\"", Looks::Index);
        check(
            r#"{"parentUuid":null,"sessionId":"s","type":"user","message":{}}"#,
            Looks::Of(Program::ClaudeCode),
        );
        check(r#"{"type":"summary","summary":"s","leafUuid":"u"}"#, Looks::Of(Program::ClaudeCode));
        check(r#"{"timestamp":"t","type":"session_meta","payload":{}}"#, Looks::Of(Program::Codex));
        check(r#"{"sessionId":"s","projectHash":"h","startTime":"t"}"#, Looks::Of(Program::Gemini));
        check(
            "{\n \"session_id\": \"s\",\n \"model\": \"m\",\n \"messages\": [",
            Looks::Of(Program::Hermes),
        );
        check(r#"{"key":"k","channel":"c","chat_id":"1","turns":[]}"#, Looks::Of(Program::Arka));
        check(
            r#"{"id":"0123456789","task":"t","status":"done","session_channel":"cli"}"#,
            Looks::Of(Program::Arka),
        );
        check(
            r#"{"seq":1,"time":"t","durable":0,"prev":"00000000","stream":"log"}"#,
            Looks::Of(Program::Annals),
        );
    }

    /// Goal: what is not known is said to be unknown. Method: other JSON, no JSON, nothing.
    #[test]
    fn unknown() {
        check("", Looks::Empty);
        check("# notes\n", Looks::Unknown);
        check(r#"{"name":"x","version":"1.0.0"}"#, Looks::Unknown);
        check("[1,2,3]", Looks::Unknown);
        check("\0\0\0\0", Looks::Unknown);
        check(b"\x28\xb5\x2f\xfd\x04", Looks::Zstd);
    }

    /// Goal: the schema number is read from where SQLite keeps it. Method: a header written by hand.
    #[test]
    fn sqlite() {
        let mut header = [0_u8; 100];
        header[..16].copy_from_slice(b"SQLite format 3\0");
        header[63] = 23;
        check(header, Looks::Sqlite(23));
        assert_eq!(sqlite_version(&header[..40]), None);
    }
}
