//! Settings of the export over OTLP, from the config and from the standard `OTEL_*` variables.

use crate::{SpanQueueLimits, SpanSampler, TelemetryResource};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use percent_encoding::percent_decode_str;
use std::time::Duration;

/// Protocol of the export.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OtlpProtocol {
    /// Protocol buffers over HTTP/1.1: `http/protobuf`.
    Http,
    /// gRPC over HTTP/2: `grpc`.
    Grpc,
}

/// What is exported.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TelemetrySignal {
    /// Spans.
    Traces,
    /// Metrics.
    Metrics,
}

impl TelemetrySignal {
    /// Returns the name in metrics and messages.
    pub fn name(self) -> &'static str {
        match self {
            TelemetrySignal::Traces => "traces",
            TelemetrySignal::Metrics => "metrics",
        }
    }

    /// Returns the name in variables.
    fn variable(self) -> &'static str {
        match self {
            TelemetrySignal::Traces => "TRACES",
            TelemetrySignal::Metrics => "METRICS",
        }
    }

    fn http_path(self) -> &'static str {
        match self {
            TelemetrySignal::Traces => "v1/traces",
            TelemetrySignal::Metrics => "v1/metrics",
        }
    }

    fn grpc_path(self) -> &'static str {
        match self {
            TelemetrySignal::Traces => "opentelemetry.proto.collector.trace.v1.TraceService/Export",
            TelemetrySignal::Metrics => {
                "opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
            }
        }
    }
}

/// Destination of one signal.
#[derive(Clone, Debug)]
pub struct OtlpDestination {
    /// Full address of the requests.
    pub uri: Uri,
    /// Protocol of the requests.
    pub protocol: OtlpProtocol,
    /// Headers of the requests, for example credentials.
    pub headers: HeaderMap,
    /// Time limit of a request.
    pub timeout: Duration,
}

/// Settings of the config, which come before the variables.
#[derive(Clone, Debug, Default)]
pub struct OtlpOverrides {
    /// Base address of the collector.
    pub endpoint: Option<String>,
    /// Protocol of the export.
    pub protocol: Option<OtlpProtocol>,
    /// Further headers, by name.
    pub headers: Vec<(String, String)>,
    /// Share of the requests that are traced.
    pub sample_ratio: Option<f64>,
    /// Interval of the exports of metrics.
    pub metric_interval: Option<Duration>,
    /// Whether spans are exported.
    pub traces: Option<bool>,
    /// Whether metrics are exported.
    pub metrics: Option<bool>,
}

/// Settings of the export; without a destination, a signal is not exported.
#[derive(Clone, Debug)]
pub struct OtlpSettings {
    /// Destination of spans.
    pub traces: Option<OtlpDestination>,
    /// Destination of metrics.
    pub metrics: Option<OtlpDestination>,
    /// Attributes of the program.
    pub resource: TelemetryResource,
    /// Decision of which requests are traced.
    pub sampler: SpanSampler,
    /// Limits of the queue of spans.
    pub queue: SpanQueueLimits,
    /// Maximum time that a span waits in the queue.
    pub schedule_delay: Duration,
    /// Interval of the exports of metrics.
    pub metric_interval: Duration,
    /// File with the certificates of the authorities that the collector's certificate may come from.
    pub certificate: Option<String>,
}

/// Variables of the environment.
type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns a variable; an empty one counts as unset, as the specification of OpenTelemetry says.
fn variable(variables: Variables<'_>, name: &str) -> Option<String> {
    variables(name)
        .map(|value| value.trim().to_owned())
        .filter(|value| !value.is_empty())
}

/// Returns the variable of a signal, or the common one.
fn signal_variable(
    variables: Variables<'_>,
    signal: TelemetrySignal,
    name: &str,
) -> Option<String> {
    let own = format!("OTEL_EXPORTER_OTLP_{}_{name}", signal.variable());
    variable(variables, &own).or_else(|| variable(variables, &format!("OTEL_EXPORTER_OTLP_{name}")))
}

