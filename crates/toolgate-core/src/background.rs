//! How a call says that it takes long, so that its caller need not wait.

use crate::Round;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::watch;

/// How long a call takes, as those say who know.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Pace {
    /// Its caller waits for it.
    #[default]
    Waited,
    /// It may go on as a task, once it took long.
    Slow,
    /// It goes on as a task from now on.
    Task,
}

/// The way to say that a call goes on as a task. Only an edge makes one of it; where the caller knows no tasks it says
/// so, and the call goes on as ever. Clones are one.
#[derive(Clone, Default)]
pub struct Background(Option<Arc<Said>>);

/// What was said of a call.
#[derive(Default)]
struct Said {
    pace: watch::Sender<Pace>,
    /// The round that would take it up again.
    again: watch::Sender<Option<Round>>,
    is_left: AtomicBool,
}

impl Background {
    /// A way, and what is said on it.
    pub fn new() -> (Background, watch::Receiver<Pace>) {
        let said = Said::default();
        let heard = said.pace.subscribe();
        (Background(Some(Arc::new(said))), heard)
    }

    /// Lets the call go on as a task, once it took long.
    pub fn allow(&self) {
        self.say(Pace::Slow);
    }

    /// Lets the call go on as a task at once; false where its caller knows no tasks.
    #[must_use = "a caller that knows no tasks waits, or has to be told"]
    pub fn start(&self) -> bool {
        self.say(Pace::Task);
        self.0.is_some()
    }

    /// Whether its caller knows tasks.
    pub fn is_possible(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the call goes on as a task.
    pub fn is_task(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|said| *said.pace.borrow() == Pace::Task)
    }

    /// Says that somebody else goes on with the call whatever becomes of this process, and in which round it is found
    /// there again. What was said last counts.
    pub fn goes_on_in(&self, round: Round) {
        if let Some(said) = &self.0 {
            said.again.send_replace(Some(round));
        }
    }

    /// The round in which the call can be taken up again, as it is said; none where its caller knows no tasks.
    pub fn again(&self) -> Option<watch::Receiver<Option<Round>>> {
        Some(self.0.as_ref()?.again.subscribe())
    }

    /// Says that another process takes the call up: what goes on elsewhere is not to be ended with this one.
    pub fn leave(&self) {
        if let Some(said) = &self.0 {
            said.is_left.store(true, Ordering::Release);
        }
    }

    /// Whether another process takes the call up.
    pub fn is_left(&self) -> bool {
        let said = self.0.as_ref();
        said.is_some_and(|said| said.is_left.load(Ordering::Acquire))
    }

    /// What was said never becomes less.
    fn say(&self, pace: Pace) {
        if let Some(said) = &self.0 {
            said.pace.send_if_modified(|now| {
                let more = pace > *now;
                *now = pace.max(*now);
                more
            });
        }
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(said) => write!(f, "Background({:?})", *said.pace.borrow()),
            None => f.write_str("Background(off)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_stays_a_task() {
        let (background, heard) = Background::new();
        background.allow();
        assert_eq!(*heard.borrow(), Pace::Slow);
        assert!(!background.is_task() && background.start() && background.is_task());
        background.allow();
        assert_eq!(*heard.borrow(), Pace::Task);
        let nobody = Background::default();
        nobody.allow();
        assert!(!nobody.start() && !nobody.is_task());
    }
}
