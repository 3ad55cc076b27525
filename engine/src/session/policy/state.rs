//! The policy in force: the last value of every setting that an event has told.

use std::collections::BTreeMap;

use crate::format::Fields;
use crate::projection::Projection;
use crate::session::event::{Event, Json, PolicyChanged};
use crate::store::Damage;

/// The stream that policy stands in.
pub const POLICY_STREAM: &str = "policy";

/// The type of the events that tell it.
const CHANGED: &str = "policy.changed";

/// The settings that are policy: who may send, see and command. Every change of one of them in a configuration is told
/// by an event before anything is decided under it.
pub const POLICY_SETTINGS: [&str; 6] = [
    "session.sendPolicy",
    "tools.sessions.visibility",
    "tools.agentToAgent.enabled",
    "tools.agentToAgent.allow",
    "agents.defaults.sandbox.sessionToolsVisibility",
    "owners",
];

/// The policy as of an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyState(BTreeMap<String, Json>);

/// The policy that a configuration file says.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyFile {
    /// Its settings; one that is not said is not here.
    pub settings: BTreeMap<String, Json>,
    /// The file; `None` when there is none, which says that nothing is set.
    pub path: Option<String>,
    /// SHA-256 of its bytes, in lower-case hexadecimal.
    pub sha256: Option<String>,
}

/// What was lost leaves the settings as they were told last.
impl Projection for PolicyState {
    fn apply(&mut self, event: &Fields<'_>) {
        if event.stream != POLICY_STREAM || event.kind != CHANGED {
            return;
        }
        let Some(Event::PolicyChanged(change)) = Event::told_by(event) else { return };
        if change.new.is_null() {
            self.0.remove(&change.path);
        } else {
            self.0.insert(change.path, change.new);
        }
    }

    fn gap(&mut self, _: &Damage) {}
}

impl PolicyFile {
    /// Who may command, as `<channel>:<sender>`.
    #[must_use]
    pub fn owners(&self) -> Vec<String> {
        self.settings.get("owners").and_then(Json::read).unwrap_or_default()
    }
}

impl PolicyState {
    /// All settings with their values, by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(path, value)| (path.as_str(), value))
    }

    /// The value of a setting; `None` when it is not set.
    #[must_use]
    pub fn get(&self, setting: &str) -> Option<&Json> {
        self.0.get(setting)
    }

    /// What changes when a file's policy comes into force, in the order of [`POLICY_SETTINGS`].
    #[must_use]
    pub fn changes(&self, file: &PolicyFile) -> Vec<PolicyChanged> {
        let differs = |setting: &&&str| self.0.get(**setting) != file.settings.get(**setting);
        let value = |value: Option<&Json>| value.cloned().unwrap_or_else(Json::null);
        POLICY_SETTINGS
            .iter()
            .filter(differs)
            .map(|setting| PolicyChanged {
                at: None,
                path: (*setting).to_owned(),
                old: value(self.0.get(*setting)),
                new: value(file.settings.get(*setting)),
                file: file.path.clone(),
                sha256: file.sha256.clone(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Seq;
    use crate::projection::{Folded, Until};
    use crate::session::scene::Scene;
    use crate::store::Read;

    /// Goal: the policy as of any position is what was told last before it. Method: a setting that is set, changed and
    /// taken back, one beside it, and an event of that type in another stream; the settings after each position.
    #[test]
    fn as_of_any_position() {
        let scene = Scene::new();
        let change = |stream: &str, path: &str, new: &str| {
            let data = format!("{{'path':'{path}','old':null,'new':{new}}}");
            scene.event(stream, "policy.changed", &data);
        };
        change(POLICY_STREAM, "owners", "['cli:1']");
        change("cli:1", "owners", "['cli:2']");
        change(POLICY_STREAM, "tools.sessions.visibility", "'all'");
        change(POLICY_STREAM, "owners", "[]");
        change(POLICY_STREAM, "owners", "null");
        let as_of = |seq: u64| {
            let until = Some(Until::Seq(Seq(seq)));
            let state = PolicyState::default();
            let folded = Folded::until(state, &scene.store, Read::default(), until).unwrap();
            folded.state().iter().count()
        };
        assert_eq!([0, 1, 2, 3, 4, 5].map(as_of), [0, 1, 1, 2, 2, 1]);
        let folded = Folded::until(
            PolicyState::default(),
            &scene.store,
            Read::default(),
            Some(Until::Seq(Seq(2))),
        );
        let owners = folded.unwrap().state().get("owners").cloned();
        assert_eq!(owners, Some(Json::of(&["cli:1"]).unwrap()));
    }
}
