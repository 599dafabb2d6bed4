//! Features of the counter: tools, prompts, resources and a template over one state.

use super::{
    ProgramCommand, assert_arguments, definition, empty, messages, read, rejects_calls,
    rejects_prompts, sorted_names, text,
};
use serde_json::json;
use std::time::Duration;
use toolgate::{Client, client::ListedItem};

const TOOLS: [(&str, bool, &str); 8] = [
    ("decrement", false, "Subtracts 1 from the counter."),
    ("echo", true, "Returns its arguments, whatever they are."),
    (
        "get_session_id",
        true,
        "Returns the id of the HTTP session.",
    ),
    ("get_value", true, "Returns the value of the counter."),
    ("increment", false, "Adds 1 to the counter."),
    ("long_task", true, "Runs for ten seconds."),
    ("say_hello", true, "Says hello."),
    ("sum", true, "Adds two numbers."),
];

pub(crate) async fn counter_server(command: ProgramCommand) {
    let client = Client::spawn(command.clone()).await.unwrap();
    assert_eq!(client.server().unwrap().name, "counter");
    assert_eq!(client.instructions().unwrap(), "Counts up and down.");
    definitions(&client.tools().await.unwrap());
    calls(&client).await;
    prompts(&client).await;
    resources(&client).await;
    rejected(&command).await;
}

fn definitions(tools: &[ListedItem]) {
    assert_eq!(sorted_names(tools), TOOLS.map(|(name, _, _)| name));
    for (name, read_only, description) in TOOLS {
        let tool = tools.iter().find(|tool| tool.name() == name).unwrap();
        assert_eq!(tool.description().unwrap(), description);
        assert_eq!(tool.claimed_annotations().read_only, read_only, "{name}");
    }
    let sum = definition(tools, "sum");
    let a = &sum["inputSchema"]["properties"]["a"];
    assert_eq!(a["type"], "integer");
    assert_eq!(a["description"], "First summand.");
    assert_eq!(sum["inputSchema"]["required"], json!(["a", "b"]));
}

async fn calls(client: &Client) {
    assert_eq!(text(client, "increment", empty()).await, "1");
    assert_eq!(text(client, "increment", empty()).await, "2");
    assert_eq!(text(client, "decrement", empty()).await, "1");
    assert_eq!(text(client, "say_hello", empty()).await, "hello");
    assert_eq!(text(client, "sum", json!({"a": 2, "b": -5})).await, "-3");
    let echo = text(client, "echo", json!({"list": [1, {}]})).await;
    assert_eq!(echo, r#"{"list":[1,{}]}"#);
    let session = text(client, "get_session_id", empty()).await;
    assert_eq!(session, "no session");
    // A call that ends early stops neither the server nor other calls.
    let long = client.call_with("long_task", empty());
    long.timeout(Duration::from_millis(100)).await.unwrap_err();
    assert_eq!(text(client, "get_value", empty()).await, "1");
}

async fn prompts(client: &Client) {
    let prompts = client.prompts().await.unwrap();
    let names = ["counter_analysis", "example_prompt"];
    assert_eq!(sorted_names(&prompts), names);
    let message = ("message", true, "Message to put into the prompt.");
    assert_arguments(&prompts, "example_prompt", &[message]);
    let goal = ("goal", true, "Value to reach.");
    let strategy = ("strategy", false, "Preferred strategy: fast or careful.");
    assert_arguments(&prompts, "counter_analysis", &[goal, strategy]);
    let meta = &definition(&prompts, "example_prompt")["_meta"];
    assert_eq!(meta["version"], "1");

    let arguments = json!({"message": "hi"});
    let filled = client.prompt("example_prompt", arguments).await.unwrap();
    let expected = "This is an example prompt with your message: hi";
    assert_eq!(messages(&filled), [("user", expected.to_owned())]);
    let arguments = json!({"goal": "20"});
    let filled = client.prompt("counter_analysis", arguments).await.unwrap();
    assert_eq!(filled.description.as_deref(), Some("From 1 to 20"));
    let expected =
        "Value: 1\nGoal: 20\nDifference: 19\nStrategy: careful\n\nHow do I reach the goal?";
    assert_eq!(
        messages(&filled),
        [
            ("assistant", "I will analyze the counter.".to_owned()),
            ("user", expected.to_owned())
        ]
    );
}

async fn resources(client: &Client) {
    let resources = client.resources().await.unwrap();
    let uris = ["file:///srv/counter/", "memo://insights"];
    assert_eq!(sorted_names(&resources), uris);
    let names = uris.map(|uri| definition(&resources, uri)["name"].clone());
    assert_eq!(names, ["directory", "insights"]);
    assert_eq!(read(client, uris[0]).await, "/srv/counter");
    assert_eq!(read(client, uris[1]).await, "The counter counts.");
    let templates = client.templates().await.unwrap();
    assert_eq!(sorted_names(&templates), ["counter://{base}"]);
    for _ in 0..9 {
        text(client, "increment", empty()).await;
    }
    assert_eq!(read(client, "counter://decimal").await, "10");
    assert_eq!(read(client, "counter://hexadecimal").await, "a");
    for unknown in ["counter://binary", "memo://nothing"] {
        client.read(unknown).await.unwrap_err();
    }
}

async fn rejected(command: &ProgramCommand) {
    let calls = [
        ("sum", json!({"a": "two", "b": 5})),
        ("sum", json!({"a": 2})),
        ("nothing", empty()),
    ];
    rejects_calls(command, &calls).await;
    let prompts = [
        ("counter_analysis", json!({"goal": "far"})),
        ("example_prompt", empty()),
        ("nothing", empty()),
    ];
    rejects_prompts(command, &prompts).await;
}
