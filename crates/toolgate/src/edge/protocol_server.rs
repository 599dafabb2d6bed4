//! State that all protocol servers share: the service, its limits, and the log of rejections.

use super::{
    QueueLimits, TaskLimits, TaskOffer,
    page_cache::ListPageCache,
    responder::{OutgoingFrames, Responder},
    stateless::ClientMetadataCache,
    tasks::TaskTable,
};
use crate::seal::Seal;
use std::{net::IpAddr, sync::Arc, time::Duration};
use tokio::sync::watch;
use toolgate_core::{BoxFuture, Caller, CancelReason, Error, OperationObserver, Service};
use toolgate_policy::StateClock;
use toolgate_protocol::{
    dialect::Dialect,
    json::{Json, JsonLimits, ObjectWriter},
    memory_budget::{BudgetScope, MemoryBudget, MemoryPermit},
    message::{RpcError, code},
    method::{
        definition::{Definition, ItemKind},
        initialize::Implementation,
        operation, skills,
        tasks::{EXTENSION, TaskForm, TaskSupport},
    },
};

/// MCP server of one [`Service`]: answers JSON-RPC messages in every protocol revision, over all its transports.
///
/// Specification: [base protocol](https://modelcontextprotocol.io/specification/2026-07-28/basic).
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use toolgate::{
///     Caller, Error, Service,
///     core::BoxFuture,
///     edge::{
///         InstructionsProvider, MissedPings, ProtocolServer, QueueLimits, Rejection, RejectionLog,
///         ServerCapabilities, ServerLimits, TaskLimits, TaskOffer, TaskView,
///     },
/// };
///
/// /// Prints rejected calls.
/// struct Printer;
///
/// impl RejectionLog for Printer {
///     fn rejected(&self, rejection: Rejection) -> BoxFuture<'_, ()> {
///         println!("{}: {}", rejection.caller.name(), rejection.reason);
///         Box::pin(async {})
///     }
///
///     fn missed_pings(&self, caller: &Caller, _transport: &'static str, missed: MissedPings) {
///         println!("{} missed {} pings", caller.name(), missed.consecutive);
///     }
/// }
///
/// /// Tells operators about further tools.
/// struct ByCaller;
///
/// impl InstructionsProvider for ByCaller {
///     fn instructions(&self, caller: &Caller) -> Option<String> {
///         caller.name().starts_with("operator@").then(|| "Use `drain` before `stop`.".to_owned())
///     }
/// }
///
/// /// Serves a service of your own, whose long calls become tasks.
/// fn serve(service: Arc<dyn Service>) -> Result<ProtocolServer, Error> {
///     let mut tasks = TaskLimits::default();
///     tasks.become_task_after = Duration::from_secs(2);
///     let mut queue = QueueLimits::default();
///     queue.messages = 64;
///     let mut limits = ServerLimits::default();
///     (limits.tasks, limits.queue) = (tasks, queue);
///     limits.ping_interval = Some(Duration::from_secs(30));
///
///     let mut capabilities = ServerCapabilities::default();
///     capabilities.tasks = TaskOffer::Every;
///     Ok(ProtocolServer::new(service, "control", "1.0.0", limits)?
///         .with_capabilities(capabilities)
///         .with_instructions_provider(Arc::new(ByCaller))
///         .with_rejection_log(Arc::new(Printer)))
/// }
///
/// /// Prints the tasks, for an operator.
/// fn show_tasks(server: &ProtocolServer) {
///     for TaskView { caller, tool, status, .. } in server.tasks() {
///         println!("{}: {tool} is {status}", caller.name());
///     }
/// }
/// ```
pub struct ProtocolServer {
    pub(crate) service: Arc<dyn Service>,
    pub(crate) info: Implementation,
    /// `info` as JSON, as written into each reply.
    pub(crate) info_json: Json,
    pub(crate) limits: ServerLimits,
    pub(crate) seal: Seal,
    pub(crate) rejection_log: Option<Arc<dyn RejectionLog>>,
    pub(crate) operation_observer: Option<Arc<dyn OperationObserver>>,
    instructions: Option<Arc<dyn InstructionsProvider>>,
    pub(crate) offered: ServerCapabilities,
    pub(crate) tasks: TaskTable,
    memory_budget: Option<Arc<MemoryBudget>>,
    closing: watch::Sender<bool>,
    pub(crate) pages: ListPageCache,
    pub(crate) client_metadata: ClientMetadataCache,
    has_param_headers: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    /// True if calls keep the transport-specific parts of their requests.
    pub(crate) keeps_transport_parts: bool,
    /// The clock that decides whether sealed state has expired.
    pub(crate) clock: Arc<StateClock>,
}

/// Limits of an MCP server: sizes, pages, input requests, subscriptions and tasks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerLimits {
    /// Limits on the size and nesting of the JSON of one message.
    pub json: JsonLimits,
    /// Maximum length of a line over a byte stream such as stdio, in bytes, instead of [`JsonLimits::bytes`] of `json`;
    /// none by default.
    pub max_line_bytes: Option<usize>,
    /// Maximum length of an item name or URI in a request, in bytes; 8 KiB.
    pub max_name_bytes: usize,
    /// Maximum number of requests in flight of one connection or session; 64.
    pub max_in_flight: usize,
    /// Maximum number of items on one page of a list result (`tools/list` and so on); 1,000.
    pub page_items: usize,
    /// Lifetime of the sealed `requestState` of an `input_required` result; 5 minutes.
    pub seal_lifetime: Duration,
    /// Time limit for the client's response to an input request (elicitation, sampling, roots); 10 minutes.
    pub input_timeout: Duration,
    /// Interval of keepalive `ping` requests to a client with a handshake and an open stream; none by default. A client
    /// that answered pings before and then misses two in a row, 30 s each, is disconnected: its connection or session
    /// ends, and its calls are cancelled. No ping is sent while the client has a request of the server to answer.
    pub ping_interval: Option<Duration>,
    /// Maximum number of rounds of input requests (`input_required` results) of one call; 10.
    pub max_rounds: u32,
    /// Limits of the queue of outgoing messages to a slow client.
    pub queue: QueueLimits,
    /// Maximum number of resource subscriptions of one session or stream; 1,024.
    pub max_subscriptions: usize,
    /// Limits of MCP tasks.
    pub tasks: TaskLimits,
}

