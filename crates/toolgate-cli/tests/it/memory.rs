//! One budget for all long messages: what finds no room is told so at once, and memory stays under the bound that is
//! printed.

use crate::help::{
    Gate, LONG, Modern, SOON, Session, Setup, TempDir, answer_of, peak_from_now, peak_of, request,
    rss_of, send, toolgate, until,
};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;

const MIB: u64 = 1 << 20;

/// A server with a tool whose result has 900 kB, one whose result has as many objects as are allowed, and one that is
/// never done.
const LARGE: &str = r#"text=$(head -c 900000 /dev/zero | tr '\0' x)
objects=$(yes '{"a":1},' | head -n 9000 | tr -d '\n')
while IFS= read -r line; do
id=$(printf '%.300s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
case "$line" in
*'"initialize"'*) say '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}';;
*'"tools/list"'*) say '{"tools":[{"name":"text","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"objects","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"never","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}';;
*'"name":"text"'*) say '{"content":[{"type":"text","text":"'"$text"'"}]}';;
*'"name":"objects"'*) say '{"content":[],"structuredContent":{"all":['"$objects"'{}]}}';;
*'"name":"never"'*) ;;
*'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
esac; done"#;

/// Limits under which a few messages fill the budget.
fn limits(memory: u64) -> String {
    format!(
        "[limits]\nrate = \"1000000/s\"\nmemory_bytes = {memory}\nbody_bytes = 1048576\nresult_bytes = 1048576\n\
         line_bytes = 1048576\nelements = 20000\ncalls = 64\ncalls_per_caller = 64\nwaiting = 64\nwaiting_per_caller = 64\n\
         connections = 160\nlisten_streams = 16\nlisten_streams_per_caller = 16\nsessions = 16\ndrain_seconds = 1\nlink_callers = 8\n\
         audit_queue_bytes = 1048576\nbody_idle_seconds = 60\n"
    )
}

fn config(data: &TempDir, memory: u64, servers: usize) -> String {
    let script = data.write("large.sh", LARGE);
    let server = |n| {
        format!(
            "[server.s{n}]\ncommand = [\"sh\", {script:?}]\ntrust_annotations = true\nunknown_arguments = \"allow\"\n"
        )
    };
    limits(memory) + &(0..servers).map(server).collect::<String>()
}

/// The bytes of a call whose body has about 1 MB.
fn call(gate: &Gate, tool: &str, padding: &Value) -> Vec<u8> {
    let params = json!({"name": tool, "arguments": {"padding": padding}});
    let body = Modern::body(&json!(1), "tools/call", params).to_string();
    let lines = Modern::headers("tools/call", Some(tool));
    request(gate.port, "POST", "/mcp", &lines, body.as_bytes())
}

fn connect(gate: &Gate) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", gate.port)).unwrap();
    stream.set_write_timeout(Some(SOON)).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
}

fn text() -> Value {
    json!("x".repeat(1_000_000))
}

/// One that came through, and the server runs.
fn warm(gate: &Gate, tool: &str) {
    until("the server runs", SOON, || {
        let small = Modern::call(gate.port, &json!(1), tool, json!({}));
        small.body.contains("xxxx").then_some(())
    });
}

