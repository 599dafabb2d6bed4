//! Answering of a legacy server's requests by the one application that uses it.

use super::{connection::ServerConnection, log_attribution, status::ProtocolErrorKind};
use std::{fmt, sync::Arc};
use tokio::task::AbortHandle;
use toolgate_core::{BoxFuture, InputRequestKind, LogMessage};
use toolgate_protocol::{
    json::{Json, ObjectWriter},
    message::{self, Id, RpcError, code},
    method::{elicitation, notifications},
};

/// Handler of a client's incoming messages: input requests that a legacy server sends during a call, and log messages.
///
/// Only for a server that one application has to itself: such a request does not name its call.
///
/// ```
/// use std::sync::Arc;
/// use toolgate::{
///     Json,
///     client::{ClientHandler, RemoteOptions},
///     core::{BoxFuture, InputRequestKind, LogMessage, Origin},
///     protocol::message::{RpcError, code},
/// };
///
/// /// Declines all input requests, and prints log messages.
/// #[derive(Debug)]
/// struct Decline;
///
/// impl ClientHandler for Decline {
///     fn answer(&self, request: InputRequestKind) -> BoxFuture<'static, Result<Json, RpcError>> {
///         Box::pin(async move {
///             match request {
///                 InputRequestKind::Elicit(_) => Ok(Json::from_value(&serde_json::json!({"action": "decline"}))),
///                 _ => Err(RpcError::new(code::METHOD_NOT_FOUND, "this program has no model and no roots")),
///             }
///         })
///     }
///
///     fn log(&self, message: LogMessage) {
///         eprintln!("{}: {}", message.level, message.data.as_str());
///     }
///
///     fn elicitation_complete(&self, _elicitation: &str) {}
/// }
///
/// let mut options = RemoteOptions::new(Origin { server: "notes".into(), trusted: false });
/// options.client_handler = Some(Arc::new(Decline));
/// ```
pub trait ClientHandler: fmt::Debug + Send + Sync + 'static {
    /// Answers an input request (elicitation, sampling or roots) of the server; never [`InputRequestKind::Approve`].
    /// The future is dropped if the server cancels the request.
    fn answer(&self, request: InputRequestKind) -> BoxFuture<'static, Result<Json, RpcError>>;

    /// Returns whether input requests during a call wait as its outcome, in place of [`ClientHandler::answer`]. Requests
    /// for roots are answered in any case. Default: false.
    fn defers_input(&self) -> bool {
        false
    }

    /// Receives a log message (`notifications/message`) of the server. Must not block.
    fn log(&self, message: LogMessage);

    /// Receives the elicitation id of a URL elicitation that the server reports as complete. Must not block.
    fn elicitation_complete(&self, elicitation: &str);
}

/// Maximum number of a server's input requests that are answered concurrently.
pub(super) const MAX_CONCURRENT_INPUT_REQUESTS: usize = 16;

/// Returns the input request in a request of the server; `None` for any other method.
pub(super) fn read_input_request(method: &str, params: Option<&Json>) -> Option<InputRequestKind> {
    let params = || {
        params
            .cloned()
            .unwrap_or_else(|| ObjectWriter::new().finish())
    };
    Some(match method {
        elicitation::NAME => InputRequestKind::Elicit(params()),
        elicitation::SAMPLING => InputRequestKind::Sample(params()),
        elicitation::ROOTS => InputRequestKind::Roots,
        _ => return None,
    })
}

impl ServerConnection {
    /// Lets the application answer an input request in a task of its own. Returns false if no application answers, or
    /// for any other method.
    pub(super) fn answer_by_application(
        &self,
        id: &Id,
        method: &str,
        params: Option<&Json>,
    ) -> bool {
        let Some((answerer, me)) = self.answerer.clone().zip(self.weak_self.upgrade()) else {
            return false;
        };
        let Some(ask) = read_input_request(method, params) else {
            return false;
        };
        if answerer.defers_input() && !matches!(ask, InputRequestKind::Roots) {
            return false;
        }
        let answer = answerer.answer(ask);
        let own = id.clone();
        // The session must know the request before its answer can arrive.
        let (go, ready) = tokio::sync::oneshot::channel::<()>();
        #[allow(
            clippy::disallowed_methods,
            reason = "answers to the server's requests; aborted when the connection is lost"
        )]
        let task = tokio::spawn(async move {
            if ready.await.is_ok() {
                me.send_answer(&own, answer.await);
            }
        });
        match self.accept(id, task.abort_handle()) {
            Ok(()) => drop(go.send(())),
            Err(words) => self.send_priority(message::reply(
                Some(id),
                &Err(RpcError::new(code::INVALID_REQUEST, words)),
            )),
        }
        true
    }

    fn accept(&self, id: &Id, task: AbortHandle) -> Result<(), &'static str> {
        use toolgate_protocol::request_table::RequestTableError;
        self.table()
            .session
            .accept(id, task)
            .map_err(|refusal| match refusal {
                RequestTableError::Duplicate => {
                    "a request with this id is in flight already; use another id"
                }
                RequestTableError::TooMany => {
                    "too many input requests are in flight; wait for some of them to end"
                }
            })
    }

    fn send_answer(&self, id: &Id, answer: Result<Json, RpcError>) {
        // A cancelled request gets no answer.
        if self.table().session.finish(id).is_some() {
            self.send_priority(message::reply(Some(id), &answer));
        }
    }

    /// Cancels an input request at the server's wish. An unknown id is ignored.
    pub(super) fn cancel_input_request(&self, params: Option<&Json>) {
        let id = notifications::cancelled_id(params);
        let task = id.and_then(|id| self.table().session.cancel(&id));
        if let Some(task) = task {
            task.abort();
        }
    }

    /// Passes a log message to the application.
    pub(super) fn log_to_application(&self, params: Option<&Json>) {
        match self
            .answerer
            .as_ref()
            .zip(params.and_then(log_attribution::read))
        {
            Some((answerer, message)) => answerer.log(message),
            None => self.count_stray_notification(),
        }
    }

    /// Passes the completion of a URL elicitation to the application.
    pub(super) fn complete_elicitation(&self, params: Option<&Json>) {
        let id = params
            .and_then(|p| p.get("elicitationId"))
            .and_then(|id| id.string());
        match (&self.answerer, id) {
            (Some(answerer), Some(id)) => answerer.elicitation_complete(&id),
            _ => self.count_stray_notification(),
        }
    }

    /// Counts a notification that belongs to no call.
    pub(super) fn count_stray_notification(&self) {
        self.notes.count(
            ProtocolErrorKind::StrayNotification,
            "it sent a notification that belongs to no call or subscription",
        );
    }
}

/// Application that answers input requests, if there is one.
pub(super) type OptionalClientHandler = Option<Arc<dyn ClientHandler>>;
