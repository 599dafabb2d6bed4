//! Rules, and the layer that evaluates them all before a call and requests approval if a rule asks for it.

use crate::visibility_cache::VisibilityCache;
use crate::{
    BoxFuture, Call, CallArguments, Caller, Catalog, ChangeFilter, ChangeStream, Content, Error,
    ErrorKind, InputRequests, Item, ItemKind, Layer, ListRequest, Next, Op, Outcome, Output,
    RefusalReason, SpanEventValue,
};
use std::sync::Arc;
use toolgate_protocol::{json::Json, placeholder};

/// Decision of a rule on a call: allow, ask for approval, or deny.
#[derive(Debug)]
pub enum RuleDecision {
    /// Allows the call.
    Allow,
    /// Requires approval by a person, for this reason.
    Ask(String),
    /// Denies the call with this error.
    Deny(Error),
}

impl RuleDecision {
    /// Requires approval by a person, for this reason: what the call does, as in "pays 250 to Ann".
    pub fn ask(reason: impl Into<String>) -> RuleDecision {
        RuleDecision::Ask(reason.into())
    }

    /// Denies the call. The model reads the message: say what is wrong, and what it can do instead.
    pub fn deny(message: impl Into<std::borrow::Cow<'static, str>>) -> RuleDecision {
        RuleDecision::Deny(Error::new(ErrorKind::Refused(RefusalReason::Rule), message))
    }
}

/// Decision of a rule: ready, or a future of it. Rules never wait for a person.
pub enum MaybeReady<'a> {
    /// The decision of the rule is ready.
    Ready(RuleDecision),
    /// The decision of the rule has to be awaited.
    Pending(BoxFuture<'a, RuleDecision>),
}

/// Rule that decides before a call whether it is allowed, needs approval, or is denied. One layer evaluates all rules,
/// for lists and calls alike.
pub trait Rule: Send + Sync + 'static {
    /// Returns the name of the rule's policy, one word.
    fn name(&self) -> &'static str;

    /// Returns true if the caller may know that the item exists. To this caller a hidden item does not exist, and
    /// [`Rule::decide`] is not called for it. Default: true for every item.
    ///
    /// It is called for each item of a list and before each call, so it must be fast and must not block.
    fn is_visible(&self, _caller: &Caller, _item: &Item) -> bool {
        true
    }

    /// Returns true if the rule may hide items from one caller that another caller sees. Lists and the contents of
    /// resources are then cacheable for one caller only, whatever the server's cache hint says. Default: true.
    ///
    /// Return false only if [`Rule::is_visible`] returns the same for all callers. Otherwise a server with a public cache
    /// hint permits caches to pass the list of one caller to another.
    fn may_hide_items(&self) -> bool {
        true
    }

    /// Returns true if the caller may know that the server exists. A list does not count a hidden server as missing.
    /// Default: true. Return false only if [`Rule::is_visible`] hides all items of the server.
    fn is_server_visible(&self, _caller: &Caller, _server: &str) -> bool {
        true
    }

    /// Returns the reason why the item is hidden: for the audit log, never for the caller.
    fn hidden_reason(&self, _caller: &Caller, _item: &Item) -> String {
        String::new()
    }

    /// Returns the reason why the resource at a URI is hidden although the template that matches it is visible. It is
    /// for the audit log.
    fn hidden_uri_reason(&self, _caller: &Caller, _template: &Item, _uri: &str) -> Option<String> {
        None
    }

    /// Returns true if a caller that may read the resource at a URI may also subscribe to it. Default: true. If a rule
    /// returns false, the caller gets no notifications for this URI.
    fn allows_subscription(&self, _item: &Item, _uri: &str) -> bool {
        true
    }

    /// Decides whether a call is allowed, needs approval, or is denied.
    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> MaybeReady<'a>;

    /// Decides a call in a dry run. It must have no effect: a rule whose `decide` has side effects overrides this
    /// method to report what `decide` would do.
    fn explain<'a>(&'a self, call: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        self.decide(call, item)
    }
}

