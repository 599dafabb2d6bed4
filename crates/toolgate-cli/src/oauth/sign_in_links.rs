//! Links by which the user behind a caller signs in. The caller's client shows one when a call needs it.
//!
//! A link names a server and a caller, and authorizes nothing. The page behind it asks for the caller's API key, or
//! lets the user sign in at the issuer that named the caller. So a person with another user's link can neither lend
//! that caller their account nor take the user's place.

use super::caller_credentials;
use crate::config::RemoteAddress;
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
use toolgate::ids;
use toolgate_auth::Secret;
use toolgate_core::{BoxFuture, DecisionWaiter, SignInPage, visible_line};

/// Path prefix of the sign-in page and of its requests.
pub(crate) const SIGN_IN_PATH: &str = "/sign-in/";
/// Redirect path for sign-ins at servers, below the prefix.
pub(crate) const REDIRECT_SEGMENT: &str = "back";
/// Redirect path for sign-ins at issuers, by which users prove their identity. It differs from [`REDIRECT_SEGMENT`]: otherwise
/// the authorization server of a malicious server could have a user's code sent there, and receive it.
pub(crate) const IDENTITY_SEGMENT: &str = "shown";
/// Lifetime of a link.
const SIGN_IN_LINK_LIFETIME: Duration = Duration::from_secs(10 * 60);
/// Maximum number of links; the oldest is removed.
const MAX_SIGN_IN_LINKS: usize = 1024;
/// Interval of the checks for a sign-in elsewhere.
const SIGN_IN_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Links that callers were given.
#[derive(Default)]
pub(crate) struct SignInLinks {
    links: Mutex<HashMap<String, SignInLink>>,
    /// Counter that is raised when a user signed in by a link.
    sign_ins: watch::Sender<u64>,
}

struct SignInLink {
    server: Arc<str>,
    caller: Arc<str>,
    expires_at: Instant,
}

impl SignInLinks {
    /// Returns the link for a caller of a server. While its last link is valid, that is reused.
    fn link_for(&self, server: &Arc<str>, caller: &Arc<str>) -> String {
        let mut open = self.lock_valid();
        let same = |link: &SignInLink| link.server == *server && link.caller == *caller;
        if let Some((token, _)) = open.iter().find(|(_, link)| same(link)) {
            return token.clone();
        }
        if open.len() >= MAX_SIGN_IN_LINKS {
            let oldest = open.iter().min_by_key(|(_, link)| link.expires_at);
            if let Some(oldest) = oldest.map(|(token, _)| token.clone()) {
                open.remove(&oldest);
            }
        }
        let token = ids::secret_id();
        let link = SignInLink {
            server: server.clone(),
            caller: caller.clone(),
            expires_at: Instant::now() + SIGN_IN_LINK_LIFETIME,
        };
        open.insert(token.clone(), link);
        token
    }

    /// Returns the server of a link, if the link belongs to that caller.
    pub(crate) fn server_of(&self, token: &str, caller: &str) -> Option<Arc<str>> {
        let open = self.lock_valid();
        let link = open.get(token).filter(|link| *link.caller == *caller)?;
        Some(link.server.clone())
    }

    /// Returns the caller of a link.
    pub(crate) fn caller_of(&self, token: &str) -> Option<Arc<str>> {
        Some(self.lock_valid().get(token)?.caller.clone())
    }

    /// Removes a used link.
    pub(crate) fn remove(&self, token: &str) {
        self.lock_valid().remove(token);
    }

    /// Reports a sign-in, so that waiting calls check again.
    pub(crate) fn report_sign_in(&self) {
        self.sign_ins.send_modify(|count| *count += 1);
    }

    /// Locks the links and removes the expired ones.
    fn lock_valid(&self) -> MutexGuard<'_, HashMap<String, SignInLink>> {
        let mut open = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        open.retain(|_, link| link.expires_at > now);
        open
    }
}

/// Sign-in pages of a gateway, with the base URL that browsers use.
#[derive(Clone)]
pub(crate) struct SignInPages {
    base: Arc<str>,
    links: Arc<SignInLinks>,
    /// Issuers at which users can prove their identity.
    issuers: Arc<[String]>,
}

/// Proof of identity of the user behind a caller.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum IdentityProof<'a> {
    /// The caller's API key.
    Key,
    /// Sign-in at the issuer of that name.
    Issuer(&'a str),
}

impl PartialEq for SignInPages {
    fn eq(&self, other: &SignInPages) -> bool {
        self.base == other.base
            && Arc::ptr_eq(&self.links, &other.links)
            && self.issuers == other.issuers
    }
}

/// Sign-in that a call lacks.
pub(crate) struct MissingSignIn<'a> {
    pub(crate) server: &'a Arc<str>,
    pub(crate) address: &'a RemoteAddress,
    pub(crate) credentials_dir: PathBuf,
    pub(crate) caller: &'a Arc<str>,
    /// Credential from before, which is no longer valid.
    pub(crate) old_token: Option<Secret>,
}

impl SignInPages {
    /// Creates the pages below a base URL that ends with `/`.
    pub(crate) fn new(
        base: impl Into<Arc<str>>,
        links: Arc<SignInLinks>,
        issuers: Arc<[String]>,
    ) -> SignInPages {
        SignInPages {
            base: base.into(),
            links,
            issuers,
        }
    }

