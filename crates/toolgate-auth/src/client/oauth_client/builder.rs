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

/// Builder of an OAuth client ([`OAuthClient`]). By default it uses the stored credential and starts no sign-in.
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

    /// Sets the key of the credential in the store. Default: the URL of the server.
    pub fn key(mut self, key: &str) -> OAuthClientBuilder {
        self.0.key = Some(key.to_owned());
        self
    }

    /// Sets the client name for dynamic registration. Default: "Toolgate".
    pub fn name(mut self, name: &str) -> OAuthClientBuilder {
        self.0.identity.name = name.to_owned();
        self
    }

    /// Sets a preregistered client and the issuer that it belongs to; `None` for the issuer that the server names. If
    /// the server names no issuer (2025-03-26), a client without a user needs one here. Client credentials are never
    /// sent to an authorization server that nobody named.
    pub fn client(mut self, issuer: Option<&str>, client: RegisteredClient) -> OAuthClientBuilder {
        self.0.identity.configured = Some((issuer.map(str::to_owned), client));
        self
    }

    /// Sets the URL of a Client ID Metadata Document: `https`, with a path. It is the client id at authorization
    /// servers that support these documents.
    pub fn client_document(mut self, url: Url) -> OAuthClientBuilder {
        self.0.identity.document_url = Some(url);
        self
    }

    /// Sets the credential store. Default: a [`MemoryCredentialStore`].
    pub fn store(self, store: impl CredentialStore) -> OAuthClientBuilder {
        self.shared_store(Arc::new(store))
    }

    /// Sets a credential store that is shared with others.
    pub fn shared_store(mut self, store: Arc<dyn CredentialStore>) -> OAuthClientBuilder {
        self.0.store = store;
        self
    }

    /// Sets which addresses the server may name; see [`AddressPolicy`].
    pub fn address_policy(mut self, reach: AddressPolicy) -> OAuthClientBuilder {
        self.0.policy = reach;
        self
    }

    /// Sets the size limits and timeouts of requests.
    pub fn limits(mut self, limits: FetchLimits) -> OAuthClientBuilder {
        self.0.limits = limits;
        self
    }

    /// Signs users in when needed (authorization code grant).
    pub fn sign_in(mut self, person: impl SignIn) -> OAuthClientBuilder {
        self.0.grant_type = GrantType::AuthorizationCode(Arc::new(person));
        self
    }

    /// Sets the sign-in instruction for error messages if no sign-in is possible here, such as `run: my-app login`.
    pub fn sign_in_hint(mut self, words: &str) -> OAuthClientBuilder {
        self.0.sign_in_hint = Some(words.to_owned());
        self
    }

    /// Sets the instruction for error messages if dynamic registration is impossible, such as
    /// `write client_id in my-app.toml`.
    pub fn registration_hint(mut self, words: &str) -> OAuthClientBuilder {
        self.0.identity.registration_hint = Some(words.to_owned());
        self
    }

    /// Uses the client credentials grant of the configured client.
    pub fn client_credentials(mut self) -> OAuthClientBuilder {
        self.0.grant_type = GrantType::ClientCredentials;
        self
    }

    /// Uses enterprise-managed authorization.
    pub fn enterprise(mut self, enterprise: EnterpriseAuthorization) -> OAuthClientBuilder {
        self.0.grant_type = GrantType::Enterprise(enterprise);
        self
    }

    /// Uses workload identity.
    pub fn workload(mut self, workload: WorkloadIdentity) -> OAuthClientBuilder {
        self.0.grant_type = GrantType::Workload(workload);
        self
    }

    /// Always uses DPoP-bound tokens. By default only if the server requires them.
    pub fn always_dpop(mut self) -> OAuthClientBuilder {
        self.0.dpop = DpopPolicy::Always;
        self
    }

    /// Sets the exact scopes to request. Default: those that the server demands.
    pub fn scopes(mut self, scopes: ScopeSet) -> OAuthClientBuilder {
        self.0.scopes = Some(scopes);
        self
    }

    /// Requests no refresh token, so that no credential outlives the access token.
    pub fn without_refresh_token(mut self) -> OAuthClientBuilder {
        self.0.identity.wants_refresh_token = false;
        self
    }

    /// Builds the client. It sends nothing yet.
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
