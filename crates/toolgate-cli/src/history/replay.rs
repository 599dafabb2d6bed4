//! Evaluation of a recorded call under a config.

use super::recorded::{
    REDACTED_PREFIX, REDACTED_UNREAD, RecordedArguments, RecordedCall, RecordedDecision,
};
use crate::{runtime::dry_run, runtime::offline::OfflineView};
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use toolgate_core::{Call, DefinitionPin, Item, Json, Op, PredictedOutcome, Rule};
use toolgate_policy::{AccessRule, AccessRules, OnOutboundSecret, RuleAction};

/// Result of evaluating a recorded call.
pub(crate) struct ReplayedCall {
    /// Full name, or the name that the caller used.
    pub(crate) tool: String,
    pub(crate) result: ReplayResult,
}

/// Decision of a config.
pub(crate) enum ReplayResult {
    Decided(RecordedDecision),
    /// Reason why the decision is unknown.
    Unknown(String),
}

fn decided(end: PredictedOutcome, by: &str, why: impl Into<String>) -> ReplayResult {
    let (by, why) = (by.to_owned(), why.into());
    ReplayResult::Decided(RecordedDecision {
        outcome: end,
        by,
        why,
    })
}

/// Evaluates a call under a config. With incomplete arguments, the decision may be unknown.
pub(crate) async fn evaluate_call(call: &RecordedCall, by: &OfflineView) -> ReplayedCall {
    let item = find_item(call, by);
    let tool = match (&item, &call.item) {
        (Some(item), _) => item.full_name(),
        (None, Some((_, tool))) => tool.clone(),
        (None, None) => call.name.clone(),
    };
    let now = match item {
        Some(item) => evaluate_item(call, &item, by).await,
        None => without_item(call, by),
    };
    ReplayedCall { tool, result: now }
}

/// Returns the stored item. Pending pins do not depend on the config and are ignored.
fn find_item(call: &RecordedCall, by: &OfflineView) -> Option<Arc<Item>> {
    let named = match &call.item {
        Some((server, tool)) => find_by_given_name(by, server, tool, call.op)
            .map(|item| (item, call.op))
            .or_else(|| {
                let found = dry_run::resolve_name(by.catalogs(), tool)?;
                Some((found.item, found.op))
            }),
        None => None,
    };
    let (item, _) = named.or_else(|| {
        let kinds = call.op.kinds();
        let lists = by
            .catalogs()
            .iter()
            .filter(|(kind, _)| kinds.contains(kind));
        let mut lists = lists.filter(|_| call.item.is_none());
        let item = lists.find_map(|(_, list)| list.find(&call.name).cloned())?;
        Some((item, call.op))
    })?;
    let digest = item.pin.as_ref().map(|pin| pin.digest.clone());
    Some(Arc::new(item.with_pin(Arc::new(DefinitionPin::new(
        digest.unwrap_or_default(),
        call.pin,
    )))))
}

/// Returns the item with the server's own name; its name at the gateway may have changed.
fn find_by_given_name(by: &OfflineView, server: &str, name: &str, op: Op) -> Option<Arc<Item>> {
    let own = name.strip_prefix(server)?.strip_prefix('.')?;
    let lists = by.catalogs().iter();
    let mut lists = lists.filter(|(kind, _)| op.kinds().contains(kind));
    lists.find_map(|(_, list)| {
        let is = |item: &&Arc<Item>| *item.origin.server == *server && item.upstream_key() == own;
        list.items().iter().find(is).cloned()
    })
}

fn without_item(call: &RecordedCall, by: &OfflineView) -> ReplayResult {
    match &call.item {
        Some((server, _)) if !by.has_server(server) => decided(
            PredictedOutcome::Hide,
            "resolve",
            "the config has no server with this name",
        ),
        Some(_) => ReplayResult::Unknown(
            "no gateway stored the definition of this item, so the new decision is unknown"
                .to_owned(),
        ),
        None => ReplayResult::Unknown(
            "the record does not name the item, because the caller could not see it".to_owned(),
        ),
    }
}

