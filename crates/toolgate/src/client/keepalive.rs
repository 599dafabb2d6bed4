//! Keepalive pings to legacy servers, so that a lost connection is noticed before a call fails.

use super::{
    connection::{RequestFailure, RequestPurpose, ServerConnection},
    status::ProtocolErrorKind,
};
use std::{sync::Arc, time::Duration};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};
use toolgate_protocol::{json::ObjectWriter, method::PING};

/// Time-out of a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of consecutive failed pings after which the connection counts as lost.
const MAX_MISSED_PINGS: u32 = 2;

/// Ping task; aborted on drop.
pub(super) struct KeepaliveTask(JoinHandle<()>);

impl Drop for KeepaliveTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl KeepaliveTask {
    /// Starts to ping whenever no request was sent for `every`.
    pub(super) fn start(link: Arc<ServerConnection>, every: Duration) -> KeepaliveTask {
        #[allow(
            clippy::disallowed_methods,
            reason = "pings in the background; aborted on drop"
        )]
        KeepaliveTask(tokio::spawn(ping(link, every)))
    }
}

async fn ping(link: Arc<ServerConnection>, every: Duration) {
    let (mut answers, mut missed) = (false, 0);
    loop {
        sleep(every).await;
        // A busy server may answer no pings, and its pending request has a time-out.
        if link.has_pending_requests() {
            continue;
        }
        let asked = link.request(PING, RequestPurpose::List, |_| ObjectWriter::new().finish());
        let words = match timeout(PING_TIMEOUT, asked).await {
            // An error answer to a ping also shows that the server is alive.
            Ok(
                Ok(_)
                | Err(
                    RequestFailure::Rpc(_)
                    | RequestFailure::Malformed(_)
                    | RequestFailure::Unusable(_)
                    | RequestFailure::BudgetExceeded,
                ),
            ) => {
                (answers, missed) = (true, 0);
                continue;
            }
            Ok(Err(_)) if link.is_lost() => return,
            Ok(Err(_)) => "the client could not send it a ping".to_owned(),
            Err(_) => format!(
                "it did not answer a ping within {} s",
                PING_TIMEOUT.as_secs()
            ),
        };
        link.notes
            .count(ProtocolErrorKind::Unanswered, words.as_str());
        missed += 1;
        if missed < MAX_MISSED_PINGS {
            continue;
        }
        match answers {
            true => link.mark_lost(&format!("{words}, {MAX_MISSED_PINGS} times in a row")),
            // The server may be healthy and not support pings.
            false => link
                .notes
                .record("it does not answer pings, so pings are stopped"),
        }
        return;
    }
}
