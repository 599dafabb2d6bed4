//! Pipeline: the stack of layers over a service.

use crate::{
    ApprovalStep, BoxFuture, Call, Caller, Catalog, ChangeFilter, ChangeStream, DecisionLog, Error,
    Item, ItemKind, Layer, ListRequest, Next, Op, Outcome, Rule, Sanitizer, Service,
    rule_layer::RuleLayer, sanitizer::SanitizerLayer, visibility_cache::VisibilityCache,
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// Stack of layers over a service; a service itself.
///
/// ```
/// use std::sync::Arc;
/// use serde_json::json;
/// use toolgate_core::{
///     ApprovalOutcome, ApprovalStep, BoxFuture, Call, Caller, DryRun, Error, ErrorKind, Item, Layer, Next,
///     Outcome, Output, Pipeline, PredictedOutcome, ResolvedPipeline, RuleDecision, UnresolvedPipeline, rule,
/// };
/// # use toolgate_core::{Catalog, ChangeFilter, ChangeStream, Definition, Json, ListRequest, Origin, Service};
/// # struct Files;
/// # impl Service for Files {
/// #     fn list(&self, _: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
/// #         let text = r#"{"name": "delete", "inputSchema": {"type": "object"}}"#;
/// #         let definition = Json::from_value(&serde_json::from_str(text).unwrap());
/// #         let origin = Origin { server: "files".into(), trusted: true };
/// #         let item = Item::new(origin, Definition::tool(definition).unwrap());
/// #         Box::pin(async { Ok(Catalog::new(vec![Arc::new(item)])) })
/// #     }
/// #     fn call(&self, _: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
/// #         Box::pin(async { Ok(Outcome::Done(Output::text("deleted"))) })
/// #     }
/// #     fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
/// #         Box::pin(async { Err(Error::new(ErrorKind::NotFound, "nothing changes")) })
/// #     }
/// # }
///
/// /// Approves the calls of one caller.
/// struct ApproveAnn;
///
/// impl ApprovalStep for ApproveAnn {
///     fn request_approval<'a>(
///         &'a self,
///         call: &'a Call,
///         _item: &'a Arc<Item>,
///         reasons: Vec<String>,
///     ) -> BoxFuture<'a, Result<ApprovalOutcome, Error>> {
///         Box::pin(async move {
///             match call.caller.name() {
///                 "ann" => Ok(ApprovalOutcome::Approved { slot: None }),
///                 _ => Err(Error::new(ErrorKind::Busy(None), reasons.join(", "))),
///             }
///         })
///     }
/// }
///
/// /// Counts the bytes of each result.
/// struct CountBytes;
///
/// impl Layer for CountBytes {
///     fn name(&self) -> &'static str {
///         "count-bytes"
///     }
///
///     fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
///         Box::pin(async move {
///             let log = call.decision_log.clone();
///             let outcome = next.call(call).await?;
///             if let Outcome::Done(output) = &outcome {
///                 log.add("count-bytes", "info", format!("{} bytes", output.size()));
///             }
///             Ok(outcome)
///         })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let outer: UnresolvedPipeline = Pipeline::new().layer(CountBytes);
/// let inner: ResolvedPipeline = outer
///     .resolve()
///     .rule(rule::from_fn("deletions", |_call, _item| RuleDecision::ask("deletes a file")))
///     .approval(ApproveAnn);
/// let pipeline = inner.service(Arc::new(Files));
///
/// let call = Call::tool("c-1", Caller::new("ann"), "delete", Json::from_value(&json!({})));
/// let item = pipeline.list(ListRequest::all(call.caller.clone(), toolgate_core::ItemKind::Tool)).await?.items()[0].clone();
/// let forecast: DryRun = pipeline.explain(&call, &item).await;
/// assert_eq!(forecast.outcome, PredictedOutcome::Ask);
/// assert!(matches!(pipeline.call(call).await?, Outcome::Done(_)));
/// # Ok(())
/// # }
/// ```
pub struct Pipeline {
    layers: Vec<Arc<dyn Layer>>,
    /// The layers with rules, from the caller to the service.
    pub(crate) rule_layers: Vec<Arc<RuleLayer>>,
    service: Arc<dyn Service>,
}

/// Builder of a pipeline, for the layers before the item of a call is resolved.
pub struct UnresolvedPipeline {
    layers: Vec<Arc<dyn Layer>>,
}

/// Builder of a pipeline, for the layers after the item of a call is resolved.
///
/// [`ResolvedPipeline::rule`] and [`ResolvedPipeline::sanitizer`] exist only here, so rules and sanitizers always see the item.
pub struct ResolvedPipeline {
    layers: Vec<Arc<dyn Layer>>,
    rule_layers: Vec<Arc<RuleLayer>>,
    rules: Vec<Box<dyn Rule>>,
    /// Adjacent sanitizers, from the caller to the service.
    sanitizers: Vec<Arc<dyn Sanitizer>>,
}

impl Pipeline {
    /// Returns a builder for a pipeline without layers.
    #[expect(clippy::new_ret_no_self, reason = "returns a pipeline builder")]
    pub fn new() -> UnresolvedPipeline {
        UnresolvedPipeline { layers: Vec::new() }
    }

    /// Returns the names of the pipeline's policies, from the caller to the service.
    pub fn policy_names(&self) -> Vec<&'static str> {
        self.layers
            .iter()
            .flat_map(|layer| layer.policy_names())
            .collect()
    }

    fn next(&self) -> Next<'_> {
        Next::new(&self.layers, self.service.as_ref())
    }
}

