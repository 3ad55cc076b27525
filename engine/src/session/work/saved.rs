//! The work at hand as it stands in a snapshot: one text of JSON, for it is small and holds addresses with gaps.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::projection::{Saved, schema_of};

use super::{Exchange, Job, Outgoing, Waybill, Work};

impl Saved for Work {
    const NAME: &'static str = "work";

    /// Follows from the sources of the fold, so that a snapshot of a program that folds otherwise is not used.
    fn schema() -> u64 {
        static SCHEMA: OnceLock<u64> = OnceLock::new();
        *SCHEMA.get_or_init(|| {
            schema_of(&[
                include_str!("mod.rs"),
                include_str!("fold.rs"),
                include_str!("outgoing.rs"),
                include_str!("saved.rs"),
                include_str!("../event/mod.rs"),
                include_str!("../event/define.rs"),
                include_str!("../event/exchange.rs"),
                include_str!("../event/json.rs"),
                include_str!("../event/lifecycle.rs"),
                include_str!("../event/outbound.rs"),
                include_str!("../event/run.rs"),
            ])
        })
    }
}

#[derive(Serialize)]
struct Shown<'a> {
    runs: Vec<&'a Job>,
    outgoing: Vec<(&'a Waybill, &'a Outgoing)>,
    exchanges: Vec<&'a Exchange>,
    chains: &'a BTreeMap<String, u32>,
    ended: bool,
}

#[derive(Deserialize)]
struct Read {
    runs: Vec<Job>,
    outgoing: Vec<(Waybill, Outgoing)>,
    exchanges: Vec<Exchange>,
    chains: BTreeMap<String, u32>,
    ended: bool,
}

impl Serialize for Work {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shown = Shown {
            runs: self.runs.values().map(|run| &**run).collect(),
            outgoing: self.outgoing.iter().map(|(name, outgoing)| (name, &**outgoing)).collect(),
            exchanges: self.exchanges.values().map(|exchange| &**exchange).collect(),
            chains: &self.chains,
            ended: self.ended,
        };
        let text = serde_json::to_string(&shown).map_err(S::Error::custom)?;
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Work {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let Read { runs, outgoing, exchanges, chains, ended } =
            serde_json::from_str(&text).map_err(D::Error::custom)?;
        let run = |run: Job| (run.run_id.clone(), Arc::new(run));
        let exchange = |exchange: Exchange| (exchange.run_id.clone(), Arc::new(exchange));
        Ok(Self {
            runs: runs.into_iter().map(run).collect(),
            outgoing: outgoing.into_iter().map(|(name, out)| (name, Arc::new(out))).collect(),
            exchanges: exchanges.into_iter().map(exchange).collect(),
            chains,
            ended,
        })
    }
}
