//! What a function knows about its call.

use super::{
    Registry, Stop,
    answered::Answered,
    ask::{Asks, Question, Reply},
    stop::Why,
};
use serde::Serialize;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use toolgate_core::{
    Abilities, Ask, Call, Caller, Error, Event, Item, Json, Kind, LogMessage, Need, Progress,
    Questions, Reporter, TraceContext,
};

/// What a function knows about its call, and its ways back to the caller before the result. Cheap to clone.
#[derive(Clone)]
pub struct Cx(Arc<Inner>);

struct Inner {
    call: Arc<Call>,
    answered: Answered,
    /// The keys of the answers that were of use.
    used: Mutex<Vec<String>>,
    registry: Registry,
}

/// How grave a log message is, in the words of the protocol.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[expect(missing_docs, reason = "the words say it")]
pub enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl Level {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Notice => "notice",
            Level::Warning => "warning",
            Level::Error => "error",
            Level::Critical => "critical",
            Level::Alert => "alert",
            Level::Emergency => "emergency",
        }
    }
}

impl Cx {
    pub(super) fn new(call: Arc<Call>, registry: Registry) -> Cx {
        Cx(Arc::new(Inner {
            answered: Answered::of(&call),
            call,
            used: Mutex::default(),
            registry,
        }))
    }

    /// Who calls: a principal, never a credential.
    pub fn caller(&self) -> &Caller {
        &self.0.call.caller
    }

    /// The id of the call in the record; the same in every round.
    pub fn call_id(&self) -> &str {
        &self.0.call.id
    }

    /// What the other end declared for this very request.
    pub fn abilities(&self) -> &Abilities {
        &self.0.call.abilities
    }

    /// The revision of the protocol that the caller speaks; for the log, nothing should hang on it.
    pub fn revision(&self) -> &str {
        &self.0.call.seen.revision
    }

    /// The trace that the call belongs to, for spans and for requests to other services.
    pub fn trace(&self) -> &TraceContext {
        &self.0.call.trace
    }

    /// The definition that is used.
    pub fn item(&self) -> Option<&Arc<Item>> {
        self.0.call.item()
    }

    /// The exact arguments.
    pub fn arguments(&self) -> &Json {
        self.0.call.arguments().raw()
    }

    /// What the server offers, to change it while it runs.
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// Tells how far it is. `progress` must grow with each call; what does not is dropped, and so is all of it where
    /// the caller did not ask for progress. One call sends at most 100 notifications at once and 50 a second after
    /// that; more are dropped.
    pub fn progress(&self, progress: f64, total: impl Into<Option<f64>>, message: &str) {
        if self.reporter().listens() {
            self.reporter().tell(Event::Progress(Progress {
                progress,
                total: total.into(),
                message: Some(message.to_owned()).filter(|m| !m.is_empty()),
            }));
        }
    }

    /// Lets the call go on as a task from here, so that its caller need not wait; questions that come later are asked
    /// in the task. False where the caller knows no tasks: then it waits. See [`super::Tool::task`].
    pub fn become_task(&self) -> bool {
        self.0.call.background.start()
    }

    /// Sends a log message, where the caller wants messages of that level. No secrets: clients show and keep it.
    pub fn log(&self, level: Level, data: impl Serialize) {
        let Ok(data) = serde_json::to_value(data) else {
            return;
        };
        if self.reporter().listens() {
            self.reporter().tell(Event::Log(LogMessage {
                level: level.word().to_owned(),
                logger: None,
                data: Json::from_value(&data),
            }));
        }
    }

    fn reporter(&self) -> &Reporter {
        &self.0.call.reporter
    }

    /// Asks something of the user, of the model, or of the client, in every revision alike.
    ///
    /// The first time it returns an error that has to be passed on with `?`; then the question leaves, and once it is
    /// answered the function is called again and finds the answer here. So *what stands before an `ask` may run
    /// twice*. `key` names the question within this call.
    ///
    /// # Errors
    /// The question has to leave first; or the user said no, which the model reads as a failure of the tool. To tell a
    /// no from an answer, use [`Cx::ask_reply`].
    pub fn ask<T>(&self, key: &str, question: Question<T>) -> Result<T, Stop> {
        self.ask_reply(key, question)?.accepted()
    }

    /// The same, with a no of the user as a value.
    ///
    /// # Errors
    /// The question has to leave first.
    pub fn ask_reply<T>(&self, key: &str, question: Question<T>) -> Result<Reply<T>, Stop> {
        self.look(key, &question)
            .map_err(|ask| self.leave(vec![*ask]))
    }

    /// Asks several things at once; they leave together.
    ///
    /// ```
    /// # use toolgate::handlers::{Cx, Stop, ask};
    /// # fn f(cx: &Cx) -> Result<(), Stop> {
    /// let (name, sure) = cx.ask_all((("name", ask::text("Who?")), ("sure", ask::confirm("Sure?"))))?;
    /// # let _: (String, bool) = (name, sure); Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Cx::ask`].
    pub fn ask_all<A: Asks>(&self, asks: A) -> Result<A::Answers, Stop> {
        asks.ask_all(self)
    }

    /// The answer, or the question that has to leave: there is no answer yet, or one that is of no use.
    pub(super) fn look<T>(&self, key: &str, question: &Question<T>) -> Result<Reply<T>, Box<Ask>> {
        let answer = self.0.answered.get(key);
        match answer.and_then(|answer| question.read(answer)) {
            Some(reply) => {
                self.used().push(key.to_owned());
                Ok(reply)
            }
            None => Err(Box::new(question.ask(key))),
        }
    }

    pub(super) fn leave(&self, asks: Vec<Ask>) -> Stop {
        let slots = self.0.answered.keep(&self.used()).into_iter().collect();
        Stop::ask(Questions {
            asks,
            slots,
            ..Questions::default()
        })
    }

    fn used(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on only where the other end declared an ability.
    ///
    /// # Errors
    /// It did not; the caller is told what is missing.
    pub fn require(&self, need: Need) -> Result<(), Stop> {
        let able = self.abilities();
        let (able, what) = match need {
            Need::Elicitation => (able.elicitation, "put a question to its user"),
            Need::ElicitationUrl => (able.elicitation_url, "open a page for its user"),
            Need::Sampling => (able.sampling, "ask its model"),
            Need::SamplingTools => (able.sampling_tools, "let its model use tools"),
            Need::Roots => (able.roots, "name its roots"),
            Need::Tasks => (self.0.call.background.start(), "come back for a task"),
        };
        if able {
            return Ok(());
        }
        let text = format!("the client did not declare that it can {what}, which this needs");
        Err(Stop(Why::Error(Error::new(Kind::Unsupported(need), text))))
    }
}

impl fmt::Debug for Cx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cx({} of {})", self.call_id(), self.caller())
    }
}
