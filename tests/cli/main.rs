//! The whole program as its users meet it: real processes with a home of their own, and what they write where.
#![expect(clippy::expect_used, reason = "what cannot be set up or read fails the test")]

mod support;

mod agents;
mod arguments;
mod asking;
mod chats;
mod children;
mod clients;
mod color;
mod config_file;
mod doctor;
mod events;
mod follow;
mod help;
mod http;
mod keeping;
mod labels;
mod masking;
mod mcp;
mod memory;
mod pictures;
mod pipes;
mod push;
mod quickstart;
mod readers;
mod reasons;
mod repair;
mod replay;
mod runs;
mod seats;
mod sends;
mod sessions;
mod settings;
mod states;
mod stores;
mod tools;
mod transcripts;
mod watching;
mod widths;
