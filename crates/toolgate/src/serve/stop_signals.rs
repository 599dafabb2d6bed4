//! Signals that end a server over stdio: SIGTERM and SIGINT, or Ctrl-C on Windows.

use std::io;

/// Listener for the signals that ask this process to end. The default action of these signals stays disabled after it
/// is dropped.
#[cfg(unix)]
pub(super) struct StopSignals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl StopSignals {
    /// Starts to listen.
    pub(super) fn listen() -> io::Result<StopSignals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(StopSignals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    pub(super) async fn recv(&mut self) {
        tokio::select! {
            Some(()) = self.interrupt.recv() => {}
            Some(()) = self.terminate.recv() => {}
            else => std::future::pending().await,
        }
    }
}

/// Listener for Ctrl-C.
#[cfg(not(unix))]
pub(super) struct StopSignals;

#[cfg(not(unix))]
impl StopSignals {
    /// Returns the listener. It starts with the first [`StopSignals::recv`].
    #[allow(clippy::unnecessary_wraps, reason = "on Unix it can fail")]
    pub(super) fn listen() -> io::Result<StopSignals> {
        Ok(StopSignals)
    }

    /// Waits for the next signal; forever if the system cannot report it.
    pub(super) async fn recv(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
