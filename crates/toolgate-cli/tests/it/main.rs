//! The program from outside: the built `toolgate`, real clients, real servers, a real browser.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "helpers of tests count as tests"
)]

mod help;

mod approval;
mod apps;
#[path = "../../../toolgate-policy/tests/it/authenticator.rs"]
mod authenticator;
mod bad_input;
mod canaries;
mod cancel;
mod check;
mod clients;
mod clock;
mod concurrency_queue;
mod config_limits;
mod connect;
mod console;
mod console_login;
mod console_roles;
mod crash;
mod damaged_log;
mod data_directory;
mod deciding;
mod definitions;
mod denials_and_stops;
mod doctor;
mod edit_mistakes;
mod editing;
mod erasing;
mod event_lines;
mod event_outputs;
mod exchange;
mod expiring;
mod explain;
mod failing_server;
mod far_server;
mod finding;
mod floods;
mod forged;
mod gateways;
mod history;
mod hooks;
mod hostile_config;
mod imports;
mod inbox_screen;
mod inbox_terminal;
mod issuers;
mod items;
mod json_outputs;
mod keyring;
mod keys;
mod keys_life;
mod keys_page;
mod known_client;
mod listen;
mod login;
mod logins;
mod many_tokens;
mod memory;
mod misdeeds;
mod monitoring;
mod nested_gateways;
mod no_proxy;
mod no_spawn;
mod notify;
mod oauth;
mod odd_servers;
mod one_address;
mod opening;
mod operations;
mod operator_commands;
mod operator_paths;
mod orphans;
mod other_origins;
mod overrides;
mod own_grants;
mod parallel_agents;
mod passkeys;
mod pins;
mod planted;
mod prometheus;
mod proxies;
#[cfg(feature = "published")]
mod published;
mod questions;
mod reads;
mod real_sign_in;
mod record;
mod reload;
mod replay;
mod revisions;
#[cfg(feature = "rmcp")]
mod same_features;
mod searching;
mod secret_rules;
mod segment_copies;
mod server_errors;
mod server_logs;
mod service;
mod shared_store;
mod shells;
mod sign_in;
mod sign_in_alone;
mod sign_in_links;
mod skills;
mod slow_servers;
mod socket_activation;
mod stdio;
mod store_commands;
mod store_outages;
mod tasks;
mod terminal_output;
mod tls;
mod traces;
mod uninstall;
mod unusable;
mod upgrade;
mod uris;
mod users;
mod views;
mod walkthrough;
mod who_may_reach;
