//! Construction of the running gateway's parts.

use super::StartOptions;
use crate::{
    board::CallFeed,
    console::{ConsoleSessions, WebConsole},
    door::{CallerTokens, RejectionLimiter},
    kept_tasks::PersistentTasks,
    last_lists::PinnedLists,
    live::ActiveSnapshot,
    memory,
    operator::{DefinitionNotes, OperatorApi},
    plan::{GatewayResources, PolicyBackends, console_address, reachable},
    reload::ConfigReloader,
    routes::{HttpRoutes, UserSignInRoutes},
    servers::ServerSupervisor,
    signing_in::{self, BrowserSignIns, PendingIdentifications, SignInInstructions, SignInLinks},
    stack,
    startup::{StartupBanner, flags},
    witness::EdgeAudit,
};
use std::{net::SocketAddr, sync::Arc};
use toolgate::edge::{ProtocolServer, ServerCapabilities, TaskOffer, http::HttpEndpoint};
use toolgate_guardian::Guardian;
use toolgate_journal::AuditJournal;
use toolgate_policy::{ApprovalService, AuditRecorder, SecretRedactor, StateStore};
use toolgate_wire::room::MemoryBudget;

/// Parts of the running gateway.
pub(super) struct GatewayParts {
    pub(super) server: Arc<ProtocolServer>,
    pub(super) live: Arc<ActiveSnapshot>,
    pub(super) reloader: Arc<ConfigReloader>,
    pub(super) supervisor: Arc<ServerSupervisor>,
    pub(super) operator: Arc<OperatorApi>,
    pub(super) routes: Option<Arc<HttpRoutes>>,
}

impl GatewayParts {
    pub(super) async fn build(
        start: &StartOptions,
        journal: &Arc<AuditJournal>,
        (store, tasks): (Arc<dyn StateStore>, Option<&PersistentTasks>),
        guardian: Arc<Guardian>,
        address: Option<SocketAddr>,
    ) -> Result<GatewayParts, String> {
        let sessions = store.clone();
        let config = &start.config;
        let recorder = Arc::new(AuditRecorder::new(journal.clone()));
        let board = Arc::new(CallFeed::new());
        let kept = PolicyBackends {
            pins: crate::pins::shared(store.clone(), recorder.clone(), board.clone()),
            board,
            desk: ApprovalService::new(recorder.clone(), store.clone(), stack::desk_limits(config)),
            recorder,
            store,
        };
        let (board, desk) = (kept.board.clone(), kept.desk.clone());
        let bearers = Arc::<CallerTokens>::default();
        let links = Arc::<SignInLinks>::default();
        let last = Arc::new(PinnedLists::new(kept.pins.clone(), kept.store.clone()));
        let shared = GatewayResources {
            kept,
            supervisor: Arc::new(ServerSupervisor::new(guardian).knowing(last, bearers.clone())),
            room: MemoryBudget::new(config.limits.memory_bytes),
            address,
            grants: signing_in::folder(&start.data),
            how: SignInInstructions::new(address.map(console_address), &start.stdio),
            links: links.clone(),
            bearers,
        };
        let (supervisor, room) = (shared.supervisor.clone(), shared.room.clone());
        let plan = shared.plan(config.clone(), None).await?;
        SecretRedactor::install(&plan.config.secret_rules.files);
        supervisor.take(plan.leases());
        let live = Arc::new(ActiveSnapshot::new(plan));
        let reloader = Arc::new(ConfigReloader::new(shared, live.clone(), start.listen));
        let witness = Arc::new(EdgeAudit::new(journal.clone()));
        let server = ProtocolServer::new(
            live.clone(),
            "toolgate",
            env!("CARGO_PKG_VERSION"),
            stack::server_limits(config),
        );
        let server = server.map_err(|e| e.public().to_owned())?;
        let server = server
            .with_instructions_of(live.clone())
            .with_room(room)
            .with_clock(desk.clock().clone());
        // Any server may be slow, and so may the approver, so every tool can run as a task.
        let server = server.with_offers(ServerCapabilities {
            tasks: TaskOffer::Every,
            extensions: Some(stack::extensions()),
            ..ServerCapabilities::default()
        });
        let server = match tasks {
            Some(kept) => {
                let gone = |process: &str| kept.is_gone(process);
                server.with_task_store(kept.store.clone(), &kept.process, gone)
            }
            None => server,
        };
        let server = Arc::new(server.with_witness(witness.clone()));
        let logins = address
            .map(|address| Arc::new(ConsoleSessions::new(reachable(address), sessions.clone())));
        let operator = Arc::new(OperatorApi {
            board,
            desk,
            supervisor: supervisor.clone(),
            live: live.clone(),
            reloader: reloader.clone(),
            server: server.clone(),
            logins: logins.clone(),
            endpoint: address.map(|a| format!("http://{}/mcp", reachable(a))),
            data: start.data.display().to_string(),
            flags: flags(&start.stdio, &["--config", "--data"]),
            grants: signing_in::folder(&start.data),
            journal: journal.clone(),
            notes: DefinitionNotes::default(),
        });
        let routes = logins.map(|logins| {
            Arc::new(HttpRoutes {
                live: live.clone(),
                endpoint: HttpEndpoint::new(server.clone(), stack::http_limits(config)),
                console: WebConsole {
                    logins,
                    operator: operator.clone(),
                    sign_ins: BrowserSignIns::new(signing_in::folder(&start.data)),
                },
                own: UserSignInRoutes {
                    links,
                    sign_ins: BrowserSignIns::new(signing_in::folder(&start.data)),
                    showing: PendingIdentifications::new(),
                },
                witness,
                keys: operator.desk.freezes().keys().clone(),
                attempts: RejectionLimiter::new(),
            })
        });
        Ok(GatewayParts {
            server,
            live,
            reloader,
            supervisor,
            operator,
            routes,
        })
    }

    pub(super) fn ready(&self, start: &StartOptions, address: Option<SocketAddr>) -> String {
        let program = std::env::current_exe().unwrap_or_else(|_| "toolgate".into());
        let console = self
            .operator
            .logins
            .as_ref()
            .and_then(|logins| logins.link("").ok());
        let example = start
            .config
            .is_demo()
            .then_some(("demo.add", "{\"a\": 1, \"b\": 2}"));
        let ready = StartupBanner {
            endpoint: self.operator.endpoint.as_deref(),
            console: console.as_deref(),
            data: &start.data,
            memory: &memory::line(&start.config),
            program: &program,
            stdio: &start.stdio,
            example,
            token: start.config.is_closed(),
            note: address
                .filter(|a| a.ip().is_unspecified())
                .map(|_| ALL_ADDRESSES_NOTE.to_owned()),
        };
        ready.text()
    }
}

/// Banner note for a listener on all addresses.
const ALL_ADDRESSES_NOTE: &str = "The gateway listens on all addresses of this machine, and accepts only the host names in allowed_hosts: \
                   add the names that clients use.";
