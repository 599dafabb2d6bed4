//! The same corpus, read by the clients of the official SDKs.

use super::corpus::{Case, cases};
use super::expectation::{expect, short};
use super::raw_client::{Listed, RawClient};
use super::{both, gate, nothing_is};
use crate::help::{Client, Script, real};
use serde_json::{Value, json};
use std::path::Path;

/// The SDKs, and the era to which each is held.
const CLIENTS: [(Client, &str); 4] = [
    (Client::TypeScript1, "legacy"),
    (Client::TypeScript2, "modern"),
    (Client::Python1, "legacy"),
    (Client::Python, "modern"),
];

/// Step of a client's job for a case.
struct Step<'a> {
    case: &'a Case,
    job: Value,
}

/// A client, and how it reaches the gateway.
struct Reader {
    client: Client,
    mode: &'static str,
    to: Value,
}

impl Reader {
    /// Lists everything and uses each case; returns what is wrong.
    fn read_all(&self, real: &Path, listed: &Listed, steps: &[Step<'_>]) -> Vec<String> {
        let mut job = self.to.clone();
        job["mode"] = json!(self.mode);
        let mut all = vec![json!({"do": "list"})];
        let lists = ["resources/list", "resources/templates/list", "prompts/list"];
        all.extend(lists.map(|method| json!({"do": "ask", "method": method, "params": {}})));
        all.extend(steps.iter().map(|step| step.job.clone()));
        all.push(json!({"do": "call", "name": "good_add", "arguments": {"a": 1, "b": 2}}));
        job["steps"] = json!(all);
        let mut script = self.client.start(real, &job);
        script.event("connected");
        let mut wrong = lists_are_whole(&mut script, listed);
        for Step { case, .. } in steps {
            if let Err(why) = case.check_sdk(&script.end_of_step()) {
                wrong.push(format!("{}: {}: {why}", case.file, case.name));
            }
        }
        let sum = script.end_of_step();
        if !sum["text"].as_str().unwrap_or_default().contains('3') {
            wrong.push(format!("the good server: {sum}"));
        }
        script.event("done");
        let how = if self.to.get("http").is_some() {
            "HTTP"
        } else {
            "stdio"
        };
        let named = |why| format!("{:?} over {how}: {why}", self.client);
        wrong.into_iter().map(named).collect()
    }
}

/// Compares the lists of a client with those of the client by hand.
fn lists_are_whole(script: &mut Script, listed: &Listed) -> Vec<String> {
    let kinds = [
        ("name", &listed.tools, "tools"),
        ("uri", &listed.resources, "resources"),
        ("uriTemplate", &listed.templates, "resourceTemplates"),
        ("name", &listed.prompts, "prompts"),
    ];
    let mut wrong = Vec::new();
    for (key, items, member) in kinds {
        let event = script.end_of_step();
        let found = event.get(member).unwrap_or(&event["result"][member]);
        let has = |item: &Value| {
            let mut found = found.as_array().into_iter().flatten();
            found.any(|one| one[key] == item[key])
        };
        let missing: Vec<&Value> = items.iter().filter(|item| !has(item)).collect();
        if !missing.is_empty() {
            let names: Vec<_> = missing.iter().map(|item| &item[key]).collect();
            wrong.push(format!("{member} without {names:?}: {}", short(&event)));
        }
    }
    wrong
}

impl Case {
    /// Returns the step of an SDK's client, if the case can be used.
    fn step(&self, listed: &Listed) -> Option<Value> {
        if self.is_tool() {
            let name = self.shown(listed).filter(|_| self.is_listed())?;
            return Some(json!({"do": "call", "name": name, "arguments": self.arguments()}));
        }
        let ask = |method, params| json!({"do": "ask", "method": method, "params": params});
        if self.line["prompt"].is_object() {
            let params = json!({"name": self.outward(&self.name), "arguments": self.arguments()});
            return Some(ask("prompts/get", params));
        }
        let uri = self.line["resource"]["uri"].as_str()?;
        let uri = self.line["shown"].as_str().unwrap_or(uri);
        self.is_listed()
            .then(|| ask("resources/read", json!({"uri": uri})))
    }

    /// Checks what an SDK's client says of its step: a result, or an error.
    fn check_sdk(&self, event: &Value) -> Result<(), String> {
        let said = || format!("it ends with {}", short(event));
        let failed = event["event"] == "error" || event["is_error"] == json!(true);
        let text = format!(
            "{}{}{}",
            event["text"].as_str().unwrap_or_default(),
            event["message"].as_str().unwrap_or_default(),
            event["structured"]
        );
        if let Some(error) = self.line["error"].as_str() {
            return expect(failed && text.contains(error), said);
        }
        expect(failed == (self.line["is_error"] == json!(true)), said)?;
        if self.is_tool() {
            return expect(text.contains(&self.text(&self.arguments())), said);
        }
        let result = &event["result"];
        let first = match self.line["prompt"].is_object() {
            true => &result["messages"][0]["content"]["text"],
            false => &result["contents"][0]["text"],
        };
        let wanted = match self.line["read"] == json!(true) {
            true => "read",
            false if self.line["prompt"].is_object() => "prompted",
            false => return expect(result.is_object(), said),
        };
        expect(first == wanted, said)
    }
}

#[test]
fn official_sdks_read_odd_servers() {
    let Some(real) = real() else { return };
    let cases = cases();
    let gate = gate(&real, &cases);
    let (listed, _) = RawClient::over_http("2025-11-25", gate.port).lists();
    let step = |case| {
        Some(Step {
            case,
            job: Case::step(case, &listed)?,
        })
    };
    let steps: Vec<Step<'_>> = cases.iter().filter_map(step).collect();
    // The definitions are pinned there, so the lists of the gateways over stdio are complete while their servers start.
    let [config, state] = ["toolgate.toml", "state"].map(|name| gate.data.file(name));
    let program = env!("CARGO_BIN_EXE_toolgate");
    let over_stdio =
        json!({"stdio": [program, "serve", "--stdio", "--config", config, "--data", state]});
    let over_http = json!({"http": gate.endpoint});
    let read = |to: &Value| {
        let read = |(client, mode)| {
            let to = to.clone();
            Reader { client, mode, to }.read_all(&real, &listed, &steps)
        };
        CLIENTS.into_iter().flat_map(read).collect::<Vec<_>>()
    };
    let wrong = both(|| read(&over_http), || read(&over_stdio));
    nothing_is(&wrong);
    gate.stop();
}
