//! HTTP connections: pooled, with a connect time-out, TLS by rustls, and redirects within one origin.

use super::{
    super::connection::RequestFailure,
    super::status::sanitize_line,
    connector::{ServerConnector, ServerStream},
    options::HttpOptions,
    pool::{IdleConnections, PooledBody, PooledConnection, UnsentRequest},
    server_url,
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header, uri::PathAndQuery,
};
use http_body_util::Full;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::HttpConnector;
use std::{error::Error as StdError, future::poll_fn, sync::Arc, time::Duration};
use tokio::time::timeout;
use toolgate_auth::client::{
    AuthError, CredentialProvider, CredentialRequest, RejectedResponse, RetryDecision,
};
use tower_service::Service;

/// Idle time before the operating system sends TCP keepalive probes.
const TCP_KEEPALIVE_TIME: Duration = Duration::from_secs(60);
/// Maximum number of redirects per request.
const MAX_REDIRECTS: usize = 3;

pub(super) type BoxError = Box<dyn StdError + Send + Sync>;

/// Connection pool of one server.
pub(super) struct HttpConnectionPool {
    connector: ServerConnector,
    connect_timeout: Duration,
    origin: Uri,
    /// The `Host` header.
    host: HeaderValue,
    idle: Arc<IdleConnections>,
    credentials: Option<Arc<dyn CredentialProvider>>,
}

/// Request to be sent; identical in each attempt.
pub(super) struct OutgoingHttpRequest<'a> {
    pub(super) method: Method,
    pub(super) uri: &'a Uri,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: Bytes,
    /// Purpose of the request for authorization, if a caller waits for it.
    pub(super) operation: Option<&'a str>,
}

/// Credential headers that were sent with the request of a response.
#[derive(Clone)]
pub(super) struct SentCredentials(pub(super) HeaderMap);

impl HttpConnectionPool {
    /// Returns an empty connection pool.
    ///
    /// # Errors
    /// TLS is required, and the system has no root certificates.
    pub(super) fn new(uri: &Uri, options: &HttpOptions) -> Result<HttpConnectionPool, String> {
        Ok(HttpConnectionPool {
            connector: server_connector(uri, options)?,
            connect_timeout: options.connect_timeout,
            origin: uri.clone(),
            host: server_url::host_header(uri).ok_or("its URL has an invalid host")?,
            idle: Arc::default(),
            credentials: options.credential_source().cloned(),
        })
    }

    /// Sends a request and waits for the response head. With credentials, adds their headers, and lets them handle a
    /// 401 or 403, after which the request may be resent.
    ///
    /// # Errors
    /// [`RequestFailure::Http`]: the server cannot be reached or redirects to another origin, or no token can be obtained.
    pub(super) async fn send(
        &self,
        leaves: &OutgoingHttpRequest<'_>,
    ) -> Result<Response<PooledBody>, RequestFailure> {
        let Some(who) = &self.credentials else {
            return self.send_once(leaves, None).await;
        };
        let leaving = CredentialRequest::new(&leaves.method, leaves.uri, leaves.operation);
        let mut before = 0;
        loop {
            let sent = who.headers(leaving).await.map_err(missing_token)?;
            let mut response = self.send_once(leaves, Some(&sent)).await?;
            let status = response.status();
            if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                who.on_response(response.headers());
                if !sent.is_empty() {
                    response.extensions_mut().insert(SentCredentials(sent));
                }
                return Ok(response);
            }
            let refusal = RejectedResponse::new(status, response.headers(), &sent, before);
            match who
                .on_rejection(leaving, refusal)
                .await
                .map_err(missing_token)?
            {
                RetryDecision::Retry => before += 1,
                _ => {
                    response.extensions_mut().insert(SentCredentials(sent));
                    return Ok(response);
                }
            }
        }
    }

    async fn send_once(
        &self,
        leaves: &OutgoingHttpRequest<'_>,
        credentials: Option<&HeaderMap>,
    ) -> Result<Response<PooledBody>, RequestFailure> {
        let mut uri = leaves.uri.clone();
        for _ in 0..=MAX_REDIRECTS {
            // Boxed, because each future on its way would copy it twice.
            let mut request = Box::new(Request::new(Full::new(leaves.body.clone())));
            *request.method_mut() = leaves.method.clone();
            *request.uri_mut() = origin_form(&uri);
            let headers = request.headers_mut();
            headers.clone_from(leaves.headers);
            if let Some(credentials) = credentials.filter(|headers| !headers.is_empty()) {
                headers.extend(credentials.clone());
            }
            headers.insert(header::HOST, self.host.clone());
            let response = self.exchange(request).await?;
            match response.status() {
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => {
                    uri = redirect(&uri, response.headers().get(header::LOCATION))?;
                }
                _ => return Ok(response),
            }
        }
        Err(redirect_failure(format!(
            "redirected more than {MAX_REDIRECTS} times; use its final URL"
        )))
    }

    /// Sends a request on an idle connection or on a new one.
    async fn exchange(
        &self,
        mut request: Box<Request<Full<Bytes>>>,
    ) -> Result<Response<PooledBody>, RequestFailure> {
        while let Some(idle) = self.idle.take() {
            match idle.send(request).await {
                Ok(response) => return Ok(response),
                // The server closed the connection before anything was sent.
                Err(UnsentRequest {
                    request: Some(unsent),
                    ..
                }) => request = unsent,
                Err(UnsentRequest { error, .. }) => return Err(broken_connection(&error)),
            }
        }
        let connection = Box::pin(self.open()).await?;
        let sent = connection.send(request).await;
        sent.map_err(|unsent| broken_connection(&unsent.error))
    }

    /// Opens a connection.
    async fn open(&self) -> Result<PooledConnection, RequestFailure> {
        let stream = self.connect().await?;
        let opened = PooledConnection::open(stream, &self.idle).await;
        opened.map_err(|error| broken_connection(&error))
    }

    /// Connects to the server, with one time-out for all steps.
    async fn connect(&self) -> Result<ServerStream, RequestFailure> {
        let mut connector = self.connector.clone();
        let connected = timeout(self.connect_timeout, async {
            poll_fn(|cx| connector.poll_ready(cx)).await?;
            connector.call(self.origin.clone()).await
        });
        match connected.await {
            Ok(stream) => stream.map_err(|error| unreachable_server(&innermost_message(&*error))),
            Err(_) => Err(unreachable_server(&format!(
                "there was no connection within {:?}",
                self.connect_timeout
            ))),
        }
    }
}

