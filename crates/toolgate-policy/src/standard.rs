//! The policy of a route, on one page.

use crate::{
    Access, Arguments, AtOnce, Confirm, Contain, Deadline, Desk, Entry, Intent, Observer,
    OutputSchema, Rate, Recorder, Schemas, Size, Stop, Text, ViaClient,
};
use std::sync::Arc;
use toolgate_core::{Pipeline, Service};

/// What the duties of one route share. Cheap to clone; a new config makes a new route over the same desk and record.
#[derive(Clone)]
pub struct Route {
    /// Where calls are recorded.
    pub recorder: Arc<Recorder>,
    /// Who watches them.
    pub observer: Arc<dyn Observer>,
    /// Where approvals lie.
    pub desk: Arc<Desk>,
    /// By what the operator stops them.
    pub stop: Stop,
    /// Names the policy in force, for example a digest of the config.
    pub policy: Arc<str>,
    /// Who may use what.
    pub access: Access,
    /// How many at the same time.
    pub at_once: AtOnce,
    /// How often.
    pub rate: Rate,
    /// Which arguments.
    pub arguments: Arguments,
    /// Whether a caller's own client may be asked.
    pub via_client: ViaClient,
    /// How long.
    pub deadline: Deadline,
    /// What becomes of results that break their schema.
    pub output_schema: OutputSchema,
    /// Which schemas.
    pub schemas: Schemas,
    /// How much.
    pub size: Size,
}

/// All duties in their order, from the caller to the service.
pub fn pipeline(route: &Route, end: Arc<dyn Service>) -> Pipeline {
    let Route {
        recorder,
        observer,
        policy,
        ..
    } = route;
    Pipeline::new()
        // Every call leaves a trace: refused, late and abandoned ones too.
        .wrap(Entry::new(recorder.clone(), observer.clone()))
        // The operator may stop it; that is recorded as well.
        .wrap(route.stop.clone())
        // A panic is an error of one call.
        .wrap(Contain)
        // Only so many at the same time.
        .wrap(route.at_once.clone())
        // From here on the item behind the name is known.
        .resolve()
        // May hide, refuse or ask.
        .guard(route.access.clone())
        .guard(route.rate.clone())
        // The schema, before anyone is asked.
        .guard(route.arguments.clone())
        // All that asked, as one question; never waits itself.
        .confirm(Confirm::new(
            route.desk.clone(),
            policy.clone(),
            route.via_client,
        ))
        // `call.begin`, durable, with rule and approval, before it leaves.
        .wrap(Intent::new(
            recorder.clone(),
            observer.clone(),
            policy.clone(),
        ))
        .wrap(route.deadline.clone())
        .wrap(route.output_schema.clone())
        // A tool that cannot be checked is withheld.
        .clean(route.schemas)
        // Control and invisible characters.
        .clean(Text)
        // First to see what comes back.
        .clean(route.size)
        .over(end)
}

/// Only what cleans lists: for the operator's view, in which withheld tools stand with the reason.
pub fn inspect(route: &Route, end: Arc<dyn Service>) -> Pipeline {
    Pipeline::new()
        .wrap(Contain)
        .resolve()
        .clean(route.schemas)
        .clean(Text)
        .clean(route.size)
        .over(end)
}
