//! A server that plants hidden characters into every text that it can.

use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};
use toolgate::{
    Call, Content, Error, Json, Outcome, Service,
    core::{
        BoxFuture, Catalog, ChangeFilter, ChangeStream, Definition, ErrorKind, InputRequest,
        InputRequestKind, InputRequests, Item, ItemKind, ListRequest, LogMessage, Origin, Output,
        Progress, PromptMessage, PromptResult, ReadResult, ReporterEvent, SchemaViolation,
        ToolResult,
    },
};
use toolgate_protocol::method::{complete::CompleteResult, list::CacheHint, operation::Op};

/// Characters that nobody sees, or that steer what a person sees.
pub(super) const HIDDEN: [char; 16] = [
    '\u{7}',
    '\u{1b}',
    '\u{7f}',
    '\u{9b}',
    '\u{ad}',
    '\u{200b}',
    '\u{200e}',
    '\u{202e}',
    '\u{2028}',
    '\u{2060}',
    '\u{2066}',
    '\u{fdd0}',
    '\u{feff}',
    '\u{fff9}',
    '\u{100000}',
    '\u{e0041}',
];

pub(super) struct Planter {
    next: AtomicUsize,
    stale: tokio::sync::watch::Sender<toolgate::core::ChangeCounters>,
}

impl Planter {
    /// Begins with that character of [`HIDDEN`], and takes the next one for the next text.
    pub(super) fn new(first: usize) -> Arc<Planter> {
        let next = AtomicUsize::new(first);
        let stale = tokio::sync::watch::Sender::default();
        Arc::new(Planter { next, stale })
    }

    /// The word, and once more with the character in it and behind it.
    fn say(&self, word: &str) -> String {
        let (a, b) = word.split_at(word.len() / 2);
        let hidden = HIDDEN[self.next.fetch_add(1, Relaxed) % HIDDEN.len()];
        format!("{word} {a}{hidden}{b}{hidden}")
    }

    fn tree(&self, word: &str) -> Value {
        json!({"a": [self.say(word), {"b": self.say(word)}]})
    }

    fn definition(&self, kind: ItemKind, name: &str) -> Arc<Item> {
        let title = self.say("title");
        let mut def = json!({"name": name, "title": title, "description": self.say("description")});
        def[kind.key_member()] = name.into();
        match kind {
            ItemKind::Tool => {
                let field = json!({"type": "string", "title": self.say("field"), "description": self.say("field")});
                def["inputSchema"] = json!({"type": "object", "description": self.say("schema"), "properties": {"x": field}});
                def["annotations"] = json!({"title": self.say("claim")});
            }
            ItemKind::Prompt => {
                let argument = json!({"name": "a", "title": self.say("argument"), "description": self.say("argument")});
                def["arguments"] = json!([argument]);
            }
            ItemKind::Resource | ItemKind::Template => def["name"] = "r".into(),
            ItemKind::Skill => {
                def["frontmatter"] = json!({"name": "made", "description": self.say("head")});
                let digest = format!("sha256:{}", "0".repeat(64));
                def["resources"] = json!([{"uri": name, "digest": digest, "size": 1}]);
            }
        }
        self.item(kind, &def)
    }

    fn item(&self, kind: ItemKind, def: &Value) -> Arc<Item> {
        let origin = Origin {
            server: "planter".into(),
            trusted: false,
        };
        let def = Definition::read(kind, Json::from_value(def)).unwrap();
        Arc::new(Item::new(origin, def))
    }

    /// Tools that nobody should see: their names, or what decides which arguments fit, would have to change.
    fn bad(&self) -> [Arc<Item>; 3] {
        let object = |schema: Value| json!({"type": "object", "properties": schema});
        let tool = |name: &str, schema: Value| {
            let def = json!({"name": name, "inputSchema": schema});
            self.item(ItemKind::Tool, &def)
        };
        [
            tool(&self.say("name"), object(json!({}))),
            tool(
                "choice",
                object(json!({"x": {"enum": [self.say("choice")]}})),
            ),
            tool("key", object(json!({self.say("key"): {"type": "string"}}))),
        ]
    }

    fn items(&self, kind: ItemKind) -> Vec<Arc<Item>> {
        let names: &[&str] = match kind {
            ItemKind::Tool => &["done", "fails", "broken", "invalid", "asks", "samples"],
            ItemKind::Resource => &["test://done", "test://broken"],
            ItemKind::Template => &["made://{x}"],
            ItemKind::Prompt => &["done", "broken"],
            ItemKind::Skill => &["skill://made/SKILL.md"],
        };
        let good = names.iter().map(|name| self.definition(kind, name));
        let mut items: Vec<Arc<Item>> = good.collect();
        if kind == ItemKind::Tool {
            items.extend(self.bad());
        }
        items
    }

