//! The policy: settings of all layers, rules and sanitizers, and the pipeline that orders them.

mod sanitize_config;

pub use sanitize_config::SanitizeConfig;

use crate::approval::approvals::InProcessConfirm;
use crate::{
    AccessRules, ApprovalConfirm, ApprovalService, ArgumentValidation, AuditBegin, AuditContents,
    AuditDurability, AuditEnd, AuditRecorder, CallCanceller, CallObserver, CallTimeout, CatchPanic,
    CircuitBreaker, ClientApprovals, ConcurrencyLimit, ConcurrencyLimits, FreezeLayer,
    InputRequestPolicy, NoObserver, OutputValidation, PerServer, Pins, ProgramApproval,
    QuorumRules, RateLimiter, RateQuota, RequiredScopes, RuleAction, SchemaSanitizer, SizeLimits,
    SkillIntegrity, TextSanitizer,
};
use std::sync::Arc;
use toolgate_core::{ApprovalStep, Layer, Pipeline, Rule, Sanitizer, Service};

/// Policy of a gateway, server or client: the settings of all layers, rules and sanitizers around each call.
///
/// A server or client begins with [`Policy::for_program`], which is the default and safe as it is. A gateway begins
/// with [`Policy::for_gateway`]. Cheap to clone; pipelines of clones share approvals, limits and the audit log.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use toolgate_policy::{
///     AccessRule, AccessRules, ApprovalLimits, ApprovalService, AuditContentForm, AuditDurability, AuditRecorder,
///     CelCondition, ClientApprovals, ConcurrencyLimit, ConcurrencyLimits, ElicitationPolicy, GlobPattern,
///     MemoryStateStore, OnInvalidOutput, OperatorPolicy, PerServer, Pins, Policy, ProgramApproval, QuorumRule,
///     QuorumRules, RateLimiter, RateQuota, RateRule, RequiredDefaults, RequiredScopes, RuleAction, SamplingPolicy,
///     SchemaBounds, SchemaSanitizer, ScopeRule, StateStore, UriSpelling,
/// };
///
/// // A server or client changes the defaults of a program.
/// let mut policy = Policy::for_program();
/// policy.approval = ProgramApproval::CallersClient;
/// policy.rate = RateLimiter::new(Vec::new(), RateQuota::per_minute(60));
/// policy.deadline.idle = PerServer::all(Duration::from_secs(30));
/// policy.size.result = 64 * 1024;
///
/// // A gateway has an operator, pins and an audit log.
/// let recorder = Arc::new(AuditRecorder::log());
/// let store: Arc<dyn StateStore> = Arc::new(MemoryStateStore::new());
/// let approvals = ApprovalService::new(recorder.clone(), store.clone(), ApprovalLimits::default());
/// let mut operator = OperatorPolicy::new(approvals);
/// operator.via_client = ClientApprovals::Harmless;
/// operator.quorum = QuorumRules::new(vec![QuorumRule::new(vec![GlobPattern::new("bank.*")], 2)]);
/// operator.circuit_breaker.failures = 3;
/// let pins = Pins::new(store, recorder.clone());
/// let mut policy = Policy::for_gateway(recorder, operator, pins);
///
/// let mut rule = AccessRule::new("large payments", RuleAction::Ask, vec![GlobPattern::new("bank.pay")]);
/// rule.when = Some(CelCondition::compile("args.amount > 100")?);
/// let other = AccessRule::new("bank", RuleAction::Allow, vec![GlobPattern::new("bank.*")]);
/// policy.access = AccessRules::new(vec![rule, other]).default_action(RuleAction::Deny);
/// policy.scopes = RequiredScopes::new(vec![ScopeRule::new(vec![GlobPattern::new("bank.*")], vec!["pay".to_owned()])]);
/// let often = RateRule::new(vec![GlobPattern::new("bank.pay")], RateQuota { count: 1, per: Duration::from_secs(60) });
/// policy.rate = RateLimiter::new(vec![often], RateQuota::per_minute(600));
///
/// let mut concurrency = ConcurrencyLimits::default();
/// concurrency.per_caller = 4;
/// policy.concurrency = ConcurrencyLimit::with_queue(concurrency);
/// policy.deadline.max = Duration::from_secs(3600);
/// policy.arguments.uri_spelling = PerServer::all(UriSpelling::Canonical);
/// policy.arguments.required_defaults = PerServer::all(RequiredDefaults::Optional);
/// policy.output_schema.on_invalid = PerServer::all(OnInvalidOutput::Block).with("legacy", OnInvalidOutput::Warn);
/// let mut bounds = SchemaBounds::default();
/// bounds.depth = 16;
/// policy.schemas = SchemaSanitizer(bounds);
/// policy.input_requests.elicitation_forms = PerServer::all(ElicitationPolicy::Check);
/// policy.input_requests.sampling = PerServer::all(SamplingPolicy::Ask);
/// policy.audit_durability = PerServer::all(AuditDurability::Strict);
/// policy.audit_contents.arguments = PerServer::all(AuditContentForm::Redacted);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Policy {
    /// Audit recorder: the destination of a record of every call. Default: the log of the program.
    pub recorder: Arc<AuditRecorder>,
    /// Observer of calls as they happen, for live displays. Default: none.
    pub observer: Arc<dyn CallObserver>,
    /// Identifier of the policy in audit records, for example a digest of the config. Default: `program`.
    pub policy_id: Arc<str>,
    /// Approvals, freezes and cancellation by an operator, in a gateway. Default: none, as a server or client has no
    /// operator.
    pub operator: Option<OperatorPolicy>,
    /// Limits on concurrent and queued calls. Default: those of [`ConcurrencyLimits`].
    pub concurrency: ConcurrencyLimit,
    /// OAuth scopes that access tokens need, by full item names as in the audit log. Default: none.
    pub scopes: RequiredScopes,
    /// Pins of item definitions, against silent changes by a server. Default of a program: none. A server may change
    /// its own definitions; a client has pins unless configured otherwise.
    pub pins: Option<Pins>,
    /// Access rules: allow, ask for an approval, or deny. Default of a program: every caller may use every item.
    pub access: AccessRules,
    /// Additional rules that decide calls, evaluated after `access`.
    pub rules: Vec<Arc<dyn Rule>>,
    /// Additional layers around each call of the handler or server, the first outermost. They see allowed calls
    /// and sanitized results.
    pub layers: Vec<Arc<dyn Layer>>,
    /// Additional sanitizers of content from servers, which see it after the built-in ones, the last first.
    pub own_sanitizers: Vec<Arc<dyn Sanitizer>>,
    /// Rate limits of calls. Default: 6,000 calls a minute for each caller and tool.
    pub rate: RateLimiter,
    /// Validation of call arguments against the tool's `inputSchema`.
    pub arguments: ArgumentValidation,
    /// Person who approves calls for which rules require it, if there is no operator. Default: nobody.
    pub approval: ProgramApproval,
    /// Policy for servers' input requests during a call: elicitation, sampling and roots. Default: no form may ask for
    /// a secret.
    pub input_requests: InputRequestPolicy,
    /// Time at which calls wait until their audit records are on disk: before they are sent, or before their result is
    /// released. Default: depends on the tool, see [`AuditDurability::Auto`].
    pub audit_durability: PerServer<AuditDurability>,
    /// Form of arguments and results in audit records. Default: digests.
    pub audit_contents: AuditContents,
    /// Time limits of calls: idle timeout and maximum duration.
    pub deadline: CallTimeout,
    /// Policy for tool results that do not match their `outputSchema`.
    pub output_schema: OutputValidation,
    /// Limits on the JSON Schemas of tools; a tool that exceeds them is withheld.
    pub schemas: SchemaSanitizer,
    /// Settings of the sanitizers of content from servers, and of the checks of outbound arguments.
    pub sanitizers: SanitizeConfig,
    /// Size limits of content from servers: results, definitions and texts.
    pub size: SizeLimits,
}

