//! Calls and list requests: one invocation of an item, with its caller, round and context.

use crate::{
    CallReporter, CallSpan, CallerAttributes, DecisionLog, Error, ErrorKind, HeldPermits, Item,
    ItemNote, NoteAction, Principal, RefusalReason, Round, TaskControl, TransportParts,
};
use serde_json::Value;
use std::{
    borrow::Cow,
    cmp::Ordering,
    collections::BTreeMap,
    fmt,
    hash::{Hash, Hasher},
    net::IpAddr,
    ops::{Deref, DerefMut},
    sync::{Arc, LazyLock, OnceLock},
    time::Duration,
};
use toolgate_protocol::{
    json::{Json, JsonView},
    method::{definition::ItemKind, operation::Op, trace::TraceContext},
};

/// One call of an item: a tool call, resource read, prompt get or completion. Its fields are those of [`CallParts`].
#[derive(Clone, Debug)]
pub struct Call(Box<CallParts>);

impl Deref for Call {
    type Target = CallParts;

    fn deref(&self) -> &CallParts {
        &self.0
    }
}

impl DerefMut for Call {
    fn deref_mut(&mut self) -> &mut CallParts {
        &mut self.0
    }
}

/// Fields of a [`Call`], which dereferences to them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallParts {
    /// Id of the call in the audit log, in the console and on the command line; the same in every round.
    pub id: Arc<str>,
    /// Operation of the call, for example `tools/call`.
    pub op: Op,
    /// Name of the called item, and its arguments.
    pub invocation: Invocation,
    /// Authenticated caller, set by the edge. Contains no token.
    pub caller: Caller,
    /// Round of a repeated call: its number, answers and slots; empty in the first round.
    pub round: Round,
    /// Capabilities that the client declared for this request.
    pub capabilities: ClientCapabilities,
    /// Idle timeout of the caller: the longest time without an answer or progress, if the caller sets one. The hard
    /// limit of the gateway still applies.
    pub idle_timeout: Option<Duration>,
    /// Reporter of progress and log messages, the only way to reach the caller before the outcome.
    pub reporter: CallReporter,
    /// Task control of the call; disabled if the caller does not support tasks.
    pub task_control: TaskControl,
    /// Time that the call has already run in an earlier process that started it. The server finds the call by the state
    /// in its round; it must never be started again.
    pub resumed_after: Option<Duration>,
    /// W3C trace context of the caller: forwarded, and never used for decisions.
    pub trace: TraceContext,
    /// Span of the caller's request, to which layers add events; `None` if the request is not traced.
    pub span: Option<Arc<dyn CallSpan>>,
    /// Request information from the edge, for the audit log and the console. Never used for decisions.
    pub request_info: Arc<RequestInfo>,
    /// Decision log of the call.
    pub decision_log: DecisionLog,
    /// Memory permits of the call's messages, held until the response has been sent.
    pub held_permits: HeldPermits,
    pub(crate) item: Option<Arc<Item>>,
}

/// Called item, by name or URI, and the arguments of the call.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// Name or URI of the item, as the service that receives the call knows it.
    pub name: String,
    /// Arguments of the call; for a resource its `uri`, for a completion all parameters except the reference.
    pub arguments: CallArguments,
}

/// Maximum size of arguments that are read without building a tree, in bytes. Skipping nested values rescans the text
/// once a level.
const MAX_UNPARSED_ARGUMENT_BYTES: usize = 4 << 10;

/// Arguments of a call: the original JSON bytes, and a tree that is parsed on first use.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{CallArguments, Json};
///
/// let arguments = CallArguments::new(Json::from_value(&json!({"city": "Oslo", "days": 3})));
/// assert_eq!(arguments.value()["city"], "Oslo");
/// assert_eq!(arguments.raw().get("days").and_then(|days| days.u64()), Some(3));
/// assert!(!arguments.is_lossy());
/// ```
#[derive(Clone)]
pub struct CallArguments(Arc<(Json, OnceLock<(Value, bool)>)>);

impl CallArguments {
    /// Creates call arguments from strict JSON, which must be an object.
    pub fn new(raw: Json) -> CallArguments {
        CallArguments(Arc::new((raw, OnceLock::new())))
    }

    /// Returns the original JSON text of the arguments, which is checked, displayed, audited and sent.
    pub fn raw(&self) -> &Json {
        &self.0.0
    }

