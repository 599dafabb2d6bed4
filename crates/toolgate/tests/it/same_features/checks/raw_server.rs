//! A server without our client in front of it, which would reject invalid arguments itself.

use super::ProgramCommand;
use serde_json::{Value, json};
use std::{process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

/// A bound on a hang, not a measurement.
const HANG: Duration = Duration::from_secs(60);

/// Connection to a server over stdio, message by message.
pub(crate) struct RawServer {
    /// Ends with this value.
    _process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    last_id: u64,
}

impl RawServer {
    pub(crate) async fn start(command: &ProgramCommand) -> RawServer {
        #[allow(clippy::disallowed_methods, reason = "the server is a program")]
        let mut process = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let mut server = RawServer {
            _process: process,
            input: input.unwrap(),
            output: BufReader::new(output.unwrap()).lines(),
            last_id: 0,
        };
        let client = json!({"name": "checks", "version": "1.0.0"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        server.request("initialize", params).await;
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        server.send(&initialized).await;
        server
    }

    /// Sends a request and returns its response.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&request).await;
        let response = async {
            loop {
                let line = self.output.next_line().await.unwrap();
                let message: Value =
                    serde_json::from_str(&line.expect("the server ended")).unwrap();
                if message["id"] == id {
                    return message;
                }
            }
        };
        let response = tokio::time::timeout(HANG, response).await;
        response.unwrap_or_else(|_| panic!("no response to {request}"))
    }

    /// Returns whether a call succeeds: neither with an error of the tool, nor with one of the protocol.
    pub(crate) async fn accepts_call(&mut self, tool: &str, arguments: Value) -> bool {
        let params = json!({"name": tool, "arguments": arguments});
        let response = self.request("tools/call", params).await;
        response["result"].is_object() && response["result"]["isError"] != true
    }

    /// Returns whether a prompt accepts arguments.
    pub(crate) async fn accepts_prompt(&mut self, prompt: &str, arguments: Value) -> bool {
        let params = json!({"name": prompt, "arguments": arguments});
        let response = self.request("prompts/get", params).await;
        response["result"].is_object()
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.input.write_all(line.as_bytes()).await.unwrap();
        self.input.flush().await.unwrap();
    }
}
