//! Decisions of watch rules, each for itself.

use std::time::Duration;

use super::*;
use crate::clock::{Clock, Timestamp};
use crate::error::ErrorKind;
use crate::id::StreamName;
use crate::projection::{Folded, Projection};
use crate::session::event::{Change, Event, WatchedFile};
use crate::session::index::{Sessions, TimeRules};
use crate::session::key::AgentId;
use crate::session::push::{Pushed, Terms, push};
use crate::session::scene::Scene;
use crate::store::{EventStore, Item, View};

/// A rule on a stage.
struct Desk {
    scene: Scene,
    rule: Rule,
    spans: Spans,
}

impl Desk {
    fn new() -> Self {
        Self { scene: Scene::new(), rule: Rule::new("r", &["*"]), spans: Spans::new() }
    }

    fn watched(&self) -> Watched {
        let mut watched = Watched::default();
        let stream = StreamName::new("watch:r").unwrap();
        for item in self.scene.store.read_stream(&stream, watched.version()).unwrap() {
            match item.unwrap() {
                Item::Record(record) => watched.apply(&record.fields()),
                Item::Gap(gap) => watched.gap(&gap),
            }
        }
        watched
    }

    fn decide(&self, path: &str, sha256: &str) -> (Seen, Verdict) {
        let now = self.scene.clock.now();
        let seen = Seen { path: path.into(), sha256: sha256.into(), at: now };
        let verdict = decide(&self.rule, &self.watched(), &seen, &self.spans, now);
        (seen, verdict)
    }

    /// Decides and does what is decided; the run that is asked for.
    fn settle(&self, path: &str, sha256: &str) -> Option<String> {
        let (seen, verdict) = self.decide(path, sha256);
        let Verdict::Fire(firing) = verdict else { return None };
        self.push(&self.watched(), &seen, &firing).unwrap().run_id
    }

    fn push(
        &self,
        watched: &Watched,
        seen: &Seen,
        firing: &Firing,
    ) -> crate::error::Result<Pushed> {
        let agent = AgentId::parse("main").unwrap();
        let turn = push_of(&self.rule, watched, seen, firing, &agent)?;
        let sessions =
            || Folded::<Sessions>::of(&self.scene.store, View::Durable).map(std::sync::Arc::new);
        let rules = TimeRules::none();
        let terms = Terms { rules: &rules, owners: &[], sessions: &sessions };
        push(&self.scene.store, &turn, &terms, self.scene.clock.now())
    }

    fn fired(&self) -> Vec<String> {
        let told = |record: &crate::store::Record| match Event::of(record).unwrap() {
            Event::WatchFired(fired) => Some(format!("{} {}", fired.change, fired.sha256)),
            _ => None,
        };
        self.scene.records().iter().filter_map(told).collect()
    }
}

/// Goal: content that comes again after another fires again, equal content never, and what is not wanted is only noted.
/// Method: a file through its life.
#[test]
fn content_decides() {
    let mut desk = Desk::new();
    assert!(desk.settle("/a", "aa").is_some());
    assert_eq!(desk.settle("/a", "aa"), None);
    let runs: Vec<_> = ["bb", "aa", "", "aa"].map(|sha| desk.settle("/a", sha).unwrap()).into();
    assert_eq!(desk.fired(), ["create aa", "change bb", "change aa", "remove ", "create aa"]);
    assert!(runs.iter().all(|run| runs.iter().filter(|other| *other == run).count() == 1));
    desk.rule.on = vec![Change::Create];
    assert_eq!(desk.decide("/a", "bb").1, Verdict::Note);
    assert_eq!(desk.decide("/gone", "").1, Verdict::Nothing);
}

