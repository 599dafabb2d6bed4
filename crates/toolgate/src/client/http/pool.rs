//! Pool of HTTP/1.1 connections to one server.
//!
//! The task of a request drives the connection itself: it polls the connection until the body of the response ends. A
//! task of its own for each connection would be woken for each part of each response, and would then wake the task of
//! the request, often on another thread.

use super::connector::ServerStream;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    client::conn::http1::{self, Connection, SendRequest},
};
use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::{runtime::Handle, time::Instant};

/// Time that an idle connection is kept. It is below the five seconds after which many servers close it: a request that
/// meets such a close would fail without anyone knowing whether it ran.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(4);
/// Maximum number of frames of a body that are read only to reach its end.
const MAX_FRAMES_TO_SKIP: usize = 4;
/// Maximum size of a response head, in bytes.
const MAX_RESPONSE_HEAD_BYTES: usize = 64 << 10;

type OpenConnection = Option<Box<Connection<ServerStream, Full<Bytes>>>>;

/// Connection without a request in flight, or with the request of its owner.
pub(super) struct PooledConnection {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once it is closed. Dropping it answers the request that still waits in it.
    connection: OpenConnection,
    /// Pool to which it returns after the response.
    pool: Weak<IdleConnections>,
}

/// Failed request: the error, and the request if nothing of it was sent.
pub(super) struct UnsentRequest {
    pub(super) error: hyper::Error,
    pub(super) request: Option<Box<Request<Full<Bytes>>>>,
}

impl PooledConnection {
    /// Opens a connection over a stream.
    ///
    /// # Errors
    /// The stream is closed.
    pub(super) async fn open(
        stream: ServerStream,
        pool: &Arc<IdleConnections>,
    ) -> Result<PooledConnection, hyper::Error> {
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(MAX_RESPONSE_HEAD_BYTES)
            .handshake(stream)
            .await?;
        Ok(PooledConnection {
            sender,
            connection: Some(Box::new(connection)),
            pool: Arc::downgrade(pool),
        })
    }

    /// Sends a request and waits for the response head. The body of the response owns the connection.
    ///
    /// # Errors
    /// The connection was lost. If nothing of the request was sent, it comes back.
    pub(super) async fn send(
        mut self,
        request: Box<Request<Full<Bytes>>>,
    ) -> Result<Response<PooledBody>, UnsentRequest> {
        let sent = {
            let mut response = pin!(self.sender.try_send_request(*request));
            let connection = &mut self.connection;
            poll_fn(|cx| {
                drive(connection, cx);
                response.as_mut().poll(cx)
            })
            .await
        };
        match sent {
            Ok(response) => {
                let (head, body) = response.into_parts();
                let connection = match body.is_end_stream() {
                    // Nobody has to read an empty body.
                    true => {
                        self.release(&mut Context::from_waker(Waker::noop()));
                        None
                    }
                    false => Some(self),
                };
                Ok(Response::from_parts(head, PooledBody { body, connection }))
            }
            Err(mut failure) => Err(UnsentRequest {
                request: failure.take_message().map(Box::new),
                error: failure.into_error(),
            }),
        }
    }

    /// Returns the connection to its pool after a complete response, if it can be used again.
    fn release(mut self, cx: &mut Context<'_>) {
        if !self.sender.is_ready() {
            // It may not have noticed the end of the response yet.
            drive(&mut self.connection, cx);
        }
        if self.sender.is_ready()
            && self.connection.is_some()
            && let Some(pool) = self.pool.upgrade()
        {
            pool.put(self);
        }
    }
}

/// Reads and writes whatever the connection can.
fn drive(connection: &mut OpenConnection, cx: &mut Context<'_>) {
    let ended = connection
        .as_mut()
        .is_some_and(|open| Pin::new(open).poll(cx).is_ready());
    if ended {
        // The request or its response gets the error.
        *connection = None;
    }
}

/// Body of a response. It drives the connection, and returns it to the pool once it is complete. Dropping it before all
/// of it has arrived closes the connection.
pub(super) struct PooledBody {
    body: Incoming,
    /// `None` after the end of the body.
    connection: Option<PooledConnection>,
}

impl Body for PooledBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let PooledBody { body, connection } = &mut *self;
        let mut frame = Pin::new(&mut *body).poll_frame(cx);
        if frame.is_pending()
            && let Some(own) = connection
        {
            drive(&mut own.connection, cx);
            frame = Pin::new(body).poll_frame(cx);
        }
        if let Poll::Ready(None) = frame
            && let Some(own) = connection.take()
        {
            own.release(cx);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for PooledBody {
    /// Returns the connection to its pool if only the end of the body is left to read, as after the reply in an event
    /// stream.
    fn drop(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..MAX_FRAMES_TO_SKIP {
            if self.connection.is_none()
                || !matches!(
                    Pin::new(&mut *self).poll_frame(&mut cx),
                    Poll::Ready(Some(Ok(_)))
                )
            {
                return;
            }
        }
    }
}

/// Idle connections of a pool, each kept for [`IDLE_CONNECTION_TIMEOUT`].
///
/// The pool does not limit their number, which never exceeds the number of requests that were in flight at once. Above a
/// limit, a steady load of parallel calls would open and close connections all the time.
#[derive(Default)]
pub(super) struct IdleConnections(Mutex<IdleList>);

#[derive(Default)]
struct IdleList {
    /// The connections and the times since which they are idle, the oldest first.
    connections: Vec<(Instant, PooledConnection)>,
    /// True if a task closes the connections in time.
    has_reaper: bool,
}

impl IdleConnections {
    /// Takes the connection that was used last, if there is one.
    pub(super) fn take(&self) -> Option<PooledConnection> {
        let mut list = self.lock();
        let (since, connection) = list.connections.pop()?;
        if since.elapsed() < IDLE_CONNECTION_TIMEOUT {
            return Some(connection);
        }
        // All others are older.
        list.connections.clear();
        None
    }

    fn put(self: Arc<Self>, connection: PooledConnection) {
        // The last body may be dropped after its runtime.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let mut list = self.lock();
        list.connections.push((Instant::now(), connection));
        if !std::mem::replace(&mut list.has_reaper, true) {
            #[allow(
                clippy::disallowed_methods,
                reason = "at most one for each pool; ends when no connection is idle"
            )]
            runtime.spawn(close_idle(Arc::downgrade(&self)));
        }
    }

    /// Closes the connections that have been idle for too long. Returns the time at which the next one has.
    fn close_expired(&self) -> Option<Instant> {
        let mut list = self.lock();
        let is_old =
            |(since, _): &&(Instant, PooledConnection)| since.elapsed() >= IDLE_CONNECTION_TIMEOUT;
        let old = list.connections.iter().take_while(is_old).count();
        list.connections.drain(..old);
        let next = list.connections.first().map(|(since, _)| *since);
        list.has_reaper = next.is_some();
        next.map(|since| since + IDLE_CONNECTION_TIMEOUT)
    }

    fn lock(&self) -> MutexGuard<'_, IdleList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes idle connections in time, until none is left.
