//! Construction of the running gateway's parts.

use super::{StartOptions, handover::TransferredSessions};
use crate::{
    admin::{AdminPages, GatewayHealth},
    authentication::{CallerTokens, RejectionLimiter},
    banner::{StartupBanner, option_words},
    config::Config,
    config_versions::ConfigVersions,
    console::WebConsole,
    console_roles::{ActionRight, AttestedPerson},
    event_log::{self, GatewayEvent},
    fleet::GatewayFleet,
    notify::{NotificationSender, PushSubscriptions},
    oauth::{self, BrowserSignIns, PendingIdentifications, SignInInstructions, SignInLinks},
    operator::{
        AuditHistory, ConsolePresence, ConsoleSessions, LastApprovedCalls,
        api::{DefinitionNotes, OperatorApi},
    },
    runtime::base_url::BaseUrl,
    runtime::call_feed::CallFeed,
    runtime::compose,
    runtime::last_lists::PinnedLists,
    runtime::memory,
    runtime::persistent_tasks::PersistentTasks,
    runtime::reload::ConfigReloader,
    runtime::snapshot::{GatewayResources, PolicyBackends},
    runtime::{self, active::ActiveSnapshot, rate_sharing},
    serve::edge_audit::EdgeAudit,
    serve::gauges::GaugeSource,
    serve::notifications::NotificationService,
    serve::routes::{HttpRoutes, UserSignInRoutes},
    serve::server_events,
    servers::{ServerOutputs, ServerSupervisor, StderrFiles},
    telemetry::GatewayTelemetry,
    tls::{ListenerTls, TlsIdentity},
};
use std::{net::SocketAddr, sync::Arc, time::SystemTime};
use toolgate::edge::{ProtocolServer, ServerCapabilities, TaskOffer, http::HttpEndpoint};
use toolgate_guardian::Guardian;
use toolgate_journal::AuditJournal;
use toolgate_policy::{ApprovalService, AuditRecorder, ContentKeys, SecretRedactor, StateStore};
use toolgate_protocol::memory_budget::MemoryBudget;
use toolgate_store::postgres::PostgresStore;

/// Stores of the running gateway.
pub(super) struct GatewayStores<'a> {
    /// Sessions of a predecessor.
    pub(super) sessions: Arc<TransferredSessions>,
    /// Approvals, grants, keys, pins and freezes.
    pub(super) state: Arc<dyn StateStore>,
    /// The same store, if several gateways share it.
    pub(super) shared: Option<Arc<PostgresStore>>,
    /// The gateways that share it.
    pub(super) fleet: Option<Arc<GatewayFleet>>,
    /// Maximum number of gateways that share it.
    pub(super) gateways: u32,
    pub(super) tasks: Option<&'a PersistentTasks>,
}

/// Address of the gateway's listener, its URL, and its TLS.
#[derive(Clone)]
pub(super) struct BoundAddress {
    pub(super) address: SocketAddr,
    pub(super) base_url: BaseUrl,
    pub(super) tls: Option<Arc<ListenerTls>>,
}

impl BoundAddress {
    /// Reads the certificate of a listener at that address, if the config names one.
    ///
    /// # Errors
    /// The certificate or its key cannot be used; the message says why.
    pub(super) fn new(config: &Config, address: SocketAddr) -> Result<BoundAddress, String> {
        let tls = config.tls.as_ref().map(|settings| {
            let identity = TlsIdentity::load(settings)?;
            if let Some(warning) = identity.certificate.expiry_warning(SystemTime::now()) {
                let text = format!("{}: {warning}", settings.cert.display());
                event_log::emit(GatewayEvent::Problem { text });
            }
            Ok::<_, String>(Arc::new(ListenerTls::new(settings.clone(), identity)))
        });
        Ok(BoundAddress {
            address,
            base_url: BaseUrl::new(config, address),
            tls: tls.transpose()?,
        })
    }
}

/// Parts of the running gateway.
pub(super) struct GatewayParts {
    pub(super) server: Arc<ProtocolServer>,
    pub(super) active: Arc<ActiveSnapshot>,
    pub(super) reloader: Arc<ConfigReloader>,
    pub(super) supervisor: Arc<ServerSupervisor>,
    pub(super) operator: Arc<OperatorApi>,
    pub(super) routes: Option<Arc<HttpRoutes>>,
    pub(super) admin: Arc<AdminPages>,
    pub(super) notifications: NotificationService,
}

