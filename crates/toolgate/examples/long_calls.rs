//! A server with calls that take long. After SIGTERM or SIGINT they have one second to complete; then they are cancelled.
//!
//! `cargo run --example long_calls` serves on standard input and output.

use std::sync::Arc;
use tokio::sync::Notify;
use toolgate::{Cx, Server, tools};

/// Reports on standard error that a call was dropped before it completed.
struct ReportCancel;

impl Drop for ReportCancel {
    fn drop(&mut self) {
        eprintln!("cancelled");
    }
}

struct Jobs {
    stop: Arc<Notify>,
}

#[tools]
impl Jobs {
    /// Collects until the server is asked to stop, then returns the rest.
    #[tool(read_only)]
    async fn collect(&self, cx: Cx) -> &'static str {
        let stopped = self.stop.notified();
        cx.progress(0.0, None, "collecting");
        stopped.await;
        "collected"
    }

    /// Runs without an end.
    #[tool(read_only)]
    async fn endless(&self, cx: Cx) {
        let _report = ReportCancel;
        cx.progress(0.0, None, "running");
        std::future::pending().await
    }
}

/// Waits for the signals that also end `toolgate::stdio`.
#[cfg(unix)]
async fn signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

#[cfg(not(unix))]
async fn signal() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let stop = Arc::new(Notify::new());
    let jobs = Jobs { stop: stop.clone() };
    let server = Server::new("jobs", "1.0.0").tools(jobs);
    let notify = async {
        signal().await?;
        stop.notify_waiters();
        std::future::pending::<std::io::Result<()>>().await
    };
    tokio::select! {
        biased;
        failed = notify => Ok(failed?),
        served = toolgate::stdio(server) => Ok(served?),
    }
}
