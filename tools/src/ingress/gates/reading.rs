//! How a text reads: copies in which the ways to spell the same thing differently are gone. The text itself stays as it
//! is. In all of them letters are small, compatibility forms (full width, ligatures, mathematical letters) are plain,
//! accents and characters without width are gone.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The copies of a text.
pub(super) struct Readings {
    /// As an agent may follow it: what is shown as code is left out, and so are marks of emphasis; words that are spelled
    /// letter by letter are joined.
    pub(super) prose: String,
    /// Nothing but the letters of words that were spelled letter by letter, when there are such.
    pub(super) joined: String,
    /// With lines that go on put together, and without what is shown as code.
    pub(super) commands: String,
    /// With lines that go on put together.
    pub(super) whole: String,
}

impl Readings {
    /// Reads a text.
    pub(super) fn of(text: &str) -> Self {
        let plain = plain(text);
        let whole = without_recipe(&plain.replace("\\\n", " "));
        let commands = without_code(&whole);
        let (prose, joined) = letters_joined(&without_emphasis(&without_spans(&commands)));
        Self { prose, joined, commands, whole }
    }
}

/// The text in plain small letters.
fn plain(text: &str) -> String {
    let shown = text.chars().filter_map(|c| match c {
        // Letters that are not shown and that a model reads.
        '\u{e0020}'..='\u{e007e}' => char::from_u32(u32::from(c) - 0xe0000),
        _ if is_without_width(c) => None,
        _ => Some(c),
    });
    let mut plain = String::with_capacity(text.len());
    let mut before = ' ';
    for c in shown.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase) {
        match c {
            '\n' if before == '\r' => {}
            '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => plain.push('\n'),
            '’' | '‘' | 'ʼ' => plain.push('\''),
            _ if c.is_whitespace() && c != '\n' && c != '\t' => plain.push(' '),
            _ => plain.push(c),
        }
        before = c;
    }
    plain
}

fn is_without_width(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{640}'
            | '\u{180b}'..='\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e01ef}'
    )
}

/// The lines without the `RUN` lines of a recipe for images, which read like orders.
fn without_recipe(text: &str) -> String {
    let begins = |line: &str, words: &[&str]| words.iter().any(|word| line.starts_with(word));
    let is_base = |line: &str| line.starts_with("from ") && line.split(' ').count() < 5;
    let is_recipe = text.lines().any(is_base)
        && text.lines().any(|line| begins(line, &["copy ", "cmd ", "workdir ", "entrypoint "]));
    if !is_recipe {
        return text.to_owned();
    }
    let lines = text.lines().map(|line| if line.starts_with("run ") { "" } else { line });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The lines without those shown as code: between fences, indented after an empty line, and of a script from its `#!` on.
/// A fence that nobody closes shows nothing.
fn without_code(text: &str) -> String {
    let fences: Vec<usize> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| is_fence(line))
        .map(|(number, _)| number)
        .collect();
    let closed = fences.len() / 2 * 2;
    let mut fenced = fences.get(..closed).unwrap_or_default().chunks(2);
    let mut block = fenced.next();
    let mut kept = String::with_capacity(text.len());
    let (mut before_is_blank, mut in_script) = (false, false);
    for (number, line) in text.lines().enumerate() {
        let in_block = match block {
            Some([open, close]) => (open..=close).contains(&&number),
            _ => false,
        };
        if block.is_some_and(|lines| lines.last() == Some(&number)) {
            block = fenced.next();
        }
        in_script |= line.starts_with("#!/");
        let indented = (line.starts_with("    ") || line.starts_with('\t')) && before_is_blank;
        let is_code = in_block || indented || in_script;
        before_is_blank = line.trim().is_empty() || indented;
        kept.push_str(if is_code { " " } else { line });
        kept.push('\n');
    }
    kept
}

/// Whether a line begins or ends a block of code.
fn is_fence(line: &str) -> bool {
    ["```", "~~~"].iter().any(|fence| line.trim_start().starts_with(fence))
}

/// A text without what stands between backticks on one line.
fn without_spans(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    for line in text.lines() {
        let mut parts = line.split('`');
        let ticks = line.matches('`').count();
        kept.push_str(parts.next().unwrap_or_default());
        for (number, part) in parts.enumerate() {
            // An opening tick that nobody closes is text.
            let is_code = number % 2 == 0 && number + 1 < ticks;
            kept.push('`');
            kept.push_str(if is_code { "" } else { part });
        }
        kept.push('\n');
    }
    kept
}

/// A text without marks of emphasis.
fn without_emphasis(text: &str) -> String {
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    let mut kept = String::with_capacity(text.len());
    while let Some(c) = chars.next() {
        let inside = before.is_alphanumeric() && chars.peek().is_some_and(|c| c.is_alphanumeric());
        if matches!(c, '*' | '~') || c == '_' && !inside {
            continue;
        }
        kept.push(c);
        before = c;
    }
    kept
}

/// Fewer letters apart are no word that was spelled so.
const SPELLED_MIN: usize = 3;

/// Joins words whose letters stand apart, such as `i g n o r e`, and gives the joined letters alone too.
fn letters_joined(text: &str) -> (String, String) {
    let mut joined = String::new();
    let mut out = String::with_capacity(text.len());
    let chars: Vec<char> = text.chars().collect();
    let is_apart = |at: usize| {
        let of = |at: usize| chars.get(at).copied().unwrap_or(' ');
        of(at).is_alphabetic()
            && !of(at + 1).is_alphanumeric()
            && (at == 0 || !of(at - 1).is_alphanumeric())
    };
    let mut at = 0;
    while at < chars.len() {
        // A letter and one character between, again and again.
        let mut end = at;
        while is_apart(end) {
            end += 2;
        }
        if (end - at) / 2 < SPELLED_MIN {
            out.extend(chars.get(at));
            at += 1;
            continue;
        }
        let letters: String = chars.iter().skip(at).take(end - at).step_by(2).collect();
        out.push_str(&letters);
        out.push(' ');
        joined.push_str(&letters);
        at = end;
    }
    (out, joined)
}
