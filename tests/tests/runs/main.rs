//! Runs of agents with real processes: how they are given what they are asked, what is heard of them, and how they end.
//! Nothing is measured: limits that must not be reached are far away.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot begin fails")]

mod asked;
mod ended;
mod heard;
mod trial;