impl Rule for Arc<dyn Rule> {
    fn name(&self) -> &'static str {
        self.as_ref().name()
    }

    fn is_visible(&self, caller: &Caller, item: &Item) -> bool {
        self.as_ref().is_visible(caller, item)
    }

    fn may_hide_items(&self) -> bool {
        self.as_ref().may_hide_items()
    }

    fn is_server_visible(&self, caller: &Caller, server: &str) -> bool {
        self.as_ref().is_server_visible(caller, server)
    }

    fn hidden_reason(&self, caller: &Caller, item: &Item) -> String {
        self.as_ref().hidden_reason(caller, item)
    }

    fn hidden_uri_reason(&self, caller: &Caller, template: &Item, uri: &str) -> Option<String> {
        self.as_ref().hidden_uri_reason(caller, template, uri)
    }

    fn allows_subscription(&self, item: &Item, uri: &str) -> bool {
        self.as_ref().allows_subscription(item, uri)
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        self.as_ref().decide(call, item)
    }

    fn explain<'a>(&'a self, call: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        self.as_ref().explain(call, item)
    }
}

/// Step that obtains a person's approval for calls that rules leave to a person. It never waits itself: only edges
/// wait.
pub trait ApprovalStep: Send + Sync + 'static {
    /// Requests one approval of the call for all reasons, or redeems one that was given.
    fn request_approval<'a>(
        &'a self,
        call: &'a Call,
        item: &'a Arc<Item>,
        reasons: Vec<String>,
    ) -> BoxFuture<'a, Result<ApprovalOutcome, Error>>;

    /// Describes, for a dry run, the approver who would be asked.
    fn explain(&self, _call: &Call, _item: &Item) -> String {
        "a person is asked for approval".to_owned()
    }
}

/// Outcome of the approval step: approved, approved with edits, or input required.
#[derive(Debug)]
pub enum ApprovalOutcome {
    /// The call is approved, now or in an earlier round.
    Approved {
        /// State for the slot `confirm` of the call's next round.
        slot: Option<String>,
    },
    /// The approver changed the arguments of the call; all rules evaluate them again.
    ApprovedWithEdits {
        /// State for the slot `confirm` of the call's next round.
        slot: Option<String>,
        /// Arguments of the call that the approver wrote.
        arguments: Json,
    },
    /// Input requests to an approver have to be answered first.
    InputRequired(InputRequests),
}

/// Name of the slot that [`ApprovalOutcome::Approved`] fills.
const CONFIRM_SLOT: &str = "confirm";

pub(crate) struct RuleLayer {
    pub(crate) rules: Vec<Box<dyn Rule>>,
    pub(crate) approval_step: Option<Arc<dyn ApprovalStep>>,
    pub(crate) visibility_cache: VisibilityCache,
}

impl RuleLayer {
    pub(crate) fn is_visible(&self, caller: &Caller, item: &Item) -> bool {
        item.withheld.is_none() && self.rules.iter().all(|rule| rule.is_visible(caller, item))
    }

    /// Returns the rule that hides the item, and its reason.
    pub(crate) fn hiding_rule(
        &self,
        caller: &Caller,
        item: &Item,
    ) -> Option<(&'static str, String)> {
        if let Some(why) = &item.withheld {
            return Some((self.name(), why.clone()));
        }
        let rule = self
            .rules
            .iter()
            .find(|rule| !rule.is_visible(caller, item))?;
        Some((rule.name(), rule.hidden_reason(caller, item)))
    }

    /// Returns true if all rules let the caller know of the item, even if the item is withheld.
    fn may_know(&self, caller: &Caller, item: &Item, uri: &str) -> bool {
        let sees = self.rules.iter().all(|rule| rule.is_visible(caller, item));
        sees && self.hiding_rule_at(caller, item, uri).is_none()
    }

    /// Returns true if the catalog has an item of exactly this name, the caller may see it, and no item of a more
    /// specific kind takes precedence: then [`RuleLayer::list_one`] returns the catalog unchanged.
    fn shows_named(&self, ask: &ListRequest, catalog: &Catalog, name: &str) -> bool {
        let item = catalog.named(name);
        item.is_some_and(|item| self.is_visible(&ask.caller, item))
            && more_specific_kinds(ask.kind).is_empty()
    }

