//! A server behind a pair of pipes.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// A child, its input and its output.
pub struct Pipes {
    child: Child,
    input: Option<ChildStdin>,
    out: Vec<u8>,
    output: BufReader<ChildStdout>,
}

impl Pipes {
    /// Starts it.
    pub fn start(mut command: Command) -> Pipes {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .expect("it starts; build all programs of this crate");
        Pipes {
            input: child.stdin.take(),
            output: BufReader::with_capacity(1 << 16, child.stdout.take().expect("its output")),
            out: Vec::new(),
            child,
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The handshake of 2025-11-25.
    pub fn open(&mut self) {
        self.say(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1.0.0"}}}"#);
        self.flush();
        self.hear(&mut String::new());
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    /// A line, with the next flush.
    pub fn say(&mut self, line: &str) {
        self.out.extend_from_slice(line.as_bytes());
        self.out.push(b'\n');
    }

    /// All that was said, in one write.
    pub fn flush(&mut self) {
        if !self.out.is_empty() {
            let input = self.input.as_mut().expect("its input");
            input.write_all(&self.out).expect("it reads");
            self.out.clear();
        }
    }

    /// The next line.
    pub fn hear(&mut self, line: &mut String) {
        line.clear();
        let read = self.output.read_line(line).expect("it writes");
        assert!(read > 0, "it ended before it answered");
    }

    /// Ends it, as clients do.
    pub fn end(mut self) {
        drop(self.input.take());
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }
}

/// One that did not end by itself.
impl Drop for Pipes {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
