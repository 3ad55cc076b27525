//! The sessions of a source: one for each id. Read for it are the beginnings of files.

use std::io::Read;

use crate::error::{Error, Result};
use crate::import::discover::Source;
use crate::import::document::members_of;
use crate::import::fields::Fields;
use crate::import::openclaw::{Planned, parents_first};
use crate::import::plan::{SessionPlan, Sessions, own_key, whole_file};
use crate::import::sniff::Program;
use crate::import::time::any_time;
use crate::import::tree::SourceTree;

/// How much of a file is looked at, in bytes.
const PEEK_BYTES: u64 = 256 << 10;

/// Plans the sessions of a source, in the order of their beginnings.
///
/// # Errors
/// Whatever reading meets.
pub(crate) fn plan(tree: &dyn SourceTree, source: &Source) -> Result<Planned> {
    let mut sessions = Sessions::default();
    for transcript in &source.transcripts {
        let path = &transcript.path;
        let failed = |e| Error::io("the transcript cannot be read", e).path(path);
        let mut prefix = Vec::new();
        let file = tree.open(path).map_err(failed)?;
        file.take(PEEK_BYTES).read_to_end(&mut prefix).map_err(failed)?;
        let header = members_of(&prefix, "messages");
        let fields = Fields::parse(&header).unwrap_or_default();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let id = fields.text("session_id").filter(|id| !id.is_empty()).unwrap_or(stem);
        let began = fields.get("session_start").and_then(any_time);
        let key = own_key(Program::Hermes.code(), &id)?;
        let mut plan = SessionPlan::bare(Program::Hermes, key, &id, began);
        plan.opening.0.channel = fields.text("platform").map(|text| text.into_owned());
        if let Some(parent) = fields.text("parent_session_id").filter(|id| !id.is_empty()) {
            let key = own_key(Program::Hermes.code(), &parent)?;
            plan.opening.0.parent_key = Some(key.to_string());
            plan.opening.0.parent_session_id = Some(parent.into_owned());
            plan.parent = Some(key);
        }
        sessions.add(plan, whole_file(source, transcript));
    }
    let sessions = parents_first(sessions.into_plans());
    Ok(Planned { sessions, ..Planned::default() })
}
