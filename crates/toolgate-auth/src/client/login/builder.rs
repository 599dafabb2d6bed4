//! How a login is set.

use super::{
    super::{
        Enterprise, MemoryStore, OauthClient, Scopes, SignIn, Store, Workload,
        registration::Identity,
    },
    Bind, Inner, Login, State, Way,
};
use crate::{
    Url,
    fetch::{FetchLimits, Fetcher, Reach},
};
use std::sync::{Arc, Mutex};

/// A login in the making. Without more, it uses what the store has and signs nobody in.
///
/// ```
/// # use toolgate_auth::{Url, client::{Login, MemoryStore}};
/// # fn main() -> Result<(), toolgate_auth::BadUrl> {
/// let login = Login::builder(Url::parse("https://tools.example/mcp")?)
///     .name("my-app")
///     .store(MemoryStore::new())
///     .build();
/// # drop(login);
/// # Ok(())
/// # }
/// ```
#[must_use = "a login is made by build"]
pub struct LoginBuilder(Settings);

/// All that is set of a login.
pub(super) struct Settings {
    pub(super) server: Url,
    /// Under which name grants are kept; the address of the server where none is set.
    key: Option<String>,
    pub(super) reach: Reach,
    limits: FetchLimits,
    pub(super) identity: Identity,
    pub(super) store: Arc<dyn Store>,
    pub(super) way: Way,
    pub(super) bind: Bind,
    /// What is asked for, where it is not what the server wants.
    pub(super) scopes: Option<Scopes>,
    /// What a person does to sign in, where nobody does it here.
    pub(super) how: Option<String>,
}

impl Settings {
    /// Under which name grants are kept.
    pub(super) fn key(&self) -> &str {
        self.key.as_deref().unwrap_or(self.server.as_str())
    }
}

impl LoginBuilder {
    pub(super) fn new(server: Url) -> LoginBuilder {
        LoginBuilder(Settings {
            reach: Reach::of(&server),
            server,
            key: None,
            limits: FetchLimits::default(),
            identity: Identity {
                name: "Toolgate".to_owned(),
                offline: true,
                ..Identity::default()
            },
            store: Arc::new(MemoryStore::new()),
            way: Way::Nobody,
            bind: Bind::Wanted,
            scopes: None,
            how: None,
        })
    }

    /// Under which name the grant is kept; the address of the server unless set.
    pub fn key(mut self, key: &str) -> LoginBuilder {
        self.0.key = Some(key.to_owned());
        self
    }

    /// How we are called where we register; "Toolgate" unless set.
    pub fn name(mut self, name: &str) -> LoginBuilder {
        self.0.identity.name = name.to_owned();
        self
    }

    /// A client that was registered by other means, and for which issuer; where none is said, for the one that the
    /// server names. Where the server names none, as some of 2025-03-26, a client without a person needs its issuer said:
    /// what shows who it is goes to no place that nobody named.
    pub fn client(mut self, issuer: Option<&str>, client: OauthClient) -> LoginBuilder {
        self.0.identity.given = Some((issuer.map(str::to_owned), client));
        self
    }

    /// The address of a document that describes us: `https`, with a path. It is our id where the authorization server
    /// takes such.
    pub fn client_document(mut self, url: Url) -> LoginBuilder {
        self.0.identity.document = Some(url);
        self
    }

    /// Where grants are kept; in memory unless set.
    pub fn store(self, store: impl Store) -> LoginBuilder {
        self.shared_store(Arc::new(store))
    }

    /// The same, for a store that others use too.
    pub fn shared_store(mut self, store: Arc<dyn Store>) -> LoginBuilder {
        self.0.store = store;
        self
    }

    /// Which addresses the server may name; see [`Reach`].
    pub fn reach(mut self, reach: Reach) -> LoginBuilder {
        self.0.reach = reach;
        self
    }

    /// How much is read and waited for.
    pub fn limits(mut self, limits: FetchLimits) -> LoginBuilder {
        self.0.limits = limits;
        self
    }

    /// A person signs in where it is needed.
    pub fn sign_in(mut self, person: impl SignIn) -> LoginBuilder {
        self.0.way = Way::Person(Arc::new(person));
        self
    }

    /// What a person does to sign in, for the words of an error where nobody does it here: `run: my-app login`.
    pub fn how(mut self, words: &str) -> LoginBuilder {
        self.0.how = Some(words.to_owned());
        self
    }

    /// What a person does with the id of a client that was registered by hand, for the words of an error where we cannot
    /// register: `write client_id in my-app.toml`.
    pub fn by_hand(mut self, words: &str) -> LoginBuilder {
        self.0.identity.by_hand = Some(words.to_owned());
        self
    }

    /// The client that was set asks for itself.
    pub fn client_credentials(mut self) -> LoginBuilder {
        self.0.way = Way::Client;
        self
    }

    /// The identity provider of a company decides.
    pub fn enterprise(mut self, enterprise: Enterprise) -> LoginBuilder {
        self.0.way = Way::Enterprise(enterprise);
        self
    }

    /// The platform on which we run says who we are.
    pub fn workload(mut self, workload: Workload) -> LoginBuilder {
        self.0.way = Way::Workload(workload);
        self
    }

    /// Tokens are bound to a key even where the server does not ask for it; else only where it does.
    pub fn bound(mut self) -> LoginBuilder {
        self.0.bind = Bind::Always;
        self
    }

    /// What is asked for, and no more; what the server wants unless set.
    pub fn scopes(mut self, scopes: Scopes) -> LoginBuilder {
        self.0.scopes = Some(scopes);
        self
    }

    /// No refresh token is asked for, so that nothing outlives the access token.
    pub fn no_refresh(mut self) -> LoginBuilder {
        self.0.identity.offline = false;
        self
    }

    /// The login. Nothing is sent yet.
    pub fn build(self) -> Login {
        let set = self.0;
        Login(Arc::new(Inner {
            fetcher: Fetcher::new(set.reach, set.limits.clone()).home(&set.server),
            set,
            state: Mutex::new(State::default()),
            flight: Arc::default(),
        }))
    }
}
