//! Following: how long after an append began a follower has the event.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use annals_engine::engine::{Engine, Options};
use annals_engine::store::{Append, Durability, Followed, Item, Read, View};
use fastrand::Rng;
use rustix::fs::inotify;
use rustix::time::{ClockId, clock_gettime};

use super::Plan;
use crate::children::{self, Child};
use crate::floors::commit::Appender;
use crate::floors::shared::{Shared, Until};
use crate::load::Feed;
use crate::report::{Limit, Section, Unit, Verdict};
use crate::rounds::{self, Contestant, Figure, Side, percentile};
use crate::workload::Shape;

/// How many events a round has.
const EVENTS: usize = 300;

/// How long the follower is left alone before each, so that it waits and does not look already.
const PAUSE: Duration = Duration::from_millis(1);

/// A follower in the process that appends, and one in another.
#[must_use]
pub fn section(plan: &Plan) -> Section {
    let contestants = vec![
        Contestant::new(Side::Ours, "annals, in the process", || in_process(plan)),
        Contestant::new(Side::Ours, "annals, another process", || {
            other_process(plan, OURS, |folder| {
                let engine = Engine::open(folder, Options::default()).unwrap();
                let (feed, mut random) = (Feed::new(Shape::default()), Rng::new());
                Box::new(move |call| append(&engine, &feed, call, &mut random))
            })
        }),
        Contestant::new(Side::Floor, "write, condition variable, read", || condition(plan)),
        Contestant::new(Side::Floor, "write, inotify, read, another process", || {
            other_process(plan, FLOOR, |folder| {
                let mut file = File::create(folder.join(FILE)).unwrap();
                Box::new(move |_| file.write_all(&LINE).unwrap())
            })
        }),
        Contestant::new(Side::Floor, SHARED, || {
            other_process(plan, FLOOR, |folder| {
                let floor = Shared::new(folder, Until::Written);
                Box::new(move |_| floor.append(&LINE).unwrap())
            })
        }),
    ];
    let rows = rounds::run(contestants, plan.rounds);
    let mut section = Section {
        title: "Append to seen by a follower".to_owned(),
        terms: format!(
            "From before a buffered append of one event of 700 B until a follower of what is written has it, one event \
             at a time; {} rounds of {EVENTS}.",
            plan.rounds
        ),
        unit: Unit::Micros,
        rows,
        verdicts: Vec::new(),
    };
    let verdict = |what: &str, found: Option<f64>, most| Verdict {
        target: "P9",
        what: what.to_owned(),
        found: found.map(f64::recip),
        limit: Limit::AtMost(most),
    };
    let (mine, other) = ("annals, in the process", "annals, another process");
    section.verdicts = vec![
        verdict(
            "follow in the process: p50 / condition variable",
            section.ratio(mine, "write, cond"),
            1.5,
        ),
        verdict(
            "follow from another process: p50 / bare inotify + read",
            section.ratio(other, "write, inotify"),
            2.0,
        ),
    ];
    section
}

/// The floor whose append makes the calls which several processes without a daemon need.
const SHARED: &str = "the same, written under the locks of several processes";

const OURS: &str = "annals";
const FLOOR: &str = "floor";
const FILE: &str = "floor.jsonl";
const LINE: [u8; 700] = [b'x'; 700];

/// Nanoseconds of the clock that all processes share.
fn nanos() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

fn append(engine: &Engine, feed: &Feed, call: usize, random: &mut Rng) {
    let event = feed.event(0, call, random);
    engine.append(Append::new(vec![event]).durability(Durability::Buffered)).unwrap();
}

/// Appends one by one; `seen` waits until the follower has each and says when that was.
fn appends(
    mut append: impl FnMut(usize),
    mut seen: impl FnMut() -> Result<i64, String>,
) -> Result<Figure, String> {
    let mut micros = Vec::with_capacity(EVENTS);
    for call in 0..EVENTS {
        std::thread::park_timeout(PAUSE);
        let begun = nanos();
        append(call);
        let took = seen()? - begun;
        micros.push(Duration::from_nanos(took.unsigned_abs()).as_secs_f64() * 1e6);
    }
    let (p50, p99) = (percentile(&mut micros, 0.5), percentile(&mut micros, 0.99));
    Ok(Figure { value: p50.unwrap(), percentiles: p50.zip(p99) })
}

