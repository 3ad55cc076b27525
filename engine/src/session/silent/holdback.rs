//! A reply that is shown while it grows: what may still become a token is held back.

use super::edges::{Head, head, settled, tail};
use super::{Lane, Silence, SilenceRule, Tokens};

/// Shows a reply piece by piece. What it gives out, put together, is what [`Silence::of`] says of the whole reply goes
/// out, wherever the pieces are cut.
#[derive(Clone, Debug)]
pub struct Holdback<'t> {
    tokens: &'t Tokens,
    lane: Lane,
    /// What was not given out.
    held: String,
    /// Whether the reply is known to have text, so that only its end is in doubt.
    has_text: bool,
}

/// How a reply ended that was shown while it grew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// What is still to be shown.
    pub text: String,
    /// The token, when the reply is silent, and why it is.
    pub silent: Option<(String, SilenceRule)>,
}

impl<'t> Holdback<'t> {
    /// Nothing yet.
    #[must_use]
    pub fn new(tokens: &'t Tokens, lane: Lane) -> Self {
        Self { tokens, lane, held: String::new(), has_text: false }
    }

    /// Takes the next piece, and gives what can be shown now.
    #[must_use]
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        // The end of such a reply decides on all of it.
        if self.tokens.by_edge(self.lane) {
            return String::new();
        }
        if !self.has_text {
            let Head::Text { tags, start, .. } = head(&self.held, self.tokens, true) else {
                return String::new();
            };
            self.held.replace_range(..start, &tags);
            self.has_text = true;
        }
        let shown = settled(&self.held, self.tokens);
        let rest = self.held.split_off(shown);
        std::mem::replace(&mut self.held, rest)
    }

    /// The reply is whole.
    #[must_use]
    pub fn finish(mut self) -> Ending {
        if self.has_text {
            let end = tail(&self.held, 0, self.tokens, &mut Vec::new());
            self.held.truncate(end);
            return Ending { text: self.held, silent: None };
        }
        let silence = Silence::of(&self.held, self.tokens, self.lane);
        let silent = match &silence {
            Silence::Silent { token, rule } => Some(((*token).to_owned(), *rule)),
            _ => None,
        };
        Ending { text: silence.outbound().to_owned(), silent }
    }
}
