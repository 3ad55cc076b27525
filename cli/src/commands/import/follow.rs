//! `import --follow`: what programs write into their transcripts comes in as they write it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use annals_engine::import::{DiskTree, Following, Report, files_under};

use super::{Answer, number};
use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::text::count;
use crate::output::{Format, say};
use crate::{signal, store};

/// How long a burst is waited for to be over, so that it is one round.
const BURST: Duration = Duration::from_millis(100);

/// How long one wait for notifications is at most: a signal is noticed after it.
const TICK: Duration = Duration::from_millis(250);

/// How often files are looked for behind notifications, and how often where there are none.
const POLL: Duration = Duration::from_secs(10);
const POLL_ALONE: Duration = Duration::from_secs(1);

/// Follows the paths until a signal comes.
pub(super) fn run(paths: &[PathBuf], context: &mut Context) -> Result<Exit, Failure> {
    let absolute = |path: &PathBuf| std::path::absolute(path).map(|path| plain(&path));
    let paths: Vec<PathBuf> = paths.iter().map(absolute).collect::<Result<_, _>>()?;
    let engine = store::open(&context.global)?;
    let files = Box::new(files_under(&paths)?);
    let mut following = Following::new(engine.store(), engine.clock(), &DiskTree, files, paths)?;
    signal::instead(|| {});
    if let Some(notice) = following.notice() {
        let every = POLL_ALONE.as_secs();
        say(&format!("changes are not told here ({}): looking every {every} s", notice.as_str()));
    }
    while signal::came().is_none() {
        if let Some(report) = following.round(&mut |_| {})? {
            tell(&report, context)?;
        }
        wait(&mut following);
    }
    following.finish()?;
    Ok(signal::came().map_or(Exit::Ok, Exit::Signal))
}

/// Waits for a change and for the burst that it may be the first of, for a signal, or until it is time to look.
fn wait(following: &mut Following<'_>) {
    let poll = if following.notice().is_some() { POLL_ALONE } else { POLL };
    let begun = Instant::now();
    while signal::came().is_none() && begun.elapsed() < poll {
        if following.wait(TICK) {
            std::thread::park_timeout(BURST);
            following.wait(Duration::ZERO);
            return;
        }
    }
}

/// Tells what came: a line on stderr, or a report as one line of JSON.
fn tell(report: &Report, context: &mut Context) -> Result<(), Failure> {
    let totals = report.totals();
    if context.out.format == Format::Json {
        context.out.object(&Answer { ok: true, totals, report })?;
        return context.out.flush();
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
