//! Operator's views and actions, shared by the console and the terminal.

mod action_input;
mod audit_log;
mod call_arguments;
mod decisions;
mod explain;
mod freeze_target;
mod items;
mod keys;
mod notes;
mod notifications;
mod overview;
mod passkeys;
mod pins;
mod requests;
mod settings;
mod status;
mod tool_call;

pub(crate) use decisions::approval_end;
pub(crate) use keys::{KEY_EXPIRY_WARNING, key_error_message, key_json};
pub(crate) use notes::{DefinitionNotes, lines as note_lines};
pub(crate) use requests::SentRequests;
pub(crate) use status::sign_in_record;

use crate::{
    admin::GatewayHealth,
    notify::NotificationSender,
    operator::{
        AuditHistory, ConsolePresence, ConsoleSessions, LastApprovedCalls, actions,
        item_view::{self, ITEM_LISTS},
    },
    runtime::active::ActiveSnapshot,
    runtime::call_feed::{CallFeed, ConsoleEvent},
    runtime::reload::{ConfigReloader, ReloadTrigger},
    servers::ServerSupervisor,
    timestamp::millis,
    tls::ListenerTls,
};
use action_input::ActionInput;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};
use tokio::sync::{broadcast, mpsc};
use toolgate::edge::ProtocolServer;
use toolgate_core::{Caller, Catalog, ItemKind, ListRequest};
use toolgate_journal::{AuditEntry, AuditEvent as Happened, AuditJournal};
use toolgate_policy::{ApprovalService, ApprovalStatus, Approver, StateStore, sanitize_entry};

/// Views and actions of the operator on the running gateway.
pub(crate) struct OperatorApi {
    pub(crate) feed: Arc<CallFeed>,
    pub(crate) approvals: Arc<ApprovalService>,
    pub(crate) supervisor: Arc<ServerSupervisor>,
    /// Active snapshot of the config.
    pub(crate) active: Arc<ActiveSnapshot>,
    pub(crate) reloader: Arc<ConfigReloader>,
    pub(crate) health: Arc<GatewayHealth>,
    /// Server for the operator's own calls, which pass the same layers as all calls.
    pub(crate) server: Arc<ProtocolServer>,
    pub(crate) sessions: Option<Arc<ConsoleSessions>>,
    /// URL of the MCP endpoint; `None` if the gateway serves stdio only.
    pub(crate) endpoint: Option<String>,
    /// Address of the listener; `None` if the gateway serves stdio only.
    pub(crate) listen: Option<SocketAddr>,
    /// TLS of the listener, if it has TLS.
    pub(crate) tls: Option<Arc<ListenerTls>>,
    pub(crate) data: String,
    /// Command-line options that name this gateway's config and data.
    pub(crate) flags: String,
    /// Directory of the stored credentials for servers.
    pub(crate) credentials_dir: PathBuf,
    /// Audit log.
    pub(crate) journal: Arc<AuditJournal>,
    /// Sender of notifications, with the browsers that get push messages.
    pub(crate) notification_sender: Arc<NotificationSender>,
    /// Notes on definitions that were repaired, withheld or dropped.
    pub(crate) notes: DefinitionNotes,
    /// Open pages of the console.
    pub(crate) presence: ConsolePresence,
    pub(crate) last_approved: LastApprovedCalls,
    /// Index of the audit log, for the past.
    pub(crate) history: AuditHistory,
    pub(crate) store: Arc<dyn StateStore>,
    /// Counter that is raised when the lists of items or pins change.
    pub(crate) items_serial: AtomicU64,
}

type ActionResult = Result<Value, ActionError>;

/// Failure of an operator's action.
pub(crate) enum ActionError {
    /// The object is unknown here; another gateway may know it.
    Unknown(String),
    /// The object is known, and the action is refused.
    Refused(String),
}

impl ActionError {
    fn into_message(self) -> String {
        let (ActionError::Unknown(why) | ActionError::Refused(why)) = self;
        why
    }
}

impl From<String> for ActionError {
    fn from(why: String) -> ActionError {
        ActionError::Refused(why)
    }
}

