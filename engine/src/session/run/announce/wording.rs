//! The words of an announce: status and numbers from the run, the result from what the child said.

use crate::error::Result;
use crate::session::content;
use crate::session::event::{Role, RunFinished, RunStatus, Tokens as Usage};
use crate::session::silent::{ControlWord, Lane, Silence, Tokens};
use crate::session::work::Outgoing;
use crate::store::EventStore;

use super::{backwards, text_at, told};
use crate::session::run::Wording;
use crate::session::run::prompt::shortened;

/// The words of an announce.
///
/// # Errors
/// Whatever reading meets.
pub fn wording(
    store: &dyn EventStore,
    run_id: &str,
    outgoing: &Outgoing,
    silent: &Tokens,
) -> Result<Wording> {
    let child = outgoing.child_key.as_deref().unwrap_or_default();
    let run = told(store, run_id)?;
    let Some(end) = run.finished else { return Ok(Wording::default()) };
    let reply = match end.reply_seq {
        Some(_) => text_at(store, child, end.reply_seq)?,
        None => String::new(),
    };
    let silence = Silence::of(&reply, silent, Lane::Foreground);
    let is_silent = silence.token().is_some();
    let mut result = silence.outbound().to_owned();
    if result.trim().is_empty() && !is_silent {
        result = last_tool_result(store, child, run_id)?;
    }
    let mut notes = Vec::new();
    let mut wording = Wording { silent: is_silent.then_some("silent"), ..Wording::default() };
    if let Some(word) = ControlWord::of(&reply) {
        // A word between programs is for nobody's eyes.
        wording.silent = Some(match word {
            ControlWord::AnnounceSkip => "announce_skip",
            ControlWord::ReplySkip => "reply_skip",
        });
    }
    if let Some(step) = &outgoing.step {
        match step_words(store, child, &step.run_id)? {
            StepWords::Skips => wording.skipped = Some("announce_skip"),
            StepWords::Failed(why) => notes.push(format!("the announce step failed: {why}")),
            StepWords::Says(words)
                if Silence::of(&words, silent, Lane::Foreground).token().is_none() =>
            {
                let (told, noted) = parsed(&words);
                let says = Silence::of(&told, silent, Lane::Foreground);
                wording.silent = says.token().map(|_| "silent");
                result = told;
                notes.extend(noted);
            }
            StepWords::Says(_) => {}
        }
    }
    let mut text = format!("Status: {}\n", status(&end));
    text.push_str(&format!("Result: {}\n", shortened(result.trim())));
    if let Some(detail) = end.detail.as_ref().filter(|_| end.status != RunStatus::Ok) {
        notes.insert(0, detail.clone());
    }
    if !notes.is_empty() {
        text.push_str(&format!("Notes: {}\n", notes.join("; ")));
    }
    let asked = run.requested.as_ref();
    wording.chain = asked.map(|requested| (requested.chain_id.clone(), requested.hop));
    let session = run.requested.map(|requested| requested.session_id).unwrap_or_default();
    text.push_str(&format!("Stats: {}", stats(&end, child, &session, store)));
    wording.text = text;
    Ok(wording)
}

fn status(end: &RunFinished) -> String {
    match &end.reason {
        Some(reason) if end.status != RunStatus::Ok && reason != end.status.as_str() => {
            format!("{} ({reason})", end.status)
        }
        _ => end.status.to_string(),
    }
}

/// What a child's own step said.
enum StepWords {
    Says(String),
    Skips,
    Failed(String),
}

fn step_words(store: &dyn EventStore, child: &str, step: &str) -> Result<StepWords> {
    let told = told(store, step)?;
    let Some(end) = told.finished else { return Ok(StepWords::Failed("no end".to_owned())) };
    let text = text_at(store, child, end.reply_seq)?;
    Ok(match end.status {
        RunStatus::Ok if ControlWord::of(&text) == Some(ControlWord::AnnounceSkip) => {
            StepWords::Skips
        }
        RunStatus::Ok if text.trim().is_empty() => StepWords::Failed("it said nothing".to_owned()),
        RunStatus::Ok => StepWords::Says(text),
        status => StepWords::Failed(end.reason.unwrap_or_else(|| status.to_string())),
    })
}

