//! `config`: which settings are in force, where each came from, and the file that they stand in.

mod init;
mod set;

use std::path::PathBuf;

use annals_engine::config::table::SETTINGS;
use annals_engine::config::{Config, Held, Origin};
use serde::Serialize;
use serde_json::Value;

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::table::{Cell, Column};
use crate::output::text::one_line;
use crate::output::{Format, Output};
use crate::{settings, store};

/// Show and change settings
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    Init(init::Init),
    Show(Show),
    Get(Get),
    Set(set::Set),
    Path(Path),
}

/// Whether a verb shows settings and changes none.
pub(crate) const fn only_shows(verb: &Verb) -> bool {
    matches!(verb, Verb::Show(_) | Verb::Get(_) | Verb::Path(_))
}

/// Show the settings in force, and where each came from
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A setting comes from a flag, else from the environment, else from the file, else it has its default. \
Secrets are never shown.

Examples:
  annals config show
  annals config show --all                   those too that have no value
  annals config show --json | jq '.settings[] | select(.origin != \"default\")'")]
pub(crate) struct Show {
    /// Also what has no value, and the variables of each
    #[arg(long)]
    all: bool,
}

/// Print the value of a setting
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annals config get session.maxTurns
  annals config get session.sendPolicy --json")]
pub(crate) struct Get {
    /// The setting's path, as `config show` prints it
    #[arg(value_hint = clap::ValueHint::Other)]
    path: String,
}

/// Print where the file of settings is
#[derive(Debug, clap::Args)]
pub(crate) struct Path {}

/// A setting, as an object.
#[derive(Serialize)]
struct Shown<'a> {
    path: &'a str,
    value: Option<&'a Value>,
    origin: String,
    variables: &'a [&'a str],
}

/// What stands in the place of a secret.
const HIDDEN: &str = "(hidden)";

pub(crate) fn run(verb: &Verb, context: &mut Context) -> Result<Exit, Failure> {
    match verb {
        Verb::Init(args) => init::run(args, context),
        Verb::Show(args) => show(args, context),
        Verb::Get(args) => get(args, context),
        Verb::Set(args) => set::run(args, context),
        Verb::Path(_) => path(context),
    }
}

fn show(args: &Show, context: &mut Context) -> Result<Exit, Failure> {
    let store = store_in_force(context);
    let out = &mut context.out;
    out.only("config show", &[Format::Table, Format::Json, Format::Jsonl])?;
    let config = settings::get()?;
    let hidden = Value::from(HIDDEN);
    let rows = rows(config, args.all, &hidden, store.as_ref());
    match out.format {
        Format::Json => {
            let file = config.file().map(|file| file.path.display().to_string());
            out.object(&serde_json::json!({"ok": true, "file": file, "settings": rows}))?;
        }
        Format::Jsonl => rows.iter().try_for_each(|row| out.object(row))?,
        _ => table(&rows, args.all, out)?,
    }
    Ok(Exit::Ok)
}

/// The setting of the store's folder, whose default depends on the person.
const STORE: &str = "store";

/// The folder that is used; `None` when there is none that could be.
fn store_in_force(context: &Context) -> Option<Value> {
    store::folder(&context.global).ok().map(|folder| folder.display().to_string().into())
}

/// Every setting with a value, and with `all` every other one too, by path.
fn rows<'a>(
    config: &'a Config,
    all: bool,
    hidden: &'a Value,
    store: Option<&'a Value>,
) -> Vec<Shown<'a>> {
    let variables = |path: &str| {
        SETTINGS.iter().find(|setting| setting.path == path).map_or(&[][..], |s| s.variables)
    };
    let mut rows: Vec<Shown<'_>> = config
        .iter()
        .map(|(path, held)| Shown {
            path,
            value: Some(match store {
                _ if held.secret => hidden,
                Some(store) if path == STORE => store,
                _ => &held.value,
            }),
            origin: held.origin.to_string(),
            variables: variables(path),
        })
        .collect();
    if let Some(store) = store.filter(|_| config.get(STORE).is_none()) {
        rows.push(Shown {
            path: STORE,
            value: Some(store),
            origin: Origin::Default.to_string(),
            variables: variables(STORE),
        });
    }
    if all {
        let shown: Vec<&str> = rows.iter().map(|row| row.path).collect();
        let unset = SETTINGS.iter().filter(|setting| !shown.contains(&setting.path));
        rows.extend(unset.map(|setting| Shown {
            path: setting.path,
            value: None,
            origin: String::new(),
            variables: setting.variables,
        }));
    }
    rows.sort_by_key(|row| row.path);
    rows
}

fn table(rows: &[Shown<'_>], all: bool, out: &mut Output) -> Result<(), Failure> {
    let mut columns = vec![
        Column::shrinking("SETTING", 20),
        Column::shrinking("VALUE", 12),
        Column::shrinking("FROM", 8),
    ];
    if all {
        columns.push(Column::shrinking("VARIABLES", 12).rank(1));
    }
    let cells: Vec<Vec<Cell>> = rows
        .iter()
        .map(|row| {
            let value = row.value.map(text).unwrap_or_default();
            let mut cells =
                vec![one_line(row.path).into(), one_line(&value).into(), row.origin.clone().into()];
            if all {
                cells.push(row.variables.join(" ").into());
            }
            cells
        })
        .collect();
    out.table(&columns, &cells)
}

fn get(args: &Get, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("config get", &[Format::Table, Format::Json])?;
    let config = settings::get()?;
    let store = store_in_force(context).filter(|_| args.path == STORE);
    let of_store = store.map(|value| Held {
        value,
        origin: config.get(STORE).map_or(Origin::Default, |held| held.origin.clone()),
        secret: false,
    });
    let Some(held) = of_store.as_ref().or_else(|| config.get(&args.path)) else {
        if SETTINGS.iter().any(|setting| setting.path == args.path) {
            return Err(Failure::not_found(format!("{} has no value", args.path)));
        }
        return Err(Failure::not_found(format!("{} is not a setting", one_line(&args.path)))
            .hint("`annals config show --all` lists them"));
    };
    let Held { value, origin, secret } = held;
    if *secret {
        return Err(Failure::new(Exit::Denied, "secret", format!("{} is a secret", args.path))
            .hint(format!("it comes from the {origin}")));
    }
    let out = &mut context.out;
    if out.format == Format::Json {
        let origin = origin.to_string();
        let path = &args.path;
        out.object(
            &serde_json::json!({"ok": true, "path": path, "value": value, "origin": origin}),
        )?;
    } else {
        out.line(&one_line(&text(value)))?;
    }
    Ok(Exit::Ok)
}

fn path(context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    out.only("config path", &[Format::Table, Format::Json])?;
    let path = place()?;
    if out.format == Format::Json {
        out.object(&serde_json::json!({"ok": true, "path": path.display().to_string()}))?;
    } else {
        out.line(&path.display().to_string())?;
    }
    Ok(Exit::Ok)
}

/// Where the file of settings is, or would be.
///
/// # Errors
/// Not found when there is no home folder for one and nobody names it.
fn place() -> Result<PathBuf, Failure> {
    settings::place().0.ok_or_else(|| {
        Failure::not_found("there is no home folder for a file of settings")
            .hint("name one with --config FILE or ANNALS_CONFIG")
    })
}

/// A value for eyes: texts without quotes.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
