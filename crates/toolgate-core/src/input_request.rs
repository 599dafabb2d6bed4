//! Input requests: a call that needs input returns them as its result, and the caller repeats it with the answers.

use crate::{BoxFuture, ClientCapabilities, Item, RoundSlots};
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};
use toolgate_protocol::json::{Json, ObjectWriter};

/// Input requests that have to be answered before a call can continue.
///
/// Specification: [multi round-trip requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{
///     Call, Caller, ClientCapabilities, Error, ErrorKind, InputRequest, InputRequestKind, InputRequests, Json, Outcome,
///     Output, PendingInputGuard, RequiredCapability, Round,
/// };
///
/// /// Greets the user, and asks for the name in the first round.
/// fn greet(call: &Call) -> Result<Outcome, Error> {
///     if let Some(answer) = call.round.answer("name") {
///         return Ok(Outcome::Done(Output::text(&format!("hello {answer:?}"))));
///     }
///     if !call.capabilities.elicitation {
///         let kind = ErrorKind::MissingCapability(RequiredCapability::Elicitation);
///         return Err(Error::new(kind, "the client cannot ask its user"));
///     }
///     let form = json!({"message": "Your name?", "requestedSchema": {"type": "object"}});
///     let kind = InputRequestKind::Elicit(Json::from_value(&form));
///     let mut requests = InputRequests::new(vec![InputRequest { key: "name".to_owned(), kind }]);
///     requests.slots.insert("greeting".to_owned(), "formal".to_owned());
///     requests.guard = PendingInputGuard::with_cleanup(|| println!("nobody answered"));
///     Ok(Outcome::InputRequired(requests))
/// }
///
/// let mut call = Call::tool("c-1", Caller::new("ann"), "greet", Json::from_value(&json!({})));
/// assert!(greet(&call).is_err());
/// call.capabilities = ClientCapabilities::default();
/// call.capabilities.elicitation = true;
/// let Ok(Outcome::InputRequired(requests)) = greet(&call) else {
///     panic!("the first round asks");
/// };
///
/// let mut round = Round::default();
/// round.number = 1;
/// round.answers = vec![("name".to_owned(), Json::from_value(&json!({"action": "accept"})))];
/// round.slots = requests.slots.clone();
/// requests.guard.defuse();
/// call.round = round;
/// assert!(matches!(greet(&call), Ok(Outcome::Done(_))));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InputRequests {
    /// Input requests, each with its own key.
    pub requests: Vec<InputRequest>,
    /// State that the layers need in the next round of the call. The edge stores it, or seals it before it leaves the
    /// process.
    pub slots: RoundSlots,
    /// Cleanup of a call that stays open at a server until the answers arrive.
    pub guard: PendingInputGuard,
}

impl InputRequests {
    /// Creates input requests without state for the next round.
    pub fn new(requests: Vec<InputRequest>) -> InputRequests {
        InputRequests {
            requests,
            ..InputRequests::default()
        }
    }
}

/// Guard of state that stays open until input requests are answered. Dropping the last clone runs the cleanup, so a
/// layer that rejects a request needs no cleanup of its own.
#[derive(Clone, Default)]
pub struct PendingInputGuard(Vec<Arc<CleanupOnDrop>>);

/// Cleanup to run on drop; `None` once it was defused.
struct CleanupOnDrop(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl PendingInputGuard {
    /// Creates a guard that runs `end` when its last clone is dropped.
    pub fn with_cleanup(end: impl FnOnce() + Send + 'static) -> PendingInputGuard {
        PendingInputGuard(vec![Arc::new(CleanupOnDrop(Mutex::new(Some(Box::new(
            end,
        )))))])
    }

    /// Adds the cleanups of another guard, for example of another round.
    pub fn merge(&mut self, other: PendingInputGuard) {
        self.0.extend(other.0);
    }

    /// Disarms the guard, so that dropping it runs no cleanup. Call it once the requests were sent: the answers arrive
    /// in a call of their own, and the state stays open until then.
    pub fn defuse(self) {
        for end in self.0 {
            end.take_cleanup();
        }
    }
}

impl CleanupOnDrop {
    fn take_cleanup(&self) -> Option<Box<dyn FnOnce() + Send>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for CleanupOnDrop {
    fn drop(&mut self) {
        if let Some(end) = self.take_cleanup() {
            end();
        }
    }
}

impl fmt::Debug for PendingInputGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PendingInputGuard({})", self.0.len())
    }
}

/// One input request of a call, with its key: approval, elicitation, sampling, roots or sign-in.
///
/// Specification: [multi round-trip requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).
#[derive(Clone, Debug)]
pub struct InputRequest {
    /// Key that identifies the input request and its answer.
    pub key: String,
    /// Kind and content of the input request.
    pub kind: InputRequestKind,
}

/// Kind of an input request, with its content. Exhaustive on purpose: a new kind breaks the build of every check.
///
/// Specification: [supported requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#supported-requests).
#[derive(Clone, Debug)]
pub enum InputRequestKind {
    /// Approval of the call by a person.
    Approve(ApprovalRequest),
    /// Elicitation of a form or a URL from the user: the parameters of `elicitation/create`.
    Elicit(Json),
    /// Sampling of the client's model: the parameters of `sampling/createMessage`.
    Sample(Json),
    /// Listing of the client's roots (`roots/list`).
    Roots,
    /// Sign-in of the caller's user to an upstream server, at a page of the gateway. Servers cannot request it.
    SignIn(SignInPage),
}

