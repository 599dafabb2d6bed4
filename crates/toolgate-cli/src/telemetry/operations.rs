//! Durations and spans of operations, by the semantic conventions for MCP.

use super::call_metrics::{CallMetrics, ItemSeries};
use std::{
    any::Any,
    collections::HashMap,
    sync::{Arc, OnceLock, PoisonError, RwLock},
};
use toolgate_core::{
    CallSpan, EndedSession, Item, ItemKind, OperationEnd, OperationError, OperationObserver,
    ReceivedRequest, SentRequest, SpanEventValue, TraceContext,
};
use toolgate_protocol::message::code;
use toolgate_telemetry::{
    AttributeValue, EventAttribute, MetricSource, OTHER_VALUE, OperationFailure, OperationSeries,
    RequestSpan, SampleList, SpanKind, SpanOrigin, SpanRecorder, TraceParent,
    definition::{
        MCP_CLIENT_OPERATION, MCP_CLIENT_SESSION, MCP_SERVER_OPERATION, MCP_SERVER_SESSION,
    },
};

/// Methods with series of their own. Others count together, because callers choose the text.
const METHODS: [&str; 24] = [
    "tools/call",
    "tools/list",
    "resources/read",
    "resources/list",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/get",
    "prompts/list",
    "completion/complete",
    "initialize",
    "ping",
    "logging/setLevel",
    "server/discover",
    "subscriptions/listen",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/cancel",
    "tasks/update",
    "skills/list",
    "roots/list",
    "sampling/createMessage",
    OTHER_VALUE,
];

/// Protocol revisions with series of their own.
const REVISIONS: [&str; 6] = [
    "2026-07-28",
    "2025-11-25",
    "2025-06-18",
    "2025-03-26",
    "2024-11-05",
    "",
];

/// Number of pairs of a revision and a transport.
const WIRES: usize = 2 * REVISIONS.len();

/// JSON-RPC codes that mean a mistake of the caller, which the conventions do not count as errors of the receiver.
const CALLER_MISTAKES: [i64; 5] = [
    code::PARSE_ERROR,
    code::INVALID_REQUEST,
    code::METHOD_NOT_FOUND,
    code::INVALID_PARAMS,
    code::RESOURCE_NOT_FOUND,
];

/// Series of the operations with one item or method: one for each revision and transport, made on first use.
#[derive(Debug, Default)]
pub(crate) struct WireSeries([OnceLock<OperationSeries>; WIRES]);

/// Series of the requests to servers about one item: one for each revision and transport.
#[derive(Debug, Default)]
pub(crate) struct SentSeries(WireSeries);

fn revision_index(revision: &str) -> usize {
    let at = REVISIONS.iter().position(|one| *one == revision);
    at.unwrap_or(REVISIONS.len() - 1)
}

