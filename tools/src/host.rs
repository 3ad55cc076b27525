//! What serves tools call after call: a store, its settings, and what makes agents work. Every call looks at the store as
//! it is then, and asks anew who is calling.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use annals_engine::Result;
use annals_engine::config::Config;
use annals_engine::engine::Engine;
use annals_engine::id::StreamName;
use annals_engine::session::index::{Lens, TimeRules};
use serde_json::Value;

use crate::caller::{Bounds, Caller, TokenHash};
use crate::desk::{Desk, OperatorSession, Staff};
use crate::registry::Tool;
use crate::run::Setup;
use crate::view::View;

/// What serves tools. Clones share it.
#[derive(Clone)]
pub struct Host(Arc<Parts>);

struct Parts {
    engine: Engine,
    setup: Arc<Setup>,
    rules: TimeRules,
    staff: Arc<dyn Staff + Send>,
    operator: OperatorSession,
    child_timeout: Duration,
}

/// Who calls, as it is bound where a caller comes in. What it may do is looked up with every call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// The store's owner.
    Operator,
    /// A session.
    Session(StreamName),
    /// The run that a token was made for.
    Run(TokenHash),
}

impl Host {
    /// Serves a store under these settings.
    #[must_use]
    pub fn new(
        engine: Engine,
        setup: Arc<Setup>,
        staff: Arc<dyn Staff + Send>,
        operator: OperatorSession,
        child_timeout: Duration,
    ) -> Self {
        let rules = setup.config.time_rules();
        Self(Arc::new(Parts { engine, setup, rules, staff, operator, child_timeout }))
    }

    /// The store.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// The settings in force.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.0.setup.config
    }

    /// Who is calling, as of now. What an answer holds is bounded for the operator too: it is a program that reads it.
    ///
    /// # Errors
    /// `Refused` for the token of a run that is not at work; whatever reading meets.
    pub fn caller(&self, who: &Identity) -> Result<Caller> {
        match who {
            Identity::Operator => {
                Ok(Caller { bounds: Bounds::TOOL, ..Caller::operator_of(self.config())? })
            }
            Identity::Session(key) => {
                Caller::in_session(self.engine().sessions()?.state(), self.config(), key.clone())
            }
            Identity::Run(hash) => Caller::of_token_hash(self.engine(), self.config(), hash),
        }
    }

    /// Looks at the store as it is now, for a caller who may go meanwhile.
    ///
    /// # Errors
    /// Whatever reading meets; what the look says.
    pub fn look<T>(
        &self,
        gone: Option<&AtomicBool>,
        look: impl FnOnce(&View<'_>) -> Result<T>,
    ) -> Result<T> {
        let Parts { engine, setup, rules, staff, operator, child_timeout } = &*self.0;
        let sessions = engine.sessions()?;
        let staff = &**staff as &dyn Staff;
        let child_timeout = *child_timeout;
        let desk = Desk { engine, setup, staff, operator, child_timeout, before_task: None, gone };
        look(&View {
            store: engine.store(),
            sessions: &sessions,
            lens: Lens { rules, now: engine.clock().now() },
            config: &setup.config,
            desk: Some(&desk),
        })
    }

    /// Calls a tool. It blocks as long as the tool does.
    ///
    /// # Errors
    /// What [`Tool::call`] and [`Host::caller`] say.
    pub fn call(
        &self,
        who: &Identity,
        tool: &Tool,
        args: Value,
        gone: Option<&AtomicBool>,
    ) -> Result<Value> {
        let caller = self.caller(who)?;
        self.look(gone, |view| tool.call(&caller, view, args))
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("engine", &self.0.engine).finish_non_exhaustive()
    }
}
