//! Pins: a changed definition is hidden until an operator accepts it.
//!
//! A model reads definitions before a call is made or approved. Every definition is therefore pinned when it is first
//! seen, by the SHA-256 of its canonical form. This covers the whole definition of tools, resources, templates and
//! prompts, and the instructions of a server. A later definition that differs is hidden from callers and shown to the
//! operator as a list of differences.
//!
//! A pin belongs to a configured id *and* to the server's identity: its command or address. Another program under the
//! same id is another server, whose definitions are new.

mod canonical;
mod confusables;
mod diff;
mod event;
mod layer;
mod observe;
mod review;
mod row;
mod skeleton;
mod steering;
mod table;
#[cfg(test)]
mod tests;

use crate::{AuditRecorder, PerServer, StateStore};
pub(crate) use confusables::comparison_forms as shapes;
pub use diff::{DefinitionDifference, diff};
pub use event::{PinEvent, PinEventKind};
use layer::PinObserver;
pub use layer::{PinRule, hidden_reason};
pub use review::{PinError, PinView, PinnedText, StoredPin};
use std::{collections::HashMap, fmt, sync::Arc};
#[doc(hidden)]
pub use steering::{SteeringFlag, SteeringKind, steering_flags};
use table::PinTable;
use toolgate_core::{Error, Item, Layer, ServerInstructions};

/// Action for an item definition that a server lists for the first time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum NewDefinitionAction {
    /// Accepts the new definition.
    #[default]
    Accept,
    /// Hides the item until an operator accepts the new definition.
    Ask,
}

/// Action for an item definition that differs from the accepted (pinned) one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ChangedDefinitionAction {
    /// Hides the item until an operator accepts the changed definition.
    #[default]
    Hide,
    /// Reports the changed definition, but keeps the item usable.
    Warn,
    /// Accepts the changed definition and records it in the audit log.
    Allow,
}

/// Action for tools and prompts whose names look like another one's (confusable characters).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ConfusableNameAction {
    /// Reports tools and prompts with confusable names, also in the audit log.
    #[default]
    Flag,
    /// Reports tools and prompts with confusable names, and hides each of them.
    Hide,
}

/// Pins of item definitions: the accepted digest of each definition, against silent changes by a server. Clones share
/// the pins.
///
/// Standard: [canonical JSON, RFC 8785](https://www.rfc-editor.org/rfc/rfc8785).
///
/// ```
/// use std::sync::Arc;
/// use toolgate_policy::{Approver, AuditRecorder, MemoryStateStore, PerServer};
/// use toolgate_policy::pins::{
///     ChangedDefinitionAction, ConfusableNameAction, NewDefinitionAction, PinError, PinEvent,
///     PinEventKind, PinView, Pins,
/// };
///
/// let pins = Pins::new(Arc::new(MemoryStateStore::new()), Arc::new(AuditRecorder::log()))
///     .on_new(PerServer::all(NewDefinitionAction::Ask).with("files", NewDefinitionAction::Accept))
///     .on_change(PerServer::all(ChangedDefinitionAction::Hide))
///     .on_confusable(ConfusableNameAction::Hide)
///     .on_event(|PinEvent { name, what, .. }| match what {
///         PinEventKind::New => println!("{name} is new"),
///         PinEventKind::Changed(paths) => println!("{name} changed at {}", paths.join(", ")),
///         _ => println!("{name} needs a review"),
///     });
///
/// /// Shows the differences of pending definitions, and accepts those without a meaning.
/// async fn review(pins: &Pins, reviewer: &Approver) -> Result<(), PinError> {
///     for PinView { name, pending_digest, differences, .. } in pins.awaiting_decision(100) {
///         for difference in &differences {
///             println!("{name} {}: {:?} -> {:?}", difference.path, difference.old, difference.new);
///         }
///         if !differences.is_empty() && differences.iter().all(|difference| difference.cosmetic) {
///             pins.accept(&name, pending_digest.as_deref(), reviewer).await?;
///         }
///     }
///     Ok(())
/// }
/// # let _ = (pins, review);
/// ```
#[derive(Clone)]
pub struct Pins {
    on_new: PerServer<NewDefinitionAction>,
    on_change: PerServer<ChangedDefinitionAction>,
    on_confusable: ConfusableNameAction,
    max_per_server: usize,
    table: Arc<PinTable>,
    identities: Arc<HashMap<String, Arc<str>>>,
    recorder: Arc<AuditRecorder>,
    on_event: Arc<dyn Fn(PinEvent) + Send + Sync>,
    /// Builds the layer. [`Pins::new`] sets it, so that a program without pins does not link it.
    build: fn(Pins, bool) -> Arc<dyn Layer>,
}

