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
    pub approvals: Arc<ApprovalService>,
    /// The store of grants and pins.
    pub store: Arc<dyn StateStore>,
    /// Lets the operator stop running calls.
    pub canceller: CallCanceller,
    /// Identifier of the active policy, for example a digest of the config.
    pub policy_id: Arc<str>,
    /// Pins of definitions.
    pub pins: Pins,
    /// Access rules.
    pub access: AccessRules,
    /// Scopes that tokens need.
    pub scopes: RequiredScopes,
    /// Limits on concurrent calls.
    pub concurrency: ConcurrencyLimit,
    /// Rate limits.
    pub rate: RateLimiter,
    /// Validation of arguments against input schemas.
    pub arguments: ArgumentValidation,
    /// Policy for input requests of servers during a call.
    pub input_requests: InputRequestPolicy,
    /// Permission to ask the caller's own client for approval.
    pub via_client: ClientApprovals,
    /// Number of approvers that a call needs.
    pub quorum: QuorumRules,
    /// Circuit breaker of each server.
    pub circuit_breaker: CircuitBreaker,
    /// Deadline of calls: idle timeout and hard cap.
    pub deadline: CallTimeout,
    /// Policy for results that violate their output schema.
    pub output_schema: OutputValidation,
    /// Sanitizer that withholds tools with an unusable schema, and its bounds.
    pub schemas: SchemaSanitizer,
    /// Settings of the sanitizers, and rules for outbound arguments.
    pub sanitizers: SanitizeConfig,
    /// Size limits of results, definitions, messages and input requests.
    pub size: SizeLimits,
    /// The point at which calls wait for the audit log: before they leave, or before their result does.
    pub audit_durability: PerServer<AuditDurability>,
    /// Contents of arguments and results in the audit log.
    pub audit_contents: AuditContents,
}

/// Builds the pipeline in order, from the caller to the service.
pub fn gateway_pipeline(route: &GatewayPolicy, end: Arc<dyn Service>) -> Pipeline {
    let GatewayPolicy {
        recorder,
        observer,
        policy_id: policy,
        ..
    } = route;
    let confirm = || {
        ApprovalConfirm::new(route.approvals.clone(), policy.clone(), route.via_client)
            .with_quorum(route.quorum.clone())
    };
    Pipeline::new()
        // Every call is recorded, also if it is rejected, timed out or abandoned.
        .layer(
            AuditEnd::new(recorder.clone(), observer.clone())
                .with_policy(policy.clone())
                .with_contents(route.audit_contents.clone()),
        )
        // The operator may stop a call; the stop is recorded as well.
        .layer(route.canceller.clone())
        // A panic becomes an error of one call.
        .layer(CatchPanic)
        // Bounds the running and waiting calls together.
        .layer(route.concurrency.admission())
        // From here on, the item that the call names is known.
        .resolve()
        // Hides and rejects items for which the caller's token lacks a scope.
        .layer(route.scopes.clone())
        // Queues calls fairly; rules see them after the wait.
        .layer(route.concurrency.clone())
        // Rejects calls of frozen items.
        .rule(FreezeLayer(route.approvals.freezes().clone()))
        // A server that keeps failing gets no calls for a while, and nobody is asked to approve them.
        .rule(route.circuit_breaker.clone())
        // A changed definition is hidden until someone accepts it.
        .rule(PinRule)
        // May hide, deny or require approval.
        .rule(route.access.clone())
        .rule(route.rate.clone())
        // Validates the arguments before anyone is asked.
        .rule(route.arguments.clone())
        // Secrets in outbound arguments.
        .rule(route.sanitizers.outbound_secrets.clone())
        // Redaction marks that would overwrite the original text.
        .rule(route.sanitizers.placeholders.clone())
        // Combines all required approvals into one; does not wait itself.
        .approval(confirm())
        // A call that was frozen while its approval was pending does not leave; a running one is stopped.
        .layer(FreezeLayer(route.approvals.freezes().clone()))
        // Input requests of the server: sanitized and checked before anyone is asked.
        .layer(
            route
                .input_requests
                .clone()
                .with_approval(Arc::new(confirm())),
        )
        // Writes `call.begin`, with rule and approval: durable before the call leaves, or before the result if it
        // only reads.
        .layer(
            AuditBegin::new(recorder.clone(), observer.clone(), policy.clone())
                .with_durability(route.audit_durability.clone())
                .with_contents(route.audit_contents.clone()),
        )
        .layer(route.deadline.clone())
        .layer(route.output_schema.clone())
        // Files of skills must match their entries.
        .layer(SkillIntegrity)
        // A tool with schemas that cannot be checked is withheld.
        .sanitizer(route.schemas)
        // Marks untrusted content and rewrites errors for callers.
        .sanitizer(route.sanitizers.untrusted_marker.clone())
        .sanitizer(route.sanitizers.errors.clone())
        // Truncates long texts after the redaction: half a secret would not be detected.
        .sanitizer(route.size.truncation())
        // Media that do not match their type, and links that run something.
        .sanitizer(route.sanitizers.media.clone())
        .sanitizer(route.sanitizers.links.clone())
        // Secrets, once no invisible characters separate their letters.
        .sanitizer(route.sanitizers.secrets.clone())
        // Control and invisible characters.
        .sanitizer(TextSanitizer)
        .sanitizer(route.size)
        // A skill without digests is withheld.
        .sanitizer(SkillIntegrity)
        // First to see content from servers: definitions are pinned before they are sanitized.
        .layer(PinObserver::new(route.pins.clone(), true))
        // Counts failures of the server, including late responses.
        .layer(route.circuit_breaker.clone())
        .service(end)
}

