//! HTTP connections: pooled, with a connect time-out, TLS by rustls, and redirects within one origin.

use super::{
    super::connection::RequestFailure, super::status::sanitize_line, connector::ServerConnector,
    options::HttpOptions, server_url,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::{
    client::legacy::{self, Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use std::{
    error::Error as StdError,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use toolgate_auth::client::{
    AuthError, CredentialProvider, CredentialRequest, RejectedResponse, RetryDecision,
};
use tower_service::Service;

/// Time that an idle connection is kept. It is below the five seconds after which many servers close it: a request that
/// meets such a close would fail without anyone knowing whether it ran.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(4);
/// Maximum number of idle connections: as many as the calls that run at once by default. With fewer, a steady load of
/// parallel calls opens and closes a connection for nearly every call.
const MAX_IDLE_CONNECTIONS: usize = 64;
/// Idle time before the operating system sends TCP keepalive probes.
const TCP_KEEPALIVE_TIME: Duration = Duration::from_secs(60);
/// Maximum number of redirects per request.
const MAX_REDIRECTS: usize = 3;
/// Maximum size of a response head, in bytes.
const MAX_RESPONSE_HEAD_BYTES: usize = 64 << 10;

pub(super) type BoxError = Box<dyn StdError + Send + Sync>;

/// Connection pool of one server.
pub(super) struct HttpConnectionPool {
    client: Client<TimeLimitedConnector<ServerConnector>, Full<Bytes>>,
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
        let connector = TimeLimitedConnector {
            inner: server_connector(uri, options)?,
            limit: options.connect_timeout,
        };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
            .http1_max_buf_size(MAX_RESPONSE_HEAD_BYTES)
            .build(connector);
        Ok(HttpConnectionPool {
            client,
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
        leaves: OutgoingHttpRequest<'_>,
    ) -> Result<Response<Incoming>, RequestFailure> {
        let Some(who) = &self.credentials else {
            return self.send_once(&leaves, leaves.headers).await;
        };
        let leaving = CredentialRequest::new(&leaves.method, leaves.uri, leaves.operation);
        let mut before = 0;
        loop {
            let sent = who.headers(leaving).await.map_err(missing_token)?;
            let mut headers = leaves.headers.clone();
            headers.extend(sent.clone());
            let mut response = self.send_once(&leaves, &headers).await?;
            let status = response.status();
            if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                who.on_response(response.headers());
                response.extensions_mut().insert(SentCredentials(sent));
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
        headers: &HeaderMap,
    ) -> Result<Response<Incoming>, RequestFailure> {
        let mut uri = leaves.uri.clone();
        for _ in 0..=MAX_REDIRECTS {
            let mut request = Request::new(Full::new(leaves.body.clone()));
            *request.method_mut() = leaves.method.clone();
            *request.uri_mut() = uri.clone();
            *request.headers_mut() = headers.clone();
            let response = self
                .client
                .request(request)
                .await
                .map_err(|error| connection_failure(&error))?;
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

fn connection_failure(error: &legacy::Error) -> RequestFailure {
    let mut words = String::new();
    let mut next = error.source();
    while let Some(source) = next {
        words = source.to_string();
        next = source.source();
    }
    let words = sanitize_line(&words, 200);
    if error.is_connect() {
        return RequestFailure::Http {
            words: format!("cannot be reached: {words}; check its URL, and that it is running"),
            status: None,
            sent: false,
            no_token: None,
        };
    }
    RequestFailure::Http {
        words: format!("broke the connection: {words}"),
        status: None,
        sent: true,
        no_token: None,
    }
}

/// Connector with one time-out for all its steps.
#[derive(Clone)]
struct TimeLimitedConnector<C> {
    inner: C,
    limit: Duration,
}

impl<C> Service<Uri> for TimeLimitedConnector<C>
where
    C: Service<Uri, Error = BoxError>,
    C::Response: Send,
    C::Future: Send + 'static,
{
    type Response = C::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<C::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connect, limit) = (self.inner.call(uri), self.limit);
        Box::pin(async move {
            match tokio::time::timeout(limit, connect).await {
                Ok(connected) => connected,
                Err(_) => Err(format!("there was no connection within {limit:?}").into()),
            }
        })
    }
}
