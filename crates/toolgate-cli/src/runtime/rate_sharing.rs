//! Rate limits of several gateways: their messages go over the shared store.

use super::active::ActiveSnapshot;
use std::{sync::Arc, time::Duration};
use tokio::sync::broadcast::error::RecvError;
use toolgate_policy::RateSharing;
use toolgate_store::postgres::PostgresStore;

/// Interval at which tokens that were borrowed and not used go back.
const RETURN_INTERVAL: Duration = Duration::from_millis(100);

/// Creates the sharing of rate limits over a shared store.
pub(crate) fn create(store: &PostgresStore, gateways: u32) -> Arc<RateSharing> {
    let sender = store.message_sender();
    let send = Box::new(move |message| sender.send(message));
    Arc::new(RateSharing::new(gateways, toolgate::ids::secret_id(), send))
}

/// Passes messages of other gateways to the rate limiter. Never returns.
pub(crate) async fn share_rates(store: Option<&PostgresStore>, active: &ActiveSnapshot) {
    let Some(store) = store else {
        return std::future::pending().await;
    };
    let mut messages = store.messages();
    let mut returns = tokio::time::interval(RETURN_INTERVAL);
    loop {
        tokio::select! {
            message = messages.recv() => match message {
                Ok(message) => active.snapshot().policies.rate.receive(&message),
                // Lost messages only mean that this gateway borrows less.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return std::future::pending().await,
            },
            _ = returns.tick() => active.snapshot().policies.rate.return_loans(),
        }
    }
}
