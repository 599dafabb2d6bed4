//! Rules decide before a call; one layer asks them all and lets a person settle what they leave open.

use crate::cuts::Cuts;
use crate::{
    Arguments, BoxFuture, Call, Caller, Catalog, Changes, Content, Error, Interest, Item, ItemKind,
    Kind, Layer, List, Next, Op, Outcome, Output, Questions, Refusal,
};
use std::sync::Arc;
use toolgate_wire::{json::Json, placeholder};

/// What a rule says to a call.
#[derive(Debug)]
pub enum Verdict {
    /// It may pass.
    Allow,
    /// A person has to look, for this reason.
    Ask(String),
    /// It may not pass.
    Refuse(Error),
}

/// A verdict now, or one that has to be waited for. Never waits for a person.
pub enum Decision<'a> {
    /// Now.
    Now(Verdict),
    /// Later.
    Later(BoxFuture<'a, Verdict>),
}

/// Decides before the call. One generic layer asks it for lists and calls alike.
pub trait Rule: Send + Sync + 'static {
    /// The duty, one word.
    fn name(&self) -> &'static str;

    /// Whether the caller may know of the item at all. What it may not know, it is told not to exist.
    fn sees(&self, _caller: &Caller, _item: &Item) -> bool {
        true
    }

    /// Whether it may hide from one caller what another one sees. Where a rule does, a list is for one caller only,
    /// whatever its server says.
    fn hides_some(&self) -> bool {
        true
    }

    /// Why it may not know of it: for the record, never for the caller.
    fn why_hidden(&self, _caller: &Caller, _item: &Item) -> String {
        String::new()
    }

    /// Why it may not know of the resource at a URI that fits a template which it does see: for the record.
    fn hides_at(&self, _caller: &Caller, _template: &Item, _uri: &str) -> Option<String> {
        None
    }

    /// Whether a caller that may read the resource at a URI may also subscribe to it.
    fn hears(&self, _item: &Item, _uri: &str) -> bool {
        true
    }

    /// Judges a call.
    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> Decision<'a>;

    /// Judges a call that nobody makes, for whoever wants to know beforehand. It must have no effect: a rule whose
    /// `decide` has one says here what it would do.
    fn explain<'a>(&'a self, call: &'a Call, item: &'a Item) -> Decision<'a> {
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

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> Decision<'a> {
        self.as_ref().decide(call, item)
    }

    fn explain<'a>(&'a self, call: &'a Call, item: &'a Item) -> Decision<'a> {
        self.as_ref().explain(call, item)
    }
}

/// Settles what rules left open. Never waits itself: only edges wait.
pub trait Confirm: Send + Sync + 'static {
    /// The reasons why somebody has to look, all of them, as one question.
    fn confirm<'a>(
        &'a self,
        call: &'a Call,
        item: &'a Arc<Item>,
        reasons: Vec<String>,
    ) -> BoxFuture<'a, Result<Confirmed, Error>>;

    /// Who would be asked, in words, for whoever wants to know beforehand.
    fn explain(&self, _call: &Call, _item: &Item) -> String {
        "a person is asked".to_owned()
    }
}

/// What became of the question.
#[derive(Debug)]
pub enum Confirmed {
    /// A person said yes, now or before. What to find again when the call comes back.
    Yes {
        /// Put into the slot `confirm`.
        slot: Option<String>,
    },
    /// A person said yes to other arguments, which every rule judges anew.
    Edited {
        /// Put into the slot `confirm`.
        slot: Option<String>,
        /// What he wrote.
        arguments: Json,
    },
    /// A person has to be asked first.
    Ask(Questions),
}

/// The name of the slot that [`Confirmed::Yes`] fills.
const SLOT: &str = "confirm";

pub(crate) struct Gate {
    pub(crate) rules: Vec<Box<dyn Rule>>,
    pub(crate) confirm: Option<Box<dyn Confirm>>,
    pub(crate) cuts: Cuts,
}