    /// Returns a catalog of the one item, or an empty one if it is hidden; the decision log records why. If a matching
    /// template is hidden, a visible one may still match. A withheld item that no rule hides is returned with its
    /// reason.
    async fn list_one(
        &self,
        next: &Next<'_>,
        ask: &ListRequest,
        catalog: Catalog,
        name: &str,
    ) -> Result<Catalog, Error> {
        let mut hidden = Vec::new();
        for kind in more_specific_kinds(ask.kind) {
            let listed = self.servers_with_hidden_item(next, ask, (&catalog, *kind), name);
            hidden.extend(listed.await?);
        }
        let mut hiding: Vec<&str> = hidden.iter().map(|server| server.as_ref()).collect();
        let mut withheld = None;
        for item in catalog.matching(name) {
            let at = || self.hiding_rule_at(&ask.caller, item, name);
            if let Some((by, why)) = self.hiding_rule(&ask.caller, item).or_else(at) {
                ask.decision_log.add(by, "hide", why);
                hiding.push(&item.origin.server);
                let told = item.withheld_for_callers().is_some();
                let known = told && self.may_know(&ask.caller, item, name);
                withheld = withheld.or(known.then_some(item));
            }
        }
        if hiding.is_empty() {
            return Ok(catalog);
        }
        // A server that hides one of the matching items may interpret the URI as the hidden one, so all of its items
        // are excluded.
        let mut fitting = catalog.matching(name);
        let other = fitting.find(|item| !hiding.contains(&item.origin.server.as_ref()));
        // The caller may learn why the item is not offered, unless a rule hides something at this URI.
        let other = other.or(withheld.filter(|_| hidden.is_empty()));
        Ok(catalog.with_items(other.cloned().into_iter().collect()))
    }

    /// Returns the servers that list a hidden item of a more specific kind at a URI that `below` matches. A read
    /// through the less specific item would reach the hidden one: a resource below a template, a skill below both.
    async fn servers_with_hidden_item(
        &self,
        next: &Next<'_>,
        ask: &ListRequest,
        (below, kind): (&Catalog, ItemKind),
        uri: &str,
    ) -> Result<Vec<Arc<str>>, Error> {
        if below.matching(uri).next().is_none() {
            return Ok(Vec::new());
        }
        let listed = ListRequest::one(ask.caller.clone(), kind, uri);
        let listed = next.fork_for_lookup().list(listed).await?;
        let hidden = listed
            .matching(uri)
            .filter(|item| item.kind() == kind && !self.is_visible(&ask.caller, item));
        Ok(hidden.map(|item| item.origin.server.clone()).collect())
    }

    /// Marks the resources that are files of hidden skills as hidden.
    async fn hide_skill_files(
        &self,
        next: &Next<'_>,
        caller: &Caller,
        resources: &Catalog,
        sees: &mut [bool],
    ) -> Result<(), Error> {
        let skills = ListRequest::all(caller.clone(), ItemKind::Skill);
        let skills = next.fork_for_lookup().list(skills).await?;
        let hidden = skills
            .items()
            .iter()
            .filter(|s| !self.is_visible(caller, s));
        for skill in hidden {
            for (resource, sees) in resources.items().iter().zip(sees.iter_mut()) {
                let uri = resource.def.name();
                let own = resource.origin.server == skill.origin.server;
                *sees &= !(own && (skill.matches_uri(uri) || skill.def.name() == uri));
            }
        }
        Ok(())
    }

    /// Returns the rule that hides the resource at this URI of a template or skill, and its reason.
    pub(crate) fn hiding_rule_at(
        &self,
        caller: &Caller,
        item: &Item,
        uri: &str,
    ) -> Option<(&'static str, String)> {
        let whole = !matches!(item.kind(), ItemKind::Template | ItemKind::Skill);
        if whole || item.def.name() == uri {
            return None;
        }
        let mut rules = self.rules.iter();
        rules.find_map(|rule| Some((rule.name(), rule.hidden_uri_reason(caller, item, uri)?)))
    }

    /// Returns true if a rule may hide items from one caller that another caller sees.
    fn may_hide_items(&self) -> bool {
        self.rules.iter().any(|rule| rule.may_hide_items())
    }

    /// Returns true if every rule lets a caller that sees the item subscribe to it under that URI.
    fn allows_subscription(&self, item: &Item, uri: &str) -> bool {
        self.rules
            .iter()
            .all(|rule| rule.allows_subscription(item, uri))
    }

    /// Returns the catalog without missing servers of which the caller may not know.
    fn without_hidden_servers(&self, caller: &Caller, catalog: Catalog) -> Catalog {
        let sees = |server: &String| {
            let mut rules = self.rules.iter();
            rules.all(|rule| rule.is_server_visible(caller, server))
        };
        if catalog.missing_servers().iter().all(sees) {
            return catalog;
        }
        let missing = catalog.missing_servers().iter().filter(|s| sees(s));
        let missing = missing.cloned().collect();
        catalog.with_missing(missing)
    }

