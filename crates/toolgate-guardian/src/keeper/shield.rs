//! What the guardian does first: it lets go of what it inherited and outlives common signals.

use std::fs;
use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Closes every descriptor above standard error that this process was started with.
///
/// A careless parent of the gateway leaves some open, and every child would get them.
pub(super) fn close_inherited() {
    let Ok(open) = fs::read_dir("/dev/fd") else {
        return;
    };
    let numbers: Vec<i32> = open
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // The listing's own descriptor is among them and closed by now.
        let _ = nix::unistd::close(number);
    }
}

/// Makes the guardian outlive signals that are sent to the whole service, so that the gateway
/// can still end its children in good order; the guardian follows at the end of its socket.
///
/// Handlers do it, never `SIG_IGN`: a handler is reset in the children, an ignored signal stays
/// ignored. For the same reason `SIGCHLD` is among them: were it inherited as ignored, no exit
/// status could be had. Tokio keeps its handlers when the runtime is gone.
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
