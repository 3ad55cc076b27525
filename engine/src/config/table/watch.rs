//! Settings of watch rules: which files, which changes of them, and what then runs.

use crate::config::kind::Kind;

use super::{Setting, setting};

const MILLIS: Kind = Kind::Whole(1, 24 * 60 * 60 * 1_000);

/// What is said of watch rules.
pub(super) const SETTINGS: &[Setting] = &[
    setting("watch[].name", Kind::Text, "", &[], "the rule's name"),
    setting(
        "watch[].paths",
        Kind::Texts,
        "",
        &[],
        "globs of the files, from the folder of this file on",
    ),
    setting(
        "watch[].ignore",
        Kind::Texts,
        "",
        &[],
        "globs of files that it does not see; one without / at any depth",
    ),
    setting(
        "watch[].outputs",
        Kind::Texts,
        "",
        &[],
        "globs of files that its runs write and that never start one",
    ),
    setting("watch[].on", Kind::Texts, "", &[], "which of create, change, remove start a run"),
    setting("watch[].agent", Kind::AgentId, "", &[], "the agent of its runs"),
    setting(
        "watch[].session",
        Kind::Text,
        "",
        &[],
        "the session of its runs; {path}, {change} and {rule} are filled in",
    ),
    setting(
        "watch[].prompt",
        Kind::Text,
        "",
        &[],
        "what its runs are told; {path}, {change} and {rule} are filled in",
    ),
    setting("watch[].debounceMs", MILLIS, "", &[], "a file is settled when it was left so long"),
    setting(
        "watch[].maxWaitMs",
        MILLIS,
        "",
        &[],
        "so long a file that does not rest is waited for",
    ),
    setting(
        "watch[].maxRunsPerMinute",
        Kind::Whole(1, 1_000_000),
        "",
        &[],
        "the most runs that it starts in a minute; more wait and are put together",
    ),
    setting(
        "watch[].poll",
        Kind::Whole(0, 24 * 60 * 60 * 1_000),
        "",
        &[],
        "looks every so many milliseconds; 0 for notifications",
    ),
    setting(
        "watch[].initial",
        Kind::Switch,
        "",
        &[],
        "whether what is there at the first look starts runs",
    ),
];
