//! Arguments of a tool in a query: each text is read as what the tool's own schema says that it is, so that there is one
//! list of arguments.

use annals_engine::{Error, Result};
use serde_json::{Map, Value};

/// The arguments that a query holds. Names that no schema has are kept: the tool says what it thinks of them.
///
/// # Errors
/// `InvalidInput` for what is no query, for a text that is not what its argument is, and for one that is said twice.
pub(super) fn arguments(query: &str, schema: &Value) -> Result<Map<String, Value>> {
    let mut arguments = Map::new();
    for pair in pairs(query) {
        let (name, text) = pair?;
        let property = &schema["properties"][&name];
        if property["type"] == "array" {
            let items = arguments.entry(&name).or_insert_with(|| Value::Array(Vec::new()));
            let read = text.split(',').map(|item| read(&name, item, &property["items"]));
            if let Value::Array(items) = items {
                for item in read {
                    items.push(item?);
                }
            }
            continue;
        }
        let value = read(&name, &text, property)?;
        if arguments.insert(name.clone(), value).is_some() {
            return Err(Error::invalid("the argument is said twice").field(name));
        }
    }
    Ok(arguments)
}

fn read(name: &str, text: &str, property: &Value) -> Result<Value> {
    let unfit = |what: &str| Error::invalid(format!("{text:?} is not {what}")).field(name);
    match property["type"].as_str() {
        Some("integer") => {
            text.parse::<u64>().map(Value::from).map_err(|_| unfit("a whole number"))
        }
        Some("boolean") => {
            text.parse::<bool>().map(Value::from).map_err(|_| unfit("true or false"))
        }
        _ => Ok(Value::from(text)),
    }
}

/// The names and texts of a query, in their order.
///
/// # Errors
/// `InvalidInput` for what is no text.
pub(super) fn pairs(query: &str) -> impl Iterator<Item = Result<(String, String)>> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, text) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((decoded(name)?, decoded(text)?))
    })
}

/// A part of a query as the text that it stands for (the form encoding of the URL standard).
fn decoded(part: &str) -> Result<String> {
    let spaced = part.replace('+', " ");
    let decoded = percent_encoding::percent_decode_str(&spaced).decode_utf8();
    decoded
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| Error::invalid(format!("{part:?} is no text in UTF-8")).field("query"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::Tool;

    fn of(query: &str) -> Result<Value> {
        let schema = Tool::of("sessions_list").unwrap().schema();
        arguments(query, &schema).map(Value::Object)
    }

    /// Goal: a text is read as what the schema says. Method: each sort of argument, encoded and repeated, and what does not
    /// fit.
    #[test]
    fn schemas_say_what_texts_are() {
        assert_eq!(of("").unwrap(), json!({}));
        let list = "limit=5&kinds=main,group&kinds=cron&search=a%20b%2Bc+d";
        let read = json!({ "limit": 5, "kinds": ["main", "group", "cron"], "search": "a b+c d" });
        assert_eq!(of(list).unwrap(), read);
        assert_eq!(of("strange=1").unwrap(), json!({ "strange": "1" }));
        for wrong in ["limit=x", "limit=-1", "limit=1&limit=2", "search=%ff"] {
            of(wrong).unwrap_err();
        }
    }
}
