//! The work that no caller waits for: one task a server.

use super::{super::link::Link, Http, events::Events};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};
use toolgate_core::BoxFuture;

/// What is done at once; what comes in above that waits.
const AT_ONCE: usize = 32;
/// How long the last bytes of a stream are waited for after its reply.
const DRAIN: Duration = Duration::from_secs(1);

/// One piece of work.
pub(super) enum Job {
    /// Sends a notification or an answer.
    Post(String),
    /// Listens to what the server says unasked.
    Listen,
    /// Hands over the one stream of the transport of 2024-11-05.
    Hear(Events),
    /// Reads the end of a stream whose reply is there.
    Drain(Events),
}

/// Works until the link is lost, and says goodbye. Then `working` is dropped.
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