impl Default for ServerLimits {
    fn default() -> ServerLimits {
        ServerLimits {
            json: JsonLimits::default(),
            max_line_bytes: None,
            max_name_bytes: 8 * 1024,
            max_in_flight: 64,
            page_items: 1000,
            seal_lifetime: Duration::from_secs(300),
            input_timeout: Duration::from_secs(600),
            ping_interval: None,
            max_rounds: 10,
            queue: QueueLimits::default(),
            max_subscriptions: 1024,
            tasks: TaskLimits::default(),
        }
    }
}

impl ServerLimits {
    /// Returns the limits on the JSON of one line.
    pub(crate) fn line_json(&self) -> JsonLimits {
        JsonLimits {
            bytes: self.max_line_bytes.unwrap_or(self.json.bytes),
            ..self.json.clone()
        }
    }
}

impl ProtocolServer {
    /// Creates an MCP server for `service`, with this name and version in `serverInfo`.
    ///
    /// # Errors
    /// The system provides no random bytes for the seal.
    pub fn new(
        service: Arc<dyn Service>,
        name: &str,
        version: &str,
        limits: ServerLimits,
    ) -> Result<ProtocolServer, Error> {
        let info = Implementation::new(name, version);
        let seal = Seal::random(name, limits.seal_lifetime)?;
        Ok(ProtocolServer {
            service,
            info_json: info.json(),
            info,
            limits,
            seal,
            rejection_log: None,
            operation_observer: None,
            instructions: None,
            offered: ServerCapabilities::default(),
            tasks: TaskTable::default(),
            memory_budget: None,
            closing: watch::Sender::new(false),
            pages: ListPageCache::default(),
            client_metadata: ClientMetadataCache::default(),
            has_param_headers: None,
            keeps_transport_parts: false,
            clock: Arc::default(),
        })
    }

