//! Lineage: who spawned whom, with the parts of each session and whether it has left the lists. It is read off the
//! sessions view, which folds all of it already; nothing here is folded a second time.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::StreamName;

use super::index::{Archived, Lens, ListQuery, Sessions};

/// The families of all sessions of a view.
#[derive(Clone, Debug)]
pub struct Lineage<'a> {
    sessions: &'a Sessions,
    children: BTreeMap<&'a str, Vec<&'a StreamName>>,
}

impl<'a> Lineage<'a> {
    /// The lineage of a view.
    #[must_use]
    pub fn of(sessions: &'a Sessions) -> Self {
        let mut children: BTreeMap<&str, Vec<&StreamName>> = BTreeMap::new();
        for row in sessions.rows() {
            if let Some(parent) = &row.parent_key {
                children.entry(parent).or_default().push(&row.key);
            }
        }
        let born = |key: &&StreamName| sessions.row(key).map(|row| row.created_at);
        for family in children.values_mut() {
            family.sort_by_cached_key(|key| (born(key), (*key).clone()));
        }
        Self { sessions, children }
    }

    /// The session that spawned one; it need not be known.
    #[must_use]
    pub fn parent(&self, key: &str) -> Option<&'a str> {
        let key = StreamName::new(key).ok()?;
        self.sessions.row(&key)?.parent_key.as_deref()
    }

    /// The sessions above one, the nearest first. A line that runs into itself ends there.
    #[must_use]
    pub fn parents(&self, key: &str) -> Vec<&'a str> {
        let mut seen = BTreeSet::from([key]);
        let mut above = Vec::new();
        let mut at = self.parent(key);
        while let Some(parent) = at.filter(|parent| seen.insert(parent)) {
            above.push(parent);
            at = self.parent(parent);
        }
        above
    }

    /// The sessions that one spawned, the oldest first, archived ones too.
    #[must_use]
    pub fn children(&self, key: &str) -> &[&'a StreamName] {
        self.children.get(key).map_or(&[], Vec::as_slice)
    }

    /// The ids of the parts of a session, in the order in which they came.
    #[must_use]
    pub fn parts(&self, key: &StreamName) -> Vec<&'a str> {
        self.sessions.parts(key)
    }

    /// The children of a session that have left the lists by a moment.
    #[must_use]
    pub fn archived(&self, key: &str, lens: &Lens<'_>) -> Vec<&'a StreamName> {
        let only = ListQuery { archived: Archived::Only, ..ListQuery::default() };
        let list = self.sessions.list(&only, lens);
        let gone: BTreeSet<&StreamName> = list.rows.iter().map(|row| &row.key).collect();
        self.children(key).iter().copied().filter(|child| gone.contains(child)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::index::TimeRules;
    use crate::session::scene::{START, Scene};

    const CHILD: &str = "agent:main:subagent:1";
    const GRANDCHILD: &str = "agent:main:subagent:2";

    /// Goal: parents, children, parts and archived ones are found by key, whichever event told of them. Method: a child
    /// that its opening names, one that only the spawn names, a reset, an archived one, and a line that runs in a ring.
    #[test]
    fn families() {
        let scene = Scene::new();
        let spawn = format!("{{'runId':'r2','targetKey':'{GRANDCHILD}','hop':0}}");
        scene
            .opened("cli:1", "s1", "")
            .opened(CHILD, "c1", ",'parentKey':'cli:1'")
            .opened(GRANDCHILD, "g1", "")
            .event(CHILD, "spawn.accepted", &spawn)
            .event(
                CHILD,
                "session.reset",
                "{'sessionId':'c2','previousSessionId':'c1','reason':'manual','effectiveAt':'2026-04-01T00:00:05.000000Z'}",
            )
            .event(
                GRANDCHILD,
                "session.archived",
                "{'sessionId':'g1','reason':'manual','effectiveAt':'2026-04-01T00:00:05.000000Z'}",
            )
            .opened("cli:a", "s1", ",'parentKey':'cli:b'")
            .opened("cli:b", "s1", ",'parentKey':'cli:a'");
        let sessions = scene.sessions();
        let lineage = Lineage::of(&sessions);
        assert_eq!(lineage.parents(GRANDCHILD), [CHILD, "cli:1"]);
        assert_eq!(lineage.parents("cli:a"), ["cli:b"]);
        assert!(lineage.parents("cli:1").is_empty() && lineage.parents("cli:nobody").is_empty());
        assert_eq!(lineage.children("cli:1").len(), 1);
        let child = lineage.children("cli:1")[0];
        assert_eq!((child.as_str(), lineage.parts(child)), (CHILD, vec!["c1", "c2"]));
        let rules = TimeRules::none();
        let now = crate::clock::Timestamp::from_millis(START + 60_000);
        let lens = Lens { rules: &rules, now };
        assert!(lineage.archived("cli:1", &lens).is_empty());
        assert_eq!(lineage.archived(CHILD, &lens), lineage.children(CHILD));
    }
}