/// Configuration of the pipeline of a program without an operator: a server or a client. All defaults are safe.
#[derive(Clone)]
pub struct ProgramPolicy {
    /// The audit recorder. Default: the log of the program.
    pub recorder: Arc<AuditRecorder>,
    /// The observer of calls. Default: none.
    pub observer: Arc<dyn CallObserver>,
    /// Limits on running and waiting calls. Default: those of [`ConcurrencyLimits`].
    pub concurrency: ConcurrencyLimit,
    /// OAuth scopes that a caller's token needs for an item, by patterns of full item names. Default: none.
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
    /// Validation of arguments against input schemas.
    pub arguments: ArgumentValidation,
    /// Policy for input requests during a call, which in a client come from the server. Default: no form may ask for
    /// a secret.
    pub input_requests: InputRequestPolicy,
    /// True if someone in this process approves calls for which rules require it; otherwise these are rejected.
    /// Default: `false`.
    pub in_process_approval: bool,
    /// Deadline of calls: idle timeout and hard cap.
    pub deadline: CallTimeout,
    /// Policy for results that violate their output schema.
    pub output_schema: OutputValidation,
    /// Sanitizer that withholds tools with an unusable schema, and its bounds.
    pub schemas: SchemaSanitizer,
    /// Settings of the sanitizers, and rules for outbound arguments.
    pub sanitizers: SanitizeConfig,
    /// Size limits of results, definitions, messages and input requests.
    pub size: SizeLimits,
    /// The point at which calls wait for the audit log: before they leave, or before their result does.
    /// Default: depends on the tool, see [`AuditDurability::Auto`].
    pub audit_durability: PerServer<AuditDurability>,
    /// Contents of arguments and results in the audit log. Default: digests.
    pub audit_contents: AuditContents,
}

