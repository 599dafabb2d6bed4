//! Too much of everything: bytes, headers, connections, nonsense. What is one over is refused, and memory stays bounded.

use crate::help::{
    Gate, Modern, SOON, Session, Setup, TempDir, answer_of, lines, peak_from_now, peak_of, raw,
    request, rss_of, send, toolgate, until,
};
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};
use toolgate_protocol::memory_budget::COPIES_PER_MESSAGE;

const MIB: u64 = 1 << 20;
/// The limit of a body in these tests.
const BODY: usize = 2 << 20;
/// Malformed requests of T29, unless `TOOLGATE_T29` says how many.
const MALFORMED: usize = 20_000;

fn limited(more: &str) -> Setup {
    let program = env!("CARGO_BIN_EXE_toolgate");
    Setup::config(format!(
        "[limits]\nrate = \"1000000/s\"\nbody_bytes = {BODY}\n{more}\n[server.demo]\ncommand = [{program:?}, \"demo-server\"]\n\
         trust_annotations = true\n"
    ))
}

/// A call of `demo.add` of so many bytes, by blanks that mean nothing.
fn padded(bytes: usize) -> String {
    let params = json!({"name": "demo_add", "arguments": {"a": 1, "b": 1}});
    let mut body = Modern::body(&json!(1), "tools/call", params).to_string();
    let blanks = " ".repeat(bytes - body.len());
    body.insert_str(1, &blanks);
    body
}

fn headers() -> Vec<String> {
    Modern::headers("tools/call", Some("demo_add"))
}

fn post(gate: &Gate, bytes: usize) -> u16 {
    let answer = send(
        gate.port,
        "POST",
        "/mcp",
        &headers(),
        padded(bytes).as_bytes(),
    );
    if answer.status == 200 {
        assert_eq!(
            answer_of(&answer, &json!(1))["result"]["structuredContent"]["sum"],
            2
        );
    }
    answer.status
}

/// A request whose body has no end, in pieces of 64 KiB, until the other end has enough.
fn endless(gate: &Gate, head: &str, piece: &[u8]) -> (String, usize) {
    let mut stream = TcpStream::connect(("127.0.0.1", gate.port)).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.set_write_timeout(Some(SOON)).unwrap();
    let mut lines = headers();
    lines.push(head.to_owned());
    let mut start = format!("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", gate.port);
    lines
        .iter()
        .for_each(|line| start.push_str(&format!("{line}\r\n")));
    stream.write_all(format!("{start}\r\n").as_bytes()).unwrap();
    let mut sent = 0;
    while sent < 1 << 30 {
        match stream.write(piece) {
            Ok(n) => sent += n,
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
                ) =>
            {
                break;
            }
            Err(error) => panic!("it neither reads nor closes: {error}"),
        }
    }
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    (answer, sent)
}

#[test]
fn t22_oversize_bodies_are_refused_and_memory_stays_bounded() {
    let gate = limited("body_idle_seconds = 1").start();
    until("the demo server runs", SOON, || {
        (post(&gate, 1000) == 200).then_some(())
    });
    assert_eq!(post(&gate, BODY), 200);
    let before = peak_from_now(gate.pid());
    assert_eq!(post(&gate, BODY - 1), 200, "one below");
    assert_eq!(post(&gate, BODY), 200, "the limit");
    assert_eq!(post(&gate, BODY + 1), 413, "one over");
    let began = Instant::now();
    let mut lines = headers();
    lines.push("Content-Length: 10000000000".to_owned());
    let mut start = format!("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", gate.port);
    lines
        .iter()
        .for_each(|line| start.push_str(&format!("{line}\r\n")));
    let declared = raw(gate.port, format!("{start}\r\n").as_bytes());
    assert_eq!(
        declared.status, 413,
        "10 GB are refused as they are announced: {declared:?}"
    );
    assert!(began.elapsed() < SOON);
    let chunk = [b"10000\r\n".as_slice(), &[b' '; 65_536], b"\r\n"].concat();
    let (answer, sent) = endless(&gate, "Transfer-Encoding: chunked", &chunk);
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 413"),
        "{answer}"
    );
    assert!(
        sent < 64 * BODY,
        "it took {sent} bytes of a body without end"
    );
    let grown = peak_of(gate.pid()).saturating_sub(before);
    println!(
        "T22: bodies of limit-1, limit, limit+1, 10 GB declared, endless chunks ({sent} bytes): peak +{} KiB, limit {} KiB",
        grown / 1024,
        BODY / 1024
    );
    // What the limit of memory counts for one message: the one before may still be on its way out.
    assert!(grown < COPIES_PER_MESSAGE * BODY as u64, "peak +{grown}");
    assert_eq!(post(&gate, 1000), 200);
    gate.stop();
}

