//! Input requests that the application answers later, in place of a function.

use super::{
    CallConfirmation, CallResult, Client, FormElicitation, SamplingRequest, SamplingResponse,
    TaskHandle, UrlElicitation, errors::invalid_arguments,
};
use crate::handlers::ask::{Reply, Root};
use serde_json::Value;
use std::fmt;
use toolgate_core::{Call, Error, InputRequestKind, InputRequests, Json, Round};

/// Kind of input request that an application answers by hand; see
/// [`ClientBuilder::manual_input`](super::ClientBuilder::manual_input).
///
/// Specification: [multi round-trip requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum InputKind {
    /// Confirmation of a call for which a rule of the client requires it, in place of
    /// [`ClientBuilder::confirm_asked`](super::ClientBuilder::confirm_asked).
    Confirm,
    /// Form elicitation.
    Form,
    /// URL elicitation.
    Url,
    /// Sampling of the application's model, without tools.
    Sampling,
    /// Sampling of the application's model, with tools.
    SamplingWithTools,
}

/// Input request of a server, or a confirmation that the client's own rules require.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum InputQuestion {
    /// A rule requires that the call be confirmed before it is sent.
    Confirm(CallConfirmation),
    /// The server asks the user to fill in a form.
    Form(FormElicitation),
    /// The server asks the user to open a page.
    Url(UrlElicitation),
    /// The server asks the application's model.
    Sample(SamplingRequest),
    /// The server asks for the application's roots.
    Roots,
}

/// Answer to an [`InputQuestion`] of the same kind.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum InputAnswer {
    /// Confirmation of the call, or the reason of its refusal.
    Confirm(Result<(), String>),
    /// Reply to a form; an accepted one is completed with the form's defaults and must match its schema.
    Form(Reply<Value>),
    /// Reply to a page: accepted if the user agreed to open it.
    Url(Reply<()>),
    /// Answer of the model, or the reason why a person rejected the request.
    Sample(Result<SamplingResponse, String>),
    /// Roots of the application.
    Roots(Vec<Root>),
}

/// State of a started call: it is done, needs input, or runs as a task of the server.
#[derive(Debug)]
#[non_exhaustive]
pub enum CallProgress {
    /// The call has a result.
    Done(CallResult),
    /// The call needs input before it can continue.
    InputRequired(PendingCall),
    /// The server runs the call as a task.
    Task(TaskHandle),
}

/// Call that waits for answers of the application. It can wait as long as the server allows, and dropping it abandons
/// the call.
///
/// ```
/// # use serde_json::json;
/// # use toolgate::{Client, Cx, HandlerExit, Server, handlers::ask, tool};
/// use toolgate::{client::{CallProgress, InputAnswer, InputKind}, handlers::ask::Reply};
///
/// # /// Greets.
/// # #[tool]
/// # async fn greet(cx: Cx) -> Result<String, HandlerExit> {
/// #     Ok(format!("Hello {}", cx.ask("name", ask::text("Who are you?"))?))
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), toolgate::core::Error> {
/// # let server = Server::new("s", "1").tool(greet);
/// let client = Client::builder().manual_input([InputKind::Form]).in_process(server).await?;
/// let CallProgress::InputRequired(mut call) = client.call_with("greet", ()).start().await? else {
///     panic!("the tool asks for a name");
/// };
/// // The application may show call.questions() now, and come back much later.
/// let key = call.questions()[0].0.clone();
/// call.answer(&key, InputAnswer::Form(Reply::Accepted(json!({"value": "Ada"}))))?;
/// let CallProgress::Done(result) = call.resume().await? else { panic!("it needs no more") };
/// assert_eq!(result.text(), "Hello Ada");
/// # Ok(())
/// # }
/// ```
pub struct PendingCall {
    client: Client,
    call: Call,
    input: InputRequests,
    /// Open questions with their keys.
    questions: Vec<(String, InputQuestion)>,
    answers: Vec<(String, Json)>,
}

impl PendingCall {
    /// Returns the questions that have no answer yet, with their keys.
    pub fn questions(&self) -> &[(String, InputQuestion)] {
        &self.questions
    }

    /// Returns the name of the called tool.
    pub fn tool(&self) -> &str {
        self.call.name()
    }

    /// Answers the question of this key. Nothing is sent before [`PendingCall::resume`].
    ///
    /// # Errors
    /// No such question is open, or the answer does not fit it; then the question stays open.
    pub fn answer(&mut self, key: &str, answer: InputAnswer) -> Result<(), Error> {
        let at = self.questions.iter().position(|(own, _)| own == key);
        let Some((at, (_, question))) = at.and_then(|at| Some((at, self.questions.get(at)?)))
        else {
            return Err(invalid_arguments("the key of an open question", key));
        };
        let json = self
            .client
            .inner()
            .answers
            .encode_answer(question, answer)?;
        self.questions.remove(at);
        self.answers.push((key.to_owned(), json));
        Ok(())
    }

    /// Sends the answers, and continues the call until it is done or needs more input.
    ///
    /// # Errors
    /// A question has no answer; the call is abandoned. Otherwise as [`Client::call`].
    pub async fn resume(self) -> Result<CallProgress, Error> {
        if let Some((key, _)) = self.questions.first() {
            return Err(invalid_arguments(
                "an answer to every question",
                format!("none to {key:?}"),
            ));
        }
        let mut call = self.call;
        let mut round = Round::default();
        round.number = call.round.number + 1;
        round.answers = self.answers;
        round.slots = self.input.slots;
        call.round = round;
        self.client.advance(call, self.input.guard).await
    }
}

impl fmt::Debug for PendingCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingCall")
            .field("tool", &self.call.name())
            .field("questions", &self.questions.len())
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Answers the requests that have a function, and returns the call with the others, if there are any.
    ///
    /// # Errors
    /// A request is invalid, or the application declared no support for it.
    pub(super) async fn collect_answers(
        &self,
        call: &Call,
        input: InputRequests,
    ) -> Result<Result<PendingCall, (Vec<(String, Json)>, InputRequests)>, Error> {
        let responder = &self.inner().answers;
        let (mut answers, mut questions) = (Vec::new(), Vec::new());
        for request in &input.requests {
            match responder.is_manual(&request.kind) {
                true => questions.push((request.key.clone(), responder.question(&request.kind)?)),
                false => answers.push((
                    request.key.clone(),
                    responder.answer_request(&request.kind).await?,
                )),
            }
        }
        Ok(match questions.is_empty() {
            true => Err((answers, input)),
            false => Ok(PendingCall {
                client: self.clone(),
                call: call.clone(),
                input,
                questions,
                answers,
            }),
        })
    }
}

/// Returns the kind of an input request that an application can answer by hand.
pub(super) fn input_kind(request: &InputRequestKind, url: bool) -> Option<InputKind> {
    match request {
        InputRequestKind::Elicit(_) if url => Some(InputKind::Url),
        InputRequestKind::Elicit(_) => Some(InputKind::Form),
        InputRequestKind::SignIn(_) => Some(InputKind::Url),
        InputRequestKind::Sample(_) => Some(InputKind::Sampling),
        InputRequestKind::Approve(_) => Some(InputKind::Confirm),
        InputRequestKind::Roots => None,
    }
}
