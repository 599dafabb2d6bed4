//! The one way to an address that a peer named: metadata, keys, tokens.
//!
//! - `reach`: which addresses of the network may be gone to.
//! - `connect`: to the very address that was checked.
//!
//! It is `https`, or loopback where the one who asks is on loopback too. The body, the head and the time have limits.
//! A redirect is followed within its origin only, and never by a request that carries something.

mod connect;
mod error;
mod reach;
#[cfg(test)]
mod tests;

pub use error::{FetchError, FetchErrorKind};
pub use reach::Reach;

use crate::Url;
use bytes::Bytes;
use connect::Names;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::{net::IpAddr, time::Duration};
use tokio::io::{AsyncRead, AsyncWrite};
use toolgate_wire::json::{Json, Limits};

/// Most bytes that the head of a response may have.
const HEAD: usize = 64 << 10;

/// How much of a peer is waited for and read.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct FetchLimits {
    /// Longest time of one fetch with all its redirects; 10 s.
    pub time: Duration,
    /// Most bytes of a body; 1 MiB.
    pub body: usize,
    /// Most redirects of one request, all on its origin; 3.
    pub redirects: usize,
}

impl Default for FetchLimits {
    fn default() -> FetchLimits {
        FetchLimits {
            time: Duration::from_secs(10),
            body: 1 << 20,
            redirects: 3,
        }
    }
}

/// Fetches what peers name.
///
/// ```
/// use toolgate_auth::{Url, fetch::{FetchLimits, Fetcher, Reach, Request}};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let url = Url::parse("https://login.example.com/.well-known/oauth-authorization-server")?;
/// let fetcher = Fetcher::new(Reach::public(), FetchLimits::default());
/// let fetched = fetcher.fetch(Request::get(url)).await?;
/// println!("HTTP {}, {} bytes", fetched.status, fetched.body.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Fetcher {
    reach: Reach,
    limits: FetchLimits,
    names: Names,
    homes: Vec<Url>,
}

/// What is sent.
#[derive(Clone)]
pub struct Request {
    /// `GET` or `POST`.
    pub method: Method,
    /// Where to.
    pub url: Url,
    /// What goes along; `Host` and `Content-Length` are added.
    pub headers: HeaderMap,
    /// Empty for a `GET`.
    pub body: Bytes,
}

impl Request {
    /// Asks for a document of JSON.
    pub fn get(url: Url) -> Request {
        Request {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
        .with(header::ACCEPT, "application/json")
    }

    /// Sends a form.
    pub fn form<'a>(url: Url, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Request {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(pairs);
        Request {
            method: Method::POST,
            url,
            headers: HeaderMap::new(),
            body: form.finish().into(),
        }
        .with(header::ACCEPT, "application/json")
        .with(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
    }

    /// Sends JSON.
    pub fn json(url: Url, value: &serde_json::Value) -> Request {
        Request {
            method: Method::POST,
            url,
            headers: HeaderMap::new(),
            body: value.to_string().into(),
        }
        .with(header::ACCEPT, "application/json")
        .with(header::CONTENT_TYPE, "application/json")
    }

    /// The same with a header that is no secret.
    #[must_use]
    pub fn with(mut self, name: header::HeaderName, value: &'static str) -> Request {
        self.headers.insert(name, HeaderValue::from_static(value));
        self
    }

    /// Whether it carries something that only the one who was asked may have.
    fn is_bare(&self) -> bool {
        self.method == Method::GET
            && self.body.is_empty()
            && !self.headers.contains_key(header::AUTHORIZATION)
    }
}

/// What came back, whole.
pub struct Fetched {
    /// Where from, after redirects.
    pub url: Url,
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, within the limit.
    pub body: Vec<u8>,
}

impl Fetched {
    /// The body as strict JSON, an object or not.
    ///
    /// # Errors
    /// [`FetchErrorKind::Malformed`]
    pub fn json(self) -> Result<Json, FetchError> {
        let read = Json::read(self.body, &Limits::default());
        read.map_err(|bad| FetchError::new(&self.url, FetchErrorKind::Malformed, bad.to_string()))
    }
}

impl Fetcher {
    /// One that goes as far as `reach`. Nothing is opened yet.
    pub fn new(reach: Reach, limits: FetchLimits) -> Fetcher {
        Fetcher {
            reach,
            limits,
            names: Names::System,
            homes: Vec::new(),
        }
    }

    /// The same, which also goes to the origin of an address that the operator himself has set, wherever that is. There
    /// may be several.
    #[must_use]
    pub fn home(mut self, url: &Url) -> Fetcher {
        self.homes.push(url.clone());
        self
    }

    /// One for an address that the operator himself has set, and for what that one may name.
    pub fn at_home(url: &Url, limits: FetchLimits) -> Fetcher {
        Fetcher::new(Reach::of(url), limits).home(url)
    }