impl Pins {
    /// Creates the pins of item definitions in a store, with the defaults: new definitions are accepted, changed ones
    /// are hidden.
    pub fn new(store: Arc<dyn StateStore>, recorder: Arc<AuditRecorder>) -> Pins {
        Pins {
            on_new: PerServer::default(),
            on_change: PerServer::default(),
            on_confusable: ConfusableNameAction::default(),
            max_per_server: 10_000,
            table: Arc::new(PinTable::new(store)),
            identities: Arc::default(),
            recorder,
            on_event: Arc::new(|_| {}),
            build: |pins, stores_new| Arc::new(PinObserver::new(pins, stores_new)),
        }
    }

    /// Returns the layer that observes definitions, and stores new ones or not.
    pub(crate) fn observer(&self, stores_new: bool) -> Arc<dyn Layer> {
        (self.build)(self.clone(), stores_new)
    }

    /// Returns the rule that hides definitions that are not accepted.
    pub(crate) fn rule(&self) -> PinRule {
        PinRule
    }

    /// Sets the action for new item definitions, by server. Default: accept.
    pub fn on_new(mut self, action: PerServer<NewDefinitionAction>) -> Pins {
        self.on_new = action;
        self
    }

    /// Sets the action for changed item definitions, by server. Default: hide.
    pub fn on_change(mut self, action: PerServer<ChangedDefinitionAction>) -> Pins {
        self.on_change = action;
        self
    }

    /// Sets the action for tools and prompts with confusable names. Default: flag.
    pub fn on_confusable(mut self, action: ConfusableNameAction) -> Pins {
        self.on_confusable = action;
        self
    }

    /// Sets the maximum number of pinned item definitions per server. Default: 10,000. Further definitions are hidden.
    pub fn max_per_server(mut self, per_server: usize) -> Pins {
        self.max_per_server = per_server;
        self
    }

    /// Sets the identity (command or address) of each server, by configured id. Only a digest is stored, and another
    /// identity is another server.
    pub fn identities(mut self, identities: impl IntoIterator<Item = (String, String)>) -> Pins {
        let identities = identities
            .into_iter()
            .map(|(id, is)| (id, canonical::digest_of(&is)));
        self.identities = Arc::new(identities.collect());
        self
    }

    /// Restricts the pins (accepted item definitions) to those of one server. Without a configured identity, its id
    /// must suffice.
    pub fn only(mut self, server: &str) -> Pins {
        let identity = self.identity_of(server);
        self.identities = Arc::new(HashMap::from([(server.to_owned(), identity)]));
        self
    }

    /// Sets the function that receives events about new, changed or suspicious item definitions. Each event is reported
    /// once; the function must not block.
    pub fn on_event(mut self, on_event: impl Fn(PinEvent) + Send + Sync + 'static) -> Pins {
        self.on_event = Arc::new(on_event);
        self
    }

    /// Sets the audit recorder, which records new and changed item definitions and the operator's decisions.
    pub fn with_recorder(mut self, recorder: Arc<AuditRecorder>) -> Pins {
        self.recorder = recorder;
        self
    }

    /// Follows pin decisions of other processes and notifies callers of changed item lists. Runs until it is dropped.
    pub async fn follow(&self) {
        self.table.follow().await;
    }

    /// Records the pin of a server's `instructions` if they are new, and reports whether they may be passed on.
    ///
    /// # Errors
    /// The pin cannot be stored. The instructions must not be passed on then.
    pub async fn observe_instructions(
        &self,
        instructions: &ServerInstructions,
    ) -> Result<bool, Error> {
        let thing = self.observed_instructions(instructions);
        self.table.refresh();
        self.observe(&thing).await?;
        Ok(self.judge(&thing).1.is_none())
    }

    /// Reports whether the `instructions` of a server match the accepted pin, so that they may be passed on.
    pub fn accepts_instructions(&self, instructions: &ServerInstructions) -> bool {
        self.judge(&self.observed_instructions(instructions))
            .1
            .is_none()
    }

    fn emit(&self, event: PinEvent) {
        (self.on_event)(event);
    }

    fn identity_of(&self, server: &str) -> Arc<str> {
        self.identities.get(server).cloned().unwrap_or_default()
    }

    /// Returns the id of the only server, to which instructions without a server belong.
    fn only_server(&self) -> Arc<str> {
        let mut ids = self.identities.keys();
        match (ids.next(), ids.next()) {
            (Some(id), None) => id.as_str().into(),
            _ => "server".into(),
        }
    }
}

impl fmt::Debug for Pins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pins")
            .field("first", &self.on_new)
            .field("change", &self.on_change)
            .finish_non_exhaustive()
    }
}

/// Returns the store's key prefix for the pins of a server with this identity (command or address).
#[doc(hidden)]
pub fn key_prefix(server: &str, identity: &str) -> String {
    table::key_prefix(server, &canonical::digest_of(identity))
}

/// Returns the pin state of an item's definition for rules: `new`, `accepted` or `changed`. Items without a state are
/// `new`.
#[doc(hidden)]
pub fn state(item: &Item) -> &'static str {
    item.pin.as_ref().map_or("new", |pin| pin.state.as_str())
}
