//! Browser flows: a browser is sent to an authorization server, and comes back with a response.
//!
//! The redirect URI is a page of ours. It submits the response itself, with a key that only the page has that began
//! the flow. A response is accepted only with that key.

use crate::authentication::equal_secrets;
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
    client::{AuthError, AuthErrorKind, PendingSignIn, SignIn},
};

/// Time that a person has to sign in.
const PERSON_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// Timeout for discovering the authorization page, and for exchanging the response for a token.
const ISSUER_STEP_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of pending flows.
const MAX_PENDING_FLOWS: usize = 32;
/// Number of pending flows that are reserved for operators; callers cannot use them.
const OPERATOR_RESERVED_FLOWS: usize = 8;
/// Maximum size of a response, in bytes. It fits into a short request.
const MAX_RESPONSE_QUERY_BYTES: usize = 12 << 10;

/// Error if the caller's key ended during a sign-in.
const KEY_ENDED_MESSAGE: &str = "the API key of the caller was revoked or has expired during the sign-in; ask the operator for a new key";

/// Error if the exchange of a response was interrupted.
const INTERRUPTED_MESSAGE: &str = "the sign-in was interrupted; start again";

/// Pending browser flows. Each yields a `T`.
pub(super) struct BrowserFlows<T> {
    flows: Mutex<FlowTable<T>>,
    /// Error for an authorization response that is not accepted.
    unexpected: &'static str,
}

/// Flows that have their page, and the purposes of those that are being started.
struct FlowTable<T> {
    pending: Vec<PendingFlow<T>>,
    starting: Vec<BrowserFlowPurpose>,
}

/// Reserved place of a flow that is being started.
struct ReservedFlow<'a, T> {
    flows: &'a Mutex<FlowTable<T>>,
    purpose: BrowserFlowPurpose,
}

impl<T> Drop for ReservedFlow<'_, T> {
    fn drop(&mut self) {
        let mut all = self.flows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = all.starting.iter().position(|what| *what == self.purpose) {
            all.starting.swap_remove(at);
        }
    }
}

/// Purpose of a flow.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct BrowserFlowPurpose {
    /// Server or issuer, by its name in the config.
    pub(super) target: String,
    /// Caller that owns the result, if it is for one caller.
    pub(super) caller: Option<String>,
}

/// A pending flow.
struct PendingFlow<T> {
    purpose: BrowserFlowPurpose,
    /// Key of the page or session that began it.
    key: String,
    state: Secret,
    answer: oneshot::Sender<String>,
    task: FlowTask<T>,
    expires_at: Instant,
}

/// Authorization page of a started flow.
pub(crate) struct AuthorizationPage {
    pub(crate) page: Url,
    /// Issuer of the page, as the authorization server names itself.
    pub(crate) issuer: String,
}

/// Task that waits for the response. Dropping it aborts the task.
struct FlowTask<T>(JoinHandle<Result<T, AuthError>>);

