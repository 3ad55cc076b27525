//! What happened in each session, in the order of the log, without what was said.

use std::collections::{BTreeMap, BTreeSet};

use crate::format::Fields;
use crate::projection::Projection;
use crate::session::event::{Event, Role, TurnHead};
use crate::session::moment::Moment;
use crate::session::outbox::{Cargo, Outbox};
use crate::session::runs::Runs;
use crate::store::Damage;

use super::{Sent, Turns, What};

/// The stories of all sessions, with the runs and what left the sessions.
#[derive(Clone, Debug, Default)]
pub struct Stories {
    pub(super) deeds: BTreeMap<String, Vec<(Moment, Deed)>>,
    pub(super) runs: Runs,
    pub(super) outbox: Outbox,
    /// Sessions by the parent that their opening names.
    named_children: BTreeSet<(String, String)>,
}

/// What happened; what else is known of it is looked up when a tree is made.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    /// It is told whole.
    Told(What),
    Run(String),
    Spawn {
        run_id: Option<String>,
        child: Option<String>,
        label: Option<String>,
    },
    Send(Box<Sent>),
    /// Something began to leave the session.
    Outgoing(Cargo, Option<String>, Option<u64>),
}

impl Stories {
    fn tell(&mut self, stream: &str, moment: Moment, deed: Deed) {
        match self.deeds.get_mut(stream) {
            Some(deeds) => deeds.push((moment, deed)),
            None => drop(self.deeds.insert(stream.to_owned(), vec![(moment, deed)])),
        }
    }

    fn turn(&mut self, fields: &Fields<'_>, moment: Moment) {
        let Some(head) = TurnHead::read(fields.data) else { return };
        let last = self.deeds.get_mut(&*fields.stream).and_then(|deeds| deeds.last_mut());
        if let Some((_, Deed::Told(What::Turns(turns)))) = last {
            return turns.count(head.role, moment);
        }
        let mut turns = Turns { last: moment, user: 0, assistant: 0, tool_result: 0, system: 0 };
        turns.count(head.role, moment);
        self.tell(&fields.stream, moment, Deed::Told(What::Turns(turns)));
    }

    fn event(&mut self, stream: &str, moment: Moment, event: Event) {
        let deed = match event {
            Event::SessionOpened(e) => {
                if let Some(parent) = e.parent_key {
                    self.child(&parent, stream, moment);
                }
                Deed::Told(What::Opened { session_id: e.session_id })
            }
            Event::SessionReset(e) => Deed::Told(What::Reset {
                session_id: e.session_id,
                previous_session_id: e.previous_session_id,
                reason: e.reason,
            }),
            Event::SessionResumed(e) => Deed::Told(What::Resumed { session_id: e.session_id }),
            Event::SessionArchived(e) => Deed::Told(What::Archived { reason: e.reason }),
            Event::SpawnAccepted(e) => {
                Deed::Spawn { run_id: Some(e.run_id), child: e.target_key, label: e.label }
            }
            Event::SendAccepted(e) => Deed::Send(Box::new(Sent {
                run_id: e.run_id,
                target_key: e.target_key,
                label: e.label,
                round: e.round,
                run: None,
            })),
            Event::ExchangeEnded(e) => Deed::Told(What::ExchangeEnded {
                run_id: e.run_id,
                rounds: e.rounds,
                reason: e.reason,
            }),
            Event::SendRefused(e) | Event::SpawnRefused(e) | Event::AccessDenied(e) => {
                Deed::Told(What::Refused { verb: e.verb, target: e.target, reason: e.reason })
            }
            Event::RunRequested(e) => {
                return self.tell(&e.session_key, moment, Deed::Run(e.run_id));
            }
            Event::AnnounceRequested(e) => Deed::Outgoing(Cargo::Announce, Some(e.run_id), None),
            Event::DeliveryRequested(e) => Deed::Outgoing(Cargo::Delivery, e.run_id, e.turn_seq),
            _ => return,
        };
        self.tell(stream, moment, deed);
    }

    /// A child stands in its parent's story where it opened, until a spawn says more.
    fn child(&mut self, parent: &str, child: &str, moment: Moment) {
        if !self.named_children.insert((parent.to_owned(), child.to_owned())) {
            return;
        }
        let child = Some(child.to_owned());
        self.tell(parent, moment, Deed::Spawn { run_id: None, child, label: None });
    }
}

impl Turns {
    fn count(&mut self, role: Role, moment: Moment) {
        self.last = moment;
        let of_role = match role {
            Role::User => &mut self.user,
            Role::Assistant => &mut self.assistant,
            Role::ToolResult => &mut self.tool_result,
            Role::System => &mut self.system,
        };
        *of_role += 1;
    }
}

impl Projection for Stories {
    fn apply(&mut self, fields: &Fields<'_>) {
        self.runs.apply(fields);
        self.outbox.apply(fields);
        let moment = Moment::of(fields);
        if fields.kind == "turn" {
            return self.turn(fields, moment);
        }
        let tells = Event::TYPES.contains(&fields.kind)
            && !matches!(fields.kind, "run.output" | "turn.blocked" | "session.patched");
        if let Some(event) = tells.then(|| Event::told_by(fields)).flatten() {
            self.event(&fields.stream, moment, event);
        }
    }

    fn gap(&mut self, _: &Damage) {}
}
