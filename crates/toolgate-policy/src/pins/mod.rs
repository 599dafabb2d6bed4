//! Pins: a definition that somebody accepted stays what it is, or is hidden until somebody accepts the new one.
//!
//! A model reads definitions before anybody is asked about a call. So every definition is pinned by the SHA-256 of its
//! canonical form when it is first seen: all of it, of tools, resources, templates and prompts, and the words of a server
//! on how to use it. What differs later is hidden, unknown to callers, and shown to the operator as a list of differences.
//!
//! A pin belongs to a configured id *and* to what the server is, its command or address: another program under the same id
//! is another server, whose definitions are seen for the first time.

mod alike;
mod book;
mod diff;
mod event;
mod form;
mod layer;
mod row;
mod settle;
mod sight;
mod skeleton;
#[cfg(test)]
mod tests;

use crate::{PerServer, Recorder, Store};
pub(crate) use alike::forms as shapes;
use book::Book;
pub use diff::{Difference, diff};
pub use event::{PinEvent, PinNews};
pub(crate) use layer::Look;
pub use layer::{Pinned, hidden};
pub use settle::{Kept, PinError, PinView, PinnedText};
use std::{collections::HashMap, fmt, sync::Arc};
use toolgate_core::{About, Error, Item};

/// What happens to a definition that is seen for the first time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum First {
    /// It is trusted as it is.
    #[default]
    Accept,
    /// It is hidden until somebody accepts it.
    Ask,
}

/// What happens to a definition that is not the accepted one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnChange {
    /// It is hidden until somebody accepts it.
    #[default]
    Hide,
    /// It is told of, and may be used all the same.
    Warn,
    /// It is accepted, and recorded.
    Allow,
}

/// What happens to tools and prompts whose names look alike.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LookAlikes {
    /// They are told of and recorded.
    #[default]
    Flag,
    /// Both are hidden, too.
    Hide,
}

/// The pins, and what is to be done about them. Clones share the pins.
#[derive(Clone)]
pub struct Pins {
    first: PerServer<First>,
    change: PerServer<OnChange>,
    look_alikes: LookAlikes,
    most: usize,
    book: Arc<Book>,
    identities: Arc<HashMap<String, Arc<str>>>,
    recorder: Arc<Recorder>,
    told: Arc<dyn Fn(PinEvent) + Send + Sync>,
}

impl Pins {
    /// Pins that are kept there, with the defaults: what is new is accepted, what changes is hidden.
    pub fn new(store: Arc<dyn Store>, recorder: Arc<Recorder>) -> Pins {
        Pins {
            first: PerServer::default(),
            change: PerServer::default(),
            look_alikes: LookAlikes::default(),
            most: 10_000,
            book: Arc::new(Book::new(store)),
            identities: Arc::default(),
            recorder,
            told: Arc::new(|_| {}),
        }
    }

    /// What happens at first sight; it is accepted.
    pub fn first(mut self, first: PerServer<First>) -> Pins {
        self.first = first;
        self
    }

    /// What happens to a change; it is hidden.
    pub fn change(mut self, change: PerServer<OnChange>) -> Pins {
        self.change = change;
        self
    }

    /// What happens to names that look alike; they are told of.
    pub fn look_alikes(mut self, then: LookAlikes) -> Pins {
        self.look_alikes = then;
        self
    }

    /// How many definitions of a server are pinned; 10,000. More are hidden.
    pub fn most(mut self, per_server: usize) -> Pins {
        self.most = per_server;
        self
    }

    /// Says what each server is, by the configured ids: its command or address, of which only a digest is kept. Another one
    /// is another server.
    pub fn identities(mut self, all: impl IntoIterator<Item = (String, String)>) -> Pins {
        let all = all.into_iter().map(|(id, is)| (id, form::digest_of(&is)));
        self.identities = Arc::new(all.collect());
        self
    }

    /// The pins of this server alone. Where it was not said what it is, its id has to do.
    pub fn only(mut self, server: &str) -> Pins {
        let identity = self.identity_of(server);
        self.identities = Arc::new(HashMap::from([(server.to_owned(), identity)]));
        self
    }

    /// Hears what a person should know, once. The function must not block.
    pub fn told(mut self, told: impl Fn(PinEvent) + Send + Sync + 'static) -> Pins {
        self.told = Arc::new(told);
        self
    }

    /// Writes to another record.
    pub fn recorded(mut self, recorder: Arc<Recorder>) -> Pins {
        self.recorder = recorder;
        self
    }

    /// Tells callers that lists are others when another process decides. Runs until it is dropped.
    pub async fn follow(&self) {
        self.book.follow().await;
    }

    /// Pins what a server says of how to use it, where there is nothing yet, and says whether it may be passed on.
    ///
    /// # Errors
    /// It cannot be kept; then it may not.
    pub async fn see_words(&self, about: &About) -> Result<bool, Error> {
        let thing = self.words(about);
        self.book.look();
        self.see(&thing).await?;
        Ok(self.judge(&thing).1.is_none())
    }

    /// Whether what a server says of how to use it is what was accepted.
    pub fn knows_words(&self, about: &About) -> bool {
        self.judge(&self.words(about)).1.is_none()
    }

    fn event(&self, event: PinEvent) {
        (self.told)(event);
    }

    fn identity_of(&self, server: &str) -> Arc<str> {
        self.identities.get(server).cloned().unwrap_or_default()
    }

    /// Whose words they are that nobody signed: those of the only server.
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
            .field("first", &self.first)
            .field("change", &self.change)
            .finish_non_exhaustive()
    }
}

/// What stands before the keys of what is kept of a server that is what it is: its command or address.
pub fn key_prefix(server: &str, is: &str) -> String {
    book::prefix(server, &form::digest_of(is))
}

/// How the definition of an item stands, for rules: `new`, `accepted` or `changed`. What nobody looked at is `new`.
pub fn state(item: &Item) -> &'static str {
    item.pin.as_ref().map_or("new", |pin| pin.state.as_str())
}
