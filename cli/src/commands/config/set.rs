//! `config set`: one setting of the file changed, everything else as it stands.

use annals_engine::config::{Edited, Origin, edit, read_file, write_file};
use annals_tools::fault::with_causes;
use annals_tools::http::HttpSettings;
use serde::Serialize;
use serde_json::Value;

use super::{HIDDEN, place, text};
use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::text::one_line;
use crate::output::{Format, say};
use crate::settings;

/// Change a setting in the file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Comments, order and spelling of everything else stay; a file that cannot be changed so is left alone. \
A value is checked before anything is written. A list is written a,b or as JSON5, a number as it is, \
and null takes the setting out. A file that is not there is made.

Examples:
  annals config set session.reset.mode daily
  annals config set 'agents.list[0].run.args' '[\"--model\", \"{model}\"]'
  annals config set session.maxTurns null        the default again
  annals config set session.maxTurns 20 --dry-run")]
pub(crate) struct Set {
    /// The setting's path, as `config show --all` prints it
    #[arg(value_hint = clap::ValueHint::Other)]
    path: String,
    /// Its value
    #[arg(allow_hyphen_values = true, value_hint = clap::ValueHint::Other)]
    value: String,
    /// Say what would change and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// What changed, as an object.
#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    path: &'a str,
    file: String,
    was: Option<Value>,
    is: Option<Value>,
    changed: bool,
}

pub(crate) fn run(args: &Set, context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    out.only("config set", &[Format::Table, Format::Json])?;
    let file = place()?;
    let before = read_file(&file)?;
    let edited = edit(before.as_deref().unwrap_or("{}\n"), &args.path, &args.value)
        .map_err(|e| e.path(&file))?;
    let changed = edited.was != edited.is;
    if changed && !args.dry_run {
        write_file(&file, before.as_deref(), &edited.text)?;
    }
    let shown = file.display().to_string();
    let Edited { was, is, secret, .. } = &edited;
    let value = |value: &Option<Value>| match value {
        Some(_) if *secret => Some(Value::from(HIDDEN)),
        other => other.clone(),
    };
    let (was, is) = (value(was), value(is));
    if out.format == Format::Json {
        let path = args.path.as_str();
        out.object(&Answer { ok: true, path, file: shown, was, is, changed })?;
        return Ok(Exit::Ok);
    }
    let word = |value: &Option<Value>| value.as_ref().map_or("not set".to_owned(), text);
    let path = one_line(&args.path);
    let line = match (changed, args.dry_run) {
        (false, _) => format!("{path} is {} already", word(&is)),
        (true, true) => format!("{path} is {}, would be {}", word(&was), word(&is)),
        (true, false) => format!("{path} was {}, is {}", word(&was), word(&is)),
    };
    out.line(&one_line(&line))?;
    out.line(&format!("in {shown}"))?;
    out.flush()?;
    tell_what_is_stronger(args, &file, &edited);
    Ok(Exit::Ok)
}

/// The file is not the last word: the environment is stronger, and the server has a word too. What else is wrong there is
/// told by whoever needs it.
fn tell_what_is_stronger(args: &Set, file: &std::path::Path, edited: &Edited) {
    let Ok((config, _)) = settings::with(Some((file, &edited.text))) else { return };
    let origin = config.get(&args.path).map(|held| &held.origin);
    if let Some(origin @ (Origin::Environment(_) | Origin::Flag)) = origin {
        say(&format!("note: {origin} is in force, and not the file"));
    }
    // Some settings only fit together: the others may be set next, so that this one is no error.
    let of_server = ["http.", "webhook."].iter().any(|part| args.path.starts_with(part));
    if let (true, Err(error)) = (of_server, HttpSettings::of(&config)) {
        let why = one_line(&with_causes(&error));
        say(&format!("note: as it stands `annals serve` will not begin: {why}"));
    }
}