/// A line without end, of a client over stdio and of a server, ends neither the gateway nor its memory.
#[test]
fn t22_lines_without_end_are_dropped() {
    let data = TempDir::new("endless");
    let limits = "[limits]\nline_bytes = 1048576\nstart_seconds = 5\n";
    let program = env!("CARGO_BIN_EXE_toolgate");
    let servers = format!(
        "[server.demo]\ncommand = [{program:?}, \"demo-server\"]\ntrust_annotations = true\n\
         [server.endless]\ncommand = [\"sh\", \"-c\", \"head -c 200000000 /dev/zero | tr '\\\\0' x; sleep 99\"]\n"
    );
    let config = data.write("toolgate.toml", &format!("{limits}{servers}"));
    let mut start = toolgate();
    start
        .args(["serve", "--stdio", "--data"])
        .arg(data.file("state"))
        .arg("--config")
        .arg(config);
    let mut child = start
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut to, from) = (
        child.stdin.take().unwrap(),
        lines(child.stdout.take().unwrap()),
    );
    let mut ask = |id: u32| {
        let list = Modern::body(&json!(id), "tools/list", json!({}));
        writeln!(to, "{list}").unwrap();
        loop {
            let line = from.recv_timeout(SOON).unwrap();
            if line.contains(&format!("\"id\":{id}")) {
                break line;
            }
        }
    };
    ask(1);
    let before = peak_from_now(child.id());
    let block = vec![b'x'; 1 << 20];
    for _ in 0..200 {
        to.write_all(&block).unwrap();
    }
    to.write_all(b"\n").unwrap();
    writeln!(to, "{}", Modern::body(&json!(2), "tools/list", json!({}))).unwrap();
    let answer = loop {
        let line = from.recv_timeout(SOON).unwrap();
        if line.contains("\"id\":2") {
            break line;
        }
    };
    assert!(answer.contains("demo_add"), "{answer}");
    let grown = peak_of(child.id()).saturating_sub(before);
    println!(
        "T22: lines of 200 MB from a client and from a server over stdio: peak +{} KiB, limit 1024 KiB each",
        grown / 1024
    );
    assert!(grown < 2 * 3 * MIB, "peak +{grown}");
    drop(to);
    until("it ends with its input", SOON, || child.try_wait().unwrap());
}

/// Starts a gateway over stdio with these limits. Returns its answer to `tools/list` in a line longer than `bytes`.
fn answer_to_line(limits: &str, bytes: usize) -> String {
    let data = TempDir::new("line");
    let program = env!("CARGO_BIN_EXE_toolgate");
    let server = format!("[server.demo]\ncommand = [{program:?}, \"demo-server\"]\n");
    let config = data.write("toolgate.toml", &format!("[limits]\n{limits}\n{server}"));
    let mut start = toolgate();
    start.args(["serve", "--stdio", "--data"]);
    start.arg(data.file("state")).arg("--config").arg(config);
    let streams = start.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = streams.stderr(Stdio::null()).spawn().unwrap();
    let from = lines(child.stdout.take().unwrap());
    let mut to = child.stdin.take().unwrap();
    let list = Modern::body(&json!(1), "tools/list", json!({})).to_string();
    // White space after a message is part of its line.
    writeln!(to, "{list}{}", " ".repeat(bytes)).unwrap();
    let answer = from.recv_timeout(SOON).unwrap();
    drop(to);
    until("it ends with its input", SOON, || child.try_wait().unwrap());
    answer
}