fn milliseconds(variables: Variables<'_>, name: &str, default: u64) -> Result<Duration, String> {
    number(variables, name, default).map(Duration::from_millis)
}

fn number(variables: Variables<'_>, name: &str, default: u64) -> Result<u64, String> {
    match variable(variables, name) {
        None => Ok(default),
        Some(text) => text
            .parse()
            .map_err(|_| format!("{name} is not a whole number; correct or remove it")),
    }
}

impl OtlpSettings {
    /// Reads the settings. The result has no destination if nothing configures one.
    ///
    /// # Errors
    /// A variable or setting is invalid. The message never contains a header.
    pub fn read(
        overrides: &OtlpOverrides,
        variables: Variables<'_>,
    ) -> Result<OtlpSettings, String> {
        let disabled = variable(variables, "OTEL_SDK_DISABLED");
        let is_disabled = disabled.is_some_and(|text| text.eq_ignore_ascii_case("true"));
        let destination = |signal, wanted: Option<bool>| match is_disabled || wanted == Some(false)
        {
            true => Ok(None),
            false => read_destination(overrides, variables, signal),
        };
        let queue = SpanQueueLimits {
            max_queue: number(variables, "OTEL_BSP_MAX_QUEUE_SIZE", 2048)?.clamp(1, 1 << 20)
                as usize,
            max_batch: number(variables, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512)?.clamp(1, 1 << 16)
                as usize,
        };
        let interval = milliseconds(variables, "OTEL_METRIC_EXPORT_INTERVAL", 60_000)?;
        Ok(OtlpSettings {
            traces: destination(TelemetrySignal::Traces, overrides.traces)?,
            metrics: destination(TelemetrySignal::Metrics, overrides.metrics)?,
            resource: read_resource(variables),
            sampler: read_sampler(overrides, variables)?,
            queue: SpanQueueLimits {
                max_batch: queue.max_batch.min(queue.max_queue),
                ..queue
            },
            schedule_delay: milliseconds(variables, "OTEL_BSP_SCHEDULE_DELAY", 5000)?
                .max(Duration::from_millis(10)),
            metric_interval: overrides
                .metric_interval
                .unwrap_or(interval)
                .max(Duration::from_millis(100)),
            certificate: variable(variables, "OTEL_EXPORTER_OTLP_CERTIFICATE"),
        })
    }

    /// Returns whether anything is exported.
    pub fn is_active(&self) -> bool {
        self.traces.is_some() || self.metrics.is_some()
    }
}

