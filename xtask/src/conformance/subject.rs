//! Our own programs under test, or others that were named on the command line.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::group::Group;
use super::table::Side;
use crate::run::{cargo, command, must, target};

/// How long our server may take until it says where it listens.
const START: Duration = Duration::from_secs(30);

/// What the suite is pointed at. Dropping it ends a server that was started for it.
pub(crate) struct Subject {
    /// The URL of a server or the command of a client.
    pub(crate) words: String,
    _server: Option<Group>,
}

/// Compiles both programs.
///
/// # Errors
/// They do not compile.
pub(crate) fn build() -> Result<(), String> {
    must(cargo().args([
        "build",
        "--locked",
        "--package",
        "toolgate-conformance",
        "--bins",
    ]))
}

impl Subject {
    /// Our own program: a server that was just started on a free port, or the command of our client.
    ///
    /// # Errors
    /// The server did not start.
    pub(crate) fn own(side: Side) -> Result<Subject, String> {
        match side {
            Side::Server => start_server(),
            Side::Client => Ok(Subject::given(
                &program("conformance-client").to_string_lossy(),
            )),
        }
    }

    /// A server or client of somebody else.
    pub(crate) fn given(words: &str) -> Subject {
        Subject {
            words: words.to_owned(),
            _server: None,
        }
    }
}

fn program(name: &str) -> PathBuf {
    target().join("debug").join(name)
}

/// Starts it on a port that the system picks; the first line that it writes is its URL.
fn start_server() -> Result<Subject, String> {
    let mut server = command(program("conformance-server"));
    server.args(["--port", "0"]).stdout(Stdio::piped());
    let mut group = Group::start(&mut server)?;
    let out = group.head().stdout.take().ok_or("no standard output")?;
    let (send, line) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut lines = BufReader::new(out).lines();
        let _ = send.send(lines.next());
        // Read on, so that a server that writes more does not wait for us.
        lines.map_while(Result::ok).for_each(drop);
    });
    match line.recv_timeout(START) {
        Ok(Some(Ok(url))) if url.starts_with("http://") => Ok(Subject {
            words: url,
            _server: Some(group),
        }),
        Ok(Some(line)) => Err(format!("conformance-server said {line:?} and not its URL")),
        Ok(None) => Err("conformance-server ended before it said its URL".to_owned()),
        Err(_) => Err(format!(
            "conformance-server did not say its URL within {} s",
            START.as_secs()
        )),
    }
}
