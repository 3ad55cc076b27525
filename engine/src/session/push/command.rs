//! What an owner's message may be instead of a turn: a command that stands alone.

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `/send on`, `/send off`, `/send inherit`: the session's own send policy.
    Send(Option<SendSwitch>),
    /// `/new` or `/reset`: another part begins.
    Reset,
}

/// What `/send` switches to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendSwitch {
    /// `allow`.
    On,
    /// `deny`.
    Off,
}

impl Command {
    /// The command that a message is, whatever the case of its letters. With anything before or behind it, it is none.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let words: Vec<String> = text.split_whitespace().map(str::to_ascii_lowercase).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["/new" | "/reset"] => Some(Self::Reset),
            ["/send", "on"] => Some(Self::Send(Some(SendSwitch::On))),
            ["/send", "off"] => Some(Self::Send(Some(SendSwitch::Off))),
            ["/send", "inherit"] => Some(Self::Send(None)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages and the commands that they are.
    #[test]
    fn messages() {
        for (text, expect) in [
            (" /Send  OFF \n", Some(Command::Send(Some(SendSwitch::Off)))),
            ("/send on", Some(Command::Send(Some(SendSwitch::On)))),
            ("/send inherit", Some(Command::Send(None))),
            ("/NEW", Some(Command::Reset)),
            ("/reset", Some(Command::Reset)),
            ("/send", None),
            ("/send maybe", None),
            ("/new please", None),
            ("say /reset", None),
            ("", None),
        ] {
            assert_eq!(Command::read(text), expect, "{text:?}");
        }
    }
}