    /// Sets the clock by which sealed `requestState` expires: the clock of the store, which never goes back.
    #[doc(hidden)]
    pub fn with_clock(mut self, clock: Arc<StateClock>) -> ProtocolServer {
        self.clock = clock;
        self
    }

    /// Sets the observer of all requests, for metrics and traces.
    pub fn with_operation_observer(
        mut self,
        observer: Arc<dyn OperationObserver>,
    ) -> ProtocolServer {
        self.operation_observer = Some(observer);
        self
    }

    /// Sets the log of calls that are rejected before the service gets them, for example because they are malformed.
    pub fn with_rejection_log(mut self, log: Arc<dyn RejectionLog>) -> ProtocolServer {
        self.rejection_log = Some(log);
        self
    }

    /// Sets the keys that seal the `requestState` of input requests: the first seals, and any of them opens. Needed for
    /// replicas, and for input requests that outlive the process.
    ///
    /// # Errors
    /// Fails if `keys` is empty.
    pub fn with_seal_keys(self, keys: &[[u8; 32]]) -> Result<ProtocolServer, Error> {
        self.seal.set_keys(keys)?;
        Ok(self)
    }

    /// Replaces the keys that seal the `requestState` of input requests. Keep the previous key in the list for
    /// [`ServerLimits::seal_lifetime`], so that its state stays valid.
    ///
    /// # Errors
    /// Fails if `keys` is empty; then nothing changes.
    pub fn set_seal_keys(&self, keys: &[[u8; 32]]) -> Result<(), Error> {
        self.seal.set_keys(keys)
    }

    /// Sets the memory budget that messages are counted against; a message that does not fit is rejected.
    pub fn with_memory_budget(mut self, budget: Arc<MemoryBudget>) -> ProtocolServer {
        self.memory_budget = Some(budget);
        self
    }

    /// Returns an outgoing queue of a caller.
    pub(crate) fn responder(&self, caller: &Caller) -> (Responder, OutgoingFrames) {
        Responder::new(self.limits.queue, self.budget_scope(caller))
    }

    /// Returns the memory account of a caller.
    pub(crate) fn budget_scope(&self, caller: &Caller) -> BudgetScope {
        match &self.memory_budget {
            Some(room) => BudgetScope::of(room, caller.shared_name()),
            None => BudgetScope::default(),
        }
    }

    /// Sets the full `serverInfo`, with title, icons and other members, instead of name and version only.
    pub fn with_info(mut self, info: Implementation) -> ProtocolServer {
        self.info_json = info.json();
        self.info = info;
        self
    }

    /// Sets the server capabilities to declare; by default all are declared, except tasks.
    pub fn with_capabilities(mut self, capabilities: ServerCapabilities) -> ProtocolServer {
        self.offered = capabilities;
        self
    }

    /// Sets a check for tools with `x-mcp-header` arguments. While it returns false, no tool is looked up for them.
    pub(crate) fn with_param_headers_check(
        mut self,
        any: Option<impl Fn() -> bool + Send + Sync + 'static>,
    ) -> ProtocolServer {
        self.has_param_headers = any.map(|any| Box::new(any) as Box<_>);
        self
    }

    /// Makes calls keep the transport-specific parts of their requests, for handlers.
    pub(crate) fn with_transport_parts(mut self) -> ProtocolServer {
        self.keeps_transport_parts = true;
        self
    }

    /// Returns whether any tool may have `x-mcp-header` arguments.
    pub(crate) fn may_have_param_headers(&self) -> bool {
        self.has_param_headers.as_ref().is_none_or(|any| any())
    }

    /// Sets the server's `instructions` for models, the same for all callers.
    pub fn with_instructions(self, instructions: Option<String>) -> ProtocolServer {
        match instructions {
            Some(text) => self.with_instructions_provider(Arc::new(FixedInstructions(text))),
            None => self,
        }
    }

    /// Sets the provider of the server's `instructions` for models, which may differ by caller.
    pub fn with_instructions_provider(
        mut self,
        instructions: Arc<dyn InstructionsProvider>,
    ) -> ProtocolServer {
        self.instructions = Some(instructions);
        self
    }

