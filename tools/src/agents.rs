//! `agents_list`: under which agents a caller may spawn.

use annals_engine::config::Config;

use crate::caller::Caller;
use crate::view::View;
use crate::wire::runs::{AgentRow, AgentsReply};

/// The agents that children of the caller may be of.
#[must_use]
pub fn agents_list(caller: &Caller, view: &View<'_>) -> AgentsReply {
    let own = caller.agent.as_str();
    let (allow_any, allowed) = allowed(view.config, own);
    let configured: Vec<(String, AgentRow)> = view.config.agents().map(|a| row(view, a)).collect();
    let mut agents: Vec<AgentRow> = configured
        .iter()
        .filter(|(id, _)| allow_any || allowed.contains(id))
        .map(|(_, row)| row.clone())
        .collect();
    let unknown = allowed.iter().filter(|id| !configured.iter().any(|(known, _)| known == *id));
    agents.extend(unknown.map(|id| AgentRow { id: id.clone(), name: None, configured: false }));
    // The caller's own comes first, the others by name.
    agents.sort_by(|a, b| (a.id != own, &a.id).cmp(&(b.id != own, &b.id)));
    agents.dedup_by(|a, b| a.id == b.id);
    AgentsReply { requester: own.to_owned(), allow_any, agents }
}

fn row(view: &View<'_>, (place, id): (String, &str)) -> (String, AgentRow) {
    let name = view.config.text(&format!("{place}.name")).map(str::to_owned);
    let configured = view.config.get(&format!("{place}.run.command")).is_some();
    (id.to_owned(), AgentRow { id: id.to_owned(), name, configured })
}

/// Whether an agent may spawn under any, and under which it may: its own where nothing is said.
pub(crate) fn allowed(config: &Config, agent: &str) -> (bool, Vec<String>) {
    let place = config.agents().find(|(_, id)| *id == agent).map(|(place, _)| place);
    let said = place.map(|place| format!("{place}.subagents.allowAgents"));
    let said = said.filter(|path| config.get(path).is_some());
    let Some(path) = said else { return (false, vec![agent.to_owned()]) };
    let allowed: Vec<String> = config.texts(&path).into_iter().map(str::to_owned).collect();
    (allowed.iter().any(|id| id == "*"), allowed.into_iter().filter(|id| id != "*").collect())
}
