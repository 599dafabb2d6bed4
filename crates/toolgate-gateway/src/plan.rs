//! Snapshot of one config: the policies, and everything that a reload swaps with them, as one value.

use crate::{
    board::CallFeed,
    config::{Config, TokenSource},
    door::{Authenticator, CallerTokens, TokenVerifier, over_http},
    instructions::VisibleInstructions,
    search::ToolSearch,
    servers::{ServerLease, ServerSupervisor},
    signing_in::{IdentityIssuers, SIGN_IN_PATH, SignInInstructions, SignInLinks, SignInPages},
    stack,
};
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use toolgate::{
    Caller, ChangeFilter, ChangeStream, ItemKind, Service, aggregate::Aggregate,
    edge::http::HostGuard,
};
use toolgate_auth::Secret;
use toolgate_policy::{
    self as policy, ApprovalService, AuditRecorder, GatewayPolicy, Pins, StateStore,
};
use toolgate_wire::room::MemoryBudget;

/// Backends that the policies of all snapshots share: audit log, call feed, approvals, store and pins.
pub(crate) struct PolicyBackends {
    pub(crate) recorder: Arc<AuditRecorder>,
    pub(crate) board: Arc<CallFeed>,
    pub(crate) desk: Arc<ApprovalService>,
    pub(crate) store: Arc<dyn StateStore>,
    /// Pinned definitions, without the settings of a config.
    pub(crate) pins: Pins,
}

/// State that outlives every config: the backends of the policies, and the running servers.
pub(crate) struct GatewayResources {
    pub(crate) kept: PolicyBackends,
    pub(crate) supervisor: Arc<ServerSupervisor>,
    /// Memory budget of all messages in flight.
    pub(crate) room: Arc<MemoryBudget>,
    /// Address of the listener, if there is one.
    pub(crate) address: Option<SocketAddr>,
    /// Directory of the stored credentials for servers.
    pub(crate) grants: PathBuf,
    /// Instructions for signing in to a server.
    pub(crate) how: SignInInstructions,
    /// Sign-in links for the users behind callers.
    pub(crate) links: Arc<SignInLinks>,
    /// Tokens of callers, for servers that exchange them.
    pub(crate) bearers: Arc<CallerTokens>,
}

/// Snapshot of one config. A call keeps the snapshot with which it began. A server that no snapshot uses any more
/// ends.
pub(crate) struct ConfigSnapshot {
    pub(crate) config: Config,
    /// The policies and their settings.
    pub(crate) route: GatewayPolicy,
    /// Aggregate of the servers, without the policies.
    pub(crate) servers: Arc<Aggregate>,
    /// The aggregate with pinning: items are pinned as soon as they are listed.
    pub(crate) pinning: Arc<dyn Service>,
    /// All known items, sanitized but not hidden, so that the operator sees why an item is withheld.
    pub(crate) tools: Arc<dyn Service>,
    /// The servers behind the policies: the service for callers.
    pub(crate) service: Arc<dyn Service>,
    pub(crate) door: Arc<Authenticator>,
    tokens: TokenVerifier,
    /// Sign-in pages for the users behind callers, if they are reachable.
    pub(crate) pages: Option<SignInPages>,
    /// Issuers at which those users can prove their identity.
    pub(crate) users: IdentityIssuers,
    pub(crate) instructions: VisibleInstructions,
    leases: Vec<Arc<ServerLease>>,
    heard: Mutex<Option<ChangeStream>>,
}

