//! Sign-ins by a person at the console: where the browser is sent, and how it comes back.
//!
//! The way back is a page of the console. The login of a console has a cookie that no other site's link takes along, and a
//! key that only our own page sends; so the page that is come back to hands over the answer itself, with both. An answer is
//! taken only from the login that began the sign-in.

use super::login;
use crate::{config::Address, door::same};
use futures_util::future::BoxFuture;
use std::{
    future::pending,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, timeout},
};
use toolgate_auth::{
    Secret, Url,
    client::{AuthError, AuthErrorKind, Grant, SignIn, Visit},
};

/// Where a browser comes back to.
pub(crate) const PATH: &str = "/console/signed-in";
/// How long a person has.
const PERSON: Duration = Duration::from_secs(5 * 60);
/// How long it may take to find the page where a person signs in, and to trade the answer for a grant.
const STEP: Duration = Duration::from_secs(60);
/// Sign-ins that are open at once.
const MOST: usize = 32;
/// The longest answer, in bytes.
const LONGEST: usize = 16 << 10;

/// What a person has to do about an answer that is not taken.
const OTHER: &str = "this is not the answer to a sign-in that was begun here; begin again under Servers, in this browser";

/// Said where a key ended while somebody signed in for its caller.
const OVER: &str = "the key of the caller was revoked or has expired meanwhile";

/// The sign-ins that were begun at the console, and are not over.
pub(crate) struct SignIns {
    grants: PathBuf,
    open: Mutex<Vec<Open>>,
}

/// One of them.
struct Open {
    server: String,
    caller: Option<String>,
    /// The key of the login that began it.
    by: String,
    state: Secret,
    answer: oneshot::Sender<String>,
    work: Work,
    until: Instant,
}

/// What waits for the answer; it ends with its owner.
struct Work(JoinHandle<Result<Grant, AuthError>>);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Somebody signed in.
pub(crate) struct Signed {
    pub(crate) server: String,
    /// For whom alone, where each caller has a grant of its own.
    pub(crate) caller: Option<String>,
    pub(crate) grant: Grant,
}

impl SignIns {
    /// None yet; grants are kept there.
    pub(crate) fn new(grants: PathBuf) -> SignIns {
        SignIns {
            grants,
            open: Mutex::default(),
        }
    }

    /// Where grants are kept.
    pub(crate) fn grants(&self) -> &Path {
        &self.grants
    }

