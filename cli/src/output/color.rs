//! Colour: whether, and which. A colour never says what the words beside it do not say.

use std::ffi::OsString;
use std::io::IsTerminal;

use anstyle::{Ansi256Color, AnsiColor, Color, Style};

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The colours of one stream of output, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// Decides for a stream: the flag, then `NO_COLOR` (<https://no-color.org>), then whether it is a terminal.
    pub(crate) fn decide(when: ColorWhen, stream: &impl IsTerminal) -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let on = match when {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => {
                let dumb = set("TERM") == Some(OsString::from("dumb"));
                set("NO_COLOR").is_none() && !dumb && stream.is_terminal()
            }
        };
        Self { on }
    }

    /// No colours.
    #[cfg(test)]
    pub(crate) const fn none() -> Self {
        Self { on: false }
    }

    /// What a title looks like.
    pub(crate) fn title(self) -> Style {
        self.style(Style::new().bold())
    }

    /// What is of less interest.
    pub(crate) fn faint(self) -> Style {
        self.style(Style::new().dimmed())
    }

    /// What must be seen: damage and failures.
    pub(crate) fn loud(self) -> Style {
        self.style(AnsiColor::Red.on_default().bold())
    }

    /// What should be seen: refusals.
    pub(crate) fn warning(self) -> Style {
        self.style(AnsiColor::Yellow.on_default())
    }

    /// The colour of a session: always the same for the same key, on every machine.
    pub(crate) fn session(self, key: &str) -> Style {
        let hash = key
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, b| (hash ^ u32::from(b)).wrapping_mul(0x0100_0193));
        let index = usize::try_from(hash).unwrap_or(0) % SESSION_COLORS.len();
        let color = SESSION_COLORS.get(index).copied().unwrap_or(39);
        self.style(Style::new().fg_color(Some(Color::Ansi256(Ansi256Color(color)))))
    }

    fn style(self, style: Style) -> Style {
        if self.on { style } else { Style::new() }
    }
}

/// Colours of the 256-colour table that can be read on black and on white.
const SESSION_COLORS: [u8; 14] = [32, 34, 37, 63, 67, 71, 98, 103, 130, 133, 136, 161, 166, 173];

#[cfg(test)]
mod tests {
    use super::*;

    /// The same key has the same colour each time, and near keys do not all share one.
    #[test]
    fn stable_and_spread() {
        let paint = Paint { on: true };
        assert_eq!(paint.session("agent:main:main"), paint.session("agent:main:main"));
        let mut seen: Vec<Style> = Vec::new();
        for n in 0..40 {
            let style = paint.session(&format!("telegram:{n}"));
            if !seen.contains(&style) {
                seen.push(style);
            }
        }
        assert!(seen.len() >= 10, "{} colours for 40 keys", seen.len());
        assert_eq!(Paint::none().session("agent:main:main"), Style::new());
    }
}
