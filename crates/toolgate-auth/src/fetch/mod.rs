//! HTTP client with SSRF protection for URLs that a peer names: metadata, keys, tokens.
//!
//! - `policy`: address policy, which network addresses are allowed.
//! - `connect`: connections to exactly the address that was checked.
//!
//! URLs must be `https`, or `http` on loopback if the peer is on loopback too. Size and time of a response are limited.
//! Redirects are followed only within the origin, and never for a request with a body or credentials.

mod address_policy;
mod connect;
mod error;
#[cfg(test)]
mod tests;

pub use address_policy::AddressPolicy;
pub use error::{FetchError, FetchErrorKind};

use crate::Url;
use bytes::Bytes;
use connect::DnsResolver;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::{net::IpAddr, time::Duration};
use tokio::io::{AsyncRead, AsyncWrite};
use toolgate_protocol::json::{Json, JsonLimits};

/// Maximum size of a response head in bytes.
const MAX_RESPONSE_HEAD_BYTES: usize = 64 << 10;

/// Limits of a [`PeerFetcher`]: timeout, body size and redirects.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct FetchLimits {
    /// Timeout of a fetch including its redirects; 10 s by default.
    pub timeout: Duration,
    /// Maximum size of a response body in bytes; 1 MiB by default.
    pub max_body_bytes: usize,
    /// Maximum number of redirects to follow, all on the origin of the request; 3 by default.
    pub max_redirects: usize,
}

impl Default for FetchLimits {
    fn default() -> FetchLimits {
        FetchLimits {
            timeout: Duration::from_secs(10),
            max_body_bytes: 1 << 20,
            max_redirects: 3,
        }
    }
}

/// HTTP client with SSRF protection for URLs that peers name.
///
/// ```
/// use toolgate_auth::{Url, fetch::{FetchLimits, PeerFetcher, AddressPolicy, FetchRequest}};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let url = Url::parse("https://login.example.com/.well-known/oauth-authorization-server")?;
/// let fetcher = PeerFetcher::new(AddressPolicy::public(), FetchLimits::default());
/// let fetched = fetcher.fetch(FetchRequest::get(url)).await?;
/// println!("HTTP {}, {} bytes", fetched.status, fetched.body.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PeerFetcher {
    policy: AddressPolicy,
    limits: FetchLimits,
    resolver: DnsResolver,
    operator_urls: Vec<Url>,
}

/// HTTP request for a [`PeerFetcher`].
#[derive(Clone)]
#[non_exhaustive]
pub struct FetchRequest {
    /// HTTP method, `GET` or `POST`.
    pub method: Method,
    /// Request URL.
    pub url: Url,
    /// Request headers; `Host` and `Content-Length` are added.
    pub headers: HeaderMap,
    /// Request body; empty for a `GET`.
    pub body: Bytes,
}

impl FetchRequest {
    /// Creates a `GET` request that accepts JSON.
    pub fn get(url: Url) -> FetchRequest {
        FetchRequest {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
        .with(header::ACCEPT, "application/json")
    }

    /// Creates a `POST` request with a form-encoded body.
    pub fn form<'a>(url: Url, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> FetchRequest {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(pairs);
        FetchRequest {
            method: Method::POST,
            url,
            headers: HeaderMap::new(),
            body: form.finish().into(),
        }
        .with(header::ACCEPT, "application/json")
        .with(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
    }

    /// Creates a `POST` request with a JSON body.
    pub fn json(url: Url, value: &serde_json::Value) -> FetchRequest {
        FetchRequest {
            method: Method::POST,
            url,
            headers: HeaderMap::new(),
            body: value.to_string().into(),
        }
        .with(header::ACCEPT, "application/json")
        .with(header::CONTENT_TYPE, "application/json")
    }

    /// Adds an HTTP header that is not secret.
    #[must_use]
    pub fn with(mut self, name: header::HeaderName, value: &'static str) -> FetchRequest {
        self.headers.insert(name, HeaderValue::from_static(value));
        self
    }

    /// Returns whether the request carries no body and no credentials, so that a redirect may repeat it.
    fn may_follow_redirects(&self) -> bool {
        self.method == Method::GET
            && self.body.is_empty()
            && !self.headers.contains_key(header::AUTHORIZATION)
    }
}

/// Complete HTTP response of a [`PeerFetcher`].
#[non_exhaustive]
pub struct FetchResponse {
    /// URL that the response came from, after redirects.
    pub url: Url,
    /// HTTP status.
    pub status: StatusCode,
    /// Response headers.
    pub headers: HeaderMap,
    /// Response body, within the size limit.
    pub body: Vec<u8>,
}

impl FetchResponse {
    /// Parses the response body as strict JSON of any type.
    ///
    /// # Errors
    /// [`FetchErrorKind::Malformed`]
    pub fn json(self) -> Result<Json, FetchError> {
        let read = Json::read(self.body, &JsonLimits::default());
        read.map_err(|bad| FetchError::new(&self.url, FetchErrorKind::Malformed, bad.to_string()))
    }
}

impl PeerFetcher {
    /// Creates an SSRF-protected HTTP client with an address policy and limits. It opens no connection yet.
    pub fn new(policy: AddressPolicy, limits: FetchLimits) -> PeerFetcher {
        PeerFetcher {
            policy,
            limits,
            resolver: DnsResolver::System,
            operator_urls: Vec::new(),
        }
    }

    /// Permits the origin of a URL that the operator configured, also at a private address. Can be called several
    /// times.
    #[must_use]
    pub fn permit_origin_of(mut self, url: &Url) -> PeerFetcher {
        self.operator_urls.push(url.clone());
        self
    }