    /// Whether it would connect to that machine for an address.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn goes_to(&self, url: &Url, ip: IpAddr) -> Result<(), &'static str> {
        let reach = self.reach_for(url);
        reach.takes_scheme(url)?;
        reach.takes(ip)
    }

    /// How long one fetch may take.
    pub(crate) fn time(&self) -> Duration {
        self.limits.time
    }

    fn reach_for(&self, url: &Url) -> Reach {
        match self.homes.iter().any(|home| home.same_origin(url)) {
            true => self.reach.everywhere(),
            false => self.reach,
        }
    }

    /// Sends a request and reads the whole answer, whatever its status.
    ///
    /// # Errors
    /// [`FetchError`] says what kept it from an answer, with the origin and nothing of the query, headers and body.
    pub async fn fetch(&self, request: Request) -> Result<Fetched, FetchError> {
        let first = request.url.clone();
        match tokio::time::timeout(self.limits.time, self.hops(request)).await {
            Ok(fetched) => fetched,
            Err(_) => Err(self.late(&first)),
        }
    }

    /// The same, where a redirect is an answer like others.
    pub(crate) async fn fetch_here(&self, request: Request) -> Result<Fetched, FetchError> {
        let once = tokio::time::timeout(self.limits.time, self.once(&request)).await;
        once.unwrap_or_else(|_| Err(self.late(&request.url)))
    }

    fn late(&self, url: &Url) -> FetchError {
        let words = format!("no answer within {:?}", self.limits.time);
        FetchError::new(url, FetchErrorKind::Late, words)
    }

    async fn hops(&self, mut request: Request) -> Result<Fetched, FetchError> {
        let bare = request.is_bare();
        for _ in 0..=self.limits.redirects {
            let fetched = self.once(&request).await?;
            let led = fetched.headers.get(header::LOCATION);
            let (true, Some(to)) = (fetched.status.is_redirection(), led) else {
                return Ok(fetched);
            };
            let refused =
                |words: &str| FetchError::new(&request.url, FetchErrorKind::Redirect, words);
            if !bare {
                return Err(refused("it redirects a request that carries something"));
            }
            let to = to.to_str().ok().and_then(|to| request.url.follow(to).ok());
            let to = to.ok_or_else(|| refused("it redirects to no address"))?;
            if !to.same_origin(&request.url) {
                return Err(refused("it redirects to another origin"));
            }
            request.url = to;
        }
        let words = format!("it redirects more than {} times", self.limits.redirects);
        Err(FetchError::new(
            &request.url,
            FetchErrorKind::Redirect,
            words,
        ))
    }

    async fn once(&self, request: &Request) -> Result<Fetched, FetchError> {
        let url = &request.url;
        let tcp = self.names.connect(url, &self.reach_for(url)).await?;
        if url.is_https() {
            let tls = connect::tls(url, tcp).await?;
            return self.talk(request, tls).await;
        }
        self.talk(request, tcp).await
    }

    /// One request on a connection of its own. The connection is driven here, and ends with the answer.
    async fn talk<S>(&self, request: &Request, stream: S) -> Result<Fetched, FetchError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let url = &request.url;
        let broken = |error: hyper::Error| {
            FetchError::new(url, FetchErrorKind::Unreachable, error.to_string())
        };
        let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(HEAD)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        let mut out = http::Request::new(Full::new(request.body.clone()));
        *out.method_mut() = request.method.clone();
        *out.uri_mut() = url.target().parse().unwrap_or_default();
        *out.headers_mut() = request.headers.clone();
        let host = HeaderValue::from_str(url.authority());
        let host = host.map_err(|_| {
            FetchError::new(url, FetchErrorKind::Refused, "its host cannot be sent")
        })?;
        out.headers_mut().insert(header::HOST, host);
        let answer = async {
            let response = sender.send_request(out).await.map_err(broken)?;
            self.whole(url, response).await
        };
        let mut answer = std::pin::pin!(answer);
        tokio::select! {
            answer = &mut answer => answer,
            // It may end with the last byte of the body still to be read by us.
            _ = connection => answer.await,
        }
    }

    async fn whole(&self, url: &Url, response: Response<Incoming>) -> Result<Fetched, FetchError> {
        let (head, body) = response.into_parts();
        let body = Limited::new(body, self.limits.body).collect().await;
        let body = body.map_err(|error| {
            if error.is::<LengthLimitError>() {
                let words = format!("its answer is over {} bytes", self.limits.body);
                return FetchError::new(url, FetchErrorKind::TooBig, words);
            }
            FetchError::new(url, FetchErrorKind::Unreachable, error.to_string())
        })?;
        Ok(Fetched {
            url: url.clone(),
            status: head.status,
            headers: head.headers,
            body: body.to_bytes().into(),
        })
    }
}
