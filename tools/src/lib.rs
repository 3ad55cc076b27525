//! The session tools: what agents, services and the command line call, over one store. A handler takes who is asking,
//! the store, the sessions as they are folded from it, and typed arguments; it answers with a typed reply and writes
//! nothing to any screen.

pub mod caller;
pub mod history;
pub mod ingress;
pub mod list;
pub mod registry;
pub mod run;
mod schema;
pub mod search;
pub mod view;
pub mod visibility;
pub mod wire;

pub use caller::{Caller, Seat};
pub use view::View;
