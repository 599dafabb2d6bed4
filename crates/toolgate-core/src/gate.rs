//! Rules, and the layer that evaluates them all before a call and requests approval if a rule asks for it.

use crate::cuts::VisibilityCache;
use crate::{
    BoxFuture, Call, CallArguments, Caller, Catalog, ChangeFilter, ChangeStream, Content, Error,
    ErrorKind, InputRequests, Item, ItemKind, Layer, ListRequest, Next, Op, Outcome, Output,
    RefusalReason,
};
use std::sync::Arc;
use toolgate_wire::{json::Json, placeholder};

/// Decision of a rule on a call.
#[derive(Debug)]
pub enum RuleDecision {
    /// Allows the call.
    Allow,
    /// Requires approval by a person, for this reason.
    Ask(String),
    /// Denies the call with this error.
    Refuse(Error),
}

/// A decision that is ready, or a future of one. Rules never wait for a person.
pub enum MaybeReady<'a> {
    /// The decision is ready.
    Now(RuleDecision),
    /// The decision has to be awaited.
    Later(BoxFuture<'a, RuleDecision>),
}

/// Rule that decides before a call. One layer evaluates all rules, for lists and calls alike.
pub trait Rule: Send + Sync + 'static {
    /// Name of the rule's policy, one word.
    fn name(&self) -> &'static str;

    /// Returns true if the caller may know of the item. To this caller a hidden item does not exist.
    fn sees(&self, _caller: &Caller, _item: &Item) -> bool {
        true
    }

    /// Returns true if the rule may hide items from one caller that another caller sees. Lists are then cacheable for
    /// one caller only, whatever the server's cache hint says.
    fn hides_some(&self) -> bool {
        true
    }

    /// Reason why the item is hidden: for the audit log, never for the caller.
    fn why_hidden(&self, _caller: &Caller, _item: &Item) -> String {
        String::new()
    }

    /// Reason why the resource at a URI is hidden although the template that matches it is visible: for the audit log.
    fn hides_at(&self, _caller: &Caller, _template: &Item, _uri: &str) -> Option<String> {
        None
    }

    /// Returns true if a caller that may read the resource at a URI may also subscribe to it.
    fn hears(&self, _item: &Item, _uri: &str) -> bool {
        true
    }

    /// Decides a call.
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

    fn sees(&self, caller: &Caller, item: &Item) -> bool {
        self.as_ref().sees(caller, item)
    }

    fn hides_some(&self) -> bool {
        self.as_ref().hides_some()
    }

    fn why_hidden(&self, caller: &Caller, item: &Item) -> String {
        self.as_ref().why_hidden(caller, item)
    }

    fn hides_at(&self, caller: &Caller, template: &Item, uri: &str) -> Option<String> {
        self.as_ref().hides_at(caller, template, uri)
    }

    fn hears(&self, item: &Item, uri: &str) -> bool {
        self.as_ref().hears(item, uri)
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        self.as_ref().decide(call, item)
    }

    fn explain<'a>(&'a self, call: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        self.as_ref().explain(call, item)
    }
}

/// Approval step for calls that rules leave to a person. It never waits itself: only edges wait.
pub trait ApprovalStep: Send + Sync + 'static {
    /// Requests one approval for all reasons, or redeems one that was given.
    fn confirm<'a>(
        &'a self,
        call: &'a Call,
        item: &'a Arc<Item>,
        reasons: Vec<String>,
    ) -> BoxFuture<'a, Result<ApprovalOutcome, Error>>;

    /// Describes, for a dry run, who would be asked.
    fn explain(&self, _call: &Call, _item: &Item) -> String {
        "a person is asked for approval".to_owned()
    }
}

/// Result of the approval step.
#[derive(Debug)]
pub enum ApprovalOutcome {
    /// The call is approved, now or earlier, with state for the next round.
    Yes {
        /// State for the slot `confirm`.
        slot: Option<String>,
    },
    /// The approver changed the arguments; all rules evaluate them again.
    Edited {
        /// State for the slot `confirm`.
        slot: Option<String>,
        /// Arguments that the approver wrote.
        arguments: Json,
    },
    /// Input requests to an approver have to be answered first.
    Ask(InputRequests),
}

