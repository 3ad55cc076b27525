//! The program: arguments in, words out. Everything that must be right lies in the engine.

mod args;
mod commands;
mod exit;
mod filter;
mod glob;
mod office;
mod output;
mod settings;
mod shown;
mod sieve;
mod signal;
mod store;
mod when;

fn main() -> std::process::ExitCode {
    commands::run(&std::env::args_os().collect::<Vec<_>>()).into()
}
