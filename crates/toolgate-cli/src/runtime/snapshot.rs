//! Snapshot of one config: the policies, and everything that a reload swaps with them, as one value.

use crate::{
    authentication::{
        Authenticator, Authenticators, CallerTokens, TokenVerifier, http_caller_name,
    },
    config::{Config, IssuerSettings, TokenSource},
    console_roles::ConsoleRoles,
    notify::Notifier,
    oauth::{IdentityIssuers, SIGN_IN_PATH, SignInInstructions, SignInLinks, SignInPages},
    runtime::base_url::BaseUrl,
    runtime::call_feed::CallFeed,
    runtime::compose,
    runtime::instructions::VisibleInstructions,
    runtime::passkeys::passkey_settings,
    runtime::search::ToolSearch,
    servers::{ServerLease, ServerSupervisor},
    telemetry::GatewayTelemetry,
    tls::ListenerTls,
};
use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use toolgate::{aggregate::Aggregate, edge::http::HostGuard};
use toolgate_auth::{Secret, Url};
use toolgate_core::{Caller, ChangeFilter, ChangeStream, ItemKind, Service};
use toolgate_policy::{ApprovalService, AuditRecorder, ContentKeys, Pins, Policy, RateSharing};
use toolgate_protocol::memory_budget::MemoryBudget;

/// Backends that the policies of all snapshots share: audit log, call feed, approvals, store and pins.
pub(crate) struct PolicyBackends {
    pub(crate) recorder: Arc<AuditRecorder>,
    /// Keys that encrypt recorded contents; `None` for a command that records no calls.
    pub(crate) content_keys: Option<Arc<ContentKeys>>,
    pub(crate) feed: Arc<CallFeed>,
    pub(crate) approvals: Arc<ApprovalService>,
    /// Pinned definitions, without the settings of a config.
    pub(crate) pins: Pins,
    /// Metrics of the gateway; `None` for a command that only reads.
    pub(crate) telemetry: Option<Arc<GatewayTelemetry>>,
    /// The other gateways that have a part of each rate limit.
    pub(crate) rate_sharing: Option<Arc<RateSharing>>,
}

/// State that outlives every config: the backends of the policies, and the running servers.
pub(crate) struct GatewayResources {
    pub(crate) backends: PolicyBackends,
    pub(crate) supervisor: Arc<ServerSupervisor>,
    /// Memory budget of all messages in flight.
    pub(crate) budget: Arc<MemoryBudget>,
    /// Address of the listener, if there is one.
    pub(crate) address: Option<SocketAddr>,
    /// TLS of the listener, if it has TLS.
    pub(crate) tls: Option<Arc<ListenerTls>>,
    /// Directory of the stored credentials for servers.
    pub(crate) credentials_dir: PathBuf,
    /// Instructions for signing in to a server.
    pub(crate) instructions: SignInInstructions,
    /// Sign-in links for the users behind callers.
    pub(crate) sign_in_links: Arc<SignInLinks>,
    /// Tokens of callers, for servers that exchange them.
    pub(crate) caller_tokens: Arc<CallerTokens>,
}

/// Snapshot of one config. A call keeps the snapshot with which it began. A server that no snapshot uses any more
/// ends.
pub(crate) struct ConfigSnapshot {
    pub(crate) config: Config,
    /// The policies and their settings.
    pub(crate) policies: Policy,
    /// Pins of definitions, with the settings of the config.
    pub(crate) pins: Pins,
    /// Aggregate of the servers, without the policies.
    pub(crate) servers: Arc<Aggregate>,
    /// The aggregate with pinning: items are pinned as soon as they are listed.
    pub(crate) pinning_servers: Arc<dyn Service>,
    /// All known items, sanitized but not hidden, so that the operator sees why an item is withheld.
    pub(crate) known_items: Arc<dyn Service>,
    /// The servers behind the policies: the service for callers.
    pub(crate) service: Arc<dyn Service>,
    pub(crate) authenticators: Authenticators,
    token_verifier: TokenVerifier,
    /// Sign-in pages for the users behind callers, if they are reachable.
    pub(crate) sign_in_pages: Option<SignInPages>,
    /// Issuers at which those users can prove their identity.
    pub(crate) identity_issuers: IdentityIssuers,
    pub(crate) instructions: VisibleInstructions,
    /// Roles of people who sign in to the console.
    pub(crate) console_roles: Arc<ConsoleRoles>,
    /// Notifications of approval requests.
    pub(crate) notifiers: Arc<[Arc<Notifier>]>,
    leases: Vec<Arc<ServerLease>>,
    changes: Mutex<Option<ChangeStream>>,
}