/// Returns the path and query of a URI, the form in which a request names its target.
fn origin_form(uri: &Uri) -> Uri {
    let path = uri.path_and_query().cloned();
    Uri::from(path.unwrap_or(PathAndQuery::from_static("/")))
}

/// Returns the connector for a URL.
///
/// # Errors
/// TLS is required, and the system has no root certificates or the connection is a Unix socket.
fn server_connector(
    uri: &Uri,
    #[cfg_attr(not(unix), expect(unused_variables))] options: &HttpOptions,
) -> Result<ServerConnector, String> {
    #[cfg(unix)]
    if let Some(path) = options.socket_path() {
        if uri.scheme_str() == Some("https") {
            return Err("a Unix socket has no TLS; use a URL that begins with http://".to_owned());
        }
        return Ok(ServerConnector::UnixSocket(path.clone()));
    }
    network_connector(uri)
}

fn network_connector(uri: &Uri) -> Result<ServerConnector, String> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(TCP_KEEPALIVE_TIME));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let https = HttpsConnectorBuilder::new();
    let https = if uri.scheme_str() == Some("https") {
        https
                .with_provider_and_native_roots(provider)
                .map_err(|error| format!("the system has no trusted root certificates: {error}; install its CA certificates"))?
    } else {
        // No certificates are needed: the origin never changes, so this client makes no encrypted connection.
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        https.with_tls_config(config)
    };
    let connector = https.https_or_http().enable_http1().wrap_connector(tcp);
    Ok(ServerConnector::Network(connector))
}

/// Returns the target of a redirect, which must be on the same origin.
fn redirect(from: &Uri, to: Option<&HeaderValue>) -> Result<Uri, RequestFailure> {
    let reference = to.and_then(|to| to.to_str().ok());
    let reference = reference.ok_or_else(|| {
        redirect_failure("sent a redirect without a valid Location header".to_owned())
    })?;
    server_url::resolve(from, reference).ok_or_else(|| {
        redirect_failure(
            "redirected to an invalid URL or to another origin, which is not followed; use its new URL"
                .to_owned(),
        )
    })
}

/// Returns the failure for a missing token. Nothing that could run was sent: a request that got 401 did not run.
fn missing_token(error: AuthError) -> RequestFailure {
    RequestFailure::Http {
        words: format!("requires credentials: {error}"),
        status: Some(StatusCode::UNAUTHORIZED.as_u16()),
        sent: false,
        no_token: Some(error),
    }
}

fn redirect_failure(words: String) -> RequestFailure {
    RequestFailure::Http {
        words,
        status: None,
        sent: false,
        no_token: None,
    }
}

/// Returns the failure of a request that no connection carried: nothing was sent.
fn unreachable_server(words: &str) -> RequestFailure {
    let words = sanitize_line(words, 200);
    RequestFailure::Http {
        words: format!("cannot be reached: {words}; check its URL, and that it is running"),
        status: None,
        sent: false,
        no_token: None,
    }
}

/// Returns the failure of a request whose connection was lost.
fn broken_connection(error: &hyper::Error) -> RequestFailure {
    let words = sanitize_line(&innermost_message(error), 200);
    RequestFailure::Http {
        words: format!("broke the connection: {words}"),
        status: None,
        sent: true,
        no_token: None,
    }
}

/// Returns the message of the first cause of an error.
fn innermost_message(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
