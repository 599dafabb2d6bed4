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
/// How many of them no caller takes, so that there is room for operators.
const KEPT: usize = 8;
/// The longest answer, in bytes. A request that brings it is a short one.
const LONGEST: usize = 12 << 10;

/// Said where a key ended while somebody signed in for its caller.
const OVER: &str = "the key of the caller was revoked or has expired meanwhile";

/// Said where the work on an answer ended by itself.
const CUT: &str = "the sign-in was cut off; begin again";

/// The visits that were begun, and are not over. Each brings a `T`.
pub(super) struct Visits<T> {
    all: Mutex<All<T>>,
    /// What a person has to do about an answer that is not taken.
    other: &'static str,
}

/// Those that have their page, and what others are just being begun for.
struct All<T> {
    open: Vec<Open<T>>,
    beginning: Vec<For>,
}

/// A place among the visits, until one is open.
struct Place<'a, T> {
    all: &'a Mutex<All<T>>,
    what: For,
}

impl<T> Drop for Place<'_, T> {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = all.beginning.iter().position(|what| *what == self.what) {
            all.beginning.swap_remove(at);
        }
    }
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
            all: Mutex::new(All {
                open: Vec::new(),
                beginning: Vec::new(),
            }),
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
        let _place = self.place(&what)?;
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
        self.all().open.push(one);
        Ok(begun)
    }

    /// A place for one more. For one caller, one is begun at a time.
    fn place(&self, what: &For) -> Result<Place<'_, T>, String> {
        let mut all = self.all();
        let most = MOST - what.caller.as_ref().map_or(0, |_| KEPT);
        if all.open.len() + all.beginning.len() >= most {
            return Err(format!(
                "{most} sign-ins are open already; end one of them, or wait {PERSON:?}"
            ));
        }
        if what.caller.is_some() && all.beginning.contains(what) {
            return Err("this sign-in is just being begun; try again in a moment".to_owned());
        }
        all.beginning.push(what.clone());
        Ok(Place {
            all: &self.all,
            what: what.clone(),
        })
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
        self.all().open.retain(|open| open.what != *what);
    }

    fn answered(&self, query: &str, by: &str) -> Option<Open<T>> {
        let state = value(query, "state").filter(|_| query.len() <= LONGEST)?;
        let open = &mut self.all().open;
        let ours = |open: &Open<T>| open.state.is(&state) & same(by, &open.by);
        let at = open.iter().position(ours)?;
        Some(open.swap_remove(at))
    }

    /// Those whose time is not over.
    fn all(&self) -> MutexGuard<'_, All<T>> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        all.open.retain(|one| one.until > now);
        all
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{FutureExt, future};

    #[tokio::test]
    async fn one_is_begun_for_a_caller_at_a_time_and_all_are_counted() {
        let visits = Visits::<()>::new("other");
        let what = |caller: &str| For {
            at: "far".to_owned(),
            caller: (!caller.is_empty()).then(|| caller.to_owned()),
        };
        let begin = |caller: &str| {
            let work = |person: Person| async move {
                let _kept = person;
                future::pending().await
            };
            visits.begin(what(caller), "x".to_owned(), ("key", None), work)
        };
        let mut first = Box::pin(begin("key:ann"));
        assert!((&mut first).now_or_never().is_none());
        let second = begin("key:ann").now_or_never();
        assert!(second.unwrap().err().unwrap().contains("just being begun"));
        // Sign-ins of operators, who may be several, are told apart by nothing.
        let mut others: Vec<_> = (1..MOST).map(|_| Box::pin(begin(""))).collect();
        for other in &mut others {
            assert!(other.now_or_never().is_none());
        }
        let over = begin("key:bob").now_or_never().unwrap();
        assert!(over.err().unwrap().contains("are open already"));
        let over = begin("").now_or_never().unwrap();
        assert!(over.err().unwrap().contains("are open already"));
        others.truncate(MOST - KEPT - 1);
        let over = begin("key:bob").now_or_never().unwrap();
        assert!(
            over.err().unwrap().contains("are open already"),
            "some are kept"
        );
        drop(first);
        assert!(begin("key:ann").now_or_never().is_none());
    }
}
