//! The way to the tokens of one server.
//!
//! - `builder`: how it is set. `renew`: a token for a token that ends. `authorize`: when a token is had from the
//!   beginning, `flow` how, `visit` its part with a person. `find`: of whom. `wanted`: what a person would have to allow.
//! - `answering`: what a transport asks. `leave`: a sign-out. `lately`: what is not tried again at once.

mod answering;
mod authorize;
mod builder;
mod find;
mod flow;
mod lately;
mod leave;
mod renew;
mod visit;
mod wanted;

pub use builder::LoginBuilder;
use builder::Settings;
use lately::Lately;
pub use leave::SignedOut;

use super::{
    AuthError, Enterprise, Grant, Scopes, ServerMetadata, SignIn, Store, Workload, dpop::Binding,
};
use crate::{Secret, Url, fetch::Fetcher};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How long a refusal of an authorization server is taken as an answer, where no person is asked.
const COOL: Duration = Duration::from_secs(30);

/// Who signs in.
#[derive(Clone)]
enum Way {
    /// Nobody: only what was granted before is used.
    Nobody,
    Person(Arc<dyn SignIn>),
    Client,
    Enterprise(Enterprise),
    Workload(Workload),
}

/// Whether tokens are bound to a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Bind {
    /// Where the server wants it.
    Wanted,
    Always,
}

/// The way to the tokens of one server: finds its authorization server, signs in, renews, and steps up. Clones share
/// what was granted. One flow runs at a time; who comes meanwhile uses what it brings.
#[derive(Clone)]
pub struct Login(Arc<Inner>);

struct Inner {
    set: Settings,
    fetcher: Fetcher,
    state: Mutex<State>,
    flight: Arc<tokio::sync::Mutex<()>>,
}

/// The right to run a flow.
type Flight = tokio::sync::OwnedMutexGuard<()>;

#[derive(Default)]
struct State {
    /// Whether the store was read.
    loaded: bool,
    grant: Option<Grant>,
    binding: Option<Arc<Binding>>,
    /// The authorization server, as it was found last.
    server: Option<Arc<ServerMetadata>>,
    /// What was asked for last, granted or not.
    asked: Scopes,
    /// The token that was had because another was refused, until the server takes one.
    untried: Option<Secret>,
    /// Step-ups of each operation, and when the first was.
    steps: HashMap<String, (u32, Instant)>,
    /// The last refusal, where asking again at once would bring the same, and of which scopes beyond the granted ones.
    refused: Option<(Instant, Option<String>, AuthError)>,
    lately: Lately,
}

impl Login {
    /// One for the server at an address; nothing is sent yet.
    pub fn builder(server: Url) -> LoginBuilder {
        LoginBuilder::new(server)
    }

    /// What is granted now, fresh or not; nothing where a sign-in is needed.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn granted(&self) -> Result<Option<Grant>, AuthError> {
        self.load().await?;
        Ok(self.state().grant.clone())
    }

    /// Waits until no other flow runs.
    async fn flight(&self) -> Flight {
        self.0.flight.clone().lock_owned().await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the store, once.
    async fn load(&self) -> Result<(), AuthError> {
        if self.state().loaded {
            return Ok(());
        }
        let kept = self.0.set.store.grant(self.0.set.key()).await?;
        let mut state = self.state();
        if !state.loaded {
            state.loaded = true;
            adopt(&mut state, kept)?;
        }
        Ok(())
    }

    /// Keeps a grant, here and in the store. Only in turn: who renews it meanwhile would keep another.
    async fn put(&self, grant: Option<Grant>) -> Result<(), AuthError> {
        {
            let mut state = self.state();
            state.loaded = true;
            adopt(&mut state, grant.clone())?;
        }
        self.0.set.store.keep(self.0.set.key(), grant).await?;
        Ok(())
    }

    /// The key of bound tokens.
    fn binding(&self) -> Result<Arc<Binding>, AuthError> {
        let mut state = self.state();
        if let Some(binding) = &state.binding {
            return Ok(binding.clone());
        }
        let binding = Arc::new(Binding::new(None)?);
        state.binding = Some(binding.clone());
        Ok(binding)
    }
}

fn adopt(state: &mut State, grant: Option<Grant>) -> Result<(), AuthError> {
    if let Some(key) = grant.as_ref().and_then(|grant| grant.key.as_ref()) {
        let same = state
            .binding
            .as_ref()
            .is_some_and(|binding| binding.kept.is(key.reveal()));
        if !same {
            state.binding = Some(Arc::new(Binding::new(Some(key))?));
        }
    }
    state.lately.adopts(grant.as_ref());
    state.grant = grant;
    Ok(())
}
