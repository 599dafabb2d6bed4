//! Construction of the complete pipeline: the order of all layers, rules and sanitizers.

use crate::{
    Access, Arguments, AskOnce, Asking, AtOnce, Caps, CircuitBreaker, Cleaning, Confirm, Contain,
    Contents, Deadline, Desk, Entry, Freeze, Intent, Observer, OutputSchema, PerServer, Persons,
    Pinned, Pins, Quota, Rate, Recorder, Schemas, Scopes, Size, Skills, Stop, Store, Text, Then,
    Unobserved, ViaClient, Waits, pins::Look,
};
use std::sync::Arc;
use toolgate_core::{Pipeline, Rule, Service};

/// Configuration of the gateway's pipeline. Cheap to clone; a new config makes a new route that shares the approvals
/// and the audit log.
#[derive(Clone)]
pub struct Route {
    /// The audit recorder.
    pub recorder: Arc<Recorder>,
    /// The observer of calls.
    pub observer: Arc<dyn Observer>,
    /// The service for pending approvals.
    pub desk: Arc<Desk>,
    /// The store of grants and pins.
    pub store: Arc<dyn Store>,
    /// Lets the operator stop running calls.
    pub stop: Stop,
    /// Identifier of the active policy, for example a digest of the config.
    pub policy: Arc<str>,
    /// Pins of definitions.
    pub pins: Pins,
    /// Access rules.
    pub access: Access,
    /// Scopes that tokens need.
    pub scopes: Scopes,
    /// Limits on concurrent calls.
    pub at_once: AtOnce,
    /// Rate limits.
    pub rate: Rate,
    /// Validation of arguments.
    pub arguments: Arguments,
    /// Policy for input requests of servers during a call.
    pub asking: Asking,
    /// Permission to ask the caller's own client for approval.
    pub via_client: ViaClient,
    /// Number of approvers that a call needs.
    pub persons: Persons,
    /// Circuit breaker of each server.
    pub circuit_breaker: CircuitBreaker,
    /// Timeouts of calls.
    pub deadline: Deadline,
    /// Policy for results that violate their output schema.
    pub output_schema: OutputSchema,
    /// Checks of tool schemas.
    pub schemas: Schemas,
    /// Settings of the sanitizers, and rules for outbound arguments.
    pub cleaning: Cleaning,
    /// Size limits.
    pub size: Size,
    /// The point at which calls wait for the audit log: before they leave, or before their result does.
    pub waits: PerServer<Waits>,
    /// Contents of arguments and results in the audit log.
    pub contents: Contents,
}

/// Builds the pipeline in order, from the caller to the service.
pub fn pipeline(route: &Route, end: Arc<dyn Service>) -> Pipeline {
    let Route {
        recorder,
        observer,
        policy,
        ..
    } = route;
    let confirm = || {
        Confirm::new(route.desk.clone(), policy.clone(), route.via_client)
            .by_persons(route.persons.clone())
    };
    Pipeline::new()
        // Every call is recorded, also if it is rejected, timed out or abandoned.
        .wrap(
            Entry::new(recorder.clone(), observer.clone())
                .under(policy.clone())
                .holding(route.contents.clone()),
        )
        // The operator may stop a call; the stop is recorded as well.
        .wrap(route.stop.clone())
        // A panic becomes an error of one call.
        .wrap(Contain)
        // Bounds the running and waiting calls together.
        .wrap(route.at_once.in_hand())
        // From here on, the item that the call names is known.
        .resolve()
        // Hides and rejects items for which the caller's token lacks a scope.
        .wrap(route.scopes.clone())
        // Queues calls fairly; rules see them after the wait.
        .wrap(route.at_once.clone())
        // Rejects calls of frozen items.
        .guard(Freeze(route.desk.freezes().clone()))
        // A server that keeps failing gets no calls for a while, and nobody is asked to approve them.
        .guard(route.circuit_breaker.clone())
        // A changed definition is hidden until someone accepts it.
        .guard(Pinned)
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
        .wrap(Freeze(route.desk.freezes().clone()))
        // Input requests of the server: sanitized and checked before anyone is asked.
        .wrap(route.asking.clone().by_person(Arc::new(confirm())))
        // Writes `call.begin`, with rule and approval: durable before the call leaves, or before the result if it
        // only reads.
        .wrap(
            Intent::new(recorder.clone(), observer.clone(), policy.clone())
                .waiting(route.waits.clone())
                .holding(route.contents.clone()),
        )
        .wrap(route.deadline.clone())
        .wrap(route.output_schema.clone())
        // Files of skills must match their entries.
        .wrap(Skills)
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
        .clean(Text)
        .clean(route.size)
        // A skill without digests is withheld.
        .clean(Skills)
        // First to see content from servers: definitions are pinned before they are sanitized.
        .wrap(Look::new(route.pins.clone(), true))
        // Counts failures of the server, including late responses.
        .wrap(route.circuit_breaker.clone())
        .over(end)
}

