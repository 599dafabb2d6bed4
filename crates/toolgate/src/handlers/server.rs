//! Builder of a server.

use super::{
    AppPage, BuildError, Icon, IntoPrompt, IntoResource, IntoResourceTemplate, IntoTool,
    ItemRegistry, ItemSource, Skill, TaskSupport, app_page,
    mount::{self, BuiltServer},
    registry::OfferedItems,
    service::HandlerService,
    tool_policy::ToolRules,
};
use crate::{
    aggregate::{DefinitionOverride, DefinitionOverrides},
    edge::{self, ServerCapabilities, ServerLimits, TaskOffer},
};
use std::{path::PathBuf, sync::Arc};
use toolgate_core::{CacheHint, Json, Layer, Rule, Sanitizer};
use toolgate_policy::{
    AuditRecorder, CallObserver, CallTimeout, ConcurrencyLimit, OnOutboundSecret, OnPlaceholder,
    OnSecret, OutputValidation, PerServer, Policy, ProgramApproval, RateLimiter, RateQuota,
    RequiredScopes, SizeLimits,
};
use toolgate_protocol::method::{initialize::Implementation, meta};

/// Builder of an MCP server from tools, resources, prompts and skills. All server policies are on: arguments are
/// checked against their schemas, and calls are recorded and limited in number, rate and time. Results are checked,
/// sanitized and limited in size, and a panic ends only its own call.
///
/// ```
/// use toolgate::handlers::{Cx, Server, HandlerExit, Tool};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let now = Tool::dynamic("now", serde_json::json!({"type": "object"}), |_, _: Cx| async {
///     Ok::<_, HandlerExit>("noon")
/// });
/// let server = Server::new("clock", "1.0.0").tool(now.read_only()).build()?;
/// # let _ = server;
/// # Ok(())
/// # }
/// ```
///
/// The policy has settings:
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use toolgate::{
///     Server,
///     policy::{AuditRecorder, CallTimeout, NoObserver, OnSecret, OutputValidation, PerServer, SizeLimits},
/// };
///
/// let mut timeout = CallTimeout::default();
/// timeout.idle = PerServer::all(Duration::from_secs(10));
/// let mut sizes = SizeLimits::default();
/// sizes.result = 1 << 20;
/// let server = Server::new("vault", "1.0.0")
///     .website("https://vault.example.com")
///     .cache(60_000, false)
///     .concurrency_limit(4, 100)
///     .deadline(timeout)
///     .size_limits(sizes)
///     .output_schema(OutputValidation::default())
///     .secrets(OnSecret::Pass) // its tools return keys
///     .observe(NoObserver)
///     .audit_recorder(Arc::new(AuditRecorder::log()))
///     .seal_key([7; 32]); // shared by all replicas; read it from a secret store
/// # assert!(server.build().is_ok());
/// ```
pub struct Server {
    info: Implementation,
    instructions: Option<String>,
    items: OfferedItems,
    policy: Policy,
    limits: ServerLimits,
    extensions: Vec<(String, Json)>,
    completions: bool,
    key: Option<[u8; 32]>,
    audit: Option<PathBuf>,
    pub(super) mounts: Vec<(String, Server)>,
    pub(super) overrides: DefinitionOverrides,
    /// Composes the service of a server with mounts or overrides. Their builder methods set it, so that other servers
    /// do not link it.
    compose: Option<mount::ComposeFn>,
}

impl Server {
    /// Creates an MCP server with this name and version, without tools or other items.
    pub fn new(name: &str, version: &str) -> Server {
        let mut duties = Policy::default();
        // These arguments have reached their destination, so their secrets leak nowhere.
        duties.sanitizers.outbound_secrets.found = PerServer::all(OnOutboundSecret::Pass);
        duties.sanitizers.placeholders.found = PerServer::all(OnPlaceholder::Allow);
        // An input request checks its own response and is repeated if that does not fit.
        duties.input_requests.validate_responses = false;
        duties.approval = ProgramApproval::CallersClient;
        // Images and links are the server's own; the recipient checks them.
        duties.sanitizers.media.check = PerServer::all(false);
        duties.sanitizers.links.check = PerServer::all(false);
        Server {
            info: Implementation::new(name, version),
            instructions: None,
            items: OfferedItems::default(),
            policy: duties,
            limits: ServerLimits::default(),
            extensions: Vec::new(),
            completions: false,
            key: None,
            audit: None,
            mounts: Vec::new(),
            overrides: DefinitionOverrides::default(),
            compose: None,
        }
    }

    /// Sets the server's title, which hosts show to people.
    pub fn title(mut self, title: &str) -> Server {
        self.info.title = Some(title.to_owned());
        self
    }

    /// Sets the server's description.
    pub fn description(mut self, text: &str) -> Server {
        self.info.description = Some(text.to_owned());
        self
    }

    /// Sets the server's website URL.
    pub fn website(mut self, url: &str) -> Server {
        self.info.website_url = Some(url.to_owned());
        self
    }

    /// Sets the server's icons, as JSON in the protocol's format: an array of objects with `src`.
    pub fn icons(mut self, icons: serde_json::Value) -> Server {
        self.info.icons = Some(Json::from_value(&icons));
        self
    }

    /// Adds an icon of the server, which hosts show to people.
    pub fn icon(mut self, icon: Icon) -> Server {
        let icons = self.info.icons.as_ref().map(Json::to_value);
        let mut icons = icons
            .and_then(|icons| icons.as_array().cloned())
            .unwrap_or_default();
        icons.push(icon.into_json());
        self.info.icons = Some(Json::from_value(&icons.into()));
        self
    }

    /// Sets the server's `instructions`: how a model should use the server.
    pub fn instructions(mut self, text: &str) -> Server {
        self.instructions = Some(text.to_owned());
        self
    }

    /// Adds a tool to the server.
    pub fn tool(mut self, tool: impl IntoTool) -> Server {
        self.items.tools.push(tool.into_tool());
        self
    }

    /// Adds tools, prompts, resources and templates that share one state: a value of a type with a
    /// [`#[tools]`](macro@crate::tools) block, an `Arc` of one, or an [`ItemSet`](super::ItemSet).
    pub fn tools(mut self, items: impl ItemSource) -> Server {
        let items = Arc::new(items).items();
        self.items.tools.extend(items.tools);
        self = items.prompts.into_iter().fold(self, Server::prompt);
        self = items.resources.into_iter().fold(self, Server::resource);
        items.templates.into_iter().fold(self, Server::template)
    }

    /// Adds a prompt to the server.
    pub fn prompt(mut self, prompt: impl IntoPrompt) -> Server {
        let prompt = prompt.into_prompt();
        self.completions |= !prompt.completers.is_empty();
        self.items.prompts.push(prompt);
        self
    }

    /// Adds a resource to the server.
    pub fn resource(mut self, resource: impl IntoResource) -> Server {
        self.items.resources.push(resource.into_resource());
        self
    }

    /// Adds a resource template to the server.
    pub fn template(mut self, template: impl IntoResourceTemplate) -> Server {
        let template = template.into_resource_template();
        self.completions |= !template.completers.is_empty();
        self.items.templates.push(template);
        self
    }

    /// Adds a page of MCP Apps to the server, as a resource, and declares the extension `io.modelcontextprotocol/ui`. Tie
    /// tools to the page with [`Tool::ui`](super::Tool::ui).
    pub fn app(mut self, page: AppPage) -> Server {
        if !self
            .extensions
            .iter()
            .any(|(id, _)| id == app_page::EXTENSION)
        {
            let settings = app_page::extension_settings();
            self.extensions
                .push((app_page::EXTENSION.to_owned(), settings));
        }
        self.resource(page)
    }

    /// Adds a skill to the server, and its `SKILL.md` as a resource (2026-07-28).
    pub fn skill(mut self, skill: Skill) -> Server {
        self.items.skills.push(skill);
        self
    }

    /// Adds skills to the server; [`Skill::all_in`] reads them from a directory.
    pub fn skills(mut self, skills: impl IntoIterator<Item = Skill>) -> Server {
        self.items.skills.extend(skills);
        self
    }

    /// Mounts another server inside this one, under a name that prefixes its items. The name has at most 32 characters
    /// of `[A-Za-z0-9-]`.
    ///
    /// - Its tools and prompts are named `NAME_tool`. A name that hosts do not accept is changed, as by the gateway.
    /// - Its resources keep their URIs, except that `ui://app` becomes `ui://NAME/app`, and likewise `skill://`.
    /// - If two servers have the same URI, the outer server owns it, then the one that was mounted first.
    /// - Its policies still apply, inside those of the outer server.
    /// - Its name, version, [`Server::limits`] and [`Server::seal_key`] are not used.
    ///
    /// ```
    /// use toolgate::{Cx, HandlerExit, Server, Tool};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let now = Tool::dynamic("now", serde_json::json!({"type": "object"}), |_, _: Cx| async {
    ///     Ok::<_, HandlerExit>("noon")
    /// });
    /// let clock = Server::new("clock", "1.0.0").tool(now.read_only());
    /// // Its tool is `clock_now`.
    /// let house = Server::new("house", "1.0.0").mount("clock", clock).build()?;
    /// # let _ = house;
    /// # Ok(())
    /// # }
    /// ```
    pub fn mount(mut self, name: &str, server: Server) -> Server {
        self.mounts.push((name.to_owned(), server));
        self.compose = Some(mount::compose);
        self
    }

    /// Overrides the definition of one of the server's own tools: name, visibility, title, description, fixed
    /// arguments. Mounted servers set their own overrides.
    ///
    /// ```
    /// use toolgate::{Cx, HandlerExit, Server, Tool, aggregate::DefinitionOverride};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let schema = serde_json::json!({"type": "object", "properties": {"zone": {"type": "string"}}});
    /// let now = Tool::dynamic("now", schema, |args, _: Cx| async move {
    ///     Ok::<_, HandlerExit>(format!("noon in {}", args["zone"]))
    /// });
    /// let here = DefinitionOverride::new().name("now_here").argument("zone", "UTC");
    /// let clock = Server::new("clock", "1.0.0").tool(now).override_tool("now", here);
    /// # clock.build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn override_tool(mut self, tool: &str, changes: DefinitionOverride) -> Server {
        self.overrides.set(tool, changes);
        self.compose = Some(mount::compose);
        self
    }

    /// Sets the cache hint of the server's item lists: the time to live in milliseconds, and whether caches may share
    /// them between callers (2026-07-28). Default: 0 and private.
    pub fn cache(mut self, ttl_ms: u64, public: bool) -> Server {
        self.items.hint = CacheHint { ttl_ms, public };
        self
    }

    /// Declares a protocol extension by its identifier, with its settings, a JSON object (2026-07-28).
    pub fn extension(mut self, id: &str, settings: Json) -> Server {
        self.extensions.push((id.to_owned(), settings));
        self
    }

    /// Adds a rule that decides which callers may see and call which items. An item that is hidden from a caller is
    /// unknown to that caller.
    pub fn rule(mut self, rule: impl Rule) -> Server {
        self.policy.rules.push(Arc::new(rule));
        self
    }

    /// Sets who approves calls for which a rule requires it. Default: the user of the caller's own client, if that client
    /// supports form elicitation; calls of other clients are refused.
    pub fn approval(mut self, approval: ProgramApproval) -> Server {
        self.policy.approval = approval;
        self
    }

    /// Adds a layer around each call of a handler. It sees calls that the rules allow, and results after the built-in
    /// sanitizers. The first one added is outermost. [`Tool::layer`](super::Tool::layer) adds one for a single tool.
    ///
    /// ```
    /// use toolgate::{Server, layer};
    ///
    /// let server = Server::new("files", "1.0.0")
    ///     .layer(layer::from_fn("tenant", |call, next| {
    ///         Box::pin(async move {
    ///             println!("{} calls {}", call.caller.name(), call.name());
    ///             next.call(call).await
    ///         })
    ///     }))
    ///     .layer(layer::CallSpans::new());
    /// # assert!(server.build().is_ok());
    /// ```
    pub fn layer(mut self, layer: impl Layer) -> Server {
        self.policy.layers.push(Arc::new(layer));
        self
    }

    /// Adds a sanitizer of everything that the handlers return. It sees content after the built-in sanitizers, and the
    /// last one added sees it first.
    ///
    /// ```
    /// use toolgate::{Server, sanitizer};
    ///
    /// let server = Server::new("people", "1.0.0").sanitize(sanitizer::text_from_fn("mail", |text| {
    ///     text.contains('@').then(|| text.replace('@', " at "))
    /// }));
    /// # assert!(server.build().is_ok());
    /// ```
    pub fn sanitize(mut self, sanitizer: impl Sanitizer) -> Server {
        self.policy.own_sanitizers.push(Arc::new(sanitizer));
        self
    }

    /// Sets the observer of every round of every call, also of calls that are denied. It must not block, and it gets
    /// data that is not redacted.
    pub fn observe(mut self, observer: impl CallObserver) -> Server {
        self.policy.observer = Arc::new(observer);
        self
    }

    /// Sets the scopes that access tokens need if the server is [`protected`](crate::Http::protected). Tools are named
    /// as in the audit log: `*.name` matches whatever the name of this server is.
    pub fn scopes(mut self, scopes: RequiredScopes) -> Server {
        self.policy.scopes = scopes;
        self
    }

    /// Sets the rate limit for calls of each tool per caller. Default: 6,000 calls a minute.
    pub fn rate_limit(mut self, quota: RateQuota) -> Server {
        self.policy.rate = RateLimiter::new(Vec::new(), quota);
        self
    }

    /// Sets the maximum number of concurrent calls of the server's items, per caller and in total. Default: 64 and
    /// 2,048.
    ///
    /// By default, a call beyond the limits waits in a queue. Setting the limits removes the queue: a call beyond them
    /// is rejected at once.
    pub fn concurrency_limit(mut self, per_caller: usize, total: usize) -> Server {
        self.policy.concurrency = ConcurrencyLimit::new(per_caller, total);
        self
    }

    /// Sets the time limits of calls to the server's handlers. Default: 60 s without progress, at most 15 minutes.
    pub fn deadline(mut self, deadline: CallTimeout) -> Server {
        self.policy.deadline = deadline;
        self
    }

    /// Sets the policy for tool results that do not match their output schema. Default: they are blocked.
    pub fn output_schema(mut self, validation: OutputValidation) -> Server {
        self.policy.output_schema = validation;
        self
    }

    /// Sets the policy for secrets (tokens, keys) in results. Default: they are redacted. A tool that returns keys
    /// needs [`OnSecret::Pass`].
    pub fn secrets(mut self, policy: OnSecret) -> Server {
        self.policy.sanitizers.secrets.on_secret = PerServer::all(policy);
        self
    }

    /// Sets the size limits of results, definitions and texts, in bytes.
    pub fn size_limits(mut self, size: SizeLimits) -> Server {
        self.policy.size = size;
        self
    }

    /// Sets the audit recorder: the destination of a record of every call. Default: events of `tracing`, without
    /// contents. [`Server::audit_in`] writes a tamper-evident log.
    pub fn audit_recorder(mut self, recorder: Arc<AuditRecorder>) -> Server {
        self.audit = None;
        self.policy.recorder = recorder;
        self
    }

    /// Records calls in a hash-chained audit log in that directory. Records are on disk before the handler runs and
    /// before the result is sent. If the log cannot be written, calls fail.
    ///
    /// ```no_run
    /// # use toolgate::Server;
    /// let server = Server::new("bank", "1.0.0").audit_in("/var/lib/bank/audit").build()?;
    /// # drop(server);
    /// # Ok::<(), toolgate::handlers::BuildError>(())
    /// ```
    #[cfg(all(feature = "audit", unix))]
    pub fn audit_in(mut self, directory: impl Into<PathBuf>) -> Server {
        self.audit = Some(directory.into());
        self
    }

    /// Sets the limits of the MCP protocol server: sizes, pages, input requests and tasks.
    pub fn limits(mut self, limits: ServerLimits) -> Server {
        self.limits = limits;
        self
    }

    /// Sets the key that seals the `requestState` sent with input requests. Replicas that answer retries of each
    /// other's calls must share it. Default: a random key per process.
    pub fn seal_key(mut self, key: [u8; 32]) -> Server {
        self.key = Some(key);
        self
    }

    /// Builds the MCP server, to be served over stdio or HTTP.
    ///
    /// # Errors
    /// [`BuildError`] names the invalid definition and the reason.
    pub fn build(self) -> Result<Arc<edge::ProtocolServer>, BuildError> {
        self.build_with_registry().map(|(server, _)| server)
    }

    /// Builds the MCP server, together with a registry to change its items at run time.
    ///
    /// # Errors
    /// As [`Server::build`].
    pub fn build_with_registry(
        mut self,
    ) -> Result<(Arc<edge::ProtocolServer>, ItemRegistry), BuildError> {
        let (limits, key) = (self.limits.clone(), self.key.take());
        let info = self.info.clone();
        let built = self.build_service()?;
        let own = built.has_only_own_items.then(|| built.registry.clone());
        let mirrors = own.map(|own| move || own.offered().has_param_headers);
        let unsealed = |error: toolgate_core::Error| {
            BuildError::new("the key for requestState", error.public_message())
        };
        let mut server =
            edge::ProtocolServer::new(built.service, &info.name, &info.version, limits)
                .map_err(unsealed)?
                .with_info(info)
                .with_capabilities(built.offers)
                .with_param_headers_check(mirrors)
                .with_transport_parts()
                .with_instructions(built.instructions);
        if let Some(key) = key {
            server = server.with_seal_keys(&[key]).map_err(unsealed)?;
        }
        Ok((Arc::new(server), built.registry))
    }

    /// Builds the policies and handlers, without an edge.
    pub(super) fn build_service(mut self) -> Result<BuiltServer, BuildError> {
        let mut offers = self.offers()?;
        #[cfg(all(feature = "audit", unix))]
        if let Some(folder) = &self.audit {
            let recorder = AuditRecorder::in_folder(folder);
            let unwritable = |error| {
                BuildError::new(
                    format!("the audit log in {}", folder.display()),
                    format!("{error}"),
                )
            };
            self.policy.recorder = Arc::new(recorder.map_err(unwritable)?);
        }
        let mut inner = Vec::new();
        for (name, server) in std::mem::take(&mut self.mounts) {
            let built = server
                .build_service()
                .map_err(|error| error.within(&format!("the mounted server {name:?}")))?;
            inner.push((name, built));
        }
        self.items.mounts = inner.iter().map(|(name, _)| name.clone()).collect();
        let mounted = inner.iter();
        let mounted = mounted.map(|(name, built)| (name.clone(), built.registry.clone()));
        let registry = ItemRegistry::new(&self.info.name, self.items, mounted.collect())?;
        self.policy
            .rules
            .push(Arc::new(ToolRules(registry.clone())));
        let mut words: Vec<String> = self.instructions.into_iter().collect();
        for (name, built) in &inner {
            let theirs = built.instructions.as_ref();
            words.extend(theirs.map(|text| format!("{name}: {text}")));
            offers = mount::join_offers(&offers, &built.offers);
        }
        let alone = self.overrides.is_empty() && inner.is_empty();
        let end = match self.compose {
            Some(compose) if !alone => compose(&registry, self.overrides, inner)?,
            _ => Arc::new(HandlerService::new(registry.clone())),
        };
        Ok(BuiltServer {
            service: Arc::new(self.policy.over(end)),
            registry,
            has_only_own_items: alone,
            offers,
            instructions: (!words.is_empty()).then(|| words.join("\n\n")),
        })
    }

    fn offers(&self) -> Result<ServerCapabilities, BuildError> {
        let skills = !self.items.skills.is_empty();
        let resources =
            skills || !self.items.resources.is_empty() || !self.items.templates.is_empty();
        let mut extensions = toolgate_protocol::json::ObjectWriter::new();
        for (id, settings) in &self.extensions {
            if settings.kind() != toolgate_protocol::json::JsonKind::Object
                || !id.contains('/')
                || !meta::is_key(id)
            {
                let why = "use an identifier with a prefix, such as com.example/thing, and an object as its settings";
                return Err(BuildError::new(format!("the extension {id:?}"), why));
            }
            if id == toolgate_protocol::method::skills::EXTENSION {
                let why =
                    "it is declared automatically if there are skills; add one with Server::skill";
                return Err(BuildError::new(format!("the extension {id:?}"), why));
            }
            extensions.raw(id, settings);
        }
        Ok(ServerCapabilities {
            // Tools can be added later, and an empty list is valid.
            tools: true,
            resources,
            subscribe: resources,
            prompts: !self.items.prompts.is_empty(),
            completions: self.completions,
            list_changed: true,
            tasks: TaskOffer::marked(
                self.items
                    .tools
                    .iter()
                    .any(|t| t.support() != TaskSupport::Forbidden),
            ),
            skills,
            extensions: (!self.extensions.is_empty()).then(|| extensions.finish()),
        })
    }
}
