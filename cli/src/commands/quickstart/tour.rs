//! What there is to see after the first steps: the check, the sessions, the last events, what sessions said to each
//! other, and what to type next.

use std::path::{Path, PathBuf};

use annals_engine::Engine;
use annals_engine::engine::Report as Verified;
use annals_engine::import::{Counts, Report};
use annals_engine::store::View;
use annals_tools::list::sessions_list;
use annals_tools::wire::{ListArgs, ListReply, Listed};
use serde::Serialize;

use super::places::{Place, Places};
use crate::commands::import;
use crate::commands::sessions;
use crate::commands::verify::{self, Asked, ReportWire};
use crate::exit::Failure;
use crate::filter::FilterArgs;
use crate::output::Output;
use crate::output::table::dress;
use crate::output::text::{bytes, count};
use crate::shown::print::Printer;
use crate::shown::wire::{self, EventWire};
use crate::sieve::{Sieve, Step};
use crate::store::{self, Looked, Opened};

/// How many sessions, events and messages are shown.
const SHOWN: usize = 8;

/// What was brought in, and why that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brought {
    Transcripts,
    SampleForWantOfTranscripts,
    SampleForWantOfPermission,
}

/// All that is shown.
pub(super) struct Tour<'a> {
    pub(super) engine: &'a Engine,
    pub(super) folder: &'a Path,
    /// The folder as it was named on the command line.
    pub(super) named: Option<&'a Path>,
    pub(super) places: &'a Places,
    pub(super) brought: Brought,
    pub(super) report: Report,
    pub(super) verified: Verified,
}

/// The same as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    ok: bool,
    sample: bool,
    found: Vec<Place>,
    imported: Counts,
    verified: ReportWire<'a>,
    sessions: &'a [Listed],
    messages: Vec<EventWire<'a>>,
    next: Vec<String>,
}

impl Tour<'_> {
    pub(super) fn tell(&self, out: &mut Output) -> Result<(), Failure> {
        let sessions = self.sessions(out)?;
        let messages = self.last(true, out)?;
        let id = self.engine.id();
        let events = messages.iter().filter_map(|step| match step {
            Step::Event(shown) => Some(wire::wire(shown, id)),
            Step::Gap(_) => None,
        });
        out.object(&Answer {
            ok: self.verified.is_sound(),
            sample: self.brought != Brought::Transcripts,
            found: self.places.list(),
            imported: self.report.totals(),
            verified: verify::wire(&self.verified, self.folder, Asked::Verify),
            sessions: &sessions.sessions,
            messages: events.collect(),
            next: self.next().into_iter().map(|(command, _)| command).collect(),
        })
    }

    pub(super) fn show(&self, out: &mut Output) -> Result<(), Failure> {
        if self.brought != Brought::Transcripts {
            out.line("imported  a small sample: it is in the store like any other import")?;
        }
        import::show(&self.report, out)?;
        let Verified { segments, lines, bytes: size, .. } = self.verified;
        let checked = format!("{}, {}", count(segments, "segment"), count(lines, "line"));
        let verdict = if self.verified.is_sound() { "sound" } else { "DAMAGED" };
        out.line(&format!("verified  {checked}, {}: {verdict}", bytes(size)))?;
        heading("Sessions", out)?;
        sessions::list::table(&self.sessions(out)?, out)?;
        for (title, messages_only) in [("Last events", false), ("Between sessions", true)] {
            let steps = self.last(messages_only, out)?;
            if !steps.is_empty() {
                heading(title, out)?;
            }
            let mut printer = Printer::new(out, self.engine.id(), out.time_style());
            steps.iter().try_for_each(|step| printer.print(out, step))?;
        }
        heading("What to type next", out)?;
        let next = self.next();
        let width = next.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
        next.iter()
            .try_for_each(|(command, what)| out.line(&format!("  {command:<width$}  {what}")))
    }

    fn sessions(&self, out: &Output) -> Result<ListReply, Failure> {
        let looked = Looked::at(Opened::new(self.engine.clone()), out.now)?;
        let args = ListArgs { limit: Some(SHOWN), ..ListArgs::default() };
        let caller = store::operator()?;
        Ok(sessions_list(&caller, &looked.view(), &args)?)
    }

    fn last(&self, messages_only: bool, out: &Output) -> Result<Vec<Step>, Failure> {
        let wanted = FilterArgs::default().check(out)?;
        let mut sieve = Sieve::new(wanted, messages_only, None, self.engine.id());
        Ok(sieve.last(self.engine.store(), View::Durable, SHOWN)?.into())
    }

    /// Commands to go on with, and what each is for.
    fn next(&self) -> Vec<(String, &'static str)> {
        let mut next = Vec::new();
        if self.brought == Brought::SampleForWantOfPermission {
            next.push((self.command("quickstart --yes"), "import what was found"));
        }
        if self.brought == Brought::Transcripts {
            let roots = self.places.roots_of_the_rest();
            let import = |root: &PathBuf| self.command(&format!("import '{}'", root.display()));
            next.extend(roots.iter().map(|root| (import(root), "import the rest too")));
        }
        let always = [
            ("tail -f", "watch events as they come"),
            ("tail -f -m", "only what sessions say to each other"),
            ("sessions list", "all sessions"),
            ("sessions history KEY", "what was said in one"),
            ("log --type error", "what went wrong"),
        ];
        next.extend(always.map(|(command, what)| (self.command(command), what)));
        next
    }

    /// A command line for this very store.
    fn command(&self, rest: &str) -> String {
        match self.named {
            Some(folder) => format!("annals --store '{}' {rest}", folder.display()),
            None => format!("annals {rest}"),
        }
    }
}

fn heading(title: &str, out: &mut Output) -> Result<(), Failure> {
    out.line("")?;
    out.line(&dress(title, out.paint.title()))
}