    /// Returns the arguments as a `serde_json` tree, built once. Numbers that fit no machine type are rounded; see
    /// [`CallArguments::is_lossy`].
    pub fn value(&self) -> &Value {
        &self.parsed().0
    }

    /// Returns true if the `serde_json` tree cannot represent some number of the arguments exactly.
    pub fn is_lossy(&self) -> bool {
        match self.unparsed_view() {
            Some(_) => self.raw().is_lossy(),
            None => self.parsed().1,
        }
    }

    /// Returns a borrowed view of the raw arguments if they are at most 4 KiB and not yet parsed.
    pub fn unparsed_view(&self) -> Option<JsonView<'_>> {
        let (raw, tree) = &*self.0;
        (tree.get().is_none() && raw.as_str().len() <= MAX_UNPARSED_ARGUMENT_BYTES)
            .then(|| raw.view())
    }

    fn parsed(&self) -> &(Value, bool) {
        self.0.1.get_or_init(|| self.0.0.to_value_and_loss())
    }
}

impl fmt::Debug for CallArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallArguments({} bytes)", self.raw().as_str().len())
    }
}

/// Authenticated principal that makes a call, by name; never a credential. Two callers are equal if their names and
/// views are equal.
///
/// ```
/// use toolgate_core::{Caller, LimitSubject, Principal};
///
/// let mut principal = Principal::new("https://login.example.com", "ann");
/// principal.scopes = vec!["files:read".to_owned()];
/// let ann = Caller::new("corp:ann").with_principal(principal).with_generation(2);
/// assert!(ann.principal().is_some_and(|principal| principal.has_scope("files:read")));
/// assert_eq!(ann.generation(), Some(2));
///
/// // The name was given to another key: its approvals must not pass on.
/// assert!(!ann.same_principal(&Caller::new("corp:ann").with_generation(3)));
/// let subject: LimitSubject = ann.limit_subject();
/// assert_eq!(subject, Caller::new(ann.shared_name()).in_session(7).limit_subject());
/// ```
#[derive(Clone)]
pub struct Caller {
    name: Arc<str>,
    principal: Option<Arc<Principal>>,
    /// `None` if all are empty.
    attributes: Option<Arc<CallerAttributes>>,
    generation: Option<u64>,
    session: Option<u64>,
    view: Option<Arc<str>>,
}

/// Attributes of callers that have none.
static NO_ATTRIBUTES: LazyLock<CallerAttributes> = LazyLock::new(CallerAttributes::default);

/// Subject of rate and concurrency limits: a caller, and for anonymous callers over HTTP their session as well.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct LimitSubject {
    caller: Arc<str>,
    session: Option<u64>,
}

impl LimitSubject {
    /// Returns the name of the caller, or `None` if the limit is that of one session of an anonymous caller.
    pub fn without_session(&self) -> Option<&str> {
        self.session.is_none().then_some(&*self.caller)
    }
}

impl Caller {
    /// Name of all callers over HTTP that sent no credentials, `anonymous@http`.
    pub const ANONYMOUS_HTTP: &'static str = "anonymous@http";

    /// Creates a caller with this name, for example `anonymous@http` or `key:ci`.
    pub fn new(name: impl Into<Arc<str>>) -> Caller {
        Caller {
            name: name.into(),
            principal: None,
            attributes: None,
            generation: None,
            session: None,
            view: None,
        }
    }

    /// Records the session of an anonymous caller, a part of its [`LimitSubject`]. Has no effect on other callers.
    ///
    /// A session is no identity: rules, approvals and audit records see the same caller in every session.
    #[must_use]
    pub fn in_session(self, session: u64) -> Caller {
        match &*self.name == Caller::ANONYMOUS_HTTP {
            true => Caller {
                session: Some(session),
                ..self
            },
            false => self,
        }
    }

    /// Returns the subject by which rate and concurrency limits count this caller.
    pub fn limit_subject(&self) -> LimitSubject {
        LimitSubject {
            caller: self.name.clone(),
            session: self.session,
        }
    }

    /// Returns the same caller with a key generation, which distinguishes successive owners of one caller name. A call
    /// that one owner started is not accessible to the next owner.
    #[must_use]
    pub fn with_generation(self, generation: u64) -> Caller {
        Caller {
            generation: Some(generation),
            ..self
        }
    }

