//! Whoever answers what a server asks of one application, and hears what belongs to no call.

use super::{link::Link, logs, status::Trouble};
use std::{fmt, sync::Arc};
use tokio::task::AbortHandle;
use toolgate_core::{AskKind, BoxFuture, LogMessage};
use toolgate_wire::{
    json::{Json, ObjectWriter},
    message::{self, Id, RpcError, code},
    method::{elicitation, notifications},
};

/// Answers what a server of the legacy era asks in the middle of a call, and hears its log messages.
///
/// Only for a server that one application uses alone: such a question carries no mark of the call it belongs to.
pub trait Answerer: fmt::Debug + Send + Sync + 'static {
    /// Answers a question; never [`AskKind::Approve`]. Dropped where the server takes its question back.
    fn answer(&self, ask: AskKind) -> BoxFuture<'static, Result<Json, RpcError>>;

    /// Hears a log message. Must not block.
    fn log(&self, message: LogMessage);

    /// Hears that a page that was opened for the user is done with. Must not block.
    fn done(&self, elicitation: &str);
}

/// Questions of one server that are answered at once.
pub(super) const AT_ONCE: usize = 16;

/// What a request of the server asks; `None` where it is no question.
pub(super) fn question(method: &str, params: Option<&Json>) -> Option<AskKind> {
    let params = || {
        params
            .cloned()
            .unwrap_or_else(|| ObjectWriter::new().finish())
    };
    Some(match method {
        elicitation::NAME => AskKind::Elicit(params()),
        elicitation::SAMPLING => AskKind::Sample(params()),
        elicitation::ROOTS => AskKind::Roots,
        _ => return None,
    })
}

impl Link {
    /// Lets the application answer a question, beside all else that goes on; false where it answers none such.
    pub(super) fn put(&self, id: &Id, method: &str, params: Option<&Json>) -> bool {
        let Some((answerer, me)) = self.answerer.clone().zip(self.me.upgrade()) else {
            return false;
        };
        let Some(ask) = question(method, params) else {
            return false;
        };
        let answer = answerer.answer(ask);
        let own = id.clone();
        // The table learns of the question before its answer can be there.
        let (go, ready) = tokio::sync::oneshot::channel::<()>();
        #[allow(
            clippy::disallowed_methods,
            reason = "an edge owns the answers to its peer's questions and aborts them"
        )]
        let task = tokio::spawn(async move {
            if ready.await.is_ok() {
                me.answered(&own, answer.await);
            }
        });
        match self.accept(id, task.abort_handle()) {
            Ok(()) => drop(go.send(())),
            Err(words) => self.hurry(message::reply(
                Some(id),
                &Err(RpcError::new(code::INVALID_REQUEST, words)),
            )),
        }
        true
    }

    fn accept(&self, id: &Id, task: AbortHandle) -> Result<(), &'static str> {
        use toolgate_wire::session::Refusal;
        self.table()
            .session
            .accept(id, task)
            .map_err(|refusal| match refusal {
                Refusal::Duplicate => "a request of this id is in flight already",
                Refusal::TooMany => "too many questions at once",
            })
    }

    fn answered(&self, id: &Id, answer: Result<Json, RpcError>) {
        // Taken back meanwhile: the server wants to hear nothing.
        if self.table().session.finish(id).is_some() {
            self.hurry(message::reply(Some(id), &answer));
        }
    }

    /// The server takes a question back. One that is not there is ignored.
    pub(super) fn taken_back(&self, params: Option<&Json>) {
        let id = notifications::cancelled_id(params);
        let task = id.and_then(|id| self.table().session.cancel(&id));
        if let Some(task) = task {
            task.abort();
        }
    }

    /// A log message for the one application that uses the server.
    pub(super) fn told_app(&self, params: Option<&Json>) {
        match self.answerer.as_ref().zip(params.and_then(logs::read)) {
            Some((answerer, message)) => answerer.log(message),
            None => self.stray(),
        }
    }

    /// The user is done with a page.
    pub(super) fn done(&self, params: Option<&Json>) {
        let id = params
            .and_then(|p| p.get("elicitationId"))
            .and_then(|id| id.string());
        match (&self.answerer, id) {
            (Some(answerer), Some(id)) => answerer.done(&id),
            _ => self.stray(),
        }
    }

    /// A notification that nobody here waits for.
    pub(super) fn stray(&self) {
        self.notes.count(
            Trouble::StrayNotification,
            "it sent a notification that belongs to no call",
        );
    }
}

/// What stands in for an answerer where questions have nobody to go to.
pub(super) type Answers = Option<Arc<dyn Answerer>>;
