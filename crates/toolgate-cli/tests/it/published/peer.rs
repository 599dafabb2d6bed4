//! A client of 2025-11-25 over stdio, written by hand: it takes what any server writes as it is.

use crate::help::kill_hard;
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, sync_channel},
    },
    thread,
    time::Duration,
};

/// Longest time for one answer.
const ANSWER: Duration = Duration::from_secs(60);
/// Most messages that wait to be read.
const MESSAGES: usize = 1024;
/// Most pages of a list.
const PAGES: usize = 50;
/// Most characters of standard error in a failure.
const STDERR_CHARS: usize = 400;

pub(super) struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    stderr: Arc<Mutex<String>>,
    capabilities: Value,
    last: u64,
}

impl Peer {
    /// Starts a program and shakes hands with it.
    pub(super) fn open(command: &mut Command) -> Result<Peer, String> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        let (stdout, mut errors) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (tell, messages) = sync_channel(MESSAGES);
        thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            let read = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
            read.take_while(|message| tell.send(message.clone()).is_ok())
                .for_each(drop);
        });
        let stderr = Arc::<Mutex<String>>::default();
        let kept = stderr.clone();
        thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(length @ 1..) = errors.read(&mut part) {
                kept.lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&part[..length]));
            }
        });
        let stdin = child.stdin.take();
        let mut peer = Peer {
            child,
            stdin,
            messages,
            stderr,
            capabilities: Value::Null,
            last: 0,
        };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "published", "version": "1"}});
        let answer = peer.ask("initialize", hello)?;
        peer.capabilities = answer["result"]["capabilities"].clone();
        peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(peer)
    }

    fn send(&mut self, message: &Value) -> Result<(), String> {
        let stdin = self.stdin.as_mut().ok_or("it is closed")?;
        writeln!(stdin, "{message}")
            .and_then(|()| stdin.flush())
            .map_err(|error| error.to_string())
    }

    /// Asks, and gives `{"result": …}` or `{"error": …}`.
    pub(super) fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let message = self.messages.recv_timeout(ANSWER).map_err(|_| {
                let stderr = self.stderr.lock().unwrap();
                let skipped = stderr.chars().count().saturating_sub(STDERR_CHARS);
                let last: String = stderr.chars().skip(skipped).collect();
                format!("no answer to {method}; {last}")
            })?;
            if message["method"].is_null() && message["id"] == id {
                let key = if message["error"].is_null() {
                    "result"
                } else {
                    "error"
                };
                return Ok(json!({key: message[key]}));
            }
            if message["method"] == "ping" {
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": {}}))?;
            }
        }
    }

    /// The items of a whole list; none where the server does not offer them.
    pub(super) fn list(&mut self, method: &str, member: &str) -> Result<Vec<Value>, String> {
        let capability = method.split('/').next().unwrap_or_default();
        if self.capabilities[capability].is_null() {
            return Ok(Vec::new());
        }
        let (mut items, mut params) = (Vec::new(), json!({}));
        for _ in 0..PAGES {
            let answer = self.ask(method, params)?;
            let page = answer["result"][member].as_array().cloned();
            items.extend(page.unwrap_or_default());
            match answer["result"]["nextCursor"].as_str() {
                Some(cursor) if !cursor.is_empty() => params = json!({"cursor": cursor}),
                _ => return Ok(items),
            }
        }
        Err(format!("{method} has more than {PAGES} pages"))
    }

    /// Closes its input, and waits until it has ended.
    pub(super) fn close(mut self) {
        self.stdin = None;
        let ended = crate::help::within(Duration::from_secs(10), || self.child.try_wait().unwrap());
        if ended.is_none() {
            kill_hard(&mut self.child);
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            kill_hard(&mut self.child);
        }
    }
}
