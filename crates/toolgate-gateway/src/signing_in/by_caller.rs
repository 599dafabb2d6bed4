//! Links by which the user of a caller signs in: the caller's own client shows one when a call needs it.
//!
//! A link says for which server and which caller it is, and gives nobody anything: the page behind it asks for the key of
//! that caller, or has its user sign in at the issuer that named it, before it leads anywhere. So whoever is handed somebody else's link can neither lend his account to that
//! caller nor take the place of its user.

use super::callers;
use crate::config::Address;
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use toolgate::{BoxFuture, SignInPage, Waiting, ids, visible_line};
use toolgate_auth::Secret;

/// Below which path the page and its requests are.
pub(crate) const FOLDER: &str = "/sign-in/";
/// The page to which a browser comes back, below it.
pub(crate) const BACK: &str = "back";
/// The same for a user who was away to show who he is. An issuer sends nobody to the other one: whom a server names could
/// else have the code of a user of ours led there, and be given it.
pub(crate) const SHOWN: &str = "shown";
/// How long a link is good.
const LINK: Duration = Duration::from_secs(10 * 60);
/// Links at once; the oldest goes.
const MOST: usize = 1024;
/// How often is looked whether somebody signed in elsewhere.
const LOOK: Duration = Duration::from_secs(1);

/// The links that callers were given.
#[derive(Default)]
pub(crate) struct Links {
    open: Mutex<HashMap<String, Link>>,
    /// Raised when somebody signed in by one of them.
    done: watch::Sender<u64>,
}

struct Link {
    server: Arc<str>,
    caller: Arc<str>,
    until: Instant,
}

impl Links {
    /// The link for a caller of a server: the one that it was given, while that is good.
    fn of(&self, server: &Arc<str>, caller: &Arc<str>) -> String {
        let mut open = self.open();
        let same = |link: &Link| link.server == *server && link.caller == *caller;
        if let Some((token, _)) = open.iter().find(|(_, link)| same(link)) {
            return token.clone();
        }
        if open.len() >= MOST {
            let oldest = open.iter().min_by_key(|(_, link)| link.until);
            if let Some(oldest) = oldest.map(|(token, _)| token.clone()) {
                open.remove(&oldest);
            }
        }
        let token = ids::secret();
        let link = Link {
            server: server.clone(),
            caller: caller.clone(),
            until: Instant::now() + LINK,
        };
        open.insert(token.clone(), link);
        token
    }

    /// At which server its user signs in by this link, if the link is that caller's.
    pub(crate) fn server(&self, token: &str, caller: &str) -> Option<Arc<str>> {
        let open = self.open();
        let link = open.get(token).filter(|link| *link.caller == *caller)?;
        Some(link.server.clone())
    }

    /// Whose link it is.
    pub(crate) fn caller(&self, token: &str) -> Option<Arc<str>> {
        Some(self.open().get(token)?.caller.clone())
    }

    /// It was used.
    pub(crate) fn spend(&self, token: &str) {
        self.open().remove(token);
    }

    /// Somebody signed in: whoever waits for that looks again.
    pub(crate) fn signed_in(&self) {
        self.done.send_modify(|count| *count += 1);
    }

    /// Those whose time is not over.
    fn open(&self) -> MutexGuard<'_, HashMap<String, Link>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        open.retain(|_, link| link.until > now);
        open
    }
}

/// The pages of a gateway, as the browsers of users reach them.
#[derive(Clone)]
pub(crate) struct Pages {
    base: Arc<str>,
    links: Arc<Links>,
    /// The issuers at which users can show who they are.
    issuers: Arc<[String]>,
}

/// How the user of a caller shows that the caller is his.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ShownBy<'a> {
    /// By its key.
    Key,
    /// By a sign-in at the issuer of that name.
    Issuer(&'a str),
}

impl PartialEq for Pages {
    fn eq(&self, other: &Pages) -> bool {
        self.base == other.base
            && Arc::ptr_eq(&self.links, &other.links)
            && self.issuers == other.issuers
    }
}

/// Whose sign-in a call lacks.
pub(crate) struct Lacking<'a> {
    pub(crate) server: &'a Arc<str>,
    pub(crate) address: &'a Address,
    pub(crate) grants: PathBuf,
    pub(crate) caller: &'a Arc<str>,
    /// What was granted before, and is good no more.
    pub(crate) before: Option<Secret>,
}

