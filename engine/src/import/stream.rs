//! A session's way into its stream: its parts in order, each from its files, and what its program says of it now.

use std::collections::HashSet;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::arka::Arka;
use super::claude::{self, Lane};
use super::codex::{self, Codex};
use super::damage::DamageClass;
use super::dialect::{Dialect, Records};
use super::discover::Source;
use super::document::{is_document, read_document};
use super::gemini::Gemini;
use super::hermes::Hermes;
use super::placing::{Placed, opened_id, twin_scope};
use super::plan::{FilePlan, PartPlan, Twin};
use super::pursuit::Tail;
use super::reading::Reading;
use super::records::{Flaw, Sink, read_lane, read_on, read_records};
use super::session::{Ongoing, Shared, with_source};
use super::sniff::{Looks, Program, sniff};
use super::story::Story;
use super::transcript::{Hashes, Transcript};
use super::tree::{SourceFile, SourceTree};
use super::writer::StreamWriter;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::format::{Payload, hex};
use crate::session::event::{
    Event, ImportedRecord, ResetReason, SessionArchived, SessionPatched, SessionReset,
};

/// The files of a source.
pub(crate) struct Files<'t> {
    tree: &'t dyn SourceTree,
    source: &'t Source,
}

impl<'t> Files<'t> {
    pub(crate) fn new(tree: &'t dyn SourceTree, source: &'t Source) -> Self {
        Self { tree, source }
    }

    /// The transcript of the source that a header speaks of, by its name: paths in headers are those of the machine
    /// that wrote them.
    fn named(&self, path: &Path) -> Option<&'t Path> {
        let name = path.file_name()?;
        let transcripts = self.source.transcripts.iter().map(|t| t.path.as_path());
        transcripts.into_iter().find(|path| path.file_name() == Some(name))
    }
}

/// Imports one session, and returns how many turns it has and how many events are new.
pub(crate) fn import_session(
    shared: &mut Shared<'_>,
    files: &Files<'_>,
    session: &Placed,
) -> Result<(u64, u64)> {
    let mut writer = shared.writer(session.key.stream())?;
    let stream = shared.known.stream(session.key.stream());
    let mut previous = stream.and_then(|s| s.parts.last()).map(|(id, _)| id.clone());
    let (mut turns, mut new) = (0, 0);
    for part in &session.plan.parts {
        let mut ongoing = ongoing(shared, session, part, &mut writer, files);
        let there = ongoing.writer.knows(ongoing.id(ImportedRecord::Id(&part.session_id), ""));
        if !there && let Some(before) = previous.take() {
            reset(&mut ongoing, before)?;
        }
        read_part(&mut ongoing, files)?;
        turns += ongoing.turns;
        new += ongoing.new;
        previous = Some(part.session_id.clone());
    }
    if let Some(part) = session.plan.parts.last() {
        let mut ongoing = ongoing(shared, session, part, &mut writer, files);
        close(&mut ongoing)?;
        new += ongoing.new;
    }
    if shared.tail() == Tail::Final {
        shared.relations.transcript_ended(&session.plan.key);
    }
    shared.keep_writer(writer);
    Ok((turns, new))
}

fn ongoing<'o, 's>(
    shared: &'o mut Shared<'s>,
    session: &'o Placed,
    part: &'o PartPlan,
    writer: &'o mut StreamWriter,
    files: &Files<'_>,
) -> Ongoing<'o, 's> {
    let twin = twin_scope(part, &session.key);
    let second = part.twin == Twin::Second
        || writer.knows(opened_id(shared.program.code(), &twin, &part.session_id));
    let path = part.files.last().map(|file| file.path.as_path());
    let path = path.or(files.source.state.is_some().then_some(files.source.root.as_path()));
    Ongoing {
        shared,
        plan: &session.plan,
        part,
        key: &session.key,
        writer,
        scope: if second { twin } else { part.scope.clone() },
        twin: if second { Twin::Second } else { Twin::First },
        source_path: path.map(|path| path.display().to_string()),
        turns: 0,
        new: 0,
        goes_on_from: None,
    }
}

/// Says that a part follows the one before it.
fn reset(ongoing: &mut Ongoing<'_, '_>, previous_session_id: String) -> Result<()> {
    let at = ongoing.part.reset.or(ongoing.part.began);
    let event = Event::SessionReset(SessionReset {
        at,
        session_id: ongoing.session_id().to_owned(),
        previous_session_id,
        reason: ResetReason::Imported,
        effective_at: at.unwrap_or(Timestamp::EPOCH),
        rule: None,
        deferred_by: None,
    });
    let id = ongoing.id(ImportedRecord::Id(ongoing.session_id()), "reset");
    ongoing.put(&event, id)
}

