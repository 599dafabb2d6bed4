//! Observation of operations for metrics and traces: requests of callers, requests to servers, and sessions.

use crate::Item;
use std::{
    any::Any,
    borrow::Cow,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};
use toolgate_protocol::method::trace::TraceContext;

/// Observer of operations, for metrics and traces. The edges and the clients report to it. It must not block, and its
/// answers never affect a decision.
///
/// ```
/// use std::sync::Arc;
/// use toolgate_core::{
///     CallSpan, EndedSession, OperationEnd, OperationObserver, ReceivedRequest, SentRequest, TraceContext,
/// };
///
/// /// Prints the duration of each request.
/// #[derive(Debug)]
/// struct Printer;
///
/// impl OperationObserver for Printer {
///     fn on_request(&self, _request: &ReceivedRequest<'_>) -> Option<Arc<dyn CallSpan>> {
///         None
///     }
///
///     fn on_response(
///         &self,
///         request: &ReceivedRequest<'_>,
///         _span: Option<&Arc<dyn CallSpan>>,
///         end: &OperationEnd<'_>,
///     ) {
///         println!("{} took {:?}, failed: {}", request.method, end.duration, end.error.is_some());
///     }
///
///     fn on_sent(
///         &self,
///         _request: &SentRequest<'_>,
///         _caller: Option<&Arc<dyn CallSpan>>,
///         _trace: &mut TraceContext,
///     ) -> Option<u64> {
///         None
///     }
///
///     fn on_answer(
///         &self,
///         request: &SentRequest<'_>,
///         _span: Option<(&Arc<dyn CallSpan>, u64)>,
///         end: &OperationEnd<'_>,
///     ) {
///         println!("the server {} took {:?}", request.server, end.duration);
///     }
///
///     fn on_session_end(&self, session: &EndedSession<'_>) {
///         println!("a session of revision {} ended", session.revision);
///     }
/// }
/// ```
pub trait OperationObserver: fmt::Debug + Send + Sync + 'static {
    /// Receives each request of a caller when an edge has read it. Returns its span if the request is traced.
    fn on_request(&self, request: &ReceivedRequest<'_>) -> Option<Arc<dyn CallSpan>>;

    /// Receives the end of each request of a caller: its response is ready, or it was cancelled.
    fn on_response(
        &self,
        request: &ReceivedRequest<'_>,
        span: Option<&Arc<dyn CallSpan>>,
        end: &OperationEnd<'_>,
    );

    /// Receives each call before it is sent to a server, with the span of the caller's request. May replace the trace
    /// context that is sent. Returns the id of its span if the call is traced.
    fn on_sent(
        &self,
        request: &SentRequest<'_>,
        caller: Option<&Arc<dyn CallSpan>>,
        trace: &mut TraceContext,
    ) -> Option<u64>;

    /// Receives the end of each request to a server, with the span of the caller's request and that of its own. Requests
    /// outside of calls, such as lists, have no span.
    fn on_answer(
        &self,
        request: &SentRequest<'_>,
        span: Option<(&Arc<dyn CallSpan>, u64)>,
        end: &OperationEnd<'_>,
    );

    /// Receives the end of each session of a caller, and of each connection to a server.
    fn on_session_end(&self, session: &EndedSession<'_>);
}

/// Span of a caller's request, to which layers add events.
///
/// ```
/// use std::{any::Any, sync::Mutex};
/// use toolgate_core::{CallSpan, SpanEventValue};
///
/// /// Keeps the names of events, with their counts.
/// #[derive(Debug, Default)]
/// struct Events(Mutex<Vec<String>>);
///
/// impl CallSpan for Events {
///     fn add_event(&self, name: &'static str, attributes: &[(&'static str, SpanEventValue)]) {
///         let shown = attributes.iter().map(|(key, value)| match value {
///             SpanEventValue::Text(text) => format!(" {key}={text}"),
///             SpanEventValue::Count(count) => format!(" {key}={count}"),
///         });
///         self.0.lock().unwrap().push(name.to_owned() + &shown.collect::<String>());
///     }
///     fn as_any(&self) -> &dyn Any {
///         self
///     }
/// }
///
/// let span = Events::default();
/// span.add_event("sanitized", &[("secrets", SpanEventValue::Count(2))]);
/// assert_eq!(span.0.lock().unwrap()[0], "sanitized secrets=2");
/// ```
pub trait CallSpan: fmt::Debug + Send + Sync + 'static {
    /// Adds an event at the current time. Its attributes must not contain text of callers or servers.
    fn add_event(&self, name: &'static str, attributes: &[(&'static str, SpanEventValue)]);

    /// Returns the span as the type of its observer.
    fn as_any(&self) -> &dyn Any;
}

