//! How a reply begins and how it ends: what there is decided on, of a whole reply and of one that still grows.

use super::spelling::{Line, Tag, Undecided, glued, is_blank, is_line_break, line, tag};
use super::{Cut, CutRule, SilenceRule, Tokens};

/// How a reply begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Head<'a> {
    /// There is no text yet, or more of it decides.
    Open,
    /// Nothing but tokens; the first of them.
    Tokens(&'a str),
    /// Text, and there will be.
    Text {
        /// The reply tags that what was cut stood between; empty when nothing was cut.
        tags: String,
        /// Where the text begins that goes out behind them, in bytes; 0 when nothing was cut.
        start: usize,
        /// What was cut.
        cuts: Vec<Cut<'a>>,
    },
}

/// Decides how a reply begins. With `grows`, only what no further text changes.
pub(super) fn head<'a>(reply: &'a str, tokens: &Tokens, grows: bool) -> Head<'a> {
    let (mut tags, mut cuts) = (String::new(), Vec::new());
    let mut at = 0;
    while at < reply.len() {
        let rest = &reply[at..];
        match tag(rest) {
            Tag::Ends(end) => {
                tags.push_str(rest[..end].trim_start_matches(is_blank));
                at += end;
                continue;
            }
            Tag::Begun if grows => return Head::Open,
            Tag::Begun | Tag::None => {}
        }
        let (first, next) = first_line(rest);
        match line(first, tokens) {
            Line::Blank => at += next,
            Line::Token(token) => {
                cuts.push(Cut { rule: CutRule::FirstLine, token });
                at += next;
            }
            Line::Begun if grows && next == rest.len() => return Head::Open,
            Line::Begun | Line::Text => match glued(rest, tokens) {
                Err(Undecided) if grows => return Head::Open,
                Ok(Some(end)) => {
                    let token = rest[..end].trim_start_matches(is_blank);
                    cuts.push(Cut { rule: CutRule::Glued, token });
                    at += end;
                }
                Ok(None) | Err(Undecided) => {
                    return match cuts.is_empty() {
                        true => Head::Text { tags: String::new(), start: 0, cuts },
                        false => Head::Text { tags, start: at, cuts },
                    };
                }
            },
        }
    }
    match cuts.first() {
        Some(cut) if !grows => Head::Tokens(cut.token),
        _ => Head::Open,
    }
}

/// The first line, and where the next one begins.
fn first_line(text: &str) -> (&str, usize) {
    match text.char_indices().find(|(_, c)| is_line_break(*c)) {
        Some((end, c)) => (&text[..end], end + c.len_utf8()),
        None => (text, text.len()),
    }
}

/// Cuts tokens from the end of a reply: those alone on lines behind the line at `start`. The answer is where what stays
/// ends, in bytes.
pub(super) fn tail<'a>(
    reply: &'a str,
    start: usize,
    tokens: &Tokens,
    cuts: &mut Vec<Cut<'a>>,
) -> usize {
    let cut_before = cuts.len();
    let mut end = reply.len();
    loop {
        let (before, last) = last_line(reply[start..end].trim_end_matches(is_blank));
        let (Some(before), Line::Token(token)) = (before, line(last, tokens)) else { break };
        cuts.insert(cut_before, Cut { rule: CutRule::LastLine, token });
        end = start + before.trim_end_matches(is_blank).len();
    }
    end
}

/// The last line, and what stands before it if there is another.
fn last_line(text: &str) -> (Option<&str>, &str) {
    match text.char_indices().rfind(|(_, c)| is_line_break(*c)) {
        Some((end, c)) => (Some(&text[..end]), &text[end + c.len_utf8()..]),
        None => (None, text),
    }
}

/// How much of a text whose first line is text stays whatever follows, in bytes: without the blanks at its end, and
/// without lines there that are tokens or may become one.
pub(super) fn settled(text: &str, tokens: &Tokens) -> usize {
    let (mut before, mut last) = last_line(text);
    let mut is_whole = false;
    let mut end = text.len();
    while let Some(rest) = before {
        match line(last, tokens) {
            Line::Text => break,
            Line::Begun if is_whole => break,
            Line::Begun | Line::Token(_) | Line::Blank => {}
        }
        end = rest.len();
        (before, last) = last_line(rest);
        is_whole = true;
    }
    text[..end].trim_end_matches(is_blank).len()
}

/// The token at an edge of a reply with other text, spelled as in the list.
pub(super) fn token_at_edge<'a>(
    reply: &'a str,
    cuts: &[Cut<'a>],
    tokens: &Tokens,
) -> Option<(&'a str, SilenceRule)> {
    if let Some(cut) = cuts.first() {
        let rule = match cut.rule {
            CutRule::LastLine => SilenceRule::TrailingToken,
            CutRule::FirstLine | CutRule::Glued => SilenceRule::LeadingToken,
        };
        return Some((cut.token, rule));
    }
    let mut said = reply;
    while let Tag::Ends(end) = tag(said) {
        said = &said[end..];
    }
    let said = said.trim_matches(|c| is_blank(c) || c == '*');
    let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    tokens.spelled.iter().find_map(|token| {
        let is_word = |c: char| c.is_alphanumeric();
        let before = said.strip_suffix(token.as_str());
        let behind = said.strip_prefix(token.as_str());
        let leads = behind
            .is_some_and(|behind| !(token.ends_with(is_word) && in_word(behind.chars().next())));
        let trails = before.is_some_and(|before| {
            !(token.starts_with(is_word) && in_word(before.chars().next_back()))
        });
        if leads {
            return Some((&said[..token.len()], SilenceRule::LeadingToken));
        }
        trails.then(|| (&said[said.len() - token.len()..], SilenceRule::TrailingToken))
    })
}
