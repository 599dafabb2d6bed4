//! Marks what servers send as foreign, for models that heed it.

use crate::PerServer;
use std::sync::Arc;
use toolgate_core::{Asked, Content, Error, Item, ItemKind, Json, Origin, Output, Returned, Scrub};
use toolgate_wire::placeholder;

/// Puts a line before and behind each text of a result that says whose it is. A server does not know the id in these
/// lines, so it cannot end its part. It helps a model that was told what they mean; it detects nothing.
#[derive(Clone, Debug, Default)]
pub struct Foreign {
    /// Whether its texts are marked, by server.
    pub mark: PerServer<bool>,
}

impl Scrub for Foreign {
    fn name(&self) -> &'static str {
        "foreign"
    }

    /// Only results are marked, and these come for a call.
    fn scrub(
        &self,
        _: Option<&Origin>,
        _: Option<&Arc<Item>>,
        _: Returned<'_>,
    ) -> Result<(), Error> {
        Ok(())
    }

    fn scrub_for(
        &self,
        asked: &Asked,
        from: Option<&Origin>,
        item: Option<&Arc<Item>>,
        value: Returned<'_>,
    ) -> Result<(), Error> {
        let (Some(from), Returned::Output(output)) = (from, value) else {
            return Ok(());
        };
        // A file of a skill stays as its digest has it; whoever verifies it knows whose it is.
        let skill = item.is_some_and(|item| item.kind() == ItemKind::Skill);
        if !skill && self.mark.of(&from.server) {
            mark(output, &from.server, &asked.id);
        }
        Ok(())
    }
}

fn mark(output: &mut Output, server: &str, id: &str) {
    let marked = |text: &str| placeholder::foreign(server, id, text);
    match output {
        Output::Tool(result) => {
            // As text it would be added later, without a mark.
            result.add_structured_as_text();
            result.content.iter_mut().for_each(|b| block(b, &marked));
        }
        Output::Prompt(result) => {
            let blocks = result.messages.iter_mut().map(|m| &mut m.content);
            blocks.for_each(|b| block(b, &marked));
        }
        Output::Resource(result) => result.contents.iter_mut().for_each(|p| part(p, &marked)),
        // These are put into a field, and not read.
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
    use toolgate_core::{ToolResult, Trail};

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
        let foreign = Foreign {
            mark: PerServer::default().with("web", true),
        };
        let asked = Asked {
            id: "c-1".into(),
            trail: Trail::default(),
        };
        let from = Origin {
            server: server.into(),
            trusted: false,
        };
        let returned = Returned::Output(&mut output);
        foreign
            .scrub_for(&asked, Some(&from), None, returned)
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
