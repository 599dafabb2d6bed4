//! Memory bound of the gateway, computed from its limits.
//!
//! The formula is in `docs/limits.md`. All long messages share one budget; short ones are bounded by the number of
//! their owners. The bound is far above the usual consumption and is never exceeded.

use crate::{
    config::Config,
    output_table::{OutputTable, TableColumn},
};
use schemars::JsonSchema;
use serde::Serialize;
use toolgate_protocol::memory_budget::MAX_UNCOUNTED_BYTES;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Memory of the program itself: code, threads, tables, and allocator overhead.
const PROGRAM_BYTES: u64 = 64 * MIB;
/// Memory of an idle connection or stream: a task with its timers, and short messages.
const IDLE_TASK_BYTES: u64 = 32 * KIB;
/// Memory of TLS of a connection: its keys, and buffers for records in both directions.
const TLS_CONNECTION_BYTES: u64 = 128 * KIB;
/// Memory of the layers of a call, each with its future.
const CALL_LAYER_BYTES: u64 = 32 * KIB;
/// Memory of a server: pipe buffers, queued short messages, short pages of its lists, the end of its stderr.
const SERVER_BYTES: u64 = 8 * MIB;
/// Memory of one caller's connection to a server: its tasks, two tokens of at most 32 KiB, short messages.
const CALLER_CONNECTION_BYTES: u64 = 128 * KIB;
/// Memory of the console: 500 calls of 32 KiB, and 64 events of 40 rows of 4 KiB for slow subscribers.
const CALL_FEED_BYTES: u64 = 26 * MIB;
/// Memory of call ends that wait for space in the audit queue.
const WAITING_AUDIT_END_BYTES: u64 = 64 * MIB;
/// Memory of a remembered resource link: its digest and its origin.
const RESOURCE_LINK_BYTES: u64 = 160;

/// Memory of a remembered DPoP proof: its digest and its expiry, in a table that may just have grown.
const DPOP_PROOF_BYTES: u64 = 144;
/// Memory of the cached answers of an issuer: 4096 answers of at most 4 KiB, with allocator overhead.
const ISSUER_ANSWER_BYTES: u64 = 32 * MIB;

/// One component of the memory bound.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct MemoryComponent {
    /// User of the memory.
    pub(crate) component: &'static str,
    /// Formula by which it follows from the limits.
    pub(crate) formula: &'static str,
    /// Memory in bytes.
    pub(crate) bytes: u64,
}

/// Returns the components of the memory bound.
pub(crate) fn components(config: &Config) -> Vec<MemoryComponent> {
    let limits = &config.limits;
    let servers = config.servers.len();
    let exchanges = config.servers.iter().filter(|server| {
        let address = server.address.as_ref();
        address.is_some_and(|address| address.has_caller_connections())
    });
    let exchanges = exchanges.count();
    let issuers = config.auth.issuers.len() as u64;
    let part = |what, from, bytes| MemoryComponent {
        component: what,
        formula: from,
        bytes,
    };
    vec![
        part("the program", "fixed", PROGRAM_BYTES),
        part("long messages", "memory_bytes", limits.memory_bytes),
        part(
            "connections",
            "connections x (2 header_bytes + 32 KiB)",
            multiply(
                limits.connections,
                2 * limits.header_bytes as u64 + IDLE_TASK_BYTES,
            ),
        ),
        part(
            "TLS connections",
            "with [tls]: connections x 128 KiB",
            multiply(
                config.tls.as_ref().map_or(0, |_| limits.connections),
                TLS_CONNECTION_BYTES,
            ),
        ),
        part(
            "running calls",
            "calls x 64 KiB",
            multiply(limits.calls, CALL_LAYER_BYTES + 2 * MAX_UNCOUNTED_BYTES),
        ),
        part(
            "waiting calls",
            "waiting x 48 KiB",
            multiply(limits.waiting, CALL_LAYER_BYTES + MAX_UNCOUNTED_BYTES),
        ),
        part(
            "streams and sessions",
            "(listen_streams + sessions) x 48 KiB",
            multiply(
                limits.listen_streams.saturating_add(limits.sessions),
                IDLE_TASK_BYTES + MAX_UNCOUNTED_BYTES,
            ),
        ),
        part(
            "resumable streams",
            "resume_bytes",
            limits.resume_bytes as u64,
        ),
        part(
            "servers",
            "servers x 8 MiB",
            multiply(servers, SERVER_BYTES),
        ),
        part(
            "per-caller connections",
            "(servers with per-caller connections) x callers_per_server x 128 KiB",
            multiply(
                exchanges,
                multiply(limits.callers_per_server, CALLER_CONNECTION_BYTES),
            ),
        ),
        part(
            "resource links",
            "link_callers x links_per_caller x 160 bytes",
            multiply(
                limits.link_callers,
                multiply(limits.links_per_caller, RESOURCE_LINK_BYTES),
            ),
        ),
        part(
            "tasks",
            "2 task_bytes",
            (limits.task_bytes as u64).saturating_mul(2),
        ),
        part(
            "the audit log",
            "audit_queue_bytes + 64 MiB",
            (limits.audit_queue_bytes as u64).saturating_add(WAITING_AUDIT_END_BYTES),
        ),
        part(
            "DPoP proofs",
            "with an issuer: proofs x 144 bytes",
            multiply(limits.proofs, DPOP_PROOF_BYTES).saturating_mul(issuers.min(1)),
        ),
        part(
            "cached issuer responses",
            "issuers x (32 MiB + (4 + introspections) x issuer_bytes)",
            issuers.saturating_mul(
                ISSUER_ANSWER_BYTES
                    + multiply(4 + limits.introspections, limits.issuer_bytes as u64),
            ),
        ),
        part(
            "the console",
            "console_result_bytes + 26 MiB",
            CALL_FEED_BYTES + limits.console_result_bytes as u64,
        ),
    ]
}