fn read_part(ongoing: &mut Ongoing<'_, '_>, files: &Files<'_>) -> Result<()> {
    let parent = ongoing.part.forked_from.as_deref().and_then(|path| files.named(path));
    let part = ongoing.part;
    let only = match part.files.as_slice() {
        [file] if matches!(file.lane, Lane::Whole) => Some(file.path.clone()),
        _ => None,
    };
    let mut resumed = None;
    match (&only, &mut ongoing.shared.pursuit) {
        (Some(path), Some(pursuit)) => {
            resumed = pursuit.resume(files.tree, ongoing.key.as_str(), path)?;
        }
        (None, Some(pursuit)) => part.files.iter().for_each(|file| pursuit.forget(&file.path)),
        (_, None) => {}
    }
    let from = resumed.as_ref().map_or(0, |cursor| cursor.offset);
    let mut story = match parent {
        _ if resumed.is_some() => resumed.map(|cursor| cursor.story).unwrap_or_default(),
        Some(parent) => Story::forked(hashes(files.tree, ongoing.shared.program, parent)?),
        None if ongoing.shared.program == Program::ClaudeCode => Story::with_slack(claude::SLACK),
        None => Story::default(),
    };
    ongoing.shared.rows.begin(ongoing.key.as_str(), &part.session_id);
    let mut reached = None;
    for (at, file) in part.files.iter().enumerate() {
        let last = at + 1 == part.files.len();
        reached = read_file(ongoing, files.tree, file, &mut story, (from, last))?;
        ongoing.shared.meter.behind += file.lane.bytes(file.bytes);
        ongoing.progress(0);
    }
    let opened = ongoing.id(ImportedRecord::Id(ongoing.session_id()), "");
    if !ongoing.writer.knows(opened) && ongoing.plan.index.is_some() {
        // The index knows the session, and there is no record of it.
        let event = ongoing.opened(None, None)?;
        ongoing.put_new(event)?;
    }
    if part.files.is_empty() {
        let file = format!("{}.jsonl", part.session_id);
        let detail = "the index names the session, and its file is not there".into();
        let class = DamageClass::MissingFile;
        ongoing.flaw(&file, Flaw { class, offset: 0, bytes: 0, recovered: 0, detail })?;
    }
    ongoing.flush()?;
    if let (Some(path), Some(offset), Some(pursuit)) = (&only, reached, &mut ongoing.shared.pursuit)
    {
        pursuit.keep(files.tree, ongoing.key.as_str(), path, offset, story)?;
    }
    if let Some(seq) = ongoing.writer.place() {
        ongoing.shared.relations.task_at(&ongoing.plan.key, seq.0);
    }
    Ok(())
}

fn read_file(
    ongoing: &mut Ongoing<'_, '_>,
    tree: &dyn SourceTree,
    file: &FilePlan,
    story: &mut Story,
    (from, last): (u64, bool),
) -> Result<Option<u64>> {
    let failed = |e| Error::io("the transcript cannot be read", e).path(&file.path);
    let looks = sniff(tree, &file.path).map_err(failed)?;
    let program = ongoing.shared.program;
    ongoing.shared.report.counts.transcripts += u64::from(!matches!(file.lane, Lane::Only(_)));
    if looks != looks_of(program) && !matches!(looks, Looks::Empty | Looks::Unknown) {
        let detail = super::discover::refusal(looks).into();
        let class = DamageClass::WrongFormat;
        ongoing
            .flaw(&file.name, Flaw { class, offset: 0, bytes: file.bytes, recovered: 0, detail })?;
        return Ok(None);
    }
    let reader = tree.open(&file.path).map_err(failed)?;
    let named = |e: Error| if e.place().path.is_none() { e.path(&file.path) } else { e };
    let reading = Reading { ongoing, story, file: &file.name };
    let (reading, end) = read_as(program, reader, (&file.lane, from), reading).map_err(named)?;
    let (End::At(bytes) | End::GoesOn(bytes)) = end;
    reading.end(last, bytes)?;
    ongoing.shared.report.counts.bytes += bytes.saturating_sub(from);
    Ok(match end {
        End::GoesOn(offset) => Some(offset),
        End::At(_) => None,
    })
}

/// How far a file was read.
enum End {
    /// To its end, which is here, in bytes.
    At(u64),
    /// To the end of its last whole record, behind which it goes on.
    GoesOn(u64),
}

