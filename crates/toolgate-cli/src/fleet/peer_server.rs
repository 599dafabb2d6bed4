//! Listener for other gateways, over TLS with client certificates.

use super::PeerTls;
use crate::{config::PeerSettings, proxy::ClientConnection};
use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr},
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
    time::Duration,
};
use tokio::{net::TcpListener, sync::Semaphore, task::JoinSet};
use tokio_rustls::TlsAcceptor;
use toolgate::edge::http::Body;

/// Header with the address of the client whose request another gateway forwards, and the scheme that it used.
pub(super) const FORWARDED_CLIENT: &str = "x-toolgate-client";
/// Schemes in that header.
pub(super) const HTTPS: &str = "https";
pub(super) const HTTP: &str = "http";
/// Maximum number of connections of other gateways.
const MAX_CONNECTIONS: usize = 1024;
/// Maximum time of a TLS handshake, and for the head of a request.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Handler of the requests that other gateways forward.
pub(crate) trait ForwardedRequestHandler: Send + Sync + 'static {
    /// Answers a request that another gateway forwards for a client address.
    fn answer_forwarded(
        &self,
        from: ClientConnection,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Body>> + Send;
}

/// Listener for other gateways.
pub(crate) struct PeerListener {
    listener: TcpListener,
    tls: PeerTls,
}

impl AsFd for PeerListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl PeerListener {
    /// Listens at the address of the settings, or on a listener for it that was taken over.
    ///
    /// # Errors
    /// The address cannot be used; the message says why.
    pub(crate) async fn bind(
        settings: &PeerSettings,
        tls: PeerTls,
        taken: Option<std::net::TcpListener>,
    ) -> Result<PeerListener, String> {
        let address = settings.listen_address();
        let listener = match taken {
            Some(taken) => TcpListener::from_std(taken),
            None => TcpListener::bind(&address).await,
        };
        let listener = listener.map_err(|e| {
            format!("cannot listen for other gateways at {address}: {e}; correct advertise or listen in [store]")
        })?;
        Ok(PeerListener { listener, tls })
    }

    /// Answers the requests that other gateways forward. When `handed_over` resolves, another process accepts the
    /// connections, and only open ones are served. Never returns.
    pub(crate) async fn serve<H: ForwardedRequestHandler>(
        self,
        routes: Option<Arc<H>>,
        handed_over: impl Future<Output = ()>,
    ) {
        let Some(routes) = routes else {
            return std::future::pending().await;
        };
        let acceptor = TlsAcceptor::from(self.tls.server.clone());
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        let mut handed_over = std::pin::pin!(handed_over);
        loop {
            let next = async {
                let place = places.clone().acquire_owned().await;
                (place, self.listener.accept().await)
            };
            let (place, accepted) = tokio::select! {
                () = &mut handed_over => break,
                next = next => next,
            };
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let (acceptor, routes) = (acceptor.clone(), routes.clone());
            connections.spawn(async move {
                let _place = place;
                let _ = stream.set_nodelay(true);
                let accepted = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream));
                let Ok(Ok(stream)) = accepted.await else {
                    return;
                };
                let service = service_fn(move |request: Request<Incoming>| {
                    let routes = routes.clone();
                    async move {
                        let from = client_of(&request);
                        Ok::<_, Infallible>(routes.answer_forwarded(from, request).await)
                    }
                });
                let served = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .serve_connection(TokioIo::new(stream), service);
                // The other gateway reports a broken connection.
                let _ = served.await;
            });
            while connections.try_join_next().is_some() {}
        }
        drop(self.listener);
        while connections.join_next().await.is_some() {}
        std::future::pending().await
    }
}

/// Returns the connection of the client. Only gateways can connect, so the header is theirs.
fn client_of(request: &Request<Incoming>) -> ClientConnection {
    let header = request.headers().get(FORWARDED_CLIENT);
    let text = header.and_then(|value| value.to_str().ok());
    let parts = text.and_then(|text| text.split_once(' '));
    let (address, scheme) = parts.unwrap_or_default();
    ClientConnection {
        address: address.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        is_https: scheme == HTTPS,
    }
}
