//! The side of the new process: it takes over the listeners of the running gateway.

use super::{
    HANDOVER_VERSION, ListenerKind, PredecessorMessage, SuccessorMessage, TransferredSessions,
    descriptors::receive_line,
};
use crate::{
    event_log::{self, GatewayEvent},
    operator::control::{GatewaySockets, TAKE_OVER_ACTION, connect, read_message},
};
use serde_json::{Value, json};
use std::{
    io::{self, BufReader, Write},
    net::{SocketAddr, TcpListener},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::Path,
    sync::Arc,
    time::Duration,
};
use toolgate_core::visible_line;

/// Time limit of each answer of the running gateway.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Running gateway whose listeners this process takes over.
pub(crate) struct Predecessor {
    stream: UnixStream,
    listeners: Vec<(ListenerKind, OwnedFd)>,
    /// Servers that run there.
    running: Vec<String>,
    /// Process ID of the running gateway.
    process: u64,
}

/// Answer of one gateway of the data directory.
enum TakeOverAnswer {
    /// It hands over its listeners.
    Accepted(Predecessor),
    /// It listens on another address; the text says where.
    OtherAddress(String),
    /// It has no listener that could be taken over.
    NoListener,
}

impl Predecessor {
    /// Asks the running gateway of a data directory that listens on an address for its listeners. `None` if no gateway
    /// with a listener runs on the data directory. Blocks.
    ///
    /// # Errors
    /// The running gateway refuses, or none listens on the address; the message says what to do.
    pub(crate) fn find(data: &Path, listen: SocketAddr) -> Result<Option<Predecessor>, String> {
        let Some(gateways) = GatewaySockets::find_optional(data)? else {
            return Ok(None);
        };
        let about = json!({
            "listen": listen.to_string(), "protocol": HANDOVER_VERSION,
            "process": std::process::id(), "version": env!("CARGO_PKG_VERSION"),
        });
        let mut others = Vec::new();
        for path in gateways.paths() {
            match Predecessor::ask(path, &about)? {
                TakeOverAnswer::Accepted(found) => return Ok(Some(found)),
                TakeOverAnswer::OtherAddress(why) => others.push(why),
                TakeOverAnswer::NoListener => {}
            }
        }
        if others.is_empty() {
            return Ok(None);
        }
        Err(format!(
            "cannot take over from a running gateway: {}; start it with the same address, or stop the running gateway first",
            others.join("; ")
        ))
    }

    /// Asks one gateway.
    fn ask(path: &Path, about: &Value) -> Result<TakeOverAnswer, String> {
        let process = path.file_stem().unwrap_or_default().to_string_lossy();
        let failed = |why: &dyn std::fmt::Display| {
            format!(
                "cannot take over from the gateway with the process ID {process} ({}): {why}",
                path.display()
            )
        };
        let asked = || {
            let mut stream = connect(path)?;
            stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
            let request = json!({"do": TAKE_OVER_ACTION, "with": about});
            stream.write_all(format!("{request}\n").as_bytes())?;
            // The first line acknowledges the request.
            receive_line(&stream)?;
            let (line, descriptors) = receive_line(&stream)?;
            io::Result::Ok((stream, line, descriptors))
        };
        let (stream, line, descriptors) = asked().map_err(|error| failed(&error))?;
        let answer: Value = serde_json::from_str(&line).unwrap_or_default();
        if let Some(why) = answer["error"].as_str() {
            let why = visible_line(why);
            return match answer.get("unknown") {
                Some(_) if answer.get("other").is_some() => Ok(TakeOverAnswer::NoListener),
                Some(_) => Ok(TakeOverAnswer::OtherAddress(failed(&why))),
                None => Err(failed(&why)),
            };
        }
        let kinds: Vec<ListenerKind> =
            serde_json::from_value(answer["ok"]["listeners"].clone()).unwrap_or_default();
        if kinds.is_empty() || kinds.len() != descriptors.len() {
            return Err(failed(&"its answer has no listeners"));
        }
        Ok(TakeOverAnswer::Accepted(Predecessor {
            stream,
            listeners: kinds.into_iter().zip(descriptors).collect(),
            running: serde_json::from_value(answer["ok"]["running"].clone()).unwrap_or_default(),
            process: answer["ok"]["process"].as_u64().unwrap_or_default(),
        }))
    }

    /// Takes a listener out, if the running gateway has it and it listens on that address.
    pub(crate) fn listener(
        &mut self,
        kind: ListenerKind,
        address: SocketAddr,
    ) -> Option<TcpListener> {
        let listener = self.take(kind)?;
        let own = listener.local_addr().ok()?;
        let same = own == address || (address.port() == 0 && own.ip() == address.ip());
        same.then_some(listener)
    }

    /// Takes the listener for other gateways out, if the running gateway has it.
    pub(crate) fn peer_listener(&mut self) -> Option<TcpListener> {
        self.take(ListenerKind::Peers)
    }

    fn take(&mut self, kind: ListenerKind) -> Option<TcpListener> {
        let at = self.listeners.iter().position(|(one, _)| *one == kind)?;
        Some(TcpListener::from(self.listeners.remove(at).1))
    }

    /// Returns whether a server runs at the running gateway.
    pub(crate) fn runs_server(&self, id: &str) -> bool {
        self.running.iter().any(|running| running == id)
    }

    /// Tells the running gateway that this process is ready, and waits until it accepts no more connections and has
    /// sent its sessions. `None` if it did not confirm that, which is reported; this process serves in any case.
    pub(crate) async fn take_over(
        self,
        sessions: Arc<TransferredSessions>,
    ) -> Option<OpenHandover> {
        let told = tokio::task::spawn_blocking(move || self.tell_ready(&sessions)).await;
        match told {
            Ok(Ok(open)) => Some(open),
            Ok(Err(text)) => {
                event_log::emit(GatewayEvent::Problem { text });
                None
            }
            Err(_) => None,
        }
    }

    fn tell_ready(mut self, sessions: &TransferredSessions) -> Result<OpenHandover, String> {
        let told = serde_json::to_string(&SuccessorMessage::Ready).map_err(io::Error::other);
        let told = told.and_then(|line| self.stream.write_all(format!("{line}\n").as_bytes()));
        let mut lines = BufReader::new(self.stream);
        let confirmed = told.and_then(|()| {
            sessions.set_arriving(true);
            while let PredecessorMessage::Session(key, record) = read_message(&mut lines)? {
                sessions.add((key, record));
            }
            lines.get_ref().set_read_timeout(None)
        });
        match confirmed {
            Ok(()) => Ok(OpenHandover(lines)),
            Err(error) => {
                sessions.set_arriving(false);
                Err(format!(
                    "the gateway with the process ID {} did not confirm that it handed over its listeners: {error}; this process serves now, so end that process if it still runs",
                    self.process
                ))
            }
        }
    }
}

/// Connection to a predecessor that completes what runs.
pub(crate) struct OpenHandover(BufReader<UnixStream>);

impl OpenHandover {
    /// Receives the sessions that clients open at the predecessor, until its process ends. Blocks.
    pub(crate) fn follow(mut self, sessions: &Arc<TransferredSessions>) {
        while let Ok(PredecessorMessage::Session(key, record)) = read_message(&mut self.0) {
            sessions.add((key, record));
        }
        sessions.set_arriving(false);
    }
}