/// Settings of a gateway's operator: approvals, cancellation of calls and circuit breakers.
#[derive(Clone)]
#[non_exhaustive]
pub struct OperatorPolicy {
    /// Service for people's approvals of calls, with the registry of freezes.
    pub approvals: Arc<ApprovalService>,
    /// Condition under which the caller's own MCP client may ask its user to approve a call.
    pub via_client: ClientApprovals,
    /// Number of approvers that calls need, by rules.
    pub quorum: QuorumRules,
    /// Layer with which the operator cancels running calls.
    pub canceller: CallCanceller,
    /// Circuit breaker, which rejects calls to a server after repeated failures.
    pub circuit_breaker: CircuitBreaker,
    /// Builds the parts of the pipeline. [`OperatorPolicy::new`] sets it, so that a program without an operator does
    /// not link them.
    build: fn(&OperatorPolicy, Arc<str>) -> OperatorParts,
}

/// Parts of a pipeline that need an operator.
struct OperatorParts {
    canceller: Arc<dyn Layer>,
    freeze_rule: Arc<dyn Rule>,
    freeze_layer: Arc<dyn Layer>,
    circuit_breaker_rule: Arc<dyn Rule>,
    circuit_breaker_layer: Arc<dyn Layer>,
    approval: Arc<dyn ApprovalStep>,
}

