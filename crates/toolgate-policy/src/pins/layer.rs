//! Layer that observes definitions, and rule that hides definitions that are not accepted.

use super::{
    Pins, canonical, confusables,
    confusables::ToolNameIndex,
    observe::{ObserveOutcome, ObservedDefinition},
};
use futures_util::{StreamExt, stream};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use toolgate_core::{
    BoxFuture, Call, Caller, Catalog, ChangeFilter, ChangeStream, DefinitionPin, Error, Item,
    ItemKind, Layer, ListRequest, MaybeReady, Next, Outcome, PinState, Rule, RuleDecision,
};

/// Layer that observes every definition before other layers sanitize or rename it.
///
/// It stores new definitions and writes the pin state on each item. [`PinRule`] reads that state.
pub(crate) struct PinObserver {
    pins: Pins,
    /// True if this layer stores new definitions. Otherwise they stay hidden until another process stores them.
    stores_new: bool,
    last: [Mutex<Option<LastMarkedList>>; ItemKind::ALL.len()],
    /// Held while a new list of a kind is marked. Otherwise, each of many parallel calls to a new server would store all
    /// definitions of the server, and together fill the queue of the store.
    marking: [tokio::sync::Mutex<()>; ItemKind::ALL.len()],
}

/// Cache of the last list and its marked copy.
#[derive(Clone)]
struct LastMarkedList {
    from: Catalog,
    generation: u64,
    to: Catalog,
}

impl PinObserver {
    pub(crate) fn new(pins: Pins, keeps: bool) -> PinObserver {
        PinObserver {
            pins,
            stores_new: keeps,
            last: Default::default(),
            marking: Default::default(),
        }
    }

    async fn mark_list(&self, kind: ItemKind, from: Catalog) -> Catalog {
        match self.marked(kind, &from) {
            Some(to) => to,
            // Boxed, because it is rare: the future of a call stays small.
            None => Box::pin(self.mark_new_list(kind, from)).await,
        }
    }

    /// Returns the marked copy of a list that has not changed since it was marked.
    fn marked(&self, kind: ItemKind, from: &Catalog) -> Option<Catalog> {
        let generation = self.pins.table.refresh();
        let last = self.last(kind);
        let same = |last: &&LastMarkedList| {
            last.generation == generation && last.from.is_same_snapshot(from)
        };
        last.as_ref().filter(same).map(|last| last.to.clone())
    }

    async fn mark_new_list(&self, kind: ItemKind, from: Catalog) -> Catalog {
        let _one = self.marking[kind as usize].lock().await;
        // A parallel request may have marked it meanwhile.
        if let Some(to) = self.marked(kind, &from) {
            return to;
        }
        let last = self.last(kind).clone();
        let things = self.observed_definitions(&from);
        let seen = match self.stores_new {
            true => self.observe_all(&things).await,
            false => Vec::new(),
        };
        // Read before marking: a decision made in the meantime is applied at the next list.
        let generation = self.pins.table.refresh();
        let failed: HashMap<&str, &Error> = things
            .iter()
            .zip(&seen)
            .filter_map(|(thing, seen)| Some((&*thing.key, seen.as_ref().err()?)))
            .collect();
        let to = self.marked_list(&from, &failed, last.as_ref());
        if failed.is_empty() {
            let (from, to) = (from, to.clone());
            let last = LastMarkedList {
                from,
                generation,
                to,
            };
            *self.last(kind) = Some(last);
        }
        to
    }

    /// Returns all definitions of a list that are pinned.
    fn observed_definitions(&self, from: &Catalog) -> Vec<ObservedDefinition> {
        let listed = from.items().iter().filter(|item| !is_unlisted(item));
        let items = listed.map(|item| self.pins.observed_item(item));
        let words = from
            .server_instructions()
            .iter()
            .map(|about| self.pins.observed_instructions(about));
        items.chain(words).collect()
    }

    /// Stores new definitions concurrently, so that they share one wait for the disk.
    async fn observe_all(
        &self,
        things: &[ObservedDefinition],
    ) -> Vec<Result<ObserveOutcome, Error>> {
        const MAX_CONCURRENT_WRITES: usize = 128;
        let mut each: Vec<BoxFuture<'_, Result<ObserveOutcome, Error>>> = Vec::new();
        for thing in things {
            each.push(Box::pin(self.pins.observe(thing)));
        }
        stream::iter(each)
            .buffered(MAX_CONCURRENT_WRITES)
            .collect()
            .await
    }

    fn marked_list(
        &self,
        from: &Catalog,
        failed: &HashMap<&str, &Error>,
        last: Option<&LastMarkedList>,
    ) -> Catalog {
        let before = last.map(|last| last.by_origin()).unwrap_or_default();
        let mut pins: Vec<DefinitionPin> =
            from.items().iter().map(|i| self.pin(i, failed)).collect();
        self.flag(from.items(), &mut pins);
        let items = from.items().iter().zip(pins).map(|(item, pin)| {
            let old = before.get(&Arc::as_ptr(item));
            match old.filter(|old| old.pin.as_deref() == Some(&pin)) {
                Some(old) => Arc::clone(old),
                None => Arc::new(item.with_pin(Arc::new(pin))),
            }
        });
        let about = from.server_instructions().iter().filter(|about| {
            let thing = self.pins.observed_instructions(about);
            !failed.contains_key(&*thing.key) && self.pins.judge(&thing).1.is_none()
        });
        let about = about.cloned().collect();
        from.with_items(items.collect())
            .with_server_instructions(about)
    }

