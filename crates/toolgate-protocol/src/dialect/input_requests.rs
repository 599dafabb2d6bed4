//! Input requests of a revision: sampling messages and elicitation forms.

use super::Dialect;
use crate::{
    json::{ArrayWriter, Json, JsonKind},
    method::content::Content,
};

impl Dialect {
    /// Converts the parameters of `sampling/createMessage` to this revision. Before 2025-11-25 a message has one
    /// content block, so a message of several blocks becomes several messages. Returns `None` if the parameters have
    /// tools, which those revisions do not support.
    pub fn sampling(&self, params: &Json) -> Option<Json> {
        if self.sampling_tools {
            return Some(params.clone());
        }
        if params.get("tools").is_some() || params.get("toolChoice").is_some() {
            return None;
        }
        let mut messages = ArrayWriter::new();
        for message in params.get("messages")?.items() {
            let content = message.get("content")?;
            let blocks = match content.kind() {
                JsonKind::Array => content.items().collect(),
                _ => vec![content],
            };
            for block in blocks {
                let block = Content::read(block)?;
                messages.raw(&message.with("content", &self.content(&block)));
            }
        }
        Some(params.with("messages", &messages.finish()))
    }

    /// Converts the `requestedSchema` of an elicitation form to this revision. Before 2025-11-25 titles of choices are
    /// in `enumNames`. Returns `None` for a form with a multiple choice, which those revisions do not support.
    pub fn form(&self, requested: &Json) -> Option<Json> {
        let Some(fields) = requested.get("properties").filter(|_| !self.form_choices) else {
            return Some(requested.clone());
        };
        let mut written = crate::json::ObjectWriter::new();
        for (name, field) in fields.members() {
            if field.get("type")?.str_cow()? == "array" {
                return None;
            }
            written.raw(&name, &with_enum_names(&field).unwrap_or(field));
        }
        Some(requested.with("properties", &written.finish()))
    }
}

/// Returns a single choice in the older form, with `enum` and `enumNames`.
fn with_enum_names(field: &Json) -> Option<Json> {
    let choices = field.get("oneOf")?;
    let (mut values, mut names) = (ArrayWriter::new(), ArrayWriter::new());
    for choice in choices.items() {
        values.raw(&choice.get("const")?);
        names.raw(&choice.get("title")?);
    }
    let field = field.without("oneOf").with("enum", &values.finish());
    Some(field.with("enumNames", &names.finish()))
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use crate::json::{Json, JsonLimits};

    fn json(text: &str) -> Json {
        Json::read(text.as_bytes().to_vec(), &JsonLimits::default()).unwrap()
    }

    #[test]
    fn a_message_of_several_blocks_becomes_several_messages() {
        let params = json(
            r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"audio","data":"","mimeType":"a/b"}]}],"maxTokens":9}"#,
        );
        let old = find("2025-06-18").unwrap().sampling(&params).unwrap();
        assert_eq!(
            old.as_str(),
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"user","content":{"type":"audio","data":"","mimeType":"a/b"}}],"maxTokens":9}"#
        );
        let oldest = find("2024-11-05").unwrap().sampling(&params).unwrap();
        assert!(oldest.as_str().contains("[audio of type a/b"), "{oldest:?}");
        let new = find("2025-11-25").unwrap().sampling(&params).unwrap();
        assert_eq!(new.as_str(), params.as_str());
    }

    #[test]
    fn rejects_tools_and_multiple_choices_before_2025_11_25() {
        let (old, new) = (find("2025-06-18").unwrap(), find("2025-11-25").unwrap());
        let tools = json(r#"{"messages":[],"tools":[]}"#);
        assert!(old.sampling(&tools).is_none() && new.sampling(&tools).is_some());
        let several = json(r#"{"type":"object","properties":{"a":{"type":"array"}}}"#);
        assert!(old.form(&several).is_none() && new.form(&several).is_some());
    }

    #[test]
    fn a_choice_keeps_its_names() {
        let form = json(
            r#"{"type":"object","properties":{"a":{"type":"string","oneOf":[{"const":"x","title":"X"}]}}}"#,
        );
        let old = find("2025-06-18").unwrap().form(&form).unwrap();
        assert_eq!(
            old.as_str(),
            r#"{"type":"object","properties":{"a":{"type":"string","enum":["x"],"enumNames":["X"]}}}"#
        );
    }
}
