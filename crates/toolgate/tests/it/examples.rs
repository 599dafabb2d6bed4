//! The examples run as programs, each with what it shows.

use serde_json::{Value, json};
use std::{process::Stdio, time::Duration};
use tokio::{io::AsyncWriteExt, process::Command};
use toolgate::{Client, client::ListedItem, handlers::ask::Reply};

/// A bound on a hang, not a measurement.
const HANG: Duration = Duration::from_secs(30);

/// Returns the path of a program that cargo built, beside the folder of this test.
pub(crate) fn program(name: &str) -> String {
    let here = std::env::current_exe().unwrap();
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let path = here.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(
        path.exists(),
        "run `cargo build --examples` first: {path:?} is not there"
    );
    path.into_os_string().into_string().unwrap()
}

async fn start(name: &str) -> Client {
    Client::spawn([program(name)]).await.unwrap()
}

fn names(list: &[ListedItem]) -> Vec<&str> {
    list.iter().map(|one| one.name()).collect()
}

/// The text that a tool gives back.
async fn text(client: &Client, tool: &str, arguments: Value) -> String {
    client.call(tool, arguments).await.unwrap().text()
}

/// The question leaves, and the answer comes back to the same call.
#[tokio::test]
async fn weather_asks_for_a_unit() {
    let builder = Client::builder().on_elicit(|form| async move {
        assert_eq!(form.message, "Which unit?");
        Reply::Accepted(json!({"value": "celsius"}))
    });
    let weather = builder.spawn([program("weather")]).await.unwrap();
    let rome = json!({"place": "Rome", "unit": "kelvin"});
    let told: Value = weather
        .call("forecast", rome)
        .await
        .unwrap()
        .structured()
        .unwrap();
    assert_eq!(
        told,
        json!({"place": "Rome", "temperature": 291.15, "unit": "kelvin"})
    );
    let oslo = json!({"place": "Oslo"});
    let told: Value = weather
        .call("forecast", oslo)
        .await
        .unwrap()
        .structured()
        .unwrap();
    assert_eq!(
        told,
        json!({"place": "Oslo", "temperature": 4.5, "unit": "celsius"})
    );
    let failed = weather
        .call("forecast", json!({"place": "Atlantis"}))
        .await
        .unwrap();
    assert!(failed.is_error());
    assert_eq!(
        failed.text(),
        "no station in Atlantis; there are Oslo and Rome"
    );
}

#[tokio::test]
async fn counter_keeps_its_value() {
    let counter = start("counter").await;
    assert_eq!(
        names(&counter.tools().await.unwrap()),
        ["count", "value", "reset"]
    );
    assert_eq!(text(&counter, "count", json!({})).await, "1");
    assert_eq!(text(&counter, "count", json!({"by": -4})).await, "-3");
    assert_eq!(text(&counter, "value", json!({})).await, "-3");
    let over = text(&counter, "count", json!({"by": i64::MIN})).await;
    assert_eq!(over, "the counter stands at -3 and ends there");
    text(&counter, "reset", json!({})).await;
    assert_eq!(text(&counter, "value", json!({})).await, "0");
}

#[tokio::test]
async fn prompts_are_filled_in_and_completed() {
    let prompts = start("prompts").await;
    assert_eq!(
        names(&prompts.prompts().await.unwrap()),
        ["review", "explain"]
    );
    let filled = prompts
        .prompt("review", json!({"text": "It rains."}))
        .await
        .unwrap();
    let said = filled.messages[0].content.json.get("text").unwrap();
    let expected = "Write a friendly review of this text:\n\nIt rains.";
    assert_eq!(said.string().unwrap(), expected);
    let completed = prompts
        .complete_prompt("review", "tone", "fr", &[])
        .await
        .unwrap();
    assert_eq!(completed.values, ["friendly", "frank"]);
}

