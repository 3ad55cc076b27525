//! `export`: the log for other programs, and sessions for people to keep.

mod document;
mod prose;
mod transcript;

use annals_engine::id::StoreId;
use annals_engine::store::{Cursor, View};

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::filter::{FilterArgs, Reach};
use crate::output::text::count;
use crate::output::{Format, Output, say};
use crate::shown::mask::MaskArgs;
use crate::shown::{cloud_event, gap};
use crate::sieve::{Sieve, Step};
use crate::store;
use document::{Document, Markup};
use transcript::Transcript;

/// Write events for other programs, or sessions to read
#[derive(Debug, clap::Args)]
#[command(after_help = "\
As CloudEvents each line is one event in structured JSON: `stream` is its subject, `seq` its sequence \
(20 digits, so that it sorts as text), `flow` its correlationid, `cause` its causationid. `time` says \
when it happened, `recordedtime` when it was appended. The log's own housekeeping is among them. Missing events are events of the type \
annals.gap. `-o raw` writes the lines of the log byte for byte instead, but those with a secret.

Secrets (keys, tokens, passwords, what security.maskValues and maskEnv name) leave as [masked:RULE] in \
every form; --no-mask writes them as they were said, for a copy that should be whole.

As jsonl each line is something that a session said or that became of it: `session` is its key, `type` \
is turn for what was said, `sessionId` the part; `content`, `calls`, `tokens` and all else as they were \
recorded. `annals import FILE` takes it into another store, where the history is the same; again adds \
nothing. Runs and messages between sessions are no part of it, and what is left out is counted at the end.

As Markdown and as text, what was said is whole; what is left out, such as the bytes of pictures, is \
named in its place. Every line that somebody said is quoted (`> `) in Markdown and set in by two \
blanks in text: what stands at the margin is the document's own. In Markdown, HTML, pictures, \
headings, rules and links to anywhere but the web and mail are shown as typed and not acted upon.

Examples:
  annals export > events.jsonl
  annals export agent:main:main --since 7d
  annals export telegram:42 --as markdown > chat.md
  annals export 'telegram:*' --as jsonl > chats.jsonl
  annals export --type turn -o raw | jq -r .stream | sort | uniq -c")]
pub(crate) struct Args {
    /// Only this session, and the runs that work on it: a key, its beginning, or a pattern with * and ?
    #[arg(value_name = "KEY|GLOB", value_hint = clap::ValueHint::Other)]
    key: Option<String>,
    /// What to write
    #[arg(long = "as", value_name = "WHAT", value_enum, default_value_t)]
    what: What,
    /// Begin after this cursor
    #[arg(long, value_name = "CURSOR", value_hint = clap::ValueHint::Other)]
    after: Option<Cursor>,
    /// Fail with exit code 6 when events are missing
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    mask: MaskArgs,
}

/// What is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum What {
    #[default]
    Cloudevents,
    Jsonl,
    Markdown,
    Text,
}

/// Whoever takes the steps.
enum Writer {
    CloudEvents,
    Raw,
    Transcript(Transcript),
    Document(Document),
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    let mut writer = writer(args, out)?;
    let everything = !matches!(writer, Writer::Document(_));
    let filter = args.filter.clone().and_session(args.key.as_deref());
    let mut wanted = if everything { filter.everything() } else { filter }.check(out)?;
    let engine = store::open_read_only(&context.global)?;
    let events = engine.store();
    wanted.resolve(&engine)?;
    let mut sieve = Sieve::new(wanted, false, args.after, events.id());
    sieve.learn_all(events)?;
    let masker = args.mask.masker()?;
    let mut gaps = 0;
    for item in events.read(sieve.read(View::Durable, Reach::Past))? {
        if let Some(step) = sieve.pass(item?, events)? {
            gaps += u64::from(step.misses_something());
            writer.write(&masker.mask(step), events.id(), out)?;
        }
        if sieve.over {
            break;
        }
    }
    writer.end(out)?;
    if gaps > 0 {
        out.flush()?;
        say(&format!("the export has {}: `annals verify` says more", count(gaps, "gap")));
    }
    Ok(if args.strict && gaps > 0 { Exit::Damage } else { Exit::Ok })
}

fn writer(args: &Args, out: &Output) -> Result<Writer, Failure> {
    let markup = match args.what {
        What::Markdown => Markup::Markdown,
        What::Text => Markup::Plain,
        What::Jsonl => {
            let forms = [Format::Table, Format::Json, Format::Jsonl];
            out.only("export --as jsonl", &forms)?;
            return Ok(Writer::Transcript(Transcript::default()));
        }
        What::Cloudevents => {
            let forms = [Format::Table, Format::Json, Format::Jsonl, Format::Raw];
            out.only("export", &forms)?;
            return Ok(if out.format == Format::Raw { Writer::Raw } else { Writer::CloudEvents });
        }
    };
    out.only("export --as markdown|text", &[Format::Table])?;
    Ok(Writer::Document(Document::new(markup)))
}

impl Writer {
    fn write(&mut self, step: &Step, store: StoreId, out: &mut Output) -> Result<(), Failure> {
        match (self, step) {
            (Self::CloudEvents, Step::Event(shown)) => {
                out.object(&cloud_event::of_event(shown, store))
            }
            (Self::CloudEvents, Step::Gap(damage)) => {
                out.object(&cloud_event::of_gap(damage, store))
            }
            (Self::Transcript(transcript), step) => transcript.write(step, out),
            (Self::Document(document), step) => document.write(step, out),
            (Self::Raw, Step::Event(shown)) => out.bytes(&shown.record.to_line()),
            (Self::Raw, Step::Gap(damage)) => {
                out.flush()?;
                say(&format!("GAP: {}", gap::sentence(damage)));
                Ok(())
            }
        }
    }

    fn end(&self, out: &mut Output) -> Result<(), Failure> {
        match self {
            Self::Document(document) => document.end(out),
            Self::Transcript(transcript) => transcript.end(out),
            Self::CloudEvents | Self::Raw => Ok(()),
        }
    }
}