    /// Returns the server's instructions for a caller.
    pub(crate) fn instructions(&self, caller: &Caller) -> Option<String> {
        self.instructions.as_ref()?.instructions(caller)
    }

    /// Begins the shutdown of the server: ends notification streams, calls that wait for an approval, and tasks. Other
    /// calls in flight may complete.
    pub fn close(&self) {
        // Before the flag: a task whose call waits for an approval would otherwise answer that the gateway stops.
        self.tasks.interrupt_all();
        self.closing.send_replace(true);
    }

    /// Waits until the server begins its shutdown ([`ProtocolServer::close`]).
    pub async fn closed(&self) {
        let mut closing = self.closing.subscribe();
        let _ = closing.wait_for(|closing| *closing).await;
    }

    /// Returns whether [`ProtocolServer::close`] was called.
    pub(crate) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Returns the cancel reason for the calls of a connection or session that ends.
    pub(crate) fn cancel_reason(&self) -> CancelReason {
        match self.is_closing() {
            true => CancelReason::Shutdown,
            false => CancelReason::Disconnected,
        }
    }

    /// Parses one message as strict JSON.
    pub(crate) fn read_message(
        &self,
        bytes: Vec<u8>,
        claim: MemoryPermit,
    ) -> Result<Json, toolgate_protocol::json::ReadError> {
        Json::read_with_permit(bytes, &self.limits.json, claim)
    }

    /// Checks the length of a name or URI before a lookup, which compares all of it with the resource templates.
    pub(crate) fn check_name_length(&self, name: &str) -> Result<(), RpcError> {
        let limit = self.limits.max_name_bytes;
        if name.len() <= limit {
            return Ok(());
        }
        let text = format!("the name or URI is longer than {limit} bytes, which is the limit here");
        Err(RpcError::new(code::INVALID_PARAMS, text))
    }

    pub(crate) async fn log_rejection(&self, refused: Rejection) {
        if let Some(log) = &self.rejection_log {
            log.rejected(refused).await;
        }
    }

    /// Reports a request that is rejected before it reaches a layer, if it is a call.
    pub(crate) async fn log_rejected_request(
        &self,
        caller: &Caller,
        transport: &'static str,
        (method, params): (&str, Option<&Json>),
        why: &RpcError,
    ) {
        if !operation::is_operation(method) {
            return;
        }
        let named = |key| params?.get(key)?.string();
        let tool = named("name").or_else(|| named("uri"));
        self.log_rejection(Rejection {
            caller: caller.clone(),
            transport,
            method: Some(method.to_owned()),
            tool,
            reason: why.message.clone(),
            address: None,
        })
        .await;
    }

    /// Returns the capabilities to declare in this revision. `lists` tells whether the client may list its tasks.
    pub(crate) fn capabilities(&self, dialect: &Dialect, lists: bool) -> Json {
        self.offered.to_json(dialect, lists)
    }

    /// Returns whether this server lists items of a kind.
    pub(crate) fn lists_kind(&self, kind: ItemKind) -> bool {
        kind != ItemKind::Skill || self.offered.skills
    }

