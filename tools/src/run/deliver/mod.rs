//! Sinks: how messages leave for a channel. Each channel has one of four sorts, named in the settings; a channel that
//! none is named for has that of `*`, and without one the log, where the event is the delivery.
//!
//! A sink makes one try and tells what became of it. Whether it may have arrived is what it is careful about: what may
//! have arrived is never tried again by itself. Every try of one message has the same idempotency key.

mod exec;
mod file;
mod http;
mod sink;

use std::collections::BTreeMap;
use std::pin::Pin;

use annals_engine::Result;
use annals_engine::config::Config;
use annals_engine::session::run::Tried;
use serde::Serialize;

pub use sink::{Needs, Sent, Sink};

use super::worker::{Carrier, Parcel};

/// All sinks.
#[derive(Debug)]
pub struct Sinks {
    by_channel: BTreeMap<String, Sink>,
    /// Of every channel that has none.
    log: Sink,
}

/// The channel that stands for every other.
const ANY: &str = "*";

impl Sinks {
    /// The sinks that the settings name.
    ///
    /// # Errors
    /// `InvalidInput` for a sink without what its sort needs, and for what it cannot use: it names the setting.
    pub fn of(config: &Config) -> Result<Self> {
        let mut by_channel = BTreeMap::new();
        for channel in sink::channels(config) {
            by_channel.insert(channel.to_ascii_lowercase(), Sink::of(config, channel)?);
        }
        Ok(Self { by_channel, log: Sink::log() })
    }

    /// Every sink that the settings name, with its channel.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Sink)> {
        self.by_channel.iter().map(|(channel, sink)| (channel.as_str(), sink))
    }

    /// The sink of a channel.
    #[must_use]
    pub fn for_channel(&self, channel: &str) -> &Sink {
        let named = self.by_channel.get(&channel.to_ascii_lowercase());
        named.or_else(|| self.by_channel.get(ANY)).unwrap_or(&self.log)
    }
}

impl Carrier for Sinks {
    fn carry(&self, parcel: Parcel) -> Pin<Box<dyn Future<Output = Tried> + Send + '_>> {
        Box::pin(async move { self.for_channel(&parcel.channel).send(&parcel).await.into() })
    }
}

/// A parcel as an object: what every sink gives out.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ParcelWire<'a> {
    attempt_id: &'a str,
    idempotency_key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<&'a str>,
    session_key: &'a str,
    channel: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_id: Option<&'a str>,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_seq: Option<u64>,
    text: &'a str,
}

/// A parcel as one line of JSON, its line feed included.
fn line_of(parcel: &Parcel) -> Vec<u8> {
    let wire = ParcelWire {
        attempt_id: &parcel.attempt_id,
        idempotency_key: &parcel.idempotency_key,
        run_id: parcel.run_id.as_deref(),
        session_key: &parcel.session_key,
        channel: &parcel.channel,
        to: parcel.to.as_deref(),
        account_id: parcel.account_id.as_deref(),
        thread_id: parcel.thread_id.as_deref(),
        kind: &parcel.kind,
        turn_seq: parcel.turn_seq,
        text: &parcel.text,
    };
    let mut line = serde_json::to_vec(&wire).unwrap_or_default();
    line.push(b'\n');
    line
}
