//! Our own programs under test, or others that were named on the command line.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::group::Group;
use super::table::Side;
use crate::run::{cargo, command, must, target};

/// How long one of our programs may take until it says where it listens.
const START: Duration = Duration::from_secs(30);

/// What the suite is pointed at. Dropping it ends what was started for it.
pub(crate) struct Subject {
    /// The URL of a server or the command of a client.
    pub(crate) words: String,
    /// The last one started stands first, and ends first.
    running: Vec<Group>,
}

/// Compiles our programs.
///
/// # Errors
/// They do not compile.
pub(crate) fn build() -> Result<(), String> {
    let packages = [
        "--package",
        "toolgate-conformance",
        "--package",
        "toolgate-cli",
    ];
    must(cargo().args(["build", "--locked", "--bins"]).args(packages))
}

impl Subject {
    /// Our own program: a server or gateway that was just started on a free port, or the command of our client.
    ///
    /// # Errors
    /// It did not start.
    pub(crate) fn own(side: Side) -> Result<Subject, String> {
        match side {
            Side::Server => server(),
            Side::Gateway => {
                let command = format!(
                    "command = [{:?}, \"--stdio\"]",
                    program("conformance-server")
                );
                gateway(&command, Vec::new())
            }
            Side::GatewayHttp => {
                let server = server()?;
                gateway(&format!("url = {:?}", server.words), server.running)
            }
            Side::Client => Ok(Subject::given(
                &program("conformance-client").to_string_lossy(),
            )),
        }
    }

    /// A server or client of somebody else.
    pub(crate) fn given(words: &str) -> Subject {
        Subject {
            words: words.to_owned(),
            running: Vec::new(),
        }
    }
}

fn program(name: &str) -> PathBuf {
    target().join("debug").join(name)
}

/// The first line that it writes is its URL.
fn server() -> Result<Subject, String> {
    let mut server = command(program("conformance-server"));
    server.args(["--port", "0"]).stdout(Stdio::piped());
    let mut group = Group::start(&mut server)?;
    let out = group.head().stdout.take().ok_or("no standard output")?;
    let url = first(out, |line| {
        line.starts_with("http://").then(|| line.to_owned())
    })?;
    Ok(Subject {
        words: url,
        running: vec![group],
    })
}

/// The gateway over our server, with a data folder of its own. It lets every call through: what is looked at here is
/// the protocol, of the newest revision that the server offers.
fn gateway(server: &str, mut running: Vec<Group>) -> Result<Subject, String> {
    let here = target().join("conformance/gateway");
    let _ = fs::remove_dir_all(&here);
    let config = here.join("toolgate.toml");
    let text = format!(
        "data = {:?}\n[limits]\nrate = \"100000/s\"\nstream_seconds = 1\n[server.all]\n{server}\nrevision = \"newest\"\nprefix = \"\"\nsampling = \"100000/s\"\n\
         [[rule]]\ntools = [\"*\"]\naction = \"allow\"\n",
        here.join("data"),
    );
    fs::create_dir_all(&here)
        .and_then(|()| fs::write(&config, text))
        .and_then(|()| fs::set_permissions(&config, fs::Permissions::from_mode(0o600)))
        .map_err(|error| format!("cannot write {}: {error}", config.display()))?;
    let mut gateway = command(program("toolgate"));
    gateway.args(["serve", "--listen", "127.0.0.1:0", "--config"]);
    gateway.arg(&config).stderr(Stdio::piped());
    let mut group = Group::start(&mut gateway)?;
    let err = group.head().stderr.take().ok_or("no standard error")?;
    let url = |line: &str| Some(line.strip_prefix("MCP endpoint")?.trim().to_owned());
    let words = first(err, url)?;
    running.insert(0, group);
    Ok(Subject { words, running })
}

/// What `find` finds in the first line that has it.
fn first(
    from: impl Read + Send + 'static,
    find: impl Fn(&str) -> Option<String> + Send + 'static,
) -> Result<String, String> {
    let (send, found) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut lines = BufReader::new(from).lines().map_while(Result::ok);
        let _ = send.send(lines.find_map(|line| find(&line)));
        // Read on, so that a program that writes more does not wait for us.
        lines.for_each(drop);
    });
    match found.recv_timeout(START) {
        Ok(Some(found)) => Ok(found),
        Ok(None) => Err("our program ended before it said its URL".to_owned()),
        Err(_) => Err(format!(
            "our program did not say its URL within {} s",
            START.as_secs()
        )),
    }
}