impl OperatorApi {
    /// Subscribes to events from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<ConsoleEvent> {
        self.feed.subscribe()
    }

    /// Returns the full state as JSON.
    pub(crate) async fn snapshot(&self) -> Value {
        let mut all = self.common_state().await;
        all["calls"] = self.feed.json();
        all["pending"] = self.detailed_requests();
        all["pins"] = self.open_pins();
        for (name, kinds) in ITEM_LISTS {
            all[name] = self.list_items(kinds).await;
        }
        all
    }

    /// Returns the state that a page of the console begins with. Pages read the lists of items and pins only while they
    /// show them.
    pub(crate) async fn page_state(&self, page: u64) -> Value {
        let mut all = self.common_state().await;
        all["page"] = json!(page);
        all["calls"] = self.feed.rows();
        all["pending"] = self.listed_requests();
        all["presence"] = self.presence.json();
        all["items"] = self.item_counts().await;
        all["pinned"] = self.pin_counts();
        all
    }

    /// Returns the parts of the state that are short, whatever goes on.
    async fn common_state(&self) -> Value {
        self.collect_notes().await;
        json!({
            "version": env!("CARGO_PKG_VERSION"), "endpoint": self.endpoint.as_deref().unwrap_or("stdio"), "data": self.data,
            "now": millis(SystemTime::now()), "servers": self.server_status(), "issuers": self.issuers(),
            "grants": self.grants(), "freezes": self.freezes(), "keys": self.key_list(), "tasks": self.tasks(),
            "policy": self.reloader.status(), "record": self.audit_status(), "disk": self.disk_status(),
        })
    }

    /// Executes an action.
    ///
    /// # Errors
    /// The message is for the person who asked.
    pub(crate) async fn execute(
        &self,
        action: &str,
        with: &Value,
        who: &Approver,
    ) -> Result<Value, String> {
        let (notes, _) = mpsc::channel(1);
        let done = self.execute_with_progress(action, with, who, notes).await;
        done.map_err(ActionError::into_message)
    }

    /// Executes an action, and sends progress messages meanwhile.
    ///
    /// # Errors
    /// The message is for the person who asked.
    pub(crate) async fn execute_with_progress(
        &self,
        action: &str,
        with: &Value,
        who: &Approver,
        notes: mpsc::Sender<String>,
    ) -> ActionResult {
        if actions::required_right(action).is_none() {
            return Err(ActionError::Unknown(format!(
                "this gateway does not know the action {action:?}; the command and the gateway may have different versions: restart the gateway"
            )));
        }
        let word = |key: &str| ActionInput(with).text(key);
        let by = who.channel.as_str();
        if let Some((_, kinds)) = ITEM_LISTS.iter().find(|(name, _)| *name == action) {
            return Ok(self.list_items(kinds).await);
        }
        if let Some(done) = self.pin_action(action, with, who).await {
            return done;
        }
        if let Some(done) = self.key_action(action, with, who).await {
            return done;
        }
        if let Some(done) = self.request_action(action, with, who).await {
            return done;
        }
        if let Some(done) = self.item_action(action, with).await {
            return done;
        }
        if let Some(done) = self.history_action(action, with).await {
            return done;
        }
        if let Some(done) = self.audit_action(action, with).await {
            return done;
        }
        if let Some(done) = self.settings_action(action, with, who).await {
            return done;
        }
        if let Some(done) = self.notification_action(action, with, who).await {
            return done;
        }
        if let Some(done) = self.passkey_action(action, with, who).await {
            return done;
        }
        let caller = with.get("caller").and_then(Value::as_str);
        match action {
            "state" => Ok(self.snapshot().await),
            "status" => {
                self.collect_notes().await;
                Ok(self.status())
            }
            "calls" => Ok(self.feed.json()),
            "calls/get" => self.call_detail(word("id")),
            "console" => self.console_link(word("as")),
            "console/end" => self.end_session(word("id"), who).await,
            "console/revoke" => self.revoke_sessions(who).await,
            "console/sessions" => Ok(self
                .sessions
                .as_ref()
                .map_or_else(|| json!([]), |sessions| sessions.list_sessions())),
            "servers/restart" => self.restart_server(word("id"), who),
            "servers/signed-in" => self.handle_remote_sign_in(word("id"), caller, "signed_in", who),
            "servers/signed-out" => {
                self.handle_remote_sign_in(word("id"), caller, "signed_out", who)
            }
            "reload" => Ok(self.reloader.reload(ReloadTrigger::Requested(by)).await?),
            "stop" => self.stop_call(word("id"), who).await,
            "tasks" => Ok(self.tasks()),
            "tasks/stop" => self.stop_task(word("id"), who).await,
            "explain" => self.explain(with).await,
            "call" => self.call_tool(word("tool"), with, who, notes).await,
            _ => self.decision_action(action, with, who).await,
        }
    }

    /// Applies and records a sign-in or sign-out that this process performed.
    ///
    /// A server that waits for it is retried at once; connections that use revoked credentials end. The event is
    /// recorded even if a reload has removed the server meanwhile.
    pub(crate) fn handle_sign_in(
        &self,
        id: &str,
        caller: Option<&str>,
        state: &'static str,
        who: &Approver,
    ) {
        self.apply_sign_in(id, caller, state);
        self.record_sign_in(id, caller, state, who);
    }

    /// Applies a sign-in or sign-out; returns whether the server exists.
    fn apply_sign_in(&self, id: &str, caller: Option<&str>, state: &'static str) -> bool {
        match state {
            "signed_out" => self.supervisor.drop_credentials(id, caller),
            _ => self.supervisor.retry(id, caller),
        }
    }

    /// Restarts a server. Its running calls fail.
    fn restart_server(&self, id: &str, who: &Approver) -> ActionResult {
        if !self.supervisor.restart(id) {
            return Err(ActionError::Unknown(format!(
                "there is no server {id:?}; `toolgate status` lists the servers"
            )));
        }
        let entry = AuditEntry::new(Happened::from("server.restart")).with("server", id);
        let entry = who.add_to(entry);
        // It is restarted already. If that cannot be recorded, calls are rejected and the console shows it.
        let _ = self.journal.enqueue(sanitize_entry(entry));
        Ok(json!({"ok": true}))
    }

    /// Applies and records a sign-in or sign-out of another process. That process asks the gateways in turn, and
    /// records the event itself if none of them knows the server.
    fn handle_remote_sign_in(
        &self,
        id: &str,
        caller: Option<&str>,
        state: &'static str,
        who: &Approver,
    ) -> ActionResult {
        if !self.apply_sign_in(id, caller, state) {
            return Err(ActionError::Unknown(format!(
                "there is no server {id:?}; `toolgate status` lists the servers"
            )));
        }
        self.record_sign_in(id, caller, state, who);
        Ok(json!({"ok": true}))
    }

    fn console_link(&self, label: &str) -> ActionResult {
        let Some(logins) = &self.sessions else {
            let why = "this gateway has no console: it serves stdio only; use `toolgate inbox`, `approve` and `deny`";
            return Err(ActionError::Unknown(why.to_owned()));
        };
        let console = self.active.snapshot().config.console_at(logins.url());
        Ok(json!({"link": logins.create_link(label, Some(&console))?}))
    }

    /// Ends one browser session of the data directory.
    async fn end_session(&self, id: &str, who: &Approver) -> ActionResult {
        let Some(logins) = &self.sessions else {
            return Err(ActionError::Unknown(
                "this gateway has no console".to_owned(),
            ));
        };
        let of = logins.end_listed_session(id).await?;
        let entry = AuditEntry::new(Happened::from("console.revoked"))
            .with("count", 1)
            .with("of", of.as_str());
        // The session has ended already. If that cannot be recorded, calls are rejected and the console shows it.
        let _ = self.journal.enqueue(sanitize_entry(who.add_to(entry)));
        Ok(json!({"ended": of}))
    }

    /// Revokes all browser sessions of the data directory.
    async fn revoke_sessions(&self, who: &Approver) -> ActionResult {
        let Some(logins) = &self.sessions else {
            return Ok(json!({"revoked": 0}));
        };
        let revoked = logins.revoke_sessions().await?;
        let entry = AuditEntry::new(Happened::from("console.revoked")).with("count", revoked);
        // The sessions are revoked already. If that cannot be recorded, calls are rejected and the console shows it.
        let _ = self.journal.enqueue(sanitize_entry(who.add_to(entry)));
        Ok(json!({"revoked": revoked}))
    }

    /// Returns everything about a recent call: its times, its result, and who decided on its approval.
    fn call_detail(&self, id: &str) -> ActionResult {
        let Some(mut call) = self.feed.find(id) else {
            return Err(ActionError::Unknown(format!(
                "the call {id} is not among the recent ones; `toolgate audit search` finds its records"
            )));
        };
        let approval = call["approval"]
            .as_str()
            .and_then(|id| self.approvals.find(id));
        call["decision"] = approval.map_or(Value::Null, |view| {
            let (decision, by, reason) = approval_end(&view.status);
            json!({"decision": decision, "by": by.map(ToString::to_string), "reason": reason})
        });
        Ok(call)
    }

    /// Stops everything that runs for a call. If the call waits for an approval, that is denied.
    async fn stop_call(&self, id: &str, who: &Approver) -> ActionResult {
        let stopped = self.feed.canceller.cancel(id);
        let waits = self
            .feed
            .waiting_calls()
            .into_iter()
            .find(|(call, _)| **call == *id);
        if let Some((_, approval)) = waits {
            let why = Some("the operator stopped this call".to_owned());
            let denied = decisions::decision_result(
                self.approvals.deny(&approval, who.clone(), why).await,
                id,
            );
            return if stopped {
                Ok(json!({"ok": true}))
            } else {
                denied
            };
        }
        if stopped {
            Ok(json!({"ok": true}))
        } else {
            Err(ActionError::Unknown(format!(
                "no call {id} is running; `toolgate calls` lists the calls"
            )))
        }
    }

    /// Returns the tasks, oldest first: calls that continue after their response.
    pub(crate) fn tasks(&self) -> Value {
        let tasks = self.server.tasks().into_iter();
        tasks
            .map(|task| {
                json!({"call": task.call, "caller": task.caller.name(), "tool": self.feed.full_name(&task.tool),
                    "status": task.status, "message": task.message, "created": task.created,
                    "ttl": millis_of(task.lifetime)})
            })
            .collect()
    }

    /// Stops a task. If it waits for an approval, that is denied.
    async fn stop_task(&self, id: &str, who: &Approver) -> ActionResult {
        if !self.server.cancel_task(id) {
            return Err(ActionError::Unknown(format!(
                "no task {id} is running; `toolgate tasks list` lists the tasks"
            )));
        }
        // It fails if the task no longer waits; then there is nothing to deny.
        let _ = self.stop_call(id, who).await;
        Ok(json!({"ok": true}))
    }

    /// Lists all items of all servers. Waits for slow ones.
    pub(crate) async fn list_servers(&self) {
        let servers = self.active.snapshot().pinning_servers.clone();
        let list = |kind| servers.list(ListRequest::all(Caller::new("operator"), kind));
        join_all(ItemKind::ALL.map(list)).await;
    }

    /// Returns the known items of one kind, without asking a server.
    async fn known_items(&self, kind: ItemKind) -> Catalog {
        let ask = ListRequest::all(Caller::new("operator"), kind);
        let tools = self.active.snapshot().known_items.clone();
        let catalog = tools.list(ask).await.unwrap_or_default();
        self.feed.set_catalog(kind, catalog.clone());
        catalog
    }

    /// Returns one of the lists of [`ITEM_LISTS`], with rule decisions.
    async fn list_items(&self, kinds: &[ItemKind]) -> Value {
        let mut all = Vec::new();
        let plan = self.active.snapshot();
        // The console shows the decisions for callers of the listener.
        let caller = plan.default_caller(self.endpoint.is_some());
        for kind in kinds {
            let catalog = self.known_items(*kind).await;
            let items = catalog.items().iter();
            all.extend(
                items.map(|item| item_view::item_json(item, &plan.policies.access, &caller)),
            );
        }
        Value::Array(all)
    }

    /// Marks calls as cancelled if their caller gave up and their approval is settled.
    pub(super) fn cancel_settled(&self) {
        for (call, approval) in self.feed.waiting_calls() {
            let over = match self.approvals.find(&approval).map(|view| view.status) {
                Some(ApprovalStatus::Pending | ApprovalStatus::Approved(_)) => false,
                Some(ApprovalStatus::Spent { call: by, .. }) => by != call,
                _ => true, // denied, expired, revoked or unknown
            };
            if over {
                self.feed.mark_cancelled(&call);
            }
        }
    }

    /// Reads all items that the servers offer, and tells the console that they may have changed.
    pub(crate) async fn send_items(&self) {
        for kind in ItemKind::ALL {
            self.known_items(kind).await;
        }
        self.items_serial.fetch_add(1, Ordering::Relaxed);
        if self.feed.is_watched() {
            let counts = self.item_counts().await;
            self.feed.send("items", &counts);
        }
        self.collect_notes().await;
        self.feed.send_with("servers", || self.server_status());
        self.send_pins();
    }
}

fn millis_of(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
