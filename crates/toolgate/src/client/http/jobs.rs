//! Background work of an HTTP connection: one task per server.

use super::{super::connection::ServerConnection, HttpTransport, events::SseEventStream};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};
use toolgate_core::BoxFuture;

/// Maximum number of concurrent jobs; further jobs wait in the queue.
const MAX_CONCURRENT_JOBS: usize = 32;
/// Maximum time to read the rest of a stream after its reply.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Background job.
pub(super) enum HttpJob {
    /// Sends a notification or an answer.
    Post(String),
    /// Reads the stream for unsolicited messages.
    Listen,
    /// Reads the SSE stream of the 2024-11-05 transport.
    Hear(SseEventStream),
    /// Reads the rest of a stream whose reply arrived.
    Drain(SseEventStream),
}

/// Runs the jobs until the connection is lost, and then ends the session. `working` is dropped at the end.
pub(super) async fn run_jobs(
    http: Arc<HttpTransport>,
    link: Arc<ServerConnection>,
    mut jobs: mpsc::Receiver<HttpJob>,
    working: watch::Sender<()>,
) {
    let mut lost = link.lost_reason();
    let work = async {
        let mut running = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(()) = running.next() => {}
                job = jobs.recv(), if running.len() < MAX_CONCURRENT_JOBS => match job {
                    Some(job) => running.push(run_job(&http, &link, job)),
                    None => return,
                },
            }
        }
    };
    tokio::select! {
        _ = lost.wait_for(Option::is_some) => {}
        () = work => {}
    }
    http.end_session(&link).await;
    drop(working);
}

fn run_job<'a>(
    http: &'a HttpTransport,
    link: &'a ServerConnection,
    job: HttpJob,
) -> BoxFuture<'a, ()> {
    match job {
        HttpJob::Post(line) => Box::pin(http.send_message(link, line)),
        HttpJob::Listen => Box::pin(http.listen(link)),
        HttpJob::Hear(events) => Box::pin(http.read_sse_stream(link, events)),
        HttpJob::Drain(mut events) => Box::pin(async move {
            let rest = async { while events.next().await.is_ok() {} };
            drop(timeout(DRAIN_TIMEOUT, rest).await);
        }),
    }
}
