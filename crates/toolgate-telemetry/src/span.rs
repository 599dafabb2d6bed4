//! Spans: recorded with few instructions, encoded for OTLP at their end, and queued for the exporter.

use crate::{
    MetricCounter, OperationFailure, OperationSeries, TelemetryResource, TraceParent,
    instruments::nanos, operation_series::field, otlp::TraceRequestHead, protobuf::ProtobufBuffer,
    trace_parent::SAMPLED_FLAG,
};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::sync::Notify;

/// Limits of the queue of spans, as `OTEL_BSP_*` sets them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SpanQueueLimits {
    /// Maximum number of queued spans; further ones are dropped.
    pub max_queue: usize,
    /// Number of spans that are exported together.
    pub max_batch: usize,
}

impl Default for SpanQueueLimits {
    fn default() -> SpanQueueLimits {
        SpanQueueLimits {
            max_queue: 2048,
            max_batch: 512,
        }
    }
}

/// Maximum size of the queued spans in bytes.
const MAX_QUEUED_BYTES: usize = 8 << 20;
/// Maximum number of events of one span.
const MAX_SPAN_EVENTS: u32 = 128;
/// Maximum length of the JSON-RPC id in a span, in bytes. Callers choose it.
const MAX_REQUEST_ID_BYTES: usize = 40;
/// Estimated size of an encoded span in bytes.
const SPAN_BYTES: usize = 640;

/// Sampler: decides whether a request is traced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpanSampler {
    /// True if the decision of the caller holds, where it made one.
    pub parent_based: bool,
    /// Share of the other requests that are traced, from 0 to 1.
    pub ratio: f64,
}

impl Default for SpanSampler {
    fn default() -> SpanSampler {
        SpanSampler {
            parent_based: true,
            ratio: 1.0,
        }
    }
}

impl SpanSampler {
    fn samples(self, trace_id: &[u8; 16], parent: Option<&TraceParent>) -> bool {
        match parent {
            Some(parent) if self.parent_based => parent.is_sampled(),
            _ if self.ratio >= 1.0 => true,
            // As all SDKs decide: by the lower half of the trace id, so that they agree on a trace.
            _ => {
                let [.., a, b, c, d, e, f, g, h] = *trace_id;
                let low = u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1;
                (low as f64) < self.ratio * (1u64 << 63) as f64
            }
        }
    }
}

/// Recorder of spans: samples, encodes and queues them.
#[derive(Debug)]
pub struct SpanRecorder {
    sampler: SpanSampler,
    limits: SpanQueueLimits,
    /// Seeds and counter of the ids. Ids need to be unique, not secret.
    seeds: [u64; 2],
    next: AtomicU64,
    queue: Mutex<SpanBatch>,
    /// Notified when a batch is full.
    pub(crate) full: Notify,
    /// Spans that were dropped.
    pub dropped: MetricCounter,
    /// Spans that were exported.
    pub exported: MetricCounter,
    /// Encoded event of an allowed call, with a time of zero.
    allowed_event: Box<[u8]>,
    /// Begin of each request.
    head: TraceRequestHead,
}

/// Spans of one export: the request of OTLP, to which each span is appended as it ends.
#[derive(Debug, Default)]
pub struct SpanBatch {
    pub(crate) request: ProtobufBuffer,
    pub(crate) count: usize,
}

impl SpanBatch {
    /// Returns the encoded request, and the number of its spans.
    pub fn into_request(self, recorder: &SpanRecorder) -> (Vec<u8>, usize) {
        let mut request = self.request;
        recorder.head.finish(&mut request);
        (request.into_vec(), self.count)
    }
}