/// Configuration of the pipeline of a program without an operator: a server or a client. All defaults are safe.
#[derive(Clone)]
pub struct Standard {
    /// The audit recorder. Default: the log of the program.
    pub recorder: Arc<Recorder>,
    /// The observer of calls. Default: none.
    pub observer: Arc<dyn Observer>,
    /// Limits on running and waiting calls. Default: those of [`Caps`].
    pub at_once: AtOnce,
    /// Scopes that tokens need, by full names as in the audit log. Default: none.
    pub scopes: Scopes,
    /// Access rules. Default: every caller may use every item.
    pub access: Access,
    /// Pins of definitions. Default: none. A server may change its own definitions; a client has pins unless
    /// configured otherwise.
    pub pins: Option<Pins>,
    /// Additional rules, evaluated after `access`.
    pub rules: Vec<Arc<dyn Rule>>,
    /// Rate limits. Default: 6000 calls per minute for each caller and tool.
    pub rate: Rate,
    /// Validation of arguments.
    pub arguments: Arguments,
    /// Policy for input requests during a call, which in a client come from the server. Default: no form may ask for
    /// a secret.
    pub asking: Asking,
    /// True if someone in this process approves calls for which rules require it; otherwise these are rejected.
    /// Default: `false`.
    pub ask: bool,
    /// Timeouts of calls.
    pub deadline: Deadline,
    /// Policy for results that violate their output schema.
    pub output_schema: OutputSchema,
    /// Checks of tool schemas.
    pub schemas: Schemas,
    /// Settings of the sanitizers, and rules for outbound arguments.
    pub cleaning: Cleaning,
    /// Size limits.
    pub size: Size,
    /// The point at which calls wait for the audit log: before they leave, or before their result does.
    /// Default: depends on the tool, see [`Waits::Auto`].
    pub waits: PerServer<Waits>,
    /// Contents of arguments and results in the audit log. Default: digests.
    pub contents: Contents,
}

impl Default for Standard {
    fn default() -> Standard {
        Standard {
            recorder: Arc::new(Recorder::log()),
            observer: Arc::new(Unobserved),
            at_once: AtOnce::with(Caps::default()),
            scopes: Scopes::default(),
            access: Access::default().otherwise(Then::Allow),
            pins: None,
            rules: Vec::new(),
            rate: Rate::new(Vec::new(), Quota::per_minute(6000)),
            arguments: Arguments::default(),
            asking: Asking::default(),
            ask: false,
            deadline: Deadline::default(),
            output_schema: OutputSchema::default(),
            schemas: Schemas::default(),
            cleaning: Cleaning::default(),
            size: Size::default(),
            waits: PerServer::default(),
            contents: Contents::default(),
        }
    }
}

impl Standard {
    /// Builds the pipeline in order, from the caller to the service. [`pipeline`] explains each part.
    pub fn over(&self, end: Arc<dyn Service>) -> Pipeline {
        let (recorder, observer) = (&self.recorder, &self.observer);
        let mut resolved = Pipeline::new()
            .wrap(Entry::new(recorder.clone(), observer.clone()).holding(self.contents.clone()))
            .wrap(Contain)
            .wrap(self.at_once.in_hand())
            .resolve()
            .wrap(self.scopes.clone())
            .wrap(self.at_once.clone());
        if self.pins.is_some() {
            resolved = resolved.guard(Pinned);
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
            resolved = resolved.confirm(AskOnce);
        }
        let asking = match self.ask {
            true => self.asking.clone().by_person(Arc::new(AskOnce)),
            false => self.asking.clone(),
        };
        resolved = resolved
            .wrap(asking)
            .wrap(
                Intent::new(recorder.clone(), observer.clone(), "program".into())
                    .waiting(self.waits.clone())
                    .holding(self.contents.clone()),
            )
            .wrap(self.deadline.clone())
            .wrap(self.output_schema.clone())
            .wrap(Skills)
            .clean(self.schemas)
            .clean(self.cleaning.foreign.clone())
            .clean(self.cleaning.errors.clone())
            .clean(self.size.cut())
            .clean(self.cleaning.media.clone())
            .clean(self.cleaning.links.clone())
            .clean(self.cleaning.secrets.clone())
            .clean(Text)
            .clean(self.size)
            .clean(Skills);
        if let Some(pins) = &self.pins {
            resolved = resolved.wrap(Look::new(pins.clone(), true));
        }
        resolved.over(end)
    }
}

/// Builds a pipeline that only lists and sanitizes: for the operator's view, which shows withheld and hidden tools
/// with the reason. It stores no pins: unseen definitions appear as new.
pub fn inspect(route: &Route, end: Arc<dyn Service>) -> Pipeline {
    Pipeline::new()
        .wrap(Contain)
        .resolve()
        .clean(route.schemas)
        .clean(route.size.cut())
        .clean(route.cleaning.links.clone())
        .clean(route.cleaning.secrets.clone())
        .clean(Text)
        .clean(route.size)
        .clean(Skills)
        .wrap(Look::new(route.pins.clone(), false))
        .over(end)
}

/// Builds a pipeline that pins definitions as soon as they are listed: for listings before the first call.
pub fn keeping(route: &Route, end: Arc<dyn Service>) -> Pipeline {
    Pipeline::new()
        .resolve()
        .wrap(Look::new(route.pins.clone(), true))
        .over(end)
}
