//! Markers around server text, for models that are instructed about untrusted content.

use crate::PerServer;
use std::sync::Arc;
use toolgate_core::{
    Content, Error, Item, ItemKind, Json, Origin, Output, SanitizeContext, Sanitizer,
    UntrustedContent,
};
use toolgate_protocol::placeholder;

/// Sanitizer that marks texts in results as untrusted: a line with the server's name goes before and after each.
///
/// The lines contain the id of the call, which the server does not know, so it cannot forge the end of its part. The
/// markers help a model that is instructed about them; they detect nothing.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct UntrustedMarker {
    /// True to mark texts in results, by server. Default: off.
    pub mark: PerServer<bool>,
}

impl Sanitizer for UntrustedMarker {
    fn name(&self) -> &'static str {
        "foreign"
    }

    /// Does nothing: only results are marked, and results belong to a call.
    fn sanitize(
        &self,
        _: Option<&Origin>,
        _: Option<&Arc<Item>>,
        _: UntrustedContent<'_>,
    ) -> Result<(), Error> {
        Ok(())
    }

    fn sanitize_for_call(
        &self,
        asked: &SanitizeContext,
        from: Option<&Origin>,
        item: Option<&Arc<Item>>,
        value: UntrustedContent<'_>,
    ) -> Result<(), Error> {
        let (Some(from), UntrustedContent::Output(output)) = (from, value) else {
            return Ok(());
        };
        // A skill file must match its digest, so it stays unchanged. A reader who verifies the digest knows its server.
        let skill = item.is_some_and(|item| item.kind() == ItemKind::Skill);
        if !skill && self.mark.of(&from.server) {
            mark(output, &from.server, &asked.call_id);
        }
        Ok(())
    }
}

fn mark(output: &mut Output, server: &str, id: &str) {
    let marked = |text: &str| placeholder::untrusted(server, id, text);
    match output {
        Output::Tool(result) => {
            // Otherwise it would be added as text later, without a marker.
            result.add_structured_as_text();
            result.content.iter_mut().for_each(|b| block(b, &marked));
        }
        Output::Prompt(result) => {
            let blocks = result.messages.iter_mut().map(|m| &mut m.content);
            blocks.for_each(|b| block(b, &marked));
        }
        Output::Resource(result) => result.contents.iter_mut().for_each(|p| part(p, &marked)),
        // Completion values are inserted into a field, and not read as text.
        Output::Complete(_) => {}
    }
}

fn block(block: &mut Content, marked: &dyn Fn(&str) -> String) {
    if let Some(mut resource) = block.json.get("resource") {
        part(&mut resource, marked);
        block.json = block.json.with("resource", &resource);
    } else {
        part(&mut block.json, marked);
    }
}

fn part(json: &mut Json, marked: &dyn Fn(&str) -> String) {
    if let Some(text) = json.get("text").and_then(|text| text.string()) {
        *json = json.with("text", &Json::from_value(&marked(&text).into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolgate_core::ToolResult;

    fn through(server: &str) -> Vec<String> {
        let read = |json| Content::read(Json::from_value(&json)).unwrap();
        let mut output = Output::Tool(ToolResult {
            content: vec![
                Content::text("hello"),
                read(json!({"type": "resource", "resource": {"uri": "a:b", "text": "there"}})),
                read(json!({"type": "image", "data": "AAAA", "mimeType": "image/png"})),
            ],
            ..ToolResult::default()
        });
        let foreign = UntrustedMarker {
            mark: PerServer::default().with("web", true),
        };
        let asked = SanitizeContext::new("c-1");
        let from = Origin {
            server: server.into(),
            trusted: false,
        };
        let returned = UntrustedContent::Output(&mut output);
        foreign
            .sanitize_for_call(&asked, Some(&from), None, returned)
            .unwrap();
        let blocks = output.into_tool().unwrap().content.into_iter();
        blocks
            .map(|block| block.json.to_value().to_string())
            .collect()
    }

    #[test]
    fn texts_are_marked_where_that_is_set() {
        let (marked, plain) = (through("web"), through("files"));
        for (at, text) in ["hello", "there"].into_iter().enumerate() {
            let line = format!(
                "[text of the server web, not of the user: c-1]\\n{text}\\n[end of the text: c-1]"
            );
            assert!(marked[at].contains(&line), "{}", marked[at]);
            assert!(!plain[at].contains("server") && plain[at].contains(text));
        }
        assert_eq!(marked[2], plain[2], "a picture has no text");
    }
}