    /// Returns the item at a URI, as this caller sees it.
    async fn find_resource(
        &self,
        next: &Next<'_>,
        caller: &Caller,
        uri: &str,
    ) -> Result<Option<Arc<Item>>, Error> {
        for kind in Op::Resource.kinds() {
            let ask = ListRequest::one(caller.clone(), *kind, uri);
            let catalog = next.fork_for_lookup().list(ask.clone()).await?;
            let seen = self.list_one(next, &ask, catalog, uri).await?;
            if let Some(item) = seen.find(uri).filter(|item| item.withheld.is_none()) {
                return Ok(Some(item.clone()));
            }
        }
        Ok(None)
    }

    /// Evaluates the rules in order: stops at the first refusal, and collects the reasons of all rules that require
    /// approval.
    async fn evaluate_rules(&self, call: &Call, item: &Item) -> Result<Vec<String>, Error> {
        let mut reasons = Vec::new();
        for rule in &self.rules {
            let verdict = match rule.decide(call, item) {
                MaybeReady::Ready(verdict) => verdict,
                MaybeReady::Pending(verdict) => verdict.await,
            };
            match verdict {
                RuleDecision::Allow => {}
                RuleDecision::Ask(reason) => {
                    call.decision_log.add(rule.name(), "ask", reason.as_str());
                    add_decision_event(call, rule.name(), "ask");
                    reasons.push(reason);
                }
                RuleDecision::Deny(error) => {
                    call.decision_log
                        .add(rule.name(), "refuse", error.public_message());
                    add_decision_event(call, rule.name(), "deny");
                    return Err(error);
                }
            }
        }
        Ok(reasons)
    }

    /// Requests the approval of a call, if there are reasons that require one.
    async fn approve(
        &self,
        call: &Call,
        item: &Arc<Item>,
        reasons: Vec<String>,
    ) -> Result<ApprovalOutcome, Error> {
        match &self.approval_step {
            _ if reasons.is_empty() => Ok(ApprovalOutcome::Approved { slot: None }),
            Some(confirm) => confirm.request_approval(call, item, reasons).await,
            None => Err(Error::new(
                ErrorKind::Refused(RefusalReason::Rule),
                "refused: this call requires the approval of a person, but no approver is available here; ask the operator to allow the call without approval",
            )),
        }
    }
}

impl RuleLayer {
    /// Evaluates the rules for arguments that an approver wrote. The approver is the person to ask, so approval is not
    /// requested again.
    async fn evaluate_edited(
        &self,
        call: &mut Call,
        item: &Item,
        arguments: Json,
    ) -> Result<(), Error> {
        call.invocation.arguments = CallArguments::new(arguments);
        let judged = self.evaluate_rules(call, item).await;
        judged.map(drop).map_err(|error| {
            let text = format!(
                "an approver changed the arguments of this call, and the changed call was rejected: {}",
                error.public_message()
            );
            Error::new(error.kind().clone(), text)
        })
    }
}

/// Adds the decision of a rule to the span of the call, without its reason, which may quote the call.
fn add_decision_event(call: &Call, policy: &'static str, decision: &'static str) {
    if let Some(span) = &call.span {
        let attributes = [
            ("toolgate.decision", SpanEventValue::Text(decision)),
            ("toolgate.policy", SpanEventValue::Text(policy)),
        ];
        span.add_event("toolgate.decision", &attributes);
    }
}

/// Returns the more specific kinds that take precedence over this kind and hide it if they are hidden.
fn more_specific_kinds(kind: ItemKind) -> &'static [ItemKind] {
    match kind {
        ItemKind::Template => &[ItemKind::Skill, ItemKind::Resource],
        ItemKind::Resource => &[ItemKind::Skill],
        ItemKind::Tool | ItemKind::Prompt | ItemKind::Skill => &[],
    }
}

/// Verifies, just before the call is sent, that the item is still the one that was approved.
async fn verify_unchanged(next: &Next<'_>, call: &Call, item: &Item) -> Result<(), Error> {
    let ask = ListRequest::one(call.caller.clone(), item.kind(), call.name());
    let catalog = next.fork_for_lookup().list(ask).await?;
    let mut now = catalog.matching(call.name());
    let is = |now: &Arc<Item>| now.origin == item.origin && now.def.json() == item.def.json();
    if now.any(|now| is(now) && now.withheld.is_none()) {
        return Ok(());
    }
    call.decision_log.add(
        "confirm",
        "refuse",
        "the definition was changed, withheld or removed after the approval",
    );
    let text = format!(
        "refused: the definition of this {0} was changed, withheld or removed after a person approved the call; list the {0}s again before you repeat the call",
        item.kind().as_str()
    );
    Err(Error::new(
        ErrorKind::Refused(RefusalReason::Approver),
        text,
    ))
}