impl OperatorPolicy {
    /// Creates the default settings of a gateway's operator, with this approval service for calls that need a person.
    pub fn new(approvals: Arc<ApprovalService>) -> OperatorPolicy {
        OperatorPolicy {
            approvals,
            via_client: ClientApprovals::default(),
            quorum: QuorumRules::default(),
            canceller: CallCanceller::default(),
            circuit_breaker: CircuitBreaker::default(),
            build: OperatorPolicy::parts,
        }
    }

    fn parts(&self, policy_id: Arc<str>) -> OperatorParts {
        let confirm = ApprovalConfirm::new(self.approvals.clone(), policy_id, self.via_client);
        let freezes = FreezeLayer(self.approvals.freezes().clone());
        OperatorParts {
            canceller: Arc::new(self.canceller.clone()),
            freeze_rule: Arc::new(freezes.clone()),
            freeze_layer: Arc::new(freezes),
            circuit_breaker_rule: Arc::new(self.circuit_breaker.clone()),
            circuit_breaker_layer: Arc::new(self.circuit_breaker.clone()),
            approval: Arc::new(confirm.with_quorum(self.quorum.clone())),
        }
    }
}

impl Default for Policy {
    fn default() -> Policy {
        Policy::for_program()
    }
}

impl Policy {
    /// Creates the default policy of a server or client, without an operator. All defaults are safe.
    pub fn for_program() -> Policy {
        Policy {
            recorder: Arc::new(AuditRecorder::log()),
            observer: Arc::new(NoObserver),
            policy_id: "program".into(),
            operator: None,
            concurrency: ConcurrencyLimit::with_queue(ConcurrencyLimits::default()),
            scopes: RequiredScopes::default(),
            pins: None,
            access: AccessRules::default().default_action(RuleAction::Allow),
            rules: Vec::new(),
            layers: Vec::new(),
            own_sanitizers: Vec::new(),
            rate: RateLimiter::new(Vec::new(), RateQuota::per_minute(6000)),
            arguments: ArgumentValidation::default(),
            approval: ProgramApproval::Nobody,
            input_requests: InputRequestPolicy::default(),
            audit_durability: PerServer::default(),
            audit_contents: AuditContents::default(),
            deadline: CallTimeout::default(),
            output_schema: OutputValidation::default(),
            schemas: SchemaSanitizer::default(),
            sanitizers: SanitizeConfig::default(),
            size: SizeLimits::default(),
        }
    }

    /// Creates the default policy of a gateway: definitions are pinned, and calls without a matching rule may need an
    /// approval.
    pub fn for_gateway(
        recorder: Arc<AuditRecorder>,
        operator: OperatorPolicy,
        pins: Pins,
    ) -> Policy {
        Policy {
            recorder,
            operator: Some(operator),
            pins: Some(pins),
            access: AccessRules::default(),
            ..Policy::for_program()
        }
    }