#[test]
fn lines_of_a_client_are_limited_by_line_bytes_and_not_by_body_bytes() {
    let listed = answer_to_line("body_bytes = 65536\nline_bytes = 1048576", 500_000);
    assert!(listed.contains("demo_add"), "{listed}");
    let refused = answer_to_line("body_bytes = 1048576\nline_bytes = 65536", 500_000);
    assert!(
        refused.contains("65536") && refused.contains("error"),
        "{refused}"
    );
}

#[test]
fn t23_compressed_bodies_are_refused_unread() {
    let gate = limited("").start();
    let before = rss_of(gate.pid());
    let mut refused = 0;
    for encoding in [
        "gzip",
        "deflate",
        "br",
        "zstd",
        "compress",
        "identity",
        "gzip, gzip",
        "GZIP",
        "x",
    ] {
        // What is in it does not matter: nobody looks.
        let mut lines = headers();
        lines.push(format!("Content-Encoding: {encoding}"));
        let answer = send(gate.port, "POST", "/mcp", &lines, &vec![0; 100_000]);
        assert_eq!(answer.status, 415, "{encoding}: {answer:?}");
        refused += 1;
    }
    let grown = rss_of(gate.pid()).saturating_sub(before);
    println!(
        "T23: {refused} encodings, all 415; RSS +{} KiB",
        grown / 1024
    );
    gate.stop();
}

/// The head of a request that is wrong in one way, and its body.
fn malformed(gate: &Gate, n: usize) -> Vec<u8> {
    let port = gate.port;
    let json = |text: &str| keep(request(port, "POST", "/mcp", &headers(), text.as_bytes()));
    match n % 8 {
        0 => json("{"),
        1 => json("[]"),
        2 => json("{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"initialize\"}"),
        3 => json(
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":7}}",
        ),
        4 => json(&Modern::body(&json!(1), "tools/call", json!({"name": 5})).to_string()),
        5 => json(&"[".repeat(500)),
        6 => {
            let mut lines = headers();
            lines.push("Mcp-Session-Id: 00000000000000000000000000000000".to_owned());
            keep(request(
                port,
                "POST",
                "/mcp",
                &lines,
                b"{\"jsonrpc\":\"2.0\",\"method\":\"x\"}",
            ))
        }
        _ => keep(request(
            port,
            "POST",
            "/mcp",
            &["Content-Type: text/plain".to_owned()],
            b"x",
        )),
    }
}

/// The same on a connection that stays open.
fn keep(request: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8(request).unwrap();
    text.replace("Connection: close\r\n", "").into_bytes()
}

/// Sends requests on one connection and counts the answers.
fn send_all(port: u16, requests: &[Vec<u8>]) -> usize {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let (bytes, wanted) = (requests.concat(), requests.len());
    let writing = thread::spawn(move || writer.write_all(&bytes));
    let (mut answers, mut left) = (0, Vec::new());
    let mut buffer = [0; 65_536];
    while answers < wanted {
        let n = match stream.read(&mut buffer) {
            Ok(n @ 1..) => n,
            end => panic!("{answers} of {wanted} answers: {end:?}"),
        };
        left.extend_from_slice(&buffer[..n]);
        let starts = left.windows(9).filter(|w| w == b"HTTP/1.1 ").count();
        answers += starts;
        // What might be the beginning of the next one.
        let rest = left.len().saturating_sub(8);
        left.drain(..rest);
    }
    writing.join().unwrap().unwrap();
    answers
}

#[test]
fn t29_a_flood_of_nonsense_leaves_nothing_behind() {
    let many = std::env::var("TOOLGATE_T29")
        .ok()
        .and_then(|n| n.parse().ok());
    let many: usize = many.unwrap_or(MALFORMED);
    let gate = limited("sessions = 4").start();
    let batch: Vec<Vec<u8>> = (0..1000).map(|n| malformed(&gate, n)).collect();
    // What is allocated once is allocated now.
    for _ in 0..4 {
        send_all(gate.port, &batch);
    }
    let before = rss_of(gate.pid());
    let mut answered = 0;
    while answered < many {
        answered += send_all(gate.port, &batch);
    }
    let grown = rss_of(gate.pid()).saturating_sub(before);
    println!("T29: {answered} malformed POSTs, RSS +{} KiB", grown / 1024);
    assert!(grown < 8 * MIB, "RSS +{grown}");
    // No session was opened by them: there is room for all.
    let sessions: Vec<Session> = (0..4).map(|_| Session::open(gate.port)).collect();
    let sum = sessions[3].call(&json!(9), "demo_add", json!({"a": 1, "b": 1}));
    assert_eq!(
        answer_of(&sum, &json!(9))["result"]["structuredContent"]["sum"],
        2
    );
    gate.stop();
}

