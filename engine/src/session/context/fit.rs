//! A limit of characters: whole units go, the oldest first. The question that nobody has answered and the last unit stay,
//! shortened where they alone are too long.

use serde_json::Value;

use crate::session::event::Json;

use super::ContextMessage;

/// An empty line stands between two messages.
const BETWEEN: usize = 2;

/// What stands where the beginning of a text was.
const MARK: &str = "[…]";

/// What is left.
#[derive(Default)]
pub(super) struct Fitted {
    pub(super) messages: Vec<ContextMessage>,
    /// Messages that are not there.
    pub(super) left_out: u64,
    /// Characters that are not there, of messages that are.
    pub(super) shortened: u64,
}

/// Units within a limit of characters, if there is one.
pub(super) fn fit(
    mut units: Vec<Vec<ContextMessage>>,
    question: Option<usize>,
    limit: Option<usize>,
) -> Fitted {
    let mut fitted = Fitted::default();
    if let Some(limit) = limit {
        let sizes: Vec<usize> = units.iter().map(|unit| size(unit)).collect();
        let of = |index: usize| sizes.get(index).copied().unwrap_or(0);
        let room = limit.saturating_add(BETWEEN);
        let last = units.len().saturating_sub(1);
        let question = question.filter(|index| *index < last);
        let asked = question.map_or(0, of);
        let begin = first_that_fits(&sizes, question, room.saturating_sub(asked)).min(last);
        if begin == last {
            // Of the two that stay the question has what the last one leaves, and at least half.
            let for_question = asked.min(room.saturating_sub(of(last)).max(room / 2));
            let asking = question.map(|index| (index, for_question));
            for (index, room) in asking.into_iter().chain([(last, room - for_question)]) {
                let Some(unit) = units.get_mut(index) else { continue };
                let over = of(index).saturating_sub(room);
                fitted.shortened += number(over - shorten(unit, over));
            }
        }
        let mut index = 0;
        units.retain(|unit| {
            let stays = index >= begin || question == Some(index);
            index += 1;
            fitted.left_out += if stays { 0 } else { number(unit.len()) };
            stays
        });
    }
    fitted.messages = units.into_iter().flatten().collect();
    fitted
}

/// From where on everything to the end has room; what the question takes is not of it.
fn first_that_fits(sizes: &[usize], question: Option<usize>, mut room: usize) -> usize {
    let fits = |(index, size): &(usize, &usize)| {
        let size = if question == Some(*index) { 0 } else { **size };
        let fits = size <= room;
        room = room.saturating_sub(size);
        fits
    };
    sizes.len() - sizes.iter().enumerate().rev().take_while(fits).count()
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn size(unit: &[ContextMessage]) -> usize {
    unit.iter().map(|message| message.text().chars().count() + BETWEEN).sum()
}

/// Takes so many characters from the beginning of what a unit says; gives how many could not be taken.
fn shorten(unit: &mut [ContextMessage], mut over: usize) -> usize {
    for message in unit {
        if over == 0 {
            break;
        }
        let Some(mut said) = message.content.as_ref().and_then(Json::read::<Value>) else {
            continue;
        };
        let before = over;
        shorten_value(&mut said, &mut over);
        if over < before {
            message.content = Json::of(&said).ok();
        }
    }
    over
}

/// The texts of a content, in their order: what is no text, calls of tools among it, stays.
fn shorten_value(said: &mut Value, over: &mut usize) {
    match said {
        Value::String(text) => shorten_text(text, over),
        Value::Array(blocks) => blocks.iter_mut().for_each(|block| shorten_value(block, over)),
        Value::Object(block) => {
            let is_named = block.get("name").is_some_and(Value::is_string);
            let is_text = block.get("text").is_some_and(Value::is_string);
            let field = if is_text { "text" } else { "content" };
            match block.get_mut(field) {
                Some(Value::Object(_)) | None => {}
                Some(_) if is_named && !is_text => {}
                Some(said) => shorten_value(said, over),
            }
        }
        _ => {}
    }
}

fn shorten_text(text: &mut String, over: &mut usize) {
    let mark = MARK.chars().count();
    let cut = (*over).min(text.chars().count().saturating_sub(mark));
    if cut == 0 {
        return;
    }
    let kept: String = text.chars().skip(cut + mark).collect();
    *text = format!("{MARK}{kept}");
    *over -= cut;
}
