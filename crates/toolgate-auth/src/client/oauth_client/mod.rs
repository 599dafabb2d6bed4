//! OAuth client of one MCP server.
//!
//! - `builder`: settings. `refresh`: token refresh. `authorize`: when a new authorization starts; `flow` runs it,
//!   `browser` is its browser part. `discover`: discovery. `step_up`: scopes that the next sign-in adds.
//! - `credential_provider`: interface for transports. `revoke`: sign-out and revocation. `failure_cache`: cache of recent failures.

mod authorize;
mod browser;
mod builder;
mod credential_provider;
mod discover;
mod failure_cache;
mod flow;
mod refresh;
mod revoke;
mod step_up;

pub use builder::OAuthClientBuilder;
use builder::OAuthClientSettings;
use failure_cache::RecentFailures;
pub use revoke::SignedOut;

use super::{
    AuthError, AuthorizationServerMetadata, CredentialStore, EnterpriseAuthorization,
    OAuthCredential, ScopeSet, SignIn, WorkloadIdentity, dpop::DpopKey,
};
use crate::{Secret, Url, fetch::PeerFetcher};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Time for which a refusal of an authorization server stands if no user is involved.
const FLOW_REFUSAL_PAUSE: Duration = Duration::from_secs(30);

/// Grant type of an OAuth client.
#[derive(Clone)]
enum GrantType {
    /// No sign-in: uses only the stored credential.
    StoredOnly,
    AuthorizationCode(Arc<dyn SignIn>),
    ClientCredentials,
    Enterprise(EnterpriseAuthorization),
    Workload(WorkloadIdentity),
}

/// DPoP policy of an OAuth client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum DpopPolicy {
    /// If the server requires it.
    WhenRequired,
    Always,
}

/// OAuth 2.1 client of one MCP server: discovers its authorization server, signs in, refreshes tokens and steps up.
/// Clones share the credential. Authorization flows are single-flight: concurrent requests use the result of the
/// running one.
#[derive(Clone)]
pub struct OAuthClient(Arc<OAuthClientInner>);

struct OAuthClientInner {
    settings: OAuthClientSettings,
    fetcher: PeerFetcher,
    state: Mutex<OAuthClientState>,
    flight: Arc<tokio::sync::Mutex<()>>,
}

/// Guard of the single flight: the right to run an authorization flow.
type FlightGuard = tokio::sync::OwnedMutexGuard<()>;

#[derive(Default)]
struct OAuthClientState {
    /// True if the store was read.
    loaded: bool,
    grant: Option<OAuthCredential>,
    binding: Option<Arc<DpopKey>>,
    /// Metadata of the authorization server from the last discovery.
    server: Option<Arc<AuthorizationServerMetadata>>,
    /// Scopes of the last request, granted or not.
    requested_scopes: ScopeSet,
    /// Token that replaced a rejected one, until the server accepts it.
    unconfirmed: Option<Secret>,
    /// Step-up attempts per operation, and the time of the first.
    step_ups: HashMap<String, (u32, Instant)>,
    /// Last refusal that would repeat at once, and the additional scopes that were requested.
    last_refusal: Option<(Instant, Option<String>, AuthError)>,
    failures: RecentFailures,
}

impl OAuthClient {
    /// Returns a builder of an OAuth client for the MCP server at a URL. It sends nothing yet.
    pub fn builder(server: Url) -> OAuthClientBuilder {
        OAuthClientBuilder::new(server)
    }

    /// Returns the current OAuth credential, fresh or not; `None` if a sign-in is needed.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn credential(&self) -> Result<Option<OAuthCredential>, AuthError> {
        self.load().await?;
        Ok(self.lock_state().grant.clone())
    }

    /// Waits until no other authorization flow runs.
    async fn acquire_flight(&self) -> FlightGuard {
        self.0.flight.clone().lock_owned().await
    }

    fn lock_state(&self) -> MutexGuard<'_, OAuthClientState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the store, once.
    async fn load(&self) -> Result<(), AuthError> {
        if self.lock_state().loaded {
            return Ok(());
        }
        let kept = self.0.settings.store.grant(self.0.settings.key()).await?;
        let mut state = self.lock_state();
        if !state.loaded {
            state.loaded = true;
            adopt_credential(&mut state, kept)?;
        }
        Ok(())
    }

    /// Stores or deletes the credential, in memory and in the store. Requires the refresh lock: a concurrent refresh
    /// would store another credential.
    async fn store_credential(&self, grant: Option<OAuthCredential>) -> Result<(), AuthError> {
        {
            let mut state = self.lock_state();
            state.loaded = true;
            adopt_credential(&mut state, grant.clone())?;
        }
        self.0
            .settings
            .store
            .put(self.0.settings.key(), grant)
            .await?;
        Ok(())
    }

    /// Returns the DPoP key, generating it on first use.
    fn dpop_key(&self) -> Result<Arc<DpopKey>, AuthError> {
        let mut state = self.lock_state();
        if let Some(binding) = &state.binding {
            return Ok(binding.clone());
        }
        let binding = Arc::new(DpopKey::new(None)?);
        state.binding = Some(binding.clone());
        Ok(binding)
    }
}

fn adopt_credential(
    state: &mut OAuthClientState,
    grant: Option<OAuthCredential>,
) -> Result<(), AuthError> {
    if let Some(key) = grant.as_ref().and_then(|grant| grant.dpop_key.as_ref()) {
        let same = state
            .binding
            .as_ref()
            .is_some_and(|binding| binding.stored.matches(key.reveal()));
        if !same {
            state.binding = Some(Arc::new(DpopKey::new(Some(key))?));
        }
    }
    state.failures.forget_other_refresh(grant.as_ref());
    state.grant = grant;
    Ok(())
}
