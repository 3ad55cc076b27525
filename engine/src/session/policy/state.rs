//! The policy in force: the last value of every setting that an event has told.

use std::collections::BTreeMap;

use crate::session::event::{Event, Json, PolicyChanged};
use crate::store::Record;

/// The stream that policy stands in.
pub const POLICY_STREAM: &str = "policy";

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
    /// The file.
    pub path: String,
    /// SHA-256 of its bytes, in lower-case hexadecimal.
    pub sha256: String,
}

impl PolicyState {
    /// Takes an event, if it is one that tells policy.
    pub fn apply(&mut self, record: &Record) {
        if record.stream.as_str() != POLICY_STREAM {
            return;
        }
        let Ok(Event::PolicyChanged(change)) = Event::of(record) else { return };
        if change.new.is_null() {
            self.0.remove(&change.path);
        } else {
            self.0.insert(change.path, change.new);
        }
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
                file: Some(file.path.clone()),
                sha256: Some(file.sha256.clone()),
            })
            .collect()
    }
}