/// Sign-in page of the gateway, where a caller's user signs in to an upstream server.
#[derive(Clone)]
#[non_exhaustive]
pub struct SignInPage {
    /// URL of the sign-in page. It grants no access by itself.
    pub url: String,
    /// Message that the client shows to the user.
    pub message: String,
    /// Notification of the completed sign-in, for a client that reports that it opened the page and now waits.
    pub completion: Option<Arc<dyn DecisionWaiter>>,
}

impl SignInPage {
    /// Creates a sign-in page with a message to the user, without a notification of the completed sign-in.
    pub fn new(url: impl Into<String>, message: impl Into<String>) -> SignInPage {
        SignInPage {
            url: url.into(),
            message: message.into(),
            completion: None,
        }
    }
}

impl SignInPage {
    /// Returns the parameters of `elicitation/create` that present the page as a URL elicitation.
    pub fn params(&self) -> Json {
        let mut params = ObjectWriter::new();
        params.str("mode", "url");
        params.str("message", &self.message);
        params.str("url", &self.url);
        params.finish()
    }
}

impl fmt::Debug for SignInPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignInPage({})", self.url)
    }
}

/// Request to approve one call.
#[derive(Clone)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// Id of the approval request in the approver's inbox.
    pub id: Arc<str>,
    /// Item that the call to approve uses.
    pub item: Arc<Item>,
    /// Exact arguments of the call to approve.
    pub arguments: Json,
    /// Reasons why approval is required.
    pub reasons: Vec<String>,
    /// Time at which the request expires, which denies the call.
    pub expires: SystemTime,
    /// True if the caller's own client may present the request to its user.
    pub via_client: bool,
    /// Waiter that completes when an approver decides.
    pub waiter: Arc<dyn DecisionWaiter>,
}

impl ApprovalRequest {
    /// Creates a request for approval of a call, without reasons, which the caller's own client may not present.
    pub fn new(
        id: Arc<str>,
        item: Arc<Item>,
        arguments: Json,
        expires: SystemTime,
        waiter: Arc<dyn DecisionWaiter>,
    ) -> ApprovalRequest {
        ApprovalRequest {
            id,
            item,
            arguments,
            reasons: Vec::new(),
            expires,
            via_client: false,
            waiter,
        }
    }
}

impl ApprovalRequest {
    /// Maximum size in bytes of the arguments that a client shows to its user in a form.
    pub const MAX_CLIENT_BYTES: usize = 16 * 1024;

    /// Returns true if a client with these capabilities can show its user a call with these arguments, in a form.
    pub fn fits_client(capabilities: &ClientCapabilities, arguments: &Json) -> bool {
        capabilities.elicitation && arguments.as_str().len() <= ApprovalRequest::MAX_CLIENT_BYTES
    }
}

impl fmt::Debug for ApprovalRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ApprovalRequest({} for {})",
            self.id,
            self.item.full_name()
        )
    }
}

/// Waiter for a decision or sign-in that a call needs before it can continue.
///
/// ```
/// use std::{sync::Arc, time::{Duration, SystemTime}};
/// use tokio::sync::watch;
/// use toolgate_core::{ApprovalRequest, BoxFuture, DecisionWaiter, Item, Json, SignInPage};
///
/// /// Waits for a flag that a decision sets.
/// struct Flag(watch::Receiver<bool>);
///
/// impl DecisionWaiter for Flag {
///     fn wait_for_decision(&self) -> BoxFuture<'static, ()> {
///         let mut flag = self.0.clone();
///         Box::pin(async move {
///             let _ = flag.wait_for(|decided| *decided).await;
///         })
///     }
///
///     fn mark_waiting(&self) -> Box<dyn Send + Sync> {
///         Box::new(())
///     }
/// }
///
/// fn approval(item: Arc<Item>, arguments: Json, decided: watch::Receiver<bool>) -> ApprovalRequest {
///     let expires = SystemTime::now() + Duration::from_secs(600);
///     let mut request = ApprovalRequest::new("a-1".into(), item, arguments, expires, Arc::new(Flag(decided)));
///     request.reasons.push("deletes a file".to_owned());
///     request
/// }
///
/// fn sign_in(signed_in: watch::Receiver<bool>) -> SignInPage {
///     let mut page = SignInPage::new("https://gate.example.com/sign-in/1", "Sign in to the tracker");
///     page.completion = Some(Arc::new(Flag(signed_in)));
///     page
/// }
/// ```
pub trait DecisionWaiter: Send + Sync + 'static {
    /// Waits until the request is decided or expires; the caller then repeats the call.
    fn wait_for_decision(&self) -> BoxFuture<'static, ()>;

    /// Marks the caller as waiting until the returned value is dropped. Dropping it does not invalidate the approval.
    fn mark_waiting(&self) -> Box<dyn Send + Sync>;
}