impl GatewayParts {
    pub(super) async fn build(
        start: &StartOptions,
        journal: &Arc<AuditJournal>,
        stores: GatewayStores<'_>,
        guardian: Arc<Guardian>,
        at: Option<BoundAddress>,
        telemetry: &Arc<GatewayTelemetry>,
    ) -> Result<GatewayParts, String> {
        let mut backends = policy_backends(start, journal, &stores.state, telemetry);
        backends.rate_sharing = stores
            .shared
            .as_ref()
            .map(|shared| rate_sharing::create(shared, stores.gateways));
        let (store, tasks, fleet) = (stores.state, stores.tasks, stores.fleet);
        let transferred = stores.sessions;
        let shared = gateway_resources(
            start,
            journal,
            backends,
            guardian.clone(),
            (at.as_ref(), &store),
        )?;
        let token = match &start.config.admin.token {
            Some(source) => Some(shared.read_secret(&start.config, source).await?),
            None => None,
        };
        let approvals = shared.backends.approvals.clone();
        let (feed, budget) = (shared.backends.feed.clone(), shared.budget.clone());
        let (supervisor, links) = (shared.supervisor.clone(), shared.sign_in_links.clone());
        let snapshot = shared.build_snapshot(start.config.clone(), None).await?;
        SecretRedactor::install(&snapshot.config.secret_rules.files);
        supervisor.replace_servers(snapshot.leases());
        shared.configure_passkeys(&snapshot.config);
        let active = Arc::new(ActiveSnapshot::new(snapshot));
        let reloader = Arc::new(ConfigReloader::new(
            shared,
            active.clone(),
            start.config_listen,
            ConfigVersions::new(&start.data),
        ));
        let edge_audit = Arc::new(EdgeAudit::new(journal.clone(), telemetry.clone()));
        let server = protocol_server(&start.config, &active)?
            .with_memory_budget(budget.clone())
            .with_clock(approvals.clock().clone())
            .with_rejection_log(edge_audit.clone());
        let server = match &telemetry.operations {
            Some(observer) => server.with_operation_observer(observer.clone()),
            None => server,
        };
        let server = Arc::new(with_tasks(server, tasks));
        let sessions = at.as_ref().map(|at| {
            let port = at.address.port();
            Arc::new(ConsoleSessions::new(&at.base_url, port, store.clone()))
        });
        let health = GatewayHealth::new(journal.clone(), store.clone(), reloader.clone());
        let health = Arc::new(health);
        let (of_roles, of_console) = (active.clone(), active.clone());
        let listener = at.as_ref().map(|at| at.base_url.console());
        let notification_sender = Arc::new(NotificationSender {
            approvals: approvals.clone(),
            journal: journal.clone(),
            guardian,
            subscriptions: Arc::new(PushSubscriptions::new(store.clone())),
            may_hear: Arc::new(move |attested| {
                let person = AttestedPerson::from_value(attested);
                let roles = of_roles.snapshot().console_roles.clone();
                person.is_some_and(|person| roles.rights_of(&person).allows(ActionRight::Approve))
            }),
            console: Box::new(move || {
                let config = &of_console.snapshot().config;
                match &listener {
                    Some(listener) => config.console_at(listener),
                    None => config.console_base().unwrap_or_default(),
                }
            }),
            last_messages: Default::default(),
        });
        let operator = Arc::new(OperatorApi {
            feed,
            approvals,
            supervisor: supervisor.clone(),
            active: active.clone(),
            reloader: reloader.clone(),
            health: health.clone(),
            server: server.clone(),
            sessions: sessions.clone(),
            endpoint: at.as_ref().map(|at| at.base_url.endpoint()),
            listen: at.as_ref().map(|at| at.address),
            tls: at.as_ref().and_then(|at| at.tls.clone()),
            data: start.data.display().to_string(),
            flags: option_words(&start.stdio, &["--config", "--data"]),
            credentials_dir: oauth::credentials_dir(&start.data),
            journal: journal.clone(),
            notification_sender: notification_sender.clone(),
            notes: DefinitionNotes::default(),
            presence: ConsolePresence::default(),
            last_approved: LastApprovedCalls::default(),
            history: AuditHistory::new(&start.data),
            store: store.clone(),
            items_serial: Default::default(),
        });
        let admin = Arc::new(AdminPages {
            health,
            registry: telemetry.registry.clone(),
            token,
        });
        let routes = sessions.map(|sessions| {
            let shared = (&operator, &admin, telemetry);
            let mut routes = http_routes(start, shared, sessions, links, edge_audit);
            match fleet {
                Some(fleet) => routes.join_fleet(fleet),
                None => {
                    routes.endpoint = routes.endpoint.with_session_store(transferred);
                }
            }
            Arc::new(routes)
        });
        let http = routes.as_ref();
        telemetry.registry.register(Arc::new(GaugeSource {
            operator: Arc::downgrade(&operator),
            health: admin.health.clone(),
            store,
            budget,
            http: http.map(|routes| (routes.endpoint.clone(), routes.connections.clone())),
            clock: Default::default(),
            pin_events: telemetry.pin_events.clone(),
            server_failures: telemetry.server_failures.clone(),
        }));
        let notifications = NotificationService {
            active: active.clone(),
            sender: notification_sender,
        };
        Ok(GatewayParts {
            notifications,
            server,
            active,
            reloader,
            supervisor,
            operator,
            routes,
            admin,
        })
    }

