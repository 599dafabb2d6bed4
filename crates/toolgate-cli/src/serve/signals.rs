//! Signals: SIGINT and SIGTERM stop the gateway, SIGHUP reloads the config.

use std::fs::File;
use tokio::signal::unix::{Signal, SignalKind, signal};

fn listen(kind: SignalKind) -> Result<Signal, String> {
    signal(kind).map_err(|e| format!("cannot listen for signals: {e}; start toolgate again"))
}

/// Returns a stream of SIGHUPs.
pub(super) fn hangup() -> Result<Signal, String> {
    listen(SignalKind::hangup())
}

/// Resolves at the first SIGINT or SIGTERM, or when the terminal closes in which the gateway was started.
pub(super) fn stop() -> Result<impl Future<Output = ()>, String> {
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = hangup()?;
    let had_terminal = has_terminal();
    let closed = async move {
        while hangup.recv().await.is_some() {
            // SIGHUP also reloads the config. A terminal that is gone distinguishes the two.
            if had_terminal && !has_terminal() {
                return;
            }
        }
    };
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = closed => {}
        }
    })
}

fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}
