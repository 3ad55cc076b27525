//! Every store keeps the contract of `EventStore`: the checks of `annals_tests::conformance`, one test each.

use std::sync::Arc;

use annals_engine::store::MemoryStore;
use annals_tests::conformance::Subject;

fn in_memory() -> Subject {
    Subject::new(|clock| Arc::new(MemoryStore::new(clock)))
}

annals_tests::conformance!(memory, super::super::in_memory);
