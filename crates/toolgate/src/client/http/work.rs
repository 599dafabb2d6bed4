//! Background work of an HTTP connection: one task per server.

use super::{super::link::Link, Http, events::Events};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};
use toolgate_core::BoxFuture;

/// Maximum number of concurrent jobs; further jobs wait in the queue.
const AT_ONCE: usize = 32;
/// Maximum time to read the rest of a stream after its reply.
const DRAIN: Duration = Duration::from_secs(1);

/// Background job.
pub(super) enum Job {
    /// Sends a notification or an answer.
    Post(String),
    /// Reads the stream for unsolicited messages.
    Listen,
    /// Reads the SSE stream of the 2024-11-05 transport.
    Hear(Events),
    /// Reads the rest of a stream whose reply arrived.
    Drain(Events),
}

/// Runs the jobs until the connection is lost, and then ends the session. `working` is dropped at the end.
pub(super) async fn work(
    http: Arc<Http>,
    link: Arc<Link>,
    mut jobs: mpsc::Receiver<Job>,
    working: watch::Sender<()>,
) {
    let mut lost = link.lost();
    let work = async {
        let mut running = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(()) = running.next() => {}
                job = jobs.recv(), if running.len() < AT_ONCE => match job {
                    Some(job) => running.push(run(&http, &link, job)),
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

fn run<'a>(http: &'a Http, link: &'a Link, job: Job) -> BoxFuture<'a, ()> {
    match job {
        Job::Post(line) => Box::pin(http.tell(link, line)),
        Job::Listen => Box::pin(http.listen(link)),
        Job::Hear(events) => Box::pin(http.hear_old(link, events)),
        Job::Drain(mut events) => Box::pin(async move {
            let rest = async { while events.next().await.is_ok() {} };
            drop(timeout(DRAIN, rest).await);
        }),
    }
}
