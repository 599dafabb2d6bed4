//! Composition of the service stack from a config: members, aggregate, and policies.

use crate::{
    authentication::required_scopes,
    config::{
        Config, ConfigRule, ConfigRuleAction as Verdict, ConfigSource, ConfigValue, GatewayLimits,
        NameGlob, OutputCheck, RateSetting, SEARCH_SERVER, ServerSettings, UnknownArguments,
        ViewSettings,
    },
    oauth::{SignInInstructions, SignInPages},
    runtime::counted_calls::CountedCalls,
    runtime::snapshot::PolicyBackends,
    servers::{ServerLease, ServerSpec},
};
use std::{path::Path, sync::Arc, time::Duration};
use toolgate::{
    aggregate::{Aggregate, AggregateMember, LinkLimits},
    edge::{ServerLimits, http::HttpLimits},
};
use toolgate_core::{
    BoxFuture, Call, Catalog, ChangeFilter, ChangeStream, ClientCapabilities, Error, Json,
    ListRequest, Outcome, Pipeline, Service,
};
use toolgate_policy::{
    self as policy, AccessRule, AccessRules, AccessView, AccessViews, ApprovalLimits,
    AuditContents, CallerMatcher, CircuitBreaker, ConcurrencyLimit, ConcurrencyLimits,
    ElicitationPolicy, ErrorTextMode, GlobPattern, InputRequestPolicy, OnInvalidOutput,
    OnOutboundSecret, OnPlaceholder, OnSecret, OperatorPolicy, PerServer, Pins, Policy, QuorumRule,
    QuorumRules, RateQuota, RateRule, RequiredDefaults, RuleAction, SamplingPolicy, SanitizeConfig,
    SchemaBounds, SchemaSanitizer, SizeLimits, UriSpelling,
};
use toolgate_protocol::{
    json,
    memory_budget::{BudgetScope, MemoryBudget},
};

/// Extension MCP Apps: tools with UI resources.
const MCP_APPS_EXTENSION: &str = "io.modelcontextprotocol/ui";
/// Time in which a running server has to list its items, beyond its time to start.
const MAX_LIST_READ_TIME: Duration = Duration::from_secs(10);

/// Builds the specification of each server for the supervisor, with its memory budget and the directory of
/// credentials.
pub(crate) fn server_specs(
    config: &Config,
    room: &Arc<MemoryBudget>,
    grants: &Path,
    (how, pages): (&SignInInstructions, Option<&SignInPages>),
) -> Vec<ServerSpec> {
    let limits = &config.limits;
    let asking = input_request_policy(config);
    config
        .servers
        .iter()
        .map(|server| ServerSpec {
            env: environment(server, &config.source),
            pass_env: server.env_pass.clone(),
            cwd: server.cwd.clone(),
            address: server.address.clone(),
            credentials_dir: server.address.is_some().then(|| grants.to_owned()),
            sign_in_instructions: how.clone(),
            sign_in_pages: pages.filter(|_| needs_sign_in_pages(server)).cloned(),
            trusted: server.trust_annotations,
            revision: server.revision,
            start_timeout: seconds(start_seconds(server, limits)),
            // Waiting for the start never takes longer than the timeout of a call.
            call_start_wait: seconds(
                start_seconds(server, limits)
                    .min(server.call_seconds.unwrap_or(limits.call_seconds)),
            ),
            list_start_wait: seconds(limits.list_wait_seconds),
            max_line_bytes: limits.line_bytes,
            json_limits: json_limits(limits, limits.line_bytes),
            budget: BudgetScope::of(room, format!("server {}", server.id).into()),
            parked: (
                limits.parked_calls,
                limits.parked_calls_per_caller,
                seconds(limits.question_seconds),
            ),
            ping_interval: Some(seconds(limits.ping_seconds)).filter(|every| !every.is_zero()),
            max_instruction_bytes: limits.instructions_bytes,
            max_tools: limits.tools_per_server,
            max_list_bytes: limits.list_bytes,
            list_ttl: seconds(limits.list_seconds),
            max_callers: limits.callers_per_server,
            capabilities: {
                let mut capabilities =
                    asking.offered_capabilities(&server.id, &ClientCapabilities::ALL);
                capabilities.extensions = Some(client_extensions());
                capabilities
            },
            ..ServerSpec::new(server.id.as_str(), server.command.clone())
        })
        .collect()
}

