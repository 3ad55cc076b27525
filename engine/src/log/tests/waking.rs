//! What wakes followers, and what it costs.

use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::log::follow::{Follower, Wake};
use crate::store::{Followed, Item};

/// Every notification is lost: a wait always ends when its time is up, which is when something happens.
#[derive(Debug)]
struct Lost {
    writer: Log,
    waits: Arc<Mutex<Vec<Duration>>>,
}

/// So many events are appended during each wait.
const BURST: usize = 100;

impl Wake for Lost {
    fn wait(&mut self, _: u64, timeout: Duration) {
        let mut waits = locked(&self.waits);
        for i in 0..BURST {
            let text = format!("{}-{i}", waits.len());
            self.writer.append(Append::new(vec![event("a", &text)])).unwrap();
        }
        waits.push(timeout);
    }
}

/// Goal: a follower whose notifications are all lost sees everything at the next poll, and a burst of appends costs it
/// one wait and not one for each. Method: the wait is in the test's hand and never tells anything; followers of both
/// views, in the process that appends and through a handle that only reads as in another process.
#[test]
fn lost_notifications() {
    for (view, own) in
        [View::Durable, View::Written].into_iter().flat_map(|v| [(v, true), (v, false)])
    {
        let dir = tempfile::tempdir().unwrap();
        let writer = open(&dir, 1 << 20);
        let storage = Arc::clone(writer.storage());
        let reader = Log::open_read_only(storage, Options::default()).unwrap();
        let waits = Arc::default();
        let wake = Lost { writer: writer.clone(), waits: Arc::clone(&waits) };
        let from = if own { &writer } else { &reader };
        let read = Read::default().view(view);
        let mut follower = Follower::woken(Arc::clone(&from.view), read, Box::new(wake)).unwrap();
        let mut seen = Vec::new();
        while seen.len() < 3 * BURST {
            if let Followed::Item(Item::Record(record)) = follower.next(None).unwrap()
                && record.kind.as_str() == "x.test.said"
            {
                seen.push(record.data.read::<serde_json::Value>().unwrap()["text"].clone());
            }
        }
        let all = (0..3).flat_map(|wait| (0..BURST).map(move |i| format!("{wait}-{i}")));
        assert!(seen.iter().eq(all.collect::<Vec<_>>().iter()), "{view:?}, own {own}");
        let waits = locked(&waits);
        assert_eq!(waits.len(), 3, "{view:?}, own {own}");
        assert!(waits.iter().all(|timeout| *timeout <= Duration::from_millis(250)), "{waits:?}");
    }
}