    /// Returns the key generation, which distinguishes successive owners of one caller name; `None` if unknown.
    pub fn generation(&self) -> Option<u64> {
        self.generation
    }

    /// Returns true if both callers are the same principal: equal names and views, and no differing generations.
    pub fn same_principal(&self, other: &Caller) -> bool {
        let apart = self.generation.is_some()
            && other.generation.is_some()
            && self.generation != other.generation;
        self == other && !apart
    }

    /// Returns the same caller with the principal that an authorization server attests.
    #[must_use]
    pub fn with_principal(self, principal: Principal) -> Caller {
        Caller {
            principal: Some(Arc::new(principal)),
            ..self
        }
    }

    /// Returns the same caller at the endpoint of a view: it sees and uses only what the view offers.
    ///
    /// Sessions, tasks, approvals and grants of a caller in one view are not those of the same caller in another. Rate
    /// and concurrency limits count the caller in all views.
    ///
    /// ```
    /// let caller = toolgate_core::Caller::new("key:ci").in_view("reports");
    /// assert_eq!(caller.view(), Some("reports"));
    /// ```
    #[must_use]
    pub fn in_view(self, view: impl Into<Arc<str>>) -> Caller {
        Caller {
            view: Some(view.into()),
            ..self
        }
    }

    /// Returns the view whose endpoint the caller uses, if any.
    pub fn view(&self) -> Option<&str> {
        self.view.as_deref()
    }

    /// Returns the same caller with groups, roles and claims, which rules can name.
    #[must_use]
    pub fn with_attributes(self, attributes: impl Into<Arc<CallerAttributes>>) -> Caller {
        let attributes = attributes.into();
        Caller {
            attributes: (!attributes.is_empty()).then_some(attributes),
            ..self
        }
    }

    /// Returns the groups, roles and claims of the caller; empty for callers without any.
    pub fn attributes(&self) -> &CallerAttributes {
        match &self.attributes {
            Some(attributes) => attributes,
            None => &NO_ATTRIBUTES,
        }
    }

    /// Returns the caller's name as a shared string, without copying the text.
    pub fn shared_name(&self) -> Arc<str> {
        self.name.clone()
    }

    /// Returns the caller's name, as in rules and audit records.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the principal of the caller's verified token. `None` for callers without a token, which scopes do not
    /// restrict.
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_deref()
    }
}

impl PartialEq for Caller {
    fn eq(&self, other: &Caller) -> bool {
        self.name == other.name && self.view == other.view
    }
}

impl Eq for Caller {}

impl Hash for Caller {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.view.hash(state);
    }
}