    /// Creates an SSRF-protected HTTP client for a URL that the operator configured and for URLs that its server names.
    pub fn for_operator_url(url: &Url, limits: FetchLimits) -> PeerFetcher {
        PeerFetcher::new(AddressPolicy::for_server(url), limits).permit_origin_of(url)
    }

    /// Checks whether the address policy permits connecting to an IP address for a URL.
    ///
    /// # Errors
    /// The reason for which the policy forbids it.
    pub fn permits(&self, url: &Url, ip: IpAddr) -> Result<(), &'static str> {
        let reach = self.policy_for(url);
        reach.check_scheme(url)?;
        reach.check_address(ip)
    }

    /// Returns the timeout of a fetch.
    pub(crate) fn timeout(&self) -> Duration {
        self.limits.timeout
    }

    fn policy_for(&self, url: &Url) -> AddressPolicy {
        match self.operator_urls.iter().any(|home| home.same_origin(url)) {
            true => self.policy.permit_all(),
            false => self.policy,
        }
    }

    /// Sends a request and reads the complete response, whatever its status.
    ///
    /// # Errors
    /// [`FetchError`]: no complete response; it names the origin and nothing of the query, headers and body.
    pub async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, FetchError> {
        let first = request.url.clone();
        match tokio::time::timeout(self.limits.timeout, self.follow_redirects(request)).await {
            Ok(fetched) => fetched,
            Err(_) => Err(self.timeout_error(&first)),
        }
    }

    /// Sends a request without following redirects.
    pub(crate) async fn fetch_without_redirects(
        &self,
        request: FetchRequest,
    ) -> Result<FetchResponse, FetchError> {
        let once = tokio::time::timeout(self.limits.timeout, self.send(&request)).await;
        once.unwrap_or_else(|_| Err(self.timeout_error(&request.url)))
    }

    fn timeout_error(&self, url: &Url) -> FetchError {
        let words = format!("no response within {} s", self.limits.timeout.as_secs_f64());
        FetchError::new(url, FetchErrorKind::Timeout, words)
    }

    async fn follow_redirects(
        &self,
        mut request: FetchRequest,
    ) -> Result<FetchResponse, FetchError> {
        let bare = request.may_follow_redirects();
        for _ in 0..=self.limits.max_redirects {
            let fetched = self.send(&request).await?;
            let led = fetched.headers.get(header::LOCATION);
            let (true, Some(to)) = (fetched.status.is_redirection(), led) else {
                return Ok(fetched);
            };
            let refused =
                |words: &str| FetchError::new(&request.url, FetchErrorKind::Redirect, words);
            if !bare {
                return Err(refused(
                    "the response redirects a request that has a body or credentials, which is unsafe to follow",
                ));
            }
            let to = to.to_str().ok().and_then(|to| request.url.resolve(to).ok());
            let to = to.ok_or_else(|| refused("the response redirects to an invalid URL"))?;
            if !to.same_origin(&request.url) {
                return Err(refused(
                    "the response redirects to another origin, which is unsafe to follow",
                ));
            }
            request.url = to;
        }
        let words = format!(
            "the responses redirect more than {} times",
            self.limits.max_redirects
        );
        Err(FetchError::new(
            &request.url,
            FetchErrorKind::Redirect,
            words,
        ))
    }

    async fn send(&self, request: &FetchRequest) -> Result<FetchResponse, FetchError> {
        let url = &request.url;
        let tcp = self.resolver.connect(url, &self.policy_for(url)).await?;
        if url.is_https() {
            let tls = connect::start_tls(url, tcp).await?;
            return self.send_on(request, tls).await;
        }
        self.send_on(request, tcp).await
    }

    /// Sends one request on a connection of its own, which ends with the response.
    async fn send_on<S>(
        &self,
        request: &FetchRequest,
        stream: S,
    ) -> Result<FetchResponse, FetchError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let url = &request.url;
        let broken = |error: hyper::Error| {
            let words = format!("the connection failed: {error}");
            FetchError::new(url, FetchErrorKind::Unreachable, words)
        };
        let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(MAX_RESPONSE_HEAD_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        let mut out = http::Request::new(Full::new(request.body.clone()));
        *out.method_mut() = request.method.clone();
        *out.uri_mut() = url.request_target().parse().unwrap_or_default();
        *out.headers_mut() = request.headers.clone();
        let host = HeaderValue::from_str(url.authority());
        let host = host.map_err(|_| {
            FetchError::new(
                url,
                FetchErrorKind::Forbidden,
                "the host name contains characters that an HTTP header cannot contain",
            )
        })?;
        out.headers_mut().insert(header::HOST, host);
        let answer = async {
            let response = sender.send_request(out).await.map_err(broken)?;
            self.read_response(url, response).await
        };
        let mut answer = std::pin::pin!(answer);
        tokio::select! {
            answer = &mut answer => answer,
            // The connection may finish before the last bytes of the body are read.
            _ = connection => answer.await,
        }
    }

    async fn read_response(
        &self,
        url: &Url,
        response: Response<Incoming>,
    ) -> Result<FetchResponse, FetchError> {
        let (head, body) = response.into_parts();
        let body = Limited::new(body, self.limits.max_body_bytes)
            .collect()
            .await;
        let body = body.map_err(|error| {
            if error.is::<LengthLimitError>() {
                let words = format!(
                    "the response is longer than {} bytes",
                    self.limits.max_body_bytes
                );
                return FetchError::new(url, FetchErrorKind::TooLarge, words);
            }
            let words = format!("the connection failed: {error}");
            FetchError::new(url, FetchErrorKind::Unreachable, words)
        })?;
        Ok(FetchResponse {
            url: url.clone(),
            status: head.status,
            headers: head.headers,
            body: body.to_bytes().into(),
        })
    }
}
