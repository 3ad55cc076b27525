//! The import itself: sources one after the other, sessions of a source with parents before children, and the store's
//! earlier decisions before the plan's.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;

use super::claude::Rows;
use super::damage::{Damage, DamageClass};
use super::discover::{Discovery, Extent, Source};
use super::known::Known;
use super::openclaw::{Planned, Waiting};
use super::placing::{Placed, place};
use super::plan::SessionPlan;
use super::pursuit::{Kept, Pursuit};
use super::relations::{Leftover, Relations};
use super::report::{Progress, Report, SessionReport, Skipped, SourceReport, Unresolved};
use super::run::{Party, RunEvent};
use super::session::{Meter, Shared};
use super::sniff::Program;
use super::stream::{self, Files};
use super::tree::SourceTree;
use super::writer::{Journal, Mode, StreamWriter, while_importing};
use super::{annals, arka, claude, codex, gemini, hermes, openclaw, pi};
use crate::clock::Clock;
use crate::error::Result;
use crate::id::{StreamName, Version};
use crate::session::event::{IMPORT_STREAM, run_stream};
use crate::session::key::AgentId;
use crate::store::EventStore;

/// What of a discovery is imported, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether anything is appended.
    pub mode: Mode,
    /// The transcripts to take; `None` takes all. Sessions that have none of them are left out. An earlier part of a
    /// session that is imported after a later one becomes a session of its own.
    pub only: Option<BTreeSet<PathBuf>>,
}

/// Imports what was discovered: every record once, whatever was imported before. The source is only read.
///
/// On return everything that the report counts as new is on stable storage; a dry run counts the same and appends
/// nothing. An import that was interrupted is repeated: it goes on where it stopped.
///
/// # Errors
/// Whatever reading the source and appending to the store meet. The
/// error names the source, and the store's own place where that is what failed; what was appended before it stays.
pub fn import(
    store: &dyn EventStore,
    clock: &dyn Clock,
    tree: &dyn SourceTree,
    discovery: &Discovery,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report> {
    import_kept(store, clock, tree, discovery, options, progress, &mut None)
}

/// The same for sources that grow, where something is kept from the import before. It is lost with an error.
pub(crate) fn import_kept(
    store: &dyn EventStore,
    clock: &dyn Clock,
    tree: &dyn SourceTree,
    discovery: &Discovery,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
    kept: &mut Option<Pursuit>,
) -> Result<Report> {
    let mut report = Report::new(options.mode);
    let wanted = |path: &PathBuf| options.only.as_ref().is_none_or(|only| only.contains(path));
    let transcripts = discovery.sources.iter().flat_map(|source| &source.transcripts);
    let total = transcripts.filter(|t| wanted(&t.path)).map(|t| t.bytes).sum();
    let mut meter = Meter::new(progress, total);
    for source in &discovery.sources {
        let name = source.root.display().to_string();
        let journal = Journal::new(store, clock, options.mode, source.program.code(), name.clone());
        let told;
        (told, meter, *kept) = import_source(journal, meter, tree, source, options, kept.take())
            .map_err(|e| while_importing(e, &name))?;
        report.sources.push(told);
    }
    report.refused = discovery.refused.iter().map(skipped).collect();
    report.unknown = discovery.unknown.iter().map(|path| path.display().to_string()).collect();
    Ok(report)
}

pub(super) fn skipped(refused: &super::discover::Refused) -> Skipped {
    Skipped { path: refused.path.display().to_string(), reason: refused.reason.clone() }
}

fn import_source<'s>(
    journal: Journal<'s>,
    meter: Meter<'s>,
    tree: &dyn SourceTree,
    source: &Source,
    options: &Options,
    mut pursuit: Option<Pursuit>,
) -> Result<(SourceReport, Meter<'s>, Option<Pursuit>)> {
    let mut planned = planned(tree, source, options, pursuit.as_mut())?;
    let (known, kept) = match &mut pursuit {
        Some(pursuit) => {
            pursuit.known.catch_up(journal.store)?;
            (std::mem::take(&mut pursuit.known), pursuit.take_source(source))
        }
        None => (Known::read(journal.store)?, None),
    };
    let program = source.program.code();
    let mut placed = place(std::mem::take(&mut planned.sessions), &known, program)?;
    let begun = kept.as_ref().is_some_and(|kept| kept.begun);
    let journal = if pursuit.is_some() { journal.growing(begun) } else { journal };
    let (mut relations, rows) = match kept {
        Some(Kept { mut relations, rows, .. }) => {
            relations.stored(known.parties());
            (relations, rows)
        }
        None => {
            let main = AgentId::parse("main")?;
            (Relations::new(program, main, known.parties()), Rows::default())
        }
    };
    for session in &placed {
        relations.session(&session.plan.key, party(session), session.plan.label());
    }
    planned.runs.into_iter().for_each(|run| relations.run_by_now(run));
    for session in &mut placed {
        set_task(&mut session.plan, &relations);
    }
    let report = SourceReport {
        program: program.to_owned(),
        path: source.root.display().to_string(),
        copies: source.copies.iter().map(skipped).collect(),
        ..SourceReport::default()
    };
    let import = StreamName::new(IMPORT_STREAM)?;
    let damages = pursuit.as_mut().and_then(|pursuit| pursuit.take_writer(&import));
    let damages = damages.map_or_else(|| StreamWriter::open(&journal, import), Ok)?;
    let mut shared = Shared {
        program: source.program,
        journal,
        known,
        relations,
        report,
        damages,
        meter,
        rows,
        pursuit,
    };
    for damage in &planned.damages {
        shared.damage(&damage.file, damage)?;
    }
    let lost = shared.pursuit.as_mut().map(|pursuit| pursuit.take_lost(source));
    for damage in lost.unwrap_or_default() {
        shared.damage(&damage.file, &damage)?;
    }
    if source.program == Program::Annals {
        annals::import_transcripts(&mut shared, tree, source, options.only.as_ref())?;
    }
    import_sessions(&mut shared, tree, source, &placed)?;
    import_relations(&mut shared)?;
    import_waiting(&mut shared, &placed, &planned.waiting)?;
    finish(shared, source)
}

