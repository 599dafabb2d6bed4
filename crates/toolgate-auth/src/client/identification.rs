//! Identification of a user by a sign-in at an authorization server.

use super::{
    AuthError, AuthErrorKind, DiscoveredResource, RegisteredClient, ScopeSet, SignIn,
    authorization_code::AuthorizationRequest, discovery, error::sanitize_for_display,
    token_endpoint::TokenEndpoint,
};
use crate::{
    Secret, Url,
    fetch::{AddressPolicy, FetchLimits, PeerFetcher},
};

/// Sign-in of a user only to identify them: an authorization code flow without storage and refresh. It returns an
/// access token for a resource, which that resource verifies like the token of any caller.
///
/// ```no_run
/// # use toolgate_auth::{Url, client::{ClientAuthentication, LoopbackBrowser, UserIdentification, RegisteredClient}};
/// # async fn who() -> Result<(), Box<dyn std::error::Error>> {
/// let issuer = Url::parse("https://login.example.com")?;
/// let resource = Url::parse("https://tools.example.com/mcp")?;
/// let client = RegisteredClient::new("pages", ClientAuthentication::None);
/// let browser = LoopbackBrowser::new(|page| println!("who are you? tell it at {}", page.as_str()));
/// let token = UserIdentification::new(issuer, resource, client).token(&browser).await?;
/// # drop(token);
/// # Ok(())
/// # }
/// ```
pub struct UserIdentification {
    issuer: Url,
    resource: Url,
    client: RegisteredClient,
    scopes: ScopeSet,
    reach: AddressPolicy,
    limits: FetchLimits,
}

impl UserIdentification {
    /// Creates the identification of users at an issuer that the operator configured. The access token is for
    /// `resource`.
    pub fn new(issuer: Url, resource: Url, client: RegisteredClient) -> UserIdentification {
        UserIdentification {
            reach: AddressPolicy::for_server(&issuer),
            issuer,
            resource,
            client,
            scopes: ScopeSet::default(),
            limits: FetchLimits::default(),
        }
    }

    /// Sets the scopes that the identification requests; none by default.
    #[must_use]
    pub fn scopes(mut self, scopes: ScopeSet) -> UserIdentification {
        self.scopes = scopes;
        self
    }

    /// Sets the network addresses that the issuer's URLs may lead to. Default: [`AddressPolicy::for_server`] the
    /// issuer.
    #[must_use]
    pub fn reach(mut self, policy: AddressPolicy) -> UserIdentification {
        self.reach = policy;
        self
    }

    /// Sets the size limits and timeouts of HTTP requests to the issuer.
    #[must_use]
    pub fn limits(mut self, limits: FetchLimits) -> UserIdentification {
        self.limits = limits;
        self
    }

    /// Signs the user in at the issuer and returns the access token.
    ///
    /// # Errors
    /// The issuer is unreachable or unsafe, the redirect did not arrive, or the sign-in was refused.
    pub async fn token(&self, user_agent: &dyn SignIn) -> Result<Secret, AuthError> {
        let fetcher =
            PeerFetcher::new(self.reach, self.limits.clone()).permit_origin_of(&self.issuer);
        let server = discovery::issuer(&fetcher, self.issuer.as_str()).await?;
        let server = server.ok_or_else(|| {
            let words = format!(
                "the authorization server {} publishes no metadata (RFC 8414 or OpenID Connect Discovery), so sign-in there is impossible; check the URL of the authorization server",
                sanitize_for_display(self.issuer.as_str())
            );
            AuthError::new(AuthErrorKind::Unsupported, words)
        })?;
        let found = DiscoveredResource {
            resource: self.resource.as_str().to_owned(),
            scopes: None,
            requires_dpop: false,
            is_fallback: false,
            server,
        };
        let visit = user_agent.begin(None).await?;
        let pending = AuthorizationRequest::new(&found, &self.client, visit.redirect_uri())?;
        let query = visit
            .open_and_wait(pending.authorization_url(&self.scopes, self.reach)?)
            .await?;
        let code = pending.validate_redirect(&query)?;
        let endpoint = TokenEndpoint::from_metadata(&found.server, &self.client, &fetcher, None);
        let answer = pending.redeem(&code, &endpoint).await;
        Ok(answer.map_err(|no| no.error)?.access_token)
    }
}
