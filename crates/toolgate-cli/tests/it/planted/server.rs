//! A server that plants something into every text that it can send.

use super::text::Texts;
use crate::help::{Reply, upstream};
use serde_json::{Value, json};
use std::sync::Arc;

/// The start of a PNG: what a picture has to be to pass.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Serves in that revision, with all its lists made once; the address.
pub(super) fn serve(texts: &Arc<Texts>, revision: &'static str) -> String {
    let planter = Planter {
        tools: tools(texts),
        resources: resources(texts),
        templates: templates(texts),
        prompts: prompts(texts),
        texts: texts.clone(),
        revision,
    };
    upstream(move |message| planter.answer(message))
}

/// One whose lists fail, in words that are planted.
pub(super) fn serve_without_lists(texts: &Arc<Texts>) -> String {
    let texts = texts.clone();
    upstream(move |message| match message["method"].as_str().unwrap() {
        "server/discover" => Reply::Events(vec![reply(message, discovered(&texts))]),
        _ => Reply::Events(vec![fails(message, -32001, &texts)]),
    })
}

/// One that refuses everybody, in words that are planted.
pub(super) fn serve_nobody(texts: &Arc<Texts>, status: u16) -> String {
    let texts = texts.clone();
    upstream(move |_| Reply::Status(status, "text/plain", texts.mute("nobody")))
}

struct Planter {
    texts: Arc<Texts>,
    revision: &'static str,
    tools: Value,
    resources: Value,
    templates: Value,
    prompts: Value,
}

impl Planter {
    fn modern(&self) -> bool {
        self.revision == "2026-07-28"
    }

    fn answer(&self, message: &Value) -> Reply {
        let params = &message["params"];
        let name = params["name"].as_str().or(params["uri"].as_str());
        let name = name.unwrap_or_default();
        let method = message["method"].as_str().unwrap();
        let result = match method {
            "server/discover" if self.modern() => discovered(&self.texts),
            "initialize" if !self.modern() => self.opened(),
            "tools/list" => json!({"tools": self.tools}),
            "resources/list" => json!({"resources": self.resources}),
            "resources/templates/list" => json!({"resourceTemplates": self.templates}),
            "prompts/list" => json!({"prompts": self.prompts}),
            "logging/setLevel" => json!({}),
            _ if name.ends_with("broken") => {
                return self.told(message, fails(message, -32001, &self.texts));
            }
            _ if name.ends_with("gone") => {
                return Reply::Status(500, "text/plain", self.texts.mute("gone"));
            }
            _ if name.ends_with("refused") => {
                let body = json!({"error": {"message": self.texts.mute("refused")}});
                return Reply::Status(429, "application/json", body.to_string());
            }
            _ if name.ends_with("strange") => json!({"resultType": self.texts.mute("strange")}),
            "tools/call" => self.called(name),
            "resources/read" => json!({"contents": [self.part(name)], "_meta": self.meta()}),
            "prompts/get" => self.prompt(),
            "completion/complete" => {
                json!({"completion": {"values": [self.say("value"), self.say("value")]}, "_meta": self.meta()})
            }
            _ => return Reply::Events(vec![fails(message, -32601, &self.texts)]),
        };
        self.told(message, reply(message, result))
    }

    fn say(&self, word: &str) -> String {
        self.texts.say(word)
    }

    /// The answer, after progress and a log message where they are wanted.
    fn told(&self, message: &Value, answer: Value) -> Reply {
        let mut all = Vec::new();
        let meta = &message["params"]["_meta"];
        if let Some(token) = meta.get("progressToken") {
            let params =
                json!({"progressToken": token, "progress": 1, "message": self.say("progress")});
            all.push(notice("notifications/progress", params));
            let wanted = meta.get("io.modelcontextprotocol/logLevel").is_some();
            if wanted || !self.modern() {
                let params = json!({"level": "error", "logger": self.say("logger"), "data": self.tree("log")});
                all.push(notice("notifications/message", params));
            }
        }
        all.push(answer);
        Reply::Events(all)
    }

    fn opened(&self) -> Value {
        let mut opened = discovered(&self.texts);
        opened["protocolVersion"] = self.revision.into();
        opened["serverInfo"] =
            json!({"name": self.texts.mute("itself"), "version": self.texts.mute("itself")});
        opened
    }

    /// Texts at some depth.
    fn tree(&self, word: &str) -> Value {
        let mut tree = json!(self.say(word));
        for _ in 0..self.texts.below(4) {
            let key = ["a", "b", "data", "blob", "text", "uri"][self.texts.below(6)];
            tree = match self.texts.below(2) {
                0 => json!([tree, self.say(word)]),
                _ => json!({key: tree, "n": 1.5e3}),
            };
        }
        tree
    }

    fn meta(&self) -> Value {
        json!({"example.com/a": self.tree("meta")})
    }

    fn part(&self, uri: &str) -> Value {
        json!({"uri": uri, "mimeType": self.say("mime"), "text": self.say("part"), "_meta": self.meta()})
    }

    fn blocks(&self) -> Vec<Value> {
        let note = json!({"audience": ["user"], "priority": 1, "lastModified": self.say("stamp")});
        let blob =
            json!({"uri": "test://b", "mimeType": "image/png", "blob": PNG, "_meta": self.meta()});
        vec![
            json!({"type": "text", "text": self.say("block"), "annotations": note, "_meta": self.meta()}),
            json!({"type": "image", "data": PNG, "mimeType": "image/png", "_meta": self.meta()}),
            json!({"type": "resource", "resource": self.part("test://a"), "_meta": self.meta()}),
            json!({"type": "resource", "resource": blob}),
            json!({"type": "resource_link", "uri": "test://l", "name": self.say("link"), "title": self.say("link"),
                "description": self.say("link"), "mimeType": self.say("mime"), "_meta": self.meta()}),
        ]
    }

