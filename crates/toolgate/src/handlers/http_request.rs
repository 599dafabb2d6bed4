//! HTTP request of a call, in the context of its handler.

use super::Cx;
use crate::edge::http::HttpRequestParts;
use http::HeaderMap;
use std::sync::LazyLock;

/// Headers of a call that did not arrive over HTTP.
static NO_HEADERS: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);

impl Cx {
    /// Returns the HTTP headers of the request that carried this call; no headers on stdio.
    ///
    /// Headers with credentials are left out: `Authorization`, `Proxy-Authorization`, `Cookie` and `DPoP`. The identity
    /// that they prove is [`Cx::caller`]. Do not derive permissions from a header that any client can set.
    ///
    /// ```
    /// use toolgate::{Cx, tool};
    ///
    /// /// Tells the language of the user.
    /// #[tool(read_only)]
    /// fn language(cx: Cx) -> String {
    ///     let header = cx.headers().get("accept-language");
    ///     header.and_then(|value| value.to_str().ok()).unwrap_or("en").to_owned()
    /// }
    /// ```
    pub fn headers(&self) -> &HeaderMap {
        let parts = HttpRequestParts::of(self.call());
        parts.map_or(&NO_HEADERS, HttpRequestParts::headers)
    }

    /// Returns the id of the MCP session over HTTP. `None` on stdio, and in 2026-07-28, which has no sessions. Treat it
    /// as a secret: together with a caller's credentials it gives access to the session.
    pub fn session_id(&self) -> Option<&str> {
        HttpRequestParts::of(self.call())?.session_id()
    }

    /// Returns a value that middleware in front of the HTTP service put into the extensions of the request; `None` on
    /// stdio.
    ///
    /// ```
    /// use toolgate::{Cx, ToolError, tool};
    ///
    /// /// Tenant of the request. A `tower` middleware inserts it: `request.extensions_mut().insert(Tenant(…))`.
    /// #[derive(Clone)]
    /// struct Tenant(String);
    ///
    /// /// Tells the tenant.
    /// #[tool(read_only)]
    /// fn tenant(cx: Cx) -> Result<String, ToolError> {
    ///     let tenant = cx.extension::<Tenant>().ok_or_else(|| ToolError::new("there is no tenant"))?;
    ///     Ok(tenant.0.clone())
    /// }
    /// ```
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        HttpRequestParts::of(self.call())?.extensions().get()
    }
}
