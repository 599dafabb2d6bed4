//! Everything together, as its users see it.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "tests"
)]

mod aggregate;
mod app;
mod axum_app;
mod compile_errors;
mod corpus;
mod escape;
mod examples;
mod handlers;
mod laws;
mod official;
mod own_layers;
mod remote;
mod remote_http;
mod rows;
mod same_features;
mod serve;
mod signing_in;
mod tasks;
mod transport;
mod unix_socket;
