//! Features of the tools with structured results.

use super::{ProgramCommand, definition, empty, rejects_calls, sorted_names, text};
use serde_json::{Value, json};
use toolgate::{Client, client::ListedItem};

pub(crate) async fn structured_output(command: ProgramCommand) {
    let client = Client::spawn(command.clone()).await.unwrap();
    definitions(&client.tools().await.unwrap());
    results(&client).await;
    failures(&client).await;
    rejected(&command).await;
}

fn definitions(tools: &[ListedItem]) {
    let names = ["calculate", "get_info", "get_weather"];
    assert_eq!(sorted_names(tools), names);
    let properties = |tool: &str| {
        let definition = definition(tools, tool);
        let properties = definition["outputSchema"]["properties"]
            .as_object()
            .cloned();
        let mut names: Vec<String> = properties
            .unwrap_or_default()
            .into_iter()
            .map(|p| p.0)
            .collect();
        names.sort_unstable();
        names
    };
    let weather = [
        "city",
        "description",
        "humidity",
        "temperature",
        "wind_speed",
    ];
    assert_eq!(properties("get_weather"), weather);
    assert_eq!(properties("calculate"), ["count", "operation", "result"]);
    assert!(definition(tools, "get_info").get("outputSchema").is_none());
    let weather = definition(tools, "get_weather");
    let required = json!([
        "city",
        "temperature",
        "description",
        "humidity",
        "wind_speed"
    ]);
    assert_eq!(weather["outputSchema"]["required"], required);
    let humidity = &weather["outputSchema"]["properties"]["humidity"];
    assert_eq!(humidity["description"], "Relative humidity in percent.");
    let city = &weather["inputSchema"]["properties"]["city"];
    assert_eq!(city["description"], "Name of the city.");
}

/// Returns the structured result of a call, which its text repeats.
async fn structured(client: &Client, tool: &str, arguments: Value) -> Value {
    let result = client.call(tool, arguments).await.unwrap();
    let structured: Value = result.structured().unwrap();
    let text: Value = serde_json::from_str(&result.text()).unwrap();
    assert_eq!(text, structured);
    structured
}

async fn results(client: &Client) {
    let weather = structured(client, "get_weather", json!({"city": "Oslo"})).await;
    let expected = json!({
        "city": "Oslo", "temperature": 22.5, "description": "Partly cloudy", "humidity": 65, "wind_speed": 12.5,
    });
    assert_eq!(weather, expected);
    let arguments = json!({"city": "Oslo", "units": "fahrenheit"});
    let weather = structured(client, "get_weather", arguments).await;
    assert_eq!(weather["temperature"], 72.5);
    for (operation, result) in [("sum", 10.0), ("average", 2.5), ("product", 24.0)] {
        let arguments = json!({"numbers": [1, 2, 3, 4], "operation": operation});
        let calculated = structured(client, "calculate", arguments).await;
        let expected = json!({"result": result, "operation": operation, "count": 4});
        assert_eq!(calculated, expected);
    }
    let info = text(client, "get_info", empty()).await;
    assert_eq!(info, "Structured output, version 1.0.0");
}

async fn failures(client: &Client) {
    let arguments = json!({"numbers": [], "operation": "sum"});
    let result = client.call("calculate", arguments).await.unwrap();
    assert!(result.is_error());
    assert_eq!(result.text(), "there are no numbers");
}

async fn rejected(command: &ProgramCommand) {
    let calls = [
        ("calculate", json!({"numbers": [1], "operation": "power"})),
        ("calculate", json!({"numbers": ["a"], "operation": "sum"})),
        ("get_weather", json!({"city": "Oslo", "units": "kelvin"})),
        ("get_weather", empty()),
    ];
    rejects_calls(command, &calls).await;
}