async fn evaluate_item(
    recorded: &RecordedCall,
    item: &Arc<Item>,
    by: &OfflineView,
) -> ReplayResult {
    let at = UNIX_EPOCH + Duration::from_micros(recorded.at);
    let call = |arguments: &Json| {
        let (caller, arguments) = (recorded.caller.clone(), arguments.clone());
        // A template or skill is read at the URI that the caller named; other items are called by their current name.
        let name = match item.def.kind() {
            toolgate_core::ItemKind::Template | toolgate_core::ItemKind::Skill => {
                recorded.name.as_str()
            }
            _ => item.def.name(),
        };
        Call::new("explain", caller, recorded.op, name, arguments)
    };
    match &recorded.arguments {
        RecordedArguments::Whole(json) => {
            let way = by.dry_run_at(&call(json), item, at).await;
            let step = way.deciding_step;
            let (by, why) = step.map_or(("", String::new()), |step| (step.policy, step.reason));
            decided(way.outcome, by, why)
        }
        RecordedArguments::Redacted(json) => evaluate_partial(recorded, &call(json), item, by, at),
        RecordedArguments::Digest => {
            let none = Json::from_value(&serde_json::json!({}));
            evaluate_partial(recorded, &call(&none), item, by, at)
        }
    }
}

/// Evaluates the rules that need only the known arguments, and checks that no other rule could change the result.
/// Schema
/// mismatches and secrets are taken from the record.
fn evaluate_partial(
    recorded: &RecordedCall,
    call: &Call,
    item: &Item,
    by: &OfflineView,
    at: SystemTime,
) -> ReplayResult {
    let digest = matches!(recorded.arguments, RecordedArguments::Digest);
    let is_open = |rule: &AccessRule| {
        rule.when.as_ref().is_some_and(|when| match digest {
            true => when.reads_args(),
            false => when.may_read_mark(call.arguments().value(), REDACTED_PREFIX),
        })
    };
    let (open, closed): (Vec<_>, Vec<_>) = by.rules().iter().cloned().partition(is_open);
    let says = |rules: Vec<AccessRule>| {
        with_recorded_findings(access_decision(rules, call, item, at), recorded, item, by)
    };
    let certain = says(closed.clone());
    for rule in open {
        let label = rule.label.clone();
        let reads_unread = rule.when.as_ref().is_some_and(|when| {
            !digest && when.may_read_mark(call.arguments().value(), REDACTED_UNREAD)
        });
        let mut with = rule;
        with.when = None;
        let all = closed.iter().cloned().chain([with]).collect();
        // Hiding counts as a denial.
        let end = |says: &RecordedDecision| says.outcome.min(PredictedOutcome::Deny);
        if end(&says(all)) != end(&certain) {
            let why = match digest {
                true => "but only their digest is recorded",
                false if reads_unread => "but an argument that it needs is not recorded",
                false => "but a part that it needs is redacted in the record",
            };
            return ReplayResult::Unknown(format!("{label} reads the arguments, {why}"));
        }
    }
    ReplayResult::Decided(certain)
}

/// Returns the decision of the access rules.
pub(crate) fn access_decision(
    rules: Vec<AccessRule>,
    call: &Call,
    item: &Item,
    at: SystemTime,
) -> RecordedDecision {
    let access = AccessRules::new(rules).at(at);
    let of = |end, why: String| RecordedDecision {
        outcome: end,
        by: access.name().to_owned(),
        why,
    };
    if let Some(why) = &item.withheld {
        return RecordedDecision {
            outcome: PredictedOutcome::Hide,
            by: "resolve".to_owned(),
            why: why.clone(),
        };
    }
    if !access.is_visible(&call.caller, item) {
        return of(
            PredictedOutcome::Hide,
            access.hidden_reason(&call.caller, item),
        );
    }
    if let Some(why) = access.hidden_uri_reason(&call.caller, item, call.name()) {
        return of(PredictedOutcome::Hide, why);
    }
    let (then, why) = access.action_for_call(call, item);
    match then {
        RuleAction::Allow => of(PredictedOutcome::Allow, why),
        RuleAction::Ask => of(PredictedOutcome::Ask, why),
        RuleAction::Deny => of(PredictedOutcome::Deny, why),
    }
}

/// Applies the recorded findings on the arguments to a decision.
fn with_recorded_findings(
    says: RecordedDecision,
    recorded: &RecordedCall,
    item: &Item,
    by: &OfflineView,
) -> RecordedDecision {
    let leak = match by.outbound_secret_action(&item.origin.server) {
        OnOutboundSecret::Ask => PredictedOutcome::Ask,
        OnOutboundSecret::Warn | OnOutboundSecret::Pass => PredictedOutcome::Allow,
        _ => PredictedOutcome::Deny,
    };
    let misfit = recorded
        .decision
        .as_ref()
        .filter(|then| then.by == "arguments");
    match misfit {
        Some(then) if says.outcome < PredictedOutcome::Deny => then.clone(),
        _ if recorded.has_secret && says.outcome < leak => RecordedDecision {
            outcome: leak,
            by: "leaks".to_owned(),
            why: String::new(),
        },
        _ => says,
    }
}
