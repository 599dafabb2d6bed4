//! Builder of a client: settings and functions of the application.

#[cfg(feature = "spawn")]
use super::server_process::ProcessSettings;
use super::{
    CallConfirmation, CallEvent, EventCallback, FormElicitation, InputKind, SamplingRequest,
    SamplingResponse, UrlElicitation, errors::unusable_setting, input_responder::ClientCallbacks,
    roots,
};
#[cfg(feature = "http-client")]
use crate::client::HttpOptions;
use crate::{
    client::{Discovery, EraPreference},
    handlers::{
        LogLevel,
        ask::{Reply, Root},
    },
};
use serde_json::Value;
use std::{fmt, future::Future, path::PathBuf, sync::Arc, time::Duration};
use toolgate_core::{Error, Item, Json, Layer, LogMessage, Rule, Sanitizer};
use toolgate_policy::{
    AccessRule, AccessRules, AuditRecorder, GlobPattern, InputRequestPolicy, MemoryStateStore,
    OnOutboundSecret, OnPlaceholder, OnSecret, OutputValidation, PerServer, PinEvent, Pins, Policy,
    RateLimiter, RateQuota, RuleAction, SizeLimits,
};
use toolgate_protocol::{
    dialect::{self, Dialect},
    json::{JsonKind, ObjectWriter},
    method::initialize::Implementation,
};

/// Builder of an MCP client ([`Client`](super::Client)). All client policies are on by default. A capability without a
/// function of the application is not declared.
///
/// ```
/// # use toolgate::{Client, Server, handlers::ask::Reply};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), toolgate::Error> {
/// # let server = Server::new("s", "1");
/// let client = Client::builder()
///     .name("my-app", "1.0.0")
///     .on_elicit(|form| async move {
///         println!("{} asks: {}", form.server, form.message);
///         Reply::Accepted(json!({"unit": "C"}))
///     })
///     .confirm(|call| async move {
///         match call.tool.annotations().read_only {
///             true => Ok(()),
///             false => Err("only reading is allowed here".to_owned()),
///         }
///     })
///     .allow(["get_*", "list_*"])
///     .in_process(server)
///     .await?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
///
/// The policy of a client is on by default. These settings change it:
///
/// ```no_run
/// use std::time::Duration;
/// use toolgate::{
///     Client,
///     handlers::{LogLevel, ask::Root},
///     policy::{InputRequestPolicy, OnOutboundSecret, OnPlaceholder, OnSecret, OutputValidation, SizeLimits},
/// };
///
/// # async fn f() -> Result<(), toolgate::Error> {
/// let mut sizes = SizeLimits::default();
/// sizes.result = 1 << 20;
/// let root = Root { uri: "file:///srv/docs".to_owned(), name: Some("documents".to_owned()) };
/// let files = Client::builder()
///     .open_timeout(Duration::from_secs(5))
///     .max_timeout(Duration::from_secs(600))
///     .max_rounds(3)
///     .size_limits(sizes)
///     .output_schema(OutputValidation::default())
///     .secrets(OnSecret::Redact)
///     .outbound_secrets(OnOutboundSecret::Deny)
///     .placeholders(OnPlaceholder::Deny)
///     .input_requests(InputRequestPolicy::default())
///     .trust_annotations()
///     .on_pin(|event| eprintln!("{event}"))
///     .on_log(LogLevel::Warning, |message| eprintln!("{}", message.data.as_str()))
///     .roots([root])
///     .pass_env(["DOCS_TOKEN"])
///     .working_directory("/srv/docs")
///     .on_stderr(|line| eprintln!("files: {line}"))
///     .grace(Duration::from_secs(5))
///     .spawn(["file-server", "."])
///     .await?;
/// # drop(files);
/// # Ok(())
/// # }
/// ```
#[must_use = "the builder does nothing until spawn, connect, in_process or open"]
pub struct ClientBuilder {
    pub(super) client: Option<Implementation>,
    pub(super) id: Option<String>,
    pub(super) revisions: Vec<&'static Dialect>,
    pub(super) era: EraPreference,
    pub(super) functions: ClientCallbacks,
    pub(super) policy: Policy,
    pub(super) trusted: bool,
    pub(super) open_timeout: Duration,
    pub(super) max_rounds: u32,
    pub(super) discovery: Option<Discovery>,
    pub(super) observe: Option<EventCallback<CallEvent>>,
    pub(super) log_level: Option<LogLevel>,
    #[cfg(feature = "spawn")]
    pub(super) process: ProcessSettings,
    #[cfg(feature = "http-client")]
    pub(super) http: HttpOptions,
    pins: Option<Pins>,
    on_pin: Option<EventCallback<PinEvent>>,
    allow: Vec<String>,
    deny: Vec<String>,
    extensions: Vec<(String, Json)>,
    audit: Option<PathBuf>,
    first_fault: Option<String>,
    pub(super) confirms_every_call: bool,
}

