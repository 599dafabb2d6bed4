//! Context of a handler's call.

use super::{
    CancellationToken, HandlerExit, ItemRegistry,
    ask::{Question, QuestionTuple, Reply},
    cancellation::CancellationState,
    received_responses::ReceivedResponses,
};
use serde::Serialize;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use toolgate_core::{
    Call, CallReporter, Caller, ClientCapabilities, Error, ErrorKind, InputRequest, InputRequests,
    Item, Json, LogMessage, Op, Progress, ReporterEvent, RequiredCapability, TraceContext,
};

/// Context of a call that a handler receives: caller, arguments, progress, log messages and input requests. Cheap to
/// clone.
#[derive(Clone)]
pub struct Cx(Arc<CallContextState>);

struct CallContextState {
    call: Call,
    responses: ReceivedResponses,
    /// Keys of the input responses that were used.
    used: Mutex<Vec<String>>,
    registry: ItemRegistry,
    cancellation: CancellationState,
}

/// Severity of a log message (`notifications/message`), as in syslog (RFC 5424), least severe first.
///
/// Specification: [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging),
/// [RFC 5424, section 6.2.1](https://www.rfc-editor.org/rfc/rfc5424#section-6.2.1).
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[expect(
    missing_docs,
    reason = "the names of RFC 5424 severities are self-explanatory"
)]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    pub(crate) fn word(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Notice => "notice",
            LogLevel::Warning => "warning",
            LogLevel::Error => "error",
            LogLevel::Critical => "critical",
            LogLevel::Alert => "alert",
            LogLevel::Emergency => "emergency",
        }
    }
}

impl Cx {
    pub(super) fn new(call: Call, registry: ItemRegistry) -> Cx {
        Cx(Arc::new(CallContextState {
            responses: ReceivedResponses::collect(&call),
            call,
            used: Mutex::default(),
            registry,
            cancellation: CancellationState::default(),
        }))
    }

    pub(super) fn call(&self) -> &Call {
        &self.0.call
    }

    /// Returns the authenticated caller of this call: a principal, never a credential.
    pub fn caller(&self) -> &Caller {
        &self.0.call.caller
    }

    /// Returns the id of this call in the audit log; the same in every round of input requests.
    pub fn call_id(&self) -> &str {
        &self.0.call.id
    }

    /// Returns the client capabilities (elicitation, sampling, roots) declared for this call.
    pub fn client_capabilities(&self) -> &ClientCapabilities {
        &self.0.call.capabilities
    }

    /// Returns the MCP protocol revision of the caller, for log messages. Handlers should not depend on it.
    pub fn revision(&self) -> &str {
        &self.0.call.request_info.revision
    }

    /// Returns the W3C trace context of this call, for spans and for requests to other services.
    ///
    /// Standard: [Trace Context](https://www.w3.org/TR/trace-context/).
    pub fn trace(&self) -> &TraceContext {
        &self.0.call.trace
    }

    /// Returns the cancellation token of the call, for work that dropping the handler's future does not end.
    pub fn cancellation(&self) -> CancellationToken {
        self.0.cancellation.token()
    }

    /// Returns a guard that cancels the token when it is dropped.
    pub(super) fn cancel_on_drop(&self) -> HandlerGuard {
        HandlerGuard(Some(self.clone()))
    }

    /// Returns the called item (tool, resource or prompt) with its definition.
    pub fn item(&self) -> Option<&Arc<Item>> {
        self.0.call.item()
    }

    /// Returns the exact arguments of this call, as JSON.
    pub fn arguments(&self) -> &Json {
        self.0.call.arguments().raw()
    }

    /// Returns the value of another argument during the completion of one (`context.arguments` of
    /// `completion/complete`). Returns `None` if the client did not send it, and in all other calls. Clients send it
    /// since revision 2025-06-18.
    ///
    /// Specification: [completion](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion).
    ///
    /// ```
    /// use toolgate::Cx;
    ///
    /// /// Returns the cities of the country that is filled in already.
    /// fn cities(typed: &str, cx: &Cx) -> Vec<&'static str> {
    ///     let cities = match cx.context_argument("country").as_deref() {
    ///         Some("Norway") => ["Bergen", "Oslo"],
    ///         _ => ["Berlin", "Bern"],
    ///     };
    ///     cities.into_iter().filter(|city| city.starts_with(typed)).collect()
    /// }
    /// # let _ = cities;
    /// ```
    pub fn context_argument(&self, name: &str) -> Option<String> {
        if !matches!(self.0.call.op, Op::Complete(_)) {
            return None;
        }
        let context = self.arguments().get("context")?;
        context.get("arguments")?.get(name)?.string()
    }

    /// Returns the server's registry, to add or remove tools and other items at run time.
    pub fn registry(&self) -> &ItemRegistry {
        &self.0.registry
    }

    /// Sends a progress notification (`notifications/progress`) for this call. `progress` must increase with each call;
    /// other values are dropped. Nothing is sent if the caller did not request progress. A call sends at most 100
    /// notifications at once and 50 a second after that; further ones are dropped.
    ///
    /// Specification: [progress](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress).
    pub fn progress(&self, progress: f64, total: impl Into<Option<f64>>, message: &str) {
        if self.reporter().has_listener() {
            self.reporter().send(ReporterEvent::Progress(Progress {
                progress,
                total: total.into(),
                message: Some(message.to_owned()).filter(|m| !m.is_empty()),
            }));
        }
    }

