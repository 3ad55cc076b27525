//! Scans segments ahead of where they are joined, several at a time. A segment is scanned as if the one before it ended
//! with the line that its last bytes name; the few of which that is not true are scanned again.

use std::num::NonZero;
use std::sync::mpsc;
use std::thread;

use crate::error::Result;
use crate::storage::Storage;

use super::scan::{Job, Scanned};
use crate::log::segments;
use crate::log::walk::Link;

/// What was found of a segment ahead of its turn, and the line that it was taken to follow.
pub(super) type Ahead = Option<(Link, Result<Scanned>)>;

/// So many segments of each worker wait at most to be joined.
const AHEAD: usize = 2;

/// Hands every segment to `join`, in order, scanned ahead where there are several workers.
pub(super) fn in_order(
    storage: &dyn Storage,
    jobs: &[Job],
    workers: NonZero<usize>,
    join: &mut dyn FnMut(&Job, Ahead) -> Result<()>,
) -> Result<()> {
    let workers = workers.get().min(jobs.len());
    if workers < 2 {
        return jobs.iter().try_for_each(|job| join(job, None));
    }
    thread::scope(|scope| {
        let scans: Vec<_> = (0..workers)
            .map(|worker| {
                let (found, scans) = mpsc::sync_channel(AHEAD);
                scope.spawn(move || {
                    for number in (worker..jobs.len()).step_by(workers) {
                        let Some(job) = jobs.get(number) else { return };
                        let before = number.checked_sub(1).and_then(|before| jobs.get(before));
                        let before = before.map(|before| before.first);
                        let link = segments::link_behind(storage, before, job.first);
                        if found.send((link, job.scan(storage, link))).is_err() {
                            return;
                        }
                    }
                });
                scans
            })
            .collect();
        let turns = scans.iter().cycle();
        jobs.iter().zip(turns).try_for_each(|(job, scans)| join(job, scans.recv().ok()))
    })
}