    /// Begins one for a login, and gives the page where the person signs in. It ends with what it was begun with: `until`
    /// then.
    ///
    /// # Errors
    /// A sentence for the person.
    pub(crate) async fn begin(
        &self,
        (id, address): (&str, &Address),
        caller: Option<(&str, usize)>,
        redirect: String,
        (by, until): (&str, Option<BoxFuture<'static, ()>>),
    ) -> Result<Url, String> {
        room(&self.open())?;
        let env = |name: &str| std::env::var(name).ok();
        let login = login(id, address, &self.grants, None, caller, env)
            .map_err(|why| format!("the server {id}: {why}"))?;
        let (sent, page) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        let person = Person {
            redirect,
            ends: Mutex::new(Some((sent, answered))),
        };
        let login = login.sign_in(person).build();
        #[allow(
            clippy::disallowed_methods,
            reason = "a person is away at another page meanwhile; bounded in time, and ended with its entry"
        )]
        let mut work = Work(tokio::spawn(async move {
            let over = until.unwrap_or_else(|| Box::pin(pending()));
            tokio::select! {
                biased;
                () = over => Err(AuthError::new(AuthErrorKind::NeedsSignIn, OVER)),
                done = login.sign_in() => done,
            }
        }));
        let page = async {
            tokio::select! {
                biased;
                page = page => page.map_err(|_| "the sign-in ended".to_owned()),
                done = &mut work.0 => Err(match done {
                    Ok(Err(error)) => error.to_string(),
                    _ => "the sign-in ended".to_owned(),
                }),
            }
        };
        let late = |_| format!("the authorization server of {id} did not answer within {STEP:?}");
        let page = timeout(STEP, page).await.map_err(late)??;
        let state = value(page.query().unwrap_or_default(), "state");
        let state = state.ok_or("the sign-in has no state")?;
        let one = Open {
            server: id.to_owned(),
            caller: caller.map(|(name, _)| name.to_owned()),
            by: by.to_owned(),
            state: Secret::new(state),
            answer,
            work,
            until: Instant::now() + PERSON,
        };
        // Others may have begun meanwhile.
        let mut open = self.open();
        room(&open)?;
        open.push(one);
        Ok(page)
    }

    /// Takes the answer with which a browser came back, from the login that began the sign-in. Any other changes nothing.
    ///
    /// # Errors
    /// A sentence for the person.
    pub(crate) async fn end(&self, query: &str, by: &str) -> Result<Signed, String> {
        let Some(open) = self.answered(query, by) else {
            return Err(OTHER.to_owned());
        };
        let Open {
            server,
            caller,
            answer,
            mut work,
            ..
        } = open;
        let _ = answer.send(query.to_owned());
        let late = |_| format!("the sign-in for {server} took longer than {STEP:?}; begin again");
        match timeout(STEP, &mut work.0).await.map_err(late)? {
            Ok(Ok(grant)) => Ok(Signed {
                server,
                caller,
                grant,
            }),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the sign-in was cut off; begin again".to_owned()),
        }
    }

    /// Ends those that were begun for a caller of a server.
    pub(crate) fn give_up(&self, server: &str, caller: &str) {
        let of = |open: &Open| open.server == server && open.caller.as_deref() == Some(caller);
        self.open().retain(|open| !of(open));
    }

    fn answered(&self, query: &str, by: &str) -> Option<Open> {
        let state = value(query, "state").filter(|_| query.len() <= LONGEST)?;
        let mut open = self.open();
        let ours = |open: &Open| open.state.is(&state) & same(by, &open.by);
        let at = open.iter().position(ours)?;
        Some(open.swap_remove(at))
    }

    /// Those whose time is not over.
    fn open(&self) -> MutexGuard<'_, Vec<Open>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        open.retain(|one| one.until > now);
        open
    }
}

/// Whether one more may be begun.
fn room(open: &[Open]) -> Result<(), String> {
    match open.len() < MOST {
        true => Ok(()),
        false => Err(format!(
            "{MOST} sign-ins are open already; end one of them, or wait {PERSON:?}"
        )),
    }
}

/// The one value of a name in a query.
fn value(query: &str, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name);
    let value = pairs.next()?.1.into_owned();
    pairs.next().is_none().then_some(value)
}

type Ends = (oneshot::Sender<Url>, oneshot::Receiver<String>);

/// The person at the console, for one sign-in.
struct Person {
    redirect: String,
    ends: Mutex<Option<Ends>>,
}

struct AtConsole {
    redirect: String,
    ends: Ends,
}

impl SignIn for Person {
    fn begin<'a>(&'a self, _: Option<&'a str>) -> BoxFuture<'a, Result<Box<dyn Visit>, AuthError>> {
        let ends = self
            .ends
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let visit = ends.map(|ends| {
            Box::new(AtConsole {
                redirect: self.redirect.clone(),
                ends,
            }) as Box<dyn Visit>
        });
        Box::pin(async move {
            visit.ok_or_else(|| AuthError::new(AuthErrorKind::Limit, "a person is asked once"))
        })
    }
}

impl Visit for AtConsole {
    fn redirect(&self) -> &str {
        &self.redirect
    }

    fn go(self: Box<Self>, url: Url) -> BoxFuture<'static, Result<String, AuthError>> {
        let (sent, answered) = self.ends;
        Box::pin(async move {
            let nobody = || {
                let words = format!("nobody signed in within {PERSON:?}; begin again");
                AuthError::new(AuthErrorKind::NeedsSignIn, words)
            };
            sent.send(url).map_err(|_| nobody())?;
            match timeout(PERSON, answered).await {
                Ok(Ok(query)) => Ok(query),
                _ => Err(nobody()),
            }
        })
    }
}