impl GatewayResources {
    /// Builds the snapshot of a config as the successor of the active one. Unchanged servers keep running; new ones
    /// start.
    ///
    /// # Errors
    /// The config is invalid; the message says why. Nothing has changed in that case.
    pub(crate) async fn plan(
        &self,
        config: Config,
        before: Option<&ConfigSnapshot>,
    ) -> Result<ConfigSnapshot, String> {
        let token = match &config.token {
            Some(source) => Some(self.secret(&config, source).await?),
            None => None,
        };
        let tokens = before.map(|before| (&before.config, &before.tokens));
        let tokens = TokenVerifier::of(&config, self, tokens).await?;
        let door = Arc::new(Authenticator {
            resource: tokens.server.clone(),
            guard: self.guard(&config),
            closed: config.is_closed(),
            failures: config.limits.auth_failures,
            bearers: config
                .exchanges()
                .then(|| (self.bearers.clone(), config.limits.callers_per_server)),
            token,
        });
        let users = IdentityIssuers::of(&config, self).await?;
        let pages = self.pages(&config, &users);
        let leases = self.supervisor.lease(stack::specs(
            &config,
            &self.room,
            &self.grants,
            (&self.how, pages.as_ref()),
        ));
        let servers = stack::aggregate(&config, &leases)?;
        let servers = Arc::new(match before {
            Some(before) => servers.after(&before.servers),
            None => servers,
        });
        for (server, lease) in config.servers.iter().zip(&leases) {
            for kind in ItemKind::ALL {
                if let Some(listed) = lease.last_known(kind) {
                    servers.seed(&server.id, kind, listed);
                }
            }
        }
        let route = stack::route(&config, &self.kept, before.map(|before| &before.route));
        let known: Arc<dyn Service> = Arc::new(stack::KnownItems(servers.clone()));
        let tools: Arc<dyn Service> = Arc::new(policy::inspect(&route, known));
        let pinning: Arc<dyn Service> = Arc::new(policy::keeping(&route, servers.clone()));
        // This waits for the subscription only, not for a server.
        let heard = pinning.changes(ChangeFilter::lists(Caller::new("toolgate")));
        let service: Arc<dyn Service> = Arc::new(policy::pipeline(&route, servers.clone()));
        let service = match &config.search {
            Some(settings) => Arc::new(ToolSearch::new(settings, &route, service)),
            None => service,
        };
        Ok(ConfigSnapshot {
            heard: Mutex::new(heard.await.ok()),
            service,
            instructions: VisibleInstructions {
                known: tools.clone(),
                access: route.access.clone(),
                most: config.limits.instructions_bytes,
            },
            config,
            route,
            servers,
            pinning,
            tools,
            door,
            tokens,
            pages,
            users,
            leases,
        })
    }

    /// Reads a secret of the config from its source.
    ///
    /// # Errors
    /// The secret cannot be read; the message says why.
    pub(crate) async fn secret(
        &self,
        config: &Config,
        source: &TokenSource,
    ) -> Result<Secret, String> {
        let within = Duration::from_secs(config.limits.start_seconds);
        let read = self.supervisor.read(&source.given, within).await;
        source.checked(read).map_err(|error| error.to_string())
    }

    /// Returns the sign-in pages with the base URL that browsers use.
    ///
    /// This is the public URL of the resource. Without one, it is the listener, if only this machine can reach that.
    fn pages(&self, config: &Config, users: &IdentityIssuers) -> Option<SignInPages> {
        let address = self.address?;
        let base = match &config.auth.resource {
            Some(resource) => {
                let (folder, _) = resource.path().rsplit_once('/')?;
                let base = resource.at(&format!("{folder}{SIGN_IN_PATH}")).ok()?;
                base.as_str().to_owned()
            }
            None if address.ip().is_loopback() && config.allowed_hosts.is_empty() => {
                format!("http://{address}{SIGN_IN_PATH}")
            }
            None => return None,
        };
        Some(SignInPages::new(base, self.links.clone(), users.issuers()))
    }

    fn guard(&self, config: &Config) -> HostGuard {
        let Some(address) = self.address else {
            return HostGuard::loopback(config.listen.port());
        };
        HostGuard::loopback(address.port())
            .allow_hosts(own_host(address).as_deref())
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
    pub(crate) fn heard(&self) -> Option<ChangeStream> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.take()
    }

    /// Returns the digest of the config, which identifies the policy in audit records.
    pub(crate) fn hash(&self) -> &str {
        &self.route.policy
    }

    /// Returns the default caller of a transport, as rules and audit records name it.
    pub(crate) fn caller(&self, http: bool) -> Caller {
        Caller::new(match (http, &self.door.token) {
            (false, _) => "local@stdio",
            (true, token) => over_http(token.is_some()),
        })
    }
}

/// Returns the URL of the console.
pub(crate) fn console_address(address: SocketAddr) -> String {
    format!("http://{}/", reachable(address))
}

/// Returns an address to which a program on this machine can connect.
pub(crate) fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(a) if a.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, a.port()).into(),
        SocketAddr::V6(a) if a.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, a.port()).into(),
        address => address,
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