/// Goal: whoever decided on less than the log knows starts nothing. Method: a firing decided twice on the same state, and
/// another decided on that state.
#[test]
fn old_decisions_do_nothing() {
    let desk = Desk::new();
    let old = desk.watched();
    let (seen, verdict) = desk.decide("/a", "aa");
    let (other, elsewhere) = desk.decide("/b", "bb");
    let (Verdict::Fire(firing), Verdict::Fire(elsewhere)) = (verdict, elsewhere) else { panic!() };
    let first = desk.push(&old, &seen, &firing).unwrap();
    let again = desk.push(&old, &seen, &firing).unwrap();
    assert!(again.repeated && again.run_id == first.run_id);
    let error = desk.push(&old, &other, &elsewhere).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Conflict { .. }), "{error}");
    assert_eq!(desk.fired().len(), 1);
}

/// Goal: a file waits for the run that it caused, fires once after it, and three such in a row stop the rule; other changes
/// end the row. Method: runs with spans by hand.
#[test]
fn runs_that_fire_their_rule() {
    let mut desk = Desk::new();
    let now = |desk: &Desk| desk.scene.clock.now();
    let mut run = desk.settle("/a", "0").unwrap();
    for turn in 1..=LOOP {
        // The stamps of files lag behind the clock.
        let from = now(&desk).plus(Duration::from_millis(10));
        desk.spans.insert(run.clone(), Span { from, to: None });
        let sha256 = turn.to_string();
        assert_eq!(desk.decide("/a", &sha256).1, Verdict::Wait(Wait::Run(run.clone())));
        // Another file fires at once, and says during which run it changed.
        if turn == 1 {
            let (_, Verdict::Fire(firing)) = desk.decide("/b", "b") else { panic!() };
            assert_eq!(firing.during, Some(run.clone()));
        }
        desk.spans.insert(run.clone(), Span { from, to: Some(from) });
        assert!(!desk.watched().loops());
        run = desk.settle("/a", &sha256).unwrap();
        desk.scene.clock.advance(Duration::from_secs(1));
    }
    assert!(desk.watched().loops());
    let append = |what, reason| {
        let append = told(&desk.rule, &desk.watched(), (what, reason), vec![], now(&desk)).unwrap();
        desk.scene.store.append(append).unwrap();
    };
    append(Told::Stopped, REASON_LOOP);
    assert_eq!((desk.watched().stopped(), desk.watched().loops()), (Some("loop"), false));
    append(Told::Rescanned, REASON_RESET);
    assert_eq!(desk.watched().stopped(), None);
    // A change after the run has ended begins anew.
    desk.settle("/a", "z").unwrap();
    assert_eq!(desk.watched().fired().next_back().unwrap().in_a_row, 0);
}

/// Goal: a rule starts no more runs in a minute than it may, and later all that is left. Method: three files at a rule that
/// may start two.
#[test]
fn so_many_runs_in_a_minute() {
    let mut desk = Desk::new();
    desk.rule.runs_per_minute = Some(2);
    let begin = desk.scene.clock.now();
    assert!(desk.settle("/a", "1").is_some() && desk.settle("/b", "1").is_some());
    let until = begin.plus(Duration::from_secs(60));
    assert_eq!(desk.decide("/c", "1").1, Verdict::Wait(Wait::Until(until)));
    desk.scene.clock.advance(Duration::from_secs(60));
    assert!(desk.settle("/c", "2").is_some());
}

/// Goal: a first look of many files is several events, complete with the last. Method: more files than a batch takes, and
/// the fold after each append.
#[test]
fn a_big_first_look() {
    let desk = Desk::new();
    let file = |n: u32| WatchedFile { path: format!("/{n}"), sha256: "aa".into() };
    let now = Timestamp::from_millis(crate::session::scene::START);
    let files = (0..10_500).map(file).collect();
    let appends = baseline(&desk.rule, &desk.watched(), files, now).unwrap();
    assert_eq!(appends.len(), 2);
    for append in appends {
        assert!(!desk.watched().has_baseline());
        desk.scene.store.append(append).unwrap();
    }
    let watched = desk.watched();
    assert!(watched.has_baseline());
    assert_eq!(watched.present().count(), 10_500);
    assert_eq!(watched.present_below("").count(), 10_500);
    assert_eq!(desk.decide("/7", "aa").1, Verdict::Nothing);
}