impl Gate {
    pub(crate) fn sees(&self, caller: &Caller, item: &Item) -> bool {
        item.withheld.is_none() && self.rules.iter().all(|rule| rule.sees(caller, item))
    }

    /// Who hides the item, and why.
    pub(crate) fn hides(&self, caller: &Caller, item: &Item) -> Option<(&'static str, String)> {
        if let Some(why) = &item.withheld {
            return Some((self.name(), why.clone()));
        }
        let rule = self.rules.iter().find(|rule| !rule.sees(caller, item))?;
        Some((rule.name(), rule.why_hidden(caller, item)))
    }

    /// Whether all rules let the caller know of the item, whatever withholds it.
    fn knows(&self, caller: &Caller, item: &Item, uri: &str) -> bool {
        let sees = self.rules.iter().all(|rule| rule.sees(caller, item));
        sees && self.hides_at(caller, item, uri).is_none()
    }

    /// The one item, or none if it is hidden; the trail takes down why. Where a hidden template fits, one that the
    /// caller sees may fit as well. An item that is withheld, and that no rule hides, is returned with the reason.
    async fn one(
        &self,
        next: &Next<'_>,
        ask: &List,
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
        // A server that hides one of those that fit may take the URI for the hidden one, whichever was meant.
        let mut fitting = catalog.fitting(name);
        let other = fitting.find(|item| !hiding.contains(&item.origin.server.as_ref()));
        // The caller may know why it is not offered, unless a rule hides something there.
        let other = other.or(withheld.filter(|_| hidden.is_empty()));
        Ok(catalog.with_items(other.cloned().into_iter().collect()))
    }

    /// The servers that list a hidden thing of that kind at a URI that something below fits, which would lead to the same:
    /// a resource below a template, a skill below both.
    async fn hidden_listing(
        &self,
        next: &Next<'_>,
        ask: &List,
        (below, kind): (&Catalog, ItemKind),
        uri: &str,
    ) -> Result<Vec<Arc<str>>, Error> {
        if below.fitting(uri).next().is_none() {
            return Ok(Vec::new());
        }
        let listed = List::one(ask.caller.clone(), kind, uri);
        let listed = next.fork().list(listed).await?;
        let hidden = listed
            .fitting(uri)
            .filter(|item| item.kind() == kind && !self.sees(&ask.caller, item));
        Ok(hidden.map(|item| item.origin.server.clone()).collect())
    }

