//! Server of the control socket, in the gateway.

use super::{MAX_CONTROL_LINE_BYTES, TAKE_OVER_ACTION, person, socket_directory};
use crate::operator::api::{ActionError, OperatorApi};
use serde_json::{Value, json};
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    sync::{Semaphore, mpsc},
    task::JoinSet,
};
use toolgate_core::BoxFuture;
use toolgate_policy::ApprovalChannel;

/// Handler of a new process that takes over. It gets the whole connection.
pub(crate) trait SuccessorHandler: Send + Sync + 'static {
    /// Serves a successor on its connection. `about` is its request.
    fn serve_successor(&self, stream: UnixStream, about: Value) -> BoxFuture<'_, ()>;
}

/// Answer of a gateway without a listener that could be taken over.
pub(crate) fn other_gateway() -> Value {
    json!({"error": "it has no listener", "unknown": true, "other": true})
}

/// Open control socket. Dropping it removes the socket.
pub(crate) struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
}

/// Timeout for receiving a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of concurrent connections.
const MAX_CONTROL_CONNECTIONS: usize = 64;
/// Maximum number of concurrent tool calls over the socket. A call can wait for an approver for a long time, so the
/// remaining connections stay free for the command that approves it.
const MAX_CONTROL_CALLS: usize = 48;

impl ControlSocket {
    /// Opens the socket of this process.
    ///
    /// # Errors
    /// The directory or the socket cannot be created.
    pub(crate) fn open(data: &Path) -> io::Result<ControlSocket> {
        let path = socket_directory(data)?.join(format!("{}.sock", std::process::id()));
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // Only the owner can enter the directory, so every peer is the owner or root.
        Ok(ControlSocket {
            listener: UnixListener::bind(&path)?,
            path,
        })
    }

    /// Answers requests until the future is dropped. A gateway over HTTP hands its listeners over to a successor.
    pub(crate) async fn serve(
        &self,
        operator: Arc<OperatorApi>,
        handover: Option<Arc<dyn SuccessorHandler>>,
    ) {
        let calls = Arc::new(Semaphore::new(MAX_CONTROL_CALLS));
        let mut open = JoinSet::new();
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let handover = handover.clone();
                    open.spawn(answer(stream, operator.clone(), calls.clone(), handover));
                }
                // Usually the process is out of file descriptors. Retry after other connections had time to close.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
            while open.len() >= MAX_CONTROL_CONNECTIONS && open.join_next().await.is_some() {}
            while open.try_join_next().is_some() {}
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn answer(
    stream: UnixStream,
    operator: Arc<OperatorApi>,
    calls: Arc<Semaphore>,
    handover: Option<Arc<dyn SuccessorHandler>>,
) {
    let who = stream.peer_cred();
    let (read, mut write) = stream.into_split();
    let mut reader = BufReader::new(read.take(MAX_CONTROL_LINE_BYTES));
    let mut line = String::new();
    let read = tokio::time::timeout(REQUEST_TIMEOUT, reader.read_line(&mut line)).await;
    if !matches!(read, Ok(Ok(_))) {
        return;
    }
    let request: Value = serde_json::from_str(&line).unwrap_or_default();
    let action = request
        .get("do")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let with = request.get("with").cloned().unwrap_or_default();
    // If this process was suspended, the client may have given up meanwhile; then nothing is executed.
    if send(&mut write, &json!({"heard": true})).await.is_err() {
        return;
    }
    if action == TAKE_OVER_ACTION {
        let Some(handover) = handover else {
            let _ = send(&mut write, &other_gateway()).await;
            return;
        };
        // A successor sends nothing before it has the listeners, so the reader has buffered nothing.
        if let Ok(stream) = reader.into_inner().into_inner().reunite(write) {
            handover.serve_successor(stream, with).await;
        }
        return;
    }
    let (notes, mut told) = mpsc::channel::<String>(16);
    let who = who.map_or_else(
        |_| ApprovalChannel::Terminal.into(),
        |peer| person::user(ApprovalChannel::Terminal, peer.uid()),
    );
    let work = async {
        let _permit = match action {
            "call" => Some(calls.try_acquire().map_err(|_| too_many_calls())?),
            _ => None,
        };
        operator
            .execute_with_progress(action, &with, &who, notes)
            .await
    };
    let tell = async {
        while let Some(note) = told.recv().await {
            let _ = send(&mut write, &json!({"note": note})).await;
        }
        write
    };
    // A client that hangs up cancels its call.
    let mut rest = Vec::new();
    let gone = async {
        let _ = reader.read_to_end(&mut rest).await;
    };
    let (result, mut write) = tokio::select! {
        done = async { tokio::join!(work, tell) } => done,
        () = gone => return,
    };
    let last = match result {
        Ok(value) => json!({"ok": value}),
        Err(ActionError::Unknown(why)) => json!({"error": why, "unknown": true}),
        Err(ActionError::Refused(why)) => json!({"error": why}),
    };
    let _ = send(&mut write, &last).await;
}

fn too_many_calls() -> ActionError {
    ActionError::Refused(format!(
        "{MAX_CONTROL_CALLS} calls from the command line are running or pending, which is the limit; wait for one to end, or decide one \
         (`toolgate inbox`)"
    ))
}

async fn send(write: &mut (impl AsyncWriteExt + Unpin), value: &Value) -> io::Result<()> {
    write.write_all(format!("{value}\n").as_bytes()).await
}