impl<T> Drop for FlowTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T: Send + 'static> BrowserFlows<T> {
    /// Creates an empty set. `unexpected` is the error for a response that is not accepted.
    pub(super) fn new(other: &'static str) -> BrowserFlows<T> {
        BrowserFlows {
            flows: Mutex::new(FlowTable {
                pending: Vec::new(),
                starting: Vec::new(),
            }),
            unexpected: other,
        }
    }

    /// Starts a flow, and returns the authorization page; the browser comes back to `redirect_uri`.
    ///
    /// The flow is canceled when `expires_at` resolves. `task` runs the flow with the person.
    ///
    /// # Errors
    /// The message is for the person.
    pub(super) async fn begin<F>(
        &self,
        what: BrowserFlowPurpose,
        redirect: String,
        (by, until): (&str, Option<BoxFuture<'static, ()>>),
        work: impl FnOnce(BrowserPerson) -> F,
    ) -> Result<AuthorizationPage, String>
    where
        F: Future<Output = Result<T, AuthError>> + Send + 'static,
    {
        let _place = self.reserve(&what)?;
        let (sent, page) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        let work = work(BrowserPerson {
            redirect,
            ends: Mutex::new(Some((sent, answered))),
        });
        #[allow(
            clippy::disallowed_methods,
            reason = "the person is at another page; bounded in time, and aborted with its entry"
        )]
        let mut work = FlowTask(tokio::spawn(async move {
            let over = until.unwrap_or_else(|| Box::pin(pending()));
            tokio::select! {
                biased;
                () = over => Err(AuthError::new(AuthErrorKind::NeedsSignIn, KEY_ENDED_MESSAGE)),
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
                    _ => "the sign-in ended before the authorization page was known; start again".to_owned(),
                }),
            }
        };
        let at = &what.target;
        let late = |_| {
            format!(
                "the authorization server for {at} did not respond within {ISSUER_STEP_TIMEOUT:?}; try again later"
            )
        };
        let begun = timeout(ISSUER_STEP_TIMEOUT, page).await.map_err(late)??;
        let state = query_value(begun.page.query().unwrap_or_default(), "state");
        let state = state
            .ok_or("internal error: the authorization URL has no state parameter; report this")?;
        let one = PendingFlow {
            purpose: what,
            key: by.to_owned(),
            state: Secret::new(state),
            answer,
            task: work,
            expires_at: Instant::now() + PERSON_TIMEOUT,
        };
        self.lock_valid().pending.push(one);
        Ok(begun)
    }

    /// Reserves a place for one more flow. A caller can start one flow at a time.
    fn reserve(&self, what: &BrowserFlowPurpose) -> Result<ReservedFlow<'_, T>, String> {
        let mut all = self.lock_valid();
        let most = MAX_PENDING_FLOWS - what.caller.as_ref().map_or(0, |_| OPERATOR_RESERVED_FLOWS);
        if all.pending.len() + all.starting.len() >= most {
            return Err(format!(
                "{most} sign-ins are open already, which is the limit; complete one of them, or wait {} minutes",
                PERSON_TIMEOUT.as_secs() / 60
            ));
        }
        if what.caller.is_some() && all.starting.contains(what) {
            return Err("this sign-in is already starting; try again in a moment".to_owned());
        }
        all.starting.push(what.clone());
        Ok(ReservedFlow {
            flows: &self.flows,
            purpose: what.clone(),
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
        then: impl FnOnce(BrowserFlowPurpose, T) -> R + Send + 'static,
    ) -> Result<R, String> {
        let open = self.take_flow(query, by).ok_or(self.unexpected)?;
        let query = query.to_owned();
        #[allow(
            clippy::disallowed_methods,
            reason = "bounded in time; a code is valid once, and must not be lost with the connection that delivered it"
        )]
        let ending = tokio::spawn(async move {
            let (what, brought) = finish(open, query).await?;
            Ok(then(what, brought))
        });
        ending
            .await
            .unwrap_or_else(|_| Err(INTERRUPTED_MESSAGE.to_owned()))
    }

    /// Returns the number of pending flows with that purpose.
    pub(super) fn pending_count(&self, what: &BrowserFlowPurpose) -> usize {
        let open = self.lock_valid();
        open.pending
            .iter()
            .filter(|one| one.purpose == *what)
            .count()
    }

    /// Cancels the flows with that purpose.
    pub(super) fn cancel(&self, what: &BrowserFlowPurpose) {
        self.lock_valid()
            .pending
            .retain(|open| open.purpose != *what);
    }

    fn take_flow(&self, query: &str, by: &str) -> Option<PendingFlow<T>> {
        let state =
            query_value(query, "state").filter(|_| query.len() <= MAX_RESPONSE_QUERY_BYTES)?;
        let open = &mut self.lock_valid().pending;
        let ours =
            |open: &PendingFlow<T>| open.state.matches(&state) & equal_secrets(by, &open.key);
        let at = open.iter().position(ours)?;
        Some(open.swap_remove(at))
    }

    /// Locks the flows and removes the expired ones.
    fn lock_valid(&self) -> MutexGuard<'_, FlowTable<T>> {
        let mut all = self.flows.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        all.pending.retain(|one| one.expires_at > now);
        all
    }
}