/// Returns the environment of a server, with the variable for nested gateways.
fn environment(server: &ServerSettings, source: &ConfigSource) -> Vec<(String, ConfigValue)> {
    let (name, value) = crate::runtime::nesting::server_variable(source);
    let set = server.env.iter().cloned();
    set.chain([(name, ConfigValue::Plaintext(value))]).collect()
}

/// Returns the longest time in which a server may start and list its items.
pub(crate) fn longest_start(config: &Config) -> Duration {
    let starts = config
        .servers
        .iter()
        .map(|s| start_seconds(s, &config.limits));
    seconds(starts.max().unwrap_or_default()) + MAX_LIST_READ_TIME
}

fn start_seconds(server: &ServerSettings, limits: &GatewayLimits) -> u64 {
    server.start_seconds.unwrap_or(limits.start_seconds)
}

/// Returns the client extensions that servers see. UI resources of tools reach callers unchanged.
fn client_extensions() -> Json {
    Json::from_value(
        &serde_json::json!({MCP_APPS_EXTENSION: {"mimeTypes": ["text/html;profile=mcp-app"]}}),
    )
}

/// Returns the server extensions that callers see.
pub(crate) fn server_extensions() -> Json {
    Json::from_value(&serde_json::json!({MCP_APPS_EXTENSION: {}}))
}

/// Aggregates all servers.
///
/// # Errors
/// A prefix is not valid in a name, or an environment variable is not set.
pub(crate) fn aggregate(config: &Config, leases: &[Arc<ServerLease>]) -> Result<Aggregate, String> {
    let services = leases.iter().map(|lease| lease.clone() as Arc<dyn Service>);
    aggregate_services(config, services.collect())
}

/// Returns whether each caller signs in to the server. Other servers need no sign-in pages.
fn needs_sign_in_pages(server: &ServerSettings) -> bool {
    let address = server.address.as_ref();
    address.is_some_and(|address| address.has_caller_credentials())
}

/// Aggregates other services, one for each server.
pub(crate) fn aggregate_services(
    config: &Config,
    services: Vec<Arc<dyn Service>>,
) -> Result<Aggregate, String> {
    let members = config
        .servers
        .iter()
        .zip(services)
        .map(|(server, service)| AggregateMember {
            id: server.id.as_str().into(),
            prefix: server.prefix.clone(),
            service,
        });
    let mut links = LinkLimits::default();
    links.per_caller = config.limits.links_per_caller;
    links.callers = config.limits.link_callers;
    let joined = Aggregate::new(members.collect()).map_err(|bad| bad.to_string())?;
    // Each server has its own timeouts; these are a backstop.
    let joined = joined
        .list_timeout(seconds(config.limits.list_wait_seconds) + MAX_LIST_READ_TIME)
        .call_timeout(longest_start(config));
    let overrides = config.overrides().map_err(|bad| bad.to_string())?;
    let each = config.servers.iter().zip(overrides);
    let joined = each.fold(joined, |joined, (server, overrides)| {
        joined.override_tools(&server.id, overrides)
    });
    Ok(joined.links(links).names(config.tool_names))
}

/// Service that lists the known items without asking a server, so that the operator's view never waits.
pub(crate) struct KnownItems(pub(crate) Arc<Aggregate>);

impl Service for KnownItems {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        Box::pin(async move { Ok(self.0.cached(ask.kind)) })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        self.0.call(call)
    }

    fn changes(&self, want: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        self.0.changes(want)
    }
}