/// What is going to be imported of a source.
fn planned(
    tree: &dyn SourceTree,
    source: &Source,
    options: &Options,
    pursuit: Option<&mut Pursuit>,
) -> Result<Planned> {
    let by_file = source.state.is_none() && source.program != Program::Annals;
    let Some(pursuit) = pursuit.filter(|_| by_file) else {
        return plan(tree, source, options);
    };
    let mut left = source.clone();
    let going_on = pursuit.planned(tree, &mut left, options.only.as_ref())?;
    let wanted = |path: &PathBuf| options.only.as_ref().is_none_or(|only| only.contains(path));
    let anew = left.transcripts.iter().any(|transcript| wanted(&transcript.path));
    let mut planned = match anew {
        // Who spawned a thread is told by the headers of all.
        true if going_on.is_empty() || source.program == Program::Codex => {
            plan(tree, source, options)?
        }
        true => plan(tree, &left, options)?,
        false => Planned::default(),
    };
    let goes_on = |session: &SessionPlan| going_on.iter().any(|plan| plan.key == session.key);
    planned.sessions.retain(|session| !goes_on(session));
    pursuit.keep_plans(planned.sessions.iter());
    planned.sessions.extend(going_on);
    Ok(planned)
}

fn plan(tree: &dyn SourceTree, source: &Source, options: &Options) -> Result<Planned> {
    let mut planned = match (source.program, &source.state) {
        (_, Some(_)) => openclaw::plan(tree, source)?,
        (Program::ClaudeCode, None) => claude::plan(tree, source)?,
        (Program::Codex, None) => codex::plan(tree, source)?,
        (Program::Gemini, None) => gemini::plan(tree, source)?,
        (Program::Hermes, None) => hermes::plan(tree, source)?,
        (Program::Arka, None) => arka::plan(tree, source)?,
        (Program::Annals, None) => Planned::default(),
        _ => Planned { sessions: pi::plan(tree, source)?, ..Planned::default() },
    };
    if source.extent == Extent::Transcript {
        let named = source.transcripts.iter().map(|transcript| transcript.path.clone());
        keep_only(&mut planned, &named.collect());
    }
    if let Some(only) = &options.only {
        keep_only(&mut planned, only);
    }
    if source.extent != Extent::Whole || options.only.is_some() {
        planned.keep_runs_of_sessions();
    }
    Ok(planned)
}

fn finish<'s>(
    mut shared: Shared<'s>,
    source: &Source,
) -> Result<(SourceReport, Meter<'s>, Option<Pursuit>)> {
    shared.damages.flush(&mut shared.journal)?;
    let Shared { mut journal, mut report, mut meter, damages, .. } = shared;
    let keys: HashSet<&str> = report.sessions.iter().map(|s| s.key.as_str()).collect();
    report.counts.sessions = keys.len() as u64;
    journal.finish(report.counts.members()?)?;
    meter.new_behind += report.counts.new;
    let (known, relations, rows) = (shared.known, shared.relations, shared.rows);
    let pursuit = shared.pursuit.map(|mut pursuit| {
        pursuit.known = known;
        pursuit.keep_writer(damages);
        pursuit.keep_source(source, Kept { relations, rows, begun: journal.is_begun() });
        pursuit
    });
    Ok((report, meter, pursuit))
}

/// Leaves out transcripts that are not wanted, and sessions that have no other.
fn keep_only(planned: &mut Planned, only: &BTreeSet<PathBuf>) {
    for session in &mut planned.sessions {
        for part in &mut session.parts {
            part.files.retain(|file| only.contains(&file.path));
        }
        session.parts.retain(|part| !part.files.is_empty());
    }
    planned.sessions.retain(|session| !session.parts.is_empty());
    planned.waiting.clear();
}

fn party(session: &Placed) -> Party {
    let parts = session.plan.parts.iter().map(|part| (part.began, part.session_id.clone()));
    Party {
        key: session.key.to_string(),
        parts: parts.collect(),
        agent_id: session.plan.opening.0.agent_id.clone(),
    }
}

