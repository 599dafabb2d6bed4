//! Client of other gateways: forwards a request as it came, with the address of its client.

use super::{
    PeerTls,
    peer_server::{FORWARDED_CLIENT, HTTP, HTTPS},
};
use crate::proxy::ClientConnection;
use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt, BodyStream};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::{
    collections::HashMap,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use toolgate::edge::http::Body;

/// Maximum time to connect to another gateway.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of attempts to send a request, with idle connections that were closed.
const MAX_ATTEMPTS: u32 = 4;
/// Maximum number of idle connections to one gateway.
const MAX_IDLE: usize = 16;

type PeerConnection = http1::SendRequest<Incoming>;

/// Connections to other gateways.
pub(crate) struct PeerClient {
    tls: PeerTls,
    idle: Mutex<HashMap<String, Vec<PeerConnection>>>,
}

/// Failure of a forwarded request.
pub(crate) enum ForwardError {
    /// The other gateway cannot be reached. The request was not sent, and comes back.
    Unreachable(Box<Request<Incoming>>),
    /// The connection broke after the request was sent. It may have had its effect.
    Broken,
}

impl PeerClient {
    pub(crate) fn new(tls: PeerTls) -> PeerClient {
        PeerClient {
            tls,
            idle: Mutex::default(),
        }
    }

    /// Forwards a request to another gateway. Its connections are kept by its tag: after an upgrade in place, another
    /// process has its address.
    ///
    /// # Errors
    /// The gateway cannot be reached, or the connection broke.
    pub(crate) async fn forward(
        &self,
        (tag, address): (&str, &str),
        from: ClientConnection,
        mut request: Request<Incoming>,
    ) -> Result<Response<Body>, ForwardError> {
        let headers = request.headers_mut();
        let scheme = if from.is_https { HTTPS } else { HTTP };
        if let Ok(from) = HeaderValue::from_str(&format!("{} {scheme}", from.address)) {
            headers.insert(FORWARDED_CLIENT, from);
        }
        // Of the connection, not of the request.
        headers.remove(header::CONNECTION);
        for _ in 0..MAX_ATTEMPTS {
            let mut connection = match self.idle_connection(tag) {
                Some(connection) => connection,
                None => match self.connect(address).await {
                    Ok(connection) => connection,
                    Err(error) => {
                        tracing::warn!(%address, %error, "another gateway cannot be reached");
                        return Err(ForwardError::Unreachable(Box::new(request)));
                    }
                },
            };
            match connection.try_send_request(request).await {
                Ok(response) => {
                    self.keep(tag, connection);
                    return Ok(into_body(response));
                }
                // An idle connection may have been closed meanwhile, so try another one.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(ForwardError::Broken),
                },
            }
        }
        Err(ForwardError::Unreachable(Box::new(request)))
    }

    fn lock_idle(&self) -> MutexGuard<'_, HashMap<String, Vec<PeerConnection>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle_connection(&self, tag: &str) -> Option<PeerConnection> {
        let mut idle = self.lock_idle();
        let connections = idle.get_mut(tag)?;
        connections.retain(|connection| !connection.is_closed());
        let ready = connections.iter().position(PeerConnection::is_ready)?;
        Some(connections.swap_remove(ready))
    }

    /// Keeps a connection. It is used again once its answer was read to the end.
    fn keep(&self, tag: &str, connection: PeerConnection) {
        let mut idle = self.lock_idle();
        idle.retain(|_, connections| {
            connections.retain(|connection| !connection.is_closed());
            !connections.is_empty()
        });
        let connections = idle.entry(tag.to_owned()).or_default();
        if connections.len() < MAX_IDLE {
            connections.push(connection);
        }
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "the task only moves the bytes of a connection, and ends with it"
    )]
    async fn connect(&self, address: &str) -> io::Result<PeerConnection> {
        let connecting = async {
            let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
            let host = host
                .trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned();
            let name = ServerName::try_from(host).map_err(io::Error::other)?;
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let connector = TlsConnector::from(self.tls.client.clone());
            let stream = connector.connect(name, stream).await?;
            let handshake = http1::handshake(TokioIo::new(stream)).await;
            let (sender, connection) = handshake.map_err(io::Error::other)?;
            tokio::spawn(connection);
            Ok(sender)
        };
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
        connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Passes an answer on. A broken connection ends the stream.
fn into_body(response: Response<Incoming>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    for name in [
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
    ] {
        parts.headers.remove(name);
    }
    let frames = BodyStream::new(body.map_err(drop));
    let data = frames
        .take_while(|frame| std::future::ready(frame.is_ok()))
        .filter_map(|frame| {
            let data = frame.ok().and_then(|frame| frame.into_data().ok());
            std::future::ready(data)
        });
    let data: futures_util::stream::BoxStream<'static, Bytes> = Box::pin(data);
    Response::from_parts(parts, Body::forwarded(data))
}
