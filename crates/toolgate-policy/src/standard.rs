//! Construction of the complete pipeline: the order of all layers, rules and sanitizers.

use crate::{
    AccessRules, ApprovalConfirm, ApprovalService, ArgumentValidation, AuditBegin, AuditContents,
    AuditDurability, AuditEnd, AuditRecorder, CallCanceller, CallObserver, CallTimeout, CatchPanic,
    CircuitBreaker, ClientApprovals, ConcurrencyLimit, ConcurrencyLimits, FreezeLayer,
    InProcessConfirm, InputRequestPolicy, NoObserver, OutputValidation, PerServer, PinRule, Pins,
    QuorumRules, RateLimiter, RateQuota, RequiredScopes, RuleAction, SanitizeConfig,
    SchemaSanitizer, SizeLimits, SkillIntegrity, StateStore, TextSanitizer, pins::PinObserver,
};
use std::sync::Arc;
use toolgate_core::{Pipeline, Rule, Service};

/// Configuration of the gateway's pipeline. Cheap to clone; a new config makes a new route that shares the approvals
/// and the audit log.
#[derive(Clone)]
pub struct GatewayPolicy {
    /// The audit recorder.
    pub recorder: Arc<AuditRecorder>,
    /// The observer of calls.
    pub observer: Arc<dyn CallObserver>,
    /// The service for pending approvals.
    pub desk: Arc<ApprovalService>,
    /// The store of grants and pins.
    pub store: Arc<dyn StateStore>,
    /// Lets the operator stop running calls.
    pub stop: CallCanceller,
    /// Identifier of the active policy, for example a digest of the config.
    pub policy: Arc<str>,
    /// Pins of definitions.
    pub pins: Pins,
    /// Access rules.
    pub access: AccessRules,
    /// Scopes that tokens need.
    pub scopes: RequiredScopes,
    /// Limits on concurrent calls.
    pub at_once: ConcurrencyLimit,
    /// Rate limits.
    pub rate: RateLimiter,
    /// Validation of arguments.
    pub arguments: ArgumentValidation,
    /// Policy for input requests of servers during a call.
    pub asking: InputRequestPolicy,
    /// Permission to ask the caller's own client for approval.
    pub via_client: ClientApprovals,
    /// Number of approvers that a call needs.
    pub persons: QuorumRules,
    /// Circuit breaker of each server.
    pub circuit_breaker: CircuitBreaker,
    /// Timeouts of calls.
    pub deadline: CallTimeout,
    /// Policy for results that violate their output schema.
    pub output_schema: OutputValidation,
    /// Checks of tool schemas.
    pub schemas: SchemaSanitizer,
    /// Settings of the sanitizers, and rules for outbound arguments.
    pub cleaning: SanitizeConfig,
    /// Size limits.
    pub size: SizeLimits,
    /// The point at which calls wait for the audit log: before they leave, or before their result does.
    pub waits: PerServer<AuditDurability>,
    /// Contents of arguments and results in the audit log.
    pub contents: AuditContents,
}

