//! The way out of one request: its events, and its reply as the last frame.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::mpsc;
use toolgate_core::{Event, Report};
use toolgate_wire::{
    dialect::Dialect,
    json::{Json, ObjectWriter},
    message,
    method::notifications,
};

/// How many frames of one request or connection may wait for a slow reader.
pub(crate) const QUEUE: usize = 256;

/// One JSON-RPC message on its way out.
#[derive(Debug)]
pub(crate) enum Frame {
    /// Something that comes before the reply.
    Before(String),
    /// The reply; nothing of this request follows. Carries the error code, where it is an error.
    Reply(String, Option<i64>),
}

impl Frame {
    pub(crate) fn text(&self) -> &str {
        let (Frame::Before(text) | Frame::Reply(text, _)) = self;
        text
    }
}

/// Where the frames of a request go.
#[derive(Clone, Debug)]
pub(crate) struct Outlet(mpsc::Sender<Frame>);

impl Outlet {
    pub(crate) fn new() -> (Outlet, mpsc::Receiver<Frame>) {
        let (tx, rx) = mpsc::channel(QUEUE);
        (Outlet(tx), rx)
    }

    /// Waits for room. Where nobody reads any more the frame is dropped.
    pub(crate) async fn send(&self, frame: Frame) {
        let _ = self.0.send(frame).await;
    }

    /// Ends when nobody reads any more.
    pub(crate) async fn closed(&self) {
        self.0.closed().await;
    }

    /// Drops the frame when there is no room.
    pub(crate) fn offer(&self, text: String) {
        let _ = self.0.try_send(Frame::Before(text));
    }
}

/// Writes the events of one call as notifications, until its outcome is there.
pub(crate) struct CallReport {
    outlet: Outlet,
    dialect: &'static Dialect,
    token: Option<Json>,
    log_level: Option<u8>,
    last: Mutex<f64>,
    over: Arc<AtomicBool>,
}

impl CallReport {
    pub(crate) fn new(
        outlet: Outlet,
        dialect: &'static Dialect,
        token: Option<Json>,
        log_level: Option<u8>,
    ) -> CallReport {
        CallReport {
            outlet,
            dialect,
            token,
            log_level,
            last: Mutex::new(f64::NEG_INFINITY),
            over: Arc::default(),
        }
    }

    /// Whether anything could come of an event.
    pub(crate) fn is_wanted(&self) -> bool {
        self.token.is_some() || self.log_level.is_some()
    }

    /// The least grave level that is wanted.
    pub(crate) fn logs(&self) -> Option<&'static str> {
        let rank = self.log_level?;
        notifications::LEVELS.get(usize::from(rank)).copied()
    }

    /// Ends the events: late progress is dropped.
    pub(crate) fn closer(&self) -> Closer {
        Closer(self.over.clone())
    }

    /// Progress grows with each notification, as the protocol wants it; what does not grow is dropped.
    fn grows(&self, progress: f64) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let grows = progress > *last;
        if grows {
            *last = progress;
        }
        grows
    }
}

impl Report for CallReport {
    fn report(&self, event: Event) {
        if self.over.load(Ordering::Acquire) {
            return;
        }
        match (event, &self.token, self.log_level) {
            (Event::Progress(mut progress), Some(token), _) if self.grows(progress.progress) => {
                if !self.dialect.progress_message {
                    progress.message = None;
                }
                self.outlet.offer(message::notification(
                    notifications::PROGRESS,
                    Some(&progress.json(token)),
                ));
            }
            (Event::Log(log), _, Some(least)) if level(&log.level).is_some_and(|l| l >= least) => {
                let mut o = ObjectWriter::new();
                o.str("level", &log.level);
                if let Some(logger) = &log.logger {
                    o.str("logger", logger);
                }
                o.raw("data", &log.data);
                self.outlet.offer(message::notification(
                    notifications::MESSAGE,
                    Some(&o.finish()),
                ));
            }
            _ => {}
        }
    }
}

/// Ends the events of a call when it is dropped.
pub(crate) struct Closer(Arc<AtomicBool>);

impl Drop for Closer {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The rank of a log level; `None` for a word that is none.
pub(crate) fn level(word: &str) -> Option<u8> {
    let found = notifications::LEVELS.iter().position(|l| *l == word);
    found.map(|rank| rank as u8)
}
