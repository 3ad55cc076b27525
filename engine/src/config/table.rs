//! Which settings there are: path, what it may be, default, environment variables, one line about it.
//!
//! In a path `[]` stands for a place in a list, `*` for any name, and `**` at the end for everything below.

mod agents;
mod doors;
mod watch;

use super::kind::Kind;

/// A setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its path.
    pub path: &'static str,
    pub(super) kind: Kind,
    /// The default, as JSON; empty for none.
    pub default: &'static str,
    /// The environment variables that set it, the first that is set and not empty counts.
    pub variables: &'static [&'static str],
    /// What it does.
    pub about: &'static str,
}

impl Setting {
    /// What it may be, in words.
    #[must_use]
    pub fn legal(&self) -> String {
        self.kind.legal()
    }

    /// Whether it is never shown.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret | Kind::Secrets | Kind::Variable)
    }
}

const fn setting(
    path: &'static str,
    kind: Kind,
    default: &'static str,
    variables: &'static [&'static str],
    about: &'static str,
) -> Setting {
    Setting { path, kind, default, variables, about }
}

/// The environment variables that hold what is never shown: a process that is started for somebody else is not given
/// them.
pub fn secret_variables() -> impl Iterator<Item = &'static str> {
    let secrets = SETTINGS.iter().filter(|setting| setting.is_secret());
    secrets.flat_map(|setting| setting.variables).copied()
}

const MODES: Kind = Kind::Word(&["none", "idle", "daily"]);
const HOUR: Kind = Kind::Whole(0, 23);
const MINUTES: Kind = Kind::Whole(0, 100 * 365 * 24 * 60);
const SECONDS: Kind = Kind::Whole(0, 365 * 24 * 60 * 60);
const COUNT: Kind = Kind::Whole(0, 1_000_000);

/// All settings.
pub const SETTINGS: &[Setting] =
    &joined::<{ INSIDE.len() + doors::SETTINGS.len() }>(INSIDE, doors::SETTINGS);

const INSIDE: &[Setting] =
    &joined::<{ AGENTS.len() + watch::SETTINGS.len() }>(AGENTS, watch::SETTINGS);

const AGENTS: &[Setting] =
    &joined::<{ GENERAL.len() + agents::SETTINGS.len() }>(GENERAL, agents::SETTINGS);

/// Two parts of the table as one. Their lengths together are `N`, or this does not compile.
const fn joined<const N: usize>(first: &[Setting], second: &[Setting]) -> [Setting; N] {
    assert!(first.len() + second.len() == N);
    let mut all = [first[0]; N];
    let mut index = 0;
    while index < N {
        let inside = index < first.len();
        all[index] = if inside { first[index] } else { second[index - first.len()] };
        index += 1;
    }
    all
}

