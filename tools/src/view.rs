//! What a tool looks at: a store, the sessions as they are folded from it, and the moment.

use annals_engine::config::Config;
use annals_engine::projection::Folded;
use annals_engine::session::index::{Lens, Sessions};
use annals_engine::store::EventStore;

use crate::desk::Desk;

/// A store as of a moment.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The store.
    pub store: &'a dyn EventStore,
    /// Its sessions.
    pub sessions: &'a Folded<Sessions>,
    /// The moment, and what time changes by then.
    pub lens: Lens<'a>,
    /// The settings in force.
    pub config: &'a Config,
    /// What is needed to make agents work; absent where the store is only read.
    pub desk: Option<&'a Desk<'a>>,
}
