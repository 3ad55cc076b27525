//! `completions`: what a shell needs to complete the command line.

use clap_complete::Shell;

use crate::args;
use crate::commands::Context;
use crate::exit::{Exit, Failure};

/// Print the completion script of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annals completions bash > ~/.local/share/bash-completion/completions/annals
  annals completions fish > ~/.config/fish/completions/annals.fish
  annals completions zsh > ~/.zfunc/_annals")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "annals", &mut script);
    context.out.bytes(&script)?;
    Ok(Exit::Ok)
}
