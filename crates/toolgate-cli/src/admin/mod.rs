//! Health pages and metrics: `/livez`, `/readyz` and `/metrics`, on the gateway's listener or on one of their own.

mod health;
mod pages;

pub(crate) use health::GatewayHealth;
pub(crate) use pages::{AdminPages, METRICS_PATH, is_health_page};
