//! Keepalive pings to legacy servers, so that a lost connection is noticed before a call fails.

use super::{
    link::{Failure, Link, Purpose},
    status::Trouble,
};
use std::{sync::Arc, time::Duration};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};
use toolgate_wire::{json::ObjectWriter, method::PING};

/// Time-out of a ping.
const WAIT: Duration = Duration::from_secs(30);
/// Number of consecutive failed pings after which the connection counts as lost.
const MISSED: u32 = 2;

/// Ping task; aborted on drop.
pub(super) struct Pinging(JoinHandle<()>);

impl Drop for Pinging {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Pinging {
    /// Starts to ping whenever no request was sent for `every`.
    pub(super) fn start(link: Arc<Link>, every: Duration) -> Pinging {
        #[allow(
            clippy::disallowed_methods,
            reason = "pings in the background; aborted on drop"
        )]
        Pinging(tokio::spawn(ping(link, every)))
    }
}

async fn ping(link: Arc<Link>, every: Duration) {
    let (mut answers, mut missed) = (false, 0);
    loop {
        sleep(every).await;
        // A busy server may answer no pings, and its pending request has a time-out.
        if link.is_asked() {
            continue;
        }
        let asked = link.request(PING, Purpose::List, |_| ObjectWriter::new().finish());
        let words = match timeout(WAIT, asked).await {
            // An error answer to a ping also shows that the server is alive.
            Ok(
                Ok(_)
                | Err(
                    Failure::Rpc(_)
                    | Failure::Malformed(_)
                    | Failure::Unusable(_)
                    | Failure::NoRoom,
                ),
            ) => {
                (answers, missed) = (true, 0);
                continue;
            }
            Ok(Err(_)) if link.is_lost() => return,
            Ok(Err(_)) => "a ping could not be sent to it".to_owned(),
            Err(_) => format!("it did not answer a ping within {} s", WAIT.as_secs()),
        };
        link.notes.count(Trouble::Unanswered, words.as_str());
        missed += 1;
        if missed < MISSED {
            continue;
        }
        match answers {
            true => link.lose(&format!("{words}, {MISSED} times in a row")),
            // The server may be healthy and not support pings.
            false => link
                .notes
                .say("it does not answer pings, so pings are stopped"),
        }
        return;
    }
}