impl Layer for RuleLayer {
    fn name(&self) -> &'static str {
        "gate"
    }

    fn list<'a>(
        &'a self,
        ask: ListRequest,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Catalog, Error>> {
        Box::pin(async move {
            if let Some(name) = ask.only_name.clone() {
                return match next.fork_for_lookup().list(ask.clone()).await {
                    Ok(catalog) if self.shows_named(&ask, &catalog, &name) => Ok(catalog),
                    // Boxed, so that the future of a lookup is small.
                    Ok(catalog) => Box::pin(self.list_one(&next, &ask, catalog, &name)).await,
                    Err(error) if !error.starting_servers().is_empty() => {
                        self.starting_error(&ask, &name, error)
                    }
                    Err(error) => Err(error),
                };
            }
            let (caller, kind) = (ask.caller.clone(), ask.kind);
            let catalog = next.fork_for_lookup().list(ask).await?;
            let some = self.may_hide_items();
            let items = catalog.items().iter();
            let mut sees: Vec<bool> = items.map(|i| self.is_visible(&caller, i)).collect();
            if kind == ItemKind::Resource && !catalog.items().is_empty() {
                Box::pin(self.hide_skill_files(&next, &caller, &catalog, &mut sees)).await?;
            }
            let public = catalog.cache_hint().public && !some;
            let catalog = self.without_hidden_servers(&caller, catalog);
            if public == catalog.cache_hint().public && sees.iter().all(|sees| *sees) {
                return Ok(catalog);
            }
            Ok(self.visibility_cache.filtered(&catalog, sees, public))
        })
    }

    /// Subscribes to changes of visible resources only.
    fn changes<'a>(
        &'a self,
        mut want: ChangeFilter,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<ChangeStream, Error>> {
        Box::pin(async move {
            let mut seen = Vec::new();
            for uri in std::mem::take(&mut want.uris) {
                let item = self.find_resource(&next, &want.caller, &uri).await?;
                if let Some(item) = item.filter(|item| self.allows_subscription(item, &uri)) {
                    want.owners.insert(uri.clone(), item.origin.server.clone());
                    seen.push(uri);
                }
            }
            want.uris = seen;
            // Subscribers may share one upstream source, so the caller's filter is applied here.
            Ok(next.changes(want.clone()).await?.filtered(&want))
        })
    }

    fn call<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let Some(item) = call.item().cloned() else {
                return Err(call.unknown_item_error());
            };
            let mut edited = false;
            let reasons = self.evaluate_rules(&call, &item).await?;
            let asked = !reasons.is_empty();
            let slot = match self.approve(&call, &item, reasons).await? {
                ApprovalOutcome::InputRequired(questions) => {
                    return Ok(Outcome::InputRequired(questions));
                }
                ApprovalOutcome::Approved { slot } => slot,
                ApprovalOutcome::ApprovedWithEdits { slot, arguments } => {
                    Box::pin(self.evaluate_edited(&mut call, &item, arguments)).await?;
                    edited = true;
                    slot
                }
            };
            if let Some(slot) = &slot {
                Box::pin(verify_unchanged(&next, &call, &item)).await?;
                // A task that continues this call later runs under the same approval.
                call.round
                    .slots
                    .insert(CONFIRM_SLOT.to_owned(), slot.clone());
            }
            let mut outcome = next.call(call).await?;
            if let (Outcome::InputRequired(questions), Some(slot)) = (&mut outcome, slot) {
                questions.slots.insert(CONFIRM_SLOT.to_owned(), slot);
            }
            match &mut outcome {
                Outcome::Done(Output::Tool(result)) if edited => {
                    // The model sent other arguments and must not take this for the answer to those.
                    result.add_structured_as_text();
                    result.content.push(Content::text(placeholder::EDITED));
                }
                // The decision holds for this caller only, so a shared cache must not store the contents.
                Outcome::Done(Output::Resource(read)) if asked || self.may_hide_items() => {
                    read.hint.public = false;
                }
                _ => {}
            }
            Ok(outcome)
        })
    }
}
