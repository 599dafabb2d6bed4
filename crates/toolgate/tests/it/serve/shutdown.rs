//! Signals that end a server process over stdio.

use crate::examples::program;
use rustix::process::{Pid, Signal, kill_process};
use std::{os::unix::net::UnixStream, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

/// Bound on a hang, not a measurement.
const HANG: Duration = Duration::from_secs(30);

const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":"p"}"#;

/// A running server, and the open end of its input.
struct Server {
    child: Child,
    input: Box<dyn AsyncWrite + Send + Unpin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Server {
    /// Starts the example with a pipe as standard input, or with a socket, as Node.js does.
    fn start(socket: bool) -> Server {
        #[allow(clippy::disallowed_methods, reason = "the examples are programs")]
        let mut command = Command::new(program("long_calls"));
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let (near, far) = UnixStream::pair().unwrap();
        match socket {
            true => command.stdin(std::os::fd::OwnedFd::from(far)),
            false => command.stdin(Stdio::piped()),
        };
        let mut child = command.spawn().unwrap();
        drop(command);
        near.set_nonblocking(true).unwrap();
        let input: Box<dyn AsyncWrite + Send + Unpin> = match child.stdin.take() {
            Some(pipe) => Box::new(pipe),
            None => Box::new(tokio::net::UnixStream::from_std(near).unwrap()),
        };
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Server {
            child,
            input,
            output,
        }
    }

    async fn next(&mut self) -> Option<String> {
        let line = tokio::time::timeout(HANG, self.output.next_line());
        line.await.expect("a line, or the end").unwrap()
    }

    /// Calls a tool, and returns once it runs.
    async fn call(&mut self, id: u32, tool: &str) {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"_meta":{META},"name":"{tool}","arguments":{{}}}}}}"#
        );
        self.input.write_all(line.as_bytes()).await.unwrap();
        self.input.write_all(b"\n").await.unwrap();
        let progress = self.next().await.expect("the server runs");
        assert!(progress.contains("notifications/progress"), "{progress}");
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id().expect("it runs")).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    /// Asserts that the process ends without an error, and returns the rest of its output and its standard error.
    async fn ended(mut self) -> (Vec<String>, String) {
        let mut rest = Vec::new();
        while let Some(line) = self.next().await {
            rest.push(line);
        }
        let status = tokio::time::timeout(HANG, self.child.wait());
        let status = status.await.expect("it ends").unwrap();
        assert!(status.success(), "{status}");
        let mut errors = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut errors).await.unwrap();
        // The client never closed its end.
        drop(self.input);
        (rest, errors)
    }
}

/// A call that completes after the signal is answered; one that does not is cancelled; the exit code is 0.
async fn ends_after(signal: Signal, socket: bool) {
    let mut server = Server::start(socket);
    server.call(1, "collect").await;
    server.call(2, "endless").await;
    server.signal(signal);
    let (rest, errors) = server.ended().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert!(rest[0].contains(r#""id":1"#) && rest[0].contains("collected"));
    assert_eq!(errors, "cancelled\n");
}

#[tokio::test]
async fn answers_completed_calls_and_exits_after_sigterm() {
    ends_after(Signal::TERM, false).await;
}

#[tokio::test]
async fn answers_completed_calls_and_exits_after_sigint() {
    ends_after(Signal::INT, false).await;
}

/// A read of standard input that never completes does not keep the process.
#[tokio::test]
async fn exits_while_its_input_is_an_open_socket() {
    ends_after(Signal::TERM, true).await;
}
