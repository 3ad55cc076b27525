//! Flows of work with real workers that are killed, stopped and held up: processes of the program on one store, agents
//! that are programs, a sink that is one.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot begin fails")]

#[path = "../../tests/interrupted/check.rs"]
#[expect(dead_code, reason = "what sinks were given is counted in their files here")]
mod check;
#[path = "../support.rs"]
#[expect(dead_code, reason = "the tests of the program share it")]
mod support;

mod house;
mod killed;
mod several;
