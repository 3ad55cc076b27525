//! Schemas of arguments, in the plain form that all clients take.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The JSON Schema of a type, of draft 2020-12, without anything that clients stumble over.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.transforms.push(Box::new(Plain));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    for name in ["$schema", "title"] {
        schema.remove(name);
    }
    // An object without any is spelled out as well: some clients look for them.
    if schema.get("properties").is_none() {
        schema.insert("properties".to_owned(), Value::Object(serde_json::Map::new()));
    }
    schema.to_value()
}

/// Makes an optional property one that may be absent, not one that may be `null`, and leaves out the widths of numbers.
#[derive(Clone, Debug)]
struct Plain;

impl Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        schema.remove("format");
        schema.remove("default");
        if let Some(Value::Array(types)) = schema.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                schema.insert("type".to_owned(), only);
            }
        }
        transform_subschemas(self, schema);
    }
}
