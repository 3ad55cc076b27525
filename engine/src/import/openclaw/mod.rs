//! OpenClaw state folders of the time when sessions were files: `agents/<id>/sessions/` with an index and one JSONL
//! transcript for each session, `subagents/runs.json`, `delivery-queue/*.json`.

mod folder;
mod index;
mod plan;
mod queue;
mod registry;

pub(crate) use folder::{
    INDEX, State, StateFolder, is_sessions_folder, is_state_folder, not_a_session, state_folder,
};
pub(crate) use plan::{Planned, parents_first, plan};
pub(crate) use queue::Waiting;
