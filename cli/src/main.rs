//! The program: arguments in, words out. Everything that must be right lies in the engine.

mod args;
mod attend;
mod commands;
mod exit;
mod filter;
mod glob;
mod office;
mod output;
mod screen;
mod seat;
mod settings;
mod shown;
mod sieve;
mod signal;
mod store;
mod typed;
mod when;

fn main() -> std::process::ExitCode {
    commands::run(&std::env::args_os().collect::<Vec<_>>()).into()
}
