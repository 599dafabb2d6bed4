//! `[telemetry]`: metrics and traces.

use super::{
    config_value::ConfigValue,
    reader::{ConfigWord, IntRange, NamedSettings, SettingError, SettingPath, Word},
    value_source::ValueSource,
};
use schemars::JsonSchema;
use serde::Deserialize;
use toolgate_telemetry::OtlpProtocol;

/// Metrics and traces. The standard `OTEL_*` environment variables configure what is not set here.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TelemetrySection {
    /// True if the gateway counts and measures calls. Without it, `/metrics` has only the state of the gateway, and no
    /// metrics are exported.
    metrics: bool,
    /// Maximum number of tools and prompts with series of their own. Further ones count together as `_OTHER`.
    #[serde(with = "IntRange::<0, 100_000>")]
    tool_series: usize,
    /// True if calls are also counted by caller, in `toolgate_caller_calls_total`. The names of callers may be personal
    /// data.
    callers: bool,
    /// Base URL of a collector, to which the gateway exports traces and metrics over OTLP. Default: that of
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`; without both, nothing is exported.
    #[schemars(example = &"http://127.0.0.1:4318")]
    otlp_endpoint: Option<String>,
    /// Protocol of the export. Default: that of `OTEL_EXPORTER_OTLP_PROTOCOL`, else `http/protobuf`.
    #[serde(with = "Word::<OtlpProtocol>")]
    otlp_protocol: Option<OtlpProtocol>,
    /// Headers of the export, for example credentials of the collector.
    otlp_headers: NamedSettings<ValueSource>,
    /// True if traces are exported. Default: true if a collector is configured.
    traces: Option<bool>,
    /// Share of the calls that are traced, in percent, if the caller made no decision. Default: that of
    /// `OTEL_TRACES_SAMPLER`, else 100.
    #[serde(with = "IntRange::<0, 100>")]
    sample_percent: Option<u64>,
    /// Seconds between two exports of metrics. Default: that of `OTEL_METRIC_EXPORT_INTERVAL`, else 60.
    #[serde(with = "IntRange::<1, 3600>")]
    export_seconds: Option<u64>,
}

impl ConfigWord for OtlpProtocol {
    const WORDS: &'static [(&'static str, OtlpProtocol)] = &[
        ("http/protobuf", OtlpProtocol::Http),
        ("grpc", OtlpProtocol::Grpc),
    ];
}

/// Settings of metrics and traces.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct TelemetrySettings {
    /// True if calls are counted and measured.
    pub(crate) metrics: bool,
    /// Maximum number of items with series of their own.
    pub(crate) tool_series: usize,
    /// True if calls are also counted by caller.
    pub(crate) callers: bool,
    /// Base URL of the collector.
    pub(crate) otlp_endpoint: Option<String>,
    /// Protocol of the export.
    pub(crate) otlp_protocol: Option<OtlpProtocol>,
    /// Headers of the export.
    pub(crate) otlp_headers: Vec<(String, ConfigValue)>,
    /// Whether traces are exported.
    pub(crate) traces: Option<bool>,
    /// Share of the calls that are traced, in percent.
    pub(crate) sample_percent: Option<u64>,
    /// Seconds between two exports of metrics.
    pub(crate) export_seconds: Option<u64>,
}

impl Default for TelemetrySettings {
    fn default() -> TelemetrySettings {
        TelemetrySettings {
            metrics: true,
            tool_series: 2000,
            callers: false,
            otlp_endpoint: None,
            otlp_protocol: None,
            otlp_headers: Vec::new(),
            traces: None,
            sample_percent: None,
            export_seconds: None,
        }
    }
}

impl Default for TelemetrySection {
    fn default() -> TelemetrySection {
        let settings = TelemetrySettings::default();
        TelemetrySection {
            metrics: settings.metrics,
            tool_series: settings.tool_series,
            callers: settings.callers,
            otlp_endpoint: None,
            otlp_protocol: None,
            otlp_headers: NamedSettings::default(),
            traces: None,
            sample_percent: None,
            export_seconds: None,
        }
    }
}

impl TelemetrySettings {
    /// Checks `[telemetry]`.
    pub(super) fn check(section: TelemetrySection) -> Result<TelemetrySettings, SettingError> {
        let path = SettingPath::new(&["telemetry", "otlp_headers"]);
        let headers = section.otlp_headers.0.into_iter().map(|(name, value)| {
            let wrong = |text| SettingError::message(path.key(&name), text);
            Ok((name.clone(), value.check(&name).map_err(wrong)?))
        });
        Ok(TelemetrySettings {
            metrics: section.metrics,
            tool_series: section.tool_series,
            callers: section.callers,
            otlp_endpoint: section.otlp_endpoint,
            otlp_protocol: section.otlp_protocol,
            otlp_headers: headers.collect::<Result<_, SettingError>>()?,
            traces: section.traces,
            sample_percent: section.sample_percent,
            export_seconds: section.export_seconds,
        })
    }
}
