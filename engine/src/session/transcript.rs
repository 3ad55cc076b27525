//! Sessions as JSON lines, for other programs to read and for an import to take back: one object a line, each an event of
//! a session's own stream, in the order of the log.
//!
//! | field | what |
//! |---|---|
//! | `annals` | the version of this form, 1 |
//! | `session` | the session's key |
//! | `type` | `turn` for what was said; `session.opened`, `session.patched`, `session.reset`, `session.resumed`, `session.archived` for what became of the session; `turn.blocked`; `x.<vendor>.<name>` for what an embedder, or an import, keeps beside |
//! | `id` | the event's identity, a UUID; where it is absent an import makes one from the line and its place |
//! | `time` | when it happened, RFC 3339 in UTC |
//!
//! Behind these stand the event's own fields, as [`event`](super::event) describes them: of a turn `sessionId` (the part),
//! `role` and `from`, where there are any `runId`, `messageId`, `calls`, `callId`, `toolName`, `isError`, `silent`,
//! `model`, `tokens`, `costMicros`, `provenance` and `source`, and last `content` as it was said. Turns with one
//! `messageId` are pieces of one message. The fields of an `x.` event stand under `data`, since their names are anybody's.
//! `lost` says in words why a content, or whole events, are not there.
//!
//! Runs, sends and spawns are no part of it: they name positions of their own log.

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::format::Payload;
use crate::id::{EventId, EventType};
use crate::store::Record;

use super::event::{Event, Json, Members, Role};
use super::key::{AgentId, SessionKey};

/// The version of the form.
pub const VERSION: u64 = 1;

/// The types of the domain that a transcript tells.
const TYPES: [&str; 7] = [
    "turn",
    "turn.blocked",
    "session.opened",
    "session.patched",
    "session.reset",
    "session.resumed",
    "session.archived",
];

/// What an embedder's types begin with.
const FOREIGN: &str = "x.";

/// A line that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The session.
    pub key: SessionKey,
    /// The type of the event.
    pub kind: EventType,
    /// Its identity, if the line says one.
    pub id: Option<EventId>,
    /// Its payload, with the time at which it happened.
    pub data: Payload,
    /// The parts that it names.
    pub parts: Vec<String>,
    /// Of a turn: whose it is, and the message that it is a piece of.
    pub turn: Option<(Role, Option<String>)>,
}

/// The line of a record with this payload, put together; `None` for a record that is no part of a transcript.
///
/// # Errors
/// Never for a payload that a store gave.
pub fn write(
    record: &Record,
    data: &Payload,
    happened_at: Timestamp,
    lost: Option<&str>,
) -> Result<Option<String>> {
    let kind = record.kind.as_str();
    if SessionKey::of_stream(&record.stream).is_none() || !is_told(kind) {
        return Ok(None);
    }
    let mut line = Members(Vec::new());
    line.0.push(("annals".to_owned(), Json::of(&VERSION)?));
    line.0.push(("session".to_owned(), Json::of(record.stream.as_str())?));
    line.0.push(("type".to_owned(), Json::of(kind)?));
    line.0.push(("id".to_owned(), Json::of(&record.id.to_string())?));
    line.0.push(("time".to_owned(), Json::of(&happened_at)?));
    if let Some(why) = lost {
        line.0.push(("lost".to_owned(), Json::of(why)?));
    }
    let fields = data.read::<Members>()?.0.into_iter().filter(|(name, _)| name != "at");
    if kind.starts_with(FOREIGN) {
        line.0.push(("data".to_owned(), Json::of(&Members(fields.collect()))?));
    } else {
        line.0.extend(fields);
    }
    Ok(Some(Payload::of(&line)?.as_str().to_owned()))
}

/// The line that says that events are missing here.
///
/// # Errors
/// Never.
pub fn write_gap(why: &str) -> Result<String> {
    let line = Members(vec![
        ("annals".to_owned(), Json::of(&VERSION)?),
        ("type".to_owned(), Json::of("annals.gap")?),
        ("lost".to_owned(), Json::of(why)?),
    ]);
    Ok(Payload::of(&line)?.as_str().to_owned())
}

