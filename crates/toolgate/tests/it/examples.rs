//! The examples run as programs, each with what it shows.

use serde_json::{Value, json};
use std::{path::PathBuf, process::Stdio, time::Duration};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, Command},
};
use toolgate::{
    AskKind, Call, Caller, Content, Error, Interest, ItemKind, Json, List, Op, Outcome, Output,
    Round, Service,
    client::{Remote, RemoteOptions},
};

/// An example that serves on its standard streams.
struct Example {
    remote: Remote,
    _child: Child,
}

fn caller() -> Caller {
    Caller::new("t")
}

/// A bound on a hang, not a measurement.
const HANG: Duration = Duration::from_secs(30);

/// Where cargo puts it: beside the folder of this test.
fn program(name: &str) -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let path = here.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(
        path.exists(),
        "run `cargo build --examples` first: {path:?} is not there"
    );
    path
}

#[allow(clippy::disallowed_methods, reason = "the examples are programs")]
fn command(name: &str) -> Command {
    let mut command = Command::new(program(name));
    command.kill_on_drop(true);
    command
}

impl Example {
    async fn start(name: &str, arguments: &[&str]) -> Example {
        let mut child = command(name)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let origin = toolgate::Origin {
            server: name.into(),
            trusted: true,
        };
        let remote = Remote::open(output, input, RemoteOptions::new(origin)).await;
        Example {
            remote: remote.unwrap(),
            _child: child,
        }
    }

    async fn names(&self, kind: ItemKind) -> Vec<String> {
        let list = self.remote.list(List::all(caller(), kind)).await.unwrap();
        list.items()
            .iter()
            .map(|item| item.def.name().to_owned())
            .collect()
    }

    async fn outcome(&self, call: Call) -> Outcome {
        self.remote.call(call).await.unwrap()
    }

    async fn output(&self, op: Op, name: &str, arguments: Value) -> Output {
        match self.outcome(new(op, name, arguments)).await {
            Outcome::Done(output) => output,
            Outcome::Ask(questions) => panic!("{questions:?}"),
        }
    }

    /// The text that a resource holds.
    async fn read(&self, uri: &str) -> Result<String, Error> {
        let call = new(Op::Resource, uri, json!({"uri": uri}));
        match self.remote.call(call).await? {
            Outcome::Done(Output::Resource(read)) => {
                Ok(read.contents[0].get("text").unwrap().string().unwrap())
            }
            other => panic!("{other:?}"),
        }
    }

    /// Calls a tool; its text.
    async fn tool(&self, name: &str, arguments: Value) -> String {
        let output = self.output(Op::Tool, name, arguments).await;
        text(output)
    }
}

fn new(op: Op, name: &str, arguments: Value) -> Call {
    Call::new("c-1", caller(), op, name, Json::from_value(&arguments))
}

fn text(output: Output) -> String {
    let content = output.into_tool().unwrap().content;
    content.first().map(of_block).unwrap_or_default()
}

fn of_block(block: &Content) -> String {
    block
        .json
        .get("text")
        .and_then(|text| text.string())
        .unwrap()
}

/// The question leaves, and the answer comes back to the same call.
#[tokio::test]
async fn weather_asks_for_a_unit() {
    let weather = Example::start("weather", &[]).await;
    let kelvin = json!({"place": "Rome", "unit": "kelvin"});
    let told: Value = serde_json::from_str(&weather.tool("forecast", kelvin).await).unwrap();
    assert_eq!(
        told,
        json!({"place": "Rome", "temperature": 291.15, "unit": "kelvin"})
    );
    let nowhere = json!({"place": "Atlantis", "unit": "kelvin"});
    let failed = weather.tool("forecast", nowhere).await;
    assert_eq!(failed, "no station in Atlantis; there are Oslo and Rome");

    let mut call = new(Op::Tool, "forecast", json!({"place": "Oslo"}));
    call.abilities.elicitation = true;
    let Outcome::Ask(questions) = weather.outcome(call.clone()).await else {
        panic!("it did not ask");
    };
    let AskKind::Elicit(form) = &questions.asks[0].kind else {
        panic!("it asked for something else");
    };
    assert_eq!(
        form.get("message").unwrap().string().unwrap(),
        "Which unit?"
    );
    let answer = json!({"action": "accept", "content": {"value": "celsius"}});
    let answer = (questions.asks[0].key.clone(), Json::from_value(&answer));
    call.round = Round {
        number: 1,
        answers: vec![answer],
        slots: questions.slots,
    };
    let Outcome::Done(output) = weather.outcome(call).await else {
        panic!("it asked again");
    };
    let told: Value = serde_json::from_str(&text(output)).unwrap();
    assert_eq!(
        told,
        json!({"place": "Oslo", "temperature": 4.5, "unit": "celsius"})
    );
}

