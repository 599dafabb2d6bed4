//! Operator's views and actions, shared by the console and the terminal.

mod desk;
mod explain;
mod keys;
mod notes;
mod pins;
mod record;

pub(crate) use keys::{KEY_EXPIRY_WARNING, key_json, key_words};
pub(crate) use notes::{DefinitionNotes, lines as note_lines};
pub(crate) use record::sign_in;

use crate::{
    board::{CallFeed, ConsoleEvent, millis},
    console::ConsoleSessions,
    explained::nearest,
    live::ActiveSnapshot,
    offered::{self, ITEM_LISTS},
    reload::{ConfigReloader, ReloadTrigger},
    servers::ServerSupervisor,
};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::sync::{broadcast, mpsc};
use toolgate::{
    CallReporter, Caller, Catalog, EventSink, ItemKind, Json, ListRequest, Output, ReporterEvent,
    ToolResult,
    edge::{ProtocolServer, call_here},
};
use toolgate_journal::{AuditEntry, AuditEvent as Happened, AuditJournal};
use toolgate_policy::{ApprovalService, ApprovalStatus, Approver, for_record};
use toolgate_wire::dialect;

/// Views and actions of the operator on the running gateway.
pub(crate) struct OperatorApi {
    pub(crate) board: Arc<CallFeed>,
    pub(crate) desk: Arc<ApprovalService>,
    pub(crate) supervisor: Arc<ServerSupervisor>,
    /// Active snapshot of the config.
    pub(crate) live: Arc<ActiveSnapshot>,
    pub(crate) reloader: Arc<ConfigReloader>,
    /// Server for the operator's own calls, which pass the same layers as all calls.
    pub(crate) server: Arc<ProtocolServer>,
    pub(crate) logins: Option<Arc<ConsoleSessions>>,
    /// URL of the MCP endpoint; `None` if the gateway serves stdio only.
    pub(crate) endpoint: Option<String>,
    pub(crate) data: String,
    /// Command-line options that name this gateway's config and data.
    pub(crate) flags: String,
    /// Directory of the stored credentials for servers.
    pub(crate) grants: PathBuf,
    /// Audit log.
    pub(crate) journal: Arc<AuditJournal>,
    /// Notes on definitions that were repaired, withheld or dropped.
    pub(crate) notes: DefinitionNotes,
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
    fn why(self) -> String {
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
    pub(crate) fn changes(&self) -> broadcast::Receiver<ConsoleEvent> {
        self.board.subscribe()
    }

    /// Returns the full state as JSON.
    pub(crate) async fn snapshot(&self) -> Value {
        self.collect_notes().await;
        let mut all = json!({
            "version": env!("CARGO_PKG_VERSION"), "endpoint": self.endpoint.as_deref().unwrap_or("stdio"), "data": self.data,
            "now": millis(SystemTime::now()), "servers": self.server_status(), "issuers": self.issuers(),
            "calls": self.board.json(), "pending": self.pending(), "grants": self.grants(),
            "freezes": self.freezes(), "keys": self.key_list(), "tasks": self.tasks(),
            "policy": self.reloader.status(), "pins": self.open_pins(), "record": self.record(),
        });
        for (name, kinds) in ITEM_LISTS {
            all[name] = self.list(kinds).await;
        }
        all
    }

    /// Executes an action.
    ///
    /// # Errors
    /// The message is for the person who asked.
    pub(crate) async fn act(
        &self,
        action: &str,
        with: &Value,
        who: &Approver,
    ) -> Result<Value, String> {
        let (notes, _) = mpsc::channel(1);
        let done = self.act_noting(action, with, who, notes).await;
        done.map_err(ActionError::why)
    }

    /// Executes an action, and sends progress messages meanwhile.
    ///
    /// # Errors
    /// The message is for the person who asked.
    pub(crate) async fn act_noting(
        &self,
        action: &str,
        with: &Value,
        who: &Approver,
        notes: mpsc::Sender<String>,
    ) -> ActionResult {
        let word = |key: &str| with.get(key).and_then(Value::as_str).unwrap_or_default();
        let by = who.by.as_str();
        if let Some((_, kinds)) = ITEM_LISTS.iter().find(|(name, _)| *name == action) {
            return Ok(self.list(kinds).await);
        }
        if let Some(done) = self.pins(action, with, by).await {
            return done;
        }
        if let Some(done) = self.keys(action, with, who).await {
            return done;
        }
        let caller = with.get("caller").and_then(Value::as_str);
        match action {
            "state" => Ok(self.snapshot().await),
            "status" => {
                self.collect_notes().await;
                Ok(self.status())
            }
            "calls" => Ok(self.board.json()),
            "console" => self.link(word("as")),
            "console/revoke" => self.revoke_logins(who).await,
            "servers/signed-in" => self.heard(word("id"), caller, "signed_in", who),
            "servers/signed-out" => self.heard(word("id"), caller, "signed_out", who),
            "reload" => Ok(self.reloader.reload(ReloadTrigger::Wanted(by)).await?),
            "stop" => self.stop(word("id"), who).await,
            "tasks" => Ok(self.tasks()),
            "tasks/stop" => self.stop_task(word("id"), who).await,
            "explain" => self.explain(with).await,
            "call" => self.call(word("tool"), with, who, notes).await,
            _ => self.decide(action, with, who).await,
        }
    }

    /// Applies and records a sign-in or sign-out that this process performed.
    ///
    /// A server that waits for it is retried at once; connections that use revoked credentials end. The event is
    /// recorded even if a reload has removed the server meanwhile.
    pub(crate) fn signed(
        &self,
        id: &str,
        caller: Option<&str>,
        state: &'static str,
        who: &Approver,
    ) {
        self.follow(id, caller, state);
        self.record_sign_in(id, caller, state, who);
    }

    /// Applies a sign-in or sign-out; returns whether the server exists.
    fn follow(&self, id: &str, caller: Option<&str>, state: &'static str) -> bool {
        match state {
            "signed_out" => self.supervisor.signed_out(id, caller),
            _ => self.supervisor.wake(id, caller),
        }
    }

    /// Applies and records a sign-in or sign-out of another process. That process asks the gateways in turn, and
    /// records the event itself if none of them knows the server.
    fn heard(
        &self,
        id: &str,
        caller: Option<&str>,
        state: &'static str,
        who: &Approver,
    ) -> ActionResult {
        if !self.follow(id, caller, state) {
            return Err(ActionError::Unknown(format!("there is no server {id:?}")));
        }
        self.record_sign_in(id, caller, state, who);
        Ok(json!({"ok": true}))
    }

    fn link(&self, label: &str) -> ActionResult {
        let Some(logins) = &self.logins else {
            let why = "this gateway has no console: it serves stdio only; use `toolgate inbox`, `approve` and `deny`";
            return Err(ActionError::Unknown(why.to_owned()));
        };
        Ok(json!({"link": logins.link(label)?}))
    }

    /// Revokes all browser sessions of the data directory.
    async fn revoke_logins(&self, who: &Approver) -> ActionResult {
        let Some(logins) = &self.logins else {
            return Ok(json!({"revoked": 0}));
        };
        let revoked = logins.revoke().await?;
        let entry = AuditEntry::new(Happened::from("console.revoked")).with("count", revoked);
        // The sessions are revoked already. If that cannot be recorded, calls are rejected and the console shows it.
        let _ = self
            .journal
            .note(for_record(entry.with("by", who.by.as_str())));
        Ok(json!({"revoked": revoked}))
    }

    /// Stops everything that runs for a call. If the call waits for an approval, that is denied.
    async fn stop(&self, id: &str, who: &Approver) -> ActionResult {
        let stopped = self.board.stop.stop(id);
        let waits = self
            .board
            .waiting()
            .into_iter()
            .find(|(call, _)| **call == *id);
        if let Some((_, approval)) = waits {
            let why = Some("the operator stopped this call".to_owned());
            let denied = desk::done(self.desk.deny(&approval, who.clone(), why).await, id);
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
                "no call {id} is running; `toolgate calls` lists them"
            )))
        }
    }

    /// Returns the tasks, oldest first: calls that continue after their response.
    pub(crate) fn tasks(&self) -> Value {
        let tasks = self.server.tasks().into_iter();
        tasks
            .map(|task| {
                json!({"call": task.call, "caller": task.caller.name(), "tool": self.board.full_name(&task.tool),
                    "status": task.status, "message": task.message, "created": task.created,
                    "ttl": millis_of(task.life)})
            })
            .collect()
    }

    /// Stops a task. If it waits for an approval, that is denied.
    async fn stop_task(&self, id: &str, who: &Approver) -> ActionResult {
        if !self.server.stop_task(id) {
            return Err(ActionError::Unknown(format!(
                "no task {id} is running; `toolgate tasks list` shows them"
            )));
        }
        // It fails if the task no longer waits; then there is nothing to deny.
        let _ = self.stop(id, who).await;
        Ok(json!({"ok": true}))
    }

    async fn call(
        &self,
        tool: &str,
        with: &Value,
        who: &Approver,
        notes: mpsc::Sender<String>,
    ) -> ActionResult {
        let name = self.wire_name(tool).await?;
        // The control socket sends the exact text; the console sends parsed JSON.
        let arguments = match with.get("text").and_then(Value::as_str) {
            Some(text) => Json::read(text.as_bytes().to_vec(), &Default::default())
                .map_err(|e| format!("the arguments: {e}"))?,
            None => Json::from_value(with.get("arguments").unwrap_or(&json!({}))),
        };
        if arguments.kind() != toolgate_wire::json::JsonKind::Object {
            return Err(
                "the arguments must be a JSON object, for example '{\"name\": \"x\"}'"
                    .to_owned()
                    .into(),
            );
        }
        let by = who.by.as_str();
        // A session with a label belongs to a person of its own in rules and approvals.
        let person = who.name.as_deref().filter(|_| !who.owner).unwrap_or(by);
        let caller = Caller::new(format!("operator@{person}"));
        let reporter = CallReporter::new(Arc::new(ProgressLines(notes)));
        let output = call_here(&self.server, caller, by, &name, arguments, reporter)
            .await
            .map_err(|e| e.public().to_owned())?;
        Ok(output_json(&output))
    }

    /// Resolves `server.tool` or a client's name to the client's name.
    async fn wire_name(&self, tool: &str) -> Result<String, ActionError> {
        let find = |catalog: &Catalog| {
            let mut items = catalog.items().iter();
            let found = items.find(|item| item.full_name() == tool || item.def.name() == tool);
            found.map(|item| item.def.name().to_owned())
        };
        if let Some(name) = find(&self.known(ItemKind::Tool).await) {
            return Ok(name);
        }
        // A server may just have started, so list all servers again.
        self.refresh().await;
        let catalog = self.known(ItemKind::Tool).await;
        if let Some(name) = find(&catalog) {
            return Ok(name);
        }
        let names = catalog.items().iter().map(|item| item.full_name());
        Err(ActionError::Unknown(match nearest(tool, names) {
            Some(name) => format!("there is no tool {tool:?}; did you mean {name:?}?"),
            None => format!("there is no tool {tool:?}; `toolgate tools` lists them"),
        }))
    }

    /// Lists all items of all servers. Waits for slow ones.
    pub(crate) async fn refresh(&self) {
        let servers = self.live.plan().pinning.clone();
        let list = |kind| servers.list(ListRequest::all(Caller::new("operator"), kind));
        join_all(ItemKind::ALL.map(list)).await;
    }

    /// Returns the known items of one kind, without asking a server.
    async fn known(&self, kind: ItemKind) -> Catalog {
        let ask = ListRequest::all(Caller::new("operator"), kind);
        let tools = self.live.plan().tools.clone();
        let catalog = tools.list(ask).await.unwrap_or_default();
        self.board.know(kind, catalog.clone());
        catalog
    }

    /// Returns one of the lists of [`ITEM_LISTS`], with rule decisions.
    async fn list(&self, kinds: &[ItemKind]) -> Value {
        let mut all = Vec::new();
        let plan = self.live.plan();
        // The console shows the decisions for callers of the listener.
        let caller = plan.caller(self.endpoint.is_some());
        for kind in kinds {
            let catalog = self.known(*kind).await;
            let items = catalog.items().iter();
            all.extend(items.map(|item| offered::item(item, &plan.route.access, &caller)));
        }
        Value::Array(all)
    }

    /// Sends approvals that are new, changed, or settled since `known` to the console.
    pub(crate) fn tell_pending(&self, known: &mut Vec<String>) {
        let pending = self.pending();
        let open: Vec<&Value> = pending
            .as_array()
            .map(|all| all.iter().collect())
            .unwrap_or_default();
        let ids: Vec<String> = open
            .iter()
            .filter_map(|p| p["id"].as_str().map(str::to_owned))
            .collect();
        for question in open {
            self.board.tell("pending", question);
        }
        for gone in known.iter().filter(|id| !ids.contains(id)) {
            let standing = self.desk.find(gone).map(|view| view.standing);
            let decided = standing.as_ref().map(ApprovalStatus::as_str);
            self.board.tell(
                "pending",
                &json!({"id": gone, "state": "gone", "decided": decided}),
            );
        }
        *known = ids;
        self.board.tell("grants", &self.grants());
        self.board.tell("freezes", &self.freezes());
        self.settle_waiting();
    }

    /// Marks calls as cancelled if their caller gave up and their approval is settled.
    fn settle_waiting(&self) {
        for (call, approval) in self.board.waiting() {
            let over = match self.desk.find(&approval).map(|view| view.standing) {
                Some(ApprovalStatus::Open | ApprovalStatus::Approved(_)) => false,
                Some(ApprovalStatus::Spent { call: by, .. }) => by != call,
                Some(
                    ApprovalStatus::Denied(..) | ApprovalStatus::Expired | ApprovalStatus::Revoked,
                )
                | None => true,
            };
            if over {
                self.board.gone(&call);
            }
        }
    }

    /// Sends all items that the servers offer to the console.
    pub(crate) async fn tell_offered(&self) {
        for (name, kinds) in ITEM_LISTS {
            let list = self.list(kinds).await;
            self.board.tell(name, &list);
        }
        self.collect_notes().await;
        self.board.tell("servers", &self.server_status());
        self.tell_pins();
    }
}

fn millis_of(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Renders a tool result as the protocol writes it, for a terminal or the console.
fn output_json(output: &ToolResult) -> Value {
    let nobody = toolgate_wire::method::initialize::Implementation::default();
    let mut value = dialect::MODERN
        .output(&Output::Tool(output.clone()), &nobody)
        .to_value();
    if let Some(map) = value.as_object_mut() {
        map.remove("_meta");
        map.remove("resultType");
    }
    value
}

/// Reporter that sends progress as lines for a terminal.
struct ProgressLines(mpsc::Sender<String>);

impl EventSink for ProgressLines {
    fn report(&self, event: ReporterEvent) {
        let text = match event {
            ReporterEvent::Progress(p) => p.message.unwrap_or_else(|| p.progress.to_string()),
            ReporterEvent::Log(log) => format!("{}: {}", log.level, log.data.as_str()),
        };
        let _ = self.0.try_send(text);
    }
}