/// Builds the pipeline in order, from the caller to the service.
pub fn pipeline(route: &GatewayPolicy, end: Arc<dyn Service>) -> Pipeline {
    let GatewayPolicy {
        recorder,
        observer,
        policy,
        ..
    } = route;
    let confirm = || {
        ApprovalConfirm::new(route.desk.clone(), policy.clone(), route.via_client)
            .by_persons(route.persons.clone())
    };
    Pipeline::new()
        // Every call is recorded, also if it is rejected, timed out or abandoned.
        .wrap(
            AuditEnd::new(recorder.clone(), observer.clone())
                .under(policy.clone())
                .holding(route.contents.clone()),
        )
        // The operator may stop a call; the stop is recorded as well.
        .wrap(route.stop.clone())
        // A panic becomes an error of one call.
        .wrap(CatchPanic)
        // Bounds the running and waiting calls together.
        .wrap(route.at_once.in_hand())
        // From here on, the item that the call names is known.
        .resolve()
        // Hides and rejects items for which the caller's token lacks a scope.
        .wrap(route.scopes.clone())
        // Queues calls fairly; rules see them after the wait.
        .wrap(route.at_once.clone())
        // Rejects calls of frozen items.
        .guard(FreezeLayer(route.desk.freezes().clone()))
        // A server that keeps failing gets no calls for a while, and nobody is asked to approve them.
        .guard(route.circuit_breaker.clone())
        // A changed definition is hidden until someone accepts it.
        .guard(PinRule)
        // May hide, deny or require approval.
        .guard(route.access.clone())
        .guard(route.rate.clone())
        // Validates the arguments before anyone is asked.
        .guard(route.arguments.clone())
        // Secrets in outbound arguments.
        .guard(route.cleaning.leaks.clone())
        // Redaction marks that would overwrite the original text.
        .guard(route.cleaning.placeholders.clone())
        // Combines all required approvals into one; does not wait itself.
        .confirm(confirm())
        // A call that was frozen while its approval was pending does not leave; a running one is stopped.
        .wrap(FreezeLayer(route.desk.freezes().clone()))
        // Input requests of the server: sanitized and checked before anyone is asked.
        .wrap(route.asking.clone().by_person(Arc::new(confirm())))
        // Writes `call.begin`, with rule and approval: durable before the call leaves, or before the result if it
        // only reads.
        .wrap(
            AuditBegin::new(recorder.clone(), observer.clone(), policy.clone())
                .waiting(route.waits.clone())
                .holding(route.contents.clone()),
        )
        .wrap(route.deadline.clone())
        .wrap(route.output_schema.clone())
        // Files of skills must match their entries.
        .wrap(SkillIntegrity)
        // A tool with schemas that cannot be checked is withheld.
        .clean(route.schemas)
        // Marks untrusted content and rewrites errors for callers.
        .clean(route.cleaning.foreign.clone())
        .clean(route.cleaning.errors.clone())
        // Truncates long texts after the redaction: half a secret would not be detected.
        .clean(route.size.cut())
        // Media that do not match their type, and links that run something.
        .clean(route.cleaning.media.clone())
        .clean(route.cleaning.links.clone())
        // Secrets, once no invisible characters separate their letters.
        .clean(route.cleaning.secrets.clone())
        // Control and invisible characters.
        .clean(TextSanitizer)
        .clean(route.size)
        // A skill without digests is withheld.
        .clean(SkillIntegrity)
        // First to see content from servers: definitions are pinned before they are sanitized.
        .wrap(PinObserver::new(route.pins.clone(), true))
        // Counts failures of the server, including late responses.
        .wrap(route.circuit_breaker.clone())
        .over(end)
}

/// Configuration of the pipeline of a program without an operator: a server or a client. All defaults are safe.
#[derive(Clone)]
pub struct ProgramPolicy {
    /// The audit recorder. Default: the log of the program.
    pub recorder: Arc<AuditRecorder>,
    /// The observer of calls. Default: none.
    pub observer: Arc<dyn CallObserver>,
    /// Limits on running and waiting calls. Default: those of [`ConcurrencyLimits`].
    pub at_once: ConcurrencyLimit,
    /// Scopes that tokens need, by full names as in the audit log. Default: none.
    pub scopes: RequiredScopes,
    /// Access rules. Default: every caller may use every item.
    pub access: AccessRules,
    /// Pins of definitions. Default: none. A server may change its own definitions; a client has pins unless
    /// configured otherwise.
    pub pins: Option<Pins>,
    /// Additional rules, evaluated after `access`.
    pub rules: Vec<Arc<dyn Rule>>,
    /// Rate limits. Default: 6000 calls per minute for each caller and tool.
    pub rate: RateLimiter,
    /// Validation of arguments.
    pub arguments: ArgumentValidation,
    /// Policy for input requests during a call, which in a client come from the server. Default: no form may ask for
    /// a secret.
    pub asking: InputRequestPolicy,
    /// True if someone in this process approves calls for which rules require it; otherwise these are rejected.
    /// Default: `false`.
    pub ask: bool,
    /// Timeouts of calls.
    pub deadline: CallTimeout,
    /// Policy for results that violate their output schema.
    pub output_schema: OutputValidation,
    /// Checks of tool schemas.
    pub schemas: SchemaSanitizer,
    /// Settings of the sanitizers, and rules for outbound arguments.
    pub cleaning: SanitizeConfig,
    /// Size limits.
    pub size: SizeLimits,
    /// The point at which calls wait for the audit log: before they leave, or before their result does.
    /// Default: depends on the tool, see [`AuditDurability::Auto`].
    pub waits: PerServer<AuditDurability>,
    /// Contents of arguments and results in the audit log. Default: digests.
    pub contents: AuditContents,
}

