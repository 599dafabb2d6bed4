//! What is different from revision to revision: one file each, and this one writer that reads them.

mod v2024_11_05;
mod v2025_03_26;
mod v2025_06_18;
mod v2025_11_25;
mod v2026_07_28;

use crate::{
    json::{Json, Kind, ObjectWriter},
    method::{
        initialize::Implementation,
        meta,
        tools_call::{Content, ContentKind, Output},
        tools_list::Tool,
    },
};

/// A revision of the protocol, as a table of what it knows.
#[derive(Debug)]
pub struct Dialect {
    /// Its name on the wire.
    pub revision: &'static str,
    /// Whether every request carries all it needs (2026-07-28), or a handshake comes first.
    pub stateless: bool,
    /// The kinds of content it has.
    content: &'static [ContentKind],
    /// The members of a tool's definition that it does not have.
    unknown_tool_members: &'static [&'static str],
    /// What `structuredContent` may be.
    structured: Structured,
    /// Whether arguments that break the schema are an error of the tool, which a model can read.
    pub bad_arguments_are_tool_errors: bool,
    /// Whether progress may carry a message.
    pub progress_message: bool,
    /// Whether a form can be put to the user.
    pub elicitation: bool,
    /// Whether several messages may come as one JSON array.
    pub batches: bool,
}

#[derive(Debug, PartialEq)]
enum Structured {
    Unknown,
    Object,
    Any,
}

/// All revisions, the newest first.
pub static ALL: [&Dialect; 5] = [
    &v2026_07_28::DIALECT,
    &v2025_11_25::DIALECT,
    &v2025_06_18::DIALECT,
    &v2025_03_26::DIALECT,
    &v2024_11_05::DIALECT,
];

/// The newest revision without a handshake.
pub static MODERN: &Dialect = &v2026_07_28::DIALECT;
/// The newest revision with one.
pub static LEGACY: &Dialect = &v2025_11_25::DIALECT;

/// The revision of that name.
pub fn find(revision: &str) -> Option<&'static Dialect> {
    ALL.into_iter().find(|d| d.revision == revision)
}

impl Dialect {
    /// A tool's definition in the words of this revision.
    pub fn tool(&self, tool: &Tool) -> Json {
        let mut json = tool.json().clone();
        for member in self.unknown_tool_members {
            json = without(json, member);
        }
        if self.structured == Structured::Object && !describes_object(&json) {
            json = without(json, "outputSchema");
        }
        json
    }

    /// The result of `tools/list`.
    pub fn tools_list(&self, tools: &[Json], next: Option<&str>, server: &Implementation) -> Json {
        let mut o = ObjectWriter::new();
        if self.stateless {
            o.str("resultType", "complete");
        }
        o.array("tools", |a| tools.iter().for_each(|t| a.raw(t)));
        if let Some(next) = next {
            o.str("nextCursor", next);
        }
        if self.stateless {
            o.int("ttlMs", 0);
            o.str("cacheScope", "private");
        }
        self.finish(o, None, server)
    }

    /// The result of `tools/call`. What this revision has no word for becomes text or is left out.
    pub fn output(&self, output: &Output, server: &Implementation) -> Json {
        let mut o = ObjectWriter::new();
        if self.stateless {
            o.str("resultType", "complete");
        }
        o.array("content", |a| {
            output.content.iter().for_each(|c| a.raw(&self.content(c)))
        });
        if let Some(structured) = output.structured.as_ref().filter(|s| self.takes(s)) {
            o.raw("structuredContent", structured);
        }
        if output.is_error {
            o.bool("isError", true);
        }
        self.finish(o, output.meta.as_ref(), server)
    }

    /// An empty result.
    pub fn empty(&self, server: &Implementation) -> Json {
        let mut o = ObjectWriter::new();
        if self.stateless {
            o.str("resultType", "complete");
        }
        self.finish(o, None, server)
    }

    fn finish(&self, mut o: ObjectWriter, foreign: Option<&Json>, server: &Implementation) -> Json {
        if self.stateless {
            o.object("_meta", |m| {
                for (key, value) in foreign.into_iter().flat_map(Json::members) {
                    m.raw(&key, &value);
                }
                m.raw(meta::SERVER, &server.json());
            });
        } else if let Some(foreign) = foreign {
            o.raw("_meta", foreign);
        }
        o.finish()
    }

    fn content(&self, block: &Content) -> Json {
        if self.content.contains(&block.kind) {
            return block.json.clone();
        }
        let word = |key: &str| {
            block
                .json
                .get(key)
                .and_then(|v| v.string())
                .unwrap_or_default()
        };
        let text = match block.kind {
            ContentKind::ResourceLink => format!("[link to {}: {}]", word("name"), word("uri")),
            ContentKind::Audio => format!(
                "[audio of type {}, which this revision of the protocol has no word for]",
                word("mimeType")
            ),
            _ => format!(
                "[content of type {}, which this revision of the protocol has no word for]",
                word("type")
            ),
        };
        Content::text(&text).json
    }

    fn takes(&self, structured: &Json) -> bool {
        match self.structured {
            Structured::Unknown => false,
            Structured::Object => structured.kind() == Kind::Object,
            Structured::Any => true,
        }
    }
}

fn without(json: Json, member: &str) -> Json {
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
    use crate::json::Limits;

    fn json(text: &str) -> Json {
        Json::read(text.as_bytes().to_vec(), &Limits::default()).unwrap()
    }

    fn server() -> Implementation {
        Implementation {
            name: "s".into(),
            version: "1".into(),
        }
    }

    #[test]
    fn a_definition_keeps_its_bytes_where_the_revision_has_the_words() {
        let text = r#"{"name":"a", "inputSchema":{"type":"object"},"outputSchema":{"type":"array"},"icons":[],"x":1e400}"#;
        let tool = Tool::read(json(text)).unwrap();
        assert_eq!(MODERN.tool(&tool).as_str(), text);
        let older = LEGACY.tool(&tool);
        assert!(
            older.get("outputSchema").is_none(),
            "only objects before 2026-07-28"
        );
        assert!(
            find("2024-11-05")
                .unwrap()
                .tool(&tool)
                .get("icons")
                .is_none()
        );
    }

    #[test]
    fn structured_null_is_kept_for_modern_and_dropped_for_older() {
        let output = Output {
            structured: Some(json("null")),
            ..Output::text("x")
        };
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
        let output = Output {
            content: vec![link],
            ..Output::default()
        };
        let old = find("2025-03-26").unwrap().output(&output, &server());
        assert_eq!(
            old.as_str(),
            r#"{"content":[{"type":"text","text":"[link to n: a:b]"}]}"#
        );
    }
}