/// Name of the slot that [`ApprovalOutcome::Yes`] fills.
const CONFIRM_SLOT: &str = "confirm";

pub(crate) struct RuleLayer {
    pub(crate) rules: Vec<Box<dyn Rule>>,
    pub(crate) confirm: Option<Box<dyn ApprovalStep>>,
    pub(crate) cuts: VisibilityCache,
}

impl RuleLayer {
    pub(crate) fn sees(&self, caller: &Caller, item: &Item) -> bool {
        item.withheld.is_none() && self.rules.iter().all(|rule| rule.sees(caller, item))
    }

    /// Returns the rule that hides the item, and its reason.
    pub(crate) fn hides(&self, caller: &Caller, item: &Item) -> Option<(&'static str, String)> {
        if let Some(why) = &item.withheld {
            return Some((self.name(), why.clone()));
        }
        let rule = self.rules.iter().find(|rule| !rule.sees(caller, item))?;
        Some((rule.name(), rule.why_hidden(caller, item)))
    }

    /// Returns true if all rules let the caller know of the item, even if the item is withheld.
    fn knows(&self, caller: &Caller, item: &Item, uri: &str) -> bool {
        let sees = self.rules.iter().all(|rule| rule.sees(caller, item));
        sees && self.hides_at(caller, item, uri).is_none()
    }

    /// Returns a catalog of the one item, or an empty one if it is hidden; the decision log records why. If a matching
    /// template is hidden, a visible one may still match. A withheld item that no rule hides is returned with its
    /// reason.
    async fn one(
        &self,
        next: &Next<'_>,
        ask: &ListRequest,
        catalog: Catalog,
        name: &str,
    ) -> Result<Catalog, Error> {
        let mut hidden = Vec::new();
        for kind in above(ask.kind) {
            let listed = self.hidden_listing(next, ask, (&catalog, *kind), name);
            hidden.extend(listed.await?);
        }
        let mut hiding: Vec<&str> = hidden.iter().map(|server| server.as_ref()).collect();
        let mut withheld = None;
        for item in catalog.fitting(name) {
            let at = || self.hides_at(&ask.caller, item, name);
            if let Some((by, why)) = self.hides(&ask.caller, item).or_else(at) {
                ask.trail.add(by, "hide", why);
                hiding.push(&item.origin.server);
                let told = item.withheld_for_callers().is_some();
                let known = told && self.knows(&ask.caller, item, name);
                withheld = withheld.or(known.then_some(item));
            }
        }
        if hiding.is_empty() {
            return Ok(catalog);
        }
        // A server that hides one of the matching items may interpret the URI as the hidden one, so all of its items
        // are excluded.
        let mut fitting = catalog.fitting(name);
        let other = fitting.find(|item| !hiding.contains(&item.origin.server.as_ref()));
        // The caller may learn why the item is not offered, unless a rule hides something at this URI.
        let other = other.or(withheld.filter(|_| hidden.is_empty()));
        Ok(catalog.with_items(other.cloned().into_iter().collect()))
    }

    /// Returns the servers that list a hidden item of a more specific kind at a URI that `below` matches. A read
    /// through the less specific item would reach the hidden one: a resource below a template, a skill below both.
    async fn hidden_listing(
        &self,
        next: &Next<'_>,
        ask: &ListRequest,
        (below, kind): (&Catalog, ItemKind),
        uri: &str,
    ) -> Result<Vec<Arc<str>>, Error> {
        if below.fitting(uri).next().is_none() {
            return Ok(Vec::new());
        }
        let listed = ListRequest::one(ask.caller.clone(), kind, uri);
        let listed = next.fork().list(listed).await?;
        let hidden = listed
            .fitting(uri)
            .filter(|item| item.kind() == kind && !self.sees(&ask.caller, item));
        Ok(hidden.map(|item| item.origin.server.clone()).collect())
    }

