//! Listener of its own for the health pages and the metrics.

use super::http_server::RequestHandler;
use crate::{
    admin::AdminPages,
    proxy::{ClientConnection, TrustedProxies},
};
use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use std::sync::{Arc, atomic::AtomicUsize};
use toolgate::edge::http::Body;

/// Listener of its own for the health pages and the metrics.
pub(crate) struct AdminListener {
    pub(crate) pages: Arc<AdminPages>,
    pub(crate) open_metrics: bool,
    pub(crate) connections: Arc<AtomicUsize>,
}

impl RequestHandler for AdminListener {
    async fn answer(
        &self,
        _peer: ClientConnection,
        request: Box<Request<Incoming>>,
    ) -> Response<Body> {
        let mut response = self.pages.answer(&request, self.open_metrics);
        response.headers_mut().insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        response
    }

    fn proxies(&self) -> Arc<TrustedProxies> {
        Arc::default()
    }

    fn connections(&self) -> &Arc<AtomicUsize> {
        &self.connections
    }
}
