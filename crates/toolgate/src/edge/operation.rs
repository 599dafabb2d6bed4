//! Observed operations: requests of callers, from the time at which they were read until their response is ready.

use super::{ProtocolServer, call::RequestContext, response::RequestResult};
use std::{sync::Arc, time::Instant};
use toolgate_core::{
    CallSpan, EndedSession, OperationEnd, OperationError, OperationObserver, ReceivedRequest,
};
use toolgate_protocol::message::{Id, RpcError};

/// Request in progress that an observer follows. Dropping it reports a cancellation.
pub(super) struct ObservedOperation<'a> {
    observer: &'a Arc<dyn OperationObserver>,
    context: &'a RequestContext,
    request: ReceivedRequest<'a>,
    span: Option<Arc<dyn CallSpan>>,
    started: Instant,
    has_ended: bool,
}

impl<'a> ObservedOperation<'a> {
    /// Begins to observe a request, if the server has an observer.
    pub(super) fn begin(
        server: &'a ProtocolServer,
        context: &'a RequestContext,
        id: Option<&'a Id>,
        method: &'a str,
    ) -> Option<ObservedOperation<'a>> {
        let observer = server.operation_observer.as_ref()?;
        let started = Instant::now();
        let request = ReceivedRequest {
            method,
            started,
            transport: context.transport,
            revision: context.dialect.revision,
            id: id.map(|id| id.json().as_str()),
            trace: &context.trace,
            transport_trace: context.transport_trace.as_ref(),
        };
        let span = observer.on_request(&request);
        Some(ObservedOperation {
            observer,
            context,
            request,
            span,
            started,
            has_ended: false,
        })
    }

    /// Gives the span to the calls of the context, which must be that of this request alone.
    pub(super) fn attach_span(&self) {
        if let Some(span) = &self.span {
            let _ = self.context.span.set(span.clone());
        }
    }

    /// Reports the response.
    pub(super) fn end(mut self, answer: &Result<RequestResult, RpcError>) {
        let error = match answer {
            Err(error) => Some(OperationError::Rpc(error.code)),
            Ok(_) if self.context.decision_log.has_failed() => Some(OperationError::Tool),
            Ok(_) => None,
        };
        self.report(error);
    }

    fn report(&mut self, error: Option<OperationError>) {
        self.has_ended = true;
        let item = self.context.decision_log.item();
        let end = OperationEnd {
            started: self.started,
            duration: self.started.elapsed(),
            item: item.as_ref(),
            error,
        };
        self.observer
            .on_response(&self.request, self.span.as_ref(), &end);
    }
}

impl Drop for ObservedOperation<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.report(Some(OperationError::Other("cancelled")));
        }
    }
}

/// Session of a client that an observer follows. Dropping it reports its end.
pub(super) struct ObservedSession {
    server: Arc<ProtocolServer>,
    revision: &'static str,
    is_http: bool,
    started: Instant,
}

impl ObservedSession {
    /// Begins to observe a session.
    pub(super) fn begin(
        server: Arc<ProtocolServer>,
        revision: &'static str,
        is_http: bool,
    ) -> ObservedSession {
        ObservedSession {
            server,
            revision,
            is_http,
            started: Instant::now(),
        }
    }
}

impl Drop for ObservedSession {
    fn drop(&mut self) {
        if let Some(observer) = &self.server.operation_observer {
            observer.on_session_end(&EndedSession {
                server: None,
                revision: self.revision,
                is_http: self.is_http,
                duration: self.started.elapsed(),
                error: None,
            });
        }
    }
}
