//! The seam at which what goes out leaves the house.

use std::pin::Pin;

use annals_engine::session::run::Tried;

/// What is sent, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// The try.
    pub attempt_id: String,
    /// The same for each try of one thing: who takes it can tell that it has it already.
    pub idempotency_key: String,
    /// The run that it belongs to.
    pub run_id: Option<String>,
    /// The session that it leaves.
    pub session_key: String,
    /// The channel.
    pub channel: String,
    /// The recipient on that channel.
    pub to: Option<String>,
    /// The account on that channel.
    pub account_id: Option<String>,
    /// The thread.
    pub thread_id: Option<String>,
    /// The text.
    pub text: String,
    /// What it is: `reply`, `failure` or `announce`.
    pub kind: String,
    /// The position of the turn that it carries.
    pub turn_seq: Option<u64>,
}

/// Takes parcels out of the house, and tells what became of each.
pub trait Carrier: std::fmt::Debug + Send + Sync {
    /// Carries one. It is asked for once a try, after the try was recorded.
    fn carry(&self, parcel: Parcel) -> Pin<Box<dyn Future<Output = Tried> + Send + '_>>;
}
