//! The pages `/livez`, `/readyz` and `/metrics`.

use super::GatewayHealth;
use crate::responses::text_response;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use std::sync::Arc;
use toolgate::edge::http::Body;
use toolgate_auth::Secret;
use toolgate_telemetry::{MetricRegistry, PROMETHEUS_CONTENT_TYPE, prometheus_text};

/// Path of the liveness page.
const LIVEZ_PATH: &str = "/livez";
/// Path of the readiness page.
const READYZ_PATH: &str = "/readyz";
/// Path of the metrics.
pub(crate) const METRICS_PATH: &str = "/metrics";

/// Reports whether the path is that of a health page, which needs no credentials and no known host name: probes use the
/// address of the machine or container.
pub(crate) fn is_health_page(path: &str) -> bool {
    matches!(path, LIVEZ_PATH | READYZ_PATH)
}

/// Health pages and metrics, for any listener.
pub(crate) struct AdminPages {
    pub(crate) health: Arc<GatewayHealth>,
    pub(crate) registry: Arc<MetricRegistry>,
    /// Bearer token for the metrics.
    pub(crate) token: Option<Secret>,
}

impl AdminPages {
    /// Answers a request. `open_metrics` says that the listener serves the metrics without a token if none is set.
    pub(crate) fn answer<B>(&self, request: &Request<B>, open_metrics: bool) -> Response<Body> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = text_response(
                StatusCode::METHOD_NOT_ALLOWED,
                "method not allowed; use GET",
            );
            let headers = response.headers_mut();
            headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let mut response = match request.uri().path() {
            // A process that answers is alive: restarting it would not help with anything else.
            LIVEZ_PATH => text_response(StatusCode::OK, "ok"),
            READYZ_PATH => self.readiness(),
            METRICS_PATH => self.metrics(request, open_metrics),
            _ => text_response(
                StatusCode::NOT_FOUND,
                "not found; this listener has /livez, /readyz and /metrics",
            ),
        };
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    fn readiness(&self) -> Response<Body> {
        let (problems, warnings) = (self.health.problems(), self.health.warnings());
        let (status, first) = match problems.is_empty() {
            true => (StatusCode::OK, "ready"),
            false => (StatusCode::SERVICE_UNAVAILABLE, "not ready"),
        };
        let reasons = problems.iter().map(|why| format!("\nnot ready: {why}"));
        let notes = warnings.iter().map(|why| format!("\nwarning: {why}"));
        let rest: String = reasons.chain(notes).collect();
        text_response(status, &format!("{first}{rest}"))
    }

    fn metrics<B>(&self, request: &Request<B>, open_metrics: bool) -> Response<Body> {
        let shown = request.headers().get(header::AUTHORIZATION);
        let shown = shown.and_then(|value| value.to_str().ok());
        let shown = shown.and_then(|value| value.strip_prefix("Bearer "));
        match (&self.token, shown) {
            (Some(token), Some(shown)) if token.matches(shown) => {}
            (None, _) if open_metrics => {}
            (Some(_), _) => {
                let mut response = text_response(
                    StatusCode::UNAUTHORIZED,
                    "the metrics need the token of [admin]; send Authorization: Bearer TOKEN",
                );
                let challenge = HeaderValue::from_static("Bearer");
                response
                    .headers_mut()
                    .insert(header::WWW_AUTHENTICATE, challenge);
                return response;
            }
            (None, _) => {
                return text_response(
                    StatusCode::FORBIDDEN,
                    "this listener does not serve the metrics without a token; set `token` or `listen` in [admin]",
                );
            }
        }
        let mut response = Response::new(Body::full(prometheus_text(&self.registry.collect())));
        let kind = HeaderValue::from_static(PROMETHEUS_CONTENT_TYPE);
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}
