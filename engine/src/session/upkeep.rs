//! What is recorded when somebody looks: sessions that time has archived, and those over the limits of maintenance.
//! Nothing is ever removed.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::id::{EventId, StreamName};
use crate::projection::{Deciding, Folded};
use crate::store::{Append, Durability, EventStore, NewEvent};

use super::event::{Event, Links, SessionArchived};
use super::index::{Lens, Sessions, TimeRules};

/// The limits of maintenance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Whether sessions over the limits are archived; else they are only counted.
    pub enforce: bool,
    /// The most sessions in the lists.
    pub entries_max: Option<u64>,
    /// Sessions in which nothing happened for longer leave the lists.
    pub age_max: Option<Duration>,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Sessions whose time was over, or that were over an enforced limit: archived now.
    pub archived: usize,
    /// Sessions over a limit that is not enforced.
    pub over_limits: usize,
}

/// The most sessions that one call archives; the rest comes with the next.
const BATCH: usize = 500;

/// Records what time and the limits have archived. It appends nothing when there is nothing to record, and everything
/// once, whoever else looks at the same time.
///
/// # Errors
/// What the store says.
pub fn keep(
    store: &dyn EventStore,
    sessions: &Folded<Sessions>,
    rules: &TimeRules,
    limits: Limits,
    now: Timestamp,
) -> Result<Kept> {
    let lens = Lens { rules, now };
    let over = sessions.state().over_limits(&lens, limits);
    let kept = Kept { archived: 0, over_limits: if limits.enforce { 0 } else { over.len() } };
    let none_over = over.is_empty() || !limits.enforce;
    if none_over && sessions.state().archives_due(&lens).is_empty() {
        return Ok(kept);
    }
    let ids: Vec<EventId> = (0..BATCH).map(|_| EventId::new(now)).collect();
    let mut archived = 0;
    let decide = |sessions: &Sessions, now: Timestamp| {
        let lens = Lens { rules, now };
        let mut due = sessions.archives_due(&lens);
        if limits.enforce {
            let more = sessions.over_limits(&lens, limits);
            due.extend(more.into_iter().filter(|(key, _)| !sessions.time_archives(key, &lens)));
        }
        due.truncate(BATCH);
        archived = due.len();
        let events = due.into_iter().zip(&ids).map(|((key, event), id)| archive(key, event, *id));
        Ok(Append::new(events.collect::<Result<_>>()?))
    };
    let mut deciding = Deciding::on(sessions, decide);
    store.append_deciding(&mut deciding, Durability::Synced)?;
    drop(deciding);
    Ok(Kept { archived, ..kept })
}

fn archive(key: StreamName, event: SessionArchived, id: EventId) -> Result<NewEvent> {
    Event::SessionArchived(event).to_new(key, id, Links { cause: None, flow: Some(id) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::session::scene::Scene;
    use crate::store::View;

    fn scene() -> Scene {
        let scene = Scene::new();
        for n in 0..6 {
            let key = format!("cli:{n}");
            scene.opened(&key, &format!("p{n}"), "");
            scene.turn(&key, &format!("p{n}"), "user", "", "hello");
        }
        scene
    }

    fn keep_at(scene: &Scene, limits: Limits) -> Kept {
        let sessions = Folded::<Sessions>::of(&scene.store, View::Durable).unwrap();
        keep(&scene.store, &sessions, &TimeRules::none(), limits, scene.clock.now()).unwrap()
    }

    fn archived(scene: &Scene) -> Vec<String> {
        let records = scene.records().into_iter();
        records
            .filter(|record| record.kind.as_str() == "session.archived")
            .map(|record| format!("{} {}", record.stream, record.data))
            .collect()
    }

    /// Goal: without limits nothing is archived, and limits that are not enforced only count. Method: sessions of 400
    /// days; looked at twice.
    #[test]
    fn nothing_by_itself() {
        let scene = scene();
        let day = Duration::from_secs(86_400);
        scene.clock.advance(400 * day);
        assert_eq!(keep_at(&scene, Limits::default()), Kept::default());
        let warn = Limits { enforce: false, entries_max: Some(2), age_max: Some(30 * day) };
        for _ in 0..2 {
            assert_eq!(keep_at(&scene, warn), Kept { archived: 0, over_limits: 6 });
        }
        assert_eq!(archived(&scene), [""; 0]);
    }

    /// Goal: enforced limits archive the oldest first, once, with the limit in force; a session at work stays, and what
    /// is archived stays readable. Method: two of six may stay; a run on the oldest.
    #[test]
    fn limits() {
        let scene = scene();
        scene.run("r", "cli:0", "p0", "");
        let limits = Limits { enforce: true, entries_max: Some(3), age_max: None };
        assert_eq!(keep_at(&scene, limits).archived, 3);
        assert_eq!(keep_at(&scene, limits).archived, 0);
        let told = archived(&scene);
        let keys: Vec<_> = told.iter().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(keys, ["cli:1", "cli:2", "cli:3"]);
        assert!(told[0].contains(r#""reason":"maintenance""#), "{told:?}");
        assert!(told[0].contains(r#""rule":{"name":"session.maintenance.maxEntries","value":3}"#));
        let age =
            Limits { enforce: true, entries_max: None, age_max: Some(Duration::from_secs(60)) };
        scene.clock.advance(Duration::from_secs(61));
        assert_eq!(keep_at(&scene, age).archived, 2);
        assert!(archived(&scene)[3].contains("session.maintenance.pruneAfterDays"));
    }
}