    /// Prints the banner and the event of the start.
    pub(super) fn announce(&self, start: &StartOptions, address: Option<SocketAddr>) {
        if event_log::has_banner() {
            event_log::print_text(self.banner(start, address));
        }
        event_log::emit_besides_banner(GatewayEvent::Started {
            endpoint: self
                .operator
                .endpoint
                .clone()
                .unwrap_or_else(|| "stdio".to_owned()),
            data: self.operator.data.clone(),
        });
    }

    fn banner(&self, start: &StartOptions, address: Option<SocketAddr>) -> String {
        let program = std::env::current_exe().unwrap_or_else(|_| "toolgate".into());
        let console = self.operator.sessions.as_ref().and_then(|logins| {
            logins
                .create_link("", Some(&start.config.console_at(logins.url())))
                .ok()
        });
        let example = start
            .config
            .is_demo()
            .then_some(("demo.add", "{\"a\": 1, \"b\": 2}"));
        let ready = StartupBanner {
            endpoint: self.operator.endpoint.as_deref(),
            console: console.as_deref(),
            data: &start.data,
            memory: &memory::summary(&start.config),
            program: &program,
            stdio_arguments: &start.stdio,
            example,
            needs_token: start.config.requires_authentication(),
            note: address
                .filter(|a| a.ip().is_unspecified())
                .map(|_| ALL_ADDRESSES_NOTE.to_owned()),
        };
        ready.render()
    }
}

/// Creates the backends of the policies of all snapshots.
fn policy_backends(
    start: &StartOptions,
    journal: &Arc<AuditJournal>,
    store: &Arc<dyn StateStore>,
    telemetry: &Arc<GatewayTelemetry>,
) -> PolicyBackends {
    let recorder = Arc::new(AuditRecorder::new(journal.clone()));
    let feed = Arc::new(CallFeed::new(start.config.limits.console_result_bytes));
    let (of_pins, for_pins) = (feed.clone(), Some(telemetry.clone()));
    let limits = compose::approval_limits(&start.config);
    PolicyBackends {
        pins: runtime::pins::create_pins(store.clone(), recorder.clone(), of_pins, for_pins),
        feed,
        approvals: ApprovalService::new(recorder.clone(), store.clone(), limits),
        recorder,
        content_keys: Some(Arc::new(ContentKeys::new(store.clone()))),
        telemetry: Some(telemetry.clone()),
        rate_sharing: None,
    }
}