impl UnresolvedPipeline {
    /// Adds a layer that wraps all layers added later.
    pub fn layer(mut self, layer: impl Layer) -> UnresolvedPipeline {
        self.layers.push(Arc::new(layer));
        self
    }

    /// Adds layers that wrap all layers added later, the first outermost.
    pub fn layers(mut self, layers: impl IntoIterator<Item = impl Layer>) -> UnresolvedPipeline {
        for layer in layers {
            self = self.layer(layer);
        }
        self
    }

    /// Adds the layer that resolves the name of each call to an item, for the layers added later. A name that the
    /// caller may not see is unknown.
    pub fn resolve(mut self) -> ResolvedPipeline {
        self.layers.push(Arc::new(ResolveLayer::new()));
        ResolvedPipeline {
            layers: self.layers,
            rule_layers: Vec::new(),
            rules: Vec::new(),
            sanitizers: Vec::new(),
        }
    }
}

impl ResolvedPipeline {
    /// Adds a rule, which decides before each call. Adjacent rules are evaluated together by one layer.
    pub fn rule(mut self, rule: impl Rule) -> ResolvedPipeline {
        self.flush_sanitizers();
        self.rules.push(Box::new(rule));
        self
    }

    /// Adds rules, which decide before each call in this order.
    pub fn rules(mut self, rules: impl IntoIterator<Item = impl Rule>) -> ResolvedPipeline {
        for rule in rules {
            self = self.rule(rule);
        }
        self
    }

    /// Adds an approval step for the rules added just before, if there is one. Without one, calls for which they ask
    /// are rejected.
    pub fn optional_approval(mut self, step: Option<Arc<dyn ApprovalStep>>) -> ResolvedPipeline {
        if let Some(step) = step {
            self.flush_pending(Some(step));
        }
        self
    }

    /// Adds the approval step for the rules added just before.
    pub fn approval(mut self, step: impl ApprovalStep) -> ResolvedPipeline {
        self.flush_pending(Some(Arc::new(step)));
        self
    }

    /// Adds a layer that wraps all layers added later.
    pub fn layer(mut self, layer: impl Layer) -> ResolvedPipeline {
        self.flush_pending(None);
        self.layers.push(Arc::new(layer));
        self
    }

    /// Adds layers that wrap all layers added later, the first outermost.
    pub fn layers(mut self, layers: impl IntoIterator<Item = impl Layer>) -> ResolvedPipeline {
        for layer in layers {
            self = self.layer(layer);
        }
        self
    }

    /// Adds a sanitizer of the content that servers return. The last one added sees content first. Adjacent sanitizers
    /// share one layer.
    pub fn sanitizer(mut self, sanitizer: impl Sanitizer) -> ResolvedPipeline {
        self.flush_rules(None);
        self.sanitizers.push(Arc::new(sanitizer));
        self
    }

    /// Adds sanitizers of the content that servers return, in order. The last one sees content first.
    pub fn sanitizers(
        mut self,
        sanitizers: impl IntoIterator<Item = impl Sanitizer>,
    ) -> ResolvedPipeline {
        for sanitizer in sanitizers {
            self = self.sanitizer(sanitizer);
        }
        self
    }

    /// Completes the pipeline with the service that the layers wrap.
    pub fn service(mut self, service: Arc<dyn Service>) -> Pipeline {
        self.flush_pending(None);
        Pipeline {
            layers: self.layers,
            rule_layers: self.rule_layers,
            service,
        }
    }

    fn flush_pending(&mut self, confirm: Option<Arc<dyn ApprovalStep>>) {
        self.flush_sanitizers();
        self.flush_rules(confirm);
    }

