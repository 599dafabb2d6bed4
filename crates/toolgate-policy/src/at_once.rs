//! How many calls may run at the same time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use toolgate_core::{BoxFuture, Call, Caller, Error, Kind, Layer, Next, Outcome};

/// Bounds the calls that run at the same time, of each caller and in all. Clones share the count.
///
/// A call that waits for a person does not run.
#[derive(Clone)]
pub struct AtOnce {
    per_caller: usize,
    all: usize,
    running: Arc<Mutex<HashMap<Caller, usize>>>,
}

impl AtOnce {
    /// So many of one caller, and so many in all.
    pub fn new(per_caller: usize, all: usize) -> AtOnce {
        AtOnce {
            per_caller,
            all,
            running: Arc::default(),
        }
    }

    /// Other bounds over the same count: what runs still counts.
    pub fn reloaded(&self, per_caller: usize, all: usize) -> AtOnce {
        AtOnce {
            per_caller,
            all,
            running: self.running.clone(),
        }
    }

    fn enter(&self, caller: &Caller) -> Result<Place, Error> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let own = running.get(caller).copied().unwrap_or(0);
        if own >= self.per_caller {
            return Err(busy(format!("{own} calls of yours run already")));
        }
        let all: usize = running.values().sum();
        if all >= self.all {
            return Err(busy(format!("{all} calls run already")));
        }
        running.insert(caller.clone(), own + 1);
        Ok(Place(self.running.clone(), caller.clone()))
    }
}

fn busy(what: String) -> Error {
    Error::new(
        Kind::Busy(None),
        format!("too much at once: {what}; try again when some have ended"),
    )
}

/// The place of one running call; free again when it is dropped.
struct Place(Arc<Mutex<HashMap<Caller, usize>>>, Caller);

impl Drop for Place {
    fn drop(&mut self) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = running.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                running.remove(&self.1);
            }
        }
    }
}

impl Layer for AtOnce {
    fn name(&self) -> &'static str {
        "at once"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let _place = self.enter(&call.caller)?;
            next.call(call).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_over_either_limit_is_refused_and_a_place_comes_back() {
        let at_once = AtOnce::new(2, 3);
        let (a, b) = (Caller::new("a"), Caller::new("b"));
        let first = at_once.enter(&a).unwrap();
        let _second = at_once.enter(&a).unwrap();
        assert!(at_once.enter(&a).is_err(), "one over of this caller");
        let _third = at_once.enter(&b).unwrap();
        assert!(at_once.enter(&b).is_err(), "one over in all");
        drop(first);
        assert!(at_once.enter(&b).is_ok());
    }
}
