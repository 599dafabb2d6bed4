//! A result as one JSON text, in the words of the specification.

use toolgate_core::{Json, Output};
use toolgate_wire::json::ObjectWriter;

/// The result; what only a protocol needs of it, such as how long it is fresh, is left out.
pub(super) fn json(output: &Output) -> Json {
    let mut o = ObjectWriter::new();
    let meta = match output {
        Output::Tool(result) => {
            o.array("content", |a| {
                result.content.iter().for_each(|block| a.raw(&block.json));
            });
            if let Some(structured) = &result.structured {
                o.raw("structuredContent", structured);
            }
            if result.is_error {
                o.bool("isError", true);
            }
            &result.meta
        }
        Output::Resource(result) => {
            o.array("contents", |a| {
                result.contents.iter().for_each(|part| a.raw(part));
            });
            &result.meta
        }
        Output::Prompt(result) => {
            if let Some(description) = &result.description {
                o.str("description", description);
            }
            o.array("messages", |a| {
                for message in &result.messages {
                    a.object(|o| {
                        o.str(
                            "role",
                            if message.assistant {
                                "assistant"
                            } else {
                                "user"
                            },
                        );
                        o.raw("content", &message.content.json);
                    });
                }
            });
            &result.meta
        }
        Output::Complete(result) => {
            o.array("values", |a| {
                result.values.iter().for_each(|value| a.str(value));
            });
            &result.meta
        }
    };
    if let Some(meta) = meta {
        o.raw("_meta", meta);
    }
    o.finish()
}