impl Default for ProgramPolicy {
    fn default() -> ProgramPolicy {
        ProgramPolicy {
            recorder: Arc::new(AuditRecorder::log()),
            observer: Arc::new(NoObserver),
            at_once: ConcurrencyLimit::with(ConcurrencyLimits::default()),
            scopes: RequiredScopes::default(),
            access: AccessRules::default().otherwise(RuleAction::Allow),
            pins: None,
            rules: Vec::new(),
            rate: RateLimiter::new(Vec::new(), RateQuota::per_minute(6000)),
            arguments: ArgumentValidation::default(),
            asking: InputRequestPolicy::default(),
            ask: false,
            deadline: CallTimeout::default(),
            output_schema: OutputValidation::default(),
            schemas: SchemaSanitizer::default(),
            cleaning: SanitizeConfig::default(),
            size: SizeLimits::default(),
            waits: PerServer::default(),
            contents: AuditContents::default(),
        }
    }
}

impl ProgramPolicy {
    /// Builds the pipeline in order, from the caller to the service. [`pipeline`] explains each part.
    pub fn over(&self, end: Arc<dyn Service>) -> Pipeline {
        let (recorder, observer) = (&self.recorder, &self.observer);
        let mut resolved = Pipeline::new()
            .wrap(AuditEnd::new(recorder.clone(), observer.clone()).holding(self.contents.clone()))
            .wrap(CatchPanic)
            .wrap(self.at_once.in_hand())
            .resolve()
            .wrap(self.scopes.clone())
            .wrap(self.at_once.clone());
        if self.pins.is_some() {
            resolved = resolved.guard(PinRule);
        }
        resolved = resolved.guard(self.access.clone());
        for rule in &self.rules {
            resolved = resolved.guard(rule.clone());
        }
        resolved = resolved
            .guard(self.rate.clone())
            .guard(self.arguments.clone())
            .guard(self.cleaning.leaks.clone())
            .guard(self.cleaning.placeholders.clone());
        if self.ask {
            resolved = resolved.confirm(InProcessConfirm);
        }
        let asking = match self.ask {
            true => self.asking.clone().by_person(Arc::new(InProcessConfirm)),
            false => self.asking.clone(),
        };
        resolved = resolved
            .wrap(asking)
            .wrap(
                AuditBegin::new(recorder.clone(), observer.clone(), "program".into())
                    .waiting(self.waits.clone())
                    .holding(self.contents.clone()),
            )
            .wrap(self.deadline.clone())
            .wrap(self.output_schema.clone())
            .wrap(SkillIntegrity)
            .clean(self.schemas)
            .clean(self.cleaning.foreign.clone())
            .clean(self.cleaning.errors.clone())
            .clean(self.size.cut())
            .clean(self.cleaning.media.clone())
            .clean(self.cleaning.links.clone())
            .clean(self.cleaning.secrets.clone())
            .clean(TextSanitizer)
            .clean(self.size)
            .clean(SkillIntegrity);
        if let Some(pins) = &self.pins {
            resolved = resolved.wrap(PinObserver::new(pins.clone(), true));
        }
        resolved.over(end)
    }
}

/// Builds a pipeline that only lists and sanitizes: for the operator's view, which shows withheld and hidden tools
/// with the reason. It stores no pins: unseen definitions appear as new.
pub fn inspect(route: &GatewayPolicy, end: Arc<dyn Service>) -> Pipeline {
    Pipeline::new()
        .wrap(CatchPanic)
        .resolve()
        .clean(route.schemas)
        .clean(route.size.cut())
        .clean(route.cleaning.links.clone())
        .clean(route.cleaning.secrets.clone())
        .clean(TextSanitizer)
        .clean(route.size)
        .clean(SkillIntegrity)
        .wrap(PinObserver::new(route.pins.clone(), false))
        .over(end)
}

/// Builds a pipeline that pins definitions as soon as they are listed: for listings before the first call.
pub fn keeping(route: &GatewayPolicy, end: Arc<dyn Service>) -> Pipeline {
    Pipeline::new()
        .resolve()
        .wrap(PinObserver::new(route.pins.clone(), true))
        .over(end)
}