/// Returns pins that last as long as the client.
fn in_memory() -> Pins {
    Pins::new(
        Arc::new(MemoryStateStore::new()),
        Arc::new(AuditRecorder::log()),
    )
}

impl ClientBuilder {
    pub(super) fn new() -> ClientBuilder {
        ClientBuilder {
            client: None,
            id: None,
            revisions: Vec::new(),
            era: EraPreference::default(),
            functions: ClientCallbacks::default(),
            policy: Policy::default(),
            trusted: false,
            open_timeout: Duration::from_secs(30),
            max_rounds: 10,
            discovery: None,
            observe: None,
            log_level: None,
            #[cfg(feature = "spawn")]
            process: ProcessSettings::default(),
            #[cfg(feature = "http-client")]
            http: HttpOptions::default(),
            pins: Some(in_memory()),
            on_pin: None,
            allow: Vec::new(),
            deny: Vec::new(),
            extensions: Vec::new(),
            audit: None,
            first_fault: None,
            confirms_every_call: false,
        }
    }

    /// Sets the client's name and version (`clientInfo`) that are sent to the server.
    pub fn name(self, name: &str, version: &str) -> ClientBuilder {
        self.info(Implementation::new(name, version))
    }

    /// Sets the client's `clientInfo`: name and version, with title, icons and other members.
    pub fn info(mut self, info: Implementation) -> ClientBuilder {
        self.client = Some(info);
        self
    }

    /// Sets the server's id in input requests, rules and the audit log. Default: the name of its program, its host, or
    /// its own name.
    pub fn id(mut self, id: &str) -> ClientBuilder {
        self.id = Some(id.to_owned());
        self
    }

    /// Restricts the protocol to this MCP revision, for example `2025-11-25`. Several calls allow several revisions, in
    /// order of preference. Default: all.
    pub fn revision(mut self, revision: &str) -> ClientBuilder {
        match dialect::find(revision) {
            Some(dialect) => self.revisions.push(dialect),
            None => self.record_fault(format!(
                "{revision:?} is not a protocol revision; use one such as \"2025-11-25\""
            )),
        }
        self
    }