/// Builds the policies of a config over the shared backends. Counters of the previous policies carry over.
pub(crate) fn gateway_policy(
    config: &Config,
    kept: &PolicyBackends,
    pins: Pins,
    before: Option<&Policy>,
) -> Policy {
    let limits = &config.limits;
    let silence = per_server(config, seconds(limits.call_seconds), |server| {
        seconds(server.call_seconds.unwrap_or(limits.call_seconds))
    });
    let rate = rate_limiter(config, kept, before);
    let mut asking = input_request_policy(config);
    asking.rate = rate.clone();
    let mut operator = OperatorPolicy::new(kept.approvals.clone());
    operator.canceller = kept.feed.canceller.clone();
    operator.quorum = quorum_rules(config);
    operator.circuit_breaker = circuit_breaker(config, before);
    let mut policy = Policy::for_gateway(kept.recorder.clone(), operator, pins);
    let telemetry = kept.telemetry.as_ref();
    policy.observer = match telemetry.and_then(|telemetry| telemetry.calls.clone()) {
        Some(metrics) => Arc::new(CountedCalls {
            feed: kept.feed.clone(),
            metrics,
        }),
        None => kept.feed.clone(),
    };
    policy.policy_id = config.hash.as_deref().unwrap_or("built-in").into();
    policy.scopes = required_scopes(config);
    policy.access = access_policy(config);
    policy.concurrency = match before {
        Some(before) => before.concurrency.with_limits(concurrency_limits(config)),
        None => ConcurrencyLimit::with_queue(concurrency_limits(config)),
    };
    policy.input_requests = asking;
    policy.rate = rate;
    policy.arguments.allow_unknown = per_server(config, false, |s| {
        s.unknown_arguments == UnknownArguments::Allow
    });
    policy.arguments.uri_spelling = per_server(config, UriSpelling::Canonical, |s| s.uri_spelling);
    policy.arguments.required_defaults =
        per_server(config, RequiredDefaults::Optional, |s| s.required_defaults);
    policy.deadline.idle = silence;
    policy.deadline.tool_idle = config.servers.iter().flat_map(tool_timeouts).collect();
    policy.deadline.max = seconds(limits.call_max_seconds);
    policy.output_schema.on_invalid = per_server(config, OnInvalidOutput::Block, on_invalid_output);
    policy.schemas = schema_sanitizer(config);
    policy.sanitizers = sanitize_config(config);
    policy.size = size_limits(config);
    policy.audit_durability = per_server(config, config.audit.content.durability, |server| {
        server
            .audit_content
            .durability
            .unwrap_or(config.audit.content.durability)
    });
    policy.audit_contents = audit_contents(config);
    let encrypts = config.audit.content.encrypt;
    policy.audit_contents.keys = kept.content_keys.clone().filter(|_| encrypts);
    policy
}

/// Builds the pipeline that only checks definitions, for a list of withheld items with reasons.
pub(crate) fn definition_pipeline(config: &Config, servers: Arc<dyn Service>) -> Pipeline {
    let size = size_limits(config);
    Pipeline::new()
        .resolve()
        .sanitizer(schema_sanitizer(config))
        .sanitizer(size.truncation())
        .sanitizer(policy::TextSanitizer)
        .sanitizer(size)
        .sanitizer(policy::SkillIntegrity)
        .service(servers)
}

fn schema_sanitizer(config: &Config) -> SchemaSanitizer {
    let limits = &config.limits;
    let mut bounds = SchemaBounds::default();
    bounds.bytes = limits.definition_bytes;
    bounds.depth = limits.schema_depth;
    bounds.subschemas = limits.subschemas;
    bounds.patterns = limits.patterns;
    bounds.time = Duration::from_millis(limits.schema_milliseconds);
    SchemaSanitizer(bounds)
}

fn size_limits(config: &Config) -> SizeLimits {
    let limits = &config.limits;
    let mut size_limits = SizeLimits::default();
    size_limits.result = limits.result_bytes;
    size_limits.definition = limits.definition_bytes;
    size_limits.description = limits.description_bytes;
    size_limits
}

/// Returns the contents of calls that are audited.
fn audit_contents(config: &Config) -> AuditContents {
    let held = &config.audit.content;
    let mut contents = AuditContents::default();
    contents.arguments = per_server(config, held.arguments, |s| {
        s.audit_content.arguments.unwrap_or(held.arguments)
    });
    contents.results = per_server(config, held.results, |s| {
        s.audit_content.results.unwrap_or(held.results)
    });
    contents.max_bytes = held.max_content_bytes;
    contents.argument_reads = access_policy(config).argument_reads();
    contents
}

