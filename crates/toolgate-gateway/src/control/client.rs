//! The terminal's end of the control socket.

use super::directory;
use serde_json::{Value, json};
use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::mpsc,
    time::Duration,
};
use toolgate::visible_line;

/// How long a gateway may take to hear a request.
const HEARS: Duration = Duration::from_secs(2);
/// How long it may then take to do it, unless it is a call.
const ANSWERS: Duration = Duration::from_secs(30);

/// The running gateways of a data directory.
pub(crate) struct Gateways(Vec<PathBuf>);

/// What one of them answered.
pub(crate) enum Reached {
    /// It did as told.
    Ok(Value),
    /// It does not know what is meant; another one may.
    Unknown(String),
    /// It knows, and said no: that is the answer, and nobody else is asked.
    Refused(String),
}

impl Gateways {
    /// Finds them. Sockets that nobody listens on any more are removed.
    ///
    /// # Errors
    /// No gateway is running there.
    pub(crate) fn find(data: &Path) -> Result<Gateways, String> {
        Gateways::any(data)?.ok_or_else(|| {
            format!(
                "no gateway is running on {}; start one with `toolgate`, or name its data directory with --data",
                data.display()
            )
        })
    }

    /// The same, where there may be none.
    ///
    /// # Errors
    /// The place of the sockets cannot be looked at.
    pub(crate) fn any(data: &Path) -> Result<Option<Gateways>, String> {
        let entries = directory(data)
            .and_then(std::fs::read_dir)
            .map_err(|e| format!("cannot look for gateways in {}: {e}", data.display()))?;
        let mut found: Vec<PathBuf> = entries
            .filter_map(|e| Some(e.ok()?.path()))
            .filter(|p| p.extension().is_some_and(|e| e == "sock"))
            .collect();
        found.retain(|path| is_alive(path));
        found.sort();
        Ok((!found.is_empty()).then_some(Gateways(found)))
    }

    /// Asks all of them the same. Those that do not answer are named on stderr.
    ///
    /// # Errors
    /// None of them answered.
    pub(crate) fn ask_all(&self, action: &str, with: &Value) -> Result<Vec<Reached>, String> {
        let mut answers = Vec::new();
        let mut missed = Vec::new();
        for path in &self.0 {
            match ask(path, action, with) {
                Ok(answer) => answers.push(answer),
                Err(silent) => missed.push(silent.why(path)),
            }
        }
        if answers.is_empty() {
            return Err(missed.join("; "));
        }
        missed.iter().for_each(|why| eprintln!("toolgate: {why}"));
        Ok(answers)
    }

    /// Asks one after the other until one knows what is meant. What that one says counts: a no is a no. One that cannot
    /// be reached is passed over; one that goes away after it heard may have done it, so nobody else is asked.
    ///
    /// # Errors
    /// Why none did it.
    pub(crate) fn ask_any(&self, action: &str, with: &Value) -> Result<Value, String> {
        let mut reasons = Vec::new();
        for path in &self.0 {
            match ask(path, action, with) {
                Ok(Reached::Ok(value)) => return Ok(value),
                Ok(Reached::Unknown(why)) => reasons.push(why),
                Ok(Reached::Refused(why)) => return Err(why),
                Err(silent @ Silent::Heard(_)) => return Err(silent.why(path)),
                Err(silent) => reasons.push(silent.why(path)),
            }
        }
        reasons.dedup();
        Err(reasons.join("; "))
    }
}

fn is_alive(path: &Path) -> bool {
    match connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            let _ = std::fs::remove_file(path);
            false
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        // Whoever cannot be reached now is named when it is asked.
        _ => true,
    }
}

/// Connects, within the time limit: where the queue of a suspended gateway is full, this would wait for ever.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let (tx, rx) = mpsc::sync_channel(1);
    let path = path.to_owned();
    std::thread::spawn(move || tx.send(UnixStream::connect(path)));
    rx.recv_timeout(HEARS)
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Why there is no answer.
enum Silent {
    /// It did not take the request.
    Deaf(io::Error),
    /// It took the request, so it may have done it.
    Heard(io::Error),
}

impl Silent {
    fn why(&self, path: &Path) -> String {
        let (what, error) = match self {
            Silent::Deaf(error) => ("does not hear", error),
            Silent::Heard(error) => ("heard, but did not answer", error),
        };
        let process = path.file_stem().unwrap_or_default().to_string_lossy();
        let cause = match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                "it took too long and may be suspended".to_owned()
            }
            _ => error.to_string(),
        };
        format!(
            "the gateway of process {process} ({}) {what}: {cause}",
            path.display()
        )
    }
}

/// One request. Notes that come before the answer go to stderr, each once: what says that it still waits says nothing new.
fn ask(path: &Path, action: &str, with: &Value) -> Result<Reached, Silent> {
    let mut reader = send(path, action, with).map_err(Silent::Deaf)?;
    let hears = next(&mut reader).map_err(Silent::Deaf)?;
    if hears.get("heard").is_none() {
        return Err(Silent::Deaf(io::ErrorKind::InvalidData.into()));
    }
    // A call takes as long as it takes, with a person in between.
    let limit = (action != "call").then_some(ANSWERS);
    let set = reader.get_ref().set_read_timeout(limit);
    set.map_err(Silent::Heard)?;
    let mut said = String::new();
    loop {
        let mut answer = next(&mut reader).map_err(Silent::Heard)?;
        if let Some(note) = answer.get("note").and_then(Value::as_str) {
            if note != said {
                eprintln!("{}", visible_line(note));
                said = note.to_owned();
            }
        } else if let Some(error) = answer.get("error").and_then(Value::as_str) {
            let error = error.to_owned();
            let unknown = answer.get("unknown").is_some();
            return Ok(if unknown {
                Reached::Unknown(error)
            } else {
                Reached::Refused(error)
            });
        } else {
            return Ok(Reached::Ok(answer["ok"].take()));
        }
    }
}

fn send(path: &Path, action: &str, with: &Value) -> io::Result<BufReader<UnixStream>> {
    let mut stream = connect(path)?;
    stream.set_write_timeout(Some(HEARS))?;
    stream.set_read_timeout(Some(HEARS))?;
    stream.write_all(format!("{}\n", json!({"do": action, "with": with})).as_bytes())?;
    Ok(BufReader::new(stream))
}

fn next(reader: &mut BufReader<UnixStream>) -> io::Result<Value> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        let text = "it stopped before it answered";
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
    }
    serde_json::from_str(&line).map_err(io::Error::other)
}
