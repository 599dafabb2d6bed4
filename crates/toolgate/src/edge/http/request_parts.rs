//! Parts of an HTTP request that handlers can read.

use crate::edge::ProtocolServer;
use http::{Extensions, HeaderMap, HeaderName, header, request::Parts};
use std::{
    fmt,
    net::IpAddr,
    sync::{Arc, OnceLock},
};
use toolgate_core::{Call, TransportParts};

/// Headers, session id and extensions of the HTTP request that carried a call, for handlers and layers of a server.
///
/// Handlers read them with [`Cx::headers`](crate::Cx::headers), [`Cx::session_id`](crate::Cx::session_id) and
/// [`Cx::extension`](crate::Cx::extension). A layer or rule of a server reads them from the [`Call`]:
///
/// ```
/// use toolgate::{Error, Server, core::ErrorKind, edge::http::HttpRequestParts, layer};
///
/// let server = Server::new("files", "1.0.0").layer(layer::from_fn("tenant", |call, next| {
///     Box::pin(async move {
///         let parts = HttpRequestParts::of(&call);
///         match parts.and_then(|parts| parts.headers().get("x-tenant")) {
///             Some(_) => next.call(call).await,
///             None => {
///                 let text = "the header X-Tenant is missing; set it in the configuration of the client";
///                 Err(Error::new(ErrorKind::InvalidArguments(Vec::new()), text))
///             }
///         }
///     })
/// }));
/// # assert!(server.build().is_ok());
/// ```
///
/// A layer sees calls only. A client without the header connects and lists the tools, and its calls fail. To reject
/// every HTTP request, use a middleware in front of the service; see the
/// [server guide](crate::guide::server#the-http-request).
///
/// Headers are what the client or a proxy sent; do not derive permissions from a header that any client can set.
/// Headers with credentials are left out: `Authorization`, `Proxy-Authorization`, `Cookie` and `DPoP`. A middleware in
/// front of the service that wants handlers to see a credential puts it into the extensions, in a type of its own.
pub struct HttpRequestParts {
    pub(super) parts: Parts,
    session_id: OnceLock<Arc<str>>,
}

/// Address of the client that sent an HTTP request, for the audit log.
///
/// A listener, or a middleware in front of the service that knows the client behind a trusted proxy, puts it into the
/// extensions of the request.
///
/// ```
/// use toolgate::edge::http::ClientAddress;
///
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(ClientAddress([192, 0, 2, 1].into()));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClientAddress(pub IpAddr);

impl HttpRequestParts {
    /// Takes the parts of a request, without its credentials if handlers can read them.
    pub(crate) fn new(server: &ProtocolServer, mut parts: Parts) -> Arc<HttpRequestParts> {
        if server.keeps_transport_parts {
            remove_credentials(&mut parts.headers);
        }
        Arc::new(HttpRequestParts {
            parts,
            session_id: OnceLock::new(),
        })
    }

    /// Returns the address of the client, if something in front of the endpoint has determined it.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        let address = self.parts.extensions.get::<ClientAddress>();
        address.map(|address| address.0)
    }

    /// Returns the parts for the calls of a stateless request, if the server keeps them.
    pub(crate) fn without_session(
        self: &Arc<Self>,
        server: &ProtocolServer,
    ) -> Option<TransportParts> {
        server.keeps_transport_parts.then(|| self.clone().into())
    }

    /// Returns the parts for the calls of a request in a session, if the server keeps them.
    pub(crate) fn in_session(
        self: &Arc<Self>,
        server: &ProtocolServer,
        id: &Arc<str>,
    ) -> Option<TransportParts> {
        let parts = self.without_session(server)?;
        self.session_id.get_or_init(|| id.clone());
        Some(parts)
    }

    /// Returns the parts of the HTTP request that carried a call; `None` on other transports, and in the gateway.
    pub fn of(call: &Call) -> Option<&HttpRequestParts> {
        call.request_info.transport_parts.as_ref()?.downcast_ref()
    }

    /// Returns the headers of the request, without those that contain credentials.
    pub fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// Returns the id of the MCP session; `None` in 2026-07-28, which has no sessions. Treat it as a secret.
    pub fn session_id(&self) -> Option<&str> {
        self.session_id.get().map(|id| &**id)
    }

    /// Returns the extensions of the request, which middleware in front of the service filled.
    pub fn extensions(&self) -> &Extensions {
        &self.parts.extensions
    }
}

/// Shows no contents, because headers contain secrets.
impl fmt::Debug for HttpRequestParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpRequestParts")
    }
}

/// Headers that contain credentials.
const CREDENTIAL_HEADERS: [HeaderName; 4] = [
    header::AUTHORIZATION,
    header::PROXY_AUTHORIZATION,
    header::COOKIE,
    HeaderName::from_static("dpop"),
];

/// Removes the headers that contain credentials.
fn remove_credentials(headers: &mut HeaderMap) {
    // Most requests have none, and comparing names is cheaper than looking each one up.
    if headers.keys().any(|name| CREDENTIAL_HEADERS.contains(name)) {
        CREDENTIAL_HEADERS
            .iter()
            .for_each(|name| _ = headers.remove(name));
    }
}
