//! Tools, calls and results in the formats of model APIs.

use super::sample_server::over;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use toolgate::{
    Client, Cx, HandlerExit, Server, Structured, Tool,
    client::{CallResult, ModelTools, ToolList},
    core::{Content, ErrorKind, Json, ResourceContents, ToolResult},
};

fn echo(name: &str, schema: Value) -> Tool {
    Tool::dynamic(name, schema, |args: Value, _: Cx| async move {
        Ok::<_, HandlerExit>(Structured(json!({"got": args})))
    })
}

fn empty() -> Value {
    json!({"type": "object"})
}

async fn client(tools: impl IntoIterator<Item = Tool>) -> (Client, ToolList) {
    let server = tools.into_iter().fold(Server::new("s", "1"), Server::tool);
    let client = over(Client::builder(), server).await;
    let tools = client.tools().await.unwrap();
    (client, tools)
}

/// Returns the definitions as JSON, each without the wrapper of its API.
fn definitions(tools: &ModelTools) -> Vec<Value> {
    let inner = |json: &Json| match json.get("function") {
        Some(function) => function.to_value(),
        None => json.to_value(),
    };
    tools.definitions().iter().map(inner).collect()
}

fn name(definition: &Value) -> &str {
    definition["name"].as_str().unwrap()
}

#[tokio::test]
async fn definitions_have_the_shape_of_each_api() {
    let schema = json!({"type": "object", "properties": {"b": {"type": "string"}, "a": {}}});
    let (_client, tools) = client([echo("look", schema.clone()).description("Looks.")]).await;
    assert_eq!(
        tools.to_openai().definitions()[0].to_value(),
        json!({"type": "function", "function":
            {"name": "look", "description": "Looks.", "parameters": schema}})
    );
    assert_eq!(
        tools.to_openai_responses().definitions()[0].to_value(),
        json!({"type": "function", "name": "look", "description": "Looks.", "parameters": schema,
            "strict": false})
    );
    assert_eq!(
        tools.to_anthropic().definitions()[0].to_value(),
        json!({"name": "look", "description": "Looks.", "input_schema": schema})
    );
}

#[tokio::test]
async fn names_fit_each_api_are_unique_and_lead_back() {
    let long = "n".repeat(100);
    let own = ["a.b", "a-b", "plain", long.as_str()];
    let (client, tools) = client(own.map(|name| echo(name, empty()))).await;
    for (tools, most) in [
        (tools.to_openai(), 64),
        (tools.to_openai_responses(), 64),
        (tools.to_anthropic(), 128),
    ] {
        let all = definitions(&tools);
        let names: Vec<&str> = all.iter().map(name).collect();
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), own.len(), "{names:?}");
        let fits = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        for (name, own) in names.iter().zip(own) {
            assert!(name.len() <= most && name.chars().all(fits), "{name}");
            assert_eq!(tools.name_of(own), Some(*name));
            let call = tools.read_parts("1", name, "{}").unwrap();
            assert_eq!(call.tool, own);
            client.call(&call.tool, &call.arguments).await.unwrap();
        }
        assert_eq!(names[1..3], ["a-b", "plain"], "valid names stay");
    }
    assert_eq!(name(&definitions(&tools.to_anthropic())[3]), long);
}

#[tokio::test]
async fn combined_schemas_move_into_the_description_and_are_still_checked() {
    let either = json!([{"required": ["id"]}, {"required": ["slug"], "properties": {"slug": {"type": "string"}}}]);
    let schema = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "properties": {"id": {"type": "integer"}}, "anyOf": either});
    let (client, tools) = client([echo("find", schema).description("Finds.")]).await;
    for tools in [
        tools.to_openai(),
        tools.to_openai_responses(),
        tools.to_anthropic(),
    ] {
        let found = &definitions(&tools)[0];
        let schema = found
            .get("parameters")
            .or(found.get("input_schema"))
            .unwrap();
        assert_eq!(
            *schema,
            json!({"type": "object", "properties": {"id": {"type": "integer"}, "slug": {"type": "string"}}})
        );
        let description = found["description"].as_str().unwrap();
        assert!(
            description.starts_with("Finds.") && description.contains("\"required\":[\"slug\"]"),
            "{description}"
        );
        let call = tools.read_parts("1", "find", json!({})).unwrap();
        let refused = client.call(&call.tool, call.arguments).await.unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::InvalidArguments(_)));
    }
}

