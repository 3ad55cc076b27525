//! How tokens and the reply tags before them are spelled: what is trimmed, how letters compare, and whether a line that is
//! not yet whole can still become a token. It looks at one line or one place only.

use super::Tokens;

/// How many marks of emphasis stand at the most before a token, and behind it.
const MARKS_MAX: usize = 3;

/// How many bytes the inside of a reply tag has at the most.
const TAG_MAX: usize = 256;

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Nothing that is seen.
    Blank,
    /// A token, spelled so, with nothing but marks around it.
    Token(&'a str),
    /// Text that would be a token with more behind it.
    Begun,
    /// Text, whatever follows.
    Text,
}

/// Whether there is a reply tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// There is, and it ends here, in bytes, blanks behind it on its line included.
    Ends(usize),
    /// There would be one with more behind it.
    Begun,
    /// There is none, whatever follows.
    None,
}

/// Whether a character is white space or has no width.
pub(super) fn is_blank(c: char) -> bool {
    c.is_whitespace() || is_without_width(c)
}

/// Whether a character ends a line.
pub(super) fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_without_width(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}'
    )
}

fn is_mark(c: char) -> bool {
    matches!(c, '*' | '_')
}

/// A text without what is not seen at its ends.
pub(super) fn trimmed(text: &str) -> &str {
    text.trim_matches(is_blank)
}

/// A token as it is compared: in small letters, every blank alike, without characters that have no width.
pub(super) fn folded(token: &str) -> Vec<char> {
    token.chars().filter(|c| !is_without_width(*c)).flat_map(fold).collect()
}

fn fold(c: char) -> impl Iterator<Item = char> {
    if c.is_whitespace() { ' ' } else { c }.to_lowercase()
}

/// Whether a trimmed text is a token as it stands.
pub(super) fn is_token(text: &str, tokens: &Tokens) -> bool {
    let said = folded(text);
    tokens.folded.contains(&said)
}

/// What a line is.
pub(super) fn line<'a>(line: &'a str, tokens: &Tokens) -> Line<'a> {
    let said = trimmed(line);
    if said.is_empty() {
        return Line::Blank;
    }
    let mut begun = false;
    let mut rest = said;
    for _ in 0..=MARKS_MAX {
        begun |= rest.is_empty();
        for token in &tokens.folded {
            match follow(rest, token) {
                Followed::ToItsEnd(end) if is_trailer(&rest[end..]) => {
                    return Line::Token(&rest[..end]);
                }
                Followed::AsFarAsThereIs => begun = true,
                _ => {}
            }
        }
        let Some(inner) = rest.strip_prefix(is_mark) else { break };
        rest = inner;
    }
    if begun { Line::Begun } else { Line::Text }
}

enum Followed {
    /// The text goes on behind the token, which ends here, in bytes.
    ToItsEnd(usize),
    /// The text ends inside the token.
    AsFarAsThereIs,
    /// The text is another.
    NotSoFar,
}

/// Compares the beginning of a text with a token.
fn follow(text: &str, token: &[char]) -> Followed {
    let mut left = token;
    for (at, c) in text.char_indices() {
        if left.is_empty() {
            return Followed::ToItsEnd(at);
        }
        if is_without_width(c) {
            continue;
        }
        for folded in fold(c) {
            match left.split_first() {
                Some((expected, more)) if *expected == folded => left = more,
                _ => return Followed::NotSoFar,
            }
        }
    }
    if left.is_empty() { Followed::ToItsEnd(text.len()) } else { Followed::AsFarAsThereIs }
}

/// Whether nothing but marks and blanks stands behind a token.
fn is_trailer(rest: &str) -> bool {
    rest.chars().all(|c| is_mark(c) || is_blank(c))
        && rest.chars().filter(|c| is_mark(*c)).count() <= MARKS_MAX
}

/// The reply tag at the beginning of a text: `[[reply_to_current]]` or `[[reply_to:<id>]]`.
pub(super) fn tag(text: &str) -> Tag {
    let rest = text.trim_start_matches(is_blank);
    let Some(inside) = rest.strip_prefix("[[") else {
        return if rest == "[" { Tag::Begun } else { Tag::None };
    };
    let end = inside.find(['[', ']']).unwrap_or(inside.len());
    let name = &inside[..end];
    if end > TAG_MAX || name.contains(is_line_break) {
        return Tag::None;
    }
    let close = &inside[end..];
    if close.is_empty() || close == "]" {
        return Tag::Begun;
    }
    let name = name.trim().to_ascii_lowercase();
    if !close.starts_with("]]") || name != "reply_to_current" && !name.starts_with("reply_to:") {
        return Tag::None;
    }
    let behind = close[2..].trim_start_matches(|c| is_blank(c) && !is_line_break(c));
    Tag::Ends(text.len() - behind.len())
}

/// Where a token ends that is glued to the sentence behind it, in bytes: only one that no prose is written with, spelled
/// as in the list, and only before a capital that begins a word. `Err` when more text may show one.
pub(super) fn glued(text: &str, tokens: &Tokens) -> Result<Option<usize>, Undecided> {
    let said = text.trim_start_matches(is_blank);
    let marked =
        |token: &&String| token.contains(|c: char| !c.is_alphabetic() && !c.is_whitespace());
    for token in tokens.spelled.iter().filter(marked) {
        let Some(behind) = said.strip_prefix(token.as_str()) else { continue };
        let mut behind = behind.chars();
        if !behind.next().is_some_and(char::is_uppercase) {
            continue;
        }
        match behind.next() {
            None => return Err(Undecided),
            Some(c) if c.is_uppercase() || c.is_numeric() || c == '_' => {}
            Some(_) => return Ok(Some(text.len() - said.len() + token.len())),
        }
    }
    Ok(None)
}

/// More text decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Undecided;
