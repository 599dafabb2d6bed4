//! Construction of the running gateway's parts.

use super::Start;
use crate::{
    board::Board,
    console::{Console, Logins},
    door::{Attempts, Bearers},
    kept_tasks::KeptTasks,
    last_lists::PinnedLists,
    live::Live,
    memory,
    operator::{NoteBook, Operator},
    plan::{Kept, Shared, console_address, reachable},
    reload::Reloader,
    routes::{OwnSignIn, Routes},
    servers::Supervisor,
    signing_in::{self, How, Links, Showing, SignIns},
    stack,
    startup::{Ready, flags},
    witness::EdgeWitness,
};
use std::{net::SocketAddr, sync::Arc};
use toolgate::edge::{Front, Offers, TaskOffer, http::Endpoint};
use toolgate_guardian::Guardian;
use toolgate_journal::Journal;
use toolgate_policy::{Desk, Recorder, Secrets, Store};
use toolgate_wire::room::Room;

/// Parts of the running gateway.
pub(super) struct Parts {
    pub(super) server: Arc<Front>,
    pub(super) live: Arc<Live>,
    pub(super) reloader: Arc<Reloader>,
    pub(super) supervisor: Arc<Supervisor>,
    pub(super) operator: Arc<Operator>,
    pub(super) routes: Option<Arc<Routes>>,
}

impl Parts {
    pub(super) async fn build(
        start: &Start,
        journal: &Arc<Journal>,
        (store, tasks): (Arc<dyn Store>, Option<&KeptTasks>),
        guardian: Arc<Guardian>,
        address: Option<SocketAddr>,
    ) -> Result<Parts, String> {
        let sessions = store.clone();
        let config = &start.config;
        let recorder = Arc::new(Recorder::new(journal.clone()));
        let board = Arc::new(Board::new());
        let kept = Kept {
            pins: crate::pins::shared(store.clone(), recorder.clone(), board.clone()),
            board,
            desk: Desk::new(recorder.clone(), store.clone(), stack::desk_limits(config)),
            recorder,
            store,
        };
        let (board, desk) = (kept.board.clone(), kept.desk.clone());
        let bearers = Arc::<Bearers>::default();
        let links = Arc::<Links>::default();
        let last = Arc::new(PinnedLists::new(kept.pins.clone(), kept.store.clone()));
        let shared = Shared {
            kept,
            supervisor: Arc::new(Supervisor::new(guardian).knowing(last, bearers.clone())),
            room: Room::new(config.limits.memory_bytes),
            address,
            grants: signing_in::folder(&start.data),
            how: How::new(address.map(console_address), &start.stdio),
            links: links.clone(),
            bearers,
        };
        let (supervisor, room) = (shared.supervisor.clone(), shared.room.clone());
        let plan = shared.plan(config.clone(), None).await?;
        Secrets::install(&plan.config.secret_rules.files);
        supervisor.take(plan.leases());
        let live = Arc::new(Live::new(plan));
        let reloader = Arc::new(Reloader::new(shared, live.clone(), start.listen));
        let witness = Arc::new(EdgeWitness::new(journal.clone()));
        let server = Front::new(
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
        let server = server.with_offers(Offers {
            tasks: TaskOffer::Every,
            extensions: Some(stack::extensions()),
            ..Offers::default()
        });
        let server = match tasks {
            Some(kept) => {
                let gone = |process: &str| kept.is_gone(process);
                server.with_task_store(kept.store.clone(), &kept.process, gone)
            }
            None => server,
        };
        let server = Arc::new(server.with_witness(witness.clone()));
        let logins =
            address.map(|address| Arc::new(Logins::new(reachable(address), sessions.clone())));
        let operator = Arc::new(Operator {
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
            notes: NoteBook::default(),
        });
        let routes = logins.map(|logins| {
            Arc::new(Routes {
                live: live.clone(),
                endpoint: Endpoint::new(server.clone(), stack::http_limits(config)),
                console: Console {
                    logins,
                    operator: operator.clone(),
                    sign_ins: SignIns::new(signing_in::folder(&start.data)),
                },
                own: OwnSignIn {
                    links,
                    sign_ins: SignIns::new(signing_in::folder(&start.data)),
                    showing: Showing::new(),
                },
                witness,
                keys: operator.desk.freezes().keys().clone(),
                attempts: Attempts::new(),
            })
        });
        Ok(Parts {
            server,
            live,
            reloader,
            supervisor,
            operator,
            routes,
        })
    }

    pub(super) fn ready(&self, start: &Start, address: Option<SocketAddr>) -> String {
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
        let ready = Ready {
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
                .map(|_| ANY.to_owned()),
        };
        ready.text()
    }
}

/// Banner note for a listener on all addresses.
const ANY: &str = "The gateway listens on all addresses of this machine, and accepts only the host names in allowed_hosts: \
                   add the names that clients use.";