#[tokio::test]
async fn a_schema_without_properties_gets_an_empty_object() {
    let (_client, tools) = client([echo("look", empty())]).await;
    let expected = json!({"type": "object", "properties": {}});
    assert_eq!(definitions(&tools.to_openai())[0]["parameters"], expected);
    assert_eq!(
        definitions(&tools.to_anthropic())[0]["input_schema"],
        expected
    );
}

#[tokio::test]
async fn keys_that_anthropic_rejects_are_mapped_there_and_back() {
    let schema = json!({"type": "object", "required": ["$filter", "a/b"], "properties":
        {"$filter": {"type": "string"}, "a/b": {"type": "integer"}, "ok": {"type": "string"}}});
    let (client, tools) = client([echo("query", schema)]).await;
    let tools = tools.to_anthropic();
    let schema = &definitions(&tools)[0]["input_schema"];
    let keys: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    assert!(
        keys.len() == 3 && keys.iter().all(|key| key.chars().all(fits)),
        "{keys:?}"
    );
    let required = schema["required"].as_array().unwrap();
    let input =
        json!({required[0].as_str().unwrap(): "x", required[1].as_str().unwrap(): 7, "ok": "y"});
    let block = json!({"type": "tool_use", "id": "t1", "name": "query", "input": input});
    let call = tools.read_call(&block).unwrap();
    let got: Value = client
        .call(&call.tool, call.arguments)
        .await
        .unwrap()
        .structured()
        .unwrap();
    assert_eq!(got["got"], json!({"$filter": "x", "a/b": 7, "ok": "y"}));
}

