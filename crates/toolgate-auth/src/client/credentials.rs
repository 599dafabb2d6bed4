//! What a transport asks: headers before a request, and what to do after a refusal.

use super::AuthError;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode, Uri};

/// A request that is about to leave.
#[derive(Clone, Copy, Debug)]
pub struct Leaving<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Where it goes; always the origin of the server.
    pub uri: &'a Uri,
    /// What it is for, where somebody waits for it: a method of the protocol, and a name. Step-ups are counted by it.
    pub operation: Option<&'a str>,
}

/// A response that says no.
#[derive(Clone, Copy, Debug)]
pub struct Refusal<'a> {
    /// 401 or 403.
    pub status: StatusCode,
    /// The headers of the response.
    pub headers: &'a HeaderMap,
    /// The headers that [`Credentials::headers`] gave for the request.
    pub sent: &'a HeaderMap,
    /// How often this request was refused before.
    pub before: u32,
}

/// What to do after a refusal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Again {
    /// Send the request once more, with headers asked for anew.
    Yes,
    /// The refusal stands.
    No,
}

/// Who a transport is to a server. The headers go to the origin of the server only.
///
/// Most programs use a [`Login`](super::Login). One of your own needs two methods:
///
/// ```
/// use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
/// use toolgate_auth::client::{Again, AuthError, Credentials, Leaving, Refusal};
/// # type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
///
/// /// A token that something else keeps fresh.
/// struct Given;
///
/// impl Credentials for Given {
///     fn headers<'a>(&'a self, _: Leaving<'a>) -> BoxFuture<'a, Result<HeaderMap, AuthError>> {
///         Box::pin(async {
///             let mut value = HeaderValue::from_static("Bearer s3cret");
///             value.set_sensitive(true);
///             Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
///         })
///     }
///
///     fn refused<'a>(
///         &'a self,
///         _: Leaving<'a>,
///         _: Refusal<'a>,
///     ) -> BoxFuture<'a, Result<Again, AuthError>> {
///         Box::pin(async { Ok(Again::No) })
///     }
/// }
/// ```
pub trait Credentials: Send + Sync + 'static {
    /// The headers of a request, made for it alone.
    ///
    /// # Errors
    /// There was a token, and it cannot be had again.
    fn headers<'a>(&'a self, request: Leaving<'a>) -> BoxFuture<'a, Result<HeaderMap, AuthError>>;

    /// Does what a refusal asks for.
    ///
    /// # Errors
    /// It cannot be done; the words say what a person can do.
    fn refused<'a>(
        &'a self,
        request: Leaving<'a>,
        refusal: Refusal<'a>,
    ) -> BoxFuture<'a, Result<Again, AuthError>>;

    /// Sees the headers of every other response.
    fn answered(&self, _headers: &HeaderMap) {}

    /// Whether a request may have to wait for a person.
    fn may_wait(&self) -> bool {
        true
    }
}
