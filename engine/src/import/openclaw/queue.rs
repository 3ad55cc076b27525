//! Messages that were waiting to be delivered, `delivery-queue/*.json`. They are told, and never sent.

use std::borrow::Cow;
use std::path::Path;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::import::damage::{Damage, DamageClass};
use crate::import::fields::{self, Fields};
use crate::import::run::{IMPORTED, RunEvent};
use crate::import::tree::SourceTree;
use crate::session::event::{Delivery, Event, ImportedRecord, Origin, Source, import_id};

use super::registry;

/// A message that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    id: String,
    at: Option<Timestamp>,
    pub(crate) target: Origin,
    /// The key of the session that it belongs to, where it says so.
    pub(crate) session: Option<String>,
    /// Whether a try to send it began and nobody saw how it ended.
    unsure: bool,
    pub(crate) source: Source,
}

/// Reads one waiting message.
pub(crate) fn read(
    tree: &dyn SourceTree,
    path: &Path,
    name: &str,
) -> Result<std::result::Result<Waiting, Damage>> {
    let file = registry::whole(tree, path)?;
    let json = file.text.trim();
    let mended = registry::mended(json, 0, name).map_or_else(String::new, |(text, _)| text);
    Ok(waiting(&file, &mended, name).ok_or_else(|| Damage {
        class: DamageClass::WrongFormat,
        file: name.to_owned(),
        offset: 0,
        bytes: file.text.len() as u64,
        recovered: 0,
        detail: "this is no message that waits to be delivered".to_owned(),
    }))
}

fn waiting(file: &registry::Whole, text: &str, name: &str) -> Option<Waiting> {
    let mut fields = Fields::parse(text)?;
    let target = registry::address(text)?;
    let id = fields.take_text("id")?.into_owned();
    let at = fields.take_time("enqueuedAt");
    let nested = |outer: &str, name: &str| {
        let inner = Fields::parse(fields.get(outer)?.get())?;
        inner.text(name).map(Cow::into_owned)
    };
    let session = nested("session", "key").or_else(|| nested("mirror", "sessionKey"));
    let began = fields.get("platformSendStartedAt").and_then(fields::time).is_some();
    let unsure = began || fields.text("recoveryState").is_some();
    for name in ["channel", "to", "accountId"] {
        fields.take_text(name);
    }
    let rest = Some(fields.members());
    let (bytes, sha256) = (file.text.len() as u64, file.sha256(0, file.text.len()));
    let source = Source { file: name.to_owned(), offset: 0, bytes, sha256, rest };
    Some(Waiting { id, at, target, session, unsure, source })
}

impl Waiting {
    /// That it was requested and that it is not sent from here.
    pub(crate) fn events(&self, program: &str) -> [RunEvent; 2] {
        let requested = Delivery {
            at: self.at,
            run_id: None,
            turn_seq: None,
            attempt_id: Some(self.id.clone()),
            sink: None,
            reason: None,
            target: Some(self.target.clone()),
        };
        let ended = Delivery { reason: Some(IMPORTED.to_owned()), ..requested.clone() };
        let ended =
            if self.unsure { Event::DeliveryUnknown(ended) } else { Event::DeliveryExpired(ended) };
        let id = |part| import_id(program, "delivery-queue", ImportedRecord::Id(&self.id), part);
        let source = Some(self.source.clone());
        let requested = Event::DeliveryRequested(requested);
        [
            RunEvent { event: requested, id: id("requested"), source },
            RunEvent { event: ended, id: id("ended"), source: None },
        ]
    }
}
