//! An event in one line for eyes: when, where in the log, who, what, and as much of the text as there is room for.
//! Without a width nothing is cut.

use annals_engine::session::audit::Message;
use annals_engine::session::content;
use annals_engine::session::event::{Event, Json, Members, Role, Turn};
use annals_engine::store::Damage;
use unicode_width::UnicodeWidthStr;

use super::{Apart, Shown, gap};
use crate::output::color::Paint;
use crate::output::table::{cut, dress};
use crate::output::text::one_line;
use crate::output::time::TimeStyle;

/// How lines look.
pub(crate) struct LineStyle {
    pub(crate) paint: Paint,
    pub(crate) time: TimeStyle,
    /// How many cells a line has; `None` to cut nothing.
    pub(crate) width: Option<usize>,
}

/// How many characters at the end of a shortened name stay: ids that were made in one moment differ there.
const TAIL: usize = 6;

/// Blanks between the columns of a line.
const GAP: usize = 2;

/// Between the two ends of a message.
const ARROW: &str = " -> ";

impl LineStyle {
    /// An event in one line.
    pub(crate) fn event(&self, shown: &Shown) -> String {
        let time = format!("{:>10}", self.time.show(shown.at));
        let seq = format!("{:>6}", format!("#{}", shown.record.seq));
        let what = what(shown);
        let used = time.width() + seq.width() + what.width() + 4 * GAP;
        let room = self.width.map(|width| width.saturating_sub(used));
        let share = self.width.zip(room).map(|(width, room)| room.min(width / 2));
        let (who, dressed_who) = self.who(shown, share);
        let fields = if self.width.is_some() { Fields::Short } else { Fields::Whole };
        let mut text = one_line(&summary(shown, fields));
        if let Some(room) = room {
            text = cut(&text, room.saturating_sub(who.width()));
        }
        let what_style = if shown.went_wrong() { self.paint.warning() } else { self.paint.title() };
        let line = format!(
            "{}  {}  {dressed_who}  {}  {text}",
            dress(&time, self.paint.faint()),
            dress(&seq, self.paint.faint()),
            dress(&what, what_style)
        );
        line.trim_end().to_owned()
    }

    /// Missing events in one loud line, never cut.
    pub(crate) fn gap(&self, damage: &Damage) -> String {
        dress(&format!("!!!!!!!! GAP  {}", one_line(&gap::sentence(damage))), self.paint.loud())
    }

    /// Who speaks, plain to be measured and dressed to be shown.
    fn who(&self, shown: &Shown, share: Option<usize>) -> (String, String) {
        let Some(message) = &shown.message else {
            return self.key(shown.record.stream.as_str(), share);
        };
        let (from, to) = (message.from.as_str(), message.to.as_str());
        let share = share.map(|share| share.saturating_sub(ARROW.len()));
        let from_share = share.map(|share| share.saturating_sub((share / 2).min(to.width())));
        let (from, from_dressed) = self.key(from, from_share);
        let to_share = share.map(|share| share.saturating_sub(from.width()));
        let (to, to_dressed) = self.key(to, to_share);
        (format!("{from}{ARROW}{to}"), format!("{from_dressed}{ARROW}{to_dressed}"))
    }

    fn key(&self, key: &str, share: Option<usize>) -> (String, String) {
        let plain = squeeze(&one_line(key), share);
        let dressed = dress(&plain, self.paint.session(key));
        (plain, dressed)
    }
}

/// What happened: a message by its kind and what was decided, a turn by its role, everything else by its type.
fn what(shown: &Shown) -> String {
    if let Some(message) = &shown.message {
        let decision = message.decision.as_deref().unwrap_or_default();
        return format!("{} {decision}", message.kind).trim_end().to_owned();
    }
    match shown.event() {
        Some(Event::Turn(turn)) => turn.role.as_str().to_owned(),
        _ => shown.record.kind.as_str().to_owned(),
    }
}

/// What an event says beyond that: of a message the facts that tell it from others, then the text.
pub(crate) fn summary(shown: &Shown, of: Fields) -> String {
    let text = match shown.event() {
        Some(Event::Turn(turn)) => turn_text(&turn, shown),
        Some(Event::RunOutput(output)) => output.text,
        _ => match &shown.message {
            Some(message) => message.text.clone().unwrap_or_default(),
            None => fields(shown.payload().as_str(), of),
        },
    };
    match shown.message.as_ref().map(facts) {
        Some(facts) if text.is_empty() => facts,
        Some(facts) if !facts.is_empty() => format!("{facts}: {text}"),
        _ => text,
    }
}

/// The small facts of a message.
fn facts(message: &Message) -> String {
    let mut facts = Vec::new();
    facts.extend(message.run.as_ref().map(|run| format!("run {run}")));
    facts.extend(message.round.map(|round| format!("round {round}")));
    facts.extend(message.reason.as_ref().map(|reason| format!("because {reason}")));
    facts.join(", ")
}

fn turn_text(turn: &Turn, shown: &Shown) -> String {
    let said = match (&turn.content, &shown.apart) {
        (_, Apart::Lost(why)) => format!("[{why}]"),
        (Some(content), _) => content::plain(content),
        (None, _) => String::new(),
    };
    match &turn.tool_name {
        Some(tool) if turn.role == Role::ToolResult => format!("{tool}: {said}"),
        _ => said,
    }
}

/// Members that a line says in another place, or that only a program wants.
const PASSED_OVER: [&str; 4] = ["at", "sessionId", "runId", "source"];

/// How much of the members of a payload is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fields {
    /// Everything.
    Whole,
    /// Of a long value its beginning, so that the others have room.
    Short,
}

/// Members of a payload as `name=value`.
fn fields(data: &str, of: Fields) -> String {
    const LONG: usize = 60;
    let members: Members = serde_json::from_str(data).unwrap_or_default();
    let told =
        |(name, value): &&(String, Json)| !PASSED_OVER.contains(&name.as_str()) && !value.is_null();
    let shown = members.0.iter().filter(told);
    let texts = shown.map(|(name, value)| {
        let text = value.read::<String>().unwrap_or_else(|| value.as_str().to_owned());
        match of {
            Fields::Whole => format!("{name}={text}"),
            Fields::Short => format!("{name}={}", cut(&one_line(&text), LONG)),
        }
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// A name in at most `share` cells: its beginning and its last few characters.
fn squeeze(text: &str, share: Option<usize>) -> String {
    let Some(share) = share.filter(|share| *share < text.width()) else { return text.to_owned() };
    let start = text.char_indices().rev().nth(TAIL - 1).map_or(0, |(index, _)| index);
    let (head, tail) = text.split_at(start);
    if share < 2 * TAIL || tail.width() >= share {
        return cut(text, share);
    }
    format!("{}{tail}", cut(head, share - tail.width()))
}