/// Value of an attribute of a span event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SpanEventValue {
    /// Constant of the program.
    Text(&'static str),
    /// Count.
    Count(u64),
}

/// Request of a caller, for an [`OperationObserver`].
#[derive(Clone, Copy, Debug)]
pub struct ReceivedRequest<'a> {
    /// Method, as the caller wrote it; it may be unknown.
    pub method: &'a str,
    /// Transport: `http`, `stdio` or another.
    pub transport: &'static str,
    /// Protocol revision.
    pub revision: &'static str,
    /// JSON-RPC id as JSON.
    pub id: Option<&'a str>,
    /// Time at which the edge had read the request.
    pub started: Instant,
    /// Trace context in which the caller made the request.
    pub trace: &'a TraceContext,
    /// Trace context of the HTTP request, if it differs from that of the message.
    pub transport_trace: Option<&'a TraceContext>,
}

/// Request to a server, for an [`OperationObserver`].
#[derive(Clone, Copy, Debug)]
pub struct SentRequest<'a> {
    /// Method.
    pub method: &'a str,
    /// Configured id of the server.
    pub server: &'a str,
    /// Address of the server, if it is reached over a network: host and port.
    pub address: Option<(&'a str, u16)>,
    /// True if the transport is HTTP; otherwise it is a pipe.
    pub is_http: bool,
    /// Protocol revision; empty before it is negotiated.
    pub revision: &'static str,
    /// Called item, if the request is a call.
    pub item: Option<&'a Arc<Item>>,
}

/// End of a request, for an [`OperationObserver`].
#[derive(Clone, Debug)]
pub struct OperationEnd<'a> {
    /// Time of the begin.
    pub started: Instant,
    /// Time from the begin to the end.
    pub duration: Duration,
    /// Called item, if the request is a call whose name was resolved.
    pub item: Option<&'a Arc<Item>>,
    /// Error, if the request failed.
    pub error: Option<OperationError>,
}

/// Error of a request, for an [`OperationObserver`].
///
/// ```
/// use toolgate_core::OperationError;
///
/// assert_eq!(OperationError::Rpc(-32602).name(), "-32602");
/// assert_eq!(OperationError::Tool.name(), "tool_error");
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum OperationError {
    /// JSON-RPC error with this code.
    Rpc(i64),
    /// Tool result that reports an error.
    Tool,
    /// Other error, by its class: `cancelled`, `timeout` and others.
    Other(&'static str),
}

impl OperationError {
    /// Returns the error as `error.type` of the semantic conventions.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            OperationError::Rpc(code) => code.to_string().into(),
            OperationError::Tool => "tool_error".into(),
            OperationError::Other(class) => (*class).into(),
        }
    }
}

/// Session that ended, for an [`OperationObserver`].
#[derive(Clone, Copy, Debug)]
pub struct EndedSession<'a> {
    /// Server to which the connection was, with its address; `None` for the session of a caller.
    pub server: Option<(&'a str, Option<(&'a str, u16)>)>,
    /// Protocol revision.
    pub revision: &'static str,
    /// True if the transport is HTTP; otherwise it is a pipe.
    pub is_http: bool,
    /// Duration of the session.
    pub duration: Duration,
    /// Class of the error that ended the session.
    pub error: Option<&'static str>,
}