    fn called(&self, name: &str) -> Value {
        let field =
            json!({"type": "string", "title": self.say("input"), "description": self.say("input")});
        let form = json!({"type": "object", "properties": {"x": field}});
        let ask = |method: &str, params: Value| json!({"resultType": "input_required", "inputRequests": {"q": {"method": method, "params": params}}});
        match name {
            "asks" => ask(
                "elicitation/create",
                json!({"mode": "form", "message": self.say("form"), "requestedSchema": form}),
            ),
            "samples" => {
                let said = json!({"role": "user", "content": {"type": "text", "text": self.say("sample")}});
                ask(
                    "sampling/createMessage",
                    json!({"messages": [said], "systemPrompt": self.say("system"), "maxTokens": 9}),
                )
            }
            "keys" => {
                let key = format!("a{}b", self.texts.hidden().replace('\0', "\u{7}"));
                json!({"content": [], "structuredContent": {key: self.say("key")}})
            }
            _ => json!({"content": self.blocks(), "isError": name == "fails", "_meta": self.meta(),
                "structuredContent": {"s": self.tree("structured")}}),
        }
    }

    fn prompt(&self) -> Value {
        let said = |block| json!({"role": "user", "content": block});
        let messages: Vec<Value> = self.blocks().into_iter().map(said).collect();
        json!({"description": self.say("prompt"), "messages": messages, "_meta": self.meta()})
    }
}

fn reply(message: &Value, mut result: Value) -> Value {
    for (key, value) in [
        ("resultType", json!("complete")),
        ("ttlMs", json!(60_000)),
        ("cacheScope", json!("private")),
    ] {
        if result.get(key).is_none() {
            result[key] = value;
        }
    }
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result})
}

fn notice(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// An error with words and data.
fn fails(message: &Value, code: i64, texts: &Texts) -> Value {
    let error =
        json!({"code": code, "message": texts.mute("broken"), "data": {"a": texts.mute("data")}});
    json!({"jsonrpc": "2.0", "id": message["id"], "error": error})
}

fn discovered(texts: &Texts) -> Value {
    let itself = json!({"name": texts.mute("itself"), "title": texts.mute("itself"), "version": texts.mute("1")});
    json!({
        "supportedVersions": ["2026-07-28"], "instructions": texts.mute("instructions"),
        "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}},
        "_meta": {"io.modelcontextprotocol/serverInfo": itself},
    })
}

fn described(texts: &Texts, mut rest: Value) -> Value {
    rest["title"] = texts.say("title").into();
    rest["description"] = texts.say("description").into();
    rest["_meta"] = json!({"example.com/a": [texts.say("meta")]});
    rest
}

/// Good ones, and those that nobody should see: their names, or what decides which arguments fit, would have to change.
fn tools(texts: &Texts) -> Value {
    let mut all = Vec::new();
    for name in [
        "done", "fails", "broken", "gone", "refused", "strange", "asks", "samples", "keys",
    ] {
        let mut field = json!({"type": "string", "examples": [texts.say("example")]});
        field["title"] = texts.say("field").into();
        field["description"] = texts.say("field").into();
        let schema = json!({"type": "object", "description": texts.say("schema"), "properties": {"x": field}});
        let claims = json!({"title": texts.say("claim"), "readOnlyHint": true});
        let mut tool = json!({"name": name, "inputSchema": schema, "annotations": claims});
        if name == "done" {
            let s = json!({"description": texts.say("output")});
            tool["outputSchema"] = json!({"type": "object", "properties": {"s": s}});
        }
        all.push(described(texts, tool));
    }
    let bad = |schema: Value| json!({"name": "bad", "inputSchema": {"type": "object", "properties": schema}});
    let mut named = bad(json!({}));
    named["name"] = texts.mute("bad").into();
    let mut choice = bad(json!({"x": {"enum": [texts.mute("choice")]}}));
    choice["name"] = "bad-choice".into();
    let mut key = bad(json!({texts.mute_key("key"): {}}));
    key["name"] = "bad-key".into();
    all.extend([named, choice, key]);
    all.into()
}

fn resources(texts: &Texts) -> Value {
    let one = |uri: &str| {
        let rest = json!({"uri": uri, "name": texts.say("name"), "mimeType": texts.say("mime")});
        described(texts, rest)
    };
    json!([
        one("test://done"),
        one("test://broken"),
        json!({"uri": format!("test://{}", texts.mute("bad")), "name": "bad"})
    ])
}

fn templates(texts: &Texts) -> Value {
    let rest = json!({"uriTemplate": "made://{x}", "name": texts.say("name"), "mimeType": texts.say("mime")});
    json!([described(texts, rest)])
}

fn prompts(texts: &Texts) -> Value {
    let one = |name: &str| {
        let argument = json!({"name": "a", "title": texts.say("argument"), "description": texts.say("argument")});
        described(texts, json!({"name": name, "arguments": [argument]}))
    };
    json!([
        one("done"),
        one("broken"),
        json!({"name": texts.mute("bad")})
    ])
}
