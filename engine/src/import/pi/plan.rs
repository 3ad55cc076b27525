//! Session files of pi that stand by themselves: each is a session `pi:<its id>`, and copies of one are one session.

use crate::error::Result;
use crate::import::discover::Source;
use crate::import::plan::{SessionPlan, Sessions, own_key, peek, whole_file};
use crate::import::sniff::Program;
use crate::import::tree::SourceTree;

/// Plans the sessions of a source, in the order of their beginnings.
pub(crate) fn plan(tree: &dyn SourceTree, source: &Source) -> Result<Vec<SessionPlan>> {
    let mut sessions = Sessions::default();
    for transcript in &source.transcripts {
        let peek = peek(tree, &transcript.path)?;
        let stem = transcript.path.file_stem().unwrap_or_default().to_string_lossy();
        let id = peek.session_id.unwrap_or_else(|| stem.into_owned());
        let key = own_key(Program::Pi.code(), &id)?;
        let mut plan = SessionPlan::bare(Program::Pi, key, &id, peek.began);
        for part in &mut plan.parts {
            part.forked_from.clone_from(&peek.forked_from);
        }
        sessions.add(plan, whole_file(source, transcript));
    }
    let mut sessions = sessions.into_plans();
    sessions.sort_by(|a, b| (a.began(), a.key.as_str()).cmp(&(b.began(), b.key.as_str())));
    Ok(sessions)
}