/// Creates the state that outlives every config.
fn gateway_resources(
    start: &StartOptions,
    journal: &Arc<AuditJournal>,
    backends: PolicyBackends,
    guardian: Arc<Guardian>,
    (at, store): (Option<&BoundAddress>, &Arc<dyn StateStore>),
) -> Result<GatewayResources, String> {
    let pins = backends.pins.clone();
    let last_lists = Arc::new(PinnedLists::new(pins, store.clone()));
    let caller_tokens = Arc::<CallerTokens>::default();
    let stderr_files = StderrFiles::open(&start.data, start.config.limits.stderr_bytes);
    let stderr_files = stderr_files.map_err(|e| {
        format!(
            "cannot create the directory `logs` in the data directory: {e}; check its permissions"
        )
    })?;
    let telemetry = backends.telemetry.clone();
    let outputs = ServerOutputs {
        operations: telemetry.as_ref().and_then(|with| with.operations.clone()),
        observer: Some(server_events::observer(journal.clone(), telemetry)),
        stderr_files: Some(Arc::new(stderr_files)),
    };
    Ok(GatewayResources {
        backends,
        supervisor: Arc::new(
            ServerSupervisor::new(guardian)
                .with_lists_and_tokens(last_lists, caller_tokens.clone())
                .with_outputs(outputs),
        ),
        budget: MemoryBudget::new(start.config.limits.memory_bytes),
        address: at.map(|at| at.address),
        tls: at.and_then(|at| at.tls.clone()),
        credentials_dir: oauth::credentials_dir(&start.data),
        instructions: SignInInstructions::new(at.map(|at| at.base_url.console()), &start.stdio),
        sign_in_links: Arc::default(),
        caller_tokens,
    })
}

/// Creates the server for callers.
fn protocol_server(
    config: &Config,
    active: &Arc<ActiveSnapshot>,
) -> Result<ProtocolServer, String> {
    let limits = compose::server_limits(config);
    let version = env!("CARGO_PKG_VERSION");
    let server = ProtocolServer::new(active.clone(), "toolgate", version, limits)
        .map_err(|error| error.public_message().to_owned())?;
    let server = server.with_instructions_provider(active.clone());
    let mut capabilities = ServerCapabilities::default();
    capabilities.tasks = TaskOffer::Every;
    capabilities.extensions = Some(compose::server_extensions());
    // Any server may be slow, and so may the approver, so every tool can run as a task.
    Ok(server.with_capabilities(capabilities))
}

/// Sets the store of tasks, if there is one. The server needs its clock before.
fn with_tasks(server: ProtocolServer, tasks: Option<&PersistentTasks>) -> ProtocolServer {
    let Some(tasks) = tasks else {
        return server;
    };
    let has_ended = |process: &str| tasks.has_ended(process);
    server.with_task_store(tasks.store.clone(), &tasks.process, has_ended)
}

/// Creates the HTTP routes.
fn http_routes(
    start: &StartOptions,
    (operator, admin, telemetry): (&Arc<OperatorApi>, &Arc<AdminPages>, &Arc<GatewayTelemetry>),
    sessions: Arc<ConsoleSessions>,
    links: Arc<SignInLinks>,
    edge_audit: Arc<EdgeAudit>,
) -> HttpRoutes {
    let limits = compose::http_limits(&start.config);
    HttpRoutes {
        active: operator.active.clone(),
        endpoint: HttpEndpoint::new(operator.server.clone(), limits),
        console: WebConsole {
            sessions,
            operator: operator.clone(),
            sign_ins: BrowserSignIns::new(oauth::credentials_dir(&start.data)),
            identifications: PendingIdentifications::of_console(),
        },
        user_sign_in: UserSignInRoutes {
            links,
            sign_ins: BrowserSignIns::new(oauth::credentials_dir(&start.data)),
            identifications: PendingIdentifications::new(),
        },
        edge_audit,
        keys: operator.approvals.freezes().keys().clone(),
        rejections: RejectionLimiter::new(),
        admin: admin.clone(),
        open_metrics: start.config.serves_open_metrics(),
        serves_admin: start.config.admin.listen.is_none(),
        connections: Arc::default(),
        telemetry: telemetry.clone(),
        forwarded: Arc::default(),
        fleet: None,
    }
}

/// Banner note for a listener on all addresses.
const ALL_ADDRESSES_NOTE: &str = "The gateway listens on all addresses of this machine, and accepts only the host names in allowed_hosts: \
                   add the names that clients use.";
