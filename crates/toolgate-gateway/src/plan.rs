//! What one config makes: the policy in force and everything that is swapped with it, as one value.

use crate::{
    board::Board,
    config::{Config, TokenSource},
    door::{Bearers, Door, Tokens, over_http},
    instructions::Instructions,
    search::Search,
    servers::{Lease, Supervisor},
    signing_in::{FOLDER, How, Links, Pages, Users},
    stack,
};
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use toolgate::{
    Caller, Changes, Interest, ItemKind, Service, aggregate::Aggregate, edge::http::HostGuard,
};
use toolgate_auth::Secret;
use toolgate_policy::{self as policy, Desk, Pins, Recorder, Route, Store};
use toolgate_wire::room::Room;

/// What the duties of every config share: where calls are recorded, asked for and shown.
pub(crate) struct Kept {
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) board: Arc<Board>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) store: Arc<dyn Store>,
    /// What was pinned, without the settings.
    pub(crate) pins: Pins,
}

/// What outlives every config: what the duties share, and the servers that run.
pub(crate) struct Shared {
    pub(crate) kept: Kept,
    pub(crate) supervisor: Arc<Supervisor>,
    /// What all messages in flight are counted in.
    pub(crate) room: Arc<Room>,
    /// Where the listener is, if there is one.
    pub(crate) address: Option<SocketAddr>,
    /// Where what servers granted us is kept.
    pub(crate) grants: PathBuf,
    /// What a person does to sign in at a server.
    pub(crate) how: How,
    /// The links by which users of callers sign in.
    pub(crate) links: Arc<Links>,
    /// What callers showed, for servers whose tokens it is exchanged for.
    pub(crate) bearers: Arc<Bearers>,
}

/// What one config makes. A call keeps the plan with which it began; servers that no plan names any more end.
pub(crate) struct Plan {
    pub(crate) config: Config,
    /// The duties and their settings.
    pub(crate) route: Route,
    /// The servers as one, without the duties.
    pub(crate) servers: Arc<Aggregate>,
    /// The same, and what they offer is pinned as soon as it is listed.
    pub(crate) pinning: Arc<dyn Service>,
    /// All tools, cleaned but not hidden: the operator sees why something is withheld.
    pub(crate) tools: Arc<dyn Service>,
    /// The servers behind the duties: what callers use.
    pub(crate) service: Arc<dyn Service>,
    pub(crate) door: Arc<Door>,
    tokens: Tokens,
    /// Where users of callers sign in, if they can.
    pub(crate) pages: Option<Pages>,
    /// At which issuers they can show who they are.
    pub(crate) users: Users,
    pub(crate) instructions: Instructions,
    leases: Vec<Arc<Lease>>,
    heard: Mutex<Option<Changes>>,
}

impl Shared {
    /// Makes the plan of a config, after the one that is in force. Servers that stay the same stay as they are; new ones
    /// start.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the config. Nothing has changed then.
    pub(crate) async fn plan(&self, config: Config, before: Option<&Plan>) -> Result<Plan, String> {
        let token = match &config.token {
            Some(source) => Some(self.secret(&config, source).await?),
            None => None,
        };
        let tokens = before.map(|before| (&before.config, &before.tokens));
        let tokens = Tokens::of(&config, self, tokens).await?;
        let door = Arc::new(Door {
            resource: tokens.server.clone(),
            guard: self.guard(&config),
            closed: config.is_closed(),
            failures: config.limits.auth_failures,
            bearers: config
                .exchanges()
                .then(|| (self.bearers.clone(), config.limits.callers_per_server)),
            token,
        });
        let users = Users::of(&config, self).await?;
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
        let known: Arc<dyn Service> = Arc::new(stack::Known(servers.clone()));
        let tools: Arc<dyn Service> = Arc::new(policy::inspect(&route, known));
        let pinning: Arc<dyn Service> = Arc::new(policy::keeping(&route, servers.clone()));
        // Nobody waits for a server here: only for the word that something changed.
        let heard = pinning.changes(Interest::lists(Caller::new("toolgate")));
        let service: Arc<dyn Service> = Arc::new(policy::pipeline(&route, servers.clone()));
        let service = match &config.search {
            Some(settings) => Arc::new(Search::new(settings, &route, service)),
            None => service,
        };
        Ok(Plan {
            heard: Mutex::new(heard.await.ok()),
            service,
            instructions: Instructions {
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

    /// A secret of the config, which is looked for wherever the config says.
    ///
    /// # Errors
    /// A sentence that says why there is none.
    pub(crate) async fn secret(
        &self,
        config: &Config,
        source: &TokenSource,
    ) -> Result<Secret, String> {
        let within = Duration::from_secs(config.limits.start_seconds);
        let read = self.supervisor.read(&source.given, within).await;
        source.checked(read).map_err(|error| error.to_string())
    }

    /// Where users of callers sign in, as their browsers reach it: at the address that clients use, or, where none is
    /// said, at the listener, if only this machine reaches that.
    fn pages(&self, config: &Config, users: &Users) -> Option<Pages> {
        let address = self.address?;
        let base = match &config.auth.resource {
            Some(resource) => {
                let (folder, _) = resource.path().rsplit_once('/')?;
                let base = resource.at(&format!("{folder}{FOLDER}")).ok()?;
                base.as_str().to_owned()
            }
            None if address.ip().is_loopback() && config.allowed_hosts.is_empty() => {
                format!("http://{address}{FOLDER}")
            }
            None => return None,
        };
        Some(Pages::new(base, self.links.clone(), users.issuers()))
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

impl Plan {
    /// A hold on each of its servers, in the order of the config.
    pub(crate) fn leases(&self) -> Vec<Arc<Lease>> {
        self.leases.clone()
    }

    /// What its servers told since the plan was made; to be taken once.
    pub(crate) fn heard(&self) -> Option<Changes> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.take()
    }

    /// Names the policy, for records.
    pub(crate) fn hash(&self) -> &str {
        &self.route.policy
    }

    /// The name under which the listener's callers stand in rules and records.
    pub(crate) fn caller(&self, http: bool) -> Caller {
        Caller::new(match (http, &self.door.token) {
            (false, _) => "local@stdio",
            (true, token) => over_http(token.is_some()),
        })
    }
}

/// Where the page of the console is.
pub(crate) fn console_address(address: SocketAddr) -> String {
    format!("http://{}/", reachable(address))
}

/// An address that a program on this machine can open.
pub(crate) fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(a) if a.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, a.port()).into(),
        SocketAddr::V6(a) if a.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, a.port()).into(),
        address => address,
    }
}

/// The name of an address that was asked for by itself.
fn own_host(address: SocketAddr) -> Option<String> {
    let host = match address {
        SocketAddr::V4(a) => a.ip().to_string(),
        SocketAddr::V6(a) => format!("[{}]", a.ip()),
    };
    (!address.ip().is_unspecified()).then_some(host)
}
