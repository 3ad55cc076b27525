//! Session files of pi that stand by themselves: each is a session `pi:<its id>`, and copies of one are one session.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::import::claude::Lane;
use crate::import::discover::Source;
use crate::import::plan::{
    FilePlan, Opening, PartPlan, Peek, SessionPlan, Twin, name_from, own_key, peek,
};
use crate::import::sniff::Program;
use crate::import::tree::SourceTree;
use crate::session::event::{Ingress, SessionKind};

/// Plans the sessions of a source, in the order of their beginnings.
pub(crate) fn plan(tree: &dyn SourceTree, source: &Source) -> Result<Vec<SessionPlan>> {
    let mut sessions: BTreeMap<String, SessionPlan> = BTreeMap::new();
    for transcript in &source.transcripts {
        let peek = peek(tree, &transcript.path)?;
        let stem = transcript.path.file_stem().unwrap_or_default().to_string_lossy();
        let id = peek.session_id.clone().unwrap_or_else(|| stem.into_owned());
        let file = FilePlan {
            path: transcript.path.clone(),
            name: name_from(&source.root, &transcript.path),
            bytes: transcript.bytes,
            lane: Lane::Whole,
        };
        if let Some(part) = sessions.get_mut(&id).and_then(|session| session.parts.first_mut()) {
            part.files.push(file);
            continue;
        }
        let session = session(&id, file, peek)?;
        sessions.insert(id, session);
    }
    let mut sessions: Vec<SessionPlan> = sessions.into_values().collect();
    sessions.sort_by(|a, b| (a.began(), a.key.as_str()).cmp(&(b.began(), b.key.as_str())));
    Ok(sessions)
}

fn session(id: &str, file: FilePlan, peek: Peek) -> Result<SessionPlan> {
    let program = Program::Pi.code();
    Ok(SessionPlan {
        key: own_key(program, id)?,
        opening: Opening::bare(SessionKind::Other, program.to_owned(), program),
        task: None,
        door: Ingress::External,
        parts: vec![PartPlan {
            session_id: id.to_owned(),
            scope: id.to_owned(),
            files: vec![file],
            began: peek.began,
            reset: None,
            ended: None,
            twin: Twin::First,
            forked_from: peek.forked_from,
        }],
        index: None,
        archived: None,
        parent: None,
    })
}
