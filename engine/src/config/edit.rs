//! A setting changed in the text of a file, with everything else as it stands: comments, order, spelling.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};

use super::load::agents_have_ids;
use super::strict;
use super::table::Setting;
use super::tree::{Step, leaves, parse, setting_at};

/// A file's text with a setting changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Edited {
    /// The text.
    pub text: String,
    /// What the file said; `None` when it said nothing.
    pub was: Option<Value>,
    /// What it says.
    pub is: Option<Value>,
    /// Whether the values are never shown.
    pub secret: bool,
}

/// Sets a setting in the text of a file. The value is read as one of the environment is, a list also as JSON5; `null` takes
/// the setting out. Nothing else changes.
///
/// # Errors
/// `InvalidInput` for a path at which no setting stands, a value that it may not have, and a text that is no file of
/// settings, before or after; `Unsupported` when the text cannot be changed without losing something.
pub fn edit(text: &str, path: &str, given: &str) -> Result<Edited> {
    let (steps, setting) = setting_at(path)?;
    let is = match given {
        "null" => None,
        given => Some(read(setting, given).map_err(|e| {
            let hint = format!("{path} is {}", setting.legal());
            Error::invalid(e.message()).field(path).hint(hint)
        })?),
    };
    let before = parse(text)?;
    let was = at(&before, &steps).filter(|value| !value.is_null()).cloned();
    let edited =
        |text| Edited { text, was: was.clone(), is: is.clone(), secret: setting.is_secret() };
    if was == is {
        return Ok(edited(text.to_owned()));
    }
    let mut wanted = before;
    put(&mut wanted, &steps, is.as_ref()).ok_or_else(|| unfit(path))?;
    let root = CstRootNode::parse(text, &ParseOptions::default()).map_err(|_| by_hand(path))?;
    let object = root.object_value().ok_or_else(|| by_hand(path))?;
    change(object, &steps, is.as_ref()).ok_or_else(|| by_hand(path))?;
    let new = root.to_string();
    if parse(&new).ok() != Some(wanted) {
        return Err(by_hand(path));
    }
    // A file that is wrong elsewhere is mended setting by setting.
    if leaves(text).is_ok() {
        let (found, _) = leaves(&new)?;
        agents_have_ids(found.iter().map(|(path, ..)| path.as_str()))?;
    }
    Ok(edited(new))
}

/// The value that a text stands for.
fn read(setting: &Setting, given: &str) -> Result<Value> {
    match strict::value(given) {
        Ok(list @ Value::Array(_)) => setting.kind.check(&list),
        _ => setting.kind.read(given),
    }
}

fn unfit(path: &str) -> Error {
    Error::invalid(format!("the file has no place for {path}"))
        .field(path)
        .hint("something on the way there is a value, or a list that ends before it")
}

fn by_hand(path: &str) -> Error {
    let message = format!("{path} cannot be changed in this file without losing something");
    Error::new(ErrorKind::Unsupported, message).field(path).hint("edit the file by hand")
}