#[tokio::test]
async fn counter_keeps_its_value() {
    let counter = Example::start("counter", &[]).await;
    assert_eq!(
        counter.names(ItemKind::Tool).await,
        ["count", "value", "reset"]
    );
    assert_eq!(counter.tool("count", json!({})).await, "1");
    assert_eq!(counter.tool("count", json!({"by": -4})).await, "-3");
    assert_eq!(counter.tool("value", json!({})).await, "-3");
    let over = counter.tool("count", json!({"by": i64::MIN})).await;
    assert_eq!(over, "the counter stands at -3 and ends there");
    counter.tool("reset", json!({})).await;
    assert_eq!(counter.tool("value", json!({})).await, "0");
}

#[tokio::test]
async fn prompts_are_filled_in_and_completed() {
    let prompts = Example::start("prompts", &[]).await;
    assert_eq!(prompts.names(ItemKind::Prompt).await, ["review", "explain"]);
    let filled = prompts
        .output(Op::Prompt, "review", json!({"text": "It rains."}))
        .await;
    let Output::Prompt(filled) = filled else {
        panic!("{filled:?}");
    };
    let said = of_block(&filled.messages[0].content);
    assert_eq!(said, "Write a friendly review of this text:\n\nIt rains.");
    let typed = json!({"argument": {"name": "tone", "value": "fr"}});
    let completed = prompts
        .output(Op::Complete(ItemKind::Prompt), "review", typed)
        .await;
    let Output::Complete(completed) = completed else {
        panic!("{completed:?}");
    };
    assert_eq!(completed.values, ["friendly", "frank"]);
}

/// Only what the folder holds is read, and who listens to a file hears that it was written.
#[tokio::test]
async fn files_are_read_written_and_heard_of() {
    let folder = std::env::temp_dir().join(format!("toolgate-example-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.txt"), "first").unwrap();
    let files = Example::start("files", &[folder.to_str().unwrap()]).await;
    assert_eq!(files.names(ItemKind::Resource).await, ["folder:///a.txt"]);
    assert_eq!(files.names(ItemKind::Template).await, ["folder:///{name}"]);
    assert_eq!(files.read("folder:///a.txt").await.unwrap(), "first");
    for wrong in ["folder:///b.txt", "folder:///..%2Fa.txt", "folder:///.."] {
        files.read(wrong).await.unwrap_err();
    }

    let interest = Interest {
        uris: vec!["folder:///a.txt".to_owned()],
        ..Interest::lists(caller())
    };
    let mut changes = files.remote.changes(interest).await.unwrap();
    // The client does not wait until the server listens, so the first words may come too early.
    let heard = async {
        loop {
            let arguments = json!({"name": "a.txt", "text": "second"});
            assert_eq!(files.tool("write", arguments).await, "wrote a.txt");
            let soon = tokio::time::timeout(Duration::from_millis(200), changes.next()).await;
            let told = soon.ok().flatten().unwrap_or_default().updated;
            if told.iter().any(|uri| &**uri == "folder:///a.txt") {
                break;
            }
        }
    };
    let heard = tokio::time::timeout(HANG, heard).await;
    heard.expect("nothing was heard");
    assert_eq!(files.read("folder:///a.txt").await.unwrap(), "second");
    files
        .tool("write", json!({"name": "b.txt", "text": "new"}))
        .await;
    assert_eq!(files.read("folder:///b.txt").await.unwrap(), "new");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Runs a client example to its end; what it printed, and whether it was content.
async fn run(name: &str, arguments: &[&str], typed: &str) -> (String, bool) {
    let mut child = command(name)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(typed.as_bytes()).await.unwrap();
    drop(input);
    let output = tokio::time::timeout(HANG, child.wait_with_output()).await;
    let output = output.expect("it did not end").unwrap();
    (
        String::from_utf8(output.stdout).unwrap(),
        output.status.success(),
    )
}

#[tokio::test]
async fn a_client_lists_and_calls() {
    let counter = program("counter");
    let counter = counter.to_str().unwrap();
    let (said, good) = run("list_and_call", &[counter], "").await;
    assert!(
        good && said.contains("\nvalue: Tells where the counter stands.\n"),
        "{said}"
    );
    let (said, good) = run("list_and_call", &[counter, "count", r#"{"by": 2}"#], "").await;
    assert!(
        good && said.ends_with("{\"type\":\"text\",\"text\":\"2\"}\n"),
        "{said}"
    );
    let (_, good) = run("list_and_call", &[counter, "nothing"], "").await;
    assert!(!good, "an unknown tool is an error");
}

#[tokio::test]
async fn a_client_answers_questions() {
    let weather = program("weather");
    let arguments = [
        weather.to_str().unwrap(),
        "forecast",
        r#"{"place": "Oslo"}"#,
    ];
    let (said, good) = run("answer_questions", &arguments, "kelvin\n").await;
    let asked = "Which unit?\nvalue, one of [\"celsius\",\"kelvin\"]:\n";
    assert!(
        good && said.starts_with(asked) && said.contains("277.65"),
        "{said}"
    );
    let (said, _) = run("answer_questions", &arguments, "\n").await;
    assert!(said.contains("the user declined to answer"), "{said}");
}