/// Completes where a child's first turn came from, now that the keys in the store are known.
fn set_task(plan: &mut SessionPlan, relations: &Relations) {
    let run = relations.first_run_of(&plan.key).map(|run| run.id.clone());
    if let Some(task) = &mut plan.task {
        task.run_id = run;
        task.source_session_key = task.source_session_key.take().map(|key| relations.key_of(&key));
    }
}

fn import_sessions(
    shared: &mut Shared<'_>,
    tree: &dyn SourceTree,
    source: &Source,
    placed: &[Placed],
) -> Result<()> {
    let files = Files::new(tree, source);
    for session in placed {
        if let Some(detail) = &session.moved {
            let part = session.plan.parts.first();
            let file = part.and_then(|part| part.files.first());
            let damage = Damage {
                class: DamageClass::KeyTaken,
                file: file.map(|file| file.name.clone()).unwrap_or_default(),
                offset: 0,
                bytes: 0,
                recovered: 0,
                detail: detail.clone(),
            };
            shared.damage(part.map_or("", |part| part.scope.as_str()), &damage)?;
        }
        let (turns, new) = stream::import_session(shared, &files, session)?;
        shared.report.sessions.push(SessionReport {
            key: session.key.to_string(),
            parts: session.plan.parts.iter().map(|part| part.session_id.clone()).collect(),
            turns,
            new,
        });
        for unresolved in shared.relations.take_unresolved() {
            shared.report.unresolved(unresolved);
        }
    }
    Ok(())
}

/// Tells what the transcripts did not say of runs, and their lives in their own streams.
fn import_relations(shared: &mut Shared<'_>) -> Result<()> {
    shared.report.counts.runs = shared.relations.run_count();
    let leftovers = shared.relations.leftovers(shared.tail());
    let mut by_requester: BTreeMap<String, Vec<RunEvent>> = BTreeMap::new();
    for Leftover { requester, run_id, life } in leftovers {
        let is_told = |event: &RunEvent| shared.known.is_told(event.id);
        let stream = run_stream(&run_id)?;
        if life.iter().all(is_told) {
            shared.report.counts.known += life.len() as u64;
        } else if !life.iter().any(is_told) && shared.journal.store.head(&stream)? != Version::ZERO
        {
            // The run is one of this store's own: what it was and how it ended is told there already.
            shared.report.counts.runs = shared.report.counts.runs.saturating_sub(1);
            continue;
        } else {
            put_all(shared, &stream, &life)?;
        }
        if let Some((requester, events)) = requester {
            by_requester.entry(requester).or_default().extend(events);
        }
    }
    for (requester, events) in by_requester.into_iter().filter(|(_, events)| !events.is_empty()) {
        put_all(shared, &StreamName::new(requester)?, &events)?;
    }
    for unresolved in shared.relations.take_unresolved() {
        shared.report.unresolved(unresolved);
    }
    Ok(())
}

/// Tells of messages that wait to be delivered, in the sessions that they belong to.
fn import_waiting(shared: &mut Shared<'_>, placed: &[Placed], waiting: &[Waiting]) -> Result<()> {
    shared.report.counts.undelivered = waiting.len() as u64;
    let mut by_session: BTreeMap<String, Vec<RunEvent>> = BTreeMap::new();
    for message in waiting {
        let Some(key) = session_of(message, shared, placed) else {
            let Waiting { target, .. } = message;
            let channel = target.channel.clone().unwrap_or_default();
            let to = target.to.clone().unwrap_or_default();
            shared.report.unresolved(Unresolved {
                from: None,
                to: None,
                tool: "delivery".to_owned(),
                named: Some(format!("{channel}:{to}")),
            });
            continue;
        };
        by_session.entry(key).or_default().extend(message.events(shared.program.code()));
    }
    for (key, events) in by_session {
        put_all(shared, &StreamName::new(key)?, &events)?;
    }
    Ok(())
}

/// The session that a waiting message belongs to: the one that it names, else the only one that answers there.
fn session_of(message: &Waiting, shared: &Shared<'_>, placed: &[Placed]) -> Option<String> {
    if let Some(named) = &message.session {
        let key = shared.relations.key_of(named);
        if placed.iter().any(|session| session.key.as_str() == key) {
            return Some(key);
        }
    }
    let there = |session: &&Placed| {
        let opened = &session.plan.opening.0;
        opened.parent_key.is_none()
            && opened.origin.as_ref().is_some_and(|origin| {
                origin.channel == message.target.channel && origin.to == message.target.to
            })
    };
    let mut there = placed.iter().filter(there);
    let first = there.next()?;
    there.next().is_none().then(|| first.key.to_string())
}

fn put_all(shared: &mut Shared<'_>, stream: &StreamName, events: &[RunEvent]) -> Result<()> {
    let mut writer = shared.writer(stream)?;
    for event in events {
        let put = writer.put_made(&mut shared.journal, event.to_new(stream)?, 0..0)?;
        shared.count(put);
    }
    writer.flush(&mut shared.journal)?;
    shared.keep_writer(writer);
    Ok(())
}
