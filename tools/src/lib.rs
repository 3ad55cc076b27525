//! The session tools: what agents, services and the command line call, over one store. A handler takes who is asking,
//! the store, the sessions as they are folded from it, and typed arguments; it answers with a typed reply and writes
//! nothing to any screen.

pub mod agents;
pub mod caller;
mod calls;
pub mod desk;
pub mod fault;
pub mod history;
pub mod host;
pub mod http;
pub mod ingress;
pub mod list;
pub mod mask;
pub mod mcp;
pub mod registry;
pub mod run;
pub mod runs;
mod schema;
pub mod search;
pub mod send;
pub mod shown;
pub mod spawn;
pub mod status;
pub mod view;
pub mod visibility;
mod waiting;
pub mod watchers;
pub mod wire;

pub use caller::{Caller, Seat};
pub use desk::Desk;
pub use host::{Host, Identity};
pub use view::View;
