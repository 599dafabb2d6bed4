//! The terminal's end of the control socket.

use super::directory;
use serde_json::{Value, json};
use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
};

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
        let entries = directory(data)
            .and_then(std::fs::read_dir)
            .map_err(|e| format!("cannot look for gateways in {}: {e}", data.display()))?;
        let mut found: Vec<PathBuf> = entries
            .filter_map(|e| Some(e.ok()?.path()))
            .filter(|p| p.extension().is_some_and(|e| e == "sock"))
            .collect();
        found.retain(|path| is_alive(path));
        found.sort();
        if found.is_empty() {
            return Err(format!(
                "no gateway is running on {}; start one with `toolgate`, or name its data directory with --data",
                data.display()
            ));
        }
        Ok(Gateways(found))
    }

    /// Asks all of them the same.
    ///
    /// # Errors
    /// One of them cannot be reached.
    pub(crate) fn ask_all(&self, action: &str, with: &Value) -> Result<Vec<Reached>, String> {
        self.0
            .iter()
            .map(|path| {
                ask(path, action, with)
                    .map_err(|e| format!("cannot reach the gateway at {}: {e}", path.display()))
            })
            .collect()
    }

    /// Asks one after the other until one knows what is meant. What that one says counts: a no is a no.
    ///
    /// # Errors
    /// Why none did it.
    pub(crate) fn ask_any(&self, action: &str, with: &Value) -> Result<Value, String> {
        let mut refusal = String::new();
        for path in &self.0 {
            match ask(path, action, with)
                .map_err(|e| format!("cannot reach the gateway at {}: {e}", path.display()))?
            {
                Reached::Ok(value) => return Ok(value),
                Reached::Unknown(why) => refusal = why,
                Reached::Refused(why) => return Err(why),
            }
        }
        Err(refusal)
    }
}

fn is_alive(path: &Path) -> bool {
    match UnixStream::connect(path) {
        Ok(_) => true,
        Err(error) => {
            if error.kind() == io::ErrorKind::ConnectionRefused {
                let _ = std::fs::remove_file(path);
            }
            false
        }
    }
}

/// One request. Notes that come before the answer go to stderr.
fn ask(path: &Path, action: &str, with: &Value) -> io::Result<Reached> {
    let mut stream = UnixStream::connect(path)?;
    stream.write_all(format!("{}\n", json!({"do": action, "with": with})).as_bytes())?;
    for line in BufReader::new(stream).lines() {
        let mut answer: Value = serde_json::from_str(&line?).map_err(io::Error::other)?;
        if let Some(note) = answer.get("note").and_then(Value::as_str) {
            eprintln!("{note}");
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
    Err(io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the gateway stopped before it answered",
    ))
}