/// Returns the settings of the sanitizers.
fn sanitize_config(config: &Config) -> SanitizeConfig {
    let mut cleaning = SanitizeConfig::default();
    cleaning.secrets.on_secret = per_server(config, OnSecret::Redact, |s| s.sanitizer.secrets);
    cleaning.outbound_secrets.found = per_server(config, OnOutboundSecret::Ask, |s| {
        s.sanitizer.outbound_secrets
    });
    cleaning.placeholders.found =
        per_server(config, OnPlaceholder::Ask, |s| s.sanitizer.placeholders);
    cleaning.media.check = per_server(config, true, |s| s.sanitizer.media);
    cleaning.media.max_base64_bytes = config.limits.media_bytes;
    cleaning.links.check = per_server(config, true, |s| s.sanitizer.links);
    let only = |s: &ServerSettings| Some((s.id.clone(), s.sanitizer.schemes.clone()?));
    cleaning.links.allowed_schemes = config.servers.iter().filter_map(only).collect();
    cleaning.errors.text = per_server(config, ErrorTextMode::Message, |s| s.sanitizer.error_text);
    cleaning.untrusted_marker.mark = per_server(config, false, |s| s.sanitizer.mark_untrusted);
    cleaning
}

/// Returns the policy for requests that servers make during a call.
fn input_request_policy(config: &Config) -> InputRequestPolicy {
    let mut asking = InputRequestPolicy::default();
    asking.elicitation_forms = per_server(config, ElicitationPolicy::Check, |s| {
        s.input_requests.elicitation_forms
    });
    asking.elicitation_urls = per_server(config, true, |s| s.input_requests.elicitation_urls);
    asking.sampling = per_server(config, SamplingPolicy::Off, |s| s.input_requests.sampling);
    asking.max_tokens = per_server(config, 0, |s| s.input_requests.sampling_tokens);
    asking.roots = per_server(config, true, |s| s.input_requests.roots);
    asking.allow_loopback_urls = false;
    asking.show_server = true;
    asking
}

pub(crate) fn per_server<T: Copy>(
    config: &Config,
    default: T,
    of: impl Fn(&ServerSettings) -> T,
) -> PerServer<T> {
    config
        .servers
        .iter()
        .fold(PerServer::all(default), |all, server| {
            all.with(server.id.as_str(), of(server))
        })
}

fn on_invalid_output(server: &ServerSettings) -> OnInvalidOutput {
    match server.output_check {
        OutputCheck::Block => OnInvalidOutput::Block,
        OutputCheck::Warn => OnInvalidOutput::Warn,
        OutputCheck::Off => OnInvalidOutput::Pass,
    }
}

/// Returns the access rules.
pub(crate) fn access_policy(config: &Config) -> AccessRules {
    AccessRules::new(access_rules(config)).views(access_views(config))
}

/// Returns the access rules one by one.
pub(crate) fn access_rules(config: &Config) -> Vec<AccessRule> {
    let rules = config.rules.iter().map(|rule| {
        let mut access_rule = AccessRule::new(
            rule.label(),
            match rule.action {
                Verdict::Allow => RuleAction::Allow,
                Verdict::Ask => RuleAction::Ask,
                Verdict::Deny => RuleAction::Deny,
            },
            patterns(&rule.tools),
        );
        access_rule.callers = rule_callers(rule);
        access_rule.except = patterns(&rule.except);
        access_rule.when = rule.condition.clone();
        access_rule
    });
    rules.collect()
}

/// Returns the views: the servers and callers of each.
fn access_views(config: &Config) -> AccessViews {
    let view = |view: &ViewSettings| {
        let mut access_view = AccessView::default();
        // The tools of the search find only tools that the caller sees.
        access_view.servers = view.servers.as_ref().map(|servers| {
            let servers = servers.iter().map(String::as_str).chain([SEARCH_SERVER]);
            servers.map(Arc::from).collect()
        });
        access_view.callers = caller_matcher(&view.callers);
        (Arc::from(view.name.as_str()), access_view)
    };
    AccessViews::new(config.views.iter().map(view).collect())
}

