//! Construction of the running gateway's parts.

use super::StartOptions;
use crate::{
    authentication::{CallerTokens, RejectionLimiter},
    banner::{StartupBanner, option_words},
    console::WebConsole,
    oauth::{self, BrowserSignIns, PendingIdentifications, SignInInstructions, SignInLinks},
    operator::{
        ConsoleSessions,
        api::{DefinitionNotes, OperatorApi},
    },
    runtime::active::ActiveSnapshot,
    runtime::call_feed::CallFeed,
    runtime::compose,
    runtime::last_lists::PinnedLists,
    runtime::memory,
    runtime::persistent_tasks::PersistentTasks,
    runtime::reload::ConfigReloader,
    runtime::snapshot::{GatewayResources, PolicyBackends, connectable, console_url},
    serve::edge_audit::EdgeAudit,
    serve::routes::{HttpRoutes, UserSignInRoutes},
    servers::ServerSupervisor,
};
use std::{net::SocketAddr, sync::Arc};
use toolgate::edge::{ProtocolServer, ServerCapabilities, TaskOffer, http::HttpEndpoint};
use toolgate_guardian::Guardian;
use toolgate_journal::AuditJournal;
use toolgate_policy::{ApprovalService, AuditRecorder, SecretRedactor, StateStore};
use toolgate_protocol::memory_budget::MemoryBudget;

/// Parts of the running gateway.
pub(super) struct GatewayParts {
    pub(super) server: Arc<ProtocolServer>,
    pub(super) active: Arc<ActiveSnapshot>,
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
            pins: crate::runtime::pins::create_pins(store.clone(), recorder.clone(), board.clone()),
            feed: board,
            approvals: ApprovalService::new(
                recorder.clone(),
                store.clone(),
                compose::approval_limits(config),
            ),
            recorder,
            store,
        };
        let (board, desk) = (kept.feed.clone(), kept.approvals.clone());
        let bearers = Arc::<CallerTokens>::default();
        let links = Arc::<SignInLinks>::default();
        let last = Arc::new(PinnedLists::new(kept.pins.clone(), kept.store.clone()));
        let shared = GatewayResources {
            backends: kept,
            supervisor: Arc::new(
                ServerSupervisor::new(guardian).with_lists_and_tokens(last, bearers.clone()),
            ),
            budget: MemoryBudget::new(config.limits.memory_bytes),
            address,
            credentials_dir: oauth::credentials_dir(&start.data),
            instructions: SignInInstructions::new(address.map(console_url), &start.stdio),
            sign_in_links: links.clone(),
            caller_tokens: bearers,
        };
        let (supervisor, room) = (shared.supervisor.clone(), shared.budget.clone());
        let plan = shared.build_snapshot(config.clone(), None).await?;
        SecretRedactor::install(&plan.config.secret_rules.files);
        supervisor.replace_servers(plan.leases());
        let live = Arc::new(ActiveSnapshot::new(plan));
        let reloader = Arc::new(ConfigReloader::new(
            shared,
            live.clone(),
            start.config_listen,
        ));
        let witness = Arc::new(EdgeAudit::new(journal.clone()));
        let server = ProtocolServer::new(
            live.clone(),
            "toolgate",
            env!("CARGO_PKG_VERSION"),
            compose::server_limits(config),
        );
        let server = server.map_err(|e| e.public_message().to_owned())?;
        let server = server
            .with_instructions_provider(live.clone())
            .with_memory_budget(room)
            .with_clock(desk.clock().clone());
        // Any server may be slow, and so may the approver, so every tool can run as a task.
        let server = server.with_capabilities(ServerCapabilities {
            tasks: TaskOffer::Every,
            extensions: Some(compose::server_extensions()),
            ..ServerCapabilities::default()
        });
        let server = match tasks {
            Some(kept) => {
                let gone = |process: &str| kept.has_ended(process);
                server.with_task_store(kept.store.clone(), &kept.process, gone)
            }
            None => server,
        };
        let server = Arc::new(server.with_rejection_log(witness.clone()));
        let logins = address
            .map(|address| Arc::new(ConsoleSessions::new(connectable(address), sessions.clone())));
        let operator = Arc::new(OperatorApi {
            feed: board,
            approvals: desk,
            supervisor: supervisor.clone(),
            active: live.clone(),
            reloader: reloader.clone(),
            server: server.clone(),
            sessions: logins.clone(),
            endpoint: address.map(|a| format!("http://{}/mcp", connectable(a))),
            data: start.data.display().to_string(),
            flags: option_words(&start.stdio, &["--config", "--data"]),
            credentials_dir: oauth::credentials_dir(&start.data),
            journal: journal.clone(),
            notes: DefinitionNotes::default(),
        });
        let routes = logins.map(|logins| {
            Arc::new(HttpRoutes {
                active: live.clone(),
                endpoint: HttpEndpoint::new(server.clone(), compose::http_limits(config)),
                console: WebConsole {
                    sessions: logins,
                    operator: operator.clone(),
                    sign_ins: BrowserSignIns::new(oauth::credentials_dir(&start.data)),
                },
                user_sign_in: UserSignInRoutes {
                    links,
                    sign_ins: BrowserSignIns::new(oauth::credentials_dir(&start.data)),
                    identifications: PendingIdentifications::new(),
                },
                edge_audit: witness,
                keys: operator.approvals.freezes().keys().clone(),
                rejections: RejectionLimiter::new(),
            })
        });
        Ok(GatewayParts {
            server,
            active: live,
            reloader,
            supervisor,
            operator,
            routes,
        })
    }

    pub(super) fn banner(&self, start: &StartOptions, address: Option<SocketAddr>) -> String {
        let program = std::env::current_exe().unwrap_or_else(|_| "toolgate".into());
        let console = self
            .operator
            .sessions
            .as_ref()
            .and_then(|logins| logins.create_link("").ok());
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

/// Banner note for a listener on all addresses.
const ALL_ADDRESSES_NOTE: &str = "The gateway listens on all addresses of this machine, and accepts only the host names in allowed_hosts: \
                   add the names that clients use.";