fn read_destination(
    overrides: &OtlpOverrides,
    variables: Variables<'_>,
    signal: TelemetrySignal,
) -> Result<Option<OtlpDestination>, String> {
    let exporter = format!("OTEL_{}_EXPORTER", signal.variable());
    let exporters = variable(variables, &exporter);
    let names = |wanted: &str| {
        let all = exporters.as_deref().unwrap_or_default();
        all.split(',').any(|name| name.trim() == wanted)
    };
    if exporters.is_some() && !names("otlp") {
        return Ok(None);
    }
    let own = variable(
        variables,
        &format!("OTEL_EXPORTER_OTLP_{}_ENDPOINT", signal.variable()),
    );
    let common = variable(variables, "OTEL_EXPORTER_OTLP_ENDPOINT");
    let base = overrides.endpoint.clone().or(common);
    if base.is_none() && own.is_none() && !names("otlp") {
        return Ok(None);
    }
    let protocol = match (
        overrides.protocol,
        signal_variable(variables, signal, "PROTOCOL"),
    ) {
        (Some(protocol), _) => protocol,
        (None, None) => OtlpProtocol::Http,
        (None, Some(text)) => match text.as_str() {
            "http/protobuf" => OtlpProtocol::Http,
            "grpc" => OtlpProtocol::Grpc,
            _ => {
                return Err(
                    "OTEL_EXPORTER_OTLP_PROTOCOL is not supported; write http/protobuf or grpc"
                        .to_owned(),
                );
            }
        },
    };
    let default = match protocol {
        OtlpProtocol::Http => "http://localhost:4318",
        OtlpProtocol::Grpc => "http://localhost:4317",
    };
    let uri = match (
        protocol,
        overrides.endpoint.is_none().then_some(own).flatten(),
    ) {
        // The address of one signal is used as it is.
        (OtlpProtocol::Http, Some(own)) => own,
        (OtlpProtocol::Http, None) => {
            let base = base.as_deref().unwrap_or(default);
            format!("{}/{}", base.trim_end_matches('/'), signal.http_path())
        }
        (OtlpProtocol::Grpc, own) => {
            let base = own.or(base).unwrap_or_else(|| default.to_owned());
            let base = match base.contains("://") {
                true => base,
                false => format!("https://{base}"),
            };
            format!("{}/{}", base.trim_end_matches('/'), signal.grpc_path())
        }
    };
    let wrong = || "the OTLP endpoint is not a URL; write it as http://HOST:PORT".to_owned();
    let uri: Uri = uri.parse().map_err(|_| wrong())?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
        return Err(wrong());
    }
    let timeout = format!("OTEL_EXPORTER_OTLP_{}_TIMEOUT", signal.variable());
    let common = number(variables, "OTEL_EXPORTER_OTLP_TIMEOUT", 10_000)?;
    Ok(Some(OtlpDestination {
        uri,
        protocol,
        headers: read_headers(overrides, variables, signal)?,
        timeout: milliseconds(variables, &timeout, common)?,
    }))
}

