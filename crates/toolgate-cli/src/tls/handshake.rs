//! Handshakes of new connections, bounded in time and number.

use super::ListenerTls;
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// First byte of a TLS connection: the type of a handshake record.
const HANDSHAKE_RECORD: u8 = 22;
/// Answer to a client that sends HTTP without TLS.
const HTTPS_REQUIRED: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\
    Content-Length: 68\r\n\r\nthis port speaks TLS; write https:// instead of http:// in the URL\r\n";

/// Limits of TLS handshakes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandshakeLimits {
    /// Maximum number of concurrent handshakes.
    pub(crate) max_handshakes: usize,
    /// Time limit of one handshake.
    pub(crate) timeout: Duration,
}

/// Performs the handshakes of a listener's connections.
#[derive(Clone)]
pub(crate) struct TlsHandshakes {
    tls: Arc<ListenerTls>,
    permits: Arc<Semaphore>,
    timeout: Duration,
}

/// Permit for one handshake.
pub(crate) type HandshakePermit = OwnedSemaphorePermit;

impl TlsHandshakes {
    /// Creates the handshakes of a listener.
    pub(crate) fn new(tls: Arc<ListenerTls>, limits: HandshakeLimits) -> TlsHandshakes {
        TlsHandshakes {
            tls,
            permits: Arc::new(Semaphore::new(limits.max_handshakes)),
            timeout: limits.timeout,
        }
    }

    /// Returns a permit for a handshake; `None` at the limit.
    pub(crate) fn permit(&self) -> Option<HandshakePermit> {
        self.permits.clone().try_acquire_owned().ok()
    }

    /// Performs the handshake of a connection. `None` if it fails or takes too long; the connection is closed then.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
        permit: HandshakePermit,
    ) -> Option<TlsStream<TcpStream>> {
        let acceptor = TlsAcceptor::from(self.tls.server_config());
        let handshake = async move {
            if has_plain_http(&stream).await {
                reject_plain_http(stream).await;
                return None;
            }
            acceptor.accept(stream).await.ok()
        };
        let accepted = timeout(self.timeout, handshake).await.ok().flatten();
        drop(permit);
        accepted
    }
}

/// Returns whether the client begins with a letter, as every HTTP request without TLS does.
async fn has_plain_http(stream: &TcpStream) -> bool {
    let mut first = [HANDSHAKE_RECORD];
    matches!(stream.peek(&mut first).await, Ok(1)) && first[0].is_ascii_alphabetic()
}

/// Answers a request without TLS. Unread bytes would reset the connection before the client reads the answer, so they
/// are read until the client closes it.
async fn reject_plain_http(mut stream: TcpStream) {
    let answered = async {
        stream.write_all(HTTPS_REQUIRED).await?;
        stream.shutdown().await
    };
    if answered.await.is_ok() {
        let mut discarded = [0; 1024];
        while matches!(stream.read(&mut discarded).await, Ok(1..)) {}
    }
}