    /// Returns whether a tool can be called as a task.
    #[cfg_attr(
        not(feature = "tasks"),
        expect(unused_variables, reason = "no call becomes a task")
    )]
    pub(crate) fn task_support(&self, tool: &Definition) -> TaskSupport {
        match self.offered.tasks {
            TaskOffer::None => TaskSupport::Forbidden,
            #[cfg(feature = "tasks")]
            TaskOffer::Marked => TaskSupport::of(tool),
            #[cfg(feature = "tasks")]
            TaskOffer::Every if TaskSupport::is_forbidden_by(tool) => TaskSupport::Forbidden,
            // An upstream server may require a task for each call of the tool. That concerns only the connection to it.
            #[cfg(feature = "tasks")]
            TaskOffer::Every => TaskSupport::Optional,
        }
    }

    /// Returns a definition for a protocol revision, with its task support.
    ///
    /// # Errors
    /// The part of the definition that the revision does not allow.
    pub(crate) fn write_definition(
        &self,
        dialect: &Dialect,
        definition: &Definition,
    ) -> Result<Json, &'static str> {
        let json = dialect.definition(definition)?;
        if dialect.tasks != TaskForm::Core || definition.kind() != ItemKind::Tool {
            return Ok(json);
        }
        Ok(match self.task_support(definition) {
            TaskSupport::Forbidden if json.get("execution").is_none() => json,
            TaskSupport::Forbidden if TaskSupport::is_forbidden_by(definition) => json,
            TaskSupport::Forbidden => json.without("execution"),
            support => {
                let mut execution = ObjectWriter::new();
                execution.str("taskSupport", support.as_str());
                json.with("execution", &execution.finish())
            }
        })
    }

    /// Sets the store of the status and results of tasks, so that clients find them after a restart. `process`
    /// identifies this process among those that share the store. Tasks of processes that ended are recovered now:
    /// completed ones keep their result, running ones have `failed`.
    ///
    /// Tasks of a connection that ends with its process, for example stdio, are not stored.
    #[cfg(feature = "tasks")]
    pub fn with_task_store(
        self,
        store: Arc<dyn toolgate_policy::StateStore>,
        process: &str,
        is_gone: impl Fn(&str) -> bool,
    ) -> ProtocolServer {
        let limits = &self.limits.tasks;
        self.tasks.use_store(store, process, limits, is_gone);
        self
    }

    /// Takes over the tasks of processes that ended after this one began, and recovers them as
    /// [`ProtocolServer::recover_tasks`] does.
    #[cfg(feature = "tasks")]
    #[doc(hidden)]
    pub async fn adopt_tasks(self: &Arc<ProtocolServer>, is_gone: impl Fn(&str) -> bool) {
        self.tasks.adopt_ended(&self.limits.tasks, is_gone);
        self.recover_tasks().await;
    }

    /// Recovers tasks of ended processes that still run at an upstream server, and follows them to their end. Call it
    /// once, when the service can be called, on the runtime that will run them. Tasks that cannot be recovered have
    /// `failed`.
    #[cfg(feature = "tasks")]
    pub async fn recover_tasks(self: &Arc<ProtocolServer>) {
        crate::edge::tasks::recover_tasks(self).await;
    }

    /// Returns all tasks of this server, running and ended, the oldest first.
    #[cfg(feature = "tasks")]
    pub fn tasks(&self) -> Vec<super::TaskView> {
        self.tasks.views()
    }

    /// Cancels the task that a call became, by the call's id. Returns false if there is no running one.
    #[cfg(feature = "tasks")]
    pub fn cancel_task(&self, call: &str) -> bool {
        self.tasks.cancel(call)
    }
}

/// Capabilities that an MCP server declares to its clients.
///
/// Specification: [`ServerCapabilities`](https://modelcontextprotocol.io/specification/2026-07-28/schema#servercapabilities).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerCapabilities {
    /// True to declare the capability `tools`.
    pub tools: bool,
    /// True to declare the capability `resources`.
    pub resources: bool,
    /// True to declare the capability `resources.subscribe`: clients may subscribe to a resource.
    pub subscribe: bool,
    /// True to declare the capability `prompts`.
    pub prompts: bool,
    /// True to declare the capability `completions`.
    pub completions: bool,
    /// True to declare the capability `listChanged` of each list.
    pub list_changed: bool,
    /// Calls that may become tasks; declares the capability `tasks` if any may.
    pub tasks: TaskOffer,
    /// True to declare the skills extension (2026-07-28).
    pub skills: bool,
    /// Other protocol extensions to declare: a JSON object with their settings by identifier (2026-07-28).
    pub extensions: Option<Json>,
}

impl Default for ServerCapabilities {
    /// All except tasks and extensions other than skills: the items of a gateway may change at any time.
    fn default() -> ServerCapabilities {
        ServerCapabilities {
            tools: true,
            resources: true,
            subscribe: true,
            prompts: true,
            completions: true,
            list_changed: true,
            tasks: TaskOffer::default(),
            skills: true,
            extensions: None,
        }
    }
}

