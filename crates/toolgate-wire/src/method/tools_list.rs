//! `tools/list`: the tools that a server offers.

use crate::json::{Json, Kind};
use std::borrow::Cow;

/// The method.
pub const NAME: &str = "tools/list";

/// The definition of a tool: the text as it came, and its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    name: String,
    json: Json,
}

/// What a tool claims to do. Claims, unless the operator trusts the server that makes them.
///
/// Source: `ToolAnnotations` of the schema.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may destroy; means something only when it is not read-only.
    pub destructive: bool,
    /// A second call changes nothing more.
    pub idempotent: bool,
    /// It reaches out of the server's own world.
    pub open_world: bool,
}

impl Default for Hints {
    /// What absent hints mean.
    fn default() -> Hints {
        Hints {
            read_only: false,
            destructive: true,
            idempotent: false,
            open_world: true,
        }
    }
}

impl Tool {
    /// Reads a definition.
    ///
    /// # Errors
    /// Says which member is missing or wrong.
    pub fn read(json: Json) -> Result<Tool, &'static str> {
        let Some(name) = json.get("name").and_then(|n| n.string()) else {
            return Err("the tool has no \"name\"");
        };
        if json
            .get("inputSchema")
            .is_none_or(|s| s.kind() != Kind::Object)
        {
            return Err("\"inputSchema\" is not an object");
        }
        if json
            .get("outputSchema")
            .is_some_and(|s| !matches!(s.kind(), Kind::Object | Kind::Bool))
        {
            return Err("\"outputSchema\" is not a schema");
        }
        Ok(Tool { name, json })
    }

    /// Its name in the words of whoever made this definition.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole definition.
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// The same tool under another name; all other bytes stay.
    pub fn renamed(&self, name: &str) -> Tool {
        let json = self.json.with("name", &Json::from_value(&name.into()));
        Tool {
            name: name.to_owned(),
            json,
        }
    }

    /// What a person should see as its name: `title`, then `annotations.title`, then `name`.
    pub fn title(&self) -> Cow<'_, str> {
        let own = self.json.get("title").and_then(|t| t.string());
        let old = || self.json.get("annotations")?.get("title")?.string();
        own.or_else(old)
            .map_or(Cow::Borrowed(&self.name), Cow::Owned)
    }

    /// What it says it does.
    pub fn description(&self) -> Option<String> {
        self.json.get("description")?.string()
    }

    /// The schema of its arguments.
    pub fn input_schema(&self) -> Json {
        self.json
            .get("inputSchema")
            .unwrap_or_else(|| Json::from_value(&serde_json::json!({"type": "object"})))
    }

    /// The schema of its structured result.
    pub fn output_schema(&self) -> Option<Json> {
        self.json.get("outputSchema")
    }

    /// What it claims to do.
    pub fn hints(&self) -> Hints {
        let claims = self.json.get("annotations");
        let said = |key: &str| claims.as_ref()?.get(key)?.bool();
        let absent = Hints::default();
        Hints {
            read_only: said("readOnlyHint").unwrap_or(absent.read_only),
            destructive: said("destructiveHint").unwrap_or(absent.destructive),
            idempotent: said("idempotentHint").unwrap_or(absent.idempotent),
            open_world: said("openWorldHint").unwrap_or(absent.open_world),
        }
    }
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct Page {
    /// The definitions as they came.
    pub tools: Vec<Json>,
    /// Where the next page begins; absent at the end. An empty string is a cursor.
    pub next: Option<Json>,
    /// How long the list is fresh, in milliseconds; 0 where the server did not say.
    pub ttl_ms: u64,
}

impl Page {
    /// Reads a page; `None` where `tools` is missing.
    pub fn read(result: &Json) -> Option<Page> {
        let tools = result.get("tools").filter(|t| t.kind() == Kind::Array)?;
        let next = result
            .get("nextCursor")
            .filter(|c| c.kind() == Kind::String);
        let ttl_ms = result.get("ttlMs").and_then(|t| t.u64()).unwrap_or(0);
        Some(Page {
            tools: tools.items().collect(),
            next,
            ttl_ms,
        })
    }
}