/// Returns the status line and the headers of the answer.
fn head(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    while !all.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(n @ 1..) => all.extend_from_slice(&buffer[..n]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// Holds the limits table: the budget of all long messages.
#[test]
fn one_long_message_too_many_is_told_to_come_again() {
    let data = Arc::new(TempDir::new("room"));
    // Of 32 MiB a caller has the half, and a body of 1 MB counts four times: four fit.
    let gate = Setup::config(config(&data, 32 * MIB, 1)).start();
    warm(&gate, "s0_text");
    let bytes = call(&gate, "s0_never", &text());
    // What is announced is counted before any of it is there.
    let announced = &bytes[..bytes.len() - 1_000_000];
    let mut held: Vec<TcpStream> = Vec::new();
    let refused = until("one over is refused", SOON, || {
        let mut stream = connect(&gate);
        stream.write_all(announced).unwrap();
        stream.set_read_timeout(Some(SOON / 20)).unwrap();
        let answer = head(&mut stream);
        held.push(stream);
        answer.starts_with("HTTP/1.1 503").then_some(answer)
    });
    assert!((4..=5).contains(&held.len()), "{}", held.len());
    let lower = refused.to_lowercase();
    assert!(lower.contains("retry-after: 1"), "{refused}");
    // What is small still comes through, and its long result belongs to the server.
    let small = Modern::call(gate.port, &json!(2), "s0_text", json!({}));
    assert!(small.body.contains("xxxx"), "{}", small.body.len());
    drop(held);
    let again = until("there is room again", SOON, || {
        let lines = Modern::headers("tools/call", Some("s0_text"));
        let params = json!({"name": "s0_text", "arguments": {"padding": text()}});
        let body = Modern::body(&json!(3), "tools/call", params).to_string();
        let answer = send(gate.port, "POST", "/mcp", &lines, body.as_bytes());
        (answer.status == 200).then_some(answer)
    });
    assert!(answer_of(&again, &json!(3))["result"]["isError"] != json!(true));
    gate.stop();
}

/// The sum that is printed, and its lines by name, in bytes.
fn printed(config: &str, data: &TempDir) -> Vec<(String, f64)> {
    let checked = data.write("check.toml", config);
    let mut check = toolgate();
    check.args(["check", "--explain-memory", "--config"]);
    let explained = check.arg(checked).output().unwrap();
    let explained = String::from_utf8(explained.stdout).unwrap();
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (number, unit) = (words.next()?.parse::<f64>().ok()?, words.next()?);
        let unit = if unit == "GiB" { 1024.0 } else { 1.0 };
        let rest: Vec<&str> = words.collect();
        Some((rest.join(" "), number * unit * MIB as f64))
    };
    explained.lines().filter_map(line).collect()
}

/// The longest of everything on all connections at once, and nobody reads: memory stays under the bound that is printed.
#[test]
fn what_is_printed_at_the_start_is_not_exceeded() {
    let data = Arc::new(TempDir::new("bound"));
    let config = config(&data, 64 * MIB, 3);
    let sum = printed(&config, &data);
    let of = |name: &str| {
        let found = sum.iter().find(|(what, _)| what.starts_with(name));
        found.unwrap_or_else(|| panic!("{name} in {sum:?}")).1
    };
    let mut gate = Setup::config(config).start();
    let said = gate.announced("memory");
    let shown = format!("at most {:.1} MiB", of("total") / MIB as f64);
    assert!(said.starts_with(&shown), "{said} is not {shown}");
    for n in 0..3 {
        warm(&gate, &format!("s{n}_text"));
    }
    let idle = peak_from_now(gate.pid());
    let objects = Value::Array(vec![json!({"a": 1}); 9_000]);
    let mut load = Vec::new();
    for n in 0..150 {
        let tool = format!("s{}_{}", n % 3, ["text", "objects", "never"][n / 3 % 3]);
        let padding = if n % 2 == 0 { text() } else { objects.clone() };
        let bytes = call(&gate, &tool, &padding);
        let mut stream = connect(&gate);
        // Nobody reads. A body that finds no room is not read to its end.
        load.push(thread::spawn(move || {
            let _ = stream.write_all(&bytes);
            stream
        }));
    }
    let mut open: Vec<TcpStream> = load.into_iter().map(|one| one.join().unwrap()).collect();
    let heads: Vec<String> = open
        .iter_mut()
        .map(|stream| {
            stream.set_read_timeout(Some(SOON / 20)).unwrap();
            head(stream)
        })
        .collect();
    let count = |start: &str| heads.iter().filter(|head| head.starts_with(start)).count();
    let (fine, refused) = (count("HTTP/1.1 200"), count("HTTP/1.1 503"));
    let peak = peak_of(gate.pid());
    let grown = peak.saturating_sub(idle) as f64;
    // What is at work here: the rest of the sum would hide an error.
    let most = of("the program")
        + of("long messages")
        + of("connections")
        + of("running calls")
        + of("waiting calls");
    println!(
        "memory: 150 calls with 1 MB or 9,000 objects in arguments and results that nobody reads: {fine} answered, {refused} told to come \
         again; idle {} MiB, peak {} MiB, grown {:.0} MiB; the lines at work {:.0} MiB; printed {shown}",
        idle / MIB,
        peak / MIB,
        grown / MIB as f64,
        most / MIB as f64,
    );
    assert!((peak as f64) < of("total"), "peak {peak}, printed {said}");
    assert!((peak as f64) < most, "peak {peak} of {most}");
    assert!(fine > 0 && refused > 0, "{fine} {refused}");
    drop(open);
    // Nothing is left behind: a long message fits again.
    until("there is room again", SOON, || {
        let mut stream = connect(&gate);
        stream.write_all(&call(&gate, "s0_text", &text())).unwrap();
        head(&mut stream).starts_with("HTTP/1.1 200").then_some(())
    });
    gate.stop();
}

/// A server whose every message has 15 MB: its opening, notifications, lists, questions, errors, and what it writes to
/// standard error.
const HOSTILE: &str = r#"fill() { head -c 15000000 /dev/zero | tr '\0' x; }
around() { printf "$1" "$3"; fill; printf "$2"; }
tool() { printf '{"name":"%s","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}' "$1"; }
while IFS= read -r line; do
id=$(printf '%.300s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
over() { around '{"jsonrpc":"2.0","id":%s,"result":'"$1" "$2"'}\n' "$id"; }
say() { around '{"jsonrpc":"2.0",'"$1" "$2"'}\n'; }
case "$line" in
*'"initialize"'*) over '{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{"subscribe":true},"logging":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"' '"}';;
*'"notifications/initialized"'*) say '"method":"notifications/message","params":{"level":"info","data":"' '"}'; fill >&2; echo >&2;;
*'"tools/list"'*) answer '{"tools":['"$(tool progress),$(tool log),$(tool update),$(tool elicit),$(tool error),$(tool text)"']}';;
*'"prompts/list"'*) over '{"prompts":[{"name":"p","description":"' '"}]}';;
*'"resources/list"'*) over '{"resources":[{"name":"r","uri":"file:///r","description":"' '"}]}';;
*'"name":"progress"'*) say '"method":"notifications/progress","params":{"progressToken":'"$id"',"progress":1,"message":"' '"}'; answer '{"content":[]}';;
*'"name":"log"'*) say '"method":"notifications/message","params":{"level":"info","logger":"' '","data":1}'; answer '{"content":[]}';;
*'"name":"update"'*) say '"method":"notifications/resources/updated","params":{"uri":"file:///' '"}'; answer '{"content":[]}';;
*'"name":"elicit"'*) say '"id":"q","method":"elicitation/create","params":{"requestedSchema":{"type":"object","properties":{}},"message":"' '"}'; answer '{"content":[]}';;
*'"name":"error"'*) around '{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"' '"}}\n' "$id";;
*'"name":"text"'*) over '{"content":[{"type":"text","text":"' '"}]}';;
*'"id":"q"'*) ;;
*'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
esac; done"#;

