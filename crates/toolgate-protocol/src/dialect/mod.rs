//! Dialects: one table for each protocol revision, and the writer that applies them.

mod features;
mod input_requests;
mod tasks;
mod v2024_11_05;
mod v2025_03_26;
mod v2025_06_18;
mod v2025_11_25;
mod v2026_07_28;

pub use features::Dialect;
pub use tasks::with_related_task;

use features::{ImplementationMembers, StructuredSupport};

use crate::{
    json::{Json, JsonKind, ObjectWriter},
    message::{self, Id},
    method::{
        complete::CompleteResult,
        content::{Content, ContentKind},
        definition::{Definition, ItemKind},
        initialize::Implementation,
        list::CacheHint,
        meta,
        output::Output,
        prompts_get::PromptResult,
        resources_read::ReadResult,
        tools_call::ToolResult,
    },
    normalize::without_booleans,
    placeholder,
};
use std::borrow::Cow;

/// Dialects of all supported MCP protocol revisions, newest first.
pub static ALL: [&Dialect; 5] = [
    &v2026_07_28::DIALECT,
    &v2025_11_25::DIALECT,
    &v2025_06_18::DIALECT,
    &v2025_03_26::DIALECT,
    &v2024_11_05::DIALECT,
];

/// Dialect of the newest MCP revision without an `initialize` handshake.
pub static MODERN: &Dialect = &v2026_07_28::DIALECT;
/// Dialect of the newest MCP revision with an `initialize` handshake.
pub static LEGACY: &Dialect = &v2025_11_25::DIALECT;

/// Returns the dialect of a revision string such as `2025-11-25`; `None` for an unsupported revision.
pub fn find(revision: &str) -> Option<&'static Dialect> {
    ALL.into_iter().find(|d| d.revision == revision)
}

/// Returns the dialects of all revisions without an `initialize` handshake, newest first.
pub fn stateless() -> impl Iterator<Item = &'static Dialect> {
    ALL.into_iter().filter(|d| d.stateless)
}

/// Returns the dialect that a server negotiates in the `initialize` handshake for a requested revision. It is the
/// requested one if it has a handshake, else the newest that has one (LIFE-08).
pub fn for_handshake(requested: &str) -> &'static Dialect {
    find(requested).filter(|d| !d.stateless).unwrap_or(LEGACY)
}

