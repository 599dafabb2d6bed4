//! Interface between HTTP transports and credentials.

use super::AuthError;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode, Uri};

/// Outgoing HTTP request to an MCP server that needs credentials.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CredentialRequest<'a> {
    /// HTTP method of the request.
    pub method: &'a Method,
    /// Request URL; always on the origin of the server.
    pub uri: &'a Uri,
    /// MCP method and item name if a caller waits for the response. Step-up attempts are counted per operation.
    pub operation: Option<&'a str>,
}

impl<'a> CredentialRequest<'a> {
    /// Creates the description of a request that needs credentials.
    pub fn new(
        method: &'a Method,
        uri: &'a Uri,
        operation: Option<&'a str>,
    ) -> CredentialRequest<'a> {
        CredentialRequest {
            method,
            uri,
            operation,
        }
    }
}

/// HTTP response of an MCP server that rejects a request with 401 or 403.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RejectedResponse<'a> {
    /// HTTP status of the rejection, 401 or 403.
    pub status: StatusCode,
    /// Headers of the rejection, including `WWW-Authenticate`.
    pub headers: &'a HeaderMap,
    /// Authentication headers that [`CredentialProvider::headers`] returned for the rejected request.
    pub sent_headers: &'a HeaderMap,
    /// Number of earlier rejections of the same request.
    pub previous_rejections: u32,
}

impl<'a> RejectedResponse<'a> {
    /// Creates the description of a rejected request.
    pub fn new(
        status: StatusCode,
        headers: &'a HeaderMap,
        sent_headers: &'a HeaderMap,
        previous_rejections: u32,
    ) -> RejectedResponse<'a> {
        RejectedResponse {
            status,
            headers,
            sent_headers,
            previous_rejections,
        }
    }
}

/// Decision after a rejected request: retry or give up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RetryDecision {
    /// The request is sent again with new headers.
    Retry,
    /// The rejection is returned to the caller.
    GiveUp,
}

/// Credentials of an HTTP transport at one MCP server. The headers are sent only to the origin of the server.
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
    /// Returns the authentication headers for one HTTP request. They are valid for this request only.
    ///
    /// # Errors
    /// A token existed and cannot be obtained again.
    fn headers<'a>(
        &'a self,
        request: CredentialRequest<'a>,
    ) -> BoxFuture<'a, Result<HeaderMap, AuthError>>;

    /// Handles a 401 or 403, for example by refreshing the token or by a step-up authorization.
    ///
    /// # Errors
    /// The challenge cannot be satisfied; the text says what the user can do.
    fn on_rejection<'a>(
        &'a self,
        request: CredentialRequest<'a>,
        refusal: RejectedResponse<'a>,
    ) -> BoxFuture<'a, Result<RetryDecision, AuthError>>;

    /// Observes the headers of every response that is not a rejection.
    fn on_response(&self, _headers: &HeaderMap) {}

    /// Returns whether a request to the server may have to wait until a user signs in.
    fn may_wait_for_user(&self) -> bool {
        true
    }
}