impl GatewayResources {
    /// Builds the snapshot of a config as the successor of the active one. Unchanged servers keep running; new ones
    /// start.
    ///
    /// # Errors
    /// The config is invalid; the message says why. Nothing has changed in that case.
    pub(crate) async fn build_snapshot(
        &self,
        config: Config,
        before: Option<&ConfigSnapshot>,
    ) -> Result<ConfigSnapshot, String> {
        let token = match &config.token {
            Some(source) => Some(self.read_secret(&config, source).await?),
            None => None,
        };
        let tokens = before.map(|before| (&before.config, &before.token_verifier));
        let secrets = self.issuer_secrets(&config, |issuer| {
            issuer
                .introspection
                .as_ref()
                .map(|with| &with.client_secret)
        });
        let tokens = TokenVerifier::build(&config, secrets.await?, tokens)?;
        let authenticator = Authenticator {
            resource: tokens.resource_server.clone(),
            view: None,
            guard: self.host_guard(&config),
            proxies: Arc::new(config.proxies.clone()),
            requires_credentials: config.requires_authentication(),
            max_rejections: config.limits.auth_failures,
            caller_tokens: config
                .uses_token_exchange()
                .then(|| (self.caller_tokens.clone(), config.limits.callers_per_server)),
            token,
        };
        let authenticators = Authenticators::new(authenticator, &config.views);
        let secrets = self.issuer_secrets(&config, |issuer| {
            issuer.sign_in.as_ref()?.client_secret.as_ref()
        });
        let notifiers = self.notifiers(&config).await?;
        let users = IdentityIssuers::build(&config, secrets.await?);
        let pages = self.sign_in_pages(&config, &users);
        let leases = self.supervisor.lease(compose::server_specs(
            &config,
            &self.budget,
            &self.credentials_dir,
            (&self.instructions, pages.as_ref()),
        ));
        let servers = compose::aggregate(&config, &leases)?;
        let servers = Arc::new(match before {
            Some(before) => servers.inherit_lists(&before.servers),
            None => servers,
        });
        for (server, lease) in config.servers.iter().zip(&leases) {
            for kind in ItemKind::ALL {
                if let Some(listed) = lease.last_known(kind) {
                    servers.seed(&server.id, kind, listed);
                }
            }
        }
        let pins = super::pins::with_settings(&config, self.backends.pins.clone());
        let route = compose::gateway_policy(
            &config,
            &self.backends,
            pins.clone(),
            before.map(|before| &before.policies),
        );
        let known: Arc<dyn Service> = Arc::new(compose::KnownItems(servers.clone()));
        let tools: Arc<dyn Service> = Arc::new(route.inspection(known));
        let pinning: Arc<dyn Service> = Arc::new(route.pinning(servers.clone()));
        // This waits for the subscription only, not for a server.
        let heard = pinning.changes(ChangeFilter::all_lists(Caller::new("toolgate")));
        let service: Arc<dyn Service> = Arc::new(route.over(servers.clone()));
        let service = match &config.search {
            Some(settings) => Arc::new(ToolSearch::new(settings, &route, service)),
            None => service,
        };
        Ok(ConfigSnapshot {
            changes: Mutex::new(heard.await.ok()),
            service,
            instructions: VisibleInstructions {
                known: tools.clone(),
                access: route.access.clone(),
                max_bytes: config.limits.instructions_bytes,
            },
            notifiers,
            console_roles: Arc::new(ConsoleRoles::new(&config)),
            config,
            policies: route,
            pins,
            servers,
            pinning_servers: pinning,
            known_items: tools,
            authenticators,
            token_verifier: tokens,
            sign_in_pages: pages,
            identity_issuers: users,
            leases,
        })
    }

    /// Reads one secret of each issuer; `None` for an issuer without it.
    ///
    /// # Errors
    /// A secret cannot be read; the message says why.
    async fn issuer_secrets(
        &self,
        config: &Config,
        source: fn(&IssuerSettings) -> Option<&TokenSource>,
    ) -> Result<Vec<Option<Secret>>, String> {
        let mut secrets = Vec::new();
        for issuer in &config.auth.issuers {
            secrets.push(match source(issuer) {
                Some(source) => Some(self.read_secret(config, source).await?),
                None => None,
            });
        }
        Ok(secrets)
    }

