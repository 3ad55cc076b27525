//! `import --follow`: what programs write into their transcripts comes in as they write it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use annals_engine::engine::is_remote;
use annals_engine::import::{DiskTree, Following, Report, files_under};
use annals_engine::watch::NoNotice;

use super::{Answer, number};
use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::text::{count, one_line};
use crate::output::{Format, say};
use crate::{signal, store};

/// How long a burst is waited for to be over, so that it is one round.
const BURST: Duration = Duration::from_millis(100);

/// How long one wait for notifications is at most: a signal is noticed after it.
const TICK: Duration = Duration::from_millis(250);

/// How often files are looked for behind notifications, and how often where there are none.
const POLL: Duration = Duration::from_secs(10);
const POLL_ALONE: Duration = Duration::from_secs(1);

/// How often it is tried again whether there are any.
const TRY_EVERY: Duration = Duration::from_secs(60);

/// Follows the paths until a signal comes.
pub(super) fn run(paths: &[PathBuf], context: &mut Context) -> Result<Exit, Failure> {
    let paths: Vec<PathBuf> = paths.iter().map(whole).collect::<Result<_, _>>()?;
    let engine = store::open(&context.global)?;
    let files = Box::new(files_under(&paths, paths.iter().any(|path| is_remote(path)))?);
    let mut following = Following::new(engine.store(), engine.clock(), &DiskTree, files, paths)?;
    signal::instead(|| {});
    let mut ear = Ear { why: None, tried: Instant::now(), missed: 0 };
    // Whether what a round finds was told of before, unless nobody tells: not what was there at the beginning.
    let mut trusts = false;
    while signal::came().is_none() {
        let report = following.round(&mut |_| {})?;
        if let Some(report) = &report {
            tell(report, context)?;
        }
        // What is hinted at by now was not missed.
        let more = following.wait(Duration::ZERO);
        match (following.was_told(), report.is_some() && trusts) {
            (true, _) => ear.missed = 0,
            (false, missed) => ear.missed += u32::from(missed),
        }
        let again = ear.learn(&mut following);
        trusts = !(more || again);
        if !again {
            ear.wait(&mut following, more);
        }
    }
    following.finish()?;
    Ok(signal::came().map_or(Exit::Ok, Exit::Signal))
}

/// What is known of how well changes are told.
struct Ear {
    /// Why they are not, where they are not; it was said.
    why: Option<&'static str>,
    /// When it was tried last whether they are.
    tried: Instant,
    /// How many rounds since something was told last found something of which nothing was told.
    missed: u32,
}

impl Ear {
    /// Learns from a round, and says what is new of it. Whether it is to be looked again at once, because nothing was told
    /// until now.
    fn learn(&mut self, following: &mut Following<'_>) -> bool {
        let for_now = following.notice().is_some_and(|notice| notice != NoNotice::Network);
        let tries = for_now && self.tried.elapsed() >= TRY_EVERY;
        if tries {
            self.tried = Instant::now();
            following.notify();
        }
        let lacks = following.notice().map(NoNotice::as_str);
        let why = lacks.or(if self.missed >= MISSED { Some(SILENT) } else { None });
        // That a folder is silent is learned once: a change that is told says nothing of those that are not.
        let why = why.or(self.why.filter(|why| *why == SILENT));
        if why != self.why {
            self.why = why;
            let every = POLL_ALONE.as_secs();
            say(&match why {
                Some(why) => format!("changes are not told here ({why}): looking every {every} s"),
                None => "changes are told again".to_owned(),
            });
        }
        tries && lacks.is_none()
    }

    /// Waits for a change and for the burst that it may be the first of, for a signal, or until it is time to look.
    /// `told` says that there is a change already.
    fn wait(&self, following: &mut Following<'_>, told: bool) {
        let poll = if self.why.is_some() { POLL_ALONE } else { POLL };
        let begun = Instant::now();
        while signal::came().is_none() && begun.elapsed() < poll {
            if told || following.wait(TICK) {
                std::thread::park_timeout(BURST);
                return;
            }
        }
    }
}

/// So many rounds in a row have to find something of which nothing was told: one may be a moment ahead of what is told.
const MISSED: u32 = 2;

/// The word of a place whose changes are not told although nothing says so.
const SILENT: &str = "silent";

/// Tells what came: a line on stderr, or a report as one line of JSON.
fn tell(report: &Report, context: &mut Context) -> Result<(), Failure> {
    let totals = report.totals();
    for skipped in &report.refused {
        say(&one_line(&format!("not imported: {}: {}", skipped.path, skipped.reason)));
    }
    if context.out.format == Format::Json {
        context.out.object(&Answer { ok: true, totals, report })?;
        return context.out.flush();
    }
    if report.sources.is_empty() {
        return Ok(());
    }
    let sessions = report.sources.iter().flat_map(|source| &source.sessions);
    let sessions = sessions.filter(|session| session.new > 0).count();
    let damages = match totals.damages {
        0 => String::new(),
        damages => format!(", {}", count(damages, "damage")),
    };
    let (events, sessions) = (count(totals.new, "event"), count(number(sessions), "session"));
    say(&format!("{events} of {sessions}{damages}"));
    Ok(())
}

/// A path as the system names it, without links; one that is not there as it is spelled.
fn whole(path: &PathBuf) -> Result<PathBuf, Failure> {
    let path = std::path::absolute(path)?;
    Ok(path.canonicalize().unwrap_or_else(|_| plain(&path)))
}

/// A path without `.` and `..`, as it is spelled.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}
