//! Requests that are sent at once and in order, so that a transaction takes one round trip.

use std::{future::poll_fn, pin::Pin, task::Poll};

/// Boxed request to the database.
pub(super) type Request<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Sends requests in their order, and returns their answers.
///
/// A request is sent when it is first polled. `futures_util::future::join_all` does not promise an order.
pub(super) async fn in_order<T>(mut requests: Vec<Request<'_, T>>) -> Vec<T> {
    let mut answers: Vec<Option<T>> = requests.iter().map(|_| None).collect();
    poll_fn(|cx| {
        let mut is_pending = false;
        for (request, answer) in requests.iter_mut().zip(&mut answers) {
            if answer.is_none() {
                match request.as_mut().poll(cx) {
                    Poll::Ready(ready) => *answer = Some(ready),
                    Poll::Pending => is_pending = true,
                }
            }
        }
        match is_pending {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    })
    .await;
    answers.into_iter().flatten().collect()
}