impl Dialect {
    /// Writes the definition of a tool, resource, template, prompt or skill for clients of this revision.
    ///
    /// # Errors
    /// Returns the reason if the revision does not allow the definition, which is then left out of lists for its
    /// clients.
    pub fn definition(&self, definition: &Definition) -> Result<Json, &'static str> {
        let mut json = definition.json().clone();
        for member in self.unknown_members {
            json = remove_if_present(json, member);
        }
        if definition.kind() != ItemKind::Tool {
            return Ok(json);
        }
        if !self.tool_annotations {
            json = remove_if_present(json, "annotations");
        }
        if self.structured_content == StructuredSupport::Object && !describes_object(&json) {
            json = remove_if_present(json, "outputSchema");
        }
        if !self.boolean_schemas {
            if let Some(input) = json.get("inputSchema")
                && let Some(mended) = without_booleans(&input)?
            {
                json = json.with("inputSchema", &mended);
            }
            if let Some(output) = json.get("outputSchema") {
                json = match without_booleans(&output) {
                    Ok(Some(mended)) => json.with("outputSchema", &mended),
                    Ok(None) => json,
                    Err(_) => json.without("outputSchema"),
                };
            }
        }
        Ok(json)
    }

    /// Removes the members of `clientInfo` or `serverInfo` that this revision does not define.
    pub fn implementation(&self, mut program: Implementation) -> Implementation {
        if self.implementation_members == ImplementationMembers::Nothing {
            program.title = None;
        }
        if self.implementation_members != ImplementationMembers::All {
            program = Implementation {
                name: program.name,
                version: program.version,
                title: program.title,
                ..Implementation::default()
            };
        }
        program
    }

    /// Writes the result of a list method such as `tools/list`.
    pub fn list(
        &self,
        kind: ItemKind,
        items: &[Json],
        next: Option<&str>,
        hint: CacheHint,
        missing: usize,
        server: &Implementation,
    ) -> Json {
        let missing = (missing > 0).then(|| {
            let mut m = ObjectWriter::new();
            m.int(meta::MISSING, i64::try_from(missing).unwrap_or(i64::MAX));
            m.finish()
        });
        let bytes: usize = items.iter().map(|item| item.as_str().len() + 1).sum();
        let mut o = ObjectWriter::with_capacity(bytes + 512);
        self.begin_result(&mut o);
        o.array(kind.list_member(), |a| items.iter().for_each(|t| a.raw(t)));
        if let Some(next) = next {
            o.str("nextCursor", next);
        }
        self.write_cache_hint(&mut o, hint);
        self.end_result(&mut o, missing.as_ref(), &server.json());
        o.finish()
    }

    /// Writes the result of `skills/get`: the entry of one skill.
    pub fn skill(&self, entry: &Json, hint: CacheHint, server: &Implementation) -> Json {
        let mut o = ObjectWriter::with_capacity(entry.as_str().len() + 512);
        self.begin_result(&mut o);
        o.raw("skill", entry);
        self.write_cache_hint(&mut o, hint);
        self.end_result(&mut o, None, &server.json());
        o.finish()
    }

    /// Writes the result of `resources/directory/read`: the entries of a directory.
    pub fn directory(
        &self,
        children: &[Json],
        next: Option<&str>,
        server: &Implementation,
    ) -> Json {
        let mut o = ObjectWriter::new();
        self.begin_result(&mut o);
        o.array("resources", |a| children.iter().for_each(|one| a.raw(one)));
        if let Some(next) = next {
            o.str("nextCursor", next);
        }
        self.end_result(&mut o, None, &server.json());
        o.finish()
    }

    /// Writes the result of `tools/call`, `resources/read`, `prompts/get` or `completion/complete`. Content that this
    /// revision does not support becomes text or is left out.
    pub fn output(&self, output: &Output, server: &Implementation) -> Json {
        let mut o = ObjectWriter::with_capacity(result_capacity(output));
        self.write_output(&mut o, output, &server.json());
        o.finish()
    }

    /// Writes the JSON-RPC response to a call, envelope and result, into one buffer. `server` is
    /// [`Implementation::json`], which is the same for all replies.
    pub fn reply(&self, id: &Id, output: &Output, server: &Json) -> String {
        message::reply_with(id, result_capacity(output), |o| {
            self.write_output(o, output, server)
        })
    }

    fn write_output(&self, o: &mut ObjectWriter, output: &Output, server: &Json) {
        self.begin_result(o);
        let meta = match output {
            Output::Tool(result) => self.tool_result(o, result),
            Output::Resource(result) => self.read_result(o, result),
            Output::Prompt(result) => self.prompt_result(o, result),
            Output::Complete(result) => self.complete_result(o, result),
        };
        self.end_result(o, meta.as_ref(), server);
    }

    fn tool_result<'a>(&self, o: &mut ObjectWriter, result: &'a ToolResult) -> &'a Option<Json> {
        let structured = result
            .structured
            .as_ref()
            .filter(|s| self.supports_structured(s));
        let text = match structured {
            Some(_) => None,
            None => result.structured_as_text(),
        };
        o.array("content", |a| {
            let blocks = result.content.iter().chain(&text);
            blocks.for_each(|c| a.raw(self.content(c).as_ref()));
        });
        if let Some(structured) = structured {
            o.raw("structuredContent", structured);
        }
        if result.is_error {
            o.bool("isError", true);
        }
        &result.meta
    }

    fn read_result<'a>(&self, o: &mut ObjectWriter, result: &'a ReadResult) -> &'a Option<Json> {
        o.array("contents", |a| {
            result.contents.iter().for_each(|c| a.raw(c))
        });
        self.write_cache_hint(o, result.hint);
        &result.meta
    }

    fn prompt_result<'a>(
        &self,
        o: &mut ObjectWriter,
        result: &'a PromptResult,
    ) -> &'a Option<Json> {
        if let Some(description) = &result.description {
            o.str("description", description);
        }
        o.array("messages", |a| {
            for message in &result.messages {
                a.object(|m| {
                    m.str(
                        "role",
                        if message.assistant {
                            "assistant"
                        } else {
                            "user"
                        },
                    );
                    m.raw("content", self.content(&message.content).as_ref());
                });
            }
        });
        &result.meta
    }

    fn complete_result<'a>(
        &self,
        o: &mut ObjectWriter,
        result: &'a CompleteResult,
    ) -> &'a Option<Json> {
        o.object("completion", |c| {
            c.array("values", |a| result.values.iter().for_each(|v| a.str(v)));
            if let Some(total) = result.total {
                c.int("total", i64::try_from(total).unwrap_or(i64::MAX));
            }
            if let Some(more) = result.has_more {
                c.bool("hasMore", more);
            }
        });
        &result.meta
    }

    fn begin_result(&self, o: &mut ObjectWriter) {
        if self.result_type {
            o.constant_member(r#""resultType":"complete""#);
        }
    }

    fn write_cache_hint(&self, o: &mut ObjectWriter, hint: CacheHint) {
        if self.cache_hints {
            hint.write(o);
        }
    }

    /// Writes a result without members of its own, for example the result of `ping`.
    pub fn empty(&self, server: &Implementation) -> Json {
        let mut o = ObjectWriter::new();
        self.begin_result(&mut o);
        self.end_result(&mut o, None, &server.json());
        o.finish()
    }

    fn end_result(&self, o: &mut ObjectWriter, foreign: Option<&Json>, server: &Json) {
        if self.result_meta {
            o.constant_object(r#""_meta":"#, |m| {
                for (key, value) in foreign.into_iter().flat_map(Json::members) {
                    m.raw(&key, &value);
                }
                m.raw(meta::SERVER, server);
            });
        } else if let Some(foreign) = foreign {
            o.raw("_meta", foreign);
        }
    }

    fn content<'a>(&self, block: &'a Content) -> Cow<'a, Json> {
        if self.content_kinds.contains(&block.kind) {
            return Cow::Borrowed(&block.json);
        }
        let word = |key: &str| {
            block
                .json
                .get(key)
                .and_then(|v| v.string())
                .unwrap_or_default()
        };
        let text = match block.kind {
            ContentKind::ResourceLink => placeholder::link(&word("name"), &word("uri")),
            ContentKind::Audio => placeholder::unsupported_audio(&word("mimeType")),
            _ => placeholder::unsupported_content(&word("type")),
        };
        Cow::Owned(Content::text(&text).json)
    }

    fn supports_structured(&self, structured: &Json) -> bool {
        match self.structured_content {
            StructuredSupport::Unknown => false,
            StructuredSupport::Object => structured.kind() == JsonKind::Object,
            StructuredSupport::Any => true,
        }
    }
}

