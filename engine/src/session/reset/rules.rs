//! Which rule is in force for a session: the general one, one for its type, one for its channel.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::session::event::{ChatType, ResetMode};

use super::{Rule, Zone};

/// What sort of session, as far as resets care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionType {
    /// Two parties, and everything that is nothing else.
    Direct,
    /// A group or a channel.
    Group,
    /// A thread in either.
    Thread,
}

impl SessionType {
    /// The type of a session with such a chat behind it.
    #[must_use]
    pub const fn of(chat_type: Option<ChatType>, in_thread: bool) -> Self {
        match chat_type {
            _ if in_thread => Self::Thread,
            Some(ChatType::Group | ChatType::Channel) => Self::Group,
            Some(ChatType::Direct) | None => Self::Direct,
        }
    }
}

/// What somebody said about resets: fields left out say nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Override {
    /// The mode. When only the hour or only the minutes are said, it follows from these.
    pub mode: Option<ResetMode>,
    /// The hour of the local day, 0 to 23.
    pub at_hour: Option<u8>,
    /// Minutes without a human turn; 0 for never.
    pub idle_minutes: Option<u64>,
    /// The zone.
    pub zone: Option<Zone>,
}

/// All rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// What holds where nothing else is said.
    pub general: Override,
    /// By type of session: fields left out are those of the general rule.
    pub by_type: BTreeMap<SessionType, Override>,
    /// By channel, whatever the case of its letters, outright: of the general rule the zone alone is taken over.
    pub by_channel: BTreeMap<String, Override>,
    /// Idle minutes of the sessions `<channel>:<chat>`, over everything else.
    pub channel_chats_idle_minutes: Option<u64>,
    /// So long at most a reset waits for a run.
    pub defer_max: Duration,
    /// The zone where none is said.
    pub host_zone: Zone,
}

impl Rules {
    /// The hour at which days begin where `daily` is said and no hour.
    pub const AT_HOUR: u8 = 4;

    /// A reset waits so long for a run where nothing is said.
    pub const DEFER_MAX: Duration = Duration::from_secs(60 * 60);

    /// No resets.
    #[must_use]
    pub fn none(host_zone: Zone) -> Self {
        Self {
            general: Override::default(),
            by_type: BTreeMap::new(),
            by_channel: BTreeMap::new(),
            channel_chats_idle_minutes: None,
            defer_max: Self::DEFER_MAX,
            host_zone,
        }
    }

    /// Whether no session is ever reset by itself.
    #[must_use]
    pub fn are_off(&self) -> bool {
        let said = [&self.general].into_iter().chain(self.by_type.values());
        let mut said = said.chain(self.by_channel.values());
        self.channel_chats_idle_minutes.unwrap_or(0) == 0
            && said.all(|said| said.settled_mode() == ResetMode::None)
    }

    /// The rule for a session. `is_channel_chat` says whether its key is `<channel>:<chat>`.
    #[must_use]
    pub fn of(&self, sort: SessionType, channel: Option<&str>, is_channel_chat: bool) -> Rule {
        let named = |channel: &str| {
            let mut rules = self.by_channel.iter();
            rules.find(|(name, _)| name.eq_ignore_ascii_case(channel)).map(|(_, said)| said)
        };
        let of_channel = channel.and_then(named);
        let mut said = match (of_channel, self.by_type.get(&sort)) {
            (Some(said), _) => said.clone(),
            (None, Some(said)) => said.over(&self.general),
            (None, None) => self.general.clone(),
        };
        if let Some(minutes) = self.channel_chats_idle_minutes.filter(|_| is_channel_chat) {
            said.mode = match said.settled_mode() {
                ResetMode::None if minutes > 0 => Some(ResetMode::Idle),
                other => Some(other),
            };
            said.idle_minutes = Some(minutes);
        }
        Rule {
            mode: said.settled_mode(),
            at_hour: said.at_hour.unwrap_or(Self::AT_HOUR),
            idle_minutes: said.idle_minutes.unwrap_or(0),
            zone: said
                .zone
                .or_else(|| self.general.zone.clone())
                .unwrap_or_else(|| self.host_zone.clone()),
        }
    }
}

impl Override {
    /// What is said here, and what a general rule says where nothing is said here. Idle minutes of the general rule are
    /// not taken over by one that turns to another mode.
    fn over(&self, general: &Self) -> Self {
        let mode = self.mode.or_else(|| self.implied_mode());
        let same_mode = mode.is_none_or(|mode| mode == general.settled_mode());
        let inherited = general.idle_minutes.filter(|_| same_mode);
        Self {
            mode: mode.or_else(|| Some(general.settled_mode())),
            at_hour: self.at_hour.or(general.at_hour),
            idle_minutes: self.idle_minutes.or(inherited),
            zone: self.zone.clone().or_else(|| general.zone.clone()),
        }
    }

    fn settled_mode(&self) -> ResetMode {
        self.mode.or_else(|| self.implied_mode()).unwrap_or(ResetMode::None)
    }

    fn implied_mode(&self) -> Option<ResetMode> {
        match (self.at_hour, self.idle_minutes) {
            (Some(_), _) => Some(ResetMode::Daily),
            (None, Some(minutes)) if minutes > 0 => Some(ResetMode::Idle),
            (None, Some(_)) => Some(ResetMode::None),
            (None, None) => None,
        }
    }
}