/// Only what the folder holds is read, and who listens to a file hears that it was written.
#[tokio::test]
async fn files_are_read_written_and_heard_of() {
    let folder = std::env::temp_dir().join(format!("toolgate-example-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.txt"), "first").unwrap();
    let files = Client::spawn([program("files"), folder.to_str().unwrap().to_owned()]);
    let files = files.await.unwrap();
    assert_eq!(
        names(&files.resources().await.unwrap()),
        ["folder:///a.txt"]
    );
    assert_eq!(
        names(&files.templates().await.unwrap()),
        ["folder:///{name}"]
    );
    assert_eq!(read(&files, "folder:///a.txt").await, "first");
    for wrong in ["folder:///b.txt", "folder:///..%2Fa.txt", "folder:///.."] {
        files.read(wrong).await.unwrap_err();
    }

    let mut changes = files.changes(["folder:///a.txt"]).await.unwrap();
    let arguments = json!({"name": "a.txt", "text": "second"});
    assert_eq!(text(&files, "write", arguments).await, "wrote a.txt");
    let heard = tokio::time::timeout(HANG, changes.next()).await;
    let heard = heard.expect("nothing was heard").unwrap();
    assert_eq!(*heard.updated, ["folder:///a.txt".into()]);
    assert_eq!(read(&files, "folder:///a.txt").await, "second");
    text(&files, "write", json!({"name": "b.txt", "text": "new"})).await;
    assert_eq!(read(&files, "folder:///b.txt").await, "new");
    std::fs::remove_dir_all(&folder).unwrap();
}

async fn read(files: &Client, uri: &str) -> String {
    let read = files.read(uri).await.unwrap();
    read.contents[0].get("text").unwrap().string().unwrap()
}

/// Runs a client example to its end; what it printed, and whether it was content.
async fn run(name: &str, arguments: &[&str], typed: &str) -> (String, bool) {
    #[allow(clippy::disallowed_methods, reason = "the examples are programs")]
    let mut child = Command::new(program(name))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(typed.as_bytes()).await.unwrap();
    drop(input);
    let output = tokio::time::timeout(HANG, child.wait_with_output()).await;
    let output = output.expect("it did not end").unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    (said, output.status.success())
}

#[tokio::test]
async fn a_client_lists_and_calls() {
    let counter = program("counter");
    let (said, good) = run("list_and_call", &[&counter], "").await;
    let line = "\nvalue: Tells where the counter stands.\n";
    assert!(good && said.contains(line), "{said}");
    let (said, good) = run("list_and_call", &[&counter, "count", r#"{"by": 2}"#], "").await;
    assert!(good && said == "2\n", "{said}");
    let (_, good) = run("list_and_call", &[&counter, "nothing", "{}"], "").await;
    assert!(!good, "an unknown tool is an error");
}

#[tokio::test]
async fn a_client_answers_questions() {
    let weather = program("weather");
    let arguments = [&*weather, "forecast", r#"{"place": "Oslo"}"#];
    let (said, good) = run("answer_questions", &arguments, "kelvin\n").await;
    let asked = "weather asks: Which unit?\nvalue, one of [\"celsius\",\"kelvin\"]:\n";
    assert!(
        good && said.starts_with(asked) && said.contains("277.65"),
        "{said}"
    );
    let (said, _) = run("answer_questions", &arguments, "\n").await;
    assert!(said.ends_with("the user declined to answer\n"), "{said}");
}

/// The tools of two servers, and two calls of a model: one works, and one fails.
#[tokio::test]
#[allow(
    clippy::disallowed_methods,
    reason = "a host whose input the test writes"
)]
async fn model_tools_answers_the_calls_of_a_model() {
    let mut host = Command::new(program("model_tools"))
        .args(["a", "b"].map(|prefix| format!("{prefix}={}", program("counter"))))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let calls = [
        json!({"type": "tool_use", "id": "1", "name": "b_count", "input": {"by": 2}}),
        json!({"type": "tool_use", "id": "2", "name": "a_value", "input": {}}),
        json!({"type": "tool_use", "id": "3", "name": "c_value", "input": {}}),
    ];
    let mut input = host.stdin.take().unwrap();
    for call in calls {
        input
            .write_all(format!("{call}\n").as_bytes())
            .await
            .unwrap();
    }
    drop(input);
    let output = tokio::time::timeout(HANG, host.wait_with_output());
    let output = String::from_utf8(output.await.unwrap().unwrap().stdout).unwrap();
    let lines: Vec<Value> = output
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<&str> = lines[0]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "a_count", "a_value", "a_reset", "b_count", "b_value", "b_reset"
        ]
    );
    let text = |at: usize| lines[at]["content"][0]["text"].as_str().unwrap();
    assert_eq!((text(1), text(2)), ("2", "0"));
    assert_eq!(
        (&lines[3]["tool_use_id"], &lines[3]["is_error"]),
        (&json!("3"), &json!(true))
    );
}
