//! The workload as transcripts of another program: a file a session, a line a message.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use annals_engine::clock::Timestamp;
use annals_engine::session::event::{Event, Role};

use crate::workload::{Events, Shape};

/// How many messages a transcript has.
const MESSAGES: usize = 400;

/// Writes transcripts of at least so many bytes; returns how many bytes they have.
pub(super) fn write(folder: &Path, bytes: u64) -> u64 {
    fs::create_dir_all(folder).unwrap();
    let turns = Events::new(Shape::default()).filter_map(|event| {
        match Event::parse(&event.kind, &event.data) {
            Ok(Event::Turn(turn)) => Some((event.id, turn)),
            _ => None,
        }
    });
    let (mut written, mut turns) = (0, turns.peekable());
    while written < bytes {
        let Some((first, _)) = turns.peek() else { break };
        let path = folder.join(format!("{first}.jsonl"));
        let began = time(first.embedded_time().unwrap_or_default());
        let mut file = BufWriter::new(File::create(&path).unwrap());
        writeln!(
            file,
            r#"{{"type":"session","version":3,"id":"{first}","timestamp":"{began}","cwd":"/srv/agent"}}"#
        )
        .unwrap();
        let mut parent = "null".to_owned();
        for (id, turn) in turns.by_ref().take(MESSAGES) {
            let at = id.embedded_time().unwrap_or_default();
            let (millis, time) = (at.as_millis(), time(at));
            let content = turn.content.as_ref().map_or("null", |content| content.as_str());
            let more = match turn.role {
                Role::ToolResult => r#""toolCallId":"call_1","toolName":"exec","isError":false,"#,
                Role::Assistant => {
                    r#""provider":"acme","model":"acme-small","usage":{"input":1041,"output":22,"cacheRead":0,"cacheWrite":0,"totalTokens":1063},"stopReason":"stop","#
                }
                _ => "",
            };
            let role = turn.role.as_str();
            writeln!(
                file,
                r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"{time}","message":{{"role":"{role}",{more}"content":{content},"timestamp":{millis}}}}}"#
            )
            .unwrap();
            parent = format!("\"{id}\"");
        }
        file.into_inner().unwrap();
        written += fs::metadata(&path).unwrap().len();
    }
    written
}

/// A time to the millisecond.
fn time(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{}Z", text.get(..23).unwrap_or_default())
}