    /// Builds the pipeline of all layers, rules and sanitizers of this policy around a service.
    pub fn over(&self, service: Arc<dyn Service>) -> Pipeline {
        let operator = self.operator.as_ref();
        let operator = operator.map(|with| (with.build)(with, self.policy_id.clone()));
        let operator = operator.as_ref();
        let pins = self.pins.as_ref();
        let approval = self.approval_step(operator);
        Pipeline::new()
            // Every call is recorded, also if it is rejected, timed out or abandoned.
            .layer(self.audit_end())
            // The operator may stop a call; the stop is recorded as well.
            .layers(operator.map(|with| with.canceller.clone()))
            // A panic becomes an error of one call.
            .layer(CatchPanic)
            // Bounds the running and waiting calls together.
            .layer(self.concurrency.admission())
            // From here on, the item that the call names is known.
            .resolve()
            // Hides and rejects items for which the caller's token lacks a scope.
            .layer(self.scopes.clone())
            // Queues calls fairly; rules see them after the wait.
            .layer(self.concurrency.clone())
            // Rejects calls of frozen items.
            .rules(operator.map(|with| with.freeze_rule.clone()))
            // A server that keeps failing gets no calls for a while, and nobody is asked to approve them.
            .rules(operator.map(|with| with.circuit_breaker_rule.clone()))
            // A changed definition is hidden until someone accepts it.
            .rules(pins.map(Pins::rule))
            // May hide, deny or require approval.
            .rule(self.access.clone())
            .rules(self.rules.iter().cloned())
            .rule(self.rate.clone())
            // Validates the arguments before anyone is asked.
            .rule(self.arguments.clone())
            // Secrets in outbound arguments.
            .rule(self.sanitizers.outbound_secrets.clone())
            // Redaction marks that would overwrite the original text.
            .rule(self.sanitizers.placeholders.clone())
            // Combines all required approvals into one; does not wait itself.
            .optional_approval(approval.clone())
            // A call that was frozen while its approval was pending does not leave; a running one is stopped.
            .layers(operator.map(|with| with.freeze_layer.clone()))
            // Input requests of the server: sanitized and checked before anyone is asked.
            .layer(self.input_request_layer(approval))
            // Writes `call.begin`, with rule and approval: durable before the call leaves, or before the result if it
            // only reads.
            .layer(self.audit_begin())
            .layer(self.deadline.clone())
            .layer(self.output_schema.clone())
            // Files of skills must match their entries.
            .layer(SkillIntegrity)
            // Layers of the program: allowed calls, and results after every check.
            .layers(self.layers.iter().cloned())
            .sanitizers(self.own_sanitizers.iter().cloned())
            // A tool with schemas that cannot be checked is withheld.
            .sanitizer(self.schemas)
            // Marks untrusted content and rewrites errors for callers.
            .sanitizer(self.sanitizers.untrusted_marker.clone())
            .sanitizer(self.sanitizers.errors.clone())
            // Truncates long texts after the redaction: half a secret would not be detected.
            .sanitizer(self.size.truncation())
            // Media that do not match their type, and links that run something.
            .sanitizer(self.sanitizers.media.clone())
            .sanitizer(self.sanitizers.links.clone())
            // Secrets, once no invisible characters separate their letters.
            .sanitizer(self.sanitizers.secrets.clone())
            // Control and invisible characters.
            .sanitizer(TextSanitizer)
            .sanitizer(self.size)
            // A skill without digests is withheld.
            .sanitizer(SkillIntegrity)
            // First to see content from servers: definitions are pinned before they are sanitized.
            .layers(pins.map(|pins| pins.observer(true)))
            // Counts failures of the server, including late responses.
            .layers(operator.map(|with| with.circuit_breaker_layer.clone()))
            .service(service)
    }

    /// Builds a pipeline that lists and sanitizes a service's items for the operator, hidden ones too, without calls.
    /// It stores no pins: unseen definitions appear as new.
    #[doc(hidden)]
    pub fn inspection(&self, service: Arc<dyn Service>) -> Pipeline {
        Pipeline::new()
            .layer(CatchPanic)
            .resolve()
            .sanitizer(self.schemas)
            .sanitizer(self.size.truncation())
            .sanitizer(self.sanitizers.links.clone())
            .sanitizer(self.sanitizers.secrets.clone())
            .sanitizer(TextSanitizer)
            .sanitizer(self.size)
            .sanitizer(SkillIntegrity)
            .layers(self.pins.as_ref().map(|pins| pins.observer(false)))
            .service(service)
    }

    /// Builds a pipeline that pins a service's item definitions as soon as they are listed, before the first call.
    #[doc(hidden)]
    pub fn pinning(&self, service: Arc<dyn Service>) -> Pipeline {
        Pipeline::new()
            .resolve()
            .layers(self.pins.as_ref().map(|pins| pins.observer(true)))
            .service(service)
    }

    fn audit_end(&self) -> AuditEnd {
        let end = AuditEnd::new(self.recorder.clone(), self.observer.clone())
            .with_contents(self.audit_contents.clone());
        // Only the policy of an operator changes while the program runs.
        match self.operator {
            Some(_) => end.with_policy(self.policy_id.clone()),
            None => end,
        }
    }

    fn audit_begin(&self) -> AuditBegin {
        let (recorder, observer) = (self.recorder.clone(), self.observer.clone());
        AuditBegin::new(recorder, observer, self.policy_id.clone())
            .with_durability(self.audit_durability.clone())
            .with_contents(self.audit_contents.clone())
    }

    /// Returns the step that requests an approval, if anyone can give one.
    fn approval_step(&self, operator: Option<&OperatorParts>) -> Option<Arc<dyn ApprovalStep>> {
        match operator {
            Some(with) => Some(with.approval.clone()),
            None => match self.approval {
                ProgramApproval::Nobody => None,
                ProgramApproval::Program => Some(Arc::new(InProcessConfirm { via_client: false })),
                ProgramApproval::CallersClient => {
                    Some(Arc::new(InProcessConfirm { via_client: true }))
                }
            },
        }
    }

    fn input_request_layer(&self, approval: Option<Arc<dyn ApprovalStep>>) -> InputRequestPolicy {
        let layer = self.input_requests.clone();
        match approval {
            Some(approval) => layer.with_approval(approval),
            None => layer,
        }
    }
}