impl Default for ProgramPolicy {
    fn default() -> ProgramPolicy {
        ProgramPolicy {
            recorder: Arc::new(AuditRecorder::log()),
            observer: Arc::new(NoObserver),
            concurrency: ConcurrencyLimit::with_queue(ConcurrencyLimits::default()),
            scopes: RequiredScopes::default(),
            access: AccessRules::default().default_action(RuleAction::Allow),
            pins: None,
            rules: Vec::new(),
            rate: RateLimiter::new(Vec::new(), RateQuota::per_minute(6000)),
            arguments: ArgumentValidation::default(),
            input_requests: InputRequestPolicy::default(),
            in_process_approval: false,
            deadline: CallTimeout::default(),
            output_schema: OutputValidation::default(),
            schemas: SchemaSanitizer::default(),
            sanitizers: SanitizeConfig::default(),
            size: SizeLimits::default(),
            audit_durability: PerServer::default(),
            audit_contents: AuditContents::default(),
        }
    }
}

impl ProgramPolicy {
    /// Builds the pipeline in order, from the caller to the service. [`gateway_pipeline`] explains each part.
    pub fn over(&self, end: Arc<dyn Service>) -> Pipeline {
        let (recorder, observer) = (&self.recorder, &self.observer);
        let mut resolved = Pipeline::new()
            .layer(
                AuditEnd::new(recorder.clone(), observer.clone())
                    .with_contents(self.audit_contents.clone()),
            )
            .layer(CatchPanic)
            .layer(self.concurrency.admission())
            .resolve()
            .layer(self.scopes.clone())
            .layer(self.concurrency.clone());
        if self.pins.is_some() {
            resolved = resolved.rule(PinRule);
        }
        resolved = resolved.rule(self.access.clone());
        for rule in &self.rules {
            resolved = resolved.rule(rule.clone());
        }
        resolved = resolved
            .rule(self.rate.clone())
            .rule(self.arguments.clone())
            .rule(self.sanitizers.outbound_secrets.clone())
            .rule(self.sanitizers.placeholders.clone());
        if self.in_process_approval {
            resolved = resolved.approval(InProcessConfirm);
        }
        let asking = match self.in_process_approval {
            true => self
                .input_requests
                .clone()
                .with_approval(Arc::new(InProcessConfirm)),
            false => self.input_requests.clone(),
        };
        resolved = resolved
            .layer(asking)
            .layer(
                AuditBegin::new(recorder.clone(), observer.clone(), "program".into())
                    .with_durability(self.audit_durability.clone())
                    .with_contents(self.audit_contents.clone()),
            )
            .layer(self.deadline.clone())
            .layer(self.output_schema.clone())
            .layer(SkillIntegrity)
            .sanitizer(self.schemas)
            .sanitizer(self.sanitizers.untrusted_marker.clone())
            .sanitizer(self.sanitizers.errors.clone())
            .sanitizer(self.size.truncation())
            .sanitizer(self.sanitizers.media.clone())
            .sanitizer(self.sanitizers.links.clone())
            .sanitizer(self.sanitizers.secrets.clone())
            .sanitizer(TextSanitizer)
            .sanitizer(self.size)
            .sanitizer(SkillIntegrity);
        if let Some(pins) = &self.pins {
            resolved = resolved.layer(PinObserver::new(pins.clone(), true));
        }
        resolved.service(end)
    }
}

/// Builds a pipeline that only lists and sanitizes: for the operator's view, which shows withheld and hidden tools
/// with the reason. It stores no pins: unseen definitions appear as new.
pub fn inspection_pipeline(route: &GatewayPolicy, end: Arc<dyn Service>) -> Pipeline {
    Pipeline::new()
        .layer(CatchPanic)
        .resolve()
        .sanitizer(route.schemas)
        .sanitizer(route.size.truncation())
        .sanitizer(route.sanitizers.links.clone())
        .sanitizer(route.sanitizers.secrets.clone())
        .sanitizer(TextSanitizer)
        .sanitizer(route.size)
        .sanitizer(SkillIntegrity)
        .layer(PinObserver::new(route.pins.clone(), false))
        .service(end)
}

/// Builds a pipeline that pins definitions as soon as they are listed: for listings before the first call.
pub fn pinning_pipeline(route: &GatewayPolicy, end: Arc<dyn Service>) -> Pipeline {
    Pipeline::new()
        .resolve()
        .layer(PinObserver::new(route.pins.clone(), true))
        .service(end)
}