/// The result and the notes of a child's own words. A status in them is left out: it comes from the run.
fn parsed(words: &str) -> (String, Option<String>) {
    let mut fields: [Option<String>; 2] = [None, None];
    let mut at = None;
    for line in words.lines() {
        let (name, rest) = line.split_once(':').map_or(("", line), |(name, rest)| (name, rest));
        match name.trim().to_ascii_lowercase().as_str() {
            "result" => (at, fields[0]) = (Some(0), Some(rest.trim().to_owned())),
            "notes" => (at, fields[1]) = (Some(1), Some(rest.trim().to_owned())),
            "status" | "stats" => at = None,
            _ => {
                if let Some(text) = at.and_then(|at: usize| fields.get_mut(at)?.as_mut()) {
                    text.push('\n');
                    text.push_str(line);
                }
            }
        }
    }
    match fields {
        [Some(result), notes] => (result, notes),
        [None, _] => (words.trim().to_owned(), None),
    }
}

fn last_tool_result(store: &dyn EventStore, child: &str, run_id: &str) -> Result<String> {
    let mut found = String::new();
    backwards(store, child, &mut |_, turn| {
        let own = turn.run_id.as_deref() == Some(run_id);
        if own && turn.role == Role::ToolResult {
            found = turn.content.as_ref().map(content::plain).unwrap_or_default();
        }
        found.is_empty()
    })?;
    Ok(found)
}

fn stats(end: &RunFinished, child: &str, session: &str, store: &dyn EventStore) -> String {
    let mut parts = vec![format!("runtime {}", runtime(end.runtime_ms))];
    parts.extend(end.tokens.as_ref().map(tokens));
    parts.push(format!("sessionKey {child}"));
    parts.push(format!("sessionId {session}"));
    let file = end.reply_seq.and_then(|seq| {
        let files = store.files().ok()?;
        let holds = files.into_iter().rev().find(|(first, _)| first.0 <= seq)?;
        Some(holds.1.display().to_string())
    });
    parts.extend(file.map(|file| format!("transcript {file}")));
    parts.extend(
        end.cost_micros
            .map(|cost| format!("cost ${}.{:04}", cost / 1_000_000, cost % 1_000_000 / 100)),
    );
    parts.join(" · ")
}

fn tokens(tokens: &Usage) -> String {
    let cached = tokens.cache_read.unwrap_or(0) + tokens.cache_write.unwrap_or(0);
    let (of_in, of_out) = (tokens.r#in, tokens.out);
    let sum = short(of_in.saturating_add(of_out));
    let mut text = format!("tokens {sum} (in {} / out {})", short(of_in), short(of_out));
    if cached > 0 {
        text.push_str(&format!(" · prompt/cache {}", short(cached.saturating_add(of_in))));
    }
    text
}

fn short(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{}m", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

fn runtime(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0 => format!("{ms}ms"),
        1..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m{:02}s", seconds / 3_600, seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: numbers read as in the announces that people know. Method: the borders.
    #[test]
    fn numbers() {
        let times = [0, 999, 1_000, 59_999, 312_000, 3_661_000].map(runtime);
        assert_eq!(times, ["0ms", "999ms", "1s", "59s", "5m12s", "1h01m01s"]);
        let counts = [0, 999, 1_000, 197_000, 999_999, 1_234_567].map(short);
        assert_eq!(counts, ["0", "999", "1.0k", "197.0k", "999.9k", "1.2m"]);
        let used = Usage { r#in: 12, out: 1_000, cache_read: Some(195_988), cache_write: None };
        assert_eq!(tokens(&used), "tokens 1.0k (in 12 / out 1.0k) · prompt/cache 196.0k");
    }

    /// Goal: a child's words give result and notes, its status is never believed, and words without a form are the
    /// result whole. Method: texts.
    #[test]
    fn words() {
        let of = |text: &str| parsed(text);
        assert_eq!(of("Result: a\nb\nNotes: c"), ("a\nb".into(), Some("c".into())));
        assert_eq!(of("Status: error\nresult:  fine \nStats: x"), ("fine".into(), None));
        assert_eq!(of(" just text: so "), ("just text: so".into(), None));
    }

    /// Goal: a long result is cut at a character, and says so. Method: letters of two bytes.
    #[test]
    fn long_results() {
        let long = "é".repeat(60_000);
        let cut = shortened(&long);
        assert!(cut.contains("[17600 more bytes"), "{}", &cut[cut.len() - 60..]);
    }
}
