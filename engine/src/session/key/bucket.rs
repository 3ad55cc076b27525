//! What `main` stands for.

/// What `main` stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MainBucket {
    /// The main bucket of the caller's agent.
    #[default]
    OfAgent,
    /// The bucket that all share, `global`.
    Shared,
}
