//! A reply that is shown as it comes: what the agent says to whoever asked on standard output, what it says beside that on
//! standard error.

use annals_engine::session::event::OutputStream;
use annals_engine::session::silent::{Holdback, Lane, Tokens};

use crate::exit::Failure;
use crate::output::text::many_lines;
use crate::output::{Output, say};

/// Where a reply is shown as it comes.
pub(crate) struct Screen<'a> {
    out: &'a mut Output,
    /// What may still become a token that asks for silence; `None` where tokens are shown.
    held: Option<Holdback<'a>>,
    /// What was shown.
    shown: String,
    /// Talk whose line has not ended.
    open: String,
    /// Whether whoever read it is gone.
    unread: bool,
}

impl<'a> Screen<'a> {
    /// A screen that shows everything.
    pub(crate) fn new(out: &'a mut Output) -> Self {
        Self { out, held: None, shown: String::new(), open: String::new(), unread: false }
    }

    /// A screen that never shows a token.
    pub(crate) fn without(out: &'a mut Output, tokens: &'a Tokens) -> Self {
        Self { held: Some(Holdback::new(tokens, Lane::Foreground)), ..Self::new(out) }
    }

    /// Shows what comes; as JSON a reply is shown whole, by whoever asked for it.
    ///
    /// # Errors
    /// What writing says.
    pub(crate) fn hear(&mut self, stream: OutputStream, text: &str) -> Result<(), Failure> {
        match stream {
            OutputStream::Stdout if self.out.is_json() => Ok(()),
            OutputStream::Stdout => {
                let text = match &mut self.held {
                    Some(held) => held.push(text),
                    None => text.to_owned(),
                };
                self.show(&text)
            }
            OutputStream::Stderr | OutputStream::Progress => {
                self.open.push_str(text);
                if let Some(end) = self.open.rfind('\n') {
                    let rest = self.open.split_off(end + 1);
                    self.say_open();
                    self.open = rest;
                }
                Ok(())
            }
        }
    }

    /// Whether any of the reply was shown.
    pub(crate) fn has_shown(&self) -> bool {
        !self.shown.is_empty()
    }

    /// The reply is whole: shows what of it was not shown, and ends its line. What went ahead of the reply stays.
    ///
    /// # Errors
    /// What writing says.
    pub(crate) fn close(mut self, reply: &str) -> Result<(), Failure> {
        self.say_open();
        if self.out.is_json() {
            return Ok(());
        }
        if let Some(held) = self.held.take() {
            let rest = held.finish().text;
            self.show(&rest)?;
        }
        let (shown, said) = (self.shown.trim_end(), reply.trim_end());
        if !shown.ends_with(said) {
            let rest = match said.strip_prefix(shown) {
                Some(rest) => rest.to_owned(),
                None if self.shown.ends_with('\n') => said.to_owned(),
                None => format!("\n{said}"),
            };
            self.show(&rest)?;
        }
        if !self.shown.is_empty() && !self.shown.ends_with('\n') {
            self.show("\n")?;
        }
        match self.unread {
            true => Err(Failure::Closed),
            false => Ok(()),
        }
    }

    /// Text to standard output; what a terminal would obey is spelled out on one. Where nobody reads any more nothing is
    /// shown, and the work goes on.
    fn show(&mut self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.shown.push_str(text);
        if self.unread {
            return Ok(());
        }
        let shown = match self.out.width {
            Some(_) => self.out.bytes(many_lines(text).as_bytes()),
            None => self.out.bytes(text.as_bytes()),
        };
        match shown.and_then(|()| self.out.flush()) {
            Err(Failure::Closed) if self.held.is_some() => {
                self.unread = true;
                Ok(())
            }
            other => other,
        }
    }

    /// Says the talk that is open, as whole lines.
    pub(crate) fn say_open(&mut self) {
        let text = std::mem::take(&mut self.open);
        if !text.is_empty() {
            say(many_lines(&text).trim_end_matches('\n'));
        }
    }
}
