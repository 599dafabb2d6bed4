//! `[telemetry]`: metrics and traces.

use super::reader::IntRange;
use schemars::JsonSchema;
use serde::Deserialize;

/// Metrics and traces. The standard `OTEL_*` environment variables configure what is not set here.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TelemetrySection {
    /// True if the gateway counts and measures calls. Without it, `/metrics` has only the state of the gateway.
    metrics: bool,
    /// Maximum number of tools and prompts with series of their own. Further ones count together as `_OTHER`.
    #[serde(with = "IntRange::<0, 100_000>")]
    tool_series: usize,
    /// True if calls are also counted by caller, in `toolgate_caller_calls_total`. The names of callers may be personal
    /// data.
    callers: bool,
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
}

impl Default for TelemetrySettings {
    fn default() -> TelemetrySettings {
        TelemetrySettings {
            metrics: true,
            tool_series: 2000,
            callers: false,
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
        }
    }
}

impl From<TelemetrySection> for TelemetrySettings {
    fn from(section: TelemetrySection) -> TelemetrySettings {
        TelemetrySettings {
            metrics: section.metrics,
            tool_series: section.tool_series,
            callers: section.callers,
        }
    }
}