    fn blocks(&self) -> Vec<Content> {
        let part =
            json!({"uri": "test://x", "mimeType": self.say("mime"), "text": self.say("part")});
        let blocks = [
            json!({"type": "text", "text": self.say("block"), "_meta": self.tree("block")}),
            json!({"type": "image", "data": "AAAA", "mimeType": self.say("mime")}),
            json!({"type": "audio", "data": "AAAA", "mimeType": self.say("mime")}),
            json!({"type": "resource", "resource": part}),
            json!({"type": "resource_link", "uri": "test://x", "name": self.say("link"), "title": self.say("link")}),
            json!({"type": self.say("strange")}),
        ];
        let read = |block| Content::read(Json::from_value(&block)).unwrap();
        blocks.into_iter().map(read).collect()
    }

    fn meta(&self) -> Option<Json> {
        Some(Json::from_value(
            &json!({"example.com/a": self.tree("meta")}),
        ))
    }

    fn tool(&self, name: &str) -> Result<Outcome, Error> {
        let result = |is_error| ToolResult {
            content: self.blocks(),
            structured: Some(Json::from_value(&self.tree("structured"))),
            is_error,
            meta: self.meta(),
            ..ToolResult::default()
        };
        let ask = |kind| {
            let key = "q".to_owned();
            let asks = vec![InputRequest { key, kind }];
            Ok(Outcome::InputRequired(InputRequests::new(asks)))
        };
        match name {
            "fails" => Ok(Outcome::Done(Output::Tool(result(true)))),
            "broken" => Err(self.broken()),
            "invalid" => {
                let problem =
                    SchemaViolation::new(self.say("path"), self.say("expected"), self.say("got"));
                Err(Error::new(
                    ErrorKind::InvalidArguments(vec![problem]),
                    self.say("invalid"),
                ))
            }
            "asks" => {
                let field = json!({"type": "string", "title": self.say("field"), "description": self.say("field")});
                let schema = json!({"type": "object", "properties": {"x": field}});
                let form = json!({"message": self.say("form"), "requestedSchema": schema});
                ask(InputRequestKind::Elicit(Json::from_value(&form)))
            }
            "samples" => {
                let said = json!({"role": "user", "content": {"type": "text", "text": self.say("sample")}});
                let params =
                    json!({"messages": [said], "maxTokens": 9, "systemPrompt": self.say("sample")});
                ask(InputRequestKind::Sample(Json::from_value(&params)))
            }
            _ => Ok(Outcome::Done(Output::Tool(result(false)))),
        }
    }

    fn broken(&self) -> Error {
        Error::new(ErrorKind::JsonRpc(-32099), self.say("broken"))
    }

    fn used(&self, call: &Call) -> Result<Outcome, Error> {
        call.reporter.send(ReporterEvent::Progress(Progress {
            progress: 1.0,
            total: None,
            message: Some(self.say("progress")),
        }));
        let mut log_message = LogMessage::new("error", Json::from_value(&self.tree("logged")));
        log_message.logger = Some(self.say("logger"));
        call.reporter.send(ReporterEvent::Log(log_message));
        let output = match call.op {
            Op::Tool => return self.tool(call.name()),
            _ if call.name().ends_with("broken") => return Err(self.broken()),
            Op::Resource => {
                let part = json!({"uri": call.name(), "mimeType": self.say("mime"), "text": self.say("part"), "_meta": self.tree("part")});
                Output::Resource(ReadResult {
                    contents: vec![Json::from_value(&part)],
                    hint: CacheHint::default(),
                    meta: self.meta(),
                })
            }
            Op::Prompt => {
                let user = self.blocks().into_iter().map(PromptMessage::user);
                Output::Prompt(PromptResult {
                    description: Some(self.say("about")),
                    messages: user.collect(),
                    meta: self.meta(),
                })
            }
            Op::Complete(_) => Output::Complete(CompleteResult {
                values: vec![self.say("value")],
                meta: self.meta(),
                ..CompleteResult::default()
            }),
        };
        Ok(Outcome::Done(output))
    }
}

impl Service for Planter {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        let about = Some(self.say("instructions"));
        let catalog = Catalog::with_missing_servers(self.items(ask.kind), Vec::new(), about);
        Box::pin(async { Ok(catalog) })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move { self.used(&call) })
    }

    fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(async { Ok(ChangeStream::new(self.stale.subscribe())) })
    }
}