impl ServerCapabilities {
    fn to_json(&self, dialect: &Dialect, lists: bool) -> Json {
        let mut o = ObjectWriter::new();
        let changes = |o: &mut ObjectWriter| {
            if self.list_changed {
                o.bool("listChanged", true);
            }
        };
        if self.completions && dialect.completions {
            o.object("completions", |_| {});
        }
        let tasks = Some(dialect.tasks).filter(|_| self.tasks != TaskOffer::None);
        let extends =
            self.extensions.is_some() || self.skills || tasks == Some(TaskForm::Extension);
        if dialect.extensions && extends {
            o.object("extensions", |e| {
                let own = self.extensions.iter().flat_map(Json::members);
                own.for_each(|(id, settings)| e.raw(&id, &settings));
                if self.skills {
                    e.object(skills::EXTENSION, |s| {
                        s.bool(skills::READS_DIRECTORIES, true)
                    });
                }
                if tasks == Some(TaskForm::Extension) {
                    e.object(EXTENSION, |_| {});
                }
            });
        }
        o.object("logging", |_| {});
        if self.prompts {
            o.object("prompts", changes);
        }
        if self.resources {
            o.object("resources", |r| {
                changes(r);
                if self.subscribe {
                    r.bool("subscribe", true);
                }
            });
        }
        if tasks == Some(TaskForm::Core) {
            o.object("tasks", |t| {
                t.object("cancel", |_| {});
                if lists {
                    t.object("list", |_| {});
                }
                t.object("requests", |r| {
                    r.object("tools", |t| t.object("call", |_| {}))
                });
            });
        }
        if self.tools {
            o.object("tools", changes);
        }
        o.finish()
    }
}

/// Provider of a server's `instructions` for models, which may differ by caller.
///
/// Specification: [discovery](https://modelcontextprotocol.io/specification/2026-07-28/server/discover).
pub trait InstructionsProvider: Send + Sync + 'static {
    /// Returns the server's `instructions` for a caller, or `None`. Must not block.
    fn instructions(&self, caller: &Caller) -> Option<String>;
}

/// The same instructions for all callers.
struct FixedInstructions(String);

impl InstructionsProvider for FixedInstructions {
    fn instructions(&self, _: &Caller) -> Option<String> {
        Some(self.0.clone())
    }
}

/// Call, or invalid attempt at one, that an MCP server rejected before its service got it, for the audit log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rejection {
    /// Caller whose call was rejected, or the listener if the caller is unknown.
    pub caller: Caller,
    /// Transport of the rejected request: `http` or `stdio`.
    pub transport: &'static str,
    /// MCP method of the rejected request, if it could be read.
    pub method: Option<String>,
    /// Tool, prompt or URI of the rejected request, if it could be read.
    pub tool: Option<String>,
    /// Reason for the rejection, without any text from the caller.
    pub reason: String,
    /// Address of the client, if its transport knows one.
    pub address: Option<IpAddr>,
}

impl Rejection {
    /// Creates the description of a rejected request whose method and item could not be read.
    pub fn new(caller: Caller, transport: &'static str, reason: impl Into<String>) -> Rejection {
        Rejection {
            caller,
            transport,
            method: None,
            tool: None,
            reason: reason.into(),
            address: None,
        }
    }
}

/// Receiver of an MCP server's rejected calls and missed pings, for the audit log.
pub trait RejectionLog: Send + Sync + 'static {
    /// Records a call that the MCP server rejected. The future completes when it is recorded.
    fn rejected(&self, rejection: Rejection) -> BoxFuture<'_, ()>;

    /// Records keepalive pings that a client did not answer. Must not block.
    fn missed_pings(&self, caller: &Caller, transport: &'static str, missed: MissedPings) {
        let _ = (caller, transport, missed);
    }
}

/// Keepalive pings (`ping`) in a row that a client did not answer.
///
/// Specification: [ping of 2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct MissedPings {
    /// Number of consecutive pings that the client did not answer.
    pub consecutive: u32,
    /// True if the missed pings end the client's connection or session. A client that never answered a ping gets no
    /// more pings and stays connected.
    pub disconnects: bool,
}
