//! How far a long piece of work is, with rate and time left: on standard error, on a terminal, and nowhere else.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar that goes away when it is dropped.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar over bytes.
    pub(crate) fn bytes(what: &'static str) -> Self {
        Self::new(what, "{msg} {bar:30} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left")
    }

    /// A bar over events.
    pub(crate) fn events(what: &'static str) -> Self {
        Self::new(what, "{msg} {bar:30} {human_pos}/{human_len}  {per_sec}  {eta} left")
    }

    fn new(what: &'static str, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what);
        Self(bar)
    }

    /// So much of so much is done.
    pub(crate) fn at(&self, done: u64, total: u64) {
        self.0.set_length(total.max(done));
        self.0.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
