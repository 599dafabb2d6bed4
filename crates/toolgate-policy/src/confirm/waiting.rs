//! Somebody waits for a decision.

use super::{desk::Desk, slip::Expiry};
use std::sync::Arc;
use tokio::{sync::watch, time::sleep_until};
use toolgate_core::{BoxFuture, Waiting};

pub(super) struct Wait {
    pub(super) desk: Arc<Desk>,
    pub(super) id: Arc<str>,
    pub(super) decided: watch::Receiver<bool>,
    pub(super) expiry: Expiry,
}

impl Waiting for Wait {
    fn decided(&self) -> BoxFuture<'static, ()> {
        let (mut decided, over) = (self.decided.clone(), self.expiry.steady);
        Box::pin(async move {
            tokio::select! {
                // An error means that the approval is forgotten: over as well.
                _ = decided.wait_for(|decided| *decided) => {}
                () = sleep_until(over) => {}
            }
        })
    }

    fn attend(&self) -> Box<dyn Send + Sync> {
        self.desk.count(&self.id, true);
        Box::new(Attended {
            desk: self.desk.clone(),
            id: self.id.clone(),
        })
    }
}

struct Attended {
    desk: Arc<Desk>,
    id: Arc<str>,
}

impl Drop for Attended {
    fn drop(&mut self) {
        self.desk.count(&self.id, false);
    }
}
