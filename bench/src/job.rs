//! Job of a bench client: it opens the bare server, makes its calls, compares every answer, and reports how long
//! the calls took.
//!
//! `CLIENT --calls N --flight N [--tools N] [--lists] [--url URL] [--core N]`: the server is behind the URL, or is started, and
//! then stays on that core.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// The text of a call is so long.
const BYTES: usize = 16;

/// The job of one run.
pub struct Job {
    /// Calls to be made.
    pub calls: u64,
    /// Calls in flight.
    pub flight: u64,
    /// Tools of the server.
    pub tools: usize,
    /// True if the tools are listed; otherwise the first one is called.
    pub lists: bool,
    /// URL of the server, if it is reached over HTTP.
    pub url: Option<String>,
    taken: AtomicU64,
}

impl Job {
    /// As the command line has it.
    pub fn read() -> Job {
        Job {
            calls: crate::number("--calls").unwrap_or(1).into(),
            flight: crate::number("--flight").unwrap_or(1).into(),
            tools: crate::number("--tools").unwrap_or(0) as usize,
            lists: crate::has("--lists"),
            url: crate::word("--url"),
            taken: AtomicU64::new(0),
        }
    }

    /// The command of the server over stdio.
    pub fn server(&self) -> io::Result<Vec<String>> {
        let server = std::env::current_exe()?.with_file_name("bare_stdio");
        let mut command = vec![server.to_string_lossy().into_owned()];
        command.extend(["--breaking", "--tools"].map(str::to_owned));
        command.push(self.tools.to_string());
        if let Some(core) = crate::word("--core") {
            command.extend(["--core".to_owned(), core]);
        }
        Ok(command)
    }

    /// The number of the next call, until all were taken.
    pub fn next(&self) -> Option<u64> {
        let id = self.taken.fetch_add(1, Ordering::Relaxed) + 1;
        (id <= self.calls).then_some(id)
    }

    /// The text of a call.
    pub fn text(&self, id: u64) -> String {
        crate::text(id, BYTES)
    }

    /// Compares the answer to a call.
    ///
    /// # Panics
    /// It is another one.
    pub fn check(&self, id: u64, answer: &str) {
        assert_eq!(answer, self.text(id), "the answer to call {id}");
    }

    /// Compares a list by its length.
    ///
    /// # Panics
    /// It is another one.
    pub fn check_list(&self, tools: usize) {
        assert_eq!(tools, self.tools, "the tools of the list");
    }

    /// Says how long the calls took, in seconds.
    pub fn done(&self, took: Duration) {
        println!("{}", took.as_secs_f64());
    }
}