    /// Returns how the user behind a caller proves their identity; `None` if they cannot. A caller that is an OAuth
    /// client of an issuer has no user there.
    pub(crate) fn identity_proof<'a>(&self, caller: &'a str) -> Option<IdentityProof<'a>> {
        match caller.split_once(':')? {
            ("key", _) => Some(IdentityProof::Key),
            (_, subject) if subject.starts_with("client=") => None,
            (issuer, _) => {
                let known = self.issuers.iter().any(|one| one == issuer);
                known.then_some(IdentityProof::Issuer(issuer))
            }
        }
    }

    /// Returns the redirect URI for sign-ins at servers.
    pub(crate) fn redirect_uri(&self) -> String {
        format!("{}{REDIRECT_SEGMENT}", self.base)
    }

    /// Returns the redirect URI for sign-ins at issuers.
    pub(crate) fn identity_redirect_uri(&self) -> String {
        format!("{}{IDENTITY_SEGMENT}", self.base)
    }

    /// Builds the input request for the user of a caller. `completion` says that the client has opened the page.
    pub(crate) fn input_request(&self, lacking: &MissingSignIn<'_>, opened: bool) -> SignInPage {
        let MissingSignIn { server, caller, .. } = lacking;
        let waits = || -> Arc<dyn DecisionWaiter> {
            Arc::new(SignInWait {
                links: self.links.clone(),
                credentials_dir: lacking.credentials_dir.clone(),
                address: lacking.address.clone(),
                server: (*server).clone(),
                caller: (*caller).clone(),
                old_token: lacking.old_token.clone(),
            })
        };
        let mut page = SignInPage::new(
            match opened {
                true => self.base.to_string(),
                false => format!("{}#{}", self.base, self.links.link_for(server, caller)),
            },
            format!(
                "Toolgate: a user has to sign in to the server {server} for {}. The page first {}; only this caller will use the credentials.",
                visible_line(caller),
                match self.identity_proof(caller) {
                    Some(IdentityProof::Issuer(issuer)) =>
                        format!("asks you to sign in at {issuer} as that caller"),
                    _ => "asks for the API key of that caller".to_owned(),
                }
            ),
        );
        page.completion = opened.then(waits);
        page
    }
}

/// Waits until a person has signed in.
struct SignInWait {
    links: Arc<SignInLinks>,
    credentials_dir: PathBuf,
    address: RemoteAddress,
    server: Arc<str>,
    caller: Arc<str>,
    old_token: Option<Secret>,
}

impl DecisionWaiter for SignInWait {
    fn wait_for_decision(&self) -> BoxFuture<'static, ()> {
        let SignInWait {
            links,
            credentials_dir: grants,
            address,
            server,
            caller,
            old_token: before,
        } = self;
        let (links, grants, address) = (links.clone(), grants.clone(), address.clone());
        let (server, caller, before) = (server.clone(), caller.clone(), before.clone());
        Box::pin(async move {
            let mut done = links.sign_ins.subscribe();
            loop {
                let now =
                    caller_credentials::stored_credential(&grants, &server, &address, &caller)
                        .await;
                let old =
                    |now: &Secret| before.as_ref().is_some_and(|old| old.matches(now.reveal()));
                if now.is_ok_and(|now| now.is_some_and(|now| !old(&now.access_token))) {
                    return;
                }
                tokio::select! {
                    _ = done.changed() => {}
                    () = sleep(SIGN_IN_CHECK_INTERVAL) => {}
                }
            }
        })
    }

    fn mark_waiting(&self) -> Box<dyn Send + Sync> {
        Box::new(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_link_belongs_to_one_caller_and_expires() {
        let links = SignInLinks::default();
        let [far, near, ann, bob]: [Arc<str>; 4] =
            ["far", "near", "key:ann", "key:bob"].map(Arc::from);
        let link = links.link_for(&far, &ann);
        assert_eq!(links.link_for(&far, &ann), link, "asked again");
        assert_ne!(links.link_for(&near, &ann), link);
        assert_ne!(links.link_for(&far, &bob), link);
        assert_eq!(links.server_of(&link, "key:ann").as_deref(), Some("far"));
        assert_eq!(links.server_of(&link, "key:bob"), None);
        assert_eq!(links.server_of("", "key:ann"), None);
        links.remove(&link);
        assert_eq!(links.server_of(&link, "key:ann"), None, "used");
        let link = links.link_for(&far, &ann);
        tokio::time::advance(SIGN_IN_LINK_LIFETIME).await;
        assert_eq!(links.server_of(&link, "key:ann"), None, "too old");
        let first = links.link_for(&far, &ann);
        for n in 0..MAX_SIGN_IN_LINKS {
            tokio::time::advance(Duration::from_millis(1)).await;
            links.link_for(&far, &format!("key:{n}").into());
        }
        assert_eq!(links.lock_valid().len(), MAX_SIGN_IN_LINKS);
        assert_eq!(links.server_of(&first, "key:ann"), None, "the oldest goes");
    }
}
