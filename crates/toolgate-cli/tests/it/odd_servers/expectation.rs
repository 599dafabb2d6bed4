//! Expected outcome of a case for a raw client.

use super::corpus::Case;
use super::raw_client::{Listed, RawClient};
use serde_json::{Value, json};

impl Case {
    /// Uses it as a client would.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn check(&self, client: &mut RawClient, listed: &Listed) -> Result<(), String> {
        match () {
            () if self.is_server() => self.check_server(client, listed),
            () if self.is_tool() => self.check_tool(client, listed),
            () => self.check_other(client, listed),
        }
    }

    pub(super) fn is_tool(&self) -> bool {
        self.line.get("tool").is_some()
    }

    /// Returns whether clients see it.
    pub(super) fn is_listed(&self) -> bool {
        self.line["listed"] != json!(false)
    }

    /// The name under which a client has its tool, where it is in the list.
    pub(super) fn shown<'a>(&self, listed: &'a Listed) -> Option<&'a str> {
        let own = self.outward(self.line["tool"]["name"].as_str().unwrap_or(&self.name));
        let is = |tool: &&Value| match self.file {
            // Its name may become another; its description says which case it is.
            "names" => tool["description"] == json!(self.name),
            _ => tool["name"] == json!(own),
        };
        listed.tools.iter().find(is)?["name"].as_str()
    }

    /// A name of its server as clients see it.
    pub(super) fn outward(&self, name: &str) -> String {
        format!("{}_{name}", self.server)
    }

    /// The arguments of a call that must end as the case says.
    pub(super) fn arguments(&self) -> Value {
        let first = self.each("accepts").next().cloned();
        first.unwrap_or_else(|| json!({}))
    }

    /// Text that the result of a call with these arguments has.
    pub(super) fn text(&self, arguments: &Value) -> String {
        let is_said = ["result", "result_raw", "reply_raw"]
            .iter()
            .any(|member| self.line.get(member).is_some());
        match self.line["text"].as_str() {
            Some(text) => text.to_owned(),
            None if is_said => String::new(),
            None => format!("ran {arguments}"),
        }
    }

    fn check_tool(&self, client: &mut RawClient, listed: &Listed) -> Result<(), String> {
        let shown = self.shown(listed);
        if !self.is_listed() {
            expect(shown.is_none(), || "it is listed".to_owned())?;
            return self.check_withheld(client);
        }
        let shown = shown.ok_or("it is not listed")?;
        if let Some(wanted) = self.line["shown"].as_str() {
            expect(shown == wanted, || format!("it is shown as {shown}"))?;
        }
        let mut tools = listed.tools.iter();
        self.check_absent(tools.find(|tool| tool["name"] == shown).unwrap())?;
        self.check_answer(client, shown, &self.arguments())?;
        for arguments in self.each("accepts").skip(1) {
            self.check_answer(client, shown, arguments)?;
        }
        for arguments in self.each("refuses") {
            let answer = client.call(shown, arguments)?;
            let refused = is_error(&answer) && !text_of(&answer).contains("ran ");
            expect(refused, || {
                format!("{arguments} is answered {}", short(&answer))
            })?;
        }
        Ok(())
    }

    fn check_absent(&self, definition: &Value) -> Result<(), String> {
        for pointer in self.each("absent") {
            let there = definition.pointer(pointer.as_str().unwrap());
            expect(there.is_none(), || {
                format!("{pointer} is {}", there.unwrap())
            })?;
        }
        Ok(())
    }

    /// A call to a tool that is not listed says that it is withheld.
    fn check_withheld(&self, client: &mut RawClient) -> Result<(), String> {
        let shown = self.line["shown"].as_str().map(str::to_owned);
        let name = shown.unwrap_or_else(|| self.outward(&self.name));
        let answer = client.call(&name, &json!({}))?;
        let withheld = is_error(&answer) && text_of(&answer).contains("withheld");
        expect(withheld, || {
            format!("a call is answered {}", short(&answer))
        })
    }

    fn check_answer(
        &self,
        client: &mut RawClient,
        shown: &str,
        arguments: &Value,
    ) -> Result<(), String> {
        let answer = client.call(shown, arguments)?;
        let text = text_of(&answer);
        let said = || format!("{arguments} is answered {}", short(&answer));
        if let Some(error) = self.line["error"].as_str() {
            expect(is_error(&answer) && text.contains(error), said)?;
            let code = &self.line["code"];
            return expect(code.is_null() || answer["error"]["code"] == *code, said);
        }
        let result = &answer["result"];
        let wants_error = self.line["is_error"] == json!(true);
        expect(result.is_object() && is_error(&answer) == wants_error, said)?;
        expect(text.contains(&self.text(arguments)), said)?;
        if !client.knows_structured() {
            return expect(result.get("structuredContent").is_none(), said);
        }
        for member in self.each("unchanged") {
            let member = member.as_str().unwrap();
            expect(result[member] == self.line["result"][member], said)?;
        }
        Ok(())
    }

    /// A resource, a template or a prompt.
    fn check_other(&self, client: &mut RawClient, listed: &Listed) -> Result<(), String> {
        let [resource, template, prompt] = ["resource", "template", "prompt"]
            .map(|kind| self.line.get(kind).cloned().unwrap_or_default());
        if let Some(uri) = resource["uri"].as_str() {
            return self.check_resource(client, listed, uri);
        }
        if let Some(uri) = template["uriTemplate"].as_str() {
            let found = find(&listed.templates, "uriTemplate", uri);
            return self.check_absent(found.ok_or("it is not listed")?);
        }
        if prompt.is_object() {
            let name = self.outward(&self.name);
            self.check_absent(find(&listed.prompts, "name", &name).ok_or("it is not listed")?)?;
            let arguments = &self.arguments();
            let params = json!({"name": name, "arguments": arguments});
            let answer = client.request("prompts/get", params)?;
            let text = &answer["result"]["messages"][0]["content"]["text"];
            return expect(text == "prompted", || {
                format!("it is answered {}", short(&answer))
            });
        }
        // Its definition is raw.
        let shown = self.line["shown"].as_str();
        let is_there = shown.is_some_and(|uri| find(&listed.resources, "uri", uri).is_some());
        expect(is_there == shown.is_some(), || {
            "it is not listed".to_owned()
        })
    }

    fn check_resource(
        &self,
        client: &mut RawClient,
        listed: &Listed,
        uri: &str,
    ) -> Result<(), String> {
        let uri = self.line["shown"].as_str().unwrap_or(uri);
        let found = find(&listed.resources, "uri", uri);
        if !self.is_listed() {
            return expect(found.is_none(), || "it is listed".to_owned());
        }
        self.check_absent(found.ok_or("it is not listed")?)?;
        let answer = client.request("resources/read", json!({"uri": uri}))?;
        let text = answer["result"]["contents"][0]["text"].as_str();
        let wanted = self.line["read"] != json!(true) || text == Some("read");
        expect(wanted && answer.get("result").is_some(), || {
            format!("a read is answered {}", short(&answer))
        })
    }

    /// A server of its own: the tools that clients see of it, each of which works.
    fn check_server(&self, client: &mut RawClient, listed: &Listed) -> Result<(), String> {
        let prefix = self.outward("");
        let names = listed.tools.iter().filter_map(|tool| tool["name"].as_str());
        let mut names: Vec<&str> = names
            .filter_map(|name| name.strip_prefix(&prefix))
            .collect();
        names.sort_unstable();
        let wanted: Vec<&str> = self.each("tools").filter_map(Value::as_str).collect();
        expect(names == wanted, || format!("its tools are {names:?}"))?;
        for name in wanted {
            let answer = client.call(&self.outward(name), &json!({}))?;
            let fine = !is_error(&answer) && text_of(&answer).contains("ran {}");
            expect(fine, || format!("{name} is answered {}", short(&answer)))?;
        }
        Ok(())
    }
}

fn find<'a>(items: &'a [Value], key: &str, value: &str) -> Option<&'a Value> {
    items.iter().find(|item| item[key] == value)
}

/// Returns whether an answer is an error of the protocol or of the tool.
fn is_error(answer: &Value) -> bool {
    answer.get("error").is_some() || answer["result"]["isError"] == json!(true)
}

/// The text of a result with its structured content, or the message of an error.
pub(super) fn text_of(answer: &Value) -> String {
    let result = &answer["result"];
    let mut text = String::new();
    for block in result["content"].as_array().into_iter().flatten() {
        text += block["text"].as_str().unwrap_or_default();
    }
    if let Some(structured) = result.get("structuredContent") {
        text += &structured.to_string();
    }
    text + answer["error"]["message"].as_str().unwrap_or_default()
}

/// Nothing where it holds.
///
/// # Errors
/// What holds instead.
pub(super) fn expect(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// The beginning of a message, for a report.
pub(super) fn short(value: &Value) -> String {
    value.to_string().chars().take(400).collect()
}
