//! Builder of an OAuth client.

use super::{
    super::{
        CredentialStore, EnterpriseAuthorization, MemoryCredentialStore, RegisteredClient,
        ScopeSet, SignIn, WorkloadIdentity, registration::ClientIdentity,
    },
    DpopPolicy, GrantType, OAuthClient, OAuthClientInner, OAuthClientState,
};
use crate::{
    Url,
    fetch::{AddressPolicy, FetchLimits, PeerFetcher},
};
use std::sync::{Arc, Mutex};

/// Builder of an [`OAuthClient`]. By default it uses the stored credential and starts no sign-in.
///
/// ```
/// # use toolgate_auth::{Url, client::{OAuthClient, MemoryCredentialStore}};
/// # fn main() -> Result<(), toolgate_auth::InvalidUrl> {
/// let login = OAuthClient::builder(Url::parse("https://tools.example/mcp")?)
///     .name("my-app")
///     .store(MemoryCredentialStore::new())
///     .build();
/// # drop(login);
/// # Ok(())
/// # }
/// ```
#[must_use = "call build to create the client"]
pub struct OAuthClientBuilder(OAuthClientSettings);

/// Settings of an OAuth client.
pub(super) struct OAuthClientSettings {
    pub(super) server: Url,
    /// Key of the credential in the store; the URL of the server if none is set.
    key: Option<String>,
    pub(super) policy: AddressPolicy,
    limits: FetchLimits,
    pub(super) identity: ClientIdentity,
    pub(super) store: Arc<dyn CredentialStore>,
    pub(super) grant_type: GrantType,
    pub(super) dpop: DpopPolicy,
    /// Requested scopes, instead of those that the server demands.
    pub(super) scopes: Option<ScopeSet>,
    /// Instruction for the user if no sign-in is possible here.
    pub(super) sign_in_hint: Option<String>,
}

impl OAuthClientSettings {
    /// Returns the key of the credential in the store.
    pub(super) fn key(&self) -> &str {
        self.key.as_deref().unwrap_or(self.server.as_str())
    }
}

impl OAuthClientBuilder {
    pub(super) fn new(server: Url) -> OAuthClientBuilder {
        OAuthClientBuilder(OAuthClientSettings {
            policy: AddressPolicy::for_server(&server),
            server,
            key: None,
            limits: FetchLimits::default(),
            identity: ClientIdentity {
                name: "Toolgate".to_owned(),
                wants_refresh_token: true,
                ..ClientIdentity::default()
            },
            store: Arc::new(MemoryCredentialStore::new()),
            grant_type: GrantType::StoredOnly,
            dpop: DpopPolicy::WhenRequired,
            scopes: None,
            sign_in_hint: None,
        })
    }

    /// Sets the key under which the store keeps the credential. Default: the URL of the server.
    pub fn key(mut self, key: &str) -> OAuthClientBuilder {
        self.0.key = Some(key.to_owned());
        self
    }

    /// Sets the client name for dynamic client registration ([RFC 7591]). Default: "Toolgate".
    ///
    /// [RFC 7591]: https://www.rfc-editor.org/rfc/rfc7591
    pub fn name(mut self, name: &str) -> OAuthClientBuilder {
        self.0.identity.name = name.to_owned();
        self
    }

    /// Sets a preregistered OAuth client and the issuer it belongs to; `None` for the issuer that the server names. If
    /// the server names no issuer (2025-03-26), a client without a user needs one here. Client credentials are never
    /// sent to an authorization server that nobody named.
    pub fn client(mut self, issuer: Option<&str>, client: RegisteredClient) -> OAuthClientBuilder {
        self.0.identity.configured = Some((issuer.map(str::to_owned), client));
        self
    }

    /// Sets the URL of a Client ID Metadata Document: `https`, with a path. The URL is the client id at authorization
    /// servers that support these documents.
    pub fn client_document(mut self, url: Url) -> OAuthClientBuilder {
        self.0.identity.document_url = Some(url);
        self
    }

    /// Sets the store of the OAuth credential. Default: a [`MemoryCredentialStore`].
    pub fn store(self, store: impl CredentialStore) -> OAuthClientBuilder {
        self.shared_store(Arc::new(store))
    }

    /// Sets a credential store that several OAuth clients share.
    pub fn shared_store(mut self, store: Arc<dyn CredentialStore>) -> OAuthClientBuilder {
        self.0.store = store;
        self
    }

    /// Sets the network addresses that URLs from the server may lead to; see [`AddressPolicy`].
    pub fn address_policy(mut self, policy: AddressPolicy) -> OAuthClientBuilder {
        self.0.policy = policy;
        self
    }

    /// Sets the size limits and timeouts of HTTP requests to the authorization server.
    pub fn limits(mut self, limits: FetchLimits) -> OAuthClientBuilder {
        self.0.limits = limits;
        self
    }

    /// Sets the user agent that signs users in when needed (authorization code grant).
    pub fn sign_in(mut self, user_agent: impl SignIn) -> OAuthClientBuilder {
        self.0.grant_type = GrantType::AuthorizationCode(Arc::new(user_agent));
        self
    }

    /// Sets the instruction for error messages if no sign-in is possible here, such as `run: my-app login`.
    pub fn sign_in_hint(mut self, hint: &str) -> OAuthClientBuilder {
        self.0.sign_in_hint = Some(hint.to_owned());
        self
    }

    /// Sets the instruction for error messages if dynamic registration is impossible, such as
    /// `write client_id in my-app.toml`.
    pub fn registration_hint(mut self, hint: &str) -> OAuthClientBuilder {
        self.0.identity.registration_hint = Some(hint.to_owned());
        self
    }

    /// Sets the client credentials grant, with the configured client.
    pub fn client_credentials(mut self) -> OAuthClientBuilder {
        self.0.grant_type = GrantType::ClientCredentials;
        self
    }

    /// Sets enterprise-managed authorization as the grant type (identity assertion, ID-JAG).
    pub fn enterprise(mut self, enterprise: EnterpriseAuthorization) -> OAuthClientBuilder {
        self.0.grant_type = GrantType::Enterprise(enterprise);
        self
    }

    /// Sets workload identity as the grant type: an assertion of the platform.
    pub fn workload(mut self, workload: WorkloadIdentity) -> OAuthClientBuilder {
        self.0.grant_type = GrantType::Workload(workload);
        self
    }

    /// Requests DPoP-bound tokens ([RFC 9449]) always. Default: only if the server requires them.
    ///
    /// [RFC 9449]: https://www.rfc-editor.org/rfc/rfc9449
    pub fn always_dpop(mut self) -> OAuthClientBuilder {
        self.0.dpop = DpopPolicy::Always;
        self
    }

    /// Sets the exact OAuth scopes to request. Default: those that the server demands.
    pub fn scopes(mut self, scopes: ScopeSet) -> OAuthClientBuilder {
        self.0.scopes = Some(scopes);
        self
    }

    /// Requests no refresh token, so that no credential outlives the access token.
    pub fn without_refresh_token(mut self) -> OAuthClientBuilder {
        self.0.identity.wants_refresh_token = false;
        self
    }

    /// Builds the OAuth client. It sends nothing yet.
    pub fn build(self) -> OAuthClient {
        let set = self.0;
        OAuthClient(Arc::new(OAuthClientInner {
            fetcher: PeerFetcher::new(set.policy, set.limits.clone()).permit_origin_of(&set.server),
            settings: set,
            state: Mutex::new(OAuthClientState::default()),
            flight: Arc::default(),
        }))
    }
}