/// Hands over the response, and waits for the result.
async fn finish<T>(open: PendingFlow<T>, query: String) -> Result<(BrowserFlowPurpose, T), String> {
    let PendingFlow {
        purpose: what,
        answer,
        task: mut work,
        ..
    } = open;
    let _ = answer.send(query);
    let at = &what.target;
    let late = |_| {
        format!(
            "the authorization server for {at} took longer than {ISSUER_STEP_TIMEOUT:?} to issue a token; sign in again"
        )
    };
    match timeout(ISSUER_STEP_TIMEOUT, &mut work.0)
        .await
        .map_err(late)?
    {
        Ok(Ok(brought)) => Ok((what, brought)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(INTERRUPTED_MESSAGE.to_owned()),
    }
}

/// Returns the value of a query parameter that occurs once.
fn query_value(query: &str, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name);
    let value = pairs.next()?.1.into_owned();
    pairs.next().is_none().then_some(value)
}

type FlowChannels = (
    oneshot::Sender<AuthorizationPage>,
    oneshot::Receiver<String>,
);

/// The person at the browser, for one flow.
pub(super) struct BrowserPerson {
    redirect: String,
    ends: Mutex<Option<FlowChannels>>,
}

struct BrowserVisit {
    redirect: String,
    issuer: String,
    ends: FlowChannels,
}

impl SignIn for BrowserPerson {
    fn begin<'a>(
        &'a self,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn PendingSignIn>, AuthError>> {
        let ends = self
            .ends
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let visit = ends.map(|ends| {
            Box::new(BrowserVisit {
                redirect: self.redirect.clone(),
                issuer: String::new(),
                ends,
            }) as Box<dyn PendingSignIn>
        });
        Box::pin(async move {
            visit.ok_or_else(|| {
                AuthError::new(
                    AuthErrorKind::LimitReached,
                    "internal error: the authorization page was requested twice; start again",
                )
            })
        })
    }
}

impl PendingSignIn for BrowserVisit {
    fn redirect_uri(&self) -> &str {
        &self.redirect
    }

    fn announce_issuer(&mut self, issuer: &str) {
        self.issuer = issuer.to_owned();
    }

    fn open_and_wait(self: Box<Self>, page: Url) -> BoxFuture<'static, Result<String, AuthError>> {
        let BrowserVisit { ends, issuer, .. } = *self;
        let (sent, answered) = ends;
        Box::pin(async move {
            let nobody = || {
                let words = format!(
                    "the sign-in was not completed within {} minutes; start again",
                    PERSON_TIMEOUT.as_secs() / 60
                );
                AuthError::new(AuthErrorKind::NeedsSignIn, words)
            };
            sent.send(AuthorizationPage { page, issuer })
                .map_err(|_| nobody())?;
            match timeout(PERSON_TIMEOUT, answered).await {
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
    async fn starts_one_flow_per_caller_and_counts_all() {
        let visits = BrowserFlows::<()>::new("other");
        let what = |caller: &str| BrowserFlowPurpose {
            target: "far".to_owned(),
            caller: (!caller.is_empty()).then(|| caller.to_owned()),
        };
        let begin = |caller: &str| {
            let work = |person: BrowserPerson| async move {
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
        let mut others: Vec<_> = (1..MAX_PENDING_FLOWS)
            .map(|_| Box::pin(begin("")))
            .collect();
        for other in &mut others {
            assert!(other.now_or_never().is_none());
        }
        let over = begin("key:bob").now_or_never().unwrap();
        assert!(over.err().unwrap().contains("are open already"));
        let over = begin("").now_or_never().unwrap();
        assert!(over.err().unwrap().contains("are open already"));
        others.truncate(MAX_PENDING_FLOWS - OPERATOR_RESERVED_FLOWS - 1);
        let over = begin("key:bob").now_or_never().unwrap();
        assert!(
            over.err().unwrap().contains("are open already"),
            "some are kept"
        );
        drop(first);
        assert!(begin("key:ann").now_or_never().is_none());
    }
}