/// Reads the records of a file of lines.
fn read_lines_of(
    reader: Box<dyn SourceFile + '_>,
    (lane, from): (&Lane, u64),
    tail: Tail,
    sink: &mut dyn Sink,
) -> Result<End> {
    match (tail, lane) {
        (Tail::Growing, Lane::Whole) => read_on(reader, from, sink).map(End::GoesOn),
        _ => read_lane(reader, lane, tail, sink).map(End::At),
    }
}

/// Reads the records of a file as its program writes them.
fn read_as<'t, 'o, 's>(
    program: Program,
    mut reader: Box<dyn SourceFile + '_>,
    place: (&Lane, u64),
    reading: Reading<'t, 'o, 's>,
) -> Result<(Reading<'t, 'o, 's>, End)> {
    let tail = reading.ongoing.shared.tail();
    let (dialect, list): (&dyn Dialect, Option<&str>) = match program {
        Program::ClaudeCode => {
            let mut transcript = claude::Transcript { reading };
            let end = read_lines_of(reader, place, tail, &mut transcript)?;
            return Ok((transcript.reading, end));
        }
        Program::Codex => (&Codex, None),
        Program::Gemini if is_document(&mut reader, "messages")? => (&Gemini, Some("messages")),
        Program::Gemini => (&Gemini, None),
        Program::Hermes => (&Hermes, Some("messages")),
        Program::Arka => (&Arka, Some("turns")),
        _ => {
            let mut transcript = Transcript { reading };
            let end = read_lines_of(reader, place, tail, &mut transcript)?;
            return Ok((transcript.reading, end));
        }
    };
    let mut records = Records { reading, dialect };
    let end = match list {
        Some(list) => End::At(read_document(reader, list, tail, &mut records)?),
        None => read_lines_of(reader, place, tail, &mut records)?,
    };
    Ok((records.reading, end))
}

/// What a transcript of a program looks like.
pub(super) fn looks_of(program: Program) -> Looks {
    match program {
        Program::OpenClaw | Program::Pi => Looks::Session,
        program => Looks::Of(program),
    }
}

fn hashes(tree: &dyn SourceTree, program: Program, path: &Path) -> Result<HashSet<u64>> {
    let failed = |e| Error::io("the transcript cannot be read", e).path(path);
    let known_by = if program == Program::Codex { codex::hash_of } else { |_: &str| None };
    let mut hashes = Hashes { found: HashSet::new(), known_by };
    read_records(tree.open(path).map_err(failed)?, &mut hashes)?;
    Ok(hashes.found)
}

/// Says what the program's index and the names of its files say of the session now.
fn close(ongoing: &mut Ongoing<'_, '_>) -> Result<()> {
    if !ongoing.writer.knows(ongoing.id(ImportedRecord::Id(ongoing.session_id()), "")) {
        return Ok(());
    }
    patch(ongoing)?;
    if let Some((reason, effective_at)) = ongoing.plan.archived {
        let session_id = ongoing.session_id().to_owned();
        let at = Some(effective_at);
        let rule = None;
        let event =
            Event::SessionArchived(SessionArchived { at, session_id, reason, effective_at, rule });
        let id = ongoing.id(ImportedRecord::Id(ongoing.session_id()), "archived");
        ongoing.put(&event, id)?;
    }
    ongoing.flush()
}

/// Patches the session with what the index says, if it says something else than the last time.
fn patch(ongoing: &mut Ongoing<'_, '_>) -> Result<()> {
    let Some(index) = ongoing.plan.index.as_ref() else { return Ok(()) };
    let set = Payload::of(&index.set)?;
    let patches = ongoing.writer.patches_from(&index.source.file);
    // An index of before, as an old copy of the folder has it, says nothing of now.
    let is_old = index.at.zip(patches.at).is_some_and(|(at, last)| at < last);
    if is_old || patches.set.as_deref() == Some(set.as_str()) {
        ongoing.shared.report.counts.known += 1;
        return Ok(());
    }
    if index.set.0.is_empty() && index.source.rest.is_none() {
        return Ok(());
    }
    let event = Event::SessionPatched(SessionPatched {
        at: index.at,
        session_id: ongoing.session_id().to_owned(),
        set: index.set.clone(),
    });
    let key = format!("{}:{}", patches.count, hex(&Sha256::digest(set.as_str())));
    let id = ongoing.id(ImportedRecord::Id(&key), "index");
    let event = with_source(ongoing.new_event(&event, id)?, &index.source)?;
    ongoing.put_new(event)
}
