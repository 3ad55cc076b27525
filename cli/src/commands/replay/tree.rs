//! `replay --tree`: one flow as a tree, a line a fact.

use annals_engine::Engine;
use annals_engine::clock::Timestamp;
use annals_engine::session::index::{Lens, Names};
use annals_engine::session::moment::Moment;
use annals_engine::session::outbox::Outgoing;
use annals_engine::session::runs::Run;
use annals_engine::session::tree::{self, Sent, Spawn, Step, Stories, Tree, What};
use serde::Serialize;

use super::{Past, tell};
use crate::exit::{Exit, Failure};
use crate::output::table::cut;
use crate::output::text::{count, grouped, one_line};
use crate::output::time::TimeStyle;
use crate::output::{Format, Output};
use crate::when::Bound;
use crate::{settings, store};

/// The answer as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    ok: bool,
    as_of: u64,
    now: Timestamp,
    gaps: u64,
    missing: u64,
    tree: Tree,
}

pub(super) fn run(
    key: &str,
    engine: &Engine,
    until: Option<Bound>,
    out: &mut Output,
) -> Result<Exit, Failure> {
    let past = Past::<Stories>::read(engine, until, out.now)?;
    out.now = past.now;
    let sessions = past.sessions.state();
    let found = sessions.find(key, &store::operator()?.agent, Names::Prefix)?;
    let rules = settings::get()?.time_rules();
    let lens = Lens { rules: &rules, now: past.now };
    let tree = tree::tree(&found.key, sessions, &past.more, &lens);
    if out.format == Format::Json {
        let (gaps, missing) = (past.losses.ranges(), past.losses.events());
        let as_of = past.sessions.as_of().0;
        out.object(&Answer { ok: true, as_of, now: past.now, gaps, missing, tree })?;
        return Ok(Exit::Ok);
    }
    tell(&past.losses, out)?;
    let drawing = Drawing { style: out.time_style() };
    draw(&drawing.session(&tree, true), "", "", out)?;
    Ok(Exit::Ok)
}

/// A line with the lines that stand below it.
struct Line {
    text: String,
    below: Vec<Line>,
}

impl Line {
    const fn new(text: String) -> Self {
        Self { text, below: Vec::new() }
    }
}

fn draw(line: &Line, margin: &str, below: &str, out: &mut Output) -> Result<(), Failure> {
    let text = format!("{margin}{}", out.seen(&line.text));
    out.line(&out.width.map_or_else(|| text.clone(), |width| cut(&text, width)))?;
    let last = line.below.len().saturating_sub(1);
    for (index, inner) in line.below.iter().enumerate() {
        let (branch, trunk) = if index == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        draw(inner, &format!("{below}{branch}"), &format!("{below}{trunk}"), out)?;
    }
    Ok(())
}

/// How a tree becomes lines.
struct Drawing {
    style: TimeStyle,
}

impl Drawing {
    fn session(&self, tree: &Tree, is_root: bool) -> Line {
        let status = tree.status.map_or("never opened", |status| status.as_str());
        let label = tree.label.as_ref().map(|label| format!(", {}", one_line(label)));
        let mut text = format!("{}  {status}{}", one_line(&tree.key), label.unwrap_or_default());
        if let Some(parent) = tree.parents.first().filter(|_| is_root) {
            text.push_str(&format!(", spawned by {}", one_line(parent)));
        }
        if tree.left_out {
            text.push_str(" (left out here)");
        }
        Line { text, below: tree.steps.iter().map(|step| self.step(step)).collect() }
    }

    /// A fact in its place.
    fn at(&self, moment: Moment, text: &str) -> Line {
        Line::new(format!("#{} {}  {text}", moment.seq, self.style.show(moment.at)))
    }

    fn step(&self, Step { moment, what }: &Step) -> Line {
        match what {
            What::Opened { session_id } => {
                self.at(*moment, &format!("opened, part {}", one_line(session_id)))
            }
            What::Reset { session_id, reason, .. } => {
                self.at(*moment, &format!("reset ({reason}), part {}", one_line(session_id)))
            }
            What::Resumed { session_id } => {
                self.at(*moment, &format!("resumed, part {}", one_line(session_id)))
            }
            What::Archived { reason } => self.at(*moment, &format!("archived ({reason})")),
            What::Turns(turns) => self.at(*moment, &turns_text(turns, moment.seq)),
            What::Run { run } => self.run(*moment, run),
            What::Spawn(spawn) => self.spawn(*moment, spawn),
            What::Send(sent) => self.sent(*moment, sent),
            What::ExchangeEnded { rounds, reason, .. } => {
                let rounds = count(u64::from(*rounds), "round");
                self.at(*moment, &format!("exchange ended after {rounds} ({reason})"))
            }
            What::Refused { verb, target, reason } => {
                let (verb, target) = (one_line(verb), one_line(target));
                self.at(*moment, &format!("refused: {verb} {target} ({})", one_line(reason)))
            }
            What::Outgoing { outgoing } => self.outgoing(outgoing),
        }
    }