impl PartialOrd for Caller {
    fn partial_cmp(&self, other: &Caller) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Caller {
    fn cmp(&self, other: &Caller) -> Ordering {
        (&self.name, &self.view).cmp(&(&other.name, &other.view))
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Caller({:?})", self.name)
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Client capabilities that a request declares: elicitation, sampling, roots and extensions.
///
/// Specification: [`ClientCapabilities`](https://modelcontextprotocol.io/specification/2026-07-28/schema#clientcapabilities).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ClientCapabilities {
    /// True if the client supports form elicitation.
    pub elicitation: bool,
    /// True if the client supports URL elicitation.
    pub elicitation_url: bool,
    /// True if the client supports sampling.
    pub sampling: bool,
    /// True if the client supports sampling with tools.
    pub sampling_tools: bool,
    /// True if the client supports sampling with context of servers (`includeContext`).
    pub sampling_context: bool,
    /// True if the client supports roots.
    pub roots: bool,
    /// Extensions that the client declares: an object of settings, keyed by extension identifier.
    pub extensions: Option<Json>,
}

impl ClientCapabilities {
    /// All client capabilities, without extensions.
    pub const ALL: ClientCapabilities = ClientCapabilities {
        elicitation: true,
        elicitation_url: true,
        sampling: true,
        sampling_tools: true,
        sampling_context: true,
        roots: true,
        extensions: None,
    };

    /// Returns the settings of a protocol extension that the client declared.
    pub fn extension(&self, id: &str) -> Option<Json> {
        self.extensions.as_ref()?.get(id)
    }
}

/// Information about the request that carried a call: revision, transport, client name and request id. The client's
/// name is its own claim.
///
/// ```
/// use toolgate_core::{Call, RequestInfo};
///
/// /// Describes the origin of a call for a log.
/// fn describe(call: &Call) -> String {
///     let RequestInfo { transport, client, .. } = &*call.request_info;
///     let client = client.as_deref().unwrap_or("an unknown client");
///     let item = call.item().map(|item| item.full_name());
///     format!("{} calls {item:?} over {transport} with {client}", call.caller.name())
/// }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RequestInfo {
    /// Protocol revision of the caller.
    pub revision: Cow<'static, str>,
    /// Transport of the request: `http`, `stdio` or `console`.
    pub transport: &'static str,
    /// Name and version that the client reports about itself; not verified.
    pub client: Option<Arc<str>>,
    /// JSON-RPC id of the request, as the client wrote it.
    pub request: Option<String>,
    /// Address of the client, if its transport knows one.
    pub address: Option<IpAddr>,
    /// Transport-specific parts of the request, for the handlers of a server; `None` in the gateway.
    pub transport_parts: Option<TransportParts>,
}

impl RequestInfo {
    /// Returns the information without the transport-specific parts, to keep it for longer than the request.
    #[must_use]
    pub fn without_transport_parts(self: &Arc<RequestInfo>) -> Arc<RequestInfo> {
        match self.transport_parts {
            None => self.clone(),
            Some(_) => Arc::new(RequestInfo {
                transport_parts: None,
                ..RequestInfo::clone(self)
            }),
        }
    }
}

/// Empty request information, shared by all new calls.
static EMPTY_REQUEST_INFO: LazyLock<Arc<RequestInfo>> = LazyLock::new(Arc::default);

impl Call {
    /// Creates a call in its first round, with an empty decision log.
    pub fn new(
        id: impl Into<Arc<str>>,
        caller: Caller,
        op: Op,
        name: impl Into<String>,
        arguments: Json,
    ) -> Call {
        Call::with_decision_log(DecisionLog::default(), id, caller, op, name, arguments)
    }

    /// Creates a call in its first round with an existing decision log, which the edge shares.
    #[doc(hidden)]
    pub fn with_decision_log(
        decision_log: DecisionLog,
        id: impl Into<Arc<str>>,
        caller: Caller,
        op: Op,
        name: impl Into<String>,
        arguments: Json,
    ) -> Call {
        Call(Box::new(CallParts {
            id: id.into(),
            op,
            invocation: Invocation {
                name: name.into(),
                arguments: CallArguments::new(arguments),
            },
            caller,
            round: Round::default(),
            capabilities: ClientCapabilities::default(),
            idle_timeout: None,
            reporter: CallReporter::default(),
            task_control: TaskControl::default(),
            resumed_after: None,
            span: None,
            trace: TraceContext::default(),
            request_info: EMPTY_REQUEST_INFO.clone(),
            decision_log,
            held_permits: HeldPermits::default(),
            item: None,
        }))
    }

    /// Creates a `tools/call` in its first round, without client capabilities and request information.
    pub fn tool(
        id: impl Into<Arc<str>>,
        caller: Caller,
        name: impl Into<String>,
        arguments: Json,
    ) -> Call {
        Call::new(id, caller, Op::Tool, name, arguments)
    }

    /// Returns the called item, once the pipeline has resolved its name.
    pub fn item(&self) -> Option<&Arc<Item>> {
        self.item.as_ref()
    }

    /// Returns the name or URI of the called item.
    pub fn name(&self) -> &str {
        &self.invocation.name
    }

    /// Returns the arguments of the call.
    pub fn arguments(&self) -> &CallArguments {
        &self.invocation.arguments
    }

    /// Creates the error for a call that another process started, if its state is lost.
    #[doc(hidden)]
    pub fn lost_call_error(&self) -> Error {
        let text = format!(
            "the process that called {} has ended, so the result is lost; the call may have \
             taken effect, so check before you repeat it",
            self.name()
        );
        Error::new(ErrorKind::Upstream, text)
    }

    /// Creates the error for a call of an item that does not exist or that the caller may not see.
    pub fn unknown_item_error(&self) -> Error {
        let what = match self.op {
            Op::Resource => ItemKind::Resource.as_str(),
            op => op.kinds().first().map_or("item", |kind| kind.as_str()),
        };
        Error::new(
            ErrorKind::NotFound,
            format!("unknown {what}: {}", self.name()),
        )
    }

