//! Dry runs of calls: the request, and the rendered result.

use crate::{
    authentication::{http_caller_name, required_scopes},
    config::{Config, IssuerSettings},
};
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate_core::{
    Call, Caller, Catalog, DecisionStep, DryRun, Item, ItemKind, Json, Op, PredictedOutcome,
};
use toolgate_protocol::json::JsonKind;

/// Request to explain a call.
pub(crate) struct ExplainRequest {
    /// Full name (`server.tool`, `server.resource:URI`, `server.prompt:NAME`), or the name that clients use.
    pub(crate) name: String,
    /// Caller of the dry run.
    pub(crate) caller: Caller,
    /// Arguments of the call; a JSON object.
    pub(crate) arguments: Json,
}

impl ExplainRequest {
    /// Parses the arguments; without text they are empty.
    ///
    /// # Errors
    /// The arguments are not a JSON object.
    pub(crate) fn parse(
        name: &str,
        caller: Caller,
        text: Option<&str>,
    ) -> Result<ExplainRequest, String> {
        let text = text.unwrap_or("{}").to_owned();
        let arguments = Json::read(text.into_bytes(), &Default::default())
            .map_err(|e| format!("the arguments cannot be read: {e}; correct them"))?;
        if arguments.kind() != JsonKind::Object {
            return Err(
                "the arguments must be a JSON object, for example {\"name\": \"x\"}".to_owned(),
            );
        }
        let name = name.to_owned();
        Ok(ExplainRequest {
            name,
            caller,
            arguments,
        })
    }

    /// Builds the call of a resolved item.
    pub(crate) fn into_call(self, found: &ResolvedItem) -> Call {
        let at = found.target.clone();
        let arguments = match found.op {
            Op::Resource => Json::from_value(&json!({ "uri": at })),
            _ => self.arguments,
        };
        Call::new("explain", self.caller, found.op, at, arguments)
    }
}

/// Item that a name resolves to.
pub(crate) struct ResolvedItem {
    /// Definition of the item, with its origin and notes.
    pub(crate) item: Arc<Item>,
    pub(crate) op: Op,
    /// Name that clients use, or the URI.
    target: String,
}

/// Resolves a full name or a client's name to an item, whether or not a caller may see it.
///
/// A file of a skill resolves to the skill, even if it is listed as a resource too. Reads do the same.
pub(crate) fn resolve_name(catalogs: &[(ItemKind, Catalog)], name: &str) -> Option<ResolvedItem> {
    let (item, op) = find_item(catalogs, name)?;
    let uri = name.split_once(Item::RESOURCE_PREFIX).map(|(_, uri)| uri);
    let uri = uri.filter(|uri| op == Op::Resource && item.matches_uri(uri));
    let at = uri.unwrap_or(item.def.name()).to_owned();
    let skills = catalogs.iter().filter(|(kind, _)| *kind == ItemKind::Skill);
    let mut skills = skills.flat_map(|(_, skills)| skills.items());
    let skill = skills.find(|skill| op == Op::Resource && skill.matches_uri(&at));
    let item = skill.cloned().unwrap_or(item);
    Some(ResolvedItem {
        item,
        op,
        target: at,
    })
}

/// Finds the item with that full name, or else the one with that name for clients.
fn find_item(catalogs: &[(ItemKind, Catalog)], name: &str) -> Option<(Arc<Item>, Op)> {
    let find = |is: &dyn Fn(&Item) -> bool| {
        catalogs.iter().find_map(|(kind, catalog)| {
            let item = catalog.items().iter().find(|item| is(item))?;
            Some((item.clone(), op(*kind)))
        })
    };
    find(&|item| item.full_name() == name)
        .or_else(|| find(&|item| item.def.name() == name || matches_template(item, name)))
}

/// Returns whether a name is that of a resource that the item's template matches.
fn matches_template(item: &Item, name: &str) -> bool {
    let uri = name.strip_prefix(&format!("{}.{}", item.origin.server, Item::RESOURCE_PREFIX));
    uri.is_some_and(|uri| item.matches_uri(uri))
}

