//! The policy of a route, on one page.

use crate::{
    Access, Arguments, AskOnce, Asking, AtOnce, Caps, CircuitBreaker, Cleaning, Confirm, Contain,
    Contents, Deadline, Desk, Entry, Freeze, Intent, Observer, OutputSchema, PerServer, Persons,
    Pinned, Pins, Quota, Rate, Recorder, Schemas, Scopes, Size, Skills, Stop, Store, Text, Then,
    Unobserved, ViaClient, Waits, pins::Look,
};
use std::sync::Arc;
use toolgate_core::{Pipeline, Rule, Service};

/// What the duties of one route share. Cheap to clone; a new config makes a new route over the same desk and record.
#[derive(Clone)]
pub struct Route {
    /// Where calls are recorded.
    pub recorder: Arc<Recorder>,
    /// Who watches them.
    pub observer: Arc<dyn Observer>,
    /// Where approvals lie.
    pub desk: Arc<Desk>,
    /// What outlives them: grants, pins.
    pub store: Arc<dyn Store>,
    /// By what the operator stops them.
    pub stop: Stop,
    /// Names the policy in force, for example a digest of the config.
    pub policy: Arc<str>,
    /// Which definitions.
    pub pins: Pins,
    /// Who may use what.
    pub access: Access,
    /// For what tokens have to be good.
    pub scopes: Scopes,
    /// How many at the same time.
    pub at_once: AtOnce,
    /// How often.
    pub rate: Rate,
    /// Which arguments.
    pub arguments: Arguments,
    /// What servers may ask in the middle of a call.
    pub asking: Asking,
    /// Whether a caller's own client may be asked.
    pub via_client: ViaClient,
    /// How many persons have to say yes.
    pub persons: Persons,
    /// Circuit breaker of each server.
    pub circuit_breaker: CircuitBreaker,
    /// How long.
    pub deadline: Deadline,
    /// What becomes of results that break their schema.
    pub output_schema: OutputSchema,
    /// Which schemas.
    pub schemas: Schemas,
    /// How what comes back is cleaned, and what may not go out.
    pub cleaning: Cleaning,
    /// How much.
    pub size: Size,
    /// Whether calls wait for the record before they leave, or before their answer does.
    pub waits: PerServer<Waits>,
    /// What the record holds of arguments and results.
    pub contents: Contents,
}

/// All duties in their order, from the caller to the service.
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
        // Every call leaves a trace: refused, late and abandoned ones too.
        .wrap(
            Entry::new(recorder.clone(), observer.clone())
                .under(policy.clone())
                .holding(route.contents.clone()),
        )
        // The operator may stop it; that is recorded as well.
        .wrap(route.stop.clone())
        // A panic is an error of one call.
        .wrap(Contain)
        // Only so many that run or wait.
        .wrap(route.at_once.in_hand())
        // From here on the item behind the name is known.
        .resolve()
        // What the token of a caller is not good for is not listed, and not used.
        .wrap(route.scopes.clone())
        // Each in its turn; what waited is judged after it waited.
        .wrap(route.at_once.clone())
        // What the operator froze stands still.
        .guard(Freeze(route.desk.freezes().clone()))
        // A server that keeps failing gets no calls for a while, and no person is asked about them.
        .guard(route.circuit_breaker.clone())
        // A changed definition is hidden until someone accepts it.
        .guard(Pinned)
        // May hide, refuse or ask.
        .guard(route.access.clone())
        .guard(route.rate.clone())
        // The schema, before anyone is asked.
        .guard(route.arguments.clone())
        // Secrets on their way out.
        .guard(route.cleaning.leaks.clone())
        // Placeholders that would replace what they stand for.
        .guard(route.cleaning.placeholders.clone())
        // All that asked, as one question; never waits itself.
        .confirm(confirm())
        // What was frozen while a person thought does not leave; what runs of it stops.
        .wrap(Freeze(route.desk.freezes().clone()))
        // What a server asks in the middle of a call: cleaned, and looked at before anybody is asked.
        .wrap(route.asking.clone().by_person(Arc::new(confirm())))
        // `call.begin`, with rule and approval, durable before it leaves, or where it only reads before its answer does.
        .wrap(
            Intent::new(recorder.clone(), observer.clone(), policy.clone())
                .waiting(route.waits.clone())
                .holding(route.contents.clone()),
        )
        .wrap(route.deadline.clone())
        .wrap(route.output_schema.clone())
        // Files of skills are what their entries state.
        .wrap(Skills)
        // A tool that cannot be checked is withheld.
        .clean(route.schemas)
        // What callers are told of whose words these are, and of errors.
        .clean(route.cleaning.foreign.clone())
        .clean(route.cleaning.errors.clone())
        // Texts that are too long; half a secret would look like none.
        .clean(route.size.cut())
        // Pictures and sounds that are something else, links to what runs.
        .clean(route.cleaning.media.clone())
        .clean(route.cleaning.links.clone())
        // Secrets, once nothing invisible parts their letters.
        .clean(route.cleaning.secrets.clone())
        // Control and invisible characters.
        .clean(Text)
        .clean(route.size)
        // A skill that states no digests is withheld.
        .clean(Skills)
        // First to see what comes back: definitions are pinned as they came.
        .wrap(Look::new(route.pins.clone(), true))
        // Counts what the server fails, late answers too.
        .wrap(route.circuit_breaker.clone())
        .over(end)
}

/// What the duties of a program share that has no operator of its own: a server or a client. All have safe defaults.
#[derive(Clone)]
pub struct Standard {
    /// Where calls are recorded; the log of the program.
    pub recorder: Arc<Recorder>,
    /// Who watches them; nobody.
    pub observer: Arc<dyn Observer>,
    /// How many at the same time, and how many wait; as [`Caps`] has it.
    pub at_once: AtOnce,
    /// For what tokens have to be good; for nothing. Full names are those of the record.
    pub scopes: Scopes,
    /// Who may use what; everybody all that there is.
    pub access: Access,
    /// Which definitions; all that come. A server may change its own as it likes; a client has pins unless it says
    /// otherwise.
    pub pins: Option<Pins>,
    /// More rules, asked after `access`.
    pub rules: Vec<Arc<dyn Rule>>,
    /// How often; 6,000 a minute of each caller and tool.
    pub rate: Rate,
    /// Which arguments.
    pub arguments: Arguments,
    /// What is asked in the middle of a call: nothing that asks for a secret by a form. For a client, the server asks.
    pub asking: Asking,
    /// Whether somebody in this very process settles what rules leave open; else that is refused.
    pub ask: bool,
    /// How long.
    pub deadline: Deadline,
    /// What becomes of results that break their schema.
    pub output_schema: OutputSchema,
    /// Which schemas.
    pub schemas: Schemas,
    /// How what comes back is cleaned, and what may not go out.
    pub cleaning: Cleaning,
    /// How much.
    pub size: Size,
    /// Whether calls wait for the record before they leave, or before their answer does; as the tools are.
    pub waits: PerServer<Waits>,
    /// What the record holds of arguments and results; digests.
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
    /// All duties in their order, from the caller to the service. What each does is told at [`pipeline`].
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

/// Only what cleans lists: for the operator's view, in which withheld and hidden tools stand with the reason. It pins
/// nothing: what was not seen yet stands as new.
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

/// A service whose definitions are kept as soon as they are listed: for whoever looks in advance.
pub fn keeping(route: &Route, end: Arc<dyn Service>) -> Pipeline {
    Pipeline::new()
        .resolve()
        .wrap(Look::new(route.pins.clone(), true))
        .over(end)
}
