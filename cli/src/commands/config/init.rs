//! `config init`: a file of settings to begin with.

use annals_engine::config::{read_file, write_file};

use super::place;
use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::{Format, say};

/// Write a file of settings to begin with
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The file says of each setting what it does; most stand in it as examples that have no effect. A file \
that is there is not written over without --yes, and is then kept beside the new one, as FILE.bak.

Examples:
  annals config init
  annals config init --dry-run                   only show it
  annals config init --config ./annals.json5")]
pub(crate) struct Init {
    /// Print what would be written
    #[arg(long)]
    dry_run: bool,
}

/// What is written.
const TEXT: &str = include_str!("annals.json5");

pub(crate) fn run(args: &Init, context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    out.only("config init", &[Format::Table, Format::Json])?;
    let path = place()?;
    let shown = path.display().to_string();
    if args.dry_run {
        if out.format == Format::Json {
            out.object(&serde_json::json!({"ok": true, "path": shown, "text": TEXT}))?;
        } else {
            out.bytes(TEXT.as_bytes())?;
            say(&format!("note: this is what would be written to {shown}"));
        }
        return Ok(Exit::Ok);
    }
    let before = read_file(&path)?;
    let mut kept = None;
    if let Some(before) = &before {
        if !context.global.yes {
            let message = format!("there is a file of settings already: {shown}");
            return Err(Failure::new(Exit::Busy, "exists", message)
                .hint("--yes writes another and keeps this one as FILE.bak"));
        }
        let mut backup = path.clone().into_os_string();
        backup.push(".bak");
        let backup = std::path::PathBuf::from(backup);
        write_file(&backup, read_file(&backup)?.as_deref(), before)?;
        kept = Some(backup.display().to_string());
    }
    write_file(&path, before.as_deref(), TEXT)?;
    let out = &mut context.out;
    if out.format == Format::Json {
        out.object(&serde_json::json!({"ok": true, "path": shown, "kept": kept}))?;
        return Ok(Exit::Ok);
    }
    out.line(&format!("wrote {shown}"))?;
    if let Some(kept) = kept {
        out.line(&format!("kept what was there as {kept}"))?;
    }
    Ok(Exit::Ok)
}
