//! Answers to a server's input requests, by the application's functions.

use super::{
    AsyncCallback, CallConfirmation, EventCallback, FormElicitation, InputAnswer, InputKind,
    InputQuestion, SamplingRequest, SamplingResponse, UrlElicitation, confirmation,
    errors::invalid_arguments, form_elicitation, manual_input, roots,
};
use crate::{
    client::ClientHandler,
    handlers::ask::{Reply, Root},
};
use serde_json::Value;
use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use tokio::sync::watch;
use toolgate_core::{
    BoxFuture, Caller, ClientCapabilities, DecisionLog, Error, ErrorKind, InputRequest,
    InputRequestKind, InputRequests, LogMessage, RefusalReason, ReporterEvent, RequiredCapability,
    Sanitizer, UntrustedContent,
};
use toolgate_policy::{
    AuditRecorder, InputRequestPolicy, Policy, SchemaBounds, SecretRedactor, SizeLimits,
    TextSanitizer, unchecked_keywords,
};
use toolgate_protocol::{
    json::Json,
    message::{RpcError, code},
};

/// Maximum number of URL elicitations whose completion is awaited.
const MAX_AWAITED_PAGES: usize = 64;
/// Error code for an input request that the user refused.
const USER_REFUSED: i64 = -1;

/// Functions of the application. A capability without a function is not declared.
#[derive(Clone, Default)]
pub(super) struct ClientCallbacks {
    pub(super) form: Option<AsyncCallback<FormElicitation, Reply<Value>>>,
    pub(super) page: Option<AsyncCallback<UrlElicitation, Reply<()>>>,
    pub(super) elicitation_complete: Option<EventCallback<String>>,
    pub(super) sample: Option<AsyncCallback<SamplingRequest, Result<SamplingResponse, String>>>,
    pub(super) samples_with_tools: bool,
    pub(super) roots: Option<Vec<Root>>,
    pub(super) confirm: Option<AsyncCallback<CallConfirmation, Result<(), String>>>,
    pub(super) log: Option<EventCallback<LogMessage>>,
    /// Kinds of input requests that the application answers by hand.
    pub(super) manual: Vec<InputKind>,
}

impl ClientCallbacks {
    fn samples_by_hand(&self) -> bool {
        let kinds = [InputKind::Sampling, InputKind::SamplingWithTools];
        kinds.iter().any(|kind| self.manual.contains(kind))
    }

    fn samples_tools(&self) -> bool {
        self.manual.contains(&InputKind::SamplingWithTools)
            || (self.sample.is_some() && self.samples_with_tools && !self.samples_by_hand())
    }
}

/// Answers the input requests of one server.
#[derive(Clone)]
pub(super) struct InputResponder(Arc<InputResponderState>);

struct InputResponderState {
    server: String,
    functions: ClientCallbacks,
    roots: Mutex<Vec<Root>>,
    pages: Mutex<VecDeque<String>>,
    size: SizeLimits,
    input_policy: InputRequestPolicy,
    secrets: SecretRedactor,
    /// Audit recorder for input requests outside of calls, once it is known.
    recorder: OnceLock<Arc<AuditRecorder>>,
    /// Number of open input requests: while it is above 0, the time-outs of calls are paused.
    open_requests: watch::Sender<usize>,
}

impl InputResponder {
    pub(super) fn new(server: &str, functions: ClientCallbacks, duties: &Policy) -> InputResponder {
        InputResponder(Arc::new(InputResponderState {
            server: server.to_owned(),
            roots: Mutex::new(functions.roots.clone().unwrap_or_default()),
            functions,
            pages: Mutex::default(),
            size: duties.size,
            input_policy: duties.input_requests.clone(),
            secrets: duties.sanitizers.secrets.clone(),
            recorder: OnceLock::new(),
            open_requests: watch::Sender::new(0),
        }))
    }

    /// Sets the recorder for input requests outside of calls.
    pub(super) fn set_recorder(&self, recorder: Arc<AuditRecorder>) {
        let _ = self.0.recorder.set(recorder);
    }

