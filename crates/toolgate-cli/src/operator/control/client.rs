//! Client of the control socket, for the commands in a terminal.

use super::socket_directory;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::mpsc,
    time::Duration,
};
use toolgate_core::visible_line;

/// Timeout until a gateway acknowledges a request.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for the result of a request after that, unless it is a call.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Control sockets of the running gateways of a data directory.
pub(crate) struct GatewaySockets(Vec<PathBuf>);

/// Response of a gateway.
pub(crate) enum ControlResponse {
    /// The action succeeded.
    Ok(Value),
    /// The gateway does not know the object; another one may.
    Unknown(String),
    /// The gateway refused the action. No other gateway is asked.
    Refused(String),
}

impl GatewaySockets {
    /// Finds the running gateways, and removes sockets without a listener.
    ///
    /// # Errors
    /// No gateway is running on the data directory.
    pub(crate) fn find(data: &Path) -> Result<GatewaySockets, String> {
        GatewaySockets::find_optional(data)?.ok_or_else(|| {
            format!(
                "no gateway is running on the data directory {}; start one with `toolgate`, or pass the data directory of another gateway with --data",
                data.display()
            )
        })
    }

    /// Finds the running gateways, if there are any.
    ///
    /// # Errors
    /// The directory of the sockets cannot be read.
    pub(crate) fn find_optional(data: &Path) -> Result<Option<GatewaySockets>, String> {
        let entries = socket_directory(data)
            .and_then(std::fs::read_dir)
            .map_err(|e| {
                format!(
                    "cannot list the gateways in {}: {e}; check the directory and its permissions",
                    data.display()
                )
            })?;
        let mut found: Vec<PathBuf> = entries
            .filter_map(|e| Some(e.ok()?.path()))
            .filter(|p| p.extension().is_some_and(|e| e == "sock"))
            .collect();
        found.retain(|path| has_listener(path));
        found.sort();
        Ok((!found.is_empty()).then_some(GatewaySockets(found)))
    }

    /// Returns the sockets.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.0
    }

    /// Sends a request to all gateways. Those that do not respond are reported on stderr.
    ///
    /// # Errors
    /// No gateway responded.
    pub(crate) fn request_all(
        &self,
        action: &str,
        with: &Value,
    ) -> Result<Vec<ControlResponse>, String> {
        let (answers, missed) = self.request_each(action, with);
        if answers.is_empty() {
            return Err(missed.join("; "));
        }
        missed.iter().for_each(|why| eprintln!("toolgate: {why}"));
        Ok(answers)
    }

    /// Sends a request to all gateways. Returns the responses, and the reasons of gateways that do not respond.
    pub(crate) fn request_each(
        &self,
        action: &str,
        with: &Value,
    ) -> (Vec<ControlResponse>, Vec<String>) {
        let mut answers = Vec::new();
        let mut missed = Vec::new();
        for path in &self.0 {
            match request(path, action, with) {
                Ok(answer) => answers.push(answer),
                Err(silent) => missed.push(silent.message(path)),
            }
        }
        (answers, missed)
    }

    /// Sends a request to one gateway after the other until one knows the object. Its response counts, also if it is
    /// a refusal.
    ///
    /// A gateway that cannot be reached is skipped. One that ends after its acknowledgment may have executed the
    /// action, so no other gateway is asked.
    ///
    /// # Errors
    /// The reasons for which no gateway executed the action.
    pub(crate) fn request_any(&self, action: &str, with: &Value) -> Result<Value, String> {
        let mut reasons = Vec::new();
        for path in &self.0 {
            match request(path, action, with) {
                Ok(ControlResponse::Ok(value)) => return Ok(value),
                Ok(ControlResponse::Unknown(why)) => reasons.push(why),
                Ok(ControlResponse::Refused(why)) => return Err(why),
                Err(silent @ ControlFailure::Acknowledged(_)) => return Err(silent.message(path)),
                Err(silent) => reasons.push(silent.message(path)),
            }
        }
        reasons.dedup();
        Err(reasons.join("; "))
    }
}