/// What is not about agents.
const GENERAL: &[Setting] = &[
    setting(
        "store",
        Kind::Path,
        "",
        &["ANNALS_HOME", "MESSAGE_SESSIONS_DIR", "HERMES_SESSIONS_DIR"],
        "the store's folder",
    ),
    setting(
        "owners",
        Kind::Texts,
        "[]",
        &[],
        "who may use /send, /new and /reset, as <channel>:<sender>",
    ),
    setting(
        "session.enabled",
        Kind::Switch,
        "true",
        &["MESSAGE_SESSIONS", "HERMES_SESSIONS"],
        "channel sessions on",
    ),
    setting(
        "session.scope",
        Kind::Word(&["per-sender", "global"]),
        "\"per-sender\"",
        &[],
        "whether `main` stands for the bucket that all share",
    ),
    setting(
        "session.maxTurns",
        Kind::Whole(1, 1_000_000),
        "40",
        &["MESSAGE_SESSION_MAX_TURNS", "HERMES_SESSION_MAX_TURNS"],
        "turns that a context holds",
    ),
    setting(
        "session.channel",
        Kind::Channel,
        "\"cli\"",
        &["MESSAGE_SESSION_CHANNEL", "HERMES_SESSION_CHANNEL"],
        "the channel of the command line's chat",
    ),
    setting(
        "session.chatId",
        Kind::Text,
        "\"default\"",
        &["MESSAGE_SESSION_CHAT_ID", "HERMES_SESSION_CHAT_ID"],
        "the command line's chat",
    ),
    setting(
        "session.idleMinutes",
        MINUTES,
        "",
        &[],
        "idle reset, where session.reset says nothing; 0 for never",
    ),
    setting(
        "session.channelIdleMinutes",
        MINUTES,
        "",
        &["MESSAGE_SESSION_IDLE_MINUTES", "HERMES_SESSION_IDLE_MINUTES"],
        "idle reset of the sessions <channel>:<chat>; 0 for never",
    ),
    setting("session.reset.mode", MODES, "", &[], "when sessions are reset by themselves"),
    setting("session.reset.atHour", HOUR, "", &[], "the hour of the local day of a daily reset"),
    setting(
        "session.reset.idleMinutes",
        MINUTES,
        "",
        &[],
        "minutes without a human turn; 0 for never",
    ),
    setting(
        "session.reset.timeZone",
        Kind::Zone,
        "",
        &[],
        "the zone in which the hour is read; the host's when absent",
    ),
    setting("session.reset.maxDeferMinutes", MINUTES, "60", &[], "so long a reset waits for a run"),
    setting(
        "session.resetByType.dm.mode",
        MODES,
        "",
        &[],
        "when direct chats (an older name) are reset",
    ),
    setting(
        "session.resetByType.dm.atHour",
        HOUR,
        "",
        &[],
        "the hour for direct chats (an older name)",
    ),
    setting(
        "session.resetByType.dm.idleMinutes",
        MINUTES,
        "",
        &[],
        "the idle minutes for direct chats (an older name); 0 for never",
    ),
    setting(
        "session.resetByType.dm.timeZone",
        Kind::Zone,
        "",
        &[],
        "the zone for direct chats (an older name)",
    ),
    setting("session.resetByType.direct.mode", MODES, "", &[], "when direct chats are reset"),
    setting("session.resetByType.direct.atHour", HOUR, "", &[], "the hour for direct chats"),
    setting(
        "session.resetByType.direct.idleMinutes",
        MINUTES,
        "",
        &[],
        "the idle minutes for direct chats; 0 for never",
    ),
    setting(
        "session.resetByType.direct.timeZone",
        Kind::Zone,
        "",
        &[],
        "the zone for direct chats",
    ),
    setting("session.resetByType.group.mode", MODES, "", &[], "when groups and channels are reset"),
    setting("session.resetByType.group.atHour", HOUR, "", &[], "the hour for groups and channels"),
    setting(
        "session.resetByType.group.idleMinutes",
        MINUTES,
        "",
        &[],
        "the idle minutes for groups and channels; 0 for never",
    ),
    setting(
        "session.resetByType.group.timeZone",
        Kind::Zone,
        "",
        &[],
        "the zone for groups and channels",
    ),
    setting("session.resetByType.thread.mode", MODES, "", &[], "when threads are reset"),
    setting("session.resetByType.thread.atHour", HOUR, "", &[], "the hour for threads"),
    setting(
        "session.resetByType.thread.idleMinutes",
        MINUTES,
        "",
        &[],
        "the idle minutes for threads; 0 for never",
    ),
    setting("session.resetByType.thread.timeZone", Kind::Zone, "", &[], "the zone for threads"),
    setting(
        "session.resetByChannel.*.mode",
        MODES,
        "",
        &[],
        "when a channel's sessions are reset, outright",
    ),
    setting("session.resetByChannel.*.atHour", HOUR, "", &[], "the hour for a channel"),
    setting(
        "session.resetByChannel.*.idleMinutes",
        MINUTES,
        "",
        &[],
        "the idle minutes for a channel; 0 for never",
    ),
    setting("session.resetByChannel.*.timeZone", Kind::Zone, "", &[], "the zone for a channel"),
    setting(
        "session.silentTokens",
        Kind::Texts,
        "[]",
        &[],
        "more replies that mean: send nothing; each alone is the whole reply",
    ),
    setting(
        "session.silence.background",
        Kind::Word(&["exact", "edge"]),
        "\"exact\"",
        &[],
        "whether a reply that nobody asked for is silent by a token at its edge too",
    ),
    setting("session.sendPolicy", Kind::SendPolicy, "", &[], "what may go out of which sessions"),
    setting(
        "session.maintenance.mode",
        Kind::Word(&["warn", "enforce"]),
        "\"warn\"",
        &[],
        "whether sessions over the limits are archived, or only told of",
    ),
    setting(
        "session.maintenance.maxEntries",
        Kind::Whole(1, 100_000_000),
        "",
        &[],
        "the most sessions in the lists; no limit when absent",
    ),
    setting(
        "session.maintenance.pruneAfterDays",
        Kind::Whole(1, 36_500),
        "",
        &[],
        "sessions untouched for longer leave the lists; never when absent",
    ),
    setting(
        "session.agentToAgent.maxPingPongTurns",
        Kind::Whole(0, 5),
        "5",
        &[],
        "the most rounds that two sessions answer each other",
    ),
    setting(
        "session.agentToAgent.maxHops",
        Kind::Whole(1, 1_000),
        "10",
        &[],
        "the most sends that cause each other",
    ),
    setting(
        "session.agentToAgent.maxRuns",
        Kind::Whole(1, 100_000),
        "100",
        &[],
        "the most runs that follow from one request while one of them goes on",
    ),
    setting(
        "session.threadBindings.**",
        Kind::Ignored,
        "",
        &[],
        "accepted; threads are the channel's",
    ),
    setting("channels.**", Kind::Ignored, "", &[], "accepted; channels are connected elsewhere"),
    setting(
        "tools.sessions.visibility",
        Kind::Word(&["self", "tree", "agent", "all"]),
        "\"tree\"",
        &[],
        "which sessions a session sees",
    ),
    setting(
        "tools.agentToAgent.enabled",
        Kind::Switch,
        "false",
        &[],
        "whether agents see and address each other",
    ),
    setting(
        "tools.agentToAgent.allow",
        Kind::Texts,
        "[]",
        &[],
        "which agents do, both ends; * stands for any text",
    ),
    setting(
        "tools.subagents.tools.allow",
        Kind::Texts,
        "",
        &[],
        "session tools that spawned children have",
    ),
    setting(
        "tools.subagents.tools.deny",
        Kind::Texts,
        "",
        &[],
        "session tools that spawned children do not have",
    ),
    setting(
        "subagents.enabled",
        Kind::Switch,
        "true",
        &["SUBAGENT_ENABLED", "HERMES_SUBAGENT"],
        "spawning on",
    ),
    setting(
        "subagents.max",
        COUNT,
        "3",
        &["SUBAGENT_MAX", "HERMES_SUBAGENT_MAX"],
        "the most children at a time, waiting ones counted",
    ),
    setting(
        "subagents.timeoutSeconds",
        SECONDS,
        "600",
        &["SUBAGENT_TIMEOUT", "HERMES_SUBAGENT_TIMEOUT"],
        "time limit of `subagent spawn`; 0 for none",
    ),
    setting(
        "subagents.maxChars",
        Kind::Whole(1, 10_000_000),
        "4000",
        &["SUBAGENT_MAX_CHARS", "HERMES_SUBAGENT_MAX_CHARS"],
        "the longest task, in characters",
    ),
    setting(
        "subagents.security",
        Kind::Switch,
        "true",
        &["SUBAGENT_SECURITY", "HERMES_SUBAGENT_SECURITY"],
        "the gate on tasks",
    ),
    setting(
        "subagents.sync",
        Kind::Switch,
        "false",
        &["SUBAGENT_SYNC", "HERMES_SUBAGENT_SYNC"],
        "run children in the foreground",
    ),
    setting(
        "subagents.dir",
        Kind::Path,
        "",
        &["SUBAGENT_DIR", "HERMES_SUBAGENT_DIR"],
        "where older records are imported from",
    ),
    setting(
        "security.enabled",
        Kind::Switch,
        "true",
        &["SECURITY"],
        "the gates but those on size and encoding",
    ),
    setting(
        "security.llm",
        Kind::Switch,
        "true",
        &["SECURITY_LLM"],
        "the gates on injection and exfiltration",
    ),
    setting(
        "security.actions",
        Kind::Switch,
        "true",
        &["SECURITY_ACTIONS"],
        "the gates on shell commands",
    ),
];
