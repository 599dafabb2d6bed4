//! Isolation of the guardian: closes inherited file descriptors and handles common signals.

use std::fs;
use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Closes every inherited file descriptor above standard error.
///
/// A careless parent of the gateway may leave some open, and every child would inherit them.
pub(super) fn close_inherited() {
    let Ok(open) = fs::read_dir("/dev/fd") else {
        return;
    };
    let numbers: Vec<i32> = open
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // The descriptor of the listing itself is included and already closed.
        let _ = nix::unistd::close(number);
    }
}

/// Makes the guardian survive signals that are sent to the whole service, so that the gateway can still end its
/// children in order. The guardian exits at the end of its socket.
///
/// Uses handlers and never `SIG_IGN`: children reset handlers but inherit ignored signals. `SIGCHLD` is included for
/// the same reason: if it were inherited as ignored, no exit status would be available. Tokio keeps its handlers after
/// the runtime is gone.
pub(super) fn outlive_signals() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let _inside = runtime.enter();
    for kind in [
        SignalKind::child(),
        SignalKind::hangup(),
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::quit(),
    ] {
        drop(signal(kind)?);
    }
    Ok(())
}