    /// Returns the client capabilities to declare.
    pub(super) fn capabilities(&self, extensions: Option<Json>) -> ClientCapabilities {
        let has = &self.0.functions;
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = has.form.is_some() || has.manual.contains(&InputKind::Form);
        capabilities.elicitation_url = has.page.is_some() || has.manual.contains(&InputKind::Url);
        capabilities.sampling = has.sample.is_some() || has.samples_by_hand();
        capabilities.sampling_tools = has.samples_tools();
        capabilities.roots = has.roots.is_some();
        capabilities.extensions = extensions;
        capabilities
    }

    /// Returns a receiver of the number of open input requests.
    pub(super) fn open_requests(&self) -> watch::Receiver<usize> {
        self.0.open_requests.subscribe()
    }

    pub(super) fn set_roots(&self, roots: Vec<Root>) {
        *self.roots() = roots;
    }

    fn roots(&self) -> MutexGuard<'_, Vec<Root>> {
        self.0.roots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pages(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers an input request with the result that the protocol defines.
    ///
    /// # Errors
    /// The application has no function for it, the request is invalid, or the application's answer does not match the
    /// form.
    pub(super) async fn answer_request(&self, ask: &InputRequestKind) -> Result<Json, Error> {
        let _open = OpenInputRequest::new(&self.0.open_requests);
        match ask {
            InputRequestKind::Approve(approval) => {
                let Some(confirm) = &self.0.functions.confirm else {
                    return Err(undeclared_capability(
                        RequiredCapability::Elicitation,
                        "a confirmation (elicitation)",
                    ));
                };
                Ok(confirmation::answer(
                    &confirm(CallConfirmation::of(approval)).await,
                ))
            }
            InputRequestKind::Elicit(params) if is_url(params) => self.page(params).await,
            InputRequestKind::Elicit(params) => self.form(params).await,
            InputRequestKind::SignIn(page) => self.page(&page.params()).await,
            InputRequestKind::Sample(params) => self.sample(params).await,
            InputRequestKind::Roots if self.0.functions.roots.is_some() => {
                Ok(roots::result(&self.roots()))
            }
            InputRequestKind::Roots => {
                Err(undeclared_capability(RequiredCapability::Roots, "roots"))
            }
        }
    }

    async fn form(&self, params: &Json) -> Result<Json, Error> {
        let Some(fill) = &self.0.functions.form else {
            return Err(undeclared_capability(
                RequiredCapability::Elicitation,
                "a form (elicitation)",
            ));
        };
        let asked = self.read_form(params)?;
        let reply = fill(asked.clone()).await;
        encode_form(&asked, reply)
    }

    async fn page(&self, params: &Json) -> Result<Json, Error> {
        let Some(open) = &self.0.functions.page else {
            return Err(undeclared_capability(
                RequiredCapability::ElicitationUrl,
                "a page for the user (URL elicitation)",
            ));
        };
        Ok(encode_page(&open(self.read_page(params)?).await))
    }

    async fn sample(&self, params: &Json) -> Result<Json, Error> {
        let Some(sample) = &self.0.functions.sample else {
            return Err(undeclared_capability(
                RequiredCapability::Sampling,
                "a model response (sampling)",
            ));
        };
        let asked = self.read_sampling(params)?;
        let max_tokens = asked.params.max_tokens;
        encode_sampling(max_tokens, sample(asked).await)
    }

    fn read_form(&self, params: &Json) -> Result<FormElicitation, Error> {
        FormElicitation::read(&self.0.server, params)
            .ok_or_else(|| invalid_request("the form has no message or no schema"))
    }

    /// Reads a URL elicitation. Its completion is awaited from now on.
    fn read_page(&self, params: &Json) -> Result<UrlElicitation, Error> {
        let page = UrlElicitation::read(&self.0.server, params).ok_or_else(|| {
            invalid_request("the URL elicitation has no message or no http or https URL")
        })?;
        if let Some(id) = &page.id {
            let mut pages = self.pages();
            pages.truncate(MAX_AWAITED_PAGES - 1);
            pages.push_front(id.clone());
        }
        Ok(page)
    }

    fn read_sampling(&self, params: &Json) -> Result<SamplingRequest, Error> {
        let tools = self.0.functions.samples_tools();
        SamplingRequest::read(&self.0.server, params, tools).map_err(invalid_request)
    }

    /// Returns whether the application answers a request by hand.
    pub(super) fn is_manual(&self, request: &InputRequestKind) -> bool {
        let functions = &self.0.functions;
        let url = matches!(request, InputRequestKind::Elicit(params) if is_url(params));
        match manual_input::input_kind(request, url) {
            Some(InputKind::Sampling) => functions.samples_by_hand(),
            Some(kind) => functions.manual.contains(&kind),
            None => false,
        }
    }

    /// Reads a request that the application answers by hand.
    ///
    /// # Errors
    /// The request is invalid.
    pub(super) fn question(&self, request: &InputRequestKind) -> Result<InputQuestion, Error> {
        Ok(match request {
            InputRequestKind::Approve(approval) => {
                InputQuestion::Confirm(CallConfirmation::of(approval))
            }
            InputRequestKind::Elicit(params) if is_url(params) => {
                InputQuestion::Url(self.read_page(params)?)
            }
            InputRequestKind::Elicit(params) => InputQuestion::Form(self.read_form(params)?),
            InputRequestKind::SignIn(page) => InputQuestion::Url(self.read_page(&page.params())?),
            InputRequestKind::Sample(params) => InputQuestion::Sample(self.read_sampling(params)?),
            InputRequestKind::Roots => InputQuestion::Roots,
        })
    }

    /// Returns the result that the protocol defines for an answer.
    ///
    /// # Errors
    /// The answer is of another kind than the question, or does not fit it.
    pub(super) fn encode_answer(
        &self,
        question: &InputQuestion,
        answer: InputAnswer,
    ) -> Result<Json, Error> {
        match (question, answer) {
            (InputQuestion::Confirm(_), InputAnswer::Confirm(said)) => {
                Ok(confirmation::answer(&said))
            }
            (InputQuestion::Form(asked), InputAnswer::Form(reply)) => encode_form(asked, reply),
            (InputQuestion::Url(_), InputAnswer::Url(reply)) => Ok(encode_page(&reply)),
            (InputQuestion::Sample(asked), InputAnswer::Sample(sampled)) => {
                encode_sampling(asked.params.max_tokens, sampled)
            }
            (InputQuestion::Roots, InputAnswer::Roots(roots)) => {
                roots::check(&roots)?;
                Ok(roots::result(&roots))
            }
            _ => Err(invalid_arguments(
                "an answer of the same kind as the question",
                "another kind",
            )),
        }
    }

    /// Sanitizes and checks an input request that came outside of a pipeline, by the same rules.
    fn sanitize(&self, ask: InputRequestKind) -> Result<InputRequestKind, Error> {
        let mut questions = InputRequests::new(vec![InputRequest {
            key: "question".to_owned(),
            kind: ask,
        }]);
        let scrubs: [&dyn Sanitizer; 3] = [&self.0.size, &TextSanitizer, &self.0.secrets];
        for scrub in scrubs {
            scrub.sanitize(None, None, UntrustedContent::InputRequests(&mut questions))?;
        }
        let cleaned = questions.requests.pop().map(|ask| ask.kind);
        let mut cleaned =
            cleaned.ok_or_else(|| invalid_request("nothing of it was left after sanitizing"))?;
        let (server, caller) = (&self.0.server, Caller::new("application"));
        let trail = DecisionLog::default();
        let judged = (self.0.input_policy).judge(server, &caller, &mut cleaned, &trail);
        if let Some(recorder) = self.0.recorder.get() {
            recorder.note_input_request(server, &cleaned, judged.as_ref().err());
        }
        judged?;
        Ok(cleaned)
    }
}

impl ClientHandler for InputResponder {
    fn defers_input(&self) -> bool {
        let mut kinds = self.0.functions.manual.iter();
        kinds.any(|kind| *kind != InputKind::Confirm)
    }

