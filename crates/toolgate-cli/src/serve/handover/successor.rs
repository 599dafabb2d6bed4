//! The side of the running gateway: it gives its listeners to a successor, and completes what runs.

use super::{
    HANDOVER_VERSION, ListenerKind, PredecessorMessage, SuccessorMessage, TransferredSessions,
    descriptors::send_line_with, sessions::StoredSession,
};
use crate::{
    event_log::{self, GatewayEvent},
    operator::control::{SuccessorHandler, other_gateway},
    servers::{ServerState, ServerSupervisor},
};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
    sync::watch,
};
use toolgate::edge::http::HttpEndpoint;
use toolgate_core::{BoxFuture, visible_line};
use toolgate_journal::{AuditEntry, AuditEvent, AuditJournal};
use toolgate_policy::sanitize_entry;

/// Maximum length of a line of a successor, in bytes.
const MAX_LINE_BYTES: u64 = 64 * 1024;

/// Duplicates of the listeners of the running gateway, which go to a successor.
pub(crate) struct ListenerHandover {
    address: SocketAddr,
    listeners: Mutex<Vec<(ListenerKind, OwnedFd)>>,
    sessions: Arc<TransferredSessions>,
    endpoint: HttpEndpoint,
    supervisor: Arc<ServerSupervisor>,
    journal: Arc<AuditJournal>,
    is_handed_over: watch::Sender<bool>,
    /// Locked while a successor is connected.
    one: tokio::sync::Mutex<()>,
}

impl ListenerHandover {
    /// Creates the handover of the gateway at an address.
    pub(crate) fn new(
        address: SocketAddr,
        listeners: Vec<(ListenerKind, OwnedFd)>,
        (endpoint, sessions): (HttpEndpoint, Arc<TransferredSessions>),
        supervisor: Arc<ServerSupervisor>,
        journal: Arc<AuditJournal>,
    ) -> ListenerHandover {
        ListenerHandover {
            address,
            listeners: Mutex::new(listeners),
            sessions,
            endpoint,
            supervisor,
            journal,
            is_handed_over: watch::Sender::new(false),
            one: tokio::sync::Mutex::new(()),
        }
    }

    /// Returns whether a successor accepts the connections.
    pub(crate) fn is_handed_over(&self) -> bool {
        *self.is_handed_over.borrow()
    }

    /// Resolves when a successor accepts the connections.
    pub(crate) async fn handed_over(&self) {
        let mut over = self.is_handed_over.subscribe();
        let _ = over.wait_for(|over| *over).await;
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<(ListenerKind, OwnedFd)>> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, mut stream: UnixStream, about: &Value) {
        let answer = match (self.check(about), self.one.try_lock()) {
            // The process that took over has the listeners now.
            _ if self.is_handed_over() => other_gateway(),
            (Ok(()), Ok(_one)) => return self.hand_over(stream, about).await,
            (Ok(()), Err(_)) => {
                json!({"error": "another process takes over this gateway already"})
            }
            (Err(answer), _) => answer,
        };
        let _ = send_line_with(&mut stream, &answer.to_string(), &[]).await;
    }

    /// Checks whether a request is for this gateway.
    fn check(&self, about: &Value) -> Result<(), Value> {
        let wanted = about["listen"].as_str().and_then(|text| text.parse().ok());
        let is_other = |wanted: SocketAddr| {
            let is_any_port = wanted.port() == 0 && wanted.ip() == self.address.ip();
            !is_any_port && wanted != self.address
        };
        if wanted.is_none_or(is_other) {
            let why = format!("it listens on {}", self.address);
            return Err(json!({"error": why, "unknown": true}));
        }
        if about["protocol"] != json!(HANDOVER_VERSION) {
            let why = "the two versions of toolgate cannot hand over to each other; stop the old gateway, then start the new one";
            return Err(json!({"error": why}));
        }
        Ok(())
    }

    async fn hand_over(&self, mut stream: UnixStream, about: &Value) {
        let version = visible_line(about["version"].as_str().unwrap_or_default());
        let process = about["process"].as_u64().unwrap_or_default();
        if self.send_listeners(&mut stream).await.is_err() {
            return;
        }
        let mut lines = BufReader::new(stream.take(MAX_LINE_BYTES));
        let mut line = String::new();
        let read = lines.read_line(&mut line).await;
        let ready = read.is_ok() && serde_json::from_str::<SuccessorMessage>(&line).is_ok();
        if !ready {
            let text = format!(
                "the process {process} (version {version}) ended before it could take over, so this gateway goes on; see the output of that process"
            );
            return event_log::emit(GatewayEvent::Problem { text });
        }
        let mut stream = lines.into_inner().into_inner();
        // The process keeps the connection open to its very end: its end tells the successor that the tasks are free.
        if let Ok(connection) = stream.as_fd().try_clone_to_owned() {
            std::mem::forget(connection);
        }
        // Sessions that open from here on follow one by one.
        let mut opened = self.sessions.send_new();
        self.is_handed_over.send_replace(true);
        self.listeners().clear();
        self.record(process, &version);
        let unused = self.sessions.unused().into_iter();
        let sessions = unused.chain(self.endpoint.session_records());
        let messages = sessions
            .map(session_message)
            .chain([PredecessorMessage::HandedOver]);
        for message in messages {
            if send(&mut stream, &message).await.is_err() {
                return;
            }
        }
        while let Some(session) = opened.recv().await {
            if send(&mut stream, &session_message(session)).await.is_err() {
                return;
            }
        }
    }

    async fn send_listeners(&self, stream: &mut UnixStream) -> std::io::Result<()> {
        let duplicates = self
            .listeners()
            .iter()
            .map(|(kind, listener)| Ok((*kind, listener.try_clone()?)))
            .collect::<std::io::Result<Vec<_>>>();
        let duplicates = match duplicates {
            Ok(duplicates) => duplicates,
            Err(error) => {
                let why = json!({"error": format!("its listeners cannot be duplicated: {error}")});
                send_line_with(stream, &why.to_string(), &[]).await?;
                return Err(error);
            }
        };
        let (kinds, duplicates): (Vec<ListenerKind>, Vec<OwnedFd>) = duplicates.into_iter().unzip();
        let servers = self.supervisor.status().into_iter();
        let running = servers.filter(|server| server.state == ServerState::Running);
        let running: Vec<String> = running.map(|server| server.id).collect();
        let answer = json!({"ok": {
            "listeners": kinds, "running": running, "process": std::process::id(),
        }});
        send_line_with(stream, &answer.to_string(), &duplicates).await
    }

    fn record(&self, process: u64, version: &str) {
        let entry = AuditEntry::new(AuditEvent::DRAIN)
            .with("successor_process", process)
            .with("successor_version", version);
        // An unhealthy journal is reported elsewhere.
        let _ = self.journal.enqueue_signed(sanitize_entry(entry));
        event_log::emit(GatewayEvent::HandedOver {
            process,
            version: version.to_owned(),
        });
    }
}

impl SuccessorHandler for ListenerHandover {
    fn serve_successor(&self, stream: UnixStream, about: Value) -> BoxFuture<'_, ()> {
        Box::pin(async move { self.answer(stream, &about).await })
    }
}

fn session_message((key, record): StoredSession) -> PredecessorMessage {
    PredecessorMessage::Session(key, record)
}

async fn send(stream: &mut UnixStream, message: &PredecessorMessage) -> std::io::Result<()> {
    let line = serde_json::to_string(message).map_err(std::io::Error::other)?;
    stream.write_all(format!("{line}\n").as_bytes()).await
}
