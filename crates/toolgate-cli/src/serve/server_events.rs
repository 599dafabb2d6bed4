//! Events of servers, in the audit log and in the event log.

use crate::{
    event_log::{self, GatewayEvent},
    servers::{ServerEvent, ServerObserver},
    telemetry::GatewayTelemetry,
};
use std::sync::Arc;
use toolgate_journal::{AuditEntry, AuditEvent, AuditJournal};
use toolgate_policy::sanitize_entry;

/// Returns an observer that records and prints the events of servers.
pub(super) fn observer(
    journal: Arc<AuditJournal>,
    telemetry: Option<Arc<GatewayTelemetry>>,
) -> ServerObserver {
    Arc::new(move |server, event| {
        if let (ServerEvent::Failed { .. }, Some(telemetry)) = (&event, &telemetry) {
            telemetry.server_failures.increment(&[server]);
        }
        if let Some(entry) = audit_entry(server, &event) {
            // If it cannot be written, calls are rejected and the console shows it.
            let _ = journal.enqueue(sanitize_entry(entry));
        }
        event_log::emit(gateway_event(server, event));
    })
}

/// Returns the audit record of an event. The backoff between the starts of a server bounds their number.
fn audit_entry(server: &str, event: &ServerEvent) -> Option<AuditEntry> {
    let entry = |event| AuditEntry::new(event).with("server", server);
    Some(match event {
        // The next start or failure follows, and is recorded.
        ServerEvent::Restarting { .. } => return None,
        ServerEvent::Started { revision, restarts } => {
            let entry = entry(AuditEvent::SERVER_STARTED).with("restarts", u64::from(*restarts));
            match revision {
                Some(revision) => entry.with("revision", *revision),
                None => entry,
            }
        }
        ServerEvent::Failed { why, .. } => {
            entry(AuditEvent::SERVER_FAILED).with("why", why.as_str())
        }
        ServerEvent::Stopped => entry(AuditEvent::SERVER_STOPPED),
    })
}

fn gateway_event(server: &str, event: ServerEvent) -> GatewayEvent {
    let server = server.to_owned();
    match event {
        ServerEvent::Restarting { restarts } => GatewayEvent::ServerRestarting { server, restarts },
        ServerEvent::Started { revision, restarts } => GatewayEvent::ServerStarted {
            server,
            revision,
            restarts,
        },
        ServerEvent::Failed { why, retry, stderr } => GatewayEvent::ServerFailed {
            server,
            why,
            retry,
            stderr,
        },
        ServerEvent::Stopped => GatewayEvent::ServerStopped { server },
    }
}
