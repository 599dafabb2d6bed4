//! A server, whatever it is spoken to over.

use crate::{http::Http, load::Load, stdio::Pipes};
use std::process::Command;

/// A server that was started.
pub enum Wire {
    /// Behind pipes.
    Stdio(Pipes),
    /// On a port.
    Http(Http),
}

impl Wire {
    /// Starts it for a workload, and opens its sessions.
    pub fn start(load: &Load, command: Command) -> Wire {
        let mut wire = match load.http {
            true => Wire::Http(Http::start(command)),
            false => Wire::Stdio(Pipes::start(command)),
        };
        for _ in 0..load.sessions {
            match &mut wire {
                Wire::Stdio(pipes) => pipes.open(),
                Wire::Http(http) => http.open(),
            }
        }
        wire
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        match self {
            Wire::Stdio(pipes) => pipes.pid(),
            Wire::Http(http) => http.pid(),
        }
    }

    /// A message; it leaves with the next flush at the latest.
    pub fn say(&mut self, line: &str) {
        match self {
            Wire::Stdio(pipes) => pipes.say(line),
            Wire::Http(http) => http.say(line),
        }
    }

    /// All that was said leaves.
    pub fn flush(&mut self) {
        if let Wire::Stdio(pipes) = self {
            pipes.flush();
        }
    }

    /// The next answer.
    pub fn hear(&mut self, line: &mut String) {
        match self {
            Wire::Stdio(pipes) => pipes.hear(line),
            Wire::Http(http) => http.hear(line),
        }
    }

    /// Ends it; over HTTP, with SIGTERM.
    pub fn terminate(self) {
        match self {
            Wire::Stdio(pipes) => pipes.end(),
            Wire::Http(http) => http.terminate(),
        }
    }

    /// Ends it.
    pub fn end(self) {
        match self {
            Wire::Stdio(pipes) => pipes.end(),
            Wire::Http(http) => http.end(),
        }
    }
}
