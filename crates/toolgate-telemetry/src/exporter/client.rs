//! Client of a collector: one POST for each export, over HTTP/1.1, or over HTTP/2 as gRPC.
//!
//! gRPC without streams is a POST with a length before the message and a status in the trailers, so hyper suffices:
//! `tonic` would add more than a megabyte to the program.

use super::settings::{OtlpDestination, OtlpProtocol};
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// Maximum size of a collector's answer, in bytes.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// Status of gRPC for a call that succeeded.
const GRPC_OK: &str = "0";
/// Statuses of gRPC after which a request may be repeated, as the specification of OTLP lists them.
const RETRYABLE_GRPC: [&str; 7] = ["1", "4", "8", "10", "11", "14", "15"];
/// Statuses of HTTP after which a request may be repeated.
const RETRYABLE_HTTP: [u16; 4] = [429, 502, 503, 504];

/// Client of a collector for one signal.
pub(super) struct CollectorClient {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    to: OtlpDestination,
}

/// Failure of an export.
#[derive(Debug)]
pub(super) struct ExportFailure {
    /// Reason, without addresses and headers.
    pub(super) reason: String,
    /// True if the same request may succeed later.
    pub(super) may_retry: bool,
    /// Time that the collector asks to wait.
    pub(super) retry_after: Option<Duration>,
}

impl ExportFailure {
    fn new(reason: impl Into<String>, may_retry: bool) -> ExportFailure {
        ExportFailure {
            reason: reason.into(),
            may_retry,
            retry_after: None,
        }
    }
}

impl CollectorClient {
    /// Creates a client. Certificates come from the system, or from the given file.
    ///
    /// # Errors
    /// TLS is needed, and no certificates can be read.
    pub(super) fn new(
        to: OtlpDestination,
        certificate: Option<&str>,
    ) -> Result<CollectorClient, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        if to.uri.scheme_str() == Some("https") {
            let found = match certificate {
                Some(path) => read_certificates(path)?,
                None => rustls_native_certs::load_native_certs().certs,
            };
            roots.add_parsable_certificates(found);
            if roots.is_empty() {
                return Err("there are no trusted certificates for the OTLP endpoint; install the system's CA certificates, or set OTEL_EXPORTER_OTLP_CERTIFICATE".to_owned());
            }
        }
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(to.timeout));
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http();
        let is_grpc = to.protocol == OtlpProtocol::Grpc;
        let connector = match is_grpc {
            true => https.enable_http2().wrap_connector(tcp),
            false => https.enable_http1().wrap_connector(tcp),
        };
        let client = Client::builder(TokioExecutor::new())
            .http2_only(is_grpc)
            .pool_max_idle_per_host(1)
            .build(connector);
        Ok(CollectorClient { client, to })
    }

    /// Sends an encoded request.
    ///
    /// # Errors
    /// The collector cannot be reached, or rejects the request.
    pub(super) async fn send(&self, message: Bytes) -> Result<(), ExportFailure> {
        match timeout(self.to.timeout, self.send_once(message)).await {
            Ok(sent) => sent,
            Err(_) => Err(ExportFailure::new(
                "the collector did not answer in time",
                true,
            )),
        }
    }

    async fn send_once(&self, message: Bytes) -> Result<(), ExportFailure> {
        let is_grpc = self.to.protocol == OtlpProtocol::Grpc;
        let (kind, body) = match is_grpc {
            true => ("application/grpc", grpc_frame(&message)),
            false => ("application/x-protobuf", message),
        };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.to.uri.clone();
        let headers = request.headers_mut();
        headers.extend(self.to.headers.clone());
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        let agent = concat!("toolgate/", env!("CARGO_PKG_VERSION"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
        if is_grpc {
            headers.insert(header::TE, HeaderValue::from_static("trailers"));
        }
        let unreachable = |_| ExportFailure::new("the collector cannot be reached", true);
        let response = self.client.request(request).await.map_err(unreachable)?;
        let (parts, body) = response.into_parts();
        let broken = |_| ExportFailure::new("the answer of the collector is broken", true);
        let body = Limited::new(body, MAX_ANSWER_BYTES)
            .collect()
            .await
            .map_err(broken)?;
        if !parts.status.is_success() {
            let status = parts.status.as_u16();
            return Err(ExportFailure {
                retry_after: retry_after(&parts.headers),
                ..ExportFailure::new(
                    format!("the collector answered with status {status}"),
                    RETRYABLE_HTTP.contains(&status),
                )
            });
        }
        match is_grpc {
            true => check_grpc_status(&parts.headers, body.trailers()),
            false => Ok(()),
        }
    }
}

fn read_certificates(
    path: &str,
) -> Result<Vec<rustls::pki_types::CertificateDer<'static>>, String> {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    let wrong = |error| format!("OTEL_EXPORTER_OTLP_CERTIFICATE cannot be read: {error}");
    let all = CertificateDer::pem_file_iter(path).map_err(wrong)?;
    all.collect::<Result<_, _>>().map_err(wrong)
}

/// Returns a message of gRPC: no compression, the length, and the message.
fn grpc_frame(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(message.len() + 5);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    frame.put_slice(message);
    frame.freeze()
}

fn check_grpc_status(
    headers: &HeaderMap,
    trailers: Option<&HeaderMap>,
) -> Result<(), ExportFailure> {
    // An answer without a message has its status in the headers.
    let name = HeaderName::from_static("grpc-status");
    let status = trailers
        .and_then(|t| t.get(&name))
        .or_else(|| headers.get(&name));
    match status.and_then(|status| status.to_str().ok()) {
        Some(GRPC_OK) => Ok(()),
        Some(status) => {
            let may_retry = RETRYABLE_GRPC.contains(&status);
            // The number is what the collector sent, so only known forms are shown.
            let shown: String = status
                .chars()
                .filter(char::is_ascii_digit)
                .take(3)
                .collect();
            let reason = format!("the collector answered with gRPC status {shown}");
            Err(ExportFailure::new(reason, may_retry))
        }
        None => Err(ExportFailure::new(
            "the answer of the collector is not gRPC",
            false,
        )),
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}