async fn close_idle(pool: Weak<IdleConnections>) {
    while let Some(next) = pool.upgrade().and_then(|pool| pool.close_expired()) {
        tokio::time::sleep_until(next).await;
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use hyper_util::rt::TokioIo;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::UnixStream,
    };

    const EMPTY: &[u8] = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
    const SHORT: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    const CHUNKED: &[u8] =
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    const UNFINISHED: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n";

    /// Opens a connection, and returns the server's end of it.
    async fn connection(pool: &Arc<IdleConnections>) -> (PooledConnection, UnixStream) {
        let (client, server) = UnixStream::pair().unwrap();
        let stream = ServerStream::UnixSocket(TokioIo::new(client));
        (PooledConnection::open(stream, pool).await.unwrap(), server)
    }

    /// Exchanges one request and this response over the connection.
    async fn exchange(
        connection: PooledConnection,
        server: &mut UnixStream,
        response: &[u8],
    ) -> Response<PooledBody> {
        let answer = async {
            let mut request = [0; 1024];
            assert_ne!(server.read(&mut request).await.unwrap(), 0);
            server.write_all(response).await.unwrap();
        };
        let (sent, ()) = tokio::join!(connection.send(request()), answer);
        sent.map_err(|unsent| unsent.error).unwrap()
    }

    fn request() -> Box<Request<Full<Bytes>>> {
        let request = Request::post("/mcp").header("host", "a.test");
        Box::new(request.body(Full::new(Bytes::from_static(b"{}"))).unwrap())
    }

    #[tokio::test]
    async fn a_complete_response_returns_the_connection() {
        for (response, reads_all) in [(EMPTY, false), (SHORT, true), (CHUNKED, true)] {
            let pool = Arc::default();
            let (first, mut server) = connection(&pool).await;
            let answered = exchange(first, &mut server, response).await;
            if reads_all {
                let body = answered.into_body().collect().await.unwrap();
                assert_eq!(body.to_bytes(), "ok");
            }
            let again = pool.take().expect("an idle connection");
            assert_eq!(exchange(again, &mut server, EMPTY).await.status(), 202);
        }
    }

    #[tokio::test]
    async fn a_body_that_has_arrived_may_be_dropped() {
        let pool = Arc::default();
        let (first, mut server) = connection(&pool).await;
        let mut body = exchange(first, &mut server, CHUNKED).await.into_body();
        body.frame().await.unwrap().unwrap();
        drop(body);
        assert!(pool.take().is_some());
    }

    #[tokio::test]
    async fn dropping_an_unfinished_body_closes_the_connection() {
        let pool = Arc::default();
        let (first, mut server) = connection(&pool).await;
        let mut body = exchange(first, &mut server, UNFINISHED).await.into_body();
        body.frame().await.unwrap().unwrap();
        drop(body);
        assert!(pool.take().is_none());
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_request_for_a_connection_that_the_server_closed_comes_back() {
        let pool = Arc::default();
        let (first, mut server) = connection(&pool).await;
        exchange(first, &mut server, EMPTY).await;
        drop(server);
        // The runtime learns of the end of the connection.
        tokio::task::yield_now().await;
        let idle = pool.take().expect("an idle connection");
        let unsent = idle.send(request()).await.err().expect("an error");
        assert!(unsent.request.is_some(), "{}", unsent.error);
    }

    #[tokio::test]
    async fn a_response_that_ends_the_connection_does_not_return_it() {
        let pool = Arc::default();
        let (first, mut server) = connection(&pool).await;
        let closes = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        exchange(first, &mut server, closes).await;
        assert!(pool.take().is_none());
    }

    #[tokio::test]
    async fn the_connections_of_all_parallel_requests_are_kept() {
        let pool = Arc::default();
        let mut servers = Vec::new();
        for _ in 0..300 {
            let (first, mut server) = connection(&pool).await;
            exchange(first, &mut server, EMPTY).await;
            servers.push(server);
        }
        assert_eq!(pool.lock().connections.len(), servers.len());
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connections_are_closed_in_time() {
        let pool = Arc::default();
        let (first, mut server) = connection(&pool).await;
        exchange(first, &mut server, EMPTY).await;
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
        assert!(pool.lock().connections.is_empty());
    }
}