    fn answer(&self, ask: InputRequestKind) -> BoxFuture<'static, Result<Json, RpcError>> {
        let answers = self.clone();
        Box::pin(async move {
            let answered = async { answers.answer_request(&answers.sanitize(ask)?).await };
            answered.await.map_err(|error| rpc_error(&error))
        })
    }

    fn log(&self, message: LogMessage) {
        let Some(log) = &self.0.functions.log else {
            return;
        };
        let mut event = ReporterEvent::Log(message);
        let scrubs: [&dyn Sanitizer; 3] = [&self.0.size, &TextSanitizer, &self.0.secrets];
        let clean = |scrub: &&dyn Sanitizer| {
            let cleaned = scrub.sanitize(None, None, UntrustedContent::Event(&mut event));
            cleaned.is_ok()
        };
        if scrubs.iter().all(clean)
            && let ReporterEvent::Log(message) = event
        {
            log(message);
        }
    }

    fn elicitation_complete(&self, elicitation: &str) {
        let known = {
            let mut pages = self.pages();
            let at = pages.iter().position(|id| id == elicitation);
            at.and_then(|at| pages.remove(at))
        };
        if let (Some(id), Some(done)) = (known, &self.0.functions.elicitation_complete) {
            done(id);
        }
    }
}

impl fmt::Debug for InputResponder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InputResponder(to {})", self.0.server)
    }
}