/// Returns the callers that a rule applies to.
fn rule_callers(rule: &ConfigRule) -> CallerMatcher {
    let callers = caller_matcher(&rule.callers);
    match &rule.view {
        Some(view) => callers.in_view(view.as_str()),
        None => callers,
    }
}

/// Returns the concurrency limits: running and queued calls.
fn concurrency_limits(config: &Config) -> ConcurrencyLimits {
    let limits = &config.limits;
    let mut concurrency_limits = ConcurrencyLimits::default();
    concurrency_limits.per_caller = limits.calls_per_caller;
    concurrency_limits.per_tool = limits.calls_per_tool;
    concurrency_limits.per_server = per_server(config, limits.calls_per_server, |server| {
        server.max_calls.unwrap_or(limits.calls_per_server)
    });
    concurrency_limits.total = limits.calls;
    concurrency_limits.max_queued_per_caller = limits.waiting_per_caller;
    concurrency_limits.max_queued = limits.waiting;
    concurrency_limits.queue_timeout = seconds(limits.waiting_seconds);
    concurrency_limits.rejection_delay = Duration::from_millis(limits.rejection_milliseconds);
    concurrency_limits
}

/// Returns the timeouts of single tools, by full name.
fn tool_timeouts(server: &ServerSettings) -> impl Iterator<Item = (String, Duration)> {
    server.tool_overrides.iter().filter_map(|tool| {
        let name = format!("{}.{}", server.id, tool.rule_name());
        Some((name, seconds(tool.call_seconds?)))
    })
}

/// Returns the circuit breaker of each server. The state of the previous ones carries over.
fn circuit_breaker(config: &Config, before: Option<&Policy>) -> CircuitBreaker {
    let limits = &config.limits;
    let before = before.and_then(|policy| policy.operator.as_ref());
    let before = before.map_or_else(CircuitBreaker::default, |operator| {
        operator.circuit_breaker.clone()
    });
    before.with_settings(limits.breaker_failures, seconds(limits.breaker_seconds))
}

/// Returns the rate limiter. The token buckets of the previous one carry over.
fn rate_limiter(
    config: &Config,
    kept: &PolicyBackends,
    before: Option<&Policy>,
) -> policy::RateLimiter {
    let (rules, all) = (rate_rules(config), quota(&config.limits.rate));
    let rate = match before {
        Some(before) => before.rate.reloaded(rules, all),
        None => match &kept.rate_sharing {
            Some(sharing) => policy::RateLimiter::new(rules, all).shared(sharing.clone()),
            None => policy::RateLimiter::new(rules, all),
        },
    };
    let own = |server: &ServerSettings| Some((server.id.clone(), quota(server.rate.as_ref()?)));
    rate.per_server(config.servers.iter().filter_map(own))
}

fn rate_rules(config: &Config) -> Vec<RateRule> {
    let rate = |rule: &ConfigRule| {
        let mut rate_rule = RateRule::new(patterns(&rule.tools), quota(rule.rate.as_ref()?));
        rate_rule.callers = rule_callers(rule);
        rate_rule.except = patterns(&rule.except);
        Some(rate_rule)
    };
    config.rules.iter().filter_map(rate).collect()
}

fn quorum_rules(config: &Config) -> QuorumRules {
    let persons = |rule: &ConfigRule| {
        let mut quorum_rule = QuorumRule::new(patterns(&rule.tools), rule.approvals.clone()?);
        quorum_rule.callers = rule_callers(rule);
        quorum_rule.except = patterns(&rule.except);
        Some(quorum_rule)
    };
    QuorumRules::new(config.rules.iter().filter_map(persons).collect())
}

/// Returns the callers that one of the globs matches, or all callers if there are none.
pub(crate) fn caller_matcher(globs: &[NameGlob]) -> CallerMatcher {
    globs.iter().map(NameGlob::as_str).collect()
}