/// Span of a request that the gateway received.
#[derive(Debug)]
pub struct RequestSpan {
    recorder: Arc<SpanRecorder>,
    context: TraceParent,
    parent: u64,
    state: Option<Box<str>>,
    /// JSON-RPC id, in a fixed buffer: a span allocates nothing else.
    request_id: ([u8; MAX_REQUEST_ID_BYTES], u8),
    link: Option<TraceParent>,
    /// Start, by both clocks. All other times are counted from here, so that they agree.
    started_at: u64,
    started: Instant,
    events: Mutex<SpanEvents>,
}

/// Events of a span. Most spans have one, that the rules allowed the call.
#[derive(Debug, Default)]
struct SpanEvents {
    /// Time at which the rules allowed the call.
    allowed_at: Option<u64>,
    /// Encoded other events before that, and their number.
    before: ProtobufBuffer,
    /// Encoded other events after that.
    after: ProtobufBuffer,
    count: u32,
}

/// Value of an attribute of an event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EventAttribute {
    /// Constant of the program.
    Text(&'static str),
    /// Count.
    Count(u64),
}

/// Origin of a request's span: the context that its caller sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpanOrigin<'a> {
    /// Span of the caller.
    pub parent: Option<TraceParent>,
    /// `tracestate` of the caller.
    pub state: Option<&'a str>,
    /// Span of the transport, if it differs from that of the caller.
    pub link: Option<TraceParent>,
    /// JSON-RPC id as JSON.
    pub request_id: Option<&'a str>,
    /// Time at which the request was read; now if there is none.
    pub started: Option<Instant>,
}

impl SpanRecorder {
    /// Creates a recorder. The seeds make the ids of several processes differ; they come from the system's random
    /// numbers.
    pub fn new(
        sampler: SpanSampler,
        limits: SpanQueueLimits,
        seeds: [u64; 2],
        resource: &TelemetryResource,
    ) -> SpanRecorder {
        SpanRecorder {
            sampler,
            limits,
            seeds,
            next: AtomicU64::new(1),
            queue: Mutex::default(),
            full: Notify::new(),
            dropped: MetricCounter::default(),
            exported: MetricCounter::default(),
            head: TraceRequestHead::new(resource),
            allowed_event: encode_event(0, DECISION_EVENT, &[ALLOW]).into_vec().into(),
        }
    }

    /// Begins the span of a request; `None` if it is not sampled.
    pub fn begin(self: &Arc<Self>, origin: SpanOrigin<'_>) -> Option<RequestSpan> {
        let trace_id = origin
            .parent
            .map_or_else(|| self.new_trace_id(), |p| p.trace_id);
        if !self.sampler.samples(&trace_id, origin.parent.as_ref()) {
            return None;
        }
        let id = origin
            .request_id
            .unwrap_or_default()
            .trim_matches('"')
            .as_bytes();
        let mut request_id = ([0; MAX_REQUEST_ID_BYTES], 0);
        // A longer id is left out: a part of it would be another one.
        if let Some(buffer) = request_id.0.get_mut(..id.len()) {
            buffer.copy_from_slice(id);
            request_id.1 = id.len() as u8;
        }
        Some(RequestSpan {
            context: TraceParent {
                trace_id,
                span_id: self.new_id(),
                flags: SAMPLED_FLAG,
            },
            parent: origin.parent.map_or(0, |parent| parent.span_id),
            state: origin.state.map(Into::into),
            request_id,
            link: origin.link,
            started_at: unix_nanos(),
            started: origin.started.unwrap_or_else(Instant::now),
            events: Mutex::default(),
            recorder: self.clone(),
        })
    }

