//! Signals that end the view, so that it restores the terminal first.

use super::terminal::restore;
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::signal::unix::{SignalKind, signal};

/// Time that the view has to end after a signal.
const MAX_END_TIME: Duration = Duration::from_secs(1);

/// Whether a signal asked this process to end.
#[derive(Clone)]
pub(super) struct StopSignal(Arc<AtomicBool>);

impl StopSignal {
    /// Listens for SIGINT, SIGTERM and SIGHUP, on a thread of its own.
    ///
    /// # Errors
    /// The signals cannot be listened for.
    pub(super) fn listen() -> io::Result<StopSignal> {
        let stop = StopSignal(Arc::default());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        let guard = runtime.enter();
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        drop(guard);
        let flag = stop.0.clone();
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
                        _ = hangup.recv() => {}
                    }
                });
                flag.store(true, Ordering::Relaxed);
                // The view ends within this time, except if the terminal vanished while it was read.
                std::thread::sleep(MAX_END_TIME);
                restore();
                std::process::exit(0);
            })?;
        Ok(stop)
    }

    /// Returns whether the view has to end.
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
