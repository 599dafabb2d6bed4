//! Browser flows: a browser is sent to an authorization server, and comes back with a response.
//!
//! The redirect URI is a page of ours. It submits the response itself, with a key that only the page has that began
//! the flow. A response is accepted only with that key.

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

/// Time that a person has to sign in.
const PERSON: Duration = Duration::from_secs(5 * 60);
/// Timeout for discovering the authorization page, and for exchanging the response for a token.
const STEP: Duration = Duration::from_secs(60);
/// Maximum number of pending flows.
const MOST: usize = 32;
/// Number of pending flows that are reserved for operators; callers cannot use them.
const KEPT: usize = 8;
/// Maximum size of a response, in bytes. It fits into a short request.
const LONGEST: usize = 12 << 10;

/// Error if the caller's key ended during a sign-in.
const OVER: &str = "the key of the caller was revoked or has expired meanwhile";

/// Error if the exchange of a response was interrupted.
const CUT: &str = "the sign-in was interrupted; start again";

/// Pending browser flows. Each yields a `T`.
pub(super) struct Visits<T> {
    all: Mutex<All<T>>,
    /// Error for an authorization response that is not accepted.
    other: &'static str,
}

/// Flows that have their page, and the purposes of those that are being started.
struct All<T> {
    open: Vec<Open<T>>,
    beginning: Vec<For>,
}

/// Reserved place of a flow that is being started.
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

/// Purpose of a flow.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct For {
    /// Server or issuer, by its name in the config.
    pub(super) at: String,
    /// Caller that owns the result, if it is for one caller.
    pub(super) caller: Option<String>,
}

/// A pending flow.
struct Open<T> {
    what: For,
    /// Key of the page or session that began it.
    by: String,
    state: Secret,
    answer: oneshot::Sender<String>,
    work: Work<T>,
    until: Instant,
}

/// Authorization page of a started flow.
pub(crate) struct Begun {
    pub(crate) page: Url,
    /// Issuer of the page, as the authorization server names itself.
    pub(crate) issuer: String,
}

/// Task that waits for the response. Dropping it aborts the task.
struct Work<T>(JoinHandle<Result<T, AuthError>>);

impl<T> Drop for Work<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T: Send + 'static> Visits<T> {
    /// Creates an empty set. `other` is the error for a response that is not accepted.
    pub(super) fn new(other: &'static str) -> Visits<T> {
        Visits {
            all: Mutex::new(All {
                open: Vec::new(),
                beginning: Vec::new(),
            }),
            other,
        }
    }

    /// Starts a flow, and returns the authorization page; the browser comes back to `redirect`.
    ///
    /// The flow is canceled when `until` resolves. `work` runs the flow with the person.
    ///
    /// # Errors
    /// The message is for the person.
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
            reason = "the person is at another page; bounded in time, and aborted with its entry"
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
                // If there is no page, the work says why.
                Ok(begun) = page => Ok(begun),
                done = &mut work.0 => Err(match done {
                    Ok(Err(error)) => error.to_string(),
                    _ => "the sign-in ended".to_owned(),
                }),
            }
        };
        let at = &what.at;
        let late = |_| format!("the authorization server of {at} did not respond within {STEP:?}");
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

    /// Reserves a place for one more flow. A caller can start one flow at a time.
    fn place(&self, what: &For) -> Result<Place<'_, T>, String> {
        let mut all = self.all();
        let most = MOST - what.caller.as_ref().map_or(0, |_| KEPT);
        if all.open.len() + all.beginning.len() >= most {
            return Err(format!(
                "{most} sign-ins are open already; end one of them, or wait {PERSON:?}"
            ));
        }
        if what.caller.is_some() && all.beginning.contains(what) {
            return Err("this sign-in is already starting; try again in a moment".to_owned());
        }
        all.beginning.push(what.clone());
        Ok(Place {
            all: &self.all,
            what: what.clone(),
        })
    }

    /// Handles the authorization response with the key of its flow; any other response changes nothing.
    ///
    /// `then` receives the result at once, even if the browser is gone by then.
    ///
    /// # Errors
    /// The message is for the person.
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
            reason = "bounded in time; a code is valid once, and must not be lost with the connection that delivered it"
        )]
        let ending = tokio::spawn(async move {
            let (what, brought) = ended(open, query).await?;
            Ok(then(what, brought))
        });
        ending.await.unwrap_or_else(|_| Err(CUT.to_owned()))
    }

    /// Cancels the flows with that purpose.
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

    /// Locks the flows and removes the expired ones.
    fn all(&self) -> MutexGuard<'_, All<T>> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        all.open.retain(|one| one.until > now);
        all
    }
}

/// Hands over the response, and waits for the result.
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

/// Returns the value of a query parameter that occurs once.
fn value(query: &str, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name);
    let value = pairs.next()?.1.into_owned();
    pairs.next().is_none().then_some(value)
}

type Ends = (oneshot::Sender<Begun>, oneshot::Receiver<String>);

/// The person at the browser, for one flow.
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
                let words = format!("the sign-in was not completed within {PERSON:?}; begin again");
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
        assert!(second.unwrap().err().unwrap().contains("already starting"));
        // Flows of operators are not distinguished, because there may be several operators.
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
