//! Changing a session that is there: another part, an earlier part again, fields of its row, out of the lists. Each is
//! decided under the append lock on what other processes appended too, and what changes nothing appends nothing.

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::id::{EventId, Seq, StreamName};
use crate::projection::{Deciding, Folded};
use crate::store::{Append, Durability, EventStore, NewEvent};

use super::event::{
    ArchiveReason, ChatType, Event, Json, Links, Members, ResetReason, SessionArchived,
    SessionPatched, SessionReset, SessionResumed,
};
use super::index::{Found, Sessions};
use super::policy::SendAction;

/// A change.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Another part begins.
    Reset,
    /// An earlier part is current again.
    Resume {
        /// Its id.
        part: String,
    },
    /// Fields are set; `null` takes one back.
    Patch(Vec<(String, Json)>),
    /// It leaves the lists.
    Archive,
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The session.
    pub key: StreamName,
    /// Its current part from now on.
    pub session_id: String,
    /// Where the event stands; `None` when nothing had to change.
    pub seq: Option<Seq>,
}

/// The fields that a patch may set.
pub const PATCHABLE: [&str; 9] = [
    "label",
    "displayName",
    "sendPolicy",
    "model",
    "contextTokens",
    "thinkingLevel",
    "verboseLevel",
    "chatType",
    "deliveryContext",
];

/// The longest text of a field, in bytes.
const TEXT_MAX: usize = 1_024;

/// What such a text is.
const TEXT: &str = "a text of at most 1,024 bytes without control characters";

/// Changes a session. When it returns, the event is on stable storage. `now` is for the ids of what is new.
///
/// # Errors
/// `NotFound` for a session or part that is not there; `Busy` for a reset or an archive while a run is at work, which
/// names it;
/// `InvalidInput` for a field that cannot be set so; what the store says.
pub fn change(
    store: &dyn EventStore,
    sessions: &Folded<Sessions>,
    found: &Found,
    change: &Change,
    now: Timestamp,
) -> Result<Changed> {
    let id = EventId::new(now);
    let part = EventId::new(now).to_string();
    let mut current = String::new();
    let decide = |sessions: &Sessions, now: Timestamp| {
        let decision = Decision { sessions, key: &found.key, part: &part, now };
        let decided = decision.event(change)?;
        let Some((event, current_part)) = decided else {
            current = decision.current()?.to_owned();
            return Ok(Append::new(Vec::new()));
        };
        current = current_part;
        let new: NewEvent =
            event.to_new(found.key.clone(), id, Links { cause: None, flow: Some(id) })?;
        Ok(Append::new(vec![new]))
    };
    let mut deciding = Deciding::on(sessions, decide);
    let appended = store.append_deciding(&mut deciding, Durability::Synced);
    drop(deciding);
    let seq = appended?.positions.last().map(|position| position.seq);
    Ok(Changed { key: found.key.clone(), session_id: current, seq })
}

/// The pure part: a state and a change give an event or a refusal.
struct Decision<'a> {
    sessions: &'a Sessions,
    key: &'a StreamName,
    /// The id of a part that begins.
    part: &'a str,
    now: Timestamp,
}