fn multiply(count: usize, bytes: u64) -> u64 {
    (count as u64).saturating_mul(bytes)
}

/// Returns the memory bound in bytes.
pub(crate) fn bound_bytes(config: &Config) -> u64 {
    let add = |sum: u64, part: &MemoryComponent| sum.saturating_add(part.bytes);
    components(config).iter().fold(0, add)
}

/// Formats the memory bound in one line.
pub(crate) fn summary(config: &Config) -> String {
    format!(
        "at most {} under the configured limits; `toolgate check --explain-memory` shows the parts",
        format_bytes(bound_bytes(config))
    )
}

/// Memory bound of a config.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct MemoryOutput {
    /// Sum in bytes.
    bytes: u64,
    /// Components, the largest first.
    components: Vec<MemoryComponent>,
}

/// Returns each component of the memory bound, the largest first, and the sum.
pub(crate) fn output(config: &Config) -> MemoryOutput {
    let mut components = components(config);
    components.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    let bytes = bound_bytes(config);
    MemoryOutput { bytes, components }
}

impl MemoryOutput {
    /// Formats a line for each component, and the sum.
    pub(crate) fn text(&self) -> String {
        let mut table =
            OutputTable::new(&[TableColumn::Whole, TableColumn::Whole, TableColumn::Wrap]);
        let bytes = |bytes| format!("{:>10}", format_bytes(bytes));
        for part in &self.components {
            table.add([
                bytes(part.bytes),
                part.component.to_owned(),
                part.formula.to_owned(),
            ]);
        }
        table.add([bytes(self.bytes), "total".to_owned(), String::new()]);
        table.text()
    }
}

/// Formats a number of bytes, rounded up: `12.0 MiB`, `3.5 GiB`.
fn format_bytes(bytes: u64) -> String {
    let (unit, name) = if bytes < 1024 * MIB {
        (MIB, "MiB")
    } else {
        (1024 * MIB, "GiB")
    };
    let tenths = bytes.saturating_mul(10).div_ceil(unit);
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::GatewayLimits;

    #[test]
    fn the_bound_follows_from_the_limits() {
        let config = Config::demo().unwrap();
        let of = |change: &dyn Fn(&mut GatewayLimits)| {
            let mut config = config.clone();
            change(&mut config.limits);
            bound_bytes(&config)
        };
        let before = bound_bytes(&config);
        assert_eq!(of(&|limits| limits.memory_bytes += 1) - before, 1);
        assert_eq!(of(&|limits| limits.waiting += 1) - before, 48 * KIB);
        assert_eq!(of(&|limits| limits.calls += 1) - before, 64 * KIB);
        let connection = 2 * config.limits.header_bytes as u64 + IDLE_TASK_BYTES;
        assert_eq!(of(&|limits| limits.connections += 1) - before, connection);
        assert!(of(&|limits| limits.listen_streams += 1) > before);
        assert!(of(&|limits| limits.audit_queue_bytes += 1) > before);
        // Limits of messages in the shared budget do not raise the bound.
        assert_eq!(of(&|limits| limits.body_bytes += 1), before);
        assert_eq!(of(&|limits| limits.call_seconds += 1), before);
        assert!(before < 1024 * MIB, "{}", format_bytes(before));
        assert!(output(&config).text().contains("total"));
        assert_eq!(format_bytes(1), "0.1 MiB");
        assert_eq!(format_bytes(3 << 29), "1.5 GiB");
    }

    #[test]
    fn the_docs_contain_the_formula() {
        let docs = include_str!("../../../../docs/limits.md");
        for part in components(&Config::demo().unwrap()) {
            let row = format!("| {} | {} |", part.component, part.formula);
            assert!(docs.contains(&row), "docs/limits.md lacks: {row}");
        }
    }
}
