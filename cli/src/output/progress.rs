//! How far a long piece of work is, with rate and time left: on standard error, on a terminal, and nowhere else.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work of less is over before anybody has read a bar.
const BYTES_LEAST: u64 = 16 << 20;
const EVENTS_LEAST: u64 = 100_000;

/// A screen with fewer columns gets a bar of a few words.
const WIDE: u16 = 80;

/// A bar that comes with much work and goes away when it is dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    least: u64,
}

impl Progress {
    /// A bar over bytes.
    pub(crate) fn bytes(what: &'static str) -> Self {
        Self::new(
            what,
            BYTES_LEAST,
            "{msg} {bar:30} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left",
        )
    }

    /// A bar over events.
    pub(crate) fn events(what: &'static str) -> Self {
        Self::new(
            what,
            EVENTS_LEAST,
            "{msg} {bar:30} {human_pos}/{human_len}  {per_sec}  {eta} left",
        )
    }

    fn new(what: &'static str, least: u64, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let template = if columns() < WIDE { "{msg} {percent}%" } else { template };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what);
        Self { bar, least }
    }

    /// So much of so much is done.
    pub(crate) fn at(&self, done: u64, total: u64) {
        if total < self.least {
            return;
        }
        if self.bar.length().is_none() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_length(total.max(done));
        self.bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// How wide the screen behind standard error is; wide when there is none, for then nothing is drawn.
fn columns() -> u16 {
    rustix::termios::tcgetwinsize(std::io::stderr()).map_or(u16::MAX, |size| size.ws_col)
}
