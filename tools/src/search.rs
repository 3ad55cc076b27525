//! `sessions_search`: where something was said.

use annals_engine::clock::Timestamp;
use annals_engine::id::StreamName;
use annals_engine::session::event::Role;
use annals_engine::session::search::{Hit, SearchQuery, Sight, search};
use annals_engine::{Error, Result};

use crate::caller::Caller;
use crate::mask::Mask;
use crate::view::View;
use crate::wire::{SearchArgs, SearchReply};

/// How many turns there are when nobody says.
const LIMIT: usize = 10;

/// Searches the turns of the sessions that the caller sees, the newest first. Secrets of other sessions than the caller's
/// own are masked before anything is looked for.
///
/// # Errors
/// `InvalidInput` for a query without words, an unknown role and a time that is none; `NotFound` for an unknown session;
/// whatever reading meets.
pub fn sessions_search(caller: &Caller, view: &View<'_>, args: &SearchArgs) -> Result<SearchReply> {
    let sessions = view.sessions.state();
    let found = args.session_key.as_deref().map(|name| caller.find(sessions, name)).transpose()?;
    let query = SearchQuery {
        text: args.query.clone(),
        key: found.map(|found| found.key),
        role: args.role.as_deref().map(role).transpose()?,
        since: args.since.map(Timestamp::from_millis),
        until: args.until.map(Timestamp::from_millis),
        limit: args.limit.unwrap_or(LIMIT).clamp(1, caller.bounds.hits),
    };
    let sees = |key: &str| {
        let key = StreamName::new(key).ok();
        let row = key.as_ref().and_then(|key| sessions.row(key));
        row.is_some_and(|row| caller.sees(sessions, row))
    };
    let mask = Mask::of(view.config);
    let reads = |key: &str, text: String| match caller.is_masked(key) {
        true => mask.text(&text).into_owned(),
        false => text,
    };
    let matches = search(view.store, &query, Sight { sees: &sees, reads: &reads })?;
    let shown = |hit: Hit| {
        let key = StreamName::new(hit.key.as_str());
        Hit { key: key.map_or(hit.key, |key| caller.shown(&key).to_owned()), ..hit }
    };
    Ok(SearchReply {
        results: matches.hits.into_iter().map(shown).collect(),
        truncated: matches.truncated,
        damaged: matches.damaged,
        visibility: caller.told(sessions),
        as_of: matches.as_of.0,
    })
}

fn role(word: &str) -> Result<Role> {
    Role::from_word(word).ok_or_else(|| {
        let words: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
        Error::invalid(format!("no turn is of the role {word:?}"))
            .field("role")
            .hint(format!("roles are {}", words.join(", ")))
    })
}