fn read_headers(
    overrides: &OtlpOverrides,
    variables: Variables<'_>,
    signal: TelemetrySignal,
) -> Result<HeaderMap, String> {
    let text = signal_variable(variables, signal, "HEADERS").unwrap_or_default();
    let pairs = text.split(',').filter(|pair| !pair.trim().is_empty());
    let pairs = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name.trim().to_owned(), percent_decode(value.trim()))
    });
    let mut headers = HeaderMap::new();
    for (name, value) in pairs.chain(overrides.headers.iter().cloned()) {
        let invalid = || "a header of the OTLP export is invalid; write NAME=VALUE".to_owned();
        let name = HeaderName::try_from(name).map_err(|_| invalid())?;
        let mut value = HeaderValue::try_from(value).map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

fn read_resource(variables: Variables<'_>) -> TelemetryResource {
    let mut resource = TelemetryResource::default();
    resource.set("service.name", "toolgate");
    resource.set("service.version", env!("CARGO_PKG_VERSION"));
    resource.set("telemetry.sdk.name", "toolgate");
    resource.set("telemetry.sdk.language", "rust");
    resource.set("telemetry.sdk.version", env!("CARGO_PKG_VERSION"));
    let text = variable(variables, "OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    for pair in text.split(',') {
        if let Some((key, value)) = pair.split_once('=') {
            resource.set(key.trim(), percent_decode(value.trim()));
        }
    }
    if let Some(name) = variable(variables, "OTEL_SERVICE_NAME") {
        resource.set("service.name", name);
    }
    resource
}

fn read_sampler(
    overrides: &OtlpOverrides,
    variables: Variables<'_>,
) -> Result<SpanSampler, String> {
    if let Some(ratio) = overrides.sample_ratio {
        return Ok(SpanSampler {
            parent_based: true,
            ratio,
        });
    }
    let name = variable(variables, "OTEL_TRACES_SAMPLER");
    let name = name.as_deref().unwrap_or("parentbased_always_on");
    let (parent_based, kind) = match name.strip_prefix("parentbased_") {
        Some(kind) => (true, kind),
        None => (false, name),
    };
    let ratio = match kind {
        "always_on" => 1.0,
        "always_off" => 0.0,
        "traceidratio" => {
            let text = variable(variables, "OTEL_TRACES_SAMPLER_ARG");
            let ratio: Option<f64> = text.map_or(Some(1.0), |text| text.parse().ok());
            let valid = ratio.filter(|ratio| (0.0..=1.0).contains(ratio));
            valid.ok_or("OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1")?
        }
        _ => {
            return Err("OTEL_TRACES_SAMPLER is not supported; write always_on, always_off or traceidratio, with or without parentbased_ before it".to_owned());
        }
    };
    Ok(SpanSampler {
        parent_based,
        ratio,
    })
}

fn percent_decode(text: &str) -> String {
    let decoded = percent_decode_str(text).decode_utf8_lossy();
    decoded.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<OtlpSettings, String> {
        let pairs: Vec<(String, String)> = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        OtlpSettings::read(&OtlpOverrides::default(), &move |name| {
            pairs
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.clone())
        })
    }

    fn traces(pairs: &[(&str, &str)]) -> Option<String> {
        read(pairs).unwrap().traces.map(|to| to.uri.to_string())
    }

    #[test]
    fn nothing_is_exported_until_it_is_configured() {
        assert!(!read(&[]).unwrap().is_active());
        assert!(!read(&[("OTEL_SERVICE_NAME", "gate")]).unwrap().is_active());
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
        assert!(read(&[endpoint]).unwrap().is_active());
        assert!(
            !read(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")])
                .unwrap()
                .is_active()
        );
        let none = read(&[endpoint, ("OTEL_TRACES_EXPORTER", "none")]).unwrap();
        assert!(none.traces.is_none() && none.metrics.is_some());
    }

    #[test]
    fn endpoints_follow_the_specification() {
        let common = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/base/");
        assert_eq!(
            traces(&[common]).as_deref(),
            Some("http://c:4318/base/v1/traces")
        );
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:1/x");
        assert_eq!(traces(&[common, own]).as_deref(), Some("http://t:1/x"));
        let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
        let path = "opentelemetry.proto.collector.trace.v1.TraceService/Export";
        let bare = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317");
        assert_eq!(traces(&[bare, grpc]), Some(format!("http://c:4317/{path}")));
        let otlp = ("OTEL_TRACES_EXPORTER", "otlp");
        assert_eq!(
            traces(&[otlp]).as_deref(),
            Some("http://localhost:4318/v1/traces")
        );
        assert!(read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "c:4318")]).is_err());
        assert!(read(&[common, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")]).is_err());
    }

    #[test]
    fn headers_and_resource_attributes_are_decoded_and_kept_out_of_messages() {
        let settings = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"),
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                "authorization=Bearer%20abc, x-tenant=1",
            ),
            (
                "OTEL_RESOURCE_ATTRIBUTES",
                "service.name=a,deployment.environment.name=prod%20eu",
            ),
            ("OTEL_SERVICE_NAME", "gate"),
        ])
        .unwrap();
        let headers = settings.traces.unwrap().headers;
        assert_eq!(headers["authorization"], "Bearer abc");
        assert!(!format!("{headers:?}").contains("abc"));
        assert_eq!(settings.resource.get("service.name"), Some("gate"));
        assert_eq!(
            settings.resource.get("deployment.environment.name"),
            Some("prod eu")
        );
        let bad = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "bad name=secret"),
        ]);
        assert!(!bad.unwrap_err().contains("secret"));
    }

    #[test]
    fn samplers_have_the_names_of_the_specification() {
        let sampler = |name: &str, arg: &str| {
            let pairs = [
                ("OTEL_TRACES_SAMPLER", name),
                ("OTEL_TRACES_SAMPLER_ARG", arg),
            ];
            read(&pairs).map(|settings| settings.sampler)
        };
        let of = |parent_based, ratio| {
            Ok(SpanSampler {
                parent_based,
                ratio,
            })
        };
        assert_eq!(sampler("", ""), of(true, 1.0));
        assert_eq!(sampler("always_off", ""), of(false, 0.0));
        assert_eq!(sampler("parentbased_traceidratio", "0.25"), of(true, 0.25));
        assert!(sampler("traceidratio", "2").is_err());
        assert!(sampler("jaeger_remote", "").is_err());
    }
}
