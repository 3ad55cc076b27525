//! The follower of the log: one thread for all who listen in a process, there while anybody does.

use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use annals_engine::store::{Cursor, Followed, Item, Read, View};
use annals_engine::{Error, Result};

use super::{Listener, held};
use crate::host::Host;

/// So soon the follower notices that nobody listens any more.
const NOTICES: Duration = Duration::from_millis(500);

/// So long it waits after an error before it begins again.
const AFTER_AN_ERROR: Duration = Duration::from_secs(1);

/// The follower of the log of one process. It follows while somebody listens.
pub(in crate::mcp) struct Bell {
    host: Host,
    hears: Arc<Mutex<Hears>>,
}

#[derive(Default)]
struct Hears {
    listeners: Vec<Weak<Listener>>,
    follows: bool,
}

impl Bell {
    /// The follower of a store; nobody listens yet.
    pub(in crate::mcp) fn new(host: Host) -> Self {
        Self { host, hears: Arc::default() }
    }

    /// A new listener, who hears of what is appended from now on.
    pub(super) fn listen(&self) -> Result<Arc<Listener>> {
        let listener = Arc::new(Listener::default());
        let mut hears = held(&self.hears);
        if !hears.follows {
            let after = self.host.engine().end(View::Durable)?;
            let (host, shared) = (self.host.clone(), Arc::clone(&self.hears));
            let thread = std::thread::Builder::new().name("updates".to_owned());
            let started = thread.spawn(move || follow(&host, &shared, after));
            started.map_err(|e| Error::io("cannot start a thread to follow the log", e))?;
            hears.follows = true;
        }
        hears.listeners.push(Arc::downgrade(&listener));
        Ok(listener)
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bell").finish_non_exhaustive()
    }
}

/// Follows the log as long as anybody listens. A follower that meets an error begins again at the end, and what is wanted
/// is then taken for changed.
fn follow(host: &Host, hears: &Mutex<Hears>, mut after: Option<Cursor>) {
    while follow_from(host, hears, after).is_err() {
        std::thread::park_timeout(AFTER_AN_ERROR);
        after = host.engine().end(View::Durable).ok().flatten();
        if !each(hears, Listener::lose) {
            return;
        }
    }
}

fn follow_from(host: &Host, hears: &Mutex<Hears>, after: Option<Cursor>) -> Result<()> {
    let mut follower = host.engine().follow(Read::after(after))?;
    loop {
        let heard = match follower.next(Some(NOTICES))? {
            Followed::Item(Item::Record(record)) => {
                each(hears, |listener| listener.hear(&record.stream, record.kind.as_str()))
            }
            Followed::Item(Item::Gap(_)) => each(hears, Listener::lose),
            Followed::CaughtUp(_) | Followed::Quiet => each(hears, |_| {}),
        };
        if !heard {
            return Ok(());
        }
    }
}

/// Does this for each listener; false, and nobody follows any more, when there is none.
fn each(hears: &Mutex<Hears>, what: impl Fn(&Listener)) -> bool {
    let mut hears = held(hears);
    hears.listeners.retain(|listener| listener.strong_count() > 0);
    for listener in hears.listeners.iter().filter_map(Weak::upgrade) {
        what(&listener);
    }
    hears.follows = !hears.listeners.is_empty();
    hears.follows
}