fn has_listener(path: &Path) -> bool {
    match connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            let _ = std::fs::remove_file(path);
            false
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        // A gateway that cannot be reached now is reported when it is asked.
        _ => true,
    }
}

/// Connects within the timeout. The connection queue of a suspended gateway may be full; a plain connect would then
/// block forever.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    let (tx, rx) = mpsc::sync_channel(1);
    let path = path.to_owned();
    std::thread::spawn(move || tx.send(UnixStream::connect(path)));
    rx.recv_timeout(ACKNOWLEDGE_TIMEOUT)
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Reason for a missing response.
enum ControlFailure {
    /// The gateway did not acknowledge the request.
    NotAcknowledged(io::Error),
    /// The gateway acknowledged the request, so it may have executed it.
    Acknowledged(io::Error),
}

impl ControlFailure {
    fn message(&self, path: &Path) -> String {
        let (what, error, advice) = match self {
            ControlFailure::NotAcknowledged(error) => (
                "does not accept requests",
                error,
                "; try again, or end that process and start the gateway again",
            ),
            ControlFailure::Acknowledged(error) => (
                "accepted the request, but did not respond",
                error,
                "; the action may have taken effect, so check before you repeat it",
            ),
        };
        let process = path.file_stem().unwrap_or_default().to_string_lossy();
        let cause = match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                "it did not respond in time and may be suspended".to_owned()
            }
            io::ErrorKind::InvalidData => "it sent an invalid response".to_owned(),
            _ => error.to_string(),
        };
        format!(
            "the gateway with the process ID {process} ({}) {what}: {cause}{advice}",
            path.display()
        )
    }
}

/// Sends one request. Notes before the response go to stderr; a repeated note is printed once.
fn request(path: &Path, action: &str, with: &Value) -> Result<ControlResponse, ControlFailure> {
    let mut reader = send(path, action, with).map_err(ControlFailure::NotAcknowledged)?;
    let hears: Value = read_message(&mut reader).map_err(ControlFailure::NotAcknowledged)?;
    if hears.get("heard").is_none() {
        return Err(ControlFailure::NotAcknowledged(
            io::ErrorKind::InvalidData.into(),
        ));
    }
    // A call has no time limit, because a person may have to approve it.
    let limit = (action != "call").then_some(RESPONSE_TIMEOUT);
    let set = reader.get_ref().set_read_timeout(limit);
    set.map_err(ControlFailure::Acknowledged)?;
    let mut said = String::new();
    loop {
        let mut answer: Value = read_message(&mut reader).map_err(ControlFailure::Acknowledged)?;
        if let Some(note) = answer.get("note").and_then(Value::as_str) {
            if note != said {
                eprintln!("{}", visible_line(note));
                said = note.to_owned();
            }
        } else if let Some(error) = answer.get("error").and_then(Value::as_str) {
            let error = error.to_owned();
            let unknown = answer.get("unknown").is_some();
            return Ok(if unknown {
                ControlResponse::Unknown(error)
            } else {
                ControlResponse::Refused(error)
            });
        } else {
            return Ok(ControlResponse::Ok(answer["ok"].take()));
        }
    }
}

fn send(path: &Path, action: &str, with: &Value) -> io::Result<BufReader<UnixStream>> {
    let mut stream = connect(path)?;
    stream.set_write_timeout(Some(ACKNOWLEDGE_TIMEOUT))?;
    stream.set_read_timeout(Some(ACKNOWLEDGE_TIMEOUT))?;
    stream.write_all(format!("{}\n", json!({"do": action, "with": with})).as_bytes())?;
    Ok(BufReader::new(stream))
}

/// Reads a message of a gateway: one line of JSON.
pub(crate) fn read_message<T: DeserializeOwned>(
    reader: &mut BufReader<UnixStream>,
) -> io::Result<T> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        let text = "it stopped before it responded";
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
    }
    serde_json::from_str(&line).map_err(io::Error::other)
}