impl Decision<'_> {
    fn current(&self) -> Result<&str> {
        let row = self.sessions.row(self.key).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no session {:?}", self.key.as_str()))
                .field("sessionKey")
        })?;
        Ok(&row.session_id)
    }

    /// The event and the part that is current behind it; `None` when nothing changes.
    fn event(&self, change: &Change) -> Result<Option<(Event, String)>> {
        let current = self.current()?.to_owned();
        match change {
            Change::Reset => self.reset(&current).map(Some),
            Change::Resume { part } => self.resume(part, current),
            Change::Patch(fields) => {
                let set = self.differing(fields)?;
                let event =
                    SessionPatched { at: None, session_id: current.clone(), set: Members(set) };
                let changes = !event.set.0.is_empty();
                Ok(changes.then_some((Event::SessionPatched(event), current)))
            }
            Change::Archive => {
                at_rest(self.key, self.sessions.open_runs(self.key).next().map(|(run, _)| run))?;
                let event = SessionArchived {
                    at: None,
                    session_id: current.clone(),
                    reason: ArchiveReason::Manual,
                    effective_at: self.now,
                    rule: None,
                };
                let archived = self.sessions.is_archived(self.key);
                Ok((!archived).then_some((Event::SessionArchived(event), current)))
            }
        }
    }

    fn reset(&self, current: &str) -> Result<(Event, String)> {
        let run = self.sessions.open_runs(self.key).next().map(|(run, _)| run);
        let event = manual_reset(self.key, current, self.part, run, self.now)?;
        Ok((event, self.part.to_owned()))
    }

    fn resume(&self, part: &str, current: String) -> Result<Option<(Event, String)>> {
        if current == part {
            return Ok(None);
        }
        if !self.sessions.parts(self.key).contains(&part) {
            let message = format!("{:?} has no part {part:?}", self.key.as_str());
            return Err(Error::new(ErrorKind::NotFound, message).field("part"));
        }
        let event =
            SessionResumed { at: None, session_id: part.to_owned(), previous_session_id: current };
        Ok(Some((Event::SessionResumed(event), part.to_owned())))
    }

    /// The fields that do not stand as they are to be, checked.
    fn differing(&self, fields: &[(String, Json)]) -> Result<Vec<(String, Json)>> {
        let row = self.sessions.row(self.key).map(serde_json::to_value);
        let row = row.and_then(std::result::Result::ok).unwrap_or_default();
        let mut set = Vec::new();
        for (field, value) in fields {
            let value = checked(field, value)?;
            let new: serde_json::Value = value.read().unwrap_or_default();
            let known = match field.as_str() {
                // The row shows the model that answered last where none is set.
                "model" => self.sessions.own_model(self.key).into(),
                _ => row.get(field).cloned().unwrap_or_default(),
            };
            if new != known {
                set.push((field.clone(), value));
            }
        }
        Ok(set)
    }
}

/// The event with which somebody begins another part.
///
/// # Errors
/// `Busy` while a run is at work.
pub(super) fn manual_reset(
    key: &StreamName,
    current: &str,
    part: &str,
    run: Option<&str>,
    now: Timestamp,
) -> Result<Event> {
    at_rest(key, run)?;
    Ok(Event::SessionReset(SessionReset {
        at: None,
        session_id: part.to_owned(),
        previous_session_id: current.to_owned(),
        reason: ResetReason::Manual,
        effective_at: now,
        rule: None,
        deferred_by: None,
    }))
}

/// Refuses while a run is at work.
fn at_rest(key: &StreamName, run: Option<&str>) -> Result<()> {
    let Some(run) = run else { return Ok(()) };
    let message = format!("the run {run} is at work in {:?}", key.as_str());
    Err(Error::new(ErrorKind::Busy, message).hint("let it end, or kill it, first"))
}

/// A field's value in the form in which it is stored.
fn checked(field: &str, value: &Json) -> Result<Json> {
    let wrong = |legal: &str| {
        Err(Error::invalid(format!("{field} cannot be {}", value.as_str()))
            .field(field)
            .hint(format!("it is {legal}, or null to take it back")))
    };
    if !PATCHABLE.contains(&field) {
        return Err(Error::invalid(format!("{field:?} cannot be patched"))
            .field(field)
            .hint(format!("fields are {}", PATCHABLE.join(", "))));
    }
    if value.is_null() {
        return Ok(Json::null());
    }
    let text = value.read::<String>();
    let folded = text.as_deref().map(|text| text.trim().to_lowercase());
    match field {
        "sendPolicy" => match folded.as_deref().and_then(SendAction::from_word) {
            Some(action) => Json::of(&action),
            None => wrong("allow or deny"),
        },
        "chatType" => match folded.as_deref().and_then(ChatType::from_word) {
            Some(sort) => Json::of(&sort),
            None => wrong("direct, group or channel"),
        },
        "contextTokens" => match value.read::<u64>() {
            Some(tokens) => Json::of(&tokens),
            None => wrong("a whole number"),
        },
        "deliveryContext" => match value.read::<super::event::Origin>() {
            Some(origin) => Json::of(&origin),
            None => wrong("{channel, to, accountId, threadId}"),
        },
        _ => match text.as_deref().map(named) {
            Some(Ok(text)) => Json::of(text),
            Some(Err(why)) => Err(Error::invalid(format!("{field} {why}"))
                .field(field)
                .hint(format!("it is {TEXT}, or null to take it back"))),
            None => wrong(TEXT),
        },
    }
}