fn patterns(globs: &[NameGlob]) -> Vec<GlobPattern> {
    globs
        .iter()
        .map(|glob| GlobPattern::new(glob.as_str()))
        .collect()
}

fn quota(rate: &RateSetting) -> RateQuota {
    RateQuota {
        count: rate.count,
        per: rate.period,
    }
}

/// Returns the limits of pending and remembered approvals.
pub(crate) fn approval_limits(config: &Config) -> ApprovalLimits {
    let limits = &config.limits;
    let mut approval_limits = ApprovalLimits::default();
    approval_limits.approval_lifetime = seconds(limits.approval_seconds);
    approval_limits.task_approval_lifetime = seconds(limits.task_approval_seconds);
    approval_limits.max_pending_per_caller = limits.approvals_per_caller;
    approval_limits.max_pending = limits.approvals;
    approval_limits.max_grants = limits.grants;
    approval_limits.default_grant_lifetime = seconds(limits.grant_seconds);
    approval_limits.max_grant_lifetime = seconds(limits.grant_max_seconds);
    approval_limits
}

/// Returns the limits of the protocol server.
pub(crate) fn server_limits(config: &Config) -> ServerLimits {
    let limits = &config.limits;
    let json = json_limits(limits, limits.body_bytes);
    let mut server_limits = ServerLimits::default();
    server_limits.json = json;
    server_limits.max_line_bytes = Some(limits.line_bytes);
    // Requests of one peer: the running and the queued ones.
    server_limits.max_in_flight = limits.calls_per_caller + limits.waiting_per_caller;
    server_limits.max_name_bytes = limits.name_bytes;
    server_limits.page_items = limits.page_items;
    server_limits.seal_lifetime = seconds(limits.seal_seconds);
    server_limits.input_timeout = seconds(limits.question_seconds);
    server_limits.ping_interval =
        Some(seconds(limits.client_ping_seconds)).filter(|every| !every.is_zero());
    server_limits.max_rounds = limits.rounds;
    server_limits.queue.messages = limits.stream_messages;
    server_limits.queue.bytes = limits.stream_bytes;
    server_limits.max_subscriptions = limits.stream_resources;
    server_limits.tasks.per_caller = limits.tasks_per_caller;
    server_limits.tasks.total = limits.tasks;
    server_limits.tasks.max_result_bytes = limits.task_bytes;
    server_limits.tasks.lifetime = seconds(limits.task_seconds);
    server_limits.tasks.polls_per_minute = limits.task_polls;
    server_limits
}

/// Returns the limits of the HTTP endpoint.
pub(crate) fn http_limits(config: &Config) -> HttpLimits {
    let limits = &config.limits;
    let mut http_limits = HttpLimits::default();
    http_limits.body_timeout = seconds(limits.body_seconds);
    http_limits.body_idle_timeout = seconds(limits.body_idle_seconds);
    http_limits.max_header_bytes = limits.mcp_header_bytes;
    http_limits.max_sessions = limits.sessions;
    http_limits.session_idle_timeout = seconds(limits.session_idle_seconds);
    http_limits.max_session_age = seconds(limits.session_max_seconds);
    http_limits.max_listen_streams = limits.listen_streams;
    http_limits.max_listen_streams_per_caller = limits.listen_streams_per_caller;
    http_limits.resume.keep_for = seconds(limits.resume_seconds);
    http_limits.resume.session_bytes = limits.resume_bytes_per_session;
    http_limits.resume.total_bytes = limits.resume_bytes;
    http_limits.reconnect_after =
        Some(seconds(limits.stream_seconds)).filter(|lasts| !lasts.is_zero());
    http_limits
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Returns the limits of JSON messages with that maximum size.
fn json_limits(limits: &GatewayLimits, bytes: usize) -> json::JsonLimits {
    json::JsonLimits {
        bytes,
        depth: limits.depth,
        keys: limits.keys,
        elements: limits.elements,
    }
}

#[cfg(test)]
#[path = "compose/rules_page.rs"]
mod rules_page;

#[cfg(test)]
#[path = "compose/identity_cases.rs"]
mod identity_cases;
