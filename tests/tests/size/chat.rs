//! Sessions of a chosen size: turns with a text that is found again by its mark.

use std::path::Path;

use annals_engine::Engine;
use annals_engine::clock::{Clock, SystemClock};
use annals_engine::engine::Options;
use annals_engine::id::{EventId, StreamName};
use annals_engine::session::event::{
    Event, Ingress, Json, Links, Role, SessionKind, SessionOpened, Tokens, Turn,
};
use annals_engine::store::{Append, Durability, NewEvent};

/// What every text begins with.
pub(crate) const MARK: &str = "said in confidence";

/// So many turns are appended at a time.
const BATCH: usize = 50;

/// A text of so many bytes.
pub(crate) fn text(bytes: usize) -> String {
    let mut text = MARK.to_owned();
    text.extend(" and so on".chars().cycle().take(bytes.saturating_sub(MARK.len())));
    text
}

/// The key of the n-th chat.
pub(crate) fn key(n: usize) -> String {
    format!("telegram:{n}")
}

/// The opening of the n-th chat.
pub(crate) fn opening(n: usize) -> NewEvent {
    event(n, &Event::SessionOpened(SessionOpened::new(part(n), SessionKind::Main, "main")))
}

/// A turn of the n-th chat, ten tokens in and one out.
pub(crate) fn turn(n: usize, text: &str) -> NewEvent {
    let tokens = Tokens { r#in: 10, out: 1, cache_read: None, cache_write: None };
    let content = Json::of(text).unwrap();
    let turn = Turn {
        tokens: Some(tokens),
        ..Turn::new(part(n), Role::Assistant, Ingress::Internal, content)
    };
    event(n, &Event::Turn(turn))
}

fn part(n: usize) -> String {
    format!("part-of-{n}")
}

fn event(n: usize, event: &Event) -> NewEvent {
    let stream = StreamName::new(key(n)).unwrap();
    event.to_new(stream, EventId::new(SystemClock.now()), Links::default()).unwrap()
}

/// Opens these chats and lets each say so many turns of so many bytes, in turn; ends with a snapshot of all of it.
pub(crate) fn fill(
    store: &Path,
    options: &Options,
    chats: std::ops::Range<usize>,
    turns: usize,
    bytes: usize,
) {
    let engine = Engine::open(store, options.clone()).unwrap();
    let text = text(bytes);
    let openings = chats.clone().map(opening);
    let said = (0..turns).flat_map(|_| chats.clone()).map(|n| turn(n, &text));
    let mut batch = Vec::new();
    for event in openings.chain(said) {
        batch.push(event);
        if batch.len() == BATCH {
            let append = Append::new(std::mem::take(&mut batch));
            engine.append(append.durability(Durability::Buffered)).unwrap();
        }
    }
    batch.push(turn(chats.start, &text));
    engine.append(Append::new(batch)).unwrap();
}

/// Every file below a folder by its name relative to it, with its length. One that gets another name meanwhile is left
/// out.
pub(crate) fn files(folder: &Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.extend(entry.metadata().map(|found| (name, found.len())));
            }
        }
    }
    found.sort();
    found
}

/// The bytes of all files whose names begin so.
pub(crate) fn bytes(folder: &Path, prefix: &str) -> u64 {
    files(folder).iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, len)| len).sum()
}