/// Reads a line.
///
/// # Errors
/// `Unsupported` for another version of the form and for a type that is no part of it; `NotFound` for a line that says
/// that something is lost; `InvalidInput`, with the field, for a line that is not of the form.
pub fn read(text: &str) -> Result<Line> {
    let mut line = Payload::from_json(text)?.read::<Members>()?;
    let version = take(&mut line, "annals");
    if version.as_ref().and_then(Json::read::<u64>) != Some(VERSION) {
        let version = version.map_or("no", |_| "another");
        let message = format!("the line is of {version} version of the form; {VERSION} is known");
        return Err(Error::new(ErrorKind::Unsupported, message).field("annals"));
    }
    if let Some(why) = text_of(&mut line, "lost")? {
        return Err(Error::new(ErrorKind::NotFound, format!("lost before it was exported: {why}")));
    }
    let kind = EventType::new(required(&mut line, "type")?)?;
    if !is_told(kind.as_str()) {
        let message = format!("no transcript tells of {:?}", kind.as_str());
        return Err(Error::new(ErrorKind::Unsupported, message).field("type"));
    }
    let key = SessionKey::parse(&required(&mut line, "session")?, &AgentId::parse("main")?)?;
    let id = text_of(&mut line, "id")?.map(|id| uuid(&id)).transpose()?;
    let at = text_of(&mut line, "time")?.map(|time| instant(&time)).transpose()?;
    if kind.as_str().starts_with(FOREIGN) {
        let data = take(&mut line, "data").and_then(|data| data.read::<Members>());
        line = data.ok_or_else(|| Error::invalid("data is not an object").field("data"))?;
    }
    let data = payload(line, at)?;
    let event = Event::parse(&kind, &data)?;
    let turn = match &event {
        Event::Turn(turn) if turn.content.is_none() => {
            return Err(Error::invalid("a turn says something").field("content"));
        }
        Event::Turn(turn) => Some((turn.role, turn.message_id.clone())),
        _ => None,
    };
    Ok(Line { key, kind, id, parts: parts(&event), turn, data })
}

fn is_told(kind: &str) -> bool {
    TYPES.contains(&kind) || kind.starts_with(FOREIGN)
}

/// The parts that an event names, the one that it belongs to first.
fn parts(event: &Event) -> Vec<String> {
    match event {
        Event::Turn(e) => vec![e.session_id.clone()],
        Event::SessionOpened(e) => vec![e.session_id.clone()],
        Event::SessionPatched(e) => vec![e.session_id.clone()],
        Event::SessionReset(e) => vec![e.session_id.clone(), e.previous_session_id.clone()],
        Event::SessionResumed(e) => vec![e.session_id.clone(), e.previous_session_id.clone()],
        Event::SessionArchived(e) => vec![e.session_id.clone()],
        _ => Vec::new(),
    }
}

/// The fields as the log has them: a later version of the schema first, then the time, and what may be bulky last.
fn payload(mut fields: Members, at: Option<Timestamp>) -> Result<Payload> {
    let mut data: Vec<_> =
        take(&mut fields, "v").map(|v| ("v".to_owned(), v)).into_iter().collect();
    let own = take(&mut fields, "at");
    let at = at.map(|at| Json::of(&at)).transpose()?.or(own);
    data.extend(at.map(|at| ("at".to_owned(), at)));
    let content = take(&mut fields, "content");
    data.extend(fields.0);
    data.extend(content.map(|content| ("content".to_owned(), content)));
    Payload::of(&Members(data))
}

fn take(members: &mut Members, name: &str) -> Option<Json> {
    let at = members.0.iter().position(|(have, _)| have == name)?;
    Some(members.0.remove(at).1)
}

fn text_of(members: &mut Members, name: &str) -> Result<Option<String>> {
    let Some(value) = take(members, name) else { return Ok(None) };
    let text = value.read::<String>();
    text.map(Some).ok_or_else(|| Error::invalid(format!("{name} is not text")).field(name))
}

fn required(members: &mut Members, name: &str) -> Result<String> {
    text_of(members, name)?.ok_or_else(|| Error::invalid(format!("{name} is absent")).field(name))
}

fn uuid(text: &str) -> Result<EventId> {
    let id = uuid::Uuid::try_parse(text);
    id.map(EventId).map_err(|e| Error::invalid("id is not a UUID").field("id").caused_by(e))
}