fn at<'v>(root: &'v Value, steps: &[Step<'_>]) -> Option<&'v Value> {
    steps.iter().try_fold(root, |value, step| match step {
        Step::Name(name) => value.get(name),
        Step::Index(index) => value.get(index),
    })
}

/// Sets a value in a tree, or takes it out; `None` when something that is no place is in the way.
fn put(value: &mut Value, steps: &[Step<'_>], new: Option<&Value>) -> Option<()> {
    let Some((step, rest)) = steps.split_first() else {
        *value = new?.clone();
        return Some(());
    };
    if value.is_null() {
        *value = match step {
            Step::Name(_) => Value::Object(serde_json::Map::default()),
            Step::Index(_) => Value::Array(Vec::new()),
        };
    }
    match step {
        Step::Name(name) => {
            let members = value.as_object_mut()?;
            if rest.is_empty() && new.is_none() {
                members.remove(*name);
                return Some(());
            }
            put(members.entry(*name).or_insert(Value::Null), rest, new)
        }
        Step::Index(index) => {
            let items = value.as_array_mut()?;
            if *index == items.len() {
                items.push(Value::Null);
            }
            put(items.get_mut(*index)?, rest, new)
        }
    }
}

/// Does in the text what [`put`] does in the tree.
fn change(mut object: CstObject, steps: &[Step<'_>], new: Option<&Value>) -> Option<()> {
    let mut steps = steps;
    loop {
        let (Step::Name(name), mut rest) = steps.split_first()? else { return None };
        let member = object.get(name);
        if rest.is_empty() {
            match (member, new) {
                (Some(member), Some(new)) => member.set_value(written(new)),
                (Some(member), None) => member.remove(),
                (None, Some(new)) => drop(object.append(name, written(new))),
                (None, None) => {}
            }
            return Some(());
        }
        let mut inner = match member.as_ref().and_then(|member| member.value()) {
            Some(inner) if inner.as_null_keyword().is_none() => inner,
            _ => {
                let value = nested(rest, new?)?;
                match member {
                    Some(member) => member.set_value(value),
                    None => drop(object.append(name, value)),
                }
                return Some(());
            }
        };
        while let Some((Step::Index(index), behind)) = rest.split_first() {
            let list = inner.as_array()?;
            let items = list.elements();
            if *index == items.len() {
                list.append(nested(behind, new?)?);
                return Some(());
            }
            inner = CstNode::clone(items.get(*index)?);
            rest = behind;
        }
        object = inner.as_object()?;
        steps = rest;
    }
}

/// A value inside what the steps to it make.
fn nested(steps: &[Step<'_>], value: &Value) -> Option<CstInputValue> {
    steps.iter().rev().try_fold(written(value), |value, step| match step {
        Step::Name(name) => Some(CstInputValue::Object(vec![((*name).to_owned(), value)])),
        Step::Index(0) => Some(CstInputValue::Array(vec![value])),
        Step::Index(_) => None,
    })
}

fn written(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(on) => CstInputValue::Bool(*on),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(written).collect()),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| (name.clone(), written(value));
            CstInputValue::Object(members.iter().map(member).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, path: &str, given: &str, expect: &str) {
        match edit(text, path, given) {
            Ok(edited) => assert_eq!(edited.text, expect, "{path} = {given}"),
            Err(error) => panic!("{path} = {given}: {error}"),
        }
    }

    fn refused(text: &str, path: &str, given: &str, expect: &str) {
        let error = edit(text, path, given).unwrap_err();
        let told = format!("{error}; {}", error.hint_text().unwrap_or_default());
        assert!(told.contains(expect), "{path} = {given}: {told}");
    }

    const FILE: &str = "\
// what we run
{
  session: { // ours
    maxTurns: 7, /* few */
    'reset': { atHour: +4, },
  },
  agents: {
    list: [
      { id: 'ops', run: { command: \"x\" } }, // the first
    ],
  },
}
";

    /// Goal: one setting changes and every other byte stays, whatever the file looks like. Method: values that are there,
    /// that are not, in objects that are there and not, in lists; each as the text before and after.
    #[test]
    fn one_setting_changes() {
        let with = |from: &str, to: &str| FILE.replacen(from, to, 1);
        check(FILE, "session.maxTurns", "40", &with("maxTurns: 7", "maxTurns: 40"));
        check(FILE, "session.maxTurns", "7", FILE);
        check(FILE, "session.reset.atHour", "5", &with("+4", "5"));
        check(
            FILE,
            "session.reset.mode",
            "Daily",
            &with(
                "'reset': { atHour: +4, },",
                "'reset': {\n      atHour: +4,\n      \"mode\": \"daily\",\n    },",
            ),
        );
        check(FILE, "agents.list[0].run.command", "it's \"y\"", &with("\"x\"", r#""it's \"y\"""#));
        check(FILE, "agents.list[0].id", "dev", &with("'ops'", "\"dev\""));
        check("{}", "session.maxTurns", "3", "{\n  \"session\": {\n    \"maxTurns\": 3\n  }\n}");
        check(
            "{ session: null }",
            "session.maxTurns",
            "3",
            "{ session: {\n    \"maxTurns\": 3\n  } }",
        );
        check(
            "{ owners: ['a:b'] }",
            "owners",
            "['c:d', \"e:f\"]",
            "{ owners: [\"c:d\", \"e:f\"] }",
        );
        check("{ owners: [] }", "owners", "c:d, e:f", "{ owners: [\"c:d\", \"e:f\"] }");
    }

    /// Goal: a setting that is taken out is gone, with what stands around it left. Method: one that is there, one that is
    /// not.
    #[test]
    fn taken_out() {
        let edited = edit(FILE, "session.maxTurns", "null").unwrap();
        assert_eq!((edited.was, edited.is), (Some(Value::from(7)), None));
        assert!(edited.text.contains("// ours") && !edited.text.contains("maxTurns"));
        check(FILE, "session.reset.mode", "null", FILE);
        check("{}", "session.reset.mode", "null", "{}");
    }

    /// Goal: agents can be added one behind the other, and never without an id. Method: the next place, one behind it, one
    /// without an id.
    #[test]
    fn agents() {
        let edited = edit(FILE, "agents.list[1].id", "dev").unwrap();
        let (found, _) = leaves(&edited.text).unwrap();
        let ids: Vec<&Value> =
            found.iter().filter(|(path, ..)| path.ends_with(".id")).map(|(.., id)| id).collect();
        assert_eq!(ids, ["ops", "dev"]);
        assert!(edited.text.contains("// the first"));
        refused(FILE, "agents.list[2].id", "dev", "the file has no place");
        refused(FILE, "agents.list[1].model", "m", "agents.list[1] has no id");
        refused(FILE, "agents.list[0].id", "null", "agents.list[0] has no id");
    }

    /// Goal: what is no setting, or no value of it, is refused with what is legal. Method: one of each.
    #[test]
    fn refusals() {
        refused(FILE, "session.maxTurn", "3", "did you mean maxTurns?");
        refused(FILE, "session.reset", "daily", "; there are atHour, idleMinutes");
        refused(FILE, "session.sendPolicy.default", "deny", "session.sendPolicy is one setting");
        refused(FILE, "channels.telegram.token", "x", "is not a setting");
        refused(FILE, "agents.list[x].id", "y", "is no place in a list");
        refused(FILE, "session.maxTurns", "many", "whole number from 1");
        refused(FILE, "session.maxTurns", "0", "session.maxTurns is a whole number");
        refused("{ session: 3 }", "session.maxTurns", "3", "the file has no place");
        refused("{ session: [] ", "session.maxTurns", "3", "not JSON5");
        refused(
            "{ session: {}, session: { maxTurns: 2 } }",
            "session.maxTurns",
            "3",
            "each name once",
        );
    }

    /// Goal: a file that is wrong is mended setting by setting. Method: two bad values, one of them set.
    #[test]
    fn a_wrong_file_is_mended() {
        let text = "{ session: { maxTurns: 'many' }, owners: 3 }";
        check(text, "session.maxTurns", "4", "{ session: { maxTurns: 4 }, owners: 3 }");
    }

    /// Goal: whatever is edited, nothing but the setting changes. Method: every setting of a plain kind set in a file with
    /// all of them, twice; the trees compared by the edit itself, the comments counted here.
    #[test]
    fn every_setting() {
        use crate::config::table::SETTINGS;

        let mut text = FILE.to_owned();
        let paths: Vec<String> = SETTINGS
            .iter()
            .filter(|setting| !setting.path.ends_with("**"))
            .map(|setting| setting.path.replace("[]", "[0]").replace('*', "some-name"))
            .collect();
        for path in &paths {
            let (_, setting) = setting_at(path).unwrap();
            let given = ["1", "4096", "true", "daily", "warn", "UTC", "ops", "{rules: []}"];
            let legal = given.iter().find(|given| read(setting, given).is_ok());
            let words = setting.legal();
            let first = words.strip_prefix("one of ").and_then(|words| words.split(", ").next());
            let given = legal.copied().or(first).unwrap();
            text = edit(&text, path, given).unwrap().text;
            assert_eq!(edit(&text, path, given).unwrap().text, text, "{path}");
        }
        assert!(paths.len() > 90);
        for comment in ["// what we run", "// ours", "/* few */", "// the first"] {
            assert!(text.contains(comment), "{comment}: {text}");
        }
        for path in paths.iter().filter(|path| !path.ends_with(".id")) {
            text = edit(&text, path, "null").unwrap().text;
        }
        assert_eq!(leaves(&text).unwrap().0.len(), 1);
    }
}
