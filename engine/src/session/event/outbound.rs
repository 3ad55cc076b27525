//! What leaves a session for people: announces of children to their requester, and deliveries to a channel. Each has one
//! payload for all its steps.

use crate::clock::Timestamp;

use super::define::payload;
use super::lifecycle::Origin;

payload! {
    /// `announce.*`: a child's result on its way to its requester.
    pub struct Announce {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The child's run.
        run_id: String,
        /// The child.
        child_key: String,
        /// The attempt.
        attempt_id: Option<String>,
        /// The sink that it goes through.
        sink: Option<String>,
        /// Why it was suppressed, failed or is unknown.
        reason: Option<String>,
        /// The position of the turn that carries it.
        turn_seq: Option<u64>,
        /// Where it goes.
        target: Option<Origin>,
        /// The text.
        text: Option<String>,
    }
}

payload! {
    /// `delivery.*`: a reply, an error or a notice on its way to a channel.
    pub struct Delivery {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The run that it belongs to.
        run_id: Option<String>,
        /// The position of the turn that it carries.
        turn_seq: Option<u64>,
        /// The attempt.
        attempt_id: Option<String>,
        /// The sink that it goes through.
        sink: Option<String>,
        /// Why it was suppressed, failed, expired or is unknown.
        reason: Option<String>,
        /// Where it goes.
        target: Option<Origin>,
    }
}