    /// Takes the queued spans.
    pub fn take(&self) -> SpanBatch {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut queue)
    }

    /// Returns the number of queued spans.
    pub fn queued(&self) -> usize {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.count
    }

    fn new_id(&self) -> u64 {
        let count = self.next.fetch_add(1, Relaxed);
        // The lowest bit keeps it from being zero.
        mix(self.seeds[0].wrapping_add(count.wrapping_mul(GOLDEN_RATIO))) | 1
    }

    fn new_trace_id(&self) -> [u8; 16] {
        let low = self.new_id();
        let high = mix(self.seeds[1] ^ low);
        (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
    }

    fn push(&self, fill: impl FnOnce(&mut ProtobufBuffer)) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = queue.request.len() >= MAX_QUEUED_BYTES;
        if queue.count >= self.limits.max_queue || is_full {
            drop(queue);
            return self.dropped.increment();
        }
        if queue.count == 0 {
            let bytes = (self.limits.max_batch + 1) * SPAN_BYTES;
            queue.request = ProtobufBuffer::with_capacity(bytes.min(MAX_QUEUED_BYTES));
            self.head.begin(&mut queue.request);
        }
        // ScopeSpans: field 2 is a span.
        queue.request.message(2, fill);
        queue.count += 1;
        if queue.count == self.limits.max_batch {
            drop(queue);
            self.full.notify_one();
        }
    }
}