    fn spawn(&self, moment: Moment, spawn: &Spawn) -> Line {
        let label = spawn.label.as_ref().map(|label| format!(" {}", one_line(label)));
        let mut line = self.at(moment, &format!("spawn{}", label.unwrap_or_default()));
        if let Some(run) = &spawn.run {
            line.below.push(self.run_by_name(run));
        }
        line.below.extend(spawn.announce.iter().map(|announce| self.outgoing(announce)));
        match &spawn.child {
            Some(child) => line.below.push(self.session(child, false)),
            None => line.below.push(Line::new("to a session that nobody knows".to_owned())),
        }
        line
    }

    fn sent(&self, moment: Moment, sent: &Sent) -> Line {
        let target = sent.target_key.as_deref().map_or("?".to_owned(), one_line);
        let round = sent.round.map_or(String::new(), |round| format!(", round {round}"));
        let mut line = self.at(moment, &format!("send to {target}{round}"));
        line.below.extend(sent.run.iter().map(|run| self.run_by_name(run)));
        line
    }

    /// A run where its request is shown already by the line above.
    fn run_by_name(&self, run: &Run) -> Line {
        let mut below = Vec::new();
        if let Some(requested) = run.requested {
            below.push(self.at(requested, "requested"));
        }
        below.extend(self.after_request(run));
        Line { text: format!("run {}  {}", one_line(&run.run_id), run.state), below }
    }

    fn run(&self, moment: Moment, run: &Run) -> Line {
        let kind = run.kind.map_or(String::new(), |kind| format!(" ({kind})"));
        let text = format!("run {}  {}{kind}", one_line(&run.run_id), run.state);
        Line { below: self.after_request(run), ..self.at(moment, &text) }
    }

    fn after_request(&self, run: &Run) -> Vec<Line> {
        let mut lines = Vec::new();
        if let (Some(claimed), Some(owner)) = (run.claimed, &run.owner) {
            let (worker, host) = (one_line(&owner.worker), one_line(&owner.host));
            lines.push(self.at(claimed, &format!("claimed by {worker} on {host}")));
        }
        lines.extend(run.started.map(|started| self.at(started, "started")));
        if let Some(kill) = &run.kill {
            let (by, reason) = (one_line(&kill.by), one_line(&kill.reason));
            lines.push(self.at(kill.moment, &format!("kill asked for by {by}: {reason}")));
        }
        if let (Some(finished), Some(end)) = (run.finished, &run.end) {
            let mut text = run.state.to_string();
            if let Some(reason) = &end.reason {
                text.push_str(&format!(" ({})", one_line(reason)));
            }
            if let Some(tokens) = &end.tokens {
                let (read, written) = (grouped(tokens.r#in), grouped(tokens.out));
                text.push_str(&format!(", tokens {read} in, {written} out"));
            }
            if let Some(reply) = end.reply_seq {
                text.push_str(&format!(", reply #{reply}"));
            }
            lines.push(self.at(finished, &text));
        }
        lines
    }

    fn outgoing(&self, outgoing: &Outgoing) -> Line {
        let mut line = Line::new(format!("{}  {}", outgoing.cargo, outgoing.state));
        line.below.extend(outgoing.requested.map(|requested| self.at(requested, "requested")));
        for attempt in &outgoing.attempts {
            let sink = attempt.sink.as_ref().map(|sink| format!(" through {}", one_line(sink)));
            let why = attempt.reason.as_ref().map(|why| format!(": {}", one_line(why)));
            let text = format!("attempted{}{}", sink.unwrap_or_default(), why.unwrap_or_default());
            line.below.push(self.at(attempt.moment, &text));
        }
        if let Some(ended) = outgoing.ended {
            let reason = outgoing.reason.as_ref().map(|reason| format!(" ({})", one_line(reason)));
            let text = format!("{}{}", outgoing.state, reason.unwrap_or_default());
            line.below.push(self.at(ended, &text));
        }
        line
    }
}

fn turns_text(turns: &tree::Turns, first: u64) -> String {
    let kinds = [
        (turns.user, "user"),
        (turns.assistant, "assistant"),
        (turns.tool_result, "toolResult"),
        (turns.system, "system"),
    ];
    let all: u64 = kinds.iter().map(|(number, _)| number).sum();
    let told = kinds.iter().filter(|(number, _)| *number > 0);
    let told: Vec<String> =
        told.map(|(number, role)| format!("{} {role}", grouped(*number))).collect();
    let to =
        if turns.last.seq > first { format!(", to #{}", turns.last.seq) } else { String::new() };
    format!("{}: {}{to}", count(all, "turn"), told.join(", "))
}
