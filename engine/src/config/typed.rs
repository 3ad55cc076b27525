//! Settings in the types that the domain works with.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::session::event::{Json, ResetMode};
use crate::session::index::TimeRules;
use crate::session::key::AgentId;
use crate::session::policy::{POLICY_SETTINGS, PolicyFile, SendPolicy};
use crate::session::reset::{Override, Rules, SessionType, Zone};
use crate::session::silent::{Background, Tokens};
use crate::session::upkeep::Limits;

use super::{Config, Origin};

impl Config {
    /// Whether a switch is on; `false` for one that has no value.
    #[must_use]
    pub fn is_on(&self, path: &str) -> bool {
        self.get(path).is_some_and(|held| held.value == Value::Bool(true))
    }

    /// A number.
    #[must_use]
    pub fn number(&self, path: &str) -> Option<u64> {
        self.get(path)?.value.as_u64()
    }

    /// A text.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<&str> {
        self.get(path)?.value.as_str()
    }

    /// A list of texts; empty for one that has no value.
    #[must_use]
    pub fn texts(&self, path: &str) -> Vec<&str> {
        let items = self.get(path).and_then(|held| held.value.as_array());
        items.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The rules by which time changes sessions. The host's zone is looked up when an hour is read in it.
    #[must_use]
    pub fn time_rules(&self) -> TimeRules {
        let mut resets = self.reset_rules(Zone::utc());
        let said = [&resets.general].into_iter().chain(resets.by_type.values());
        if said.chain(resets.by_channel.values()).any(|said| *said != Override::default()) {
            resets.host_zone = Zone::of_host();
        }
        let minutes = self.number(TimeRules::ARCHIVE_SETTING).filter(|minutes| *minutes > 0);
        let archive_after = minutes.map(|n| Duration::from_secs(n.saturating_mul(60)));
        TimeRules { resets, archive_after }
    }

    /// The rules on resets. The host's zone counts where none is said.
    #[must_use]
    pub fn reset_rules(&self, host_zone: Zone) -> Rules {
        let mut general = self.reset_at("session.reset");
        general.idle_minutes = general.idle_minutes.or_else(|| self.number("session.idleMinutes"));
        let mut by_type = BTreeMap::new();
        // `dm` is an older name: what is said under `direct` goes before it.
        for (name, sort) in [
            ("dm", SessionType::Direct),
            ("direct", SessionType::Direct),
            ("group", SessionType::Group),
            ("thread", SessionType::Thread),
        ] {
            let said = self.reset_at(&format!("session.resetByType.{name}"));
            if said != Override::default() {
                by_type.insert(sort, said);
            }
        }
        let channels = self.names_below("session.resetByChannel.");
        let by_channel = channels.map(|channel| {
            let said = self.reset_at(&format!("session.resetByChannel.{channel}"));
            (channel.to_ascii_lowercase(), said)
        });
        Rules {
            general,
            by_type,
            by_channel: by_channel.collect(),
            channel_chats_idle_minutes: self.number("session.channelIdleMinutes"),
            defer_max: self
                .number("session.reset.maxDeferMinutes")
                .map_or(Rules::DEFER_MAX, |minutes| {
                    Duration::from_secs(minutes.saturating_mul(60))
                }),
            host_zone,
        }
    }

    /// The words that ask for silence.
    #[must_use]
    pub fn silent_tokens(&self) -> Tokens {
        let word = self.text("session.silence.background");
        let background = word.and_then(Background::from_word).unwrap_or(Background::Exact);
        Tokens::new(self.texts("session.silentTokens"), background)
    }

    /// What takes messages out, by channel: the kind of each sink.
    #[must_use]
    pub fn sinks(&self) -> BTreeMap<String, String> {
        let channels = self.names_below("sinks.");
        let kind = |channel: &str| self.text(&format!("sinks.{channel}.type")).map(str::to_owned);
        let known = channels.filter_map(|channel| Some((channel.to_owned(), kind(channel)?)));
        known.collect()
    }

    /// The callers that have tokens of their own, by the names that the settings give them.
    pub fn http_callers(&self) -> impl Iterator<Item = &str> {
        self.names_below("http.tokens.")
    }

    /// The values that leave no session: those that are named, those of variables that are named, and the secrets that
    /// the settings themselves hold.
    #[must_use]
    pub fn masked_values(&self) -> Vec<&str> {
        let own = self.held.iter().filter(|(path, held)| {
            held.secret && (path.ends_with(".secret") || path.ends_with(".token"))
        });
        let mut values = self.texts("security.maskValues");
        values.extend(self.masked.iter().map(String::as_str));
        values.extend(own.filter_map(|(_, held)| held.value.as_str()));
        values
    }

    /// The limits of maintenance.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let days = self.number("session.maintenance.pruneAfterDays");
        Limits {
            enforce: self.text("session.maintenance.mode") == Some("enforce"),
            entries_max: self.number("session.maintenance.maxEntries"),
            age_max: days.map(|days| Duration::from_secs(days.saturating_mul(86_400))),
        }
    }

    /// What the file says about policy. Without a file nothing is set.
    #[must_use]
    pub fn policy_file(&self) -> PolicyFile {
        let said = |setting: &&str| {
            let held = self.get(setting).filter(|held| held.origin == Origin::File)?;
            Some(((*setting).to_owned(), Json::of(&held.value).ok()?))
        };
        PolicyFile {
            settings: POLICY_SETTINGS.iter().filter_map(said).collect(),
            path: self.file().map(|file| file.path.display().to_string()),
            sha256: self.file().map(|file| file.sha256.clone()),
        }
    }

    /// The send policy.
    #[must_use]
    pub fn send_policy(&self) -> SendPolicy {
        self.get("session.sendPolicy")
            .and_then(|held| serde_json::from_value(held.value.clone()).ok())
            .unwrap_or_default()
    }

    /// The agent that sessions belong to which name none: the one marked as default, else the first, else `main`.
    #[must_use]
    pub fn default_agent(&self) -> Option<AgentId> {
        let marked = self
            .agents()
            .find(|(place, _)| self.is_on(&format!("{place}.default")))
            .or_else(|| self.agents().next());
        AgentId::parse(marked.map_or("main", |(_, id)| id)).ok()
    }

    /// The size of the context of an agent's model, in tokens.
    #[must_use]
    pub fn context_tokens(&self, agent: &str) -> Option<u64> {
        let (place, _) = self.agents().find(|(_, id)| *id == agent)?;
        self.number(&format!("{place}.contextTokens"))
    }

    /// The agents' places in the list, such as `agents.list[0]`, and their ids, in the order of the list.
    pub fn agents(&self) -> impl Iterator<Item = (String, &str)> {
        (0..).map_while(|index| {
            let place = format!("agents.list[{index}]");
            let id = self.held.get(&format!("{place}.id"))?.value.as_str()?;
            Some((place, id))
        })
    }

    /// The texts that stand behind a path, by name. Names are whole, whatever dots are in them.
    pub fn texts_below(&self, path: &str) -> impl Iterator<Item = (&str, &str)> {
        let prefix = format!("{path}.");
        let below = self.held.range(prefix.clone()..);
        below.map_while(move |(path, held)| {
            Some((path.strip_prefix(&prefix)?, held.value.as_str()?))
        })
    }

    /// The rules on resets that go by idle time and have none.
    pub(super) fn rules_without_idle_time(&self) -> Vec<String> {
        let rules = self.reset_rules(Zone::utc());
        // What is set for the chats of channels is their idle time.
        if rules.channel_chats_idle_minutes.is_some_and(|minutes| minutes > 0) {
            return Vec::new();
        }
        let general = rules.general.idle_minutes.unwrap_or(0);
        let mut places = vec!["session.reset".to_owned()];
        for below in ["session.resetByType.", "session.resetByChannel."] {
            places.extend(self.names_below(below).map(|name| format!("{below}{name}")));
        }
        places.retain(|place| {
            let said = self.reset_at(place);
            // Only a rule for one channel takes nothing from the general one.
            let inherits = !place.starts_with("session.resetByChannel.");
            let inherited = if inherits && rules.general.mode == said.mode { general } else { 0 };
            said.mode == Some(ResetMode::Idle) && said.idle_minutes.unwrap_or(inherited) == 0
        });
        places
    }

    fn reset_at(&self, path: &str) -> Override {
        Override {
            mode: self.text(&format!("{path}.mode")).and_then(ResetMode::from_word),
            at_hour: self
                .number(&format!("{path}.atHour"))
                .and_then(|hour| u8::try_from(hour).ok()),
            idle_minutes: self.number(&format!("{path}.idleMinutes")),
            zone: self.text(&format!("{path}.timeZone")).and_then(|name| Zone::named(name).ok()),
        }
    }

    /// The names that stand behind a prefix.
    fn names_below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        let below = self.held.range(prefix.to_owned()..);
        let names = below.map_while(move |(path, _)| path.strip_prefix(prefix));
        let mut last = None;
        names.filter_map(|rest| rest.rsplit_once('.').map(|(name, _)| name)).filter(move |name| {
            let new = last != Some(*name);
            last = Some(*name);
            new
        })
    }
}
