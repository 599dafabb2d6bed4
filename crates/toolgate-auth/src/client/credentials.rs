//! Interface between HTTP transports and credentials.

use super::AuthError;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode, Uri};

/// Outgoing request that needs credentials.
#[derive(Clone, Copy, Debug)]
pub struct CredentialRequest<'a> {
    /// HTTP method.
    pub method: &'a Method,
    /// Request URL; always on the origin of the server.
    pub uri: &'a Uri,
    /// MCP method and item name if a caller waits for the response. Step-up attempts are counted per operation.
    pub operation: Option<&'a str>,
}

/// Response that rejects a request with 401 or 403.
#[derive(Clone, Copy, Debug)]
pub struct RejectedResponse<'a> {
    /// HTTP status, 401 or 403.
    pub status: StatusCode,
    /// Headers of the response.
    pub headers: &'a HeaderMap,
    /// Headers that [`CredentialProvider::headers`] returned for the request.
    pub sent_headers: &'a HeaderMap,
    /// Number of earlier rejections of the same request.
    pub previous_rejections: u32,
}

/// Retry decision after a rejected request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RetryDecision {
    /// Send the request again with new headers.
    Retry,
    /// Report the rejection to the caller.
    GiveUp,
}

/// Credentials of a transport at one server. The headers are sent only to the origin of the server.
///
/// Most programs use the OAuth client ([`Login`](super::OAuthClient)). Your own provider needs two methods:
///
/// ```
/// use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
/// use toolgate_auth::client::{RetryDecision, AuthError, CredentialProvider, CredentialRequest, RejectedResponse};
/// # type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
///
/// /// A token that something else keeps fresh.
/// struct Given;
///
/// impl CredentialProvider for Given {
///     fn headers<'a>(&'a self, _: CredentialRequest<'a>) -> BoxFuture<'a, Result<HeaderMap, AuthError>> {
///         Box::pin(async {
///             let mut value = HeaderValue::from_static("TokenOwner s3cret");
///             value.set_sensitive(true);
///             Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
///         })
///     }
///
///     fn on_rejection<'a>(
///         &'a self,
///         _: CredentialRequest<'a>,
///         _: RejectedResponse<'a>,
///     ) -> BoxFuture<'a, Result<RetryDecision, AuthError>> {
///         Box::pin(async { Ok(RetryDecision::GiveUp) })
///     }
/// }
/// ```
pub trait CredentialProvider: Send + Sync + 'static {
    /// Returns the authentication headers of one request. They are valid for this request only.
    ///
    /// # Errors
    /// A token existed and cannot be obtained again.
    fn headers<'a>(
        &'a self,
        request: CredentialRequest<'a>,
    ) -> BoxFuture<'a, Result<HeaderMap, AuthError>>;

    /// Handles a rejected request, for example by refreshing the token or by a step-up authorization.
    ///
    /// # Errors
    /// The challenge cannot be satisfied; the text says what the user can do.
    fn on_rejection<'a>(
        &'a self,
        request: CredentialRequest<'a>,
        refusal: RejectedResponse<'a>,
    ) -> BoxFuture<'a, Result<RetryDecision, AuthError>>;

    /// Observes the headers of every other response.
    fn on_response(&self, _headers: &HeaderMap) {}

    /// Returns whether a request may have to wait for a user to sign in.
    fn may_wait_for_user(&self) -> bool {
        true
    }
}