    /// Builds the notifiers of a config.
    ///
    /// # Errors
    /// A secret cannot be read or used; the message says why.
    async fn notifiers(&self, config: &Config) -> Result<Arc<[Arc<Notifier>]>, String> {
        let within = Duration::from_secs(config.limits.start_seconds);
        let mut notifiers = Vec::new();
        for settings in &config.notify {
            let mut secrets = Vec::new();
            for source in settings.channel.secrets() {
                let read = self.supervisor.read_secret(&source.value, within).await;
                secrets.push(source.any_value(read).map_err(|error| error.to_string())?);
            }
            notifiers.push(Arc::new(Notifier::new(settings.clone(), secrets)?));
        }
        Ok(notifiers.into())
    }

    /// Reads a secret of the config from its source.
    ///
    /// # Errors
    /// The secret cannot be read; the message says why.
    pub(crate) async fn read_secret(
        &self,
        config: &Config,
        source: &TokenSource,
    ) -> Result<Secret, String> {
        let within = Duration::from_secs(config.limits.start_seconds);
        let read = self.supervisor.read_secret(&source.value, within).await;
        source.check_value(read).map_err(|error| error.to_string())
    }

    /// Returns the sign-in pages with the base URL that browsers use.
    ///
    /// This is the public URL of the resource. Without one, it is the listener, if only this machine can reach that.
    fn sign_in_pages(&self, config: &Config, users: &IdentityIssuers) -> Option<SignInPages> {
        let address = self.address?;
        let base = match &config.auth.resource {
            Some(resource) => {
                let (folder, _) = resource.path().rsplit_once('/')?;
                let base = resource
                    .with_path(&format!("{folder}{SIGN_IN_PATH}"))
                    .ok()?;
                base.as_str().to_owned()
            }
            None if config.allowed_hosts.is_empty() && address.ip().is_loopback() => {
                BaseUrl::new(config, address).with_path(SIGN_IN_PATH)
            }
            None => return None,
        };
        Some(SignInPages::new(
            base,
            self.sign_in_links.clone(),
            users.issuers(),
        ))
    }

    /// Applies the passkey settings of a config.
    pub(crate) fn configure_passkeys(&self, config: &Config) {
        let settings = passkey_settings(config, self.address);
        self.backends.approvals.passkeys().configure(settings);
    }

    fn host_guard(&self, config: &Config) -> HostGuard {
        let Some(address) = self.address else {
            return HostGuard::loopback(config.listen.port());
        };
        let console = config.console_url.as_ref();
        let guard = HostGuard::loopback(address.port());
        let guard = match &self.tls {
            Some(_) => guard.over_https(),
            None => guard,
        };
        guard
            .allow_hosts(own_host(address).as_deref())
            .allow_hosts(console.map(Url::authority))
            .allow_hosts(config.allowed_hosts.iter().map(String::as_str))
            .allow_origins(config.allowed_origins.iter().map(String::as_str))
    }
}

impl ConfigSnapshot {
    /// Returns a lease on each of its servers, in the order of the config.
    pub(crate) fn leases(&self) -> Vec<Arc<ServerLease>> {
        self.leases.clone()
    }

    /// Takes the stream of changes since the snapshot was made; `None` after the first call.
    pub(crate) fn take_changes(&self) -> Option<ChangeStream> {
        let mut heard = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        heard.take()
    }

    /// Returns the digest of the config, which identifies the policy in audit records.
    pub(crate) fn config_hash(&self) -> &str {
        &self.policies.policy_id
    }

    /// Returns the default caller of a transport, as rules and audit records name it.
    pub(crate) fn default_caller(&self, http: bool) -> Caller {
        let caller = Caller::new(match (http, &self.authenticators.gateway.token) {
            (false, _) => "local@stdio",
            (true, token) => http_caller_name(token.is_some()),
        });
        self.in_view(caller, None)
    }

    /// Returns the caller at the endpoint of a view, or of the default view without a name.
    pub(crate) fn in_view(&self, caller: Caller, view: Option<&str>) -> Caller {
        match view.or(self.config.default_view.as_deref()) {
            Some(view) => caller.in_view(view),
            None => caller,
        }
    }
}

/// Returns the host of an address, unless the address is unspecified.
fn own_host(address: SocketAddr) -> Option<String> {
    let host = match address {
        SocketAddr::V4(a) => a.ip().to_string(),
        SocketAddr::V6(a) => format!("[{}]", a.ip()),
    };
    (!address.ip().is_unspecified()).then_some(host)
}
