//! Watch rules: files whose changes start runs.
//!
//! What fires is decided by content alone: a file that has settled and whose hash is not the one recorded last fires once,
//! by one batch that holds the firing, the turn and the request of its run. Its id follows from the rule, the file, the
//! content and the firing before, and the batch goes ahead only while the log knows no more of the rule than who decided
//! did; so that a restart or a second watcher starts nothing twice, and content that comes again after another fires again.
//!
//! Nobody can tell who wrote a file. A change during a run of the rule fires as any other, after that run where it is of
//! the file that caused it, and says so; so many in a row stop the rule.
//!
//! No file is read here and no time: what a look has found is handed in.

mod decide;
mod events;
mod rule;
mod state;

pub use decide::{Firing, Seen, Span, Spans, Verdict, Wait, decide};
pub use events::{Told, baseline, push_of, told};
pub use rule::Rule;
pub use state::{
    AllWatched, Fired, Known, LOOP, REASON_LOOP, REASON_NOTED, REASON_NOTIFIED, REASON_POLL,
    REASON_RESET, Watched,
};

#[cfg(test)]
mod tests;