impl WireSeries {
    fn get(
        &self,
        revision: &str,
        is_http: bool,
        make: impl FnOnce(&'static str) -> OperationSeries,
    ) -> Option<&OperationSeries> {
        let at = revision_index(revision);
        let slot = self.0.get(2 * at + usize::from(is_http))?;
        Some(slot.get_or_init(|| make(REVISIONS.get(at).copied().unwrap_or_default())))
    }

    /// Adds the samples of all series.
    pub(crate) fn collect(&self, samples: &mut SampleList) {
        let made = self.0.iter().filter_map(OnceLock::get);
        made.for_each(|series| series.collect(samples));
    }
}

impl SentSeries {
    /// Adds the samples of all series.
    pub(crate) fn collect(&self, samples: &mut SampleList) {
        self.0.collect(samples);
    }
}

type Attributes = Vec<(&'static str, AttributeValue)>;

/// Returns the attributes of an operation, as the conventions define them.
fn operation_attributes(
    method: &str,
    target: Option<(ItemKind, &str)>,
    revision: &'static str,
    is_http: bool,
) -> Attributes {
    let mut attributes: Attributes = vec![("mcp.method.name", method.into())];
    match target {
        Some((ItemKind::Tool, name)) => {
            attributes.push(("gen_ai.operation.name", "execute_tool".into()));
            attributes.push(("gen_ai.tool.name", name.into()));
        }
        Some((ItemKind::Prompt, name)) => attributes.push(("gen_ai.prompt.name", name.into())),
        _ if method == "tools/call" => {
            attributes.push(("gen_ai.operation.name", "execute_tool".into()));
        }
        _ => {}
    }
    if !revision.is_empty() {
        attributes.push(("mcp.protocol.version", revision.into()));
    }
    attributes.extend(network_attributes(is_http));
    attributes
}

fn network_attributes(is_http: bool) -> Attributes {
    match is_http {
        true => vec![
            ("network.transport", "tcp".into()),
            ("network.protocol.name", "http".into()),
            ("network.protocol.version", "1.1".into()),
        ],
        false => vec![("network.transport", "pipe".into())],
    }
}

fn server_attributes(server: &str, address: Option<(&str, u16)>) -> Attributes {
    let mut attributes: Attributes = vec![("toolgate.server", server.into())];
    if let Some((host, port)) = address {
        attributes.push(("server.address", host.into()));
        attributes.push(("server.port", port.to_string().into()));
    }
    attributes
}

/// Returns the name of a method in metrics.
fn known_method(method: &str) -> (usize, &'static str) {
    let at = METHODS.iter().position(|one| *one == method);
    let at = at.unwrap_or(METHODS.len() - 1);
    (at, METHODS.get(at).copied().unwrap_or(OTHER_VALUE))
}

/// Returns the kind and the name of the item in metrics, if the method calls it, and the kind has bounded names.
fn target<'a>(method: &str, item: Option<&'a Arc<Item>>) -> Option<(ItemKind, &'a Arc<Item>)> {
    let item = item?;
    match (item.kind(), method) {
        (ItemKind::Tool, "tools/call") => Some((ItemKind::Tool, item)),
        (ItemKind::Prompt, "prompts/get") => Some((ItemKind::Prompt, item)),
        _ => None,
    }
}

/// Key of the series of requests to servers outside of calls: server, method, revision and transport.
type SentKey = (Arc<str>, usize, usize, bool);
/// Key of the series of sessions: server if it is a connection to one, revision and transport.
type SessionKey = (Option<Arc<str>>, &'static str, bool);

/// Observer that measures all operations, and records spans if they are exported.
#[derive(Debug)]
pub(crate) struct OperationMetrics {
    calls: Arc<CallMetrics>,
    received: [WireSeries; METHODS.len()],
    sent: RwLock<HashMap<SentKey, Arc<OperationSeries>>>,
    sessions: RwLock<HashMap<SessionKey, Arc<OperationSeries>>>,
    spans: Option<Arc<SpanRecorder>>,
}

/// Span of a caller's request.
#[derive(Debug)]
struct TracedRequest(RequestSpan);

impl CallSpan for TracedRequest {
    fn add_event(&self, name: &'static str, attributes: &[(&'static str, SpanEventValue)]) {
        let convert = |(key, value): &(&'static str, SpanEventValue)| {
            let value = match value {
                SpanEventValue::Text(text) => EventAttribute::Text(text),
                SpanEventValue::Count(count) => EventAttribute::Count(*count),
            };
            (*key, value)
        };
        match attributes {
            [] => self.0.add_event(name, &[]),
            [one] => self.0.add_event(name, &[convert(one)]),
            more => {
                let attributes: Vec<_> = more.iter().map(convert).collect();
                self.0.add_event(name, &attributes);
            }
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn traced(span: &Arc<dyn CallSpan>) -> Option<&RequestSpan> {
    let span: Option<&TracedRequest> = span.as_any().downcast_ref();
    span.map(|span| &span.0)
}

impl OperationMetrics {
    /// Creates the observer. The series of tools and prompts are with those of their calls.
    pub(crate) fn new(
        calls: Arc<CallMetrics>,
        spans: Option<Arc<SpanRecorder>>,
    ) -> OperationMetrics {
        OperationMetrics {
            calls,
            received: Default::default(),
            sent: RwLock::default(),
            sessions: RwLock::default(),
            spans,
        }
    }

    fn received_series<'a>(
        &'a self,
        request: &ReceivedRequest<'_>,
        item: Option<&'a Arc<Item>>,
    ) -> Option<&'a OperationSeries> {
        let is_http = request.transport == "http";
        if let Some((kind, item)) = target(request.method, item)
            && let Some(series) = self.calls.handle_of(item)
            && !series.is_other()
        {
            return series.received.get(request.revision, is_http, |revision| {
                let target = Some((kind, item.def.name()));
                let attributes = operation_attributes(request.method, target, revision, is_http);
                OperationSeries::new(&MCP_SERVER_OPERATION, SpanKind::Server, attributes)
            });
        }
        let (at, method) = known_method(request.method);
        self.received
            .get(at)?
            .get(request.revision, is_http, |revision| {
                let attributes = operation_attributes(method, None, revision, is_http);
                OperationSeries::new(&MCP_SERVER_OPERATION, SpanKind::Server, attributes)
            })
    }

    /// Runs a function with the series of a request to a server.
    fn with_sent_series(&self, request: &SentRequest<'_>, record: impl FnOnce(&OperationSeries)) {
        let make = |target, revision| {
            let (_, method) = known_method(request.method);
            let mut attributes = operation_attributes(method, target, revision, request.is_http);
            attributes.extend(server_attributes(request.server, request.address));
            OperationSeries::new(&MCP_CLIENT_OPERATION, SpanKind::Client, attributes)
        };
        if let Some((kind, item)) = target(request.method, request.item)
            && let Some(handle) = self.calls.handle_of(item)
            && !handle.is_other()
        {
            let series = handle
                .sent
                .0
                .get(request.revision, request.is_http, |revision| {
                    make(Some((kind, item.upstream_name())), revision)
                });
            return series.map_or((), record);
        }
        let (method, _) = known_method(request.method);
        let revision = revision_index(request.revision);
        let key: SentKey = (request.server.into(), method, revision, request.is_http);
        let known = self
            .sent
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .cloned();
        let series = known.unwrap_or_else(|| {
            let mut all = self.sent.write().unwrap_or_else(PoisonError::into_inner);
            let made = || {
                Arc::new(make(
                    None,
                    REVISIONS.get(revision).copied().unwrap_or_default(),
                ))
            };
            all.entry(key).or_insert_with(made).clone()
        });
        record(&series);
    }
}

impl OperationObserver for OperationMetrics {
    fn on_request(&self, request: &ReceivedRequest<'_>) -> Option<Arc<dyn CallSpan>> {
        let parse = |trace: &TraceContext| trace.parent.as_deref().and_then(TraceParent::parse);
        let span = self.spans.as_ref()?.begin(SpanOrigin {
            parent: parse(request.trace),
            state: request.trace.state.as_deref(),
            link: request.transport_trace.and_then(parse),
            request_id: request.id,
            started: Some(request.started),
        })?;
        Some(Arc::new(TracedRequest(span)))
    }