/// Approximate size of a written result, in bytes.
fn result_capacity(output: &Output) -> usize {
    output.size() + 256
}

fn remove_if_present(json: Json, member: &str) -> Json {
    if json.get(member).is_some() {
        json.without(member)
    } else {
        json
    }
}

fn describes_object(tool: &Json) -> bool {
    let kind = tool
        .get("outputSchema")
        .and_then(|s| s.get("type"))
        .and_then(|t| t.string());
    kind.as_deref() == Some("object")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::JsonLimits;

    fn json(text: &str) -> Json {
        Json::read(text.as_bytes().to_vec(), &JsonLimits::default()).unwrap()
    }

    fn server() -> Implementation {
        Implementation::new("s", "1")
    }

    #[test]
    fn a_definition_keeps_its_bytes_if_the_revision_supports_it() {
        let text = r#"{"name":"a", "inputSchema":{"type":"object"},"outputSchema":{"type":"array"},"icons":[],"x":1e400}"#;
        let tool = Definition::tool(json(text)).unwrap();
        assert_eq!(MODERN.definition(&tool).unwrap().as_str(), text);
        let older = LEGACY.definition(&tool).unwrap();
        assert!(
            older.get("outputSchema").is_none(),
            "only objects before 2026-07-28"
        );
        assert!(
            find("2024-11-05")
                .unwrap()
                .definition(&tool)
                .unwrap()
                .get("icons")
                .is_none()
        );
    }

    #[test]
    fn structured_null_is_kept_for_modern_and_dropped_for_older() {
        let output = Output::Tool(ToolResult {
            structured: Some(json("null")),
            ..ToolResult::text("x")
        });
        assert!(
            MODERN
                .output(&output, &server())
                .get("structuredContent")
                .is_some_and(|s| s.is_null())
        );
        assert!(
            LEGACY
                .output(&output, &server())
                .get("structuredContent")
                .is_none()
        );
    }

    #[test]
    fn a_link_becomes_text_where_there_are_no_links() {
        let link =
            Content::read(json(r#"{"type":"resource_link","uri":"a:b","name":"n"}"#)).unwrap();
        let output = Output::Tool(ToolResult {
            content: vec![link],
            ..ToolResult::default()
        });
        let old = find("2025-03-26").unwrap().output(&output, &server());
        assert_eq!(
            old.as_str(),
            r#"{"content":[{"type":"text","text":"[link of a server to n: a:b]"}]}"#
        );
    }
}
