//! The placeholders in an agent's arguments, and what becomes of them.

/// What may stand in braces in an argument. Any other text in braces is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// The prompt.
    Prompt,
    /// A private file that holds the prompt.
    PromptFile,
    /// The id of the session's part.
    SessionId,
    /// The session's key.
    SessionKey,
    /// The run's id.
    RunId,
    /// The folder that the command runs in.
    Cwd,
    /// The model asked for, else the agent's own.
    Model,
    /// The thinking level asked for.
    Thinking,
    /// The id that the agent gave its own session in an earlier run.
    AgentSessionId,
    /// A private file that holds the context of the session.
    ContextFile,
    /// How a client of the Model Context Protocol reaches the session tools, in JSON.
    McpConfig,
}

impl Placeholder {
    /// Every placeholder, by the word between its braces.
    pub const WORDS: [(&'static str, Self); 11] = [
        ("prompt", Self::Prompt),
        ("promptFile", Self::PromptFile),
        ("sessionId", Self::SessionId),
        ("sessionKey", Self::SessionKey),
        ("runId", Self::RunId),
        ("cwd", Self::Cwd),
        ("model", Self::Model),
        ("thinking", Self::Thinking),
        ("agentSessionId", Self::AgentSessionId),
        ("contextFile", Self::ContextFile),
        ("mcpConfig", Self::McpConfig),
    ];
}

/// Whether a placeholder occurs in any of these arguments.
#[must_use]
pub fn occurs(arguments: &[String], placeholder: Placeholder) -> bool {
    let pieces = arguments.iter().flat_map(|argument| pieces(argument));
    pieces.into_iter().any(|piece| piece == Piece::Value(placeholder))
}

/// The arguments with every placeholder replaced by its value. A value is taken as it is: what looks like a placeholder
/// in it is text.
///
/// An argument with a placeholder that has no value is left out. When it is nothing but that placeholder, a flag right
/// before it (an argument that begins with `-` and has neither `=` nor a placeholder) is left out too: without a model
/// both `["--model", "{model}"]` and `["--model={model}"]` are nothing.
#[must_use]
pub fn filled<'v>(
    arguments: &[String],
    value: impl Fn(Placeholder) -> Option<&'v str>,
) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut flag_before = false;
    for argument in arguments {
        let pieces = pieces(argument);
        let plain = pieces.iter().all(|piece| matches!(piece, Piece::Text(_)));
        let text: Option<String> = pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => Some(*text),
                Piece::Value(placeholder) => value(*placeholder),
            })
            .collect();
        match text {
            Some(text) => out.push(text),
            None if pieces.len() == 1 && flag_before => drop(out.pop()),
            None => {}
        }
        flag_before = plain && argument.starts_with('-') && !argument.contains('=');
    }
    out
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Value(Placeholder),
}

/// An argument as text and placeholders; an empty one has no pieces.
fn pieces(argument: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = argument;
    let mut from = 0;
    while let Some(open) = rest.get(from..).and_then(|text| text.find('{')).map(|at| at + from) {
        let named = Placeholder::WORDS.iter().find_map(|(word, placeholder)| {
            let behind = rest.get(open + 1..)?.strip_prefix(word)?.strip_prefix('}')?;
            Some((behind, *placeholder))
        });
        let Some((behind, placeholder)) = named else {
            from = open + 1;
            continue;
        };
        pieces.extend(rest.get(..open).filter(|text| !text.is_empty()).map(Piece::Text));
        pieces.push(Piece::Value(placeholder));
        (rest, from) = (behind, 0);
    }
    pieces.extend(Some(rest).filter(|text| !text.is_empty()).map(Piece::Text));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: &[&str], expect: &[&str]) {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        let value = |placeholder| match placeholder {
            Placeholder::Prompt => Some("say {model}"),
            Placeholder::RunId => Some("r1"),
            _ => None,
        };
        assert_eq!(filled(&arguments, value), expect, "{arguments:?}");
    }

    /// Goal: values stand where their placeholders stood, once, and other braces are text. Method: several in one
    /// argument, a value that looks like a placeholder, JSON, an unknown name, an argument without anything.
    #[test]
    fn values() {
        check(&["{prompt}", "a{runId}b{runId}"], &["say {model}", "ar1br1"]);
        check(
            &["{\"a\":{\"b\":1}}", "{runID}", "{{runId}}", "{", ""],
            &["{\"a\":{\"b\":1}}", "{runID}", "{r1}", "{", ""],
        );
    }

    /// Goal: what has no value leaves no flag behind that would take the next argument for its own. Method: a flag and its
    /// value apart and in one, a word that is no flag, a flag that has its value already, two in a row.
    #[test]
    fn without_a_value() {
        check(&["-q", "--model", "{model}", "x"], &["-q", "x"]);
        check(&["--model={model}", "-m{model}", "x"], &["x"]);
        check(&["exec", "{model}", "x"], &["exec", "x"]);
        check(&["--a=b", "{model}", "x"], &["--a=b", "x"]);
        check(&["--a", "{model}", "{thinking}", "x"], &["x"]);
        check(&["--{runId}", "{model}"], &["--r1"]);
        check(&["--resume", "id-{agentSessionId}"], &["--resume"]);
    }

    /// Goal: an argument names what it is for. Method: one of each.
    #[test]
    fn occurrences() {
        let arguments = ["--model={model}".to_owned(), "{prompts}".to_owned()];
        assert!(occurs(&arguments, Placeholder::Model));
        assert!(!occurs(&arguments, Placeholder::Prompt));
    }
}