/// Eight servers, each of whose messages is as long as a message may be.
#[test]
fn no_kind_of_message_of_hostile_servers_breaks_the_printed_bound() {
    const SERVERS: usize = 8;
    let data = Arc::new(TempDir::new("hostile"));
    let script = data.write("hostile.sh", HOSTILE);
    let server =
        |n| format!("[server.s{n}]\ncommand = [\"sh\", {script:?}]\ntrust_annotations = true\n");
    let servers: String = (0..SERVERS).map(server).collect();
    let config = format!("[limits]\nrate = \"1000000/s\"\ncall_seconds = 600\n{servers}");
    let sum = printed(&config, &data);
    let of = |name: &str| {
        let found = sum.iter().find(|(what, _)| what.starts_with(name));
        found.unwrap_or_else(|| panic!("{name} in {sum:?}")).1
    };
    let gate = Setup::config(config).start();
    // Those that find no room for their opening are started again, with growing pauses, and compete with the others. On a
    // busy machine some may never win; they go on beside the calls.
    let running = until("half of the servers run", LONG * 6, || {
        let status = gate.run(&["status", "--json"]).stdout;
        let status: Value = serde_json::from_slice(&status).unwrap_or_default();
        let servers = status[0]["servers"].as_array()?.iter();
        let running = servers.filter(|server| server["state"] == "running");
        let ids: Vec<String> = running
            .map(|server| server["id"].as_str().unwrap().to_owned())
            .collect();
        (ids.len() >= SERVERS / 2).then_some(ids)
    });
    // What is resident is read first: it may grow before the peak is read, and never above it.
    let measure = || {
        let resident = rss_of(gate.pid());
        (peak_of(gate.pid()), resident)
    };
    let opened = measure();
    thread::scope(|scope| {
        for server in &running {
            let port = gate.port;
            scope.spawn(move || {
                for (id, tool) in ["progress", "log", "update", "elicit", "error", "text"]
                    .into_iter()
                    .enumerate()
                {
                    let name = format!("{server}_{tool}");
                    let answer = Modern::call(port, &json!(id), &name, json!({}));
                    answer_of(&answer, &json!(id));
                }
            });
        }
        for method in ["prompts/list", "resources/list"] {
            let port = gate.port;
            scope.spawn(move || {
                let session = Session::open(port);
                session.post(&json!({"jsonrpc": "2.0", "id": 1, "method": method}));
            });
        }
    });
    let after = measure();
    let mib = |bytes: u64| bytes / MIB;
    let most = of("the program") + of("long messages") + of("servers") + of("running calls");
    println!(
        "memory: {} of {SERVERS} servers whose every message has 15 MB: after their opening peak {} MiB, resident {} MiB; after all \
         kinds of messages peak {} MiB, resident {} MiB; the lines at work {:.0} MiB; printed {:.0} MiB",
        running.len(),
        mib(opened.0),
        mib(opened.1),
        mib(after.0),
        mib(after.1),
        most / MIB as f64,
        of("total") / MIB as f64,
    );
    assert!((after.0 as f64) < of("total"), "{after:?}");
    assert!((after.0 as f64) < most, "{after:?} of {most}");
    // Nothing long is kept: what stays resident is what the allocator keeps of it, and less than was in use at once.
    assert!(
        opened.1 <= opened.0 && (after.1 as f64) < most,
        "{opened:?} {after:?}"
    );
    gate.stop();
}