    /// Sets the preferred era (stateless or with sessions) for a server that supports both. With
    /// [`EraPreference::Session`] the client uses a session (2025-11-25 or older) if the server keeps one. Tools of
    /// many SDKs can request user input only in a session. Default: the newest revision.
    ///
    /// ```no_run
    /// # async fn open() -> Result<(), toolgate::Error> {
    /// use toolgate::{Client, client::EraPreference};
    ///
    /// let client = Client::builder()
    ///     .prefer_era(EraPreference::Session)
    ///     .connect("http://127.0.0.1:8000/mcp")
    ///     .await?;
    /// # drop(client);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prefer_era(mut self, era: EraPreference) -> ClientBuilder {
        self.era = era;
        self
    }

    /// Sets what an earlier client learned of this server, so that the requests that it answers are not sent again. The
    /// server id ([`ClientBuilder::id`]) must be the same.
    ///
    /// If the server no longer supports the revision, calls fail with the JSON-RPC error of an unsupported protocol
    /// version, and nothing is done: connect again without it.
    pub fn discovery(mut self, discovery: Discovery) -> ClientBuilder {
        self.discovery = Some(discovery);
        self
    }

    /// Sets the time limit for connecting to the server, with the handshake. Default: 30 s.
    pub fn open_timeout(mut self, limit: Duration) -> ClientBuilder {
        self.open_timeout = limit;
        self
    }

    /// Declares a protocol extension in the client's capabilities, by its identifier, with settings as a JSON object.
    pub fn extension(mut self, id: &str, settings: Value) -> ClientBuilder {
        if !settings.is_object() || !id.contains('/') {
            self.record_fault(format!("the extension {id:?} needs an identifier with a prefix, for example com.example/thing, and settings that are an object"));
        }
        self.extensions
            .push((id.to_owned(), Json::from_value(&settings)));
        self
    }

    /// Sets the function that fills in form elicitations (`elicitation/create`) of the server. Omitted fields are
    /// filled with the form's defaults. An answer that does not match the form is not sent, and the call fails.
    pub fn on_elicit<F, A>(mut self, answer_form: F) -> ClientBuilder
    where
        F: Fn(FormElicitation) -> A + Send + Sync + 'static,
        A: Future<Output = Reply<Value>> + Send + 'static,
    {
        self.functions.form = Some(Arc::new(move |form| Box::pin(answer_form(form))));
        self
    }

    /// Sets the function that handles URL elicitations of the server, by opening the page for the user.
    /// `Reply::Accepted(())` means that the user agreed to open it. See [`UrlElicitation`] for what must be shown
    /// first.
    pub fn on_elicit_url<F, A>(mut self, open_page: F) -> ClientBuilder
    where
        F: Fn(UrlElicitation) -> A + Send + Sync + 'static,
        A: Future<Output = Reply<()>> + Send + 'static,
    {
        self.functions.page = Some(Arc::new(move |page| Box::pin(open_page(page))));
        self
    }

    /// Sets the function that receives the elicitation id of each completed URL elicitation (2025-11-25). Unknown ids
    /// are ignored.
    pub fn on_elicitation_complete(
        mut self,
        on_complete: impl Fn(String) + Send + Sync + 'static,
    ) -> ClientBuilder {
        self.functions.elicitation_complete = Some(Arc::new(on_complete));
        self
    }

    /// Sets the function that answers sampling requests (`sampling/createMessage`) with the application's model. `Err`
    /// is the reason why a person rejected the request.
    pub fn on_sample<F, A>(mut self, sample: F) -> ClientBuilder
    where
        F: Fn(SamplingRequest) -> A + Send + Sync + 'static,
        A: Future<Output = Result<SamplingResponse, String>> + Send + 'static,
    {
        self.functions.sample = Some(Arc::new(move |asked| Box::pin(sample(asked))));
        self
    }

    /// Declares that the client's sampling function supports tools (`sampling.tools`). Otherwise sampling requests with
    /// tools are rejected.
    ///
    /// ```
    /// use toolgate::{Client, client::SamplingResponse};
    ///
    /// let builder = Client::builder().sample_with_tools().on_sample(|request| async move {
    ///     let tools = request.params.tools.len();
    ///     Ok(SamplingResponse::text("my-model", &format!("I need none of the {tools} tools.")))
    /// });
    /// # drop(builder);
    /// ```
    pub fn sample_with_tools(mut self) -> ClientBuilder {
        self.functions.samples_with_tools = true;
        self
    }

    /// Declares kinds of input requests that the application answers by hand: a call that is
    /// [started](super::ToolCallBuilder::start) returns them as [`InputRequired`](super::CallProgress::InputRequired),
    /// and continues with the answers. This applies in every revision. Functions such as [`ClientBuilder::on_elicit`] of
    /// the same kind answer the requests of calls that are not started by hand.
    pub fn manual_input(mut self, kinds: impl IntoIterator<Item = InputKind>) -> ClientBuilder {
        self.functions.manual.extend(kinds);
        self
    }

    /// Sets the roots (`roots/list`): the directories and files that the server may use, as `file://` URIs.
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> ClientBuilder {
        self.functions.roots = Some(roots.into_iter().collect());
        self
    }

    /// Sets the function that receives the server's log messages (`notifications/message`), and their minimum level.
    /// The specification deprecates log messages.
    pub fn on_log(
        mut self,
        level: LogLevel,
        log: impl Fn(LogMessage) + Send + Sync + 'static,
    ) -> ClientBuilder {
        self.log_level = Some(level);
        self.functions.log = Some(Arc::new(log));
        self
    }

    /// Sets the function that confirms every tool call before it is sent, given exactly what would be sent. `Err` is
    /// the reason of the refusal; the model may see it.
    pub fn confirm<F, A>(mut self, confirm: F) -> ClientBuilder
    where
        F: Fn(CallConfirmation) -> A + Send + Sync + 'static,
        A: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.confirms_every_call = true;
        self.functions.confirm = Some(Arc::new(move |call| Box::pin(confirm(call))));
        self
    }

    /// Sets the function that confirms the tool calls for which a rule requires approval, and no others. Without it or
    /// [`ClientBuilder::confirm`], such calls are refused.
    ///
    /// ```
    /// # use toolgate::{Client, Server, rule, rule::RuleDecision};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), toolgate::Error> {
    /// # let server = Server::new("s", "1");
    /// let client = Client::builder()
    ///     .rule(rule::from_fn("careful", |call, _| match call.name().starts_with("delete") {
    ///         true => RuleDecision::ask("deletes something"),
    ///         false => RuleDecision::Allow,
    ///     }))
    ///     .confirm_asked(|call| async move { Err(format!("not {}", call.tool.name())) })
    ///     .in_process(server)
    ///     .await?;
    /// # drop(client);
    /// # Ok(())
    /// # }
    /// ```
    pub fn confirm_asked<F, A>(mut self, confirm: F) -> ClientBuilder
    where
        F: Fn(CallConfirmation) -> A + Send + Sync + 'static,
        A: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.confirms_every_call = false;
        self.functions.confirm = Some(Arc::new(move |call| Box::pin(confirm(call))));
        self
    }

    /// Sets the function that receives an event when each call of this client begins and ends. It must not block.
    pub fn observe(
        mut self,
        on_event: impl Fn(CallEvent) + Send + Sync + 'static,
    ) -> ClientBuilder {
        self.observe = Some(Arc::new(on_event));
        self
    }

    /// Allows only the server's tools whose names match one of these glob patterns. In a pattern `*` matches any run of
    /// characters and `?` one character. Other tools are not listed and cannot be called. Patterns with the prefix
    /// `resource:` or `prompt:` apply to resources, by URI, and to prompts. Without any such pattern, all of those are
    /// allowed.
    pub fn allow<S: Into<String>>(
        mut self,
        patterns: impl IntoIterator<Item = S>,
    ) -> ClientBuilder {
        self.allow.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Hides and denies the server's tools, resources and prompts that match one of these glob patterns. This
    /// overrides [`ClientBuilder::allow`].
    pub fn deny<S: Into<String>>(mut self, patterns: impl IntoIterator<Item = S>) -> ClientBuilder {
        self.deny.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Sets the function that receives an event for each item definition that is hidden because it changed. It must not
    /// block.
    pub fn on_pin(mut self, on_event: impl Fn(PinEvent) + Send + Sync + 'static) -> ClientBuilder {
        self.on_pin = Some(Arc::new(on_event));
        self
    }

    /// Replaces the client's pins (accepted item definitions), for example with ones that outlive the process. They may
    /// also require a person to accept each definition. Set the server's identity there; otherwise only its id
    /// identifies it. Default: in memory, pinned on first use.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use toolgate::{
    ///     Client,
    ///     policy::{AuditRecorder, MemoryStateStore, NewDefinitionAction, PerServer, Pins},
    ///     protocol::method::initialize::Implementation,
    /// };
    ///
    /// # async fn f() -> Result<(), toolgate::Error> {
    /// // A real program has a store on disk.
    /// let pins = Pins::new(Arc::new(MemoryStateStore::new()), Arc::new(AuditRecorder::log()))
    ///     .on_new(PerServer::all(NewDefinitionAction::Ask))
    ///     .identities([("files".to_owned(), "file-server /srv".to_owned())]);
    /// let files = Client::builder()
    ///     .info(Implementation::new("my-app", "1.0.0"))
    ///     .id("files")
    ///     .pins(pins)
    ///     .env("FILES_MODE", "read-only")
    ///     .spawn(["file-server", "/srv"])
    ///     .await?;
    /// # drop(files);
    /// # Ok(())
    /// # }
    /// ```
    pub fn pins(mut self, pins: Pins) -> ClientBuilder {
        self.pins = Some(pins);
        self
    }

    /// Disables pins: the server's item definitions are accepted even when they change.
    pub fn no_pins(mut self) -> ClientBuilder {
        self.pins = None;
        self
    }

    /// Adds a rule that decides whether each call is allowed, needs an approval, or is denied.
    pub fn rule(mut self, rule: impl Rule) -> ClientBuilder {
        self.policy.rules.push(Arc::new(rule));
        self
    }

    /// Adds a layer around each call, inside the client's own policy: it sees allowed calls and checked results. The
    /// first one added is outermost. See [`layer`](crate::layer).
    pub fn layer(mut self, layer: impl Layer) -> ClientBuilder {
        self.policy.layers.push(Arc::new(layer));
        self
    }

    /// Adds a sanitizer of content from the server, such as results. It sees content after the built-in sanitizers, and the last one
    /// added sees it first. See [`sanitizer`](crate::sanitizer).
    pub fn sanitize(mut self, sanitizer: impl Sanitizer) -> ClientBuilder {
        self.policy.own_sanitizers.push(Arc::new(sanitizer));
        self
    }

    /// Trusts the tool annotations (`readOnlyHint` and so on) that the server claims; see
    /// [`ListedItem::annotations`](super::ListedItem::annotations).
    pub fn trust_annotations(mut self) -> ClientBuilder {
        self.trusted = true;
        self
    }

    /// Sets the idle time-out of calls: the time without a response or progress notification. Default: 60 s.
    pub fn timeout(mut self, idle_timeout: Duration) -> ClientBuilder {
        self.policy.deadline.idle = PerServer::all(idle_timeout);
        self
    }

    /// Sets the maximum total time of a call, whatever its progress. Time during which the application answers input
    /// requests does not count. Default: 15 minutes.
    pub fn max_timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.policy.deadline.max = timeout;
        self
    }

    /// Sets the rate limit for calls of each tool. Default: 6,000 calls a minute.
    pub fn rate_limit(mut self, quota: RateQuota) -> ClientBuilder {
        self.policy.rate = RateLimiter::new(Vec::new(), quota);
        self
    }

    /// Sets the size limits of results, definitions and texts from the server, in bytes.
    pub fn size_limits(mut self, size: SizeLimits) -> ClientBuilder {
        self.policy.size = size;
        self
    }

    /// Sets the policy for tool results that do not match their output schema. Default: they are blocked.
    pub fn output_schema(mut self, validation: OutputValidation) -> ClientBuilder {
        self.policy.output_schema = validation;
        self
    }

    /// Sets the policy for secrets (tokens, keys) in results from the server. Default: they are redacted.
    pub fn secrets(mut self, policy: OnSecret) -> ClientBuilder {
        self.policy.sanitizers.secrets.on_secret = PerServer::all(policy);
        self
    }

    /// Sets the policy for secrets (tokens, keys) in arguments sent to the server. Default: the application must
    /// confirm the call; it is denied if [`ClientBuilder::confirm`] is not set.
    pub fn outbound_secrets(mut self, policy: OnOutboundSecret) -> ClientBuilder {
        self.policy.sanitizers.outbound_secrets.found = PerServer::all(policy);
        self
    }

    /// Sets the policy for redaction placeholders such as `[redacted:RULE]` in arguments. A placeholder would overwrite
    /// the original value. Default: the application must confirm the call; it is denied if [`ClientBuilder::confirm`]
    /// is not set.
    pub fn placeholders(mut self, policy: OnPlaceholder) -> ClientBuilder {
        self.policy.sanitizers.placeholders.found = PerServer::all(policy);
        self
    }

    /// Sets the policy for the server's input requests: elicitation, sampling and roots. By default, forms that ask for
    /// a secret and pages without `https` are rejected. Sampling is not limited if [`ClientBuilder::on_sample`] is set.
    pub fn input_requests(mut self, policy: InputRequestPolicy) -> ClientBuilder {
        self.policy.input_requests = policy;
        self
    }

    /// Sets the maximum number of rounds of input requests (`input_required` results) per call. Default: 10.
    pub fn max_rounds(mut self, rounds: u32) -> ClientBuilder {
        self.max_rounds = rounds;
        self
    }

    /// Sets the audit recorder: the destination of a record of every call. Default: events of `tracing` with the target
    /// `toolgate::audit`, without contents.
    pub fn audit_recorder(mut self, recorder: Arc<AuditRecorder>) -> ClientBuilder {
        self.audit = None;
        self.policy.recorder = recorder;
        self
    }

    /// Records calls in a hash-chained audit log in that directory. Records are on disk before the call is sent and
    /// before its result is returned. If the log cannot be written, calls fail. `toolgate audit verify` verifies the
    /// log.
    ///
    /// ```no_run
    /// # async fn f() -> Result<(), toolgate::Error> {
    /// let files = toolgate::Client::builder()
    ///     .audit_in("/var/lib/my-app/audit")
    ///     .spawn(["file-server", "/srv"])
    ///     .await?;
    /// # drop(files);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(all(feature = "audit", unix))]
    pub fn audit_in(mut self, directory: impl Into<PathBuf>) -> ClientBuilder {
        self.audit = Some(directory.into());
        self
    }

    /// Records a fault. The first one is returned when the client is opened.
    pub(super) fn record_fault(&mut self, what: String) {
        self.first_fault.get_or_insert(what);
    }

    pub(super) fn check_faults(&self) -> Result<(), Error> {
        roots::check(self.functions.roots.as_deref().unwrap_or_default())?;
        match &self.first_fault {
            Some(wrong) => Err(unusable_setting(wrong.clone())),
            None => Ok(()),
        }
    }

    pub(super) fn extensions(&self) -> Option<Json> {
        let mut o = ObjectWriter::new();
        for (id, settings) in &self.extensions {
            debug_assert_eq!(settings.kind(), JsonKind::Object);
            o.raw(id, settings);
        }
        (!self.extensions.is_empty()).then(|| o.finish())
    }

    pub(super) fn recorder(&self) -> Result<Arc<AuditRecorder>, Error> {
        #[cfg(all(feature = "audit", unix))]
        if let Some(folder) = &self.audit {
            let recorder = AuditRecorder::in_folder(folder).map_err(|error| {
                let text = format!(
                    "the audit log in {} cannot be written: {error}",
                    folder.display()
                );
                unusable_setting(text).with_source(error)
            })?;
            return Ok(Arc::new(recorder));
        }
        Ok(self.policy.recorder.clone())
    }

    /// Returns the pins for the server of that id.
    pub(super) fn pins_of(&self, server: &str, recorder: &Arc<AuditRecorder>) -> Option<Pins> {
        let pins = self
            .pins
            .clone()?
            .with_recorder(recorder.clone())
            .only(server);
        Some(match self.on_pin.clone() {
            Some(told) => pins.on_event(move |event| told(event)),
            None => pins,
        })
    }

    /// Returns the patterns as access rules, for full names of the form `server.tool`.
    pub(super) fn access(&self, server: &str) -> AccessRules {
        let full = |pattern: &String| GlobPattern::new(format!("{server}.{pattern}"));
        let rule = |patterns: &[String], then, label: &str| {
            AccessRule::new(label, then, patterns.iter().map(full).collect())
        };
        let mut rules = vec![rule(
            &self.deny,
            RuleAction::Deny,
            "the application denies this item (ClientBuilder::deny)",
        )];
        if self.allow.is_empty() {
            return AccessRules::new(rules).default_action(RuleAction::Allow);
        }
        rules.push(rule(
            &self.allow,
            RuleAction::Allow,
            "the application allows this item (ClientBuilder::allow)",
        ));
        for kind in [Item::RESOURCE_PREFIX, Item::PROMPT_PREFIX] {
            if !self.allow.iter().any(|pattern| pattern.starts_with(kind)) {
                let all = [format!("{kind}*")];
                rules.push(rule(
                    &all,
                    RuleAction::Allow,
                    "the application allows this item (ClientBuilder::allow)",
                ));
            }
        }
        AccessRules::new(rules).default_action(RuleAction::Deny)
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
