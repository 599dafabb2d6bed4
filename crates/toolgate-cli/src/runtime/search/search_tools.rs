//! Search tools of the gateway: their definitions, and the implementation of `find_tools`.

use super::{SearchableTools, ToolSearch};
use crate::config::{MAX_SEARCH_RESULTS, SEARCH_SERVER};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::watch;
use toolgate_core::{
    BoxFuture, Call, Catalog, ChangeFilter, ChangeStream, Content, Definition, DefinitionPin,
    Error, Item, ItemKind, Json, ListRequest, Origin, Outcome, Output, Service, ToolResult,
};
use toolgate_protocol::json::ObjectWriter;

/// Name of the tool that finds tools.
pub(crate) const FIND_TOOLS: &str = "find_tools";
/// Name of the tool that calls a found tool.
pub(crate) const CALL_TOOL: &str = "call_tool";
/// Maximum length of a query in characters.
const MAX_QUERY_CHARS: usize = 1000;

/// Definition fields that a search result contains.
const RESULT_FIELDS: [&str; 6] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "annotations",
    "_meta",
];

/// Service of the two search tools, behind the same policy as all others.
pub(super) struct SearchTools {
    tools: Arc<SearchableTools>,
    list: Catalog,
}

impl SearchTools {
    pub(super) fn new(tools: Arc<SearchableTools>) -> SearchTools {
        let items = [find(tools.default_results), call()].into_iter();
        let items = items.filter_map(|def| {
            let def = Definition::tool(Json::from_value(&def)).ok()?;
            let origin = Origin {
                server: SEARCH_SERVER.into(),
                trusted: true,
            };
            // Built in and as trusted as the program: a change needs no approval.
            let item = Item::new(origin, def).with_pin(Arc::new(DefinitionPin::unlisted()));
            Some(Arc::new(item))
        });
        SearchTools {
            list: Catalog::new(items.collect()),
            tools,
        }
    }

    async fn find(&self, call: &Call) -> Result<ToolResult, Error> {
        let arguments = call.arguments().value();
        let query = arguments["query"].as_str().unwrap_or_default();
        let limit = arguments["limit"]
            .as_u64()
            .unwrap_or(self.tools.default_results);
        let list = self.tools.all(call.caller.clone()).await?;
        let found = self.tools.index(&list).find(query);
        let limit = usize::try_from(limit.min(MAX_SEARCH_RESULTS)).unwrap_or_default();
        let mut told: Vec<Json> = Vec::new();
        let mut bytes = 0;
        for at in found.iter().take(limit) {
            let one = result_entry(&list.items()[*at]);
            bytes += one.as_str().len();
            // Include a single oversized result: the size of a definition has its own limit.
            if bytes > self.tools.max_result_bytes && !told.is_empty() {
                break;
            }
            told.push(one);
        }
        let mut o = ObjectWriter::new();
        o.array("tools", |all| told.iter().for_each(|one| all.raw(one)));
        o.int("found", i64::try_from(found.len()).unwrap_or(i64::MAX));
        let structured = o.finish();
        Ok(ToolResult {
            without_text: false,
            content: vec![Content::text(structured.as_str())],
            structured: Some(structured),
            is_error: false,
            meta: None,
        })
    }
}

fn result_entry(item: &Item) -> Json {
    let mut o = ObjectWriter::new();
    for key in RESULT_FIELDS {
        if let Some(value) = item.def.json().get(key) {
            o.raw(key, &value);
        }
    }
    o.finish()
}

fn find(results: u64) -> Value {
    json!({
        "name": FIND_TOOLS, "title": "Find tools",
        "description": "Finds tools by keywords and returns their definitions. Not all tools are listed: search here first, \
                        then use call_tool.",
        "inputSchema": {
            "type": "object", "required": ["query"], "additionalProperties": false,
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": MAX_QUERY_CHARS, "description": "What the tool should do, in a few words."},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_SEARCH_RESULTS, "default": results, "description": "Maximum number of tools."},
            },
        },
        "outputSchema": {
            "type": "object", "required": ["tools", "found"],
            "properties": {
                "tools": {"type": "array", "items": {"type": "object"}, "description": "The matching tools, best first."},
                "found": {"type": "integer", "description": "Number of matching tools."},
            },
        },
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    })
}

fn call() -> Value {
    json!({
        "name": CALL_TOOL, "title": "Call a tool",
        "description": "Calls a tool by the name that find_tools returned, with arguments that match its inputSchema.",
        "inputSchema": {
            "type": "object", "required": ["name"], "additionalProperties": false,
            "properties": {
                "name": {"type": "string", "minLength": 1, "description": "The name of the tool."},
                "arguments": {"type": "object", "description": "Arguments of the tool."},
            },
        },
    })
}

impl Service for SearchTools {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        let list = match ask.kind {
            ItemKind::Tool => self.list.clone(),
            _ => Catalog::default(),
        };
        Box::pin(async move { Ok(list) })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            match call.name() {
                FIND_TOOLS => Ok(Outcome::Done(Output::Tool(self.find(&call).await?))),
                _ => Err(call.unknown_item_error()),
            }
        })
    }

    fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(async { Ok(ChangeStream::new(watch::Sender::default().subscribe())) })
    }
}

/// Returns name and arguments of the inner call; `None` if they do not match the schema.
pub(super) fn inner_call(call: &Call) -> Option<(String, Json)> {
    let raw = call.arguments().raw();
    if raw
        .members()
        .any(|(key, _)| key != "name" && key != "arguments")
    {
        return None;
    }
    let name = raw.get("name")?.string().filter(|name| !name.is_empty())?;
    match raw.get("arguments") {
        None => Some((name, ObjectWriter::new().finish())),
        Some(arguments) if arguments.kind() == toolgate_protocol::json::JsonKind::Object => {
            Some((name, arguments))
        }
        Some(_) => None,
    }
}

/// Returns the result of `call_tool` for a name that this caller does not know.
pub(super) fn unknown_tool(search: &ToolSearch, list: &Catalog, name: &str) -> ToolResult {
    let near = search.tools.similar_names(list, name);
    let hint = match near.is_empty() {
        true => String::new(),
        false => format!(" (did you mean {}?)", near.join(" or ")),
    };
    let name: String = name.chars().take(128).collect();
    ToolResult::error(&format!(
        "unknown tool: {name}{hint}; {FIND_TOOLS} returns the names of the available tools"
    ))
}