    /// A list without the resources that are files of hidden skills.
    async fn without_skills(
        &self,
        next: &Next<'_>,
        caller: &Caller,
        resources: &Catalog,
        sees: &mut [bool],
    ) -> Result<(), Error> {
        let skills = List::all(caller.clone(), ItemKind::Skill);
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

    /// Who hides the resource that a template has there, and why.
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

    /// Whether every rule lets a caller who sees the item subscribe to it under that URI.
    fn hears(&self, item: &Item, uri: &str) -> bool {
        self.rules.iter().all(|rule| rule.hears(item, uri))
    }

    /// The item behind a URI, as this caller sees it.
    async fn find(
        &self,
        next: &Next<'_>,
        caller: &Caller,
        uri: &str,
    ) -> Result<Option<Arc<Item>>, Error> {
        for kind in Op::Resource.kinds() {
            let ask = List::one(caller.clone(), *kind, uri);
            let catalog = next.fork().list(ask.clone()).await?;
            let seen = self.one(next, &ask, catalog, uri).await?;
            if let Some(item) = seen.find(uri).filter(|item| item.withheld.is_none()) {
                return Ok(Some(item.clone()));
            }
        }
        Ok(None)
    }

    /// A refusal stops; every wish to ask is collected.
    async fn judge(&self, call: &Call, item: &Item) -> Result<Vec<String>, Error> {
        let mut reasons = Vec::new();
        for rule in &self.rules {
            let verdict = match rule.decide(call, item) {
                Decision::Now(verdict) => verdict,
                Decision::Later(verdict) => verdict.await,
            };
            match verdict {
                Verdict::Allow => {}
                Verdict::Ask(reason) => {
                    call.trail.add(rule.name(), "ask", reason.as_str());
                    reasons.push(reason);
                }
                Verdict::Refuse(error) => {
                    call.trail.add(rule.name(), "refuse", error.public());
                    return Err(error);
                }
            }
        }
        Ok(reasons)
    }

    async fn settle(&self, call: &Call, item: &Arc<Item>) -> Result<Confirmed, Error> {
        let reasons = self.judge(call, item).await?;
        match &self.confirm {
            _ if reasons.is_empty() => Ok(Confirmed::Yes { slot: None }),
            Some(confirm) => confirm.confirm(call, item, reasons).await,
            None => Err(Error::new(
                Kind::Refused(Refusal::Rule),
                "refused: a person would have to approve this call, and nobody can be asked here",
            )),
        }
    }
}

impl Gate {
    /// Judges the arguments that a person wrote. He is who would be asked, so wishes to ask are settled.
    async fn rejudge(&self, call: &mut Call, item: &Item, arguments: Json) -> Result<(), Error> {
        call.of.arguments = Arguments::new(arguments);
        let judged = self.judge(call, item).await;
        judged.map(drop).map_err(|error| {
            let text = format!(
                "a person changed the arguments of this call, and then: {}",
                error.public()
            );
            Error::new(error.kind().clone(), text)
        })
    }
}

/// The kinds of things that are looked for before that one, and that hide it where they are hidden.
fn above(kind: ItemKind) -> &'static [ItemKind] {
    match kind {
        ItemKind::Template => &[ItemKind::Skill, ItemKind::Resource],
        ItemKind::Resource => &[ItemKind::Skill],
        ItemKind::Tool | ItemKind::Prompt | ItemKind::Skill => &[],
    }
}

/// Whether the thing is still what a person said yes to: looked up once more, just before the call leaves.
async fn same(next: &Next<'_>, call: &Call, item: &Item) -> Result<(), Error> {
    let ask = List::one(call.caller.clone(), item.kind(), call.name());
    let catalog = next.fork().list(ask).await?;
    let mut now = catalog.fitting(call.name());
    let is = |now: &Arc<Item>| now.origin == item.origin && now.def.json() == item.def.json();
    if now.any(|now| is(now) && now.withheld.is_none()) {
        return Ok(());
    }
    call.trail.add("confirm", "refuse", "it changed meanwhile");
    let text = "refused: it changed after a person approved it; call it again";
    Err(Error::new(Kind::Refused(Refusal::Person), text))
}

impl Layer for Gate {
    fn name(&self) -> &'static str {
        "gate"
    }

    fn list<'a>(&'a self, ask: List, next: Next<'a>) -> BoxFuture<'a, Result<Catalog, Error>> {
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

    /// Nobody hears of changes of a resource that he may not see.
    fn changes<'a>(
        &'a self,
        mut want: Interest,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Changes, Error>> {
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
            // Below, all who listen may share one source: what this caller hears is cut here.
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
                Confirmed::Ask(questions) => return Ok(Outcome::Ask(questions)),
                Confirmed::Yes { slot } => slot,
                Confirmed::Edited { slot, arguments } => {
                    Box::pin(self.rejudge(&mut call, &item, arguments)).await?;
                    edited = true;
                    slot
                }
            };
            if let Some(slot) = &slot {
                Box::pin(same(&next, &call, &item)).await?;
                // Whoever goes on with the call later does so under the same yes.
                call.round.slots.insert(SLOT.to_owned(), slot.clone());
            }
            let mut outcome = next.call(call).await?;
            if let (Outcome::Ask(questions), Some(slot)) = (&mut outcome, slot) {
                questions.slots.insert(SLOT.to_owned(), slot);
            }
            if let (Outcome::Done(Output::Tool(result)), true) = (&mut outcome, edited) {
                // The model asked for something else, and should not take this for the answer to that.
                result.add_structured_as_text();
                result.content.push(Content::text(placeholder::EDITED));
            }
            Ok(outcome)
        })
    }
}