    /// Turns this call into a task, so that the caller need not wait. Later input requests are made in the task.
    /// Returns false if the caller does not support tasks: then it waits. See [`super::Tool::task`].
    pub fn become_task(&self) -> bool {
        self.0.call.task_control.start_task()
    }

    /// Sends a log message (`notifications/message`) to the client, if the caller requested messages of that level. Do
    /// not log secrets: clients display and store messages.
    pub fn log(&self, level: LogLevel, data: impl Serialize) {
        let Ok(data) = serde_json::to_value(data) else {
            return;
        };
        if self.reporter().has_listener() {
            self.reporter().send(ReporterEvent::Log(LogMessage::new(
                level.word().to_owned(),
                Json::from_value(&data),
            )));
        }
    }

    fn reporter(&self) -> &CallReporter {
        &self.0.call.reporter
    }

    /// Sends an input request to the user, the model or the client, and returns the answer. It works in every revision.
    ///
    /// The first time it returns an error that you must return with `?`. The input request is then sent. After the
    /// response arrives, the handler runs again from the start and gets the response here. So *the code before an `ask`
    /// may run twice*. `key` identifies the input request within this call.
    ///
    /// # Errors
    /// The input request must be sent first; or the user declined, which the model sees as a tool error. To handle
    /// declining, use [`Cx::ask_reply`].
    pub fn ask<T>(&self, key: &str, question: Question<T>) -> Result<T, HandlerExit> {
        self.ask_reply(key, question)?.accepted()
    }

    /// Sends an input request as [`Cx::ask`] does, but returns a declined or cancelled request as a value.
    ///
    /// # Errors
    /// The input request must be sent first.
    pub fn ask_reply<T>(&self, key: &str, question: Question<T>) -> Result<Reply<T>, HandlerExit> {
        self.read_response(key, &question)
            .map_err(|ask| self.request_input(vec![*ask]))
    }

    /// Sends several input requests to the client together, and returns their answers.
    ///
    /// ```
    /// # use toolgate::handlers::{Cx, HandlerExit, ask};
    /// # fn f(cx: &Cx) -> Result<(), HandlerExit> {
    /// let (name, sure) = cx.ask_all((("name", ask::text("Who?")), ("sure", ask::confirm("Sure?"))))?;
    /// # let _: (String, bool) = (name, sure); Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Cx::ask`].
    pub fn ask_all<A: QuestionTuple>(&self, questions: A) -> Result<A::Answers, HandlerExit> {
        questions.ask_all(self)
    }

    /// Returns the response, or the input request to send if the response is missing or unusable.
    pub(super) fn read_response<T>(
        &self,
        key: &str,
        question: &Question<T>,
    ) -> Result<Reply<T>, Box<InputRequest>> {
        let answer = self.0.responses.get(key);
        match answer.and_then(|answer| question.read(answer)) {
            Some(reply) => {
                self.used().push(key.to_owned());
                Ok(reply)
            }
            None => Err(Box::new(question.ask(key))),
        }
    }

    pub(super) fn request_input(&self, asks: Vec<InputRequest>) -> HandlerExit {
        let slots = self.0.responses.to_slot(&self.used()).into_iter().collect();
        let mut requests = InputRequests::new(asks);
        requests.slots = slots;
        HandlerExit::input_required(requests)
    }

    fn used(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the client declared a capability for this call, and fails the call otherwise. With
    /// [`RequiredCapability::Tasks`], the call becomes a task.
    ///
    /// # Errors
    /// The capability is missing; the error tells the caller which one.
    pub fn require(&self, capability: RequiredCapability) -> Result<(), HandlerExit> {
        let able = self.client_capabilities();
        let (able, what) = match capability {
            RequiredCapability::Elicitation => (able.elicitation, "ask its user (elicitation)"),
            RequiredCapability::ElicitationUrl => (
                able.elicitation_url,
                "open a URL for its user (URL elicitation)",
            ),
            RequiredCapability::Sampling => (able.sampling, "ask its model (sampling)"),
            RequiredCapability::SamplingTools => (able.sampling_tools, "use tools in sampling"),
            RequiredCapability::Roots => (able.roots, "list its roots"),
            RequiredCapability::Tasks => (self.0.call.task_control.start_task(), "use tasks"),
            _ => (false, "do what a newer version of this library names"),
        };
        if able {
            return Ok(());
        }
        let text = format!(
            "the client did not declare that it can {what}, which this call requires; use a client that can"
        );
        let error = Error::new(ErrorKind::MissingCapability(capability), text);
        Err(HandlerExit::error(error))
    }
}

/// Guard of a running handler: dropping it cancels the token of the call.
pub(super) struct HandlerGuard(Option<Cx>);

impl HandlerGuard {
    /// Disarms the guard: the handler returned.
    pub(super) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for HandlerGuard {
    fn drop(&mut self) {
        if let Some(cx) = &self.0 {
            cx.0.cancellation.cancel();
        }
    }
}

impl fmt::Debug for Cx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cx({} of {})", self.call_id(), self.caller())
    }
}
