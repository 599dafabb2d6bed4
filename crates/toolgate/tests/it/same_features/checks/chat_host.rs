//! Features of the host: it reads a config, joins the tools of two servers, and lets a model call them.

use super::ProgramCommand;
use serde_json::{Value, json};
use std::{
    process::Stdio,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};
use tokio::{io::AsyncWriteExt, process::Command};

/// A bound on a hang, not a measurement.
const HANG: Duration = Duration::from_secs(60);

/// Number of config files so far: tests run at the same time in one process.
static FILES: AtomicU32 = AtomicU32::new(0);

/// What the user types.
const TYPED: &str = r#"hello
tools
call counter_increment {}
call counter_increment {}
call numbers_calculate {"numbers": [1, 2], "operation": "sum"}
call numbers_calculate {"numbers": [], "operation": "sum"}
call counter_nothing {}
call counter_increment [1]
"#;

const TOOLS: [&str; 11] = [
    "counter_decrement: Subtracts 1 from the counter.",
    "counter_echo: Returns its arguments, whatever they are.",
    "counter_get_session_id: Returns the id of the HTTP session.",
    "counter_get_value: Returns the value of the counter.",
    "counter_increment: Adds 1 to the counter.",
    "counter_long_task: Runs for ten seconds.",
    "counter_say_hello: Says hello.",
    "counter_sum: Adds two numbers.",
    "numbers_calculate: Calculates with a list of numbers.",
    "numbers_get_info: Describes the server.",
    "numbers_get_weather: Returns the weather of a city.",
];

pub(crate) async fn chat_host(host: ProgramCommand, servers: &[(&str, ProgramCommand)]) {
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let file = format!("toolgate-chat-{}-{number}.json", std::process::id());
    let file = std::env::temp_dir().join(file);
    std::fs::write(&file, config(servers).to_string()).unwrap();
    let mut host = host;
    host.push(file.to_str().unwrap().to_owned());
    let said = run(&host).await;
    std::fs::remove_file(&file).unwrap();

    let mut lines = said.lines();
    assert_eq!(lines.next(), Some("You said: hello"));
    let listed: Vec<&str> = lines.by_ref().take(TOOLS.len()).collect();
    assert_eq!(listed, TOOLS);
    let calls = [
        ("calling counter_increment", "The tool returned: 1"),
        ("calling counter_increment", "The tool returned: 2"),
        ("calling numbers_calculate", "The tool returned: {"),
        (
            "calling numbers_calculate",
            "The tool failed: there are no numbers",
        ),
        ("calling counter_nothing", "The tool failed: "),
    ];
    for (call, answer) in calls {
        assert_eq!(lines.next(), Some(call), "{said}");
        assert!(
            lines.next().unwrap().starts_with(answer),
            "{answer}: {said}"
        );
    }
    let last = "You said: call counter_increment [1]";
    assert_eq!((lines.next(), lines.next()), (Some(last), None), "{said}");
}

fn config(servers: &[(&str, ProgramCommand)]) -> Value {
    let mut config = json!({"mcpServers": {}});
    for (name, command) in servers {
        config["mcpServers"][name] = json!({"command": command[0], "args": command[1..]});
    }
    config
}

/// Runs the host to its end, and returns what it printed.
async fn run(command: &[String]) -> String {
    #[allow(clippy::disallowed_methods, reason = "the host is a program")]
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(TYPED.as_bytes()).await.unwrap();
    drop(input);
    let output = tokio::time::timeout(HANG, child.wait_with_output()).await;
    let output = output.expect("the host does not end").unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}
