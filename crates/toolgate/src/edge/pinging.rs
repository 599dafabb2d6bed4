//! Pings to a client with a handshake, on the stream on which it hears of changes.

use super::{
    Unheard,
    legacy::{Asked, Legacy},
    outlet::Outlet,
};
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{
    task::AbortHandle,
    time::{sleep, timeout},
};
use toolgate_wire::{json::ObjectWriter, method::PING};

/// How long a client may take over a ping.
const WAIT: Duration = Duration::from_secs(30);
/// How many pings in a row may come to nothing; then the connection has failed.
const MISSED: u32 = 2;

/// Pings that are sent; dropping it ends them.
pub(super) struct Pinging(AbortHandle);

impl Drop for Pinging {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Pinging {
    /// Sends one each time so long has passed, until nobody reads the stream.
    pub(super) fn start(legacy: &Arc<Legacy>, outlet: Outlet, every: Duration) -> Pinging {
        let pinging = ping(Arc::downgrade(legacy), outlet, every);
        #[allow(
            clippy::disallowed_methods,
            reason = "an edge owns what it asks its peer and aborts it"
        )]
        Pinging(tokio::spawn(pinging).abort_handle())
    }
}

async fn ping(legacy: Weak<Legacy>, outlet: Outlet, every: Duration) {
    let (mut answers, mut missed) = (false, 0);
    loop {
        tokio::select! {
            () = sleep(every) => {}
            () = outlet.closed() => return,
        }
        let Some(legacy) = legacy.upgrade() else {
            return;
        };
        // Whose user thinks about a question may answer nothing meanwhile, and that has a limit of its own.
        if legacy.is_asked() {
            continue;
        }
        let asked = Asked {
            method: PING,
            params: Some(ObjectWriter::new().finish()),
            taken_back: "no answer to this ping came in time",
        };
        if let Ok(Some(_)) = timeout(WAIT, legacy.asked(&outlet, asked)).await {
            // That it knows no ping is an answer as well.
            (answers, missed) = (true, 0);
            continue;
        }
        missed += 1;
        if missed < MISSED {
            continue;
        }
        // One that never answered may be well, and read its stream for changes alone: it gets no more.
        let ends = answers;
        legacy.unheard(Unheard { missed, ends });
        return;
    }
}