    /// Creates the error for a call of a withheld item. It names the reason unless the configuration hides the item.
    #[doc(hidden)]
    pub fn withheld_item_error(&self, item: &Item) -> Error {
        let why = item.withheld_for_callers().unwrap_or_default();
        let note = ItemNote::new(NoteAction::Withheld, why);
        let (kind, name) = (item.kind().as_str(), self.name());
        let text = format!("the {kind} {name} is withheld: {}", note.reason);
        Error::new(ErrorKind::Refused(RefusalReason::Withheld), text)
    }
}

/// Request to list all items of one kind, for example `tools/list`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListRequest {
    /// Caller that requests the list.
    pub caller: Caller,
    /// Kind of items to list.
    pub kind: ItemKind,
    /// Name of the only item that the request needs, or a URI that a template has to match. A layer may then skip all
    /// other items.
    pub only_name: Option<Arc<str>>,
    /// Decision log that records why the only item is hidden: for the audit log, never for the caller.
    pub decision_log: DecisionLog,
    /// Limit on waiting for upstream servers that are still starting.
    pub start_wait: StartWait,
    /// Decision log of a call that follows at once: the item that is found is stored there, and the call need not look it
    /// up again.
    pub(crate) looks_up_for: Option<DecisionLog>,
}

/// Limit of a list request on waiting for upstream servers that are still starting.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum StartWait {
    /// The wait limit for list requests: waits only for servers without a known list.
    #[default]
    List,
    /// The wait limit for calls of an item.
    Call,
    /// No wait: the lists that are already known are returned.
    None,
}

impl ListRequest {
    /// Creates a list request for all items of this kind that the caller may see.
    pub fn all(caller: Caller, kind: ItemKind) -> ListRequest {
        ListRequest {
            caller,
            kind,
            only_name: None,
            decision_log: DecisionLog::default(),
            start_wait: StartWait::List,
            looks_up_for: None,
        }
    }

    /// Creates a list request for one item by name, for a caller that is about to use it.
    pub fn one(caller: Caller, kind: ItemKind, name: impl Into<Arc<str>>) -> ListRequest {
        ListRequest::one_for_call(caller, kind, name.into(), DecisionLog::default())
    }

    /// Creates a list request for one item by name, which records in the decision log of a call why it is hidden.
    pub(crate) fn one_for_call(
        caller: Caller,
        kind: ItemKind,
        name: Arc<str>,
        decision_log: DecisionLog,
    ) -> ListRequest {
        ListRequest {
            caller,
            kind,
            only_name: Some(name),
            decision_log,
            start_wait: StartWait::Call,
            looks_up_for: None,
        }
    }

    /// Stores the item that is found for the call of this decision log, which follows at once.
    #[doc(hidden)]
    pub fn looking_up_for(mut self, call: &DecisionLog) -> ListRequest {
        self.looks_up_for = Some(call.clone());
        self
    }
}

/// Filter of change notifications: the caller, and the lists and resources of interest.
///
/// Specification: [notification filter](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions#notification-filter).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChangeFilter {
    /// Caller that subscribes to changes.
    pub caller: Caller,
    /// Lists to report changes of. Templates and skills change together with resources.
    pub lists: Vec<ItemKind>,
    /// URIs of resources to report updates of.
    pub uris: Vec<String>,
    /// Servers of the resources in `uris`, by URI, as resolved for this caller. Only the owning server receives the
    /// subscription.
    pub owners: BTreeMap<String, Arc<str>>,
}

impl ChangeFilter {
    /// Creates a filter of the caller that selects no changes; set the lists and the URIs.
    pub fn new(caller: Caller) -> ChangeFilter {
        ChangeFilter {
            caller,
            lists: Vec::new(),
            uris: Vec::new(),
            owners: BTreeMap::new(),
        }
    }
}

impl ChangeFilter {
    /// Creates a filter that reports changes of all lists, and of no resource.
    pub fn all_lists(caller: Caller) -> ChangeFilter {
        ChangeFilter {
            caller,
            lists: vec![ItemKind::Tool, ItemKind::Resource, ItemKind::Prompt],
            uris: Vec::new(),
            owners: BTreeMap::new(),
        }
    }
}
