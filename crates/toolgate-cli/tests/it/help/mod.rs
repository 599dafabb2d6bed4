//! Helpers of the tests.

mod audit;
mod certificates;
mod collector;
mod gate;
mod http;
mod mcp;
mod memory;
mod process;
mod real;
mod schemas;
mod screen;
mod signer;
mod signing;
mod upstream;
mod wait;

pub(crate) use audit::{ends, records};
pub(crate) use certificates::{Issued, TestAuthority, TlsClient, tls_send};
pub(crate) use collector::{Collector, attribute};
pub(crate) use gate::{Gate, Login, Setup, toolgate, traced_config};
pub(crate) use http::{KeptConnection, Response, all_of, checked, raw, request, send, try_raw};
pub(crate) use mcp::{Modern, Session, answer_of, message_of};
pub(crate) use memory::{peak_from_now, peak_of, rss_of};
pub(crate) use process::{Family, command, end_politely, free_port, kill_hard, lines, output};
#[cfg(feature = "rmcp")]
pub(crate) use real::rmcp;
pub(crate) use real::{Client, Script, browser, real, runner, shot, skip, tool};
pub(crate) use schemas::{Side, Talk};
pub(crate) use screen::Screen;
pub(crate) use signer::{Signer, encode};
pub(crate) use signing::{get, typed_login};
pub(crate) use upstream::{Heard, Reply, next_request, sayer, upstream};
pub(crate) use wait::{LONG, SOON, TempDir, until, within};