/// What names a session for people, a label above all, without the white space around it.
///
/// # Errors
/// What is wrong with a text that names nothing: it is empty, is no single line, or is too long.
pub fn named(text: &str) -> std::result::Result<&str, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("says nothing".to_owned());
    }
    if let Some(control) = text.chars().find(|c| c.is_control()) {
        return Err(format!("holds the control character U+{:04X}", u32::from(control)));
    }
    if text.len() > TEXT_MAX {
        return Err(format!("has {} bytes, more than {TEXT_MAX}", text.len()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::session::index::Names;
    use crate::session::key::AgentId;
    use crate::session::scene::Scene;
    use crate::store::View;

    fn scene() -> Scene {
        let scene = Scene::new();
        scene.opened("cli:a", "p", "").turn("cli:a", "p", "user", "", "hello");
        scene
    }

    fn run(scene: &Scene, what: &Change) -> Result<Changed> {
        let sessions = Folded::<Sessions>::of(&scene.store, View::Durable).unwrap();
        let main = AgentId::parse("main").unwrap();
        let found = sessions.state().find("cli:a", &main, Names::Whole).unwrap();
        change(&scene.store, &sessions, &found, what, scene.clock.now())
    }

    fn patch(scene: &Scene, field: &str, value: &str) -> Result<Changed> {
        run(scene, &Change::Patch(vec![(field.to_owned(), Json::from_text(value).unwrap())]))
    }

    fn last(scene: &Scene) -> String {
        let record = scene.records().pop().unwrap();
        format!("{} {}", record.kind, record.data)
    }

    /// Goal: a patch holds the fields that change and nothing else, checked and folded; one that changes nothing appends
    /// nothing. Method: every sort of field, good and bad.
    #[test]
    fn patches() {
        let scene = scene();
        patch(&scene, "sendPolicy", "\" DENY \"").unwrap();
        assert_eq!(
            last(&scene),
            r#"session.patched {"sessionId":"p","set":{"sendPolicy":"deny"}}"#
        );
        assert_eq!(patch(&scene, "sendPolicy", "\"deny\"").unwrap().seq, None);
        patch(&scene, "thinkingLevel", "\"off\"").unwrap();
        assert_eq!(
            last(&scene),
            r#"session.patched {"sessionId":"p","set":{"thinkingLevel":"off"}}"#
        );
        patch(&scene, "sendPolicy", "null").unwrap();
        assert_eq!(last(&scene), r#"session.patched {"sessionId":"p","set":{"sendPolicy":null}}"#);
        assert_eq!(patch(&scene, "sendPolicy", "null").unwrap().seq, None);
        for (field, value, hint) in [
            ("sendPolicy", "\"ask\"", "allow or deny"),
            ("chatType", "\"crowd\"", "direct, group"),
            ("contextTokens", "\"many\"", "whole number"),
            ("label", "\"  \"", "1,024"),
            ("label", "false", "1,024"),
            ("label", "\"a\\nb\"", "control"),
            ("displayName", "\"\\u001b[31mred\"", "control"),
            ("turns", "3", "fields are"),
        ] {
            let error = patch(&scene, field, value).unwrap_err();
            assert!(error.hint_text().unwrap().contains(hint), "{field}: {error}");
        }
    }

    /// Goal: a model that is set stays set, whichever model answers, also when it is the one that answered last. Method:
    /// answers before and after the patch.
    #[test]
    fn a_model_that_is_set_stays() {
        let scene = scene();
        let model = || {
            let key = StreamName::new("cli:a").unwrap();
            scene.sessions().row(&key).unwrap().model.clone()
        };
        scene.turn("cli:a", "p", "assistant", ",'model':'opus'", "hi");
        assert_eq!(model().as_deref(), Some("opus"));
        assert!(patch(&scene, "model", "\"opus\"").unwrap().seq.is_some());
        scene.turn("cli:a", "p", "assistant", ",'model':'haiku'", "hi");
        assert_eq!(model().as_deref(), Some("opus"));
        assert_eq!(patch(&scene, "model", "\"opus\"").unwrap().seq, None);
        patch(&scene, "model", "null").unwrap();
        assert_eq!(model().as_deref(), Some("haiku"));
    }

    /// Goal: a reset and a resume change which part is current and lose none. Method: there and back; a part that is
    /// none; a run at work.
    #[test]
    fn parts() {
        let scene = scene();
        let reset = run(&scene, &Change::Reset).unwrap();
        assert!(reset.seq.is_some() && reset.session_id != "p");
        let back = run(&scene, &Change::Resume { part: "p".into() }).unwrap();
        assert_eq!(back.session_id, "p");
        assert_eq!(run(&scene, &Change::Resume { part: "p".into() }).unwrap().seq, None);
        let none = run(&scene, &Change::Resume { part: "x".into() }).unwrap_err();
        assert_eq!(*none.kind(), ErrorKind::NotFound);
        assert_eq!(scene.sessions().row(&StreamName::new("cli:a").unwrap()).unwrap().parts, 2);
        scene.run("r", "cli:a", "p", "");
        let busy = run(&scene, &Change::Reset).unwrap_err();
        assert!(*busy.kind() == ErrorKind::Busy && busy.to_string().contains("run r"), "{busy}");
        assert_eq!(*run(&scene, &Change::Archive).unwrap_err().kind(), ErrorKind::Busy);
    }

    /// Goal: whoever still names a session by a part that has ended changes the session as it is now. Method: a reset, then
    /// a patch by the old id.
    #[test]
    fn by_the_id_of_an_old_part() {
        let scene = scene();
        let now = run(&scene, &Change::Reset).unwrap().session_id;
        let sessions = Folded::<Sessions>::of(&scene.store, View::Durable).unwrap();
        let main = AgentId::parse("main").unwrap();
        let old = sessions.state().find("p", &main, Names::Whole).unwrap();
        let set = Change::Patch(vec![("label".to_owned(), Json::of("desk").unwrap())]);
        let changed = change(&scene.store, &sessions, &old, &set, scene.clock.now()).unwrap();
        assert_eq!((changed.key.as_str(), &changed.session_id), ("cli:a", &now));
        let told = format!(r#"session.patched {{"sessionId":"{now}","set":{{"label":"desk"}}}}"#);
        assert_eq!(last(&scene), told);
    }

    /// Goal: two who set different fields at the same time both have them set. Method: two threads on views of before,
    /// two hundred rounds.
    #[test]
    fn fields_are_set_side_by_side() {
        let scene = scene();
        for round in 0..200 {
            let policy = if round % 2 == 0 { "\"deny\"" } else { "\"allow\"" };
            let label = format!("\"{round}\"");
            std::thread::scope(|scope| {
                scope.spawn(|| patch(&scene, "sendPolicy", policy).unwrap());
                scope.spawn(|| patch(&scene, "label", &label).unwrap());
            });
            let sessions = scene.sessions();
            let row = sessions.row(&StreamName::new("cli:a").unwrap()).unwrap();
            let set = [&row.send_policy, &row.label]
                .map(|text| format!("{:?}", text.as_deref().unwrap()));
            assert_eq!(set, [policy.to_owned(), label]);
        }
    }

    /// Goal: an archived session is archived once, and comes back with its next turn. Method: twice, then a turn.
    #[test]
    fn archived() {
        let scene = scene();
        assert!(run(&scene, &Change::Archive).unwrap().seq.is_some());
        assert_eq!(run(&scene, &Change::Archive).unwrap().seq, None);
        let key = StreamName::new("cli:a").unwrap();
        assert!(scene.sessions().is_archived(&key));
        scene.turn("cli:a", "p", "user", "", "again");
        assert!(!scene.sessions().is_archived(&key));
    }
}
