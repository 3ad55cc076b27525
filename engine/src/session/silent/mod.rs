//! Silence: whether a reply asks that nothing goes out, and what goes out if it does not. Every path that shows a reply to
//! anybody asks here: webhook, command line, tools, announces, exchanges, background runs.
//!
//! - A reply is silent when it holds nothing but a token, in any case. White space, characters without width, Markdown's
//!   `*` and `_` around the token and a reply tag before it do not count; nor does saying the token on several lines.
//! - A token alone on the first or the last line of a reply with other text is cut from what goes out, and so is one that
//!   is glued to the sentence that the reply begins with. Each cut is told. Everywhere else a token is text like any other.
//! - A background lane may be told to be silent wherever a reply begins or ends with a token.
//! - A reply without text is empty, which is not silence.
//!
//! Attachments are not looked at: those of a silent reply go out without its text.

mod edges;
mod holdback;
mod spelling;

pub use holdback::Holdback;

use std::borrow::Cow;

use super::event::words;

use edges::{Head, head, tail, token_at_edge};
use spelling::{folded, is_line_break, is_token, trimmed};

/// The words that ask for silence, and how background lanes take them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// Folded, without characters that have no width.
    folded: Vec<Vec<char>>,
    /// As they were given, trimmed.
    spelled: Vec<String>,
    background: Background,
}

words! {
    /// What makes a reply of a background lane silent.
    pub enum Background {
        /// What makes any other reply silent.
        Exact = "exact",
        /// A token at its beginning or its end, spelled as in the list, whatever else it says.
        Edge = "edge",
    }
}

/// For whom a reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Somebody who waits for it.
    Foreground,
    /// Nobody who asked: heartbeats, watchers, schedules.
    Background,
}

/// What becomes of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silence<'a> {
    /// Nothing goes out, on purpose.
    Silent {
        /// The token as the reply spells it: the `silent` of its turn.
        token: &'a str,
        /// Why.
        rule: SilenceRule,
    },
    /// There is no text. That is no wish of the agent, and whoever waits is told.
    Empty,
    /// Text goes out.
    Says {
        /// What goes out.
        text: Cow<'a, str>,
        /// What was cut from the reply, in order.
        cuts: Vec<Cut<'a>>,
    },
}

words! {
    /// Why a reply is silent.
    pub enum SilenceRule {
        /// It is a token and nothing else.
        Exact = "exact",
        /// It is tokens, marks around them and a reply tag.
        Dressed = "dressed",
        /// It begins with a token, in a background lane.
        LeadingToken = "leading_token",
        /// It ends with a token, in a background lane.
        TrailingToken = "trailing_token",
    }
}

/// A token that was cut from what goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut<'a> {
    /// Where it stood.
    pub rule: CutRule,
    /// The token as the reply spells it.
    pub token: &'a str,
}

words! {
    /// Where a token was cut.
    pub enum CutRule {
        /// Alone on the first line.
        FirstLine = "first_line",
        /// Alone on the last line.
        LastLine = "last_line",
        /// Before the first sentence, without a blank between.
        Glued = "glued",
    }
}

words! {
    /// Words by which an agent ends an exchange or an announce: the whole reply, trimmed, in this case.
    pub enum ControlWord {
        /// No further round of this exchange.
        ReplySkip = "REPLY_SKIP",
        /// No announce.
        AnnounceSkip = "ANNOUNCE_SKIP",
    }
}

impl ControlWord {
    /// The control word that a reply is; `None` when it is none, or holds anything else.
    #[must_use]
    pub fn of(reply: &str) -> Option<Self> {
        Self::from_word(trimmed(reply))
    }
}

impl Tokens {
    /// The tokens that hold without any setting.
    pub const KNOWN: [&'static str; 4] = ["[SILENT]", "SILENT", "NO_REPLY", "NO REPLY"];

    /// The known tokens and more. Blank ones, and those of several lines, are left out.
    #[must_use]
    pub fn new<'t>(more: impl IntoIterator<Item = &'t str>, background: Background) -> Self {
        let mut tokens = Self { folded: Vec::new(), spelled: Vec::new(), background };
        for token in Self::KNOWN.into_iter().chain(more) {
            let token = trimmed(token);
            let folded = folded(token);
            if folded.is_empty() || token.contains(is_line_break) || tokens.folded.contains(&folded)
            {
                continue;
            }
            tokens.folded.push(folded);
            tokens.spelled.push(token.to_owned());
        }
        tokens
    }

    /// Whether replies of a lane are silent by their edges.
    fn by_edge(&self, lane: Lane) -> bool {
        lane == Lane::Background && self.background == Background::Edge
    }
}

impl Default for Tokens {
    fn default() -> Self {
        Self::new([], Background::Exact)
    }
}

impl<'a> Silence<'a> {
    /// Decides on a reply.
    #[must_use]
    pub fn of(reply: &'a str, tokens: &Tokens, lane: Lane) -> Self {
        let (tags, start, mut cuts) = match head(reply, tokens, false) {
            Head::Text { tags, start, cuts } => (tags, start, cuts),
            Head::Tokens(token) => {
                let exact = is_token(trimmed(reply), tokens);
                let rule = if exact { SilenceRule::Exact } else { SilenceRule::Dressed };
                return Self::Silent { token, rule };
            }
            Head::Open => return Self::Empty,
        };
        let end = tail(reply, start, tokens, &mut cuts);
        if tokens.by_edge(lane)
            && let Some((token, rule)) = token_at_edge(reply, &cuts, tokens)
        {
            return Self::Silent { token, rule };
        }
        let body = &reply[start..end];
        let text = if tags.is_empty() { body.into() } else { (tags + body).into() };
        Self::Says { text, cuts }
    }

    /// The token of a silent reply: the `silent` of its turn.
    #[must_use]
    pub fn token(&self) -> Option<&'a str> {
        match self {
            Self::Silent { token, .. } => Some(token),
            _ => None,
        }
    }

    /// What goes out: nothing of a silent or an empty reply.
    #[must_use]
    pub fn outbound(&self) -> &str {
        match self {
            Self::Says { text, .. } => text,
            Self::Silent { .. } | Self::Empty => "",
        }
    }
}

#[cfg(test)]
mod tests;