/// Open input request; counted until it is dropped.
struct OpenInputRequest<'a>(&'a watch::Sender<usize>);

impl OpenInputRequest<'_> {
    fn new(count: &watch::Sender<usize>) -> OpenInputRequest<'_> {
        count.send_modify(|open| *open += 1);
        OpenInputRequest(count)
    }
}

impl Drop for OpenInputRequest<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

/// Returns the result of a form elicitation.
fn encode_form(asked: &FormElicitation, reply: Reply<Value>) -> Result<Json, Error> {
    Ok(match reply {
        Reply::Declined => form_elicitation::result("decline", None),
        Reply::Cancelled => form_elicitation::result("cancel", None),
        Reply::Accepted(answer) => {
            let whole = asked
                .complete(answer)
                .map_err(|why| unsent_answer(asked, &why))?;
            form_elicitation::result("accept", Some(&whole))
        }
    })
}

/// Returns the result of a URL elicitation.
fn encode_page(reply: &Reply<()>) -> Json {
    let action = match reply {
        Reply::Accepted(()) => "accept",
        Reply::Declined => "decline",
        Reply::Cancelled => "cancel",
    };
    form_elicitation::result(action, None)
}

/// Returns the result of a sampling request.
fn encode_sampling(
    max_tokens: u64,
    sampled: Result<SamplingResponse, String>,
) -> Result<Json, Error> {
    let sampled = sampled.map_err(|reason| {
        Error::new(
            ErrorKind::Refused(RefusalReason::Approver),
            format!("the sampling request was rejected: {reason}"),
        )
    })?;
    sampled
        .cut_to(max_tokens)
        .map_err(|reason| Error::new(ErrorKind::Bug, reason))
}

fn is_url(params: &Json) -> bool {
    params.get("mode").and_then(|m| m.string()).as_deref() == Some("url")
}

fn undeclared_capability(need: RequiredCapability, what: &str) -> Error {
    Error::new(
        ErrorKind::MissingCapability(need),
        format!("the server requests {what}, which this application does not support"),
    )
}

/// Returns the error for an accepted form that was not sent. If the schema is unusable, the server is at fault.
fn unsent_answer(form: &FormElicitation, why: &str) -> Error {
    match unchecked_keywords(&Json::from_value(&form.schema), &SchemaBounds::default()) {
        Err(unusable) => invalid_request(&format!(
            "its form has an unusable schema ({unusable}); the author of the server has to correct it"
        )),
        Ok(_) => Error::new(
            ErrorKind::Bug,
            format!(
                "the application's answer was not sent, because it failed the check against the server's form: {why}"
            ),
        ),
    }
}

fn invalid_request(reason: &str) -> Error {
    Error::new(
        ErrorKind::Upstream,
        format!("the server sent an invalid input request: {reason}"),
    )
}

/// Returns the JSON-RPC error for the server.
fn rpc_error(error: &Error) -> RpcError {
    let code = match error.kind() {
        ErrorKind::MissingCapability(_) => code::METHOD_NOT_FOUND,
        ErrorKind::Refused(RefusalReason::Approver) => USER_REFUSED,
        ErrorKind::Upstream | ErrorKind::Refused(_) => code::INVALID_PARAMS,
        _ => code::INTERNAL_ERROR,
    };
    RpcError::new(code, error.public_message())
}
