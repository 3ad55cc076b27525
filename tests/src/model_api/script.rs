//! What the model says: one reply for each time that it is asked.

use serde_json::Value;

/// One answer of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    outcome: Result<Said, Refusal>,
    needle: Option<String>,
    held: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Refusal {
    status: u16,
    kind: String,
    message: String,
}

/// What an answer holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Said {
    pub(super) text: Option<String>,
    /// Tools to call, by name, with their input.
    pub(super) calls: Vec<(String, Value)>,
    pub(super) usage: Usage,
}

/// Tokens that an answer says it used. A cache's tokens are counted beside the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Read anew.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Read from a cache.
    pub cached: u64,
}

impl Usage {
    /// What a reply says when nothing else was asked for.
    pub const PLAIN: Self = Self { input: 90, output: 20, cached: 10 };
}

impl Reply {
    /// Text, and that is all.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::said(Some(text.to_owned()))
    }

    /// A call of a tool.
    #[must_use]
    pub fn call(tool: &str, input: Value) -> Self {
        Self::said(None).and_call(tool, input)
    }

    /// A failure of the interface: its status, the kind that it names, and what it says.
    #[must_use]
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        let refusal = Refusal { status, kind: kind.to_owned(), message: message.to_owned() };
        Self { outcome: Err(refusal), needle: None, held: false }
    }

    fn said(text: Option<String>) -> Self {
        let said = Said { text, calls: Vec::new(), usage: Usage::PLAIN };
        Self { outcome: Ok(said), needle: None, held: false }
    }

    /// Calls a tool too.
    #[must_use]
    pub fn and_call(mut self, tool: &str, input: Value) -> Self {
        if let Ok(said) = &mut self.outcome {
            said.calls.push((tool.to_owned(), input));
        }
        self
    }

    /// Says that it used so much.
    #[must_use]
    pub fn using(mut self, usage: Usage) -> Self {
        if let Ok(said) = &mut self.outcome {
            said.usage = usage;
        }
        self
    }

    /// Is said only to who asks with this text somewhere: for several agents at once.
    #[must_use]
    pub fn to(mut self, text: &str) -> Self {
        self.needle = Some(text.to_owned());
        self
    }

    /// Is said only when [`ModelApi::release`](super::ModelApi::release) is called; until then the model thinks.
    #[must_use]
    pub fn held(mut self) -> Self {
        self.held = true;
        self
    }

    pub(super) fn needle(&self) -> Option<&str> {
        self.needle.as_deref()
    }

    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    pub(super) fn told(&self) -> Result<&Said, (u16, &str, &str)> {
        match &self.outcome {
            Ok(said) => Ok(said),
            Err(Refusal { status, kind, message }) => Err((*status, kind, message)),
        }
    }
}