    fn pin(&self, item: &Arc<Item>, failed: &HashMap<&str, &Error>) -> DefinitionPin {
        if is_unlisted(item) {
            return DefinitionPin::unlisted();
        }
        let digest = canonical::digest(item);
        let thing = self.pins.observed_item(item);
        let (state, hidden) = match failed.get(&*thing.key) {
            Some(error) => {
                let why = format!("its pin cannot be stored: {}", error.public_message());
                (PinState::New, Some(why))
            }
            None => self.pins.judge(&thing),
        };
        let mut pin = DefinitionPin::new(digest, state);
        pin.hidden_reason = hidden.map(Arc::from);
        pin
    }

    /// Flags confusable names, and texts that mention tools of other servers.
    fn flag(&self, items: &[Arc<Item>], pins: &mut [DefinitionPin]) {
        let hide = self.pins.on_confusable == super::ConfusableNameAction::Hide;
        for confusables::ConfusablePair(a, b) in confusables::confusable_pairs(items) {
            for (one, other) in [(a, b), (b, a)] {
                let text = format!("its name looks like {}", items[other].full_name());
                if hide && pins[one].hidden_reason.is_none() {
                    pins[one].hidden_reason = Some(text.as_str().into());
                }
                pins[one].review_flags.push(text);
            }
        }
        let Some(first) = items.first() else { return };
        if items
            .iter()
            .any(|item| item.origin.server != first.origin.server)
        {
            let names = ToolNameIndex::of(items);
            for (item, pin) in items.iter().zip(&mut *pins) {
                let json = item.def.json().canonical();
                let foreign = names.mentions(&json, &item.origin.server);
                let flags = foreign.iter().map(|name| {
                    format!("its definition mentions {name}, which is a tool of another server")
                });
                pin.review_flags.extend(flags);
            }
        }
        if self.stores_new {
            let flagged = items
                .iter()
                .zip(pins)
                .filter(|(_, pin)| !pin.review_flags.is_empty());
            flagged.for_each(|(item, pin)| self.pins.report_flags(item, pin));
        }
    }

    fn last(&self, kind: ItemKind) -> MutexGuard<'_, Option<LastMarkedList>> {
        let last = &self.last[kind as usize];
        last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reports whether the gateway made the item for a URI that no list contains.
fn is_unlisted(item: &Item) -> bool {
    item.pin.as_ref().is_some_and(|pin| pin.is_unlisted())
}

impl LastMarkedList {
    fn by_origin(&self) -> HashMap<*const Item, &Arc<Item>> {
        let origins = self.from.items().iter().map(Arc::as_ptr);
        origins.zip(self.to.items()).collect()
    }
}

impl Layer for PinObserver {
    fn name(&self) -> &'static str {
        "pins"
    }

    fn list<'a>(
        &'a self,
        ask: ListRequest,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Catalog, Error>> {
        let kind = ask.kind;
        Box::pin(async move { Ok(self.mark_list(kind, next.list(ask).await?).await) })
    }

    /// Judges the pin again: the call may have waited for an approval since its definition was listed.
    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        self.pins.table.refresh();
        let item = call
            .item()
            .and_then(|item| Some((item, item.pin.as_ref()?)));
        let why = item.and_then(|(item, pin)| self.pins.hidden_reason(item, pin));
        match why {
            None => next.call(call),
            Some(why) => {
                call.decision_log.add("pins", "hide", why);
                Box::pin(async move { Err(call.unknown_item_error()) })
            }
        }
    }

    /// Merges list changes of the servers with those that pin decisions cause.
    fn changes<'a>(
        &'a self,
        want: ChangeFilter,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<ChangeStream, Error>> {
        Box::pin(async move {
            let mut lists = want.clone();
            lists.uris = Vec::new();
            lists.owners = Default::default();
            let theirs = next.changes(want).await?;
            let ours = ChangeStream::new(self.pins.table.stale.subscribe());
            Ok(theirs.merged_with(ours.filtered(&lists)))
        })
    }
}

/// Rule that hides and denies every item whose definition is not accepted (pinned).
///
/// It reads the state that the pin layer at the end of the pipeline wrote on the item. Items without a state are
/// hidden.
#[derive(Clone, Copy, Debug, Default)]
pub struct PinRule;

/// Returns the reason why an item is hidden from callers by its pin, or `None`.
#[doc(hidden)]
pub fn hidden_reason(item: &Item) -> Option<&str> {
    match &item.pin {
        Some(pin) => pin.hidden_reason.as_deref(),
        None => Some("its definition was not checked against its pin"),
    }
}

impl Rule for PinRule {
    fn name(&self) -> &'static str {
        "pins"
    }

    /// A definition is hidden from all callers equally.
    fn may_hide_items(&self) -> bool {
        false
    }

    fn is_visible(&self, _: &Caller, item: &Item) -> bool {
        hidden_reason(item).is_none()
    }

    fn hidden_reason(&self, _: &Caller, item: &Item) -> String {
        hidden_reason(item).unwrap_or_default().to_owned()
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        // Accepted definitions are not logged.
        if let Some(pin) = item.pin.as_ref().filter(|p| p.state != PinState::Accepted) {
            let digest = pin.digest.get(..12).unwrap_or_default();
            call.decision_log.add("pins", pin.state.as_str(), digest);
        }
        MaybeReady::Ready(RuleDecision::Allow)
    }
}