/// Holds the limits table: the head of a request, in bytes and in headers, and one header of the protocol.
#[test]
fn one_over_each_limit_of_a_head_is_refused() {
    let gate = limited("header_bytes = 8192\nheaders = 20\nmcp_header_bytes = 256").start();
    let list = Modern::body(&json!(1), "tools/list", json!({})).to_string();
    let ask = |more: Vec<String>| {
        let mut lines = Modern::headers("tools/list", None);
        lines.extend(more);
        send(gate.port, "POST", "/mcp", &lines, list.as_bytes()).status
    };
    assert_eq!(ask(Vec::new()), 200);
    assert_eq!(ask(vec![format!("X-Long: {}", "x".repeat(7000))]), 200);
    assert_eq!(ask(vec![format!("X-Long: {}", "x".repeat(8192))]), 431);
    // Host, Connection, Content-Length and four of the protocol are there already.
    let some = |count: usize| (0..count).map(|n| format!("X-{n}: 1")).collect::<Vec<_>>();
    assert_eq!(ask(some(13)), 200);
    assert_eq!(ask(some(14)), 431, "one over");
    assert_eq!(ask(vec![format!("Mcp-Param-X: {}", "x".repeat(256))]), 200);
    assert_eq!(ask(vec![format!("Mcp-Param-X: {}", "x".repeat(257))]), 400);
    gate.stop();
}

#[test]
fn a_body_that_pauses_or_crawls_is_given_up() {
    let gate = limited("body_idle_seconds = 1\nbody_seconds = 3").start();
    let open = || {
        let mut stream = TcpStream::connect(("127.0.0.1", gate.port)).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let bytes = request(gate.port, "POST", "/mcp", &headers(), &[b' '; 1000]);
        stream.write_all(&bytes[..bytes.len() - 999]).unwrap();
        stream
    };
    let answer = |mut stream: TcpStream| {
        let mut all = String::new();
        let _ = stream.read_to_string(&mut all);
        all
    };
    let began = Instant::now();
    assert!(answer(open()).starts_with("HTTP/1.1 408"), "a pause");
    assert!(began.elapsed() >= Duration::from_secs(1));
    // A byte now and then is no pause; in all it took too long.
    let stream = open();
    let mut slow = stream.try_clone().unwrap();
    let crawl = thread::spawn(move || {
        while slow.write_all(b" ").is_ok() {
            thread::sleep(Duration::from_millis(100));
        }
    });
    assert!(answer(stream).starts_with("HTTP/1.1 408"), "a crawl");
    crawl.join().unwrap();
    gate.stop();
}

#[test]
fn one_connection_of_an_address_too_many_is_closed() {
    let gate = limited("connections_per_address = 3").start();
    let open = || TcpStream::connect(("127.0.0.1", gate.port)).unwrap();
    let held: Vec<TcpStream> = (0..3).map(|_| open()).collect();
    let mut over = open();
    over.set_read_timeout(Some(SOON)).unwrap();
    let closed = over.read(&mut [0; 1]);
    assert!(
        matches!(closed, Ok(0)) || closed.is_err_and(|e| e.kind() == ErrorKind::ConnectionReset)
    );
    drop(held);
    until("there is room again", SOON, || {
        let list = Modern::body(&json!(1), "tools/list", json!({})).to_string();
        let request = request(
            gate.port,
            "POST",
            "/mcp",
            &Modern::headers("tools/list", None),
            list.as_bytes(),
        );
        let mut stream = open();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let _ = stream.write_all(&request);
        let mut all = String::new();
        let _ = stream.read_to_string(&mut all);
        all.starts_with("HTTP/1.1 200").then_some(())
    });
    gate.stop();
}
