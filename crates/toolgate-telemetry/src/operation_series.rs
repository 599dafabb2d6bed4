//! Series of one kind of operation: its attributes, its durations, and the encoded parts of its spans.

use crate::{
    AttributeValue, DurationHistogram, MetricDefinition, SampleList, SampleValue,
    protobuf::ProtobufBuffer,
};
use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

/// Kind of a span, as OTLP numbers it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SpanKind {
    /// Request that the gateway received.
    Server = 2,
    /// Request that the gateway sent.
    Client = 3,
}

/// Fields of a span in OTLP.
pub(crate) mod field {
    pub(crate) const TRACE_STATE: u32 = 3;
    pub(crate) const NAME: u32 = 5;
    pub(crate) const KIND: u32 = 6;
    pub(crate) const ATTRIBUTES: u32 = 9;
    pub(crate) const EVENTS: u32 = 11;
    pub(crate) const LINKS: u32 = 13;
    pub(crate) const STATUS: u32 = 15;
}

/// Maximum number of error series of one kind of operation. The values are error classes and JSON-RPC codes; servers
/// choose the codes.
const MAX_ERROR_SERIES: usize = 20;

/// Failure of an operation: the type of the error, if the operation counts as failed, and the code of the response.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct OperationFailure<'a> {
    /// Value of `error.type`.
    pub error: Option<&'a str>,
    /// Value of `rpc.response.status_code`.
    pub status: Option<&'a str>,
}

/// Durations of failed operations, by error.
#[derive(Debug)]
struct ErrorSeries {
    error: Option<AttributeValue>,
    status: Option<AttributeValue>,
    durations: DurationHistogram,
}

/// Series of one kind of operation, for example of the calls of one tool over one transport in one revision. Made once,
/// so that an operation looks no attribute up.
#[derive(Debug)]
pub struct OperationSeries {
    metric: &'static MetricDefinition,
    attributes: Vec<(&'static str, AttributeValue)>,
    success: DurationHistogram,
    errors: RwLock<Vec<Arc<ErrorSeries>>>,
    /// Encoded name, kind and attributes of its spans.
    span_fields: Box<[u8]>,
}

impl OperationSeries {
    /// Creates the series of operations with these attributes. Spans are named by method and target.
    pub fn new(
        metric: &'static MetricDefinition,
        kind: SpanKind,
        attributes: Vec<(&'static str, AttributeValue)>,
    ) -> OperationSeries {
        let value = |key: &str| {
            attributes
                .iter()
                .find(|(k, _)| *k == key)
                .map(|(_, v)| &**v)
        };
        let method = value("mcp.method.name").unwrap_or_default();
        let target = value("gen_ai.tool.name").or_else(|| value("gen_ai.prompt.name"));
        let name = match target {
            Some(target) => format!("{method} {target}"),
            None => method.to_owned(),
        };
        let mut fields = ProtobufBuffer::default();
        fields.text(field::NAME, &name);
        fields.uint(field::KIND, kind as u64);
        for (key, value) in &attributes {
            match (*key, value.parse()) {
                ("server.port", Ok(port)) => fields.int_attribute(field::ATTRIBUTES, key, port),
                _ => fields.text_attribute(field::ATTRIBUTES, key, value),
            }
        }
        OperationSeries {
            metric,
            success: DurationHistogram::new(metric.bounds),
            errors: RwLock::default(),
            span_fields: fields.into_vec().into(),
            attributes,
        }
    }

    /// Records an operation: its duration, and its failure.
    pub fn record(&self, duration: Duration, failure: OperationFailure<'_>) {
        if failure == OperationFailure::default() {
            return self.success.record(duration);
        }
        let known = find(
            &self.errors.read().unwrap_or_else(PoisonError::into_inner),
            failure,
        );
        let series = known.unwrap_or_else(|| {
            let mut all = self.errors.write().unwrap_or_else(PoisonError::into_inner);
            let failure = match all.len() < MAX_ERROR_SERIES {
                true => failure,
                false => OperationFailure {
                    error: Some(crate::OTHER_VALUE),
                    status: None,
                },
            };
            find(&all, failure).unwrap_or_else(|| {
                let series = Arc::new(ErrorSeries {
                    error: failure.error.map(Into::into),
                    status: failure.status.map(Into::into),
                    durations: DurationHistogram::new(self.metric.bounds),
                });
                all.push(series.clone());
                series
            })
        });
        series.durations.record(duration);
    }

    /// Returns the encoded name, kind and attributes of its spans.
    pub(crate) fn span_fields(&self) -> &[u8] {
        &self.span_fields
    }

    /// Adds the samples of the series.
    pub fn collect(&self, samples: &mut SampleList) {
        let values = self.success.values();
        if values.count() > 0 {
            let value = SampleValue::Histogram(values);
            samples.add(self.metric, self.attributes.clone(), value);
        }
        let errors = self.errors.read().unwrap_or_else(PoisonError::into_inner);
        for series in errors.iter() {
            let mut attributes = self.attributes.clone();
            if let Some(error) = &series.error {
                attributes.push(("error.type", error.clone()));
            }
            if let Some(status) = &series.status {
                attributes.push(("rpc.response.status_code", status.clone()));
            }
            let value = SampleValue::Histogram(series.durations.values());
            samples.add(self.metric, attributes, value);
        }
    }
}

fn find(all: &[Arc<ErrorSeries>], failure: OperationFailure<'_>) -> Option<Arc<ErrorSeries>> {
    let is = |one: &&Arc<ErrorSeries>| {
        one.error.as_deref() == failure.error && one.status.as_deref() == failure.status
    };
    all.iter().find(is).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::MCP_SERVER_OPERATION;

    fn series() -> OperationSeries {
        let attributes = vec![("mcp.method.name", "tools/call".into())];
        OperationSeries::new(&MCP_SERVER_OPERATION, SpanKind::Server, attributes)
    }

    #[test]
    fn failed_operations_have_a_series_for_each_error_and_code() {
        let series = series();
        let failure = |error, status| OperationFailure { error, status };
        let record = |failure| series.record(Duration::from_millis(1), failure);
        record(OperationFailure::default());
        record(failure(Some("tool_error"), None));
        record(failure(Some("-32603"), Some("-32603")));
        record(failure(Some("-32603"), Some("-32603")));
        record(failure(None, Some("-32602")));
        let mut samples = SampleList::default();
        series.collect(&mut samples);
        let (_, found) = samples.metrics().next().unwrap();
        let counts: Vec<(usize, u64)> = found
            .iter()
            .map(|sample| match &sample.value {
                SampleValue::Histogram(values) => (sample.attributes.len(), values.count()),
                SampleValue::Number(_) => panic!("a histogram"),
            })
            .collect();
        assert_eq!(counts, [(1, 1), (2, 1), (3, 2), (2, 1)]);
    }

    #[test]
    fn errors_above_the_maximum_count_together() {
        let series = series();
        for code in 0..100 {
            let code = code.to_string();
            let failure = OperationFailure {
                error: Some(&code),
                status: Some(&code),
            };
            series.record(Duration::ZERO, failure);
        }
        assert_eq!(series.errors.read().unwrap().len(), MAX_ERROR_SERIES + 1);
    }
}
