//! Keepalive pings to a client with a handshake, on its notification stream.

use super::{
    MissedPings,
    handshake::{InitializedClient, ServerRequest},
    responder::Responder,
};
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{
    task::AbortHandle,
    time::{sleep, timeout},
};
use toolgate_protocol::{json::ObjectWriter, method::PING};

/// Time limit for the response to a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(30);
/// Consecutive unanswered pings after which the connection counts as failed.
const MAX_MISSED_PINGS: u32 = 2;

/// Task that sends the pings; dropping this ends it.
pub(super) struct ServerKeepaliveTask(AbortHandle);

impl Drop for ServerKeepaliveTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ServerKeepaliveTask {
    /// Starts to send a ping after every `every`, until the stream is closed.
    pub(super) fn start(
        client: &Arc<InitializedClient>,
        responder: Responder,
        every: Duration,
    ) -> ServerKeepaliveTask {
        let pinging = send_pings(Arc::downgrade(client), responder, every);
        #[allow(
            clippy::disallowed_methods,
            reason = "the server owns its requests to the client and aborts them"
        )]
        ServerKeepaliveTask(tokio::spawn(pinging).abort_handle())
    }
}

async fn send_pings(client: Weak<InitializedClient>, responder: Responder, every: Duration) {
    let (mut answers, mut missed) = (false, 0);
    loop {
        tokio::select! {
            () = sleep(every) => {}
            () = responder.closed() => return,
        }
        let Some(client) = client.upgrade() else {
            return;
        };
        // A client that waits for its user's input may be unable to answer a ping; that input has its own time limit.
        if client.has_open_requests() {
            continue;
        }
        let asked = ServerRequest {
            method: PING,
            params: Some(ObjectWriter::new().finish()),
            cancel_reason: "this ping was not answered in time",
        };
        if let Ok(Some(_)) = timeout(PING_TIMEOUT, client.request_client(&responder, asked)).await {
            // An error is a response too, for example from a client that does not support ping.
            (answers, missed) = (true, 0);
            continue;
        }
        missed += 1;
        if missed < MAX_MISSED_PINGS {
            continue;
        }
        // A client that never answered a ping may be alive and read its stream only for notifications: stop the pings.
        let ends = answers;
        client.handle_missed_pings(MissedPings {
            consecutive: missed,
            disconnects: ends,
        });
        return;
    }
}