fn in_process(plan: &Plan) -> Result<Figure, String> {
    let home = plan.scratch();
    let engine = Engine::open(home.path(), Options::default()).unwrap();
    let (feed, mut random) = (Feed::new(Shape::default()), Rng::new());
    let (to, from) = mpsc::channel();
    std::thread::scope(|scope| {
        let theirs = &engine;
        let (ready, is_ready) = mpsc::channel();
        scope
            .spawn(move || follow(theirs, || ready.send(()).unwrap(), || to.send(nanos()).is_ok()));
        is_ready.recv().map_err(|error| error.to_string())?;
        appends(
            |call| append(&engine, &feed, call, &mut random),
            || from.recv().map_err(|error| error.to_string()),
        )
    })
}

/// Follows from the end; tells when it waits for the first time, and every turn as it comes.
fn follow(engine: &Engine, ready: impl FnOnce(), mut seen: impl FnMut() -> bool) {
    let end = engine.end(View::Written).unwrap();
    let mut follower = engine.follow(Read::after(end).view(View::Written)).unwrap();
    let (mut ready, mut count) = (Some(ready), 0);
    while count < EVENTS {
        match follower.next(None).unwrap() {
            Followed::Item(Item::Record(record)) if record.stream.as_str() != "log" => {
                count += 1;
                if !seen() {
                    return;
                }
            }
            Followed::CaughtUp(_) => {
                if let Some(ready) = ready.take() {
                    ready();
                }
            }
            _ => {}
        }
    }
}

fn condition(plan: &Plan) -> Result<Figure, String> {
    let home = plan.scratch();
    let path = home.path().join(FILE);
    let mut file = File::create(&path).unwrap();
    let shared = Arc::new((Mutex::new(0_usize), Condvar::new()));
    let (to, from) = mpsc::channel();
    let theirs = Arc::clone(&shared);
    let follower = std::thread::spawn(move || {
        let file = File::open(path).unwrap();
        let mut line = LINE;
        for seen in 0..EVENTS {
            let mut written = theirs.0.lock().unwrap();
            while *written == seen {
                written = theirs.1.wait(written).unwrap();
            }
            drop(written);
            file.read_exact_at(&mut line, (seen * LINE.len()) as u64).unwrap();
            to.send(nanos()).unwrap();
        }
    });
    let figure = appends(
        |_| {
            file.write_all(&LINE).unwrap();
            *shared.0.lock().unwrap() += 1;
            shared.1.notify_one();
        },
        || from.recv().map_err(|error| error.to_string()),
    );
    follower.join().map_err(|_| "the follower ended".to_owned())?;
    figure
}

type Appending = Box<dyn FnMut(usize)>;

fn other_process(plan: &Plan, who: &str, make: fn(&Path) -> Appending) -> Result<Figure, String> {
    let home = plan.scratch();
    let append = make(home.path());
    let mut child = Child::start(&["child-follow", who], home.path());
    child.hear()?;
    appends(append, || child.hear()?.parse().map_err(|_| "no number".to_owned()))
}

/// What a child does: it follows, and says of every event when it had it.
pub fn child(who: &str, folder: &Path) {
    let tell = || {
        children::tell(&nanos().to_string());
        true
    };
    if who == OURS {
        let engine = Engine::open_read_only(folder, Options::default()).unwrap();
        return follow(&engine, || children::tell("ready"), tell);
    }
    let path = folder.join(FILE);
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
    inotify::add_watch(&watch, &path, inotify::WatchFlags::MODIFY).unwrap();
    let file = OpenOptions::new().read(true).open(path).unwrap();
    let (mut line, mut notice, mut seen) = (LINE, [0; 4_096], 0);
    children::tell("ready");
    while seen < EVENTS {
        if file.read_at(&mut line, (seen * LINE.len()) as u64).unwrap() == LINE.len() {
            seen += 1;
            tell();
        } else {
            rustix::io::read(&watch, &mut notice).unwrap();
        }
    }
}