#[tokio::test]
async fn calls_of_each_api_are_read_and_answered() {
    let number = json!({"type": "object", "properties": {"n": {"type": "number"}}});
    let (client, tools) = client([echo("look", number)]).await;
    let big = r#"{"n": 123456789012345678901234567890}"#;
    let chat = tools.to_openai();
    let call =
        json!({"id": "c1", "type": "function", "function": {"name": "look", "arguments": big}});
    assert_eq!(chat.read_call(&call).unwrap().arguments.as_str(), big);
    let call = json!({"id": "c1", "function": {"name": "look", "arguments": "{\"n\": 0.5}"}});
    let answer = chat.run(&client, &call).await.unwrap();
    assert_eq!(answer["role"], "tool");
    assert_eq!(answer["tool_call_id"], "c1");
    assert!(
        answer["content"].as_str().unwrap().contains("\"got\""),
        "{answer}"
    );
    let responses = tools.to_openai_responses();
    let call = json!({"type": "function_call", "id": "fc", "call_id": "c2", "name": "look", "arguments": ""});
    let answer = responses.run(&client, &call).await.unwrap();
    assert_eq!(answer["type"], "function_call_output");
    assert_eq!(
        (&answer["call_id"], &answer["output"]),
        (&json!("c2"), &json!(r#"{"got":{}}"#))
    );
    let anthropic = tools.to_anthropic();
    let call = json!({"type": "tool_use", "id": "t3", "name": "look", "input": {"n": 1}});
    let answer = anthropic.run(&client, &call).await.unwrap();
    assert_eq!(
        answer,
        json!({"type": "tool_result", "tool_use_id": "t3",
            "content": [{"type": "text", "text": r#"{"got":{"n":1}}"#}]})
    );
}

/// A model gets an answer to each of its calls, also to those that were never sent.
#[tokio::test]
async fn wrong_and_denied_calls_are_answered_and_never_leave() {
    let sent = Arc::new(Mutex::new(0));
    let counter = sent.clone();
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let tool = Tool::dynamic("look", schema, move |_: Value, _: Cx| {
        *counter.lock().unwrap() += 1;
        async { Ok::<_, HandlerExit>("seen") }
    });
    let builder = Client::builder().confirm(|_| async { Err("not on a Sunday".to_owned()) });
    let client = over(builder, Server::new("s", "1").tool(tool)).await;
    let tools = client.tools().await.unwrap().to_openai();
    let call = |name: &str, arguments: &str| json!({"id": "c", "function": {"name": name, "arguments": arguments}});
    for (call, says) in [
        (call("look", "{}"), "not on a Sunday"),
        (call("look", r#"{"n": "x"}"#), "n"),
        (call("look", "[1]"), "an object"),
        (call("look", "{\"n\": 1"), "JSON object"),
        (call("Look", "{}"), "Look"),
    ] {
        let answer = tools.run(&client, &call).await.unwrap();
        assert_eq!(answer["tool_call_id"], "c");
        let text = answer["content"].as_str().unwrap();
        assert!(
            text.starts_with("The tool failed: ") && text.contains(says),
            "{text}"
        );
    }
    assert!(
        tools.run(&client, json!({"function": {}})).await.is_err(),
        "no response could name it"
    );
    assert_eq!(*sent.lock().unwrap(), 0);
}

fn mixed(is_error: bool) -> CallResult {
    let content = vec![
        Content::text("a"),
        Content::text(""),
        Content::image_bytes(b"\x89PNG", "image/png"),
        Content::image_bytes(b"BM", "image/bmp"),
        Content::audio_bytes(b"RIFF", "audio/wav"),
        Content::link("file:///l", "l"),
        ResourceContents::from_text("file:///t", "text/plain", "inside").into(),
    ];
    let result = ToolResult {
        content,
        is_error,
        ..ToolResult::default()
    };
    result.into()
}

#[tokio::test]
async fn results_become_the_content_that_each_api_accepts() {
    let (_client, tools) = client([echo("look", empty())]).await;
    let rest = [
        "[image/bmp, 2 bytes, not shown]",
        "[audio/wav, 4 bytes, not shown]",
        "[resource l: file:///l]",
        "[resource file:///t]\ninside",
    ];
    let text = tools.to_openai().response("c", &mixed(false))["content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        text,
        format!("a\n\n[image/png, 4 bytes, not shown]\n{}", rest.join("\n"))
    );
    let output = tools.to_openai_responses().response("c", &mixed(false))["output"].clone();
    assert_eq!(output[0], json!({"type": "input_text", "text": "a"}));
    assert_eq!(
        output[2],
        json!({"type": "input_image", "image_url": "data:image/png;base64,iVBORw=="})
    );
    let block = tools.to_anthropic().response("c", &mixed(false));
    let source = json!({"type": "base64", "media_type": "image/png", "data": "iVBORw=="});
    assert_eq!(
        block["content"][1],
        json!({"type": "image", "source": source})
    );
    let texts: Vec<&str> = block["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|b| b["text"].as_str())
        .collect();
    assert_eq!(texts, [&["a"][..], &rest].concat(), "no empty text");
    assert!(block.get("is_error").is_none());
}

/// Anthropic rejects a failed result with anything but text.
#[tokio::test]
async fn a_failed_result_says_so_in_text() {
    let (_client, tools) = client([echo("look", empty())]).await;
    let block = tools.to_anthropic().response("c", &mixed(true));
    assert_eq!(block["is_error"], true);
    let content = block["content"].as_array().unwrap();
    assert!(
        content.iter().all(|block| block["type"] == "text"),
        "{content:?}"
    );
    let chat = tools.to_openai().response("c", &mixed(true));
    assert!(
        chat["content"]
            .as_str()
            .unwrap()
            .starts_with("The tool failed: a")
    );
    let nothing = CallResult::from(ToolResult::default());
    let block = tools.to_anthropic().response("c", &nothing);
    assert_eq!(block, json!({"type": "tool_result", "tool_use_id": "c"}));
}