    fn flush_sanitizers(&mut self) {
        if !self.sanitizers.is_empty() {
            let cleaner = SanitizerLayer::new(std::mem::take(&mut self.sanitizers));
            self.layers.push(Arc::new(cleaner));
        }
    }

    fn flush_rules(&mut self, confirm: Option<Arc<dyn ApprovalStep>>) {
        if !self.rules.is_empty() || confirm.is_some() {
            let rules = std::mem::take(&mut self.rules);
            let gate = Arc::new(RuleLayer {
                rules,
                approval_step: confirm,
                visibility_cache: VisibilityCache::default(),
            });
            self.rule_layers.push(gate.clone());
            self.layers.push(gate);
        }
    }
}

impl Service for Pipeline {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        self.next().list(ask)
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        self.next().call(call)
    }

    fn changes(&self, want: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        self.next().changes(want)
    }
}

/// Layer that resolves the name of a call to the item that this caller sees.
struct ResolveLayer {
    /// Number of the layer in this process.
    number: u64,
}

impl ResolveLayer {
    fn new() -> ResolveLayer {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        ResolveLayer {
            number: NEXT.fetch_add(1, Relaxed),
        }
    }

    /// Returns the item of a call that an edge looked up just before it, through this very layer.
    fn looked_up(&self, call: &Call) -> Option<Arc<Item>> {
        let item = call.decision_log.take_looked_up(self.number)?;
        let is_same =
            item.def.name() == call.name() && call.op.kinds().first() == Some(&item.kind());
        is_same.then_some(item)
    }
}

impl Layer for ResolveLayer {
    fn name(&self) -> &'static str {
        "resolve"
    }

    fn list<'a>(
        &'a self,
        ask: ListRequest,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Catalog, Error>> {
        let (Some(log), Some(name)) = (ask.looks_up_for.clone(), ask.only_name.clone()) else {
            return next.list(ask);
        };
        let kind = ask.kind;
        Box::pin(async move {
            let catalog = next.list(ask).await?;
            let found = catalog.named(&name);
            if let Some(item) = found.filter(|item| is_usable(item, kind)) {
                log.set_looked_up(self.number, item.clone());
            }
            Ok(catalog)
        })
    }

    fn call<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let found = match self.looked_up(&call) {
                Some(item) => Some(item),
                None => {
                    let (op, name, log) = (call.op, call.name(), &call.decision_log);
                    // Boxed, so that the future of a call that was looked up is small.
                    Box::pin(resolve_item(&next, &call.caller, op, name, log)).await?
                }
            };
            let Some(item) = found else {
                return Err(call.unknown_item_error());
            };
            if item.withheld.is_some() {
                return Err(call.withheld_item_error(&item));
            }
            call.decision_log.set_item(item.clone());
            call.item = Some(item);
            next.call(call).await
        })
    }
}

/// Returns whether an item with the called name is of the kind that is looked up, and not withheld.
fn is_usable(item: &Item, kind: ItemKind) -> bool {
    item.withheld.is_none() && item.kind() == kind
}

/// Returns the item of that name, as the remaining layers show it to this caller. A withheld item also excludes the
/// other matching items of its server; it is returned if no other item matches.
async fn resolve_item(
    next: &Next<'_>,
    caller: &Caller,
    op: Op,
    name: &str,
    trail: &DecisionLog,
) -> Result<Option<Arc<Item>>, Error> {
    let mut barred: Vec<Arc<str>> = Vec::new();
    let mut reason = None;
    let only: Arc<str> = name.into();
    for kind in op.kinds() {
        let ask = ListRequest::one_for_call(caller.clone(), *kind, only.clone(), trail.clone());
        let catalog = next.fork_for_lookup().list(ask).await?;
        // The most frequent case: an item of this very name, which excludes all others.
        if barred.is_empty()
            && let Some(item) = catalog.named(name)
            && is_usable(item, *kind)
        {
            return Ok(Some(item.clone()));
        }
        // A linked resource or template may stand in either list; a skill stands in the list of skills only.
        let skills = *kind == ItemKind::Skill;
        let is = |item: &&Arc<Item>| (item.kind() == ItemKind::Skill) == skills;
        let fitting = || catalog.matching(name).filter(is);
        let mut known = fitting().filter(|i| i.withheld_for_callers().is_some());
        reason = reason.or_else(|| known.next().cloned());
        let withheld = fitting().filter(|i| i.withheld.is_some());
        barred.extend(withheld.map(|item| item.origin.server.clone()));
        if let Some(item) = fitting().find(|item| !barred.contains(&item.origin.server)) {
            return Ok(Some(item.clone()));
        }
    }
    Ok(reason)
}
