//! Visits of a browser to an authorization server: where it is sent, and how it comes back.
//!
//! The way back is a page of ours, which hands over the answer itself, with a key that only the page has that began. An
//! answer is taken only with that key.

use crate::door::same;
use futures_util::future::BoxFuture;
use std::{
    future::pending,
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
    client::{AuthError, AuthErrorKind, SignIn, Visit},
};

/// How long a person has.
const PERSON: Duration = Duration::from_secs(5 * 60);
/// How long it may take to find the page where a person signs in, and to trade the answer.
const STEP: Duration = Duration::from_secs(60);
/// Visits that are open at once.
const MOST: usize = 32;
/// The longest answer, in bytes.
const LONGEST: usize = 16 << 10;

/// Said where a key ended while somebody signed in for its caller.
const OVER: &str = "the key of the caller was revoked or has expired meanwhile";

/// Said where the work on an answer ended by itself.
const CUT: &str = "the sign-in was cut off; begin again";

/// The visits that were begun, and are not over. Each brings a `T`.
pub(super) struct Visits<T> {
    open: Mutex<Vec<Open<T>>>,
    /// What a person has to do about an answer that is not taken.
    other: &'static str,
}

/// What a visit is for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct For {
    /// Where somebody signs in, by its name in the config.
    pub(super) at: String,
    /// For which caller alone.
    pub(super) caller: Option<String>,
}

/// One of them.
struct Open<T> {
    what: For,
    /// The key of what began it.
    by: String,
    state: Secret,
    answer: oneshot::Sender<String>,
    work: Work<T>,
    until: Instant,
}

/// Where a person goes to sign in.
pub(crate) struct Begun {
    pub(crate) page: Url,
    /// Whose page it is, as the authorization server names itself.
    pub(crate) issuer: String,
}

/// What waits for the answer; it ends with its owner.
struct Work<T>(JoinHandle<Result<T, AuthError>>);

impl<T> Drop for Work<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T: Send + 'static> Visits<T> {
    /// None yet. Of an answer that is not taken, a person is told `other`.
    pub(super) fn new(other: &'static str) -> Visits<T> {
        Visits {
            open: Mutex::default(),
            other,
        }
    }

    /// Begins one, and gives the page where the person signs in; the browser comes back to `redirect`. It ends with what
    /// it was begun with: `until` then. `work` is what is done with the person.
    ///
    /// # Errors
    /// A sentence for the person.
    pub(super) async fn begin<F>(
        &self,
        what: For,
        redirect: String,
        (by, until): (&str, Option<BoxFuture<'static, ()>>),
        work: impl FnOnce(Person) -> F,
    ) -> Result<Begun, String>
    where
        F: Future<Output = Result<T, AuthError>> + Send + 'static,
    {
        room(&self.open())?;
        let (sent, page) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        let work = work(Person {
            redirect,
            ends: Mutex::new(Some((sent, answered))),
        });
        #[allow(
            clippy::disallowed_methods,
            reason = "a person is away at another page meanwhile; bounded in time, and ended with its entry"
        )]
        let mut work = Work(tokio::spawn(async move {
            let over = until.unwrap_or_else(|| Box::pin(pending()));
            tokio::select! {
                biased;
                () = over => Err(AuthError::new(AuthErrorKind::NeedsSignIn, OVER)),
                done = work => done,
            }
        }));
        let page = async {
            tokio::select! {
                biased;
                // Where it comes to nothing, the work says why.
                Ok(begun) = page => Ok(begun),
                done = &mut work.0 => Err(match done {
                    Ok(Err(error)) => error.to_string(),
                    _ => "the sign-in ended".to_owned(),
                }),
            }
        };
        let at = &what.at;
        let late = |_| format!("the authorization server of {at} did not answer within {STEP:?}");
        let begun = timeout(STEP, page).await.map_err(late)??;
        let state = value(begun.page.query().unwrap_or_default(), "state");
        let state = state.ok_or("the sign-in has no state")?;
        let one = Open {
            what,
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
        Ok(begun)
    }

    /// Takes the answer with which a browser came back, with the key of what began. Any other changes nothing. What it
    /// brings is made into something at once, also where the browser is gone by then.
    ///
    /// # Errors
    /// A sentence for the person.
    pub(super) async fn end<R: Send + 'static>(
        &self,
        query: &str,
        by: &str,
        then: impl FnOnce(For, T) -> R + Send + 'static,
    ) -> Result<R, String> {
        let open = self.answered(query, by).ok_or(self.other)?;
        let query = query.to_owned();
        #[allow(
            clippy::disallowed_methods,
            reason = "bounded in time; a code is good once, and must not be lost with the connection that brought it"
        )]
        let ending = tokio::spawn(async move {
            let (what, brought) = ended(open, query).await?;
            Ok(then(what, brought))
        });
        ending.await.unwrap_or_else(|_| Err(CUT.to_owned()))
    }

    /// Ends those that were begun for this.
    pub(super) fn give_up(&self, what: &For) {
        self.open().retain(|open| open.what != *what);
    }

    fn answered(&self, query: &str, by: &str) -> Option<Open<T>> {
        let state = value(query, "state").filter(|_| query.len() <= LONGEST)?;
        let mut open = self.open();
        let ours = |open: &Open<T>| open.state.is(&state) & same(by, &open.by);
        let at = open.iter().position(ours)?;
        Some(open.swap_remove(at))
    }

    /// Those whose time is not over.
    fn open(&self) -> MutexGuard<'_, Vec<Open<T>>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        open.retain(|one| one.until > now);
        open
    }
}

/// Hands the answer over, and waits for what it is traded for.
async fn ended<T>(open: Open<T>, query: String) -> Result<(For, T), String> {
    let Open {
        what,
        answer,
        mut work,
        ..
    } = open;
    let _ = answer.send(query);
    let at = &what.at;
    let late = |_| format!("the sign-in for {at} took longer than {STEP:?}; begin again");
    match timeout(STEP, &mut work.0).await.map_err(late)? {
        Ok(Ok(brought)) => Ok((what, brought)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(CUT.to_owned()),
    }
}

/// Whether one more may be begun.
fn room<T>(open: &[Open<T>]) -> Result<(), String> {
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

type Ends = (oneshot::Sender<Begun>, oneshot::Receiver<String>);

/// The person at the browser, for one sign-in.
pub(super) struct Person {
    redirect: String,
    ends: Mutex<Option<Ends>>,
}

struct AtBrowser {
    redirect: String,
    issuer: String,
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
            Box::new(AtBrowser {
                redirect: self.redirect.clone(),
                issuer: String::new(),
                ends,
            }) as Box<dyn Visit>
        });
        Box::pin(async move {
            visit.ok_or_else(|| AuthError::new(AuthErrorKind::Limit, "a person is asked once"))
        })
    }
}

impl Visit for AtBrowser {
    fn redirect(&self) -> &str {
        &self.redirect
    }

    fn issuer(&mut self, issuer: &str) {
        self.issuer = issuer.to_owned();
    }

    fn go(self: Box<Self>, page: Url) -> BoxFuture<'static, Result<String, AuthError>> {
        let AtBrowser { ends, issuer, .. } = *self;
        let (sent, answered) = ends;
        Box::pin(async move {
            let nobody = || {
                let words = format!("nobody signed in within {PERSON:?}; begin again");
                AuthError::new(AuthErrorKind::NeedsSignIn, words)
            };
            sent.send(Begun { page, issuer }).map_err(|_| nobody())?;
            match timeout(PERSON, answered).await {
                Ok(Ok(query)) => Ok(query),
                _ => Err(nobody()),
            }
        })
    }
}
