//! A connection of the HTTP listener: header of a proxy, TLS handshake, requests.

use super::{
    ListenLimits, RequestHandler,
    connection_counts::{ConnectionCounts, CountedConnection},
};
use crate::{
    event_log::{self, GatewayEvent},
    proxy::{ClientConnection, InvalidProxyHeader, read_proxy_header},
    tls::{HandshakePermit, TlsHandshakes},
};
use http::{HeaderValue, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::watch,
    time::timeout,
};

/// Interval at which connections without a valid header of the PROXY protocol are reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// Parts of the listener that its connections share.
pub(super) struct ListenerParts<H> {
    pub(super) routes: Arc<H>,
    pub(super) tls: Option<TlsHandshakes>,
    pub(super) limits: ListenLimits,
    pub(super) addresses: ConnectionCounts,
    pub(super) invalid_proxy_headers: InvalidProxyHeaders,
    /// True if another process accepts the connections.
    pub(super) is_handed_over: AtomicBool,
}

/// Reports connections of trusted proxies without a valid header of the PROXY protocol, at most one a minute.
#[derive(Default)]
pub(super) struct InvalidProxyHeaders(Mutex<Option<Instant>>);

impl InvalidProxyHeaders {
    fn report(&self, proxy: IpAddr, why: InvalidProxyHeader) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= REPORT_INTERVAL) {
            *last = Some(Instant::now());
            let text = format!(
                "a connection of the trusted proxy {proxy} was closed: {why}; let the proxy send the PROXY protocol, or change `header` in [proxy]"
            );
            event_log::emit(GatewayEvent::Problem { text });
        }
    }
}

/// Connection within the limits, before its first byte is read.
pub(super) struct AcceptedConnection<H> {
    shared: Arc<ListenerParts<H>>,
    stream: TcpStream,
    peer: IpAddr,
    /// True if the connection has to begin with a header of the PROXY protocol.
    has_proxy_header: bool,
    handshake: Option<(TlsHandshakes, HandshakePermit)>,
    counted: Option<CountedConnection>,
}

impl<H: RequestHandler> AcceptedConnection<H> {
    /// Checks the limits of a new connection; `None` at a limit.
    pub(super) fn new(
        shared: &Arc<ListenerParts<H>>,
        stream: TcpStream,
        peer: IpAddr,
    ) -> Option<AcceptedConnection<H>> {
        let proxies = shared.routes.proxies();
        // All clients of a trusted proxy share its address.
        let counted = match proxies.trusts(peer) {
            true => None,
            false => Some(shared.count(peer)?),
        };
        let handshake = match &shared.tls {
            None => None,
            Some(tls) => Some((tls.clone(), tls.permit()?)),
        };
        Some(AcceptedConnection {
            shared: shared.clone(),
            stream,
            peer,
            has_proxy_header: proxies.sends_proxy_header(peer),
            handshake,
            counted,
        })
    }

    /// Serves the connection to its end.
    pub(super) async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let _ = self.stream.set_nodelay(true);
        let opened = tokio::select! {
            opened = self.read_proxy_header() => opened,
            _ = stopped.wait_for(|stop| *stop) => None,
        };
        let Some(address) = opened else {
            return;
        };
        let client = ClientConnection {
            address,
            is_https: self.handshake.is_some(),
        };
        let (shared, stream, _counted) = (self.shared, self.stream, self.counted);
        let Some((tls, permit)) = self.handshake else {
            return serve_requests(stream, client, &shared, stopped).await;
        };
        let accepted = tokio::select! {
            accepted = tls.accept(stream, permit) => accepted,
            _ = stopped.wait_for(|stop| *stop) => None,
        };
        if let Some(stream) = accepted {
            serve_requests(stream, client, &shared, stopped).await;
        }
    }

    /// Reads the header of the PROXY protocol, if the connection has one. Returns the address of the client; `None` if
    /// the header is invalid or the client is at its limit.
    async fn read_proxy_header(&mut self) -> Option<IpAddr> {
        if !self.has_proxy_header {
            return Some(self.peer);
        }
        let header = read_proxy_header(&mut self.stream);
        match timeout(self.shared.limits.header_timeout, header)
            .await
            .ok()?
        {
            Ok(None) => Some(self.peer),
            Ok(Some(client)) => {
                self.counted = Some(self.shared.count(client)?);
                Some(client)
            }
            Err(why) => {
                self.shared.invalid_proxy_headers.report(self.peer, why);
                None
            }
        }
    }
}

impl<H> ListenerParts<H> {
    /// Counts a connection of an address; `None` at the limit.
    fn count(&self, address: IpAddr) -> Option<CountedConnection> {
        self.addresses.count(address, self.limits.max_per_address)
    }
}

async fn serve_requests(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    client: ClientConnection,
    shared: &ListenerParts<impl RequestHandler>,
    mut stopped: watch::Receiver<bool>,
) {
    let routes = &shared.routes;
    let service = service_fn(move |request: http::Request<Incoming>| {
        let (routes, request) = (routes.clone(), Box::new(request));
        async move {
            let mut response = routes.answer(client, request).await;
            if shared.is_handed_over.load(Relaxed) {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.limits.header_timeout)
        .max_buf_size(shared.limits.max_head_bytes)
        .max_headers(shared.limits.max_headers)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // The connection has ended. Requests that ran on it are cancelled.
        _ = connection.as_mut() => return,
        _ = stopped.wait_for(|stop| *stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
