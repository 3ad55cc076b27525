//! `graph`: who has to do with whom, as a picture or a table.

use std::collections::BTreeMap;

use annals_engine::session::audit::NOBODY;
use annals_engine::session::deeds::{DeedKind, Edge, graph, unjoined};
use serde::Serialize;

use crate::commands::Context;
use crate::commands::timeline::Told;
use crate::exit::{Exit, Failure};
use crate::filter::FilterArgs;
use crate::output::table::{Cell, Column};
use crate::output::text::{count, one_line};
use crate::output::{Format, Output, say};
use crate::shown::mask::MaskArgs;

/// Draw who sent, spawned and announced to whom
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each edge is one sort of deed between two sessions: how often it was done, and with what outcomes. \
`?` stands for a session that no log that was read names; such edges are counted at the end. \
Filters choose deeds, as in `annals timeline`, and change none.

Examples:
  annals graph
  annals graph --as mermaid > flows.mmd
  annals graph --as dot --since yesterday | dot -Tsvg > flows.svg
  annals graph --json | jq '.edges[] | select(.outcomes.error)'")]
pub(crate) struct Args {
    /// What to write
    #[arg(long = "as", value_name = "WHAT", value_enum, default_value_t)]
    what: What,
    /// Deliveries to channels too
    #[arg(long)]
    deliveries: bool,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    mask: MaskArgs,
}

/// What is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum What {
    #[default]
    Text,
    Mermaid,
    Dot,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    ok: bool,
    edges: &'a [Edge],
    unjoined: usize,
    gaps: u64,
    as_of: u64,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    out.only("graph", &[Format::Table, Format::Json])?;
    args.mask.on(out)?;
    let told = Told::read(&args.filter, &context.global, out)?;
    let wanted = told.deeds.iter();
    let wanted = wanted.filter(|deed| args.deliveries || deed.kind != DeedKind::Delivery);
    let edges = graph(&wanted.cloned().collect::<Vec<_>>());
    if out.format == Format::Json {
        let unjoined = unjoined(&told.deeds);
        let (gaps, as_of) = (told.gaps, told.as_of);
        out.object(&Answer { ok: true, edges: &edges, unjoined, gaps, as_of })?;
        return Ok(Exit::Ok);
    }
    match args.what {
        What::Text => table(&edges, out)?,
        What::Mermaid => mermaid(&edges, out)?,
        What::Dot => dot(&edges, out)?,
    }
    out.flush()?;
    if edges.is_empty() {
        told.nothing();
    }
    told.notes();
    Ok(Exit::Ok)
}

fn table(edges: &[Edge], out: &mut Output) -> Result<(), Failure> {
    let columns = [
        Column::shrinking("FROM", 12),
        Column::fixed("WHAT"),
        Column::shrinking("TO", 12),
        Column::shrinking("OUTCOMES", 12),
        Column::fixed("LAST"),
    ];
    let style = out.time_style();
    let row = |edge: &Edge| -> Vec<Cell> {
        vec![
            one_line(&edge.from).into(),
            edge.kind.as_str().into(),
            one_line(&edge.to).into(),
            outcomes(&edge.outcomes).into(),
            style.show(edge.last).into(),
        ]
    };
    if edges.is_empty() {
        return Ok(());
    }
    out.table(&columns, &edges.iter().map(row).collect::<Vec<_>>())
}

fn outcomes(all: &BTreeMap<String, u64>) -> String {
    let one = |(outcome, count): (&String, &u64)| format!("{count} {outcome}");
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn label(edge: &Edge) -> String {
    format!("{}: {}", edge.kind, outcomes(&edge.outcomes))
}

/// The sessions in the order in which they come, each with a name that every language takes.
fn nodes(edges: &[Edge]) -> Vec<&str> {
    let mut nodes = Vec::new();
    for name in edges.iter().flat_map(|edge| [edge.from.as_str(), edge.to.as_str()]) {
        if !nodes.contains(&name) {
            nodes.push(name);
        }
    }
    nodes
}

fn place(nodes: &[&str], name: &str) -> usize {
    nodes.iter().position(|node| *node == name).unwrap_or_default()
}

/// A flowchart of Mermaid. Its texts take entities where quotes and brackets would end them.
fn mermaid(edges: &[Edge], out: &mut Output) -> Result<(), Failure> {
    let text = |text: &str| {
        let mut safe = String::new();
        for c in one_line(text).chars() {
            match c {
                '"' | '#' | '&' | '<' | '>' | '|' | '`' | '\\' => {
                    safe.push_str(&format!("#{};", u32::from(c)));
                }
                c => safe.push(c),
            }
        }
        safe
    };
    out.line("flowchart LR")?;
    let nodes = nodes(edges);
    for (index, name) in nodes.iter().enumerate() {
        let shape = if *name == NOBODY { "{{\"?\"}}" } else { "" };
        match shape.is_empty() {
            true => out.line(&format!("  n{index}[\"{}\"]", text(name)))?,
            false => out.line(&format!("  n{index}{shape}"))?,
        }
    }
    for edge in edges {
        let (from, to) = (place(&nodes, &edge.from), place(&nodes, &edge.to));
        let arrow = if edge.kind == DeedKind::Refusal { "-.->" } else { "-->" };
        out.line(&format!("  n{from} {arrow}|\"{}\"| n{to}", text(&label(edge))))?;
    }
    Ok(())
}

/// A digraph of Graphviz.
fn dot(edges: &[Edge], out: &mut Output) -> Result<(), Failure> {
    let text = |text: &str| one_line(text).replace('\\', "\\\\").replace('"', "\\\"");
    out.line("digraph annals {")?;
    out.line("  rankdir=LR; node [shape=box];")?;
    let nodes = nodes(edges);
    for (index, name) in nodes.iter().enumerate() {
        out.line(&format!("  n{index} [label=\"{}\"];", text(name)))?;
    }
    for edge in edges {
        let (from, to) = (place(&nodes, &edge.from), place(&nodes, &edge.to));
        let style = if edge.kind == DeedKind::Refusal { ", style=dashed" } else { "" };
        out.line(&format!("  n{from} -> n{to} [label=\"{}\"{style}];", text(&label(edge))))?;
    }
    out.line("}")
}

impl Told {
    /// Says what the picture does not show.
    pub(crate) fn notes(&self) {
        let unjoined = unjoined(&self.deeds) as u64;
        if unjoined > 0 {
            say(&format!("{} known at one end alone (?)", count(unjoined, "deed")));
        }
        if self.gaps > 0 {
            let gaps = count(self.gaps, "gap");
            say(&format!("{gaps} in what was read: `annals verify` says more"));
        }
    }
}