fn op(kind: ItemKind) -> Op {
    match kind {
        ItemKind::Tool => Op::Tool,
        ItemKind::Prompt => Op::Prompt,
        ItemKind::Resource | ItemKind::Template | ItemKind::Skill => Op::Resource,
    }
}

/// Adds the steps of authentication to a dry run, and returns the scopes that the caller's token needs.
///
/// An anonymous caller is rejected where credentials are required. Only the token of an issuer's caller says which
/// scopes it has.
pub(crate) fn add_authentication(
    way: &mut DryRun,
    config: &Config,
    call: &Call,
    item: &Item,
) -> Vec<String> {
    let nobody = config.requires_authentication() && call.caller.name() == http_caller_name(false);
    if nobody {
        way.outcome = PredictedOutcome::Deny;
        let needs = match config.auth.issuers.is_empty() {
            true => Vec::new(),
            false => required_scopes(config).required(item, Some(call.name())),
        };
        let mut why = "anonymous access is denied; a key or a token is required".to_owned();
        if !needs.is_empty() {
            why.push_str(&format!("; a token needs {}", scope_phrase(&needs)));
        }
        let told = DecisionStep::new("authentication", "refuse", why);
        way.steps.insert(0, told);
        return Vec::new();
    }
    let of = |issuer: &IssuerSettings| {
        let name = call.caller.name().strip_prefix(issuer.id.as_str());
        name.is_some_and(|rest| rest.starts_with(':'))
    };
    if way.outcome == PredictedOutcome::Hide || !config.auth.issuers.iter().any(of) {
        return Vec::new();
    }
    let needs = required_scopes(config).required(item, Some(call.name()));
    let why = match needs.is_empty() {
        true => "the caller's token needs no scope for this item".to_owned(),
        false => format!(
            "the caller's token needs {}; otherwise the call is refused, and the item is not listed",
            scope_phrase(&needs)
        ),
    };
    let after = way.steps.iter().position(|step| step.policy == "resolve");
    let step = DecisionStep::new("scopes", "info", why);
    way.steps.insert(after.map_or(0, |at| at + 1), step);
    match way.outcome {
        PredictedOutcome::Allow | PredictedOutcome::Ask => needs,
        _ => Vec::new(),
    }
}

/// Formats scopes with their noun: `the scope a`, `the scopes a b`.
pub(crate) fn scope_phrase<T: AsRef<str>>(scopes: &[T]) -> String {
    let names: Vec<&str> = scopes.iter().map(AsRef::as_ref).collect();
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("the scope{plural} {}", names.join(" "))
}

/// Renders a dry run and its required scopes as JSON for the control socket.
pub(crate) fn to_json(way: &DryRun, needs: &[String]) -> Value {
    let steps = way.steps.iter();
    let steps =
        steps.map(|step| json!({"by": step.policy, "verdict": step.decision, "why": step.reason}));
    json!({"steps": steps.collect::<Value>(), "verdict": way.outcome.as_str(), "scopes": needs})
}

/// Returns the most similar name for a "did you mean" hint, if it is similar enough. If the name has the right server
/// ID, only the names of that server are compared.
pub(crate) fn nearest_name(name: &str, names: impl IntoIterator<Item = String>) -> Option<String> {
    let server = name.split_inclusive('.').next().unwrap_or_default();
    let (of, others): (Vec<String>, Vec<String>) = names
        .into_iter()
        .partition(|other| server.ends_with('.') && other.starts_with(server));
    let (names, from) = match of.is_empty() {
        true => (others, 0),
        false => (of, server.len()),
    };
    let near = |other: &String| strsim::jaro_winkler(&other[from..], &name[from..]);
    let names = names.into_iter().filter(|other| near(other) > 0.8);
    names.max_by(|a, b| near(a).total_cmp(&near(b)))
}