    /// Marks the resources that are files of hidden skills as hidden.
    async fn without_skills(
        &self,
        next: &Next<'_>,
        caller: &Caller,
        resources: &Catalog,
        sees: &mut [bool],
    ) -> Result<(), Error> {
        let skills = ListRequest::all(caller.clone(), ItemKind::Skill);
        let skills = next.fork().list(skills).await?;
        let hidden = skills.items().iter().filter(|s| !self.sees(caller, s));
        for skill in hidden {
            for (resource, sees) in resources.items().iter().zip(sees.iter_mut()) {
                let uri = resource.def.name();
                let own = resource.origin.server == skill.origin.server;
                *sees &= !(own && (skill.has(uri) || skill.def.name() == uri));
            }
        }
        Ok(())
    }

    /// Returns the rule that hides the resource at this URI of a template or skill, and its reason.
    pub(crate) fn hides_at(
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
        rules.find_map(|rule| Some((rule.name(), rule.hides_at(caller, item, uri)?)))
    }

    /// Returns true if every rule lets a caller that sees the item subscribe to it under that URI.
    fn hears(&self, item: &Item, uri: &str) -> bool {
        self.rules.iter().all(|rule| rule.hears(item, uri))
    }

    /// Returns the item at a URI, as this caller sees it.
    async fn find(
        &self,
        next: &Next<'_>,
        caller: &Caller,
        uri: &str,
    ) -> Result<Option<Arc<Item>>, Error> {
        for kind in Op::Resource.kinds() {
            let ask = ListRequest::one(caller.clone(), *kind, uri);
            let catalog = next.fork().list(ask.clone()).await?;
            let seen = self.one(next, &ask, catalog, uri).await?;
            if let Some(item) = seen.find(uri).filter(|item| item.withheld.is_none()) {
                return Ok(Some(item.clone()));
            }
        }
        Ok(None)
    }

    /// Evaluates the rules in order: stops at the first refusal, and collects the reasons of all rules that require
    /// approval.
    async fn judge(&self, call: &Call, item: &Item) -> Result<Vec<String>, Error> {
        let mut reasons = Vec::new();
        for rule in &self.rules {
            let verdict = match rule.decide(call, item) {
                MaybeReady::Now(verdict) => verdict,
                MaybeReady::Later(verdict) => verdict.await,
            };
            match verdict {
                RuleDecision::Allow => {}
                RuleDecision::Ask(reason) => {
                    call.trail.add(rule.name(), "ask", reason.as_str());
                    reasons.push(reason);
                }
                RuleDecision::Refuse(error) => {
                    call.trail.add(rule.name(), "refuse", error.public());
                    return Err(error);
                }
            }
        }
        Ok(reasons)
    }

    async fn settle(&self, call: &Call, item: &Arc<Item>) -> Result<ApprovalOutcome, Error> {
        let reasons = self.judge(call, item).await?;
        match &self.confirm {
            _ if reasons.is_empty() => Ok(ApprovalOutcome::Yes { slot: None }),
            Some(confirm) => confirm.confirm(call, item, reasons).await,
            None => Err(Error::new(
                ErrorKind::Refused(RefusalReason::Rule),
                "refused: this call requires approval by a person, and approvals are not available here",
            )),
        }
    }
}

impl RuleLayer {
    /// Evaluates the rules for arguments that an approver wrote. The approver is the person to ask, so approval is not
    /// requested again.
    async fn rejudge(&self, call: &mut Call, item: &Item, arguments: Json) -> Result<(), Error> {
        call.of.arguments = CallArguments::new(arguments);
        let judged = self.judge(call, item).await;
        judged.map(drop).map_err(|error| {
            let text = format!(
                "an approver changed the arguments of this call, and the changed call failed: {}",
                error.public()
            );
            Error::new(error.kind().clone(), text)
        })
    }
}

