//! From stories to a tree.

use std::collections::BTreeSet;

use crate::id::StreamName;
use crate::session::index::{Lens, Sessions};
use crate::session::lineage::Lineage;
use crate::session::outbox::Cargo;

use super::story::{Deed, Stories};
use super::{Sent, Spawn, Step, Tree, What};

/// So many sessions stand below each other at the most; what lies deeper is left out.
pub const DEPTH_MAX: usize = 64;

/// The tree of a session, as of a moment.
#[must_use]
pub fn tree(key: &StreamName, sessions: &Sessions, stories: &Stories, lens: &Lens<'_>) -> Tree {
    let lineage = Lineage::of(sessions);
    let mut builder = Builder { sessions, stories, lens, lineage, seen: BTreeSet::new() };
    builder.session(key.as_str(), None, DEPTH_MAX)
}

struct Builder<'a> {
    sessions: &'a Sessions,
    stories: &'a Stories,
    lens: &'a Lens<'a>,
    lineage: Lineage<'a>,
    /// Sessions that stand in the tree.
    seen: BTreeSet<String>,
}

impl Builder<'_> {
    /// A session; the run that a spawn above shows is not shown again.
    fn session(&mut self, key: &str, spawned_by: Option<&str>, depth: usize) -> Tree {
        let name = StreamName::new(key).ok();
        let row = name.and_then(|name| self.sessions.row_at(&name, self.lens));
        let mut tree = Tree {
            key: key.to_owned(),
            kind: row.as_ref().map(|row| row.kind),
            status: row.as_ref().map(|row| row.status),
            label: row.as_ref().and_then(|row| row.label.clone()),
            agent_id: row.map(|row| row.agent_id).filter(|agent| !agent.is_empty()),
            parents: self.lineage.parents(key).into_iter().map(str::to_owned).collect(),
            left_out: depth == 0 || !self.seen.insert(key.to_owned()),
            steps: Vec::new(),
        };
        if !tree.left_out {
            tree.steps = self.steps(key, spawned_by, depth - 1);
        }
        tree
    }

    fn steps(&mut self, key: &str, spawned_by: Option<&str>, depth: usize) -> Vec<Step> {
        let stories = self.stories;
        let Some(deeds) = stories.deeds.get(key) else { return Vec::new() };
        let spawned = Spawned::of(deeds.iter().map(|(_, deed)| deed));
        let mut steps = Vec::new();
        for (moment, deed) in deeds {
            let what = match deed {
                Deed::Told(what) => Some(what.clone()),
                Deed::Run(id) if spawned_by == Some(id) => None,
                Deed::Run(id) => {
                    stories.runs.get(id).map(|run| What::Run { run: Box::new(run.clone()) })
                }
                Deed::Spawn { run_id: None, child: Some(child), .. }
                    if spawned.children.contains(child.as_str()) =>
                {
                    None
                }
                Deed::Spawn { run_id, child, label } => {
                    Some(self.spawn(key, run_id.as_deref(), child.as_deref(), label.clone(), depth))
                }
                Deed::Send(send) => {
                    let run = stories.runs.get(&send.run_id).cloned();
                    Some(What::Send(Box::new(Sent { run, ..(**send).clone() })))
                }
                Deed::Outgoing(Cargo::Announce, Some(id), _)
                    if spawned.runs.contains(id.as_str()) =>
                {
                    None
                }
                Deed::Outgoing(cargo, run_id, turn_seq) => {
                    let outgoing = stories.outbox.get(*cargo, key, run_id.as_deref(), *turn_seq);
                    outgoing.map(|it| What::Outgoing { outgoing: Box::new(it.clone()) })
                }
            };
            steps.extend(what.map(|what| Step { moment: *moment, what }));
        }
        steps
    }

    fn spawn(
        &mut self,
        key: &str,
        run_id: Option<&str>,
        child: Option<&str>,
        label: Option<String>,
        depth: usize,
    ) -> What {
        let announce = |id| self.stories.outbox.get(Cargo::Announce, key, Some(id), None);
        What::Spawn(Box::new(Spawn {
            run_id: run_id.map(str::to_owned),
            label,
            run: run_id.and_then(|id| self.stories.runs.get(id)).cloned(),
            announce: run_id.and_then(announce).cloned(),
            child: child.map(|child| self.session(child, run_id, depth)),
        }))
    }
}

/// What the spawns of a session show.
struct Spawned<'a> {
    children: BTreeSet<&'a str>,
    runs: BTreeSet<&'a str>,
}

impl<'a> Spawned<'a> {
    fn of(deeds: impl Iterator<Item = &'a Deed>) -> Self {
        let mut spawned = Self { children: BTreeSet::new(), runs: BTreeSet::new() };
        for deed in deeds {
            if let Deed::Spawn { run_id: Some(run_id), child, .. } = deed {
                spawned.runs.insert(run_id);
                spawned.children.extend(child.as_deref());
            }
        }
        spawned
    }
}