/// Increment of the counter behind the ids, and its mixing, are those of SplitMix64.
const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut value: u64) -> u64 {
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

fn unix_nanos() -> u64 {
    nanos(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    )
}

/// Name of the event of a decision.
const DECISION_EVENT: &str = "toolgate.decision";
/// Attribute of the most frequent event: the rules allowed the call.
const ALLOW: (&str, EventAttribute) = ("toolgate.decision", EventAttribute::Text("allow"));
/// Position of the time in an encoded event: behind its tag, its length and the tag of the time.
const EVENT_TIME: std::ops::Range<usize> = 6..14;

fn encode_event(time: u64, name: &str, attributes: &[(&str, EventAttribute)]) -> ProtobufBuffer {
    let mut buffer = ProtobufBuffer::default();
    buffer.message(field::EVENTS, |event| {
        event.fixed64(1, time);
        event.text(2, name);
        for (key, value) in attributes {
            match value {
                EventAttribute::Text(text) => event.text_attribute(3, key, text),
                EventAttribute::Count(count) => event.int_attribute(3, key, *count),
            }
        }
    });
    buffer
}

impl RequestSpan {
    /// Returns the context of the span.
    pub fn context(&self) -> TraceParent {
        self.context
    }

    /// Returns the context of a new span below this one, for a request to a server.
    pub fn child_context(&self) -> TraceParent {
        TraceParent {
            span_id: self.recorder.new_id(),
            ..self.context
        }
    }

    /// Returns a time of the monotonic clock as that of the system clock, counted from the start of the span.
    fn time_of(&self, instant: Instant) -> u64 {
        let passed = instant.saturating_duration_since(self.started);
        self.started_at.saturating_add(nanos(passed))
    }

    /// Adds an event at the current time.
    pub fn add_event(&self, name: &str, attributes: &[(&str, EventAttribute)]) {
        let time = self.time_of(Instant::now());
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.count >= MAX_SPAN_EVENTS {
            return;
        }
        events.count += 1;
        let allows = attributes == [ALLOW] && name == DECISION_EVENT;
        match events.allowed_at {
            None if allows => events.allowed_at = Some(time),
            None => events
                .before
                .append(encode_event(time, name, attributes).as_slice()),
            Some(_) => events
                .after
                .append(encode_event(time, name, attributes).as_slice()),
        }
    }

    /// Ends the span after that time: encodes and queues it.
    pub fn end(&self, series: &OperationSeries, failure: OperationFailure<'_>, duration: Duration) {
        self.recorder.push(|span| {
            let times = (
                self.started_at,
                self.started_at.saturating_add(nanos(duration)),
            );
            self.write_head(span, (self.context.span_id, self.parent), times);
            span.append(series.span_fields());
            let (id, length) = &self.request_id;
            if let Some(id) = id.get(..usize::from(*length)).filter(|id| !id.is_empty()) {
                write_request_id(span, id);
            }
            write_failure(span, failure);
            self.write_events(span);
            if let Some(link) = self.link {
                span.message(field::LINKS, |fields| {
                    fields.bytes(1, &link.trace_id);
                    fields.bytes(2, &link.span_id.to_be_bytes());
                });
            }
        });
    }

    /// Ends a span below this one, for a request to a server that began at `started` and took `duration`.
    pub fn end_child(
        &self,
        (span_id, started, duration): (u64, Instant, Duration),
        series: &OperationSeries,
        failure: OperationFailure<'_>,
    ) {
        self.recorder.push(|span| {
            let start = self.time_of(started);
            let times = (start, start.saturating_add(nanos(duration)));
            self.write_head(span, (span_id, self.context.span_id), times);
            span.append(series.span_fields());
            write_failure(span, failure);
        });
    }

    /// Writes the ids, the times and the flags: one block, because each part would cost as much as the whole.
    fn write_head(
        &self,
        span: &mut ProtobufBuffer,
        (id, parent): (u64, u64),
        (start, end): (u64, u64),
    ) {
        let mut head = FieldBlock::<SPAN_HEAD_BYTES>::new();
        head.put(&[0x0a, 16]);
        head.put(&self.context.trace_id);
        head.put(&[0x12, 8]);
        head.put(&id.to_be_bytes());
        head.put(&[0x39]);
        head.put(&start.to_le_bytes());
        head.put(&[0x41]);
        head.put(&end.to_le_bytes());
        head.put(&[0x85, 0x01, self.context.flags, 0, 0, 0]);
        if parent != 0 {
            head.put(&[0x22, 8]);
            head.put(&parent.to_be_bytes());
        }
        span.append(head.as_slice());
        if let Some(state) = &self.state {
            span.text(field::TRACE_STATE, state);
        }
    }

    fn write_events(&self, span: &mut ProtobufBuffer) {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if !events.before.is_empty() {
            span.append(events.before.as_slice());
        }
        if let Some(time) = events.allowed_at {
            let start = span.len();
            span.append(&self.recorder.allowed_event);
            let place = start + EVENT_TIME.start..start + EVENT_TIME.end;
            span.overwrite(place, &time.to_le_bytes());
        }
        if !events.after.is_empty() {
            span.append(events.after.as_slice());
        }
    }
}

/// Length of the encoded ids, times and flags of a span: trace id, span id, start, end, flags and parent with their tags.
const SPAN_HEAD_BYTES: usize = 18 + 10 + 9 + 9 + 6 + 10;

/// Attribute of a JSON-RPC id: its tags and its name. The lengths depend on the id.
const REQUEST_ID_KEY: &[u8; 18] = b"jsonrpc.request.id";

fn write_request_id(span: &mut ProtobufBuffer, id: &[u8]) {
    let length = id.len() as u8;
    let mut block = FieldBlock::<{ 26 + MAX_REQUEST_ID_BYTES }>::new();
    block.put(&[0x4a, 24 + length, 0x0a, REQUEST_ID_KEY.len() as u8]);
    block.put(REQUEST_ID_KEY);
    block.put(&[0x12, 2 + length, 0x0a, length]);
    block.put(id);
    span.append(block.as_slice());
}

/// Encoded fields of a bounded length, on the stack.
struct FieldBlock<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> FieldBlock<N> {
    fn new() -> FieldBlock<N> {
        FieldBlock {
            bytes: [0; N],
            length: 0,
        }
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(bytes);
            self.length = end;
        }
    }

    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

fn write_failure(span: &mut ProtobufBuffer, failure: OperationFailure<'_>) {
    if let Some(status) = failure.status {
        span.text_attribute(field::ATTRIBUTES, "rpc.response.status_code", status);
    }
    if let Some(error) = failure.error {
        span.text_attribute(field::ATTRIBUTES, "error.type", error);
        // Status: field 3 is the code, and 2 means an error. The message may contain text of servers, so there is none.
        span.message(field::STATUS, |fields| fields.uint(3, 2));
    }
}
