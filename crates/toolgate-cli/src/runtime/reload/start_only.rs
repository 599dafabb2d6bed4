//! Settings that stay as they were at the start, whatever a later config says.

use crate::config::{AuditSettings, Config, GatewayLimits};
use std::net::SocketAddr;

/// Limits that apply at the start only: those of the listener, sessions, streams and pending approvals.
const START_ONLY_LIMITS: &[&str] = &[
    "memory_bytes",
    "body_bytes",
    "header_bytes",
    "headers",
    "mcp_header_bytes",
    "stderr_bytes",
    "console_result_bytes",
    "stream_messages",
    "stream_bytes",
    "stream_resources",
    "tasks",
    "tasks_per_caller",
    "task_bytes",
    "task_seconds",
    "task_polls",
    "page_items",
    "rounds",
    "question_seconds",
    "client_ping_seconds",
    "seal_seconds",
    "body_idle_seconds",
    "connections_per_address",
    "depth",
    "keys",
    "elements",
    "name_bytes",
    "sessions",
    "session_idle_seconds",
    "session_max_seconds",
    "listen_streams",
    "listen_streams_per_caller",
    "resume_seconds",
    "resume_bytes_per_session",
    "resume_bytes",
    "stream_seconds",
    "approval_seconds",
    "task_approval_seconds",
    "approvals_per_caller",
    "approvals",
    "grants",
    "grant_seconds",
    "grant_max_seconds",
    "header_seconds",
    "body_seconds",
    "connections",
    "tls_handshake_seconds",
    "tls_handshakes",
    "audit_queue",
    "audit_queue_bytes",
    "audit_batch",
    "audit_wait_milliseconds",
    "store_stale_seconds",
    "store_timeout_milliseconds",
    "drain_seconds",
];

/// Returns a note for each changed setting that applies after a restart only.
pub(super) fn notes(listen: SocketAddr, first: &Config, now: &Config) -> Vec<String> {
    let mut notes = Vec::new();
    if now.listen != listen {
        notes.push(format!(
            "listen is {} now; restart toolgate to listen there",
            now.listen
        ));
    }
    if now.tls.is_some() != first.tls.is_some() {
        notes.push(match now.tls.is_some() {
            true => "[tls] is new; restart toolgate to serve over TLS".to_owned(),
            false => "[tls] was removed; restart toolgate to serve without TLS".to_owned(),
        });
    }
    if now.data != first.data {
        notes.push("data is another directory now; restart toolgate to use it".to_owned());
    }
    let kept = AuditSettings {
        content: first.audit.content,
        ..now.audit.clone()
    };
    if kept != first.audit {
        notes.push("changes in [audit] have no effect until you restart toolgate".to_owned());
    }
    if now.admin != first.admin {
        notes.push("changes in [admin] have no effect until you restart toolgate".to_owned());
    }
    if now.telemetry != first.telemetry {
        notes.push("changes in [telemetry] have no effect until you restart toolgate".to_owned());
    }
    if now.store != first.store {
        notes.push("changes in [store] have no effect until you restart toolgate".to_owned());
    }
    let changed = GatewayLimits::differing(&first.limits, &now.limits);
    let changed: Vec<&str> = START_ONLY_LIMITS
        .iter()
        .copied()
        .filter(|key| changed.contains(key))
        .collect();
    if !changed.is_empty() {
        notes.push(format!(
            "changes to these limits have no effect until you restart toolgate: {}",
            changed.join(", ")
        ));
    }
    if now.limits.line_bytes != first.limits.line_bytes {
        notes.push(
            "line_bytes applies to servers that start from now on, and to a client over stdio when you restart toolgate"
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigSource;

    #[test]
    fn names_settings_that_need_a_restart() {
        let first = Config::demo().unwrap();
        assert_eq!(first.source, ConfigSource::BuiltIn);
        let mut now = first.clone();
        assert!(notes(first.listen, &first, &now).is_empty());
        now.audit.content.max_content_bytes += 1;
        assert!(notes(first.listen, &first, &now).is_empty());
        now.audit.hold = true;
        now.limits.connections += 1;
        now.limits.call_seconds += 1;
        now.data = Some("/elsewhere".into());
        now.listen.set_port(1);
        let told = notes(first.listen, &first, &now).join("\n");
        assert!(told.contains(":1 now; restart"), "{told}");
        assert!(told.contains("[audit]"), "{told}");
        assert!(told.contains("data is another directory"), "{told}");
        assert!(
            told.contains("until you restart toolgate: connections"),
            "{told}"
        );
        assert!(!told.contains("call_seconds"), "{told}");
    }

    #[test]
    fn every_listed_key_exists() {
        let every = crate::config::limit_keys();
        for key in START_ONLY_LIMITS {
            assert!(every.contains(key), "{key}");
        }
    }
}
