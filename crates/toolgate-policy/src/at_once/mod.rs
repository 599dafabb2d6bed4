//! How many calls may run at the same time, and who is next.
//!
//! - [`AtOnce`]: the layer, which gives each call its turn.
//! - `queue`: who runs, who waits, and who is next.
//! - `in_hand`: the layer before it, which bounds what runs and waits together, before anything is looked up.

mod in_hand;
mod queue;
#[cfg(test)]
mod tests;

use crate::{PerServer, words};
pub(crate) use in_hand::InHand;
use queue::{Full, Queue, Waiting, Want};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use toolgate_core::{BoxFuture, Call, Error, Kind, Layer, Next, Outcome};

/// How many calls may run at the same time, and how many may wait for their turn.
#[derive(Clone, Debug)]
pub struct Caps {
    /// Running calls of one caller; 64.
    pub caller: usize,
    /// Running calls of one tool, resource or prompt; 256.
    pub tool: usize,
    /// Running calls of one server; 512.
    pub server: PerServer<usize>,
    /// Running calls of all; 2,048.
    pub all: usize,
    /// Waiting calls of one caller; 64.
    pub waiting_per_caller: usize,
    /// Waiting calls of all; 1,024.
    pub waiting: usize,
    /// How long a call waits at most; 10 s.
    pub wait: Duration,
}

impl Default for Caps {
    fn default() -> Caps {
        Caps {
            caller: 64,
            tool: 256,
            server: PerServer::all(512),
            all: 2048,
            waiting_per_caller: 64,
            waiting: 1024,
            wait: Duration::from_secs(10),
        }
    }
}

/// Gives each call its turn: only so many run at the same time, of each caller, tool and server and in all, and some
/// more wait. Whoever waits is served in turn, one call of each caller after the other, so that a greedy caller waits for
/// himself. Clones share the places.
///
/// A call that waits for a person does not run.
#[derive(Clone)]
pub struct AtOnce {
    caps: Arc<Caps>,
    queue: Arc<Queue>,
    hand: InHand,
}

impl AtOnce {
    /// So many of one caller, and so many in all; one more is refused at once.
    pub fn new(per_caller: usize, all: usize) -> AtOnce {
        AtOnce::with(Caps {
            caller: per_caller,
            tool: all,
            server: PerServer::all(all),
            all,
            waiting_per_caller: 0,
            waiting: 0,
            wait: Duration::ZERO,
        })
    }

    /// So many, and a queue.
    pub fn with(caps: Caps) -> AtOnce {
        AtOnce {
            hand: InHand::new(&caps),
            queue: Arc::default(),
            caps: Arc::new(caps),
        }
    }

    /// Other bounds over the same places: what runs still counts, and who waits keeps his turn.
    pub fn reloaded(&self, caps: Caps) -> AtOnce {
        AtOnce {
            hand: self.hand.reloaded(&caps),
            queue: self.queue.clone(),
            caps: Arc::new(caps),
        }
    }

    /// Bounds what runs and waits together, before anything is looked up.
    pub(crate) fn in_hand(&self) -> InHand {
        self.hand.clone()
    }

    /// Waits for a place.
    async fn turn(&self, mut waiting: queue::Turn) -> Result<queue::Place, Error> {
        match timeout(self.caps.wait, waiting.turn()).await {
            Ok(place) => Ok(place),
            // It may have come in this very moment.
            Err(_) => match waiting.give_up() {
                Ok(place) => Ok(place),
                Err(full) => Err(busy(&full, Some(self.caps.wait))),
            },
        }
    }
}

/// What a model can act on: what is full, and when to try again.
fn busy(full: &Full, waited: Option<Duration>) -> Error {
    let waited = waited.map_or(String::new(), |wait| {
        format!(" and no place came free within {}", words::span(wait))
    });
    Error::new(
        Kind::Busy(None),
        format!("too much at once: {full}{waited}; try again when one has ended"),
    )
}

impl Layer for AtOnce {
    fn name(&self) -> &'static str {
        "at once"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let _place = match self.queue.enter(Want::of(&call), &self.caps) {
                Ok(Waiting::Runs(place)) => place,
                // In a box, so that the future of a call that need not wait is small.
                Ok(Waiting::Waits(turn)) => Box::pin(self.turn(turn)).await?,
                Err(full) => return Err(busy(&full, None)),
            };
            next.call(call).await
        })
    }
}