impl Pages {
    /// Those below an address that ends with `/`.
    pub(crate) fn new(
        base: impl Into<Arc<str>>,
        links: Arc<Links>,
        issuers: Arc<[String]>,
    ) -> Pages {
        Pages {
            base: base.into(),
            links,
            issuers,
        }
    }

    /// How the user of a caller can show that it is his; nothing where he cannot. A program that an issuer knows has no
    /// user there.
    pub(crate) fn shown_by<'a>(&self, caller: &'a str) -> Option<ShownBy<'a>> {
        match caller.split_once(':')? {
            ("key", _) => Some(ShownBy::Key),
            (_, subject) if subject.starts_with("client=") => None,
            (issuer, _) => {
                let known = self.issuers.iter().any(|one| one == issuer);
                known.then_some(ShownBy::Issuer(issuer))
            }
        }
    }

    /// Where a browser comes back to.
    pub(crate) fn back(&self) -> String {
        format!("{}{BACK}", self.base)
    }

    /// Where a browser comes back to from an issuer of ours.
    pub(crate) fn shown(&self) -> String {
        format!("{}{SHOWN}", self.base)
    }

    /// The question to the user of a caller; `opened` where its client said that the page was opened.
    pub(crate) fn question(&self, lacking: &Lacking<'_>, opened: bool) -> SignInPage {
        let Lacking { server, caller, .. } = lacking;
        let waits = || -> Arc<dyn Waiting> {
            Arc::new(Signing {
                links: self.links.clone(),
                grants: lacking.grants.clone(),
                address: lacking.address.clone(),
                server: (*server).clone(),
                caller: (*caller).clone(),
                before: lacking.before.clone(),
            })
        };
        SignInPage {
            url: match opened {
                true => self.base.to_string(),
                false => format!("{}#{}", self.base, self.links.of(server, caller)),
            },
            message: format!(
                "Toolgate: the server {server} needs somebody to sign in for {}. The page {} first; what is granted then is used by it, and by nobody else.",
                visible_line(caller),
                match self.shown_by(caller) {
                    Some(ShownBy::Issuer(issuer)) =>
                        format!("has you sign in at {issuer} as that caller"),
                    _ => "asks for the key of that caller".to_owned(),
                }
            ),
            opened: opened.then(waits),
        }
    }
}

/// Waits until somebody signed in.
struct Signing {
    links: Arc<Links>,
    grants: PathBuf,
    address: Address,
    server: Arc<str>,
    caller: Arc<str>,
    before: Option<Secret>,
}

impl Waiting for Signing {
    fn decided(&self) -> BoxFuture<'static, ()> {
        let Signing {
            links,
            grants,
            address,
            server,
            caller,
            before,
        } = self;
        let (links, grants, address) = (links.clone(), grants.clone(), address.clone());
        let (server, caller, before) = (server.clone(), caller.clone(), before.clone());
        Box::pin(async move {
            let mut done = links.done.subscribe();
            loop {
                let now = callers::granted(&grants, &server, &address, &caller).await;
                let old = |now: &Secret| before.as_ref().is_some_and(|old| old.is(now.reveal()));
                if now.is_ok_and(|now| now.is_some_and(|now| !old(&now.access))) {
                    return;
                }
                tokio::select! {
                    _ = done.changed() => {}
                    () = sleep(LOOK) => {}
                }
            }
        })
    }

    fn attend(&self) -> Box<dyn Send + Sync> {
        Box::new(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_link_is_of_one_caller_and_ends() {
        let links = Links::default();
        let [far, near, ann, bob]: [Arc<str>; 4] =
            ["far", "near", "key:ann", "key:bob"].map(Arc::from);
        let link = links.of(&far, &ann);
        assert_eq!(links.of(&far, &ann), link, "asked again");
        assert_ne!(links.of(&near, &ann), link);
        assert_ne!(links.of(&far, &bob), link);
        assert_eq!(links.server(&link, "key:ann").as_deref(), Some("far"));
        assert_eq!(links.server(&link, "key:bob"), None);
        assert_eq!(links.server("", "key:ann"), None);
        links.spend(&link);
        assert_eq!(links.server(&link, "key:ann"), None, "used");
        let link = links.of(&far, &ann);
        tokio::time::advance(LINK).await;
        assert_eq!(links.server(&link, "key:ann"), None, "too old");
        let first = links.of(&far, &ann);
        for n in 0..MOST {
            tokio::time::advance(Duration::from_millis(1)).await;
            links.of(&far, &format!("key:{n}").into());
        }
        assert_eq!(links.open().len(), MOST);
        assert_eq!(links.server(&first, "key:ann"), None, "the oldest goes");
    }
}
