//! Pings to a server with a handshake, so that one that is gone without a word is noticed before a call finds out.

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

/// How long a server may take over a ping.
const WAIT: Duration = Duration::from_secs(30);
/// How many pings in a row may come to nothing; then the connection has failed.
const MISSED: u32 = 2;

/// Pings that are sent; dropping it ends them.
pub(super) struct Pinging(JoinHandle<()>);

impl Drop for Pinging {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Pinging {
    /// Sends one each time nothing was asked of the server for so long.
    pub(super) fn start(link: Arc<Link>, every: Duration) -> Pinging {
        #[allow(
            clippy::disallowed_methods,
            reason = "an edge: servers go while nobody asks; ended with `Remote`"
        )]
        Pinging(tokio::spawn(ping(link, every)))
    }
}

async fn ping(link: Arc<Link>, every: Duration) {
    let (mut answers, mut missed) = (false, 0);
    loop {
        sleep(every).await;
        // Who works on something may answer nothing meanwhile, and what it works on has a deadline.
        if link.is_asked() {
            continue;
        }
        let asked = link.request(PING, Purpose::List, |_| ObjectWriter::new().finish());
        let words = match timeout(WAIT, asked).await {
            // That it knows no ping is an answer as well.
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
            Ok(Err(_)) => "it could not be reached by a ping".to_owned(),
            Err(_) => format!("it did not answer a ping within {} s", WAIT.as_secs()),
        };
        link.notes.count(Trouble::Unanswered, words.as_str());
        missed += 1;
        if missed < MISSED {
            continue;
        }
        match answers {
            true => link.lose(&format!("{words}, {MISSED} times in a row")),
            // It may be well, and not know what a ping is.
            false => link.notes.say("it answers no pings, so it gets no more"),
        }
        return;
    }
}
