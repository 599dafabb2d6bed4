//! Observed requests to a server, for metrics and traces.

use super::{
    connection::{RequestFailure, RequestPurpose, ServerConnection},
    options::RemoteOptions,
    remote::RemoteServer,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use toolgate_core::{
    BoxFuture, Call, EndedSession, Error, ErrorKind, OperationEnd, OperationError,
    OperationObserver, Outcome, SentRequest,
};
use toolgate_protocol::json::Json;

/// Observer of the requests to one server, and what it is told about the server.
pub(super) struct ServerObservation {
    observer: Arc<dyn OperationObserver>,
    server: Arc<str>,
    address: Option<(Arc<str>, u16)>,
}

impl ServerObservation {
    /// Returns the observation that the options ask for.
    pub(super) fn of(options: &RemoteOptions) -> Option<ServerObservation> {
        Some(ServerObservation {
            observer: options.operation_observer.clone()?,
            server: options.origin.server.clone(),
            address: options.observed_address.clone(),
        })
    }

    fn address(&self) -> Option<(&str, u16)> {
        self.address.as_ref().map(|(host, port)| (&**host, *port))
    }

    fn request<'a>(&'a self, method: &'a str, link: &ServerConnection) -> SentRequest<'a> {
        SentRequest {
            method,
            server: &self.server,
            address: self.address(),
            is_http: link.is_http(),
            revision: link.dialect.get().map_or("", |dialect| dialect.revision),
            item: None,
        }
    }

    /// Reports the end of a request outside of calls.
    pub(super) fn report(
        &self,
        link: &ServerConnection,
        method: &str,
        started: Instant,
        answer: &Result<Json, RequestFailure>,
    ) {
        let end = OperationEnd {
            started,
            duration: started.elapsed(),
            item: None,
            error: answer.as_ref().err().map(failure_class),
        };
        self.observer
            .on_answer(&self.request(method, link), None, &end);
    }

    /// Reports the end of the connection.
    pub(super) fn report_end(&self, link: &ServerConnection, duration: Duration) {
        self.observer.on_session_end(&EndedSession {
            server: Some((&self.server, self.address())),
            revision: link.dialect.get().map_or("", |dialect| dialect.revision),
            is_http: link.is_http(),
            duration,
            error: link.was_lost_to_the_server().then_some("connection_lost"),
        });
    }
}

/// Returns whether requests of this purpose are reported by the connection. Calls are reported with their item.
pub(super) fn is_reported(purpose: &RequestPurpose) -> bool {
    matches!(purpose, RequestPurpose::Open | RequestPurpose::List)
}

fn failure_class(failure: &RequestFailure) -> OperationError {
    match failure {
        RequestFailure::Rpc(error) => OperationError::Rpc(error.code),
        RequestFailure::Rejected(_) => OperationError::Other("rejected"),
        RequestFailure::BudgetExceeded => OperationError::Other("busy"),
        RequestFailure::Unusable(_) | RequestFailure::Malformed(_) => {
            OperationError::Other("bad_answer")
        }
        RequestFailure::ConnectionLost { .. } | RequestFailure::Http { .. } => {
            OperationError::Other("upstream")
        }
    }
}

/// Call in progress. Dropping it reports a cancellation.
struct ObservedCall<'a> {
    observation: &'a ServerObservation,
    link: &'a ServerConnection,
    method: &'static str,
    item: Option<Arc<toolgate_core::Item>>,
    span: Option<(Arc<dyn toolgate_core::CallSpan>, u64)>,
    started: Instant,
    has_ended: bool,
}

impl ObservedCall<'_> {
    fn report(&mut self, error: Option<OperationError>) {
        self.has_ended = true;
        let request = SentRequest {
            item: self.item.as_ref(),
            ..self.observation.request(self.method, self.link)
        };
        let end = OperationEnd {
            started: self.started,
            duration: self.started.elapsed(),
            item: self.item.as_ref(),
            error,
        };
        let span = self.span.as_ref().map(|(span, id)| (span, *id));
        self.observation.observer.on_answer(&request, span, &end);
    }
}

impl Drop for ObservedCall<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.report(Some(OperationError::Other("cancelled")));
        }
    }
}

impl RemoteServer {
    /// Runs a call that an observer follows. The server gets the trace context of the observer's span.
    pub(super) fn run_observed<'a>(
        &'a self,
        observation: &'a ServerObservation,
        mut call: Call,
    ) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let mut observed = ObservedCall {
                observation,
                link: &self.link,
                method: call.op.method(),
                item: call.item().cloned(),
                span: None,
                started: Instant::now(),
                has_ended: false,
            };
            let request = SentRequest {
                item: observed.item.as_ref(),
                ..observation.request(observed.method, &self.link)
            };
            let caller = call.span.clone();
            let own = observation
                .observer
                .on_sent(&request, caller.as_ref(), &mut call.trace);
            observed.span = caller.zip(own);
            let outcome = self.run_call(call).await;
            let error = match &outcome {
                Ok(Outcome::Done(output)) => output.is_error().then_some(OperationError::Tool),
                Ok(Outcome::InputRequired(_)) => None,
                Err(error) => Some(match error.kind() {
                    ErrorKind::JsonRpc(code) => OperationError::Rpc(*code),
                    kind => OperationError::Other(kind.class()),
                }),
            };
            observed.report(error);
            outcome
        })
    }
}
