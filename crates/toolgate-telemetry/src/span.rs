//! Spans: recorded with few instructions, encoded for OTLP at their end, and queued for the exporter.

use crate::{
    MetricCounter, OperationSeries, TraceParent, operation_series::field, protobuf::ProtobufBuffer,
    trace_parent::SAMPLED_FLAG,
};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{SystemTime, UNIX_EPOCH},
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
const MAX_REQUEST_ID_BYTES: usize = 64;
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
}

/// Encoded spans.
#[derive(Debug, Default)]
pub struct SpanBatch {
    pub(crate) spans: ProtobufBuffer,
    pub(crate) count: usize,
}

/// Span of a request that the gateway received.
#[derive(Debug)]
pub struct RequestSpan {
    recorder: Arc<SpanRecorder>,
    context: TraceParent,
    parent: u64,
    state: Option<Box<str>>,
    request_id: Option<Box<str>>,
    link: Option<TraceParent>,
    started: u64,
    events: Mutex<(ProtobufBuffer, u32)>,
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
}

/// End of a span that reports an error: its type, its code and a description.
pub type SpanError<'a> = (&'a str, Option<&'a str>);

impl SpanRecorder {
    /// Creates a recorder. The seeds make the ids of several processes differ; they come from the system's random
    /// numbers.
    pub fn new(sampler: SpanSampler, limits: SpanQueueLimits, seeds: [u64; 2]) -> SpanRecorder {
        SpanRecorder {
            sampler,
            limits,
            seeds,
            next: AtomicU64::new(1),
            queue: Mutex::default(),
            full: Notify::new(),
            dropped: MetricCounter::default(),
            exported: MetricCounter::default(),
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
        let request_id = origin.request_id.map(|id| id.trim_matches('"'));
        let request_id = request_id.filter(|id| id.len() <= MAX_REQUEST_ID_BYTES);
        Some(RequestSpan {
            context: TraceParent {
                trace_id,
                span_id: self.new_id(),
                flags: SAMPLED_FLAG,
            },
            parent: origin.parent.map_or(0, |parent| parent.span_id),
            state: origin.state.map(Into::into),
            request_id: request_id.map(Into::into),
            link: origin.link,
            started: unix_nanos(),
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
        if queue.count >= self.limits.max_queue || queue.spans.len() >= MAX_QUEUED_BYTES {
            drop(queue);
            return self.dropped.increment();
        }
        if queue.spans.is_empty() {
            let bytes = (self.limits.max_batch + 1) * SPAN_BYTES;
            queue.spans = ProtobufBuffer::with_capacity(bytes.min(MAX_QUEUED_BYTES));
        }
        // ScopeSpans: field 2 is a span.
        queue.spans.message(2, fill);
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
    let passed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX)
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

    /// Adds an event at the current time.
    pub fn add_event<'e>(
        &self,
        name: &str,
        attributes: impl Iterator<Item = (&'e str, EventAttribute)>,
    ) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let (buffer, count) = &mut *events;
        if *count >= MAX_SPAN_EVENTS {
            return;
        }
        *count += 1;
        buffer.message(field::EVENTS, |event| {
            event.fixed64(1, unix_nanos());
            event.text(2, name);
            for (key, value) in attributes {
                match value {
                    EventAttribute::Text(text) => event.text_attribute(3, key, text),
                    EventAttribute::Count(count) => event.int_attribute(3, key, count),
                }
            }
        });
    }

    /// Ends the span: encodes and queues it.
    pub fn end(&self, series: &OperationSeries, error: Option<SpanError<'_>>, is_failure: bool) {
        self.recorder.push(|span| {
            self.write_ids(span, self.context.span_id, self.parent);
            span.append(series.span_fields());
            span.fixed64(field::START, self.started);
            span.fixed64(field::END, unix_nanos());
            if let Some(id) = &self.request_id {
                span.text_attribute(field::ATTRIBUTES, "jsonrpc.request.id", id);
            }
            write_error(span, error, is_failure);
            let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
            span.append(events.0.as_slice());
            if let Some(link) = self.link {
                span.message(field::LINKS, |link_fields| {
                    link_fields.bytes(1, &link.trace_id);
                    link_fields.bytes(2, &link.span_id.to_be_bytes());
                });
            }
        });
    }

    /// Ends a span below this one, for a request to a server that began at `started`.
    pub fn end_child(
        &self,
        (span_id, duration): (u64, std::time::Duration),
        series: &OperationSeries,
        error: Option<SpanError<'_>>,
    ) {
        let end = unix_nanos();
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.recorder.push(|span| {
            self.write_ids(span, span_id, self.context.span_id);
            span.append(series.span_fields());
            span.fixed64(field::START, end.saturating_sub(nanos));
            span.fixed64(field::END, end);
            write_error(span, error, error.is_some());
        });
    }

    fn write_ids(&self, span: &mut ProtobufBuffer, id: u64, parent: u64) {
        span.bytes(field::TRACE_ID, &self.context.trace_id);
        span.bytes(field::SPAN_ID, &id.to_be_bytes());
        if let Some(state) = &self.state {
            span.text(field::TRACE_STATE, state);
        }
        if parent != 0 {
            span.bytes(field::PARENT_SPAN_ID, &parent.to_be_bytes());
        }
        span.fixed32(field::FLAGS, self.context.flags.into());
    }
}

fn write_error(span: &mut ProtobufBuffer, error: Option<SpanError<'_>>, is_failure: bool) {
    let Some((kind, status)) = error else { return };
    span.text_attribute(field::ATTRIBUTES, "error.type", kind);
    if let Some(status) = status {
        span.text_attribute(field::ATTRIBUTES, "rpc.response.status_code", status);
    }
    if is_failure {
        // Status: field 3 is the code, and 2 means an error. The message may contain text of servers, so there is none.
        span.message(field::STATUS, |fields| fields.uint(3, 2));
    }
}
