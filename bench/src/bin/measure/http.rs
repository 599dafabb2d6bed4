//! A server on a port of the loopback interface, spoken to over kept connections.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    collections::VecDeque,
    fmt::Write as _,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStdin, Command, Stdio},
};

/// A child, and the connections to it.
pub struct Http {
    child: Child,
    input: Option<ChildStdin>,
    /// True if it continues when its input ends.
    serves_on: bool,
    port: u16,
    free: Vec<BufReader<TcpStream>>,
    /// Those on which an answer is due, the oldest request first.
    busy: VecDeque<BufReader<TcpStream>>,
    /// The sessions of 2025-11-25, used in turn.
    sessions: VecDeque<String>,
    /// The header with the credentials, if there are any.
    credentials: String,
}

const OPEN: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1.0.0"}}}"#;

impl Http {
    /// Starts it.
    pub fn start(mut command: Command) -> Http {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .expect("it starts; build all programs of this crate");
        let mut said = String::new();
        let output = child.stdout.take().expect("its output");
        let read = BufReader::new(output).read_line(&mut said);
        read.expect("it says its port");
        let input = child.stdin.take();
        let mut http = Http::connect(child, port(&said).expect("a port"));
        http.input = input;
        http.serves_on = said.starts_with('{');
        http
    }

    /// Connects to a child that serves this port until it is killed.
    pub fn connect(child: Child, port: u16) -> Http {
        Http {
            input: None,
            serves_on: true,
            child,
            port,
            free: Vec::new(),
            busy: VecDeque::new(),
            sessions: VecDeque::new(),
            credentials: String::new(),
        }
    }

    /// Sends a bearer token with each request.
    pub fn authorize(&mut self, token: Option<&str>) {
        let header = |token| format!("authorization: Bearer {token}\r\n");
        self.credentials = token.map(header).unwrap_or_default();
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Opens one more session of 2025-11-25.
    pub fn open(&mut self) {
        let mut stream = self.connection();
        let mut answer = String::new();
        self.send(&mut stream, "", OPEN);
        let session = receive(&mut stream, &mut answer).expect("a session");
        let done = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        self.send(&mut stream, &of_session(&session), done);
        receive(&mut stream, &mut answer);
        self.sessions.push_back(session);
        self.free.push(stream);
    }

    /// Closes the idle connections; the next request opens one.
    pub fn reconnect(&mut self) {
        self.free.clear();
    }

    /// A stream of 2026-07-28 on which the server tells what changes; it has begun.
    pub fn listen(&mut self) -> TcpStream {
        let meta = toolgate_bench::META.trim_start_matches(',');
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{meta}}}}}"#
        );
        let mut stream = self.connection();
        self.send(&mut stream, &headers(&line), &line);
        let mut head = String::new();
        while !head.contains("acknowledged") {
            let read = stream.read_line(&mut head).expect("it tells");
            assert!(read > 0, "it ended: {head}");
        }
        stream.into_inner()
    }

    fn connection(&mut self) -> BufReader<TcpStream> {
        self.free.pop().unwrap_or_else(|| {
            let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
            stream.set_nodelay(true).expect("no delay");
            BufReader::with_capacity(1 << 16, stream)
        })
    }

    /// A request, at once, on a connection of its own.
    pub fn say(&mut self, line: &str) {
        let mut stream = self.connection();
        let more = match self.sessions.pop_front() {
            Some(session) => {
                let headers = of_session(&session);
                self.sessions.push_back(session);
                headers
            }
            None => headers(line),
        };
        self.send(&mut stream, &more, line);
        self.busy.push_back(stream);
    }

    /// The answer to the oldest request.
    pub fn hear(&mut self, answer: &mut String) {
        let mut stream = self.busy.pop_front().expect("an answer is due");
        receive(&mut stream, answer);
        self.free.push(stream);
    }

    fn send(&self, stream: &mut BufReader<TcpStream>, headers: &str, body: &str) {
        let headers = format!("{}{headers}", self.credentials);
        let text = format!("{}{body}", head(self.port, &headers, body.len()));
        let sent = stream.get_mut().write_all(text.as_bytes());
        sent.expect("it reads");
    }

    /// Ends it with SIGTERM, after which a program that counts what it executes writes the counts.
    pub fn terminate(mut self) {
        self.free.clear();
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("it runs");
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }

    /// Ends it.
    pub fn end(mut self) {
        drop(self.input.take());
        if self.serves_on {
            self.child.kill().expect("it runs");
            self.child.wait().expect("it ends");
            return;
        }
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }
}

/// One that did not end by itself.
impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The port that it says: alone, or in the address of a line of JSON.
fn port(said: &str) -> Option<u16> {
    let Ok(line) = serde_json::from_str::<Value>(said) else {
        return None;
    };
    match line["url"].as_str() {
        Some(url) => url.rsplit(':').next()?.split('/').next()?.parse().ok(),
        None => u16::try_from(line.as_u64()?).ok(),
    }
}

/// The head of a request with more headers and a body of this length.
pub fn head(port: u16, headers: &str, length: usize) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n{headers}content-length: {length}\r\n\r\n"
    )
}

/// The headers that repeat what the body says.
pub fn headers(line: &str) -> String {
    let body: Value = serde_json::from_str(line).expect("JSON");
    let method = body["method"].as_str().unwrap_or_default();
    let mut headers = format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n");
    if let Some(name) = body["params"]["name"].as_str() {
        let _ = write!(headers, "mcp-name: {name}\r\n");
    }
    headers
}

fn of_session(session: &str) -> String {
    format!("mcp-protocol-version: 2025-11-25\r\nmcp-session-id: {session}\r\n")
}

/// Reads a response; its session. The answer is its body, or the last event of it.
fn receive(stream: &mut BufReader<TcpStream>, answer: &mut String) -> Option<String> {
    let (mut length, mut chunked, mut session) = (0, false, None);
    let mut line = String::new();
    loop {
        line.clear();
        let read = stream.read_line(&mut line).expect("it writes");
        assert!(read > 0, "it ended before it answered");
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            match line.trim_end() {
                "" => break,
                _ => continue,
            }
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().expect("a length"),
            "transfer-encoding" => chunked = true,
            "mcp-session-id" => session = Some(value.to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("a body");
    while chunked {
        line.clear();
        stream.read_line(&mut line).expect("a chunk");
        let size = usize::from_str_radix(line.trim_end(), 16).expect("its size");
        let mut chunk = vec![0; size + 2];
        stream.read_exact(&mut chunk).expect("a chunk");
        body.extend_from_slice(&chunk[..size]);
        chunked = size > 0;
    }
    let body = String::from_utf8(body).expect("UTF-8");
    let event = body
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("data: "));
    answer.clear();
    answer.push_str(event.unwrap_or(&body));
    session
}