/// Returns the more specific kinds that take precedence over this kind and hide it if they are hidden.
fn above(kind: ItemKind) -> &'static [ItemKind] {
    match kind {
        ItemKind::Template => &[ItemKind::Skill, ItemKind::Resource],
        ItemKind::Resource => &[ItemKind::Skill],
        ItemKind::Tool | ItemKind::Prompt | ItemKind::Skill => &[],
    }
}

/// Verifies, just before the call is sent, that the item is still the one that was approved.
async fn same(next: &Next<'_>, call: &Call, item: &Item) -> Result<(), Error> {
    let ask = ListRequest::one(call.caller.clone(), item.kind(), call.name());
    let catalog = next.fork().list(ask).await?;
    let mut now = catalog.fitting(call.name());
    let is = |now: &Arc<Item>| now.origin == item.origin && now.def.json() == item.def.json();
    if now.any(|now| is(now) && now.withheld.is_none()) {
        return Ok(());
    }
    call.trail.add(
        "confirm",
        "refuse",
        "the definition changed after the approval",
    );
    let text = "refused: the definition changed after a person approved the call; call it again";
    Err(Error::new(ErrorKind::Refused(RefusalReason::Person), text))
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
            let (caller, only) = (ask.caller.clone(), ask.only.clone());
            if let Some(name) = &only {
                return match next.fork().list(ask.clone()).await {
                    Ok(catalog) => self.one(&next, &ask, catalog, name).await,
                    Err(error) if !error.starting().is_empty() => {
                        self.while_starting(&ask, name, error)
                    }
                    Err(error) => Err(error),
                };
            }
            let kind = ask.kind;
            let catalog = next.fork().list(ask).await?;
            let some = self.rules.iter().any(|rule| rule.hides_some());
            let items = catalog.items().iter();
            let mut sees: Vec<bool> = items.map(|i| self.sees(&caller, i)).collect();
            if kind == ItemKind::Resource && !catalog.items().is_empty() {
                self.without_skills(&next, &caller, &catalog, &mut sees)
                    .await?;
            }
            let public = catalog.hint().public && !some;
            if public == catalog.hint().public && sees.iter().all(|sees| *sees) {
                return Ok(catalog);
            }
            Ok(self.cuts.cut(&catalog, sees, public))
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
                let item = self.find(&next, &want.caller, &uri).await?;
                if let Some(item) = item.filter(|item| self.hears(item, &uri)) {
                    want.owners.insert(uri.clone(), item.origin.server.clone());
                    seen.push(uri);
                }
            }
            want.uris = seen;
            // Subscribers may share one upstream source, so the caller's filter is applied here.
            Ok(next.changes(want.clone()).await?.only(&want))
        })
    }

    fn call<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let Some(item) = call.item().cloned() else {
                return Err(call.unknown());
            };
            let mut edited = false;
            let slot = match self.settle(&call, &item).await? {
                ApprovalOutcome::Ask(questions) => return Ok(Outcome::Ask(questions)),
                ApprovalOutcome::Yes { slot } => slot,
                ApprovalOutcome::Edited { slot, arguments } => {
                    Box::pin(self.rejudge(&mut call, &item, arguments)).await?;
                    edited = true;
                    slot
                }
            };
            if let Some(slot) = &slot {
                Box::pin(same(&next, &call, &item)).await?;
                // A task that continues this call later runs under the same approval.
                call.round
                    .slots
                    .insert(CONFIRM_SLOT.to_owned(), slot.clone());
            }
            let mut outcome = next.call(call).await?;
            if let (Outcome::Ask(questions), Some(slot)) = (&mut outcome, slot) {
                questions.slots.insert(CONFIRM_SLOT.to_owned(), slot);
            }
            if let (Outcome::Done(Output::Tool(result)), true) = (&mut outcome, edited) {
                // The model sent other arguments and must not take this for the answer to those.
                result.add_structured_as_text();
                result.content.push(Content::text(placeholder::EDITED));
            }
            Ok(outcome)
        })
    }
}