fn instant(text: &str) -> Result<Timestamp> {
    let at = text.parse::<jiff::Timestamp>().map_err(|e| {
        Error::invalid(format!("{text:?} is not an instant")).field("time").caused_by(e)
    })?;
    Ok(Timestamp::from_micros(at.as_microsecond()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::event::happened_at;
    use crate::session::scene::Scene;

    fn lines(scene: &Scene) -> Vec<String> {
        let line = |r: Record| write(&r, &r.data, happened_at(r.time, r.data.as_str()), None);
        scene.records().into_iter().filter_map(|record| line(record).unwrap()).collect()
    }

    /// Goal: a session's own events are lines, and nothing else is. Method: a turn with all that matters, an event of
    /// an embedder whose fields have the names of the form, a run.
    #[test]
    fn lines_of_a_session() {
        let scene = Scene::new();
        scene.opened("cli:a", "p", "").turn(
            "cli:a",
            "p",
            "assistant",
            ",'calls':['c1'],'model':'m','tokens':{'in':3,'out':4}",
            "on it",
        );
        scene.event("cli:a", "x.acme.note", "{'id':7,'time':'noon'}").run("r", "cli:a", "p", "");
        let ids: Vec<String> = scene.records().iter().map(|r| r.id.to_string()).collect();
        assert_eq!(
            lines(&scene),
            [
                format!(
                    r#"{{"annals":1,"session":"cli:a","type":"session.opened","id":"{}","time":"2026-04-01T00:00:01.000000Z","sessionId":"p","kind":"other","agentId":"main","spawnDepth":0}}"#,
                    ids[0]
                ),
                format!(
                    r#"{{"annals":1,"session":"cli:a","type":"turn","id":"{}","time":"2026-04-01T00:00:02.000000Z","sessionId":"p","role":"assistant","from":"internal","calls":["c1"],"model":"m","tokens":{{"in":3,"out":4}},"content":"on it"}}"#,
                    ids[1]
                ),
                format!(
                    r#"{{"annals":1,"session":"cli:a","type":"x.acme.note","id":"{}","time":"2026-04-01T00:00:03.000000Z","data":{{"id":7,"time":"noon"}}}}"#,
                    ids[2]
                ),
            ]
        );
    }

    /// Goal: a line is read as the event that it was written from, with its time. Method: there and back.
    #[test]
    fn there_and_back() {
        let scene = Scene::new();
        scene.opened("cli:a", "p", "").turn("cli:a", "p", "user", ",'messageId':'m'", "hello");
        scene.event("cli:a", "x.acme.note", "{'id':7}");
        for (text, record) in lines(&scene).iter().zip(scene.records()) {
            let line = read(text).unwrap();
            assert_eq!((line.key.stream(), line.id), (&record.stream, Some(record.id)));
            let at = format!("{{\"at\":\"{}\",", record.time);
            assert_eq!(line.data.as_str(), record.data.as_str().replacen('{', &at, 1));
        }
    }

    /// Goal: what is not of the form is refused with the field. Method: one bad line each; one by hand that says as
    /// little as there can be.
    #[test]
    fn refused() {
        let by_hand = r#"{"content":"hi","annals":1,"session":"CLI:a","type":"turn","sessionId":"p","role":"user","from":"external"}"#;
        let line = read(by_hand).unwrap();
        assert_eq!((line.key.as_str(), line.id, line.parts), ("cli:a", None, vec!["p".to_owned()]));
        assert!(line.data.as_str().ends_with(r#","content":"hi"}"#), "{}", line.data);
        for (from, to, expect) in [
            ("1", "2", "another version"),
            ("\"annals\":1,", "", "no version"),
            ("\"turn\"", "\"run.requested\"", "no transcript tells"),
            ("CLI:a", "run:a", "cannot be called"),
            ("\"content\":\"hi\",", "", "a turn says something"),
            ("\"annals\":1,", "\"annals\":1,\"lost\":\"gone\",", "lost before"),
            ("\"annals\":1,", "\"annals\":1,\"id\":\"x\",", "not a UUID"),
            ("\"annals\":1,", "\"annals\":1,\"time\":\"noon\",", "not an instant"),
            ("\"user\"", "\"nobody\"", ""),
        ] {
            let error = read(&by_hand.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(expect), "{to}: {error}");
        }
        let gap = read(&write_gap("seqs 3 to 4").unwrap()).unwrap_err();
        assert_eq!(*gap.kind(), ErrorKind::NotFound);
    }
}