    fn on_response(
        &self,
        request: &ReceivedRequest<'_>,
        span: Option<&Arc<dyn CallSpan>>,
        end: &OperationEnd<'_>,
    ) {
        let Some(series) = self.received_series(request, end.item) else {
            return;
        };
        let code = match &end.error {
            Some(OperationError::Rpc(code)) => Some(code.to_string()),
            _ => None,
        };
        let error = match &end.error {
            Some(OperationError::Rpc(number)) if CALLER_MISTAKES.contains(number) => None,
            Some(OperationError::Rpc(_)) => code.as_deref(),
            Some(OperationError::Tool) => Some("tool_error"),
            Some(OperationError::Other(class)) => Some(*class),
            None => None,
        };
        let failure = OperationFailure {
            error,
            status: code.as_deref(),
        };
        series.record(end.duration, failure);
        if let Some(span) = span.and_then(traced) {
            span.end(series, failure, end.duration);
        }
    }

    fn on_sent(
        &self,
        _request: &SentRequest<'_>,
        caller: Option<&Arc<dyn CallSpan>>,
        trace: &mut TraceContext,
    ) -> Option<u64> {
        let own = caller.and_then(traced)?.child_context();
        trace.parent = Some(own.text());
        Some(own.span_id)
    }

    fn on_answer(
        &self,
        request: &SentRequest<'_>,
        span: Option<(&Arc<dyn CallSpan>, u64)>,
        end: &OperationEnd<'_>,
    ) {
        let code = match &end.error {
            Some(OperationError::Rpc(code)) => Some(code.to_string()),
            _ => None,
        };
        let error = match &end.error {
            Some(OperationError::Rpc(_)) => code.as_deref(),
            Some(OperationError::Tool) => Some("tool_error"),
            Some(OperationError::Other(class)) => Some(*class),
            None => None,
        };
        let failure = OperationFailure {
            error,
            status: code.as_deref(),
        };
        self.with_sent_series(request, |series| {
            series.record(end.duration, failure);
            if let Some((span, id)) = span
                && let Some(span) = traced(span)
            {
                span.end_child((id, end.started, end.duration), series, failure);
            }
        });
    }

    fn on_session_end(&self, session: &EndedSession<'_>) {
        let server = session.server.map(|(id, _)| id.into());
        let key: SessionKey = (server, session.revision, session.is_http);
        let mut all = self
            .sessions
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let series = all.entry(key).or_insert_with(|| {
            let mut attributes = Attributes::new();
            if !session.revision.is_empty() {
                attributes.push(("mcp.protocol.version", session.revision.into()));
            }
            if session.is_http {
                attributes.push(("network.protocol.name", "http".into()));
            }
            let metric = match session.server {
                Some((server, address)) => {
                    attributes.extend(server_attributes(server, address));
                    &MCP_CLIENT_SESSION
                }
                None => &MCP_SERVER_SESSION,
            };
            Arc::new(OperationSeries::new(metric, SpanKind::Server, attributes))
        });
        let failure = OperationFailure {
            error: session.error,
            status: None,
        };
        series.record(session.duration, failure);
    }
}

impl MetricSource for OperationMetrics {
    fn collect(&self, samples: &mut SampleList) {
        self.received
            .iter()
            .for_each(|series| series.collect(samples));
        let sent = self.sent.read().unwrap_or_else(PoisonError::into_inner);
        sent.values().for_each(|series| series.collect(samples));
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        sessions.values().for_each(|series| series.collect(samples));
    }
}

impl ItemSeries {
    /// Adds the durations of the operations with the item.
    pub(super) fn collect_durations(&self, samples: &mut SampleList) {
        self.received.collect(samples);
        self.sent.collect(samples);
    }
}
