//! Events of the gateway that its log prints.

use crate::timestamp::millis;
use serde_json::{Value, json};
use std::{
    borrow::Cow,
    time::{Duration, SystemTime},
};
use toolgate_policy::{PinEvent, PinEventKind};
use toolgate_protocol::plural::count_of;

/// Number of last lines of a server's stderr in a message about its failure.
pub(crate) const SHOWN_STDERR_LINES: usize = 10;

/// Level of an event, from the most to the least important.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum EventLevel {
    /// A failure, also printed with `--quiet`.
    Failure,
    /// An event that matters to an operator.
    Notice,
    /// A single call, printed with `-v`.
    Detail,
}

impl EventLevel {
    /// Returns the name of the level in JSON lines.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            EventLevel::Failure => "error",
            EventLevel::Notice => "info",
            EventLevel::Detail => "debug",
        }
    }
}

/// Event of the gateway. It never has arguments or results of calls.
#[derive(Clone, Debug)]
pub(crate) enum GatewayEvent {
    /// The gateway accepts requests.
    Started { endpoint: String, data: String },
    /// The gateway begins to stop.
    Stopping,
    /// Another process accepts the connections from now on.
    HandedOver { process: u64, version: String },
    /// The gateway cannot start, or ended because of this failure.
    Failed { why: String },
    /// A server starts again.
    ServerRestarting { server: String, restarts: u32 },
    /// A server is ready for use.
    ServerStarted {
        server: String,
        revision: Option<&'static str>,
        restarts: u32,
    },
    /// A server ended, or could not be started.
    ServerFailed {
        server: String,
        why: String,
        retry: Option<Duration>,
        stderr: Vec<String>,
    },
    /// A server was stopped with the gateway or by a reload.
    ServerStopped { server: String },
    /// A server sent messages that cannot be used.
    UnusableMessage { server: String, text: String },
    /// A call waits for an approval.
    ApprovalRequested {
        id: String,
        tool: String,
        caller: String,
        expires_in: Duration,
        /// True if only a passkey at the console can approve it.
        needs_passkey: bool,
        /// Options of the commands, such as ` --data DIR`.
        flags: String,
    },
    /// An approval was given, denied, or ended in another way.
    ApprovalDecided {
        id: String,
        tool: String,
        caller: String,
        decision: Cow<'static, str>,
        by: Option<String>,
        reason: Option<String>,
    },
    /// The config was read again and is active.
    ConfigReloaded {
        by: &'static str,
        servers: usize,
        rules: usize,
        changes: Vec<String>,
        notes: Vec<String>,
    },
    /// The config was read again and rejected.
    ConfigRefused { by: &'static str, why: String },
    /// The certificate of the listener was read again and is in force.
    CertificateReloaded {
        names: Vec<String>,
        not_after: SystemTime,
    },
    /// The certificate of the listener was read again and rejected.
    CertificateRefused { why: String },
    /// A definition is new, changed or suspicious.
    Definition(PinEvent),
    /// Definitions were repaired, withheld or dropped.
    DefinitionNote { text: String },
    /// A call ended.
    CallEnded {
        id: String,
        tool: String,
        caller: String,
        decision: &'static str,
        outcome: &'static str,
        code: Option<&'static str>,
        duration: Duration,
    },
    /// A call failed for a reason that only the operator may read.
    CallFailed { detail: String },
    /// A part of the gateway failed.
    Problem { text: String },
    /// A note about the config.
    Note { text: String },
    /// The queue of the log was full.
    LinesDropped { count: u64 },
}

impl GatewayEvent {
    /// Returns the level of the event.
    pub(crate) fn level(&self) -> EventLevel {
        match self {
            GatewayEvent::Failed { .. }
            | GatewayEvent::ServerFailed { .. }
            | GatewayEvent::UnusableMessage { .. }
            | GatewayEvent::ConfigRefused { .. }
            | GatewayEvent::CertificateRefused { .. }
            | GatewayEvent::CallFailed { .. }
            | GatewayEvent::Problem { .. }
            | GatewayEvent::LinesDropped { .. } => EventLevel::Failure,
            GatewayEvent::CallEnded { .. } => EventLevel::Detail,
            _ => EventLevel::Notice,
        }
    }

    /// Returns the name of the event in JSON lines.
    pub(super) fn name(&self) -> &'static str {
        match self {
            GatewayEvent::Started { .. } => "gateway.started",
            GatewayEvent::Stopping => "gateway.stopping",
            GatewayEvent::HandedOver { .. } => "gateway.handed_over",
            GatewayEvent::Failed { .. } => "gateway.failed",
            GatewayEvent::ServerRestarting { .. } => "server.restarting",
            GatewayEvent::ServerStarted { .. } => "server.started",
            GatewayEvent::ServerFailed { .. } => "server.failed",
            GatewayEvent::ServerStopped { .. } => "server.stopped",
            GatewayEvent::UnusableMessage { .. } => "server.unusable_message",
            GatewayEvent::ApprovalRequested { .. } => "approval.requested",
            GatewayEvent::ApprovalDecided { .. } => "approval.decided",
            GatewayEvent::ConfigReloaded { .. } => "config.reloaded",
            GatewayEvent::ConfigRefused { .. } => "config.refused",
            GatewayEvent::CertificateReloaded { .. } => "certificate.reloaded",
            GatewayEvent::CertificateRefused { .. } => "certificate.refused",
            GatewayEvent::Definition(event) => match event.what {
                PinEventKind::New => "definition.new",
                PinEventKind::Changed(_) => "definition.changed",
                _ => "definition.flagged",
            },
            GatewayEvent::DefinitionNote { .. } => "definition.note",
            GatewayEvent::CallEnded { .. } => "call.ended",
            GatewayEvent::CallFailed { .. } => "call.failed",
            GatewayEvent::Problem { .. } => "gateway.problem",
            GatewayEvent::Note { .. } => "config.note",
            GatewayEvent::LinesDropped { .. } => "log.dropped",
        }
    }

    /// Returns the text of the event, without the time.
    pub(super) fn message(&self) -> String {
        match self {
            GatewayEvent::Started { endpoint, data } => {
                format!("the gateway serves {endpoint}; data directory {data}")
            }
            GatewayEvent::Stopping => "the gateway is stopping".to_owned(),
            GatewayEvent::HandedOver { process, version } => format!(
                "the process {process} (version {version}) accepts connections from now on; this gateway completes its calls and ends"
            ),
            GatewayEvent::Failed { why } => why.clone(),
            GatewayEvent::ServerRestarting { server, restarts } => {
                format!("the server {server} is starting again (restart {restarts})")
            }
            GatewayEvent::ServerStarted {
                server, revision, ..
            } => match revision {
                Some(revision) => format!("the server {server} is running, revision {revision}"),
                None => format!("the server {server} is running"),
            },
            GatewayEvent::ServerFailed {
                server, why, retry, ..
            } => {
                let then = match retry {
                    Some(wait) => format!("it is started again in {}", seconds(*wait)),
                    None => {
                        "it is not started again; correct its config, then run: toolgate reload"
                            .to_owned()
                    }
                };
                format!("the server {server} is not running: {why}; {then}")
            }
            GatewayEvent::ServerStopped { server } => format!("the server {server} was stopped"),
            GatewayEvent::UnusableMessage { server, text } => format!("{server}: {text}"),
            GatewayEvent::ApprovalRequested {
                id,
                tool,
                caller,
                expires_in,
                needs_passkey,
                flags,
            } => {
                let approve = match needs_passkey {
                    true => "approve it with a passkey at the console, or run".to_owned(),
                    false => format!("run: toolgate approve {id}{flags}, or"),
                };
                format!(
                    "approval {id}: {caller} calls {tool} and waits {}; {approve}: toolgate deny {id} -m REASON{flags}",
                    seconds(*expires_in)
                )
            }
            GatewayEvent::ApprovalDecided {
                id,
                tool,
                caller,
                decision,
                by,
                reason,
            } => {
                let by = by.as_ref().map_or(String::new(), |by| format!(" by {by}"));
                let reason = reason.as_ref().filter(|reason| !reason.is_empty());
                let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
                format!("approval {id}: {decision}{by}: {tool} for {caller}{reason}")
            }
            GatewayEvent::ConfigReloaded {
                servers,
                rules,
                changes,
                ..
            } => {
                let (servers, rules) = (
                    count_of(*servers as u64, "server"),
                    count_of(*rules as u64, "rule"),
                );
                let changes = match changes.is_empty() {
                    true => "servers, rules and limits did not change".to_owned(),
                    false => changes.join("; "),
                };
                format!("the config was reloaded: {servers}, {rules}; {changes}")
            }
            GatewayEvent::ConfigRefused { why, .. } => {
                format!("the config was rejected; the previous config stays active: {why}")
            }
            GatewayEvent::CertificateReloaded { names, not_after } => format!(
                "the certificate was reloaded: {}, valid for {}",
                names.join(", "),
                days_left(*not_after)
            ),
            GatewayEvent::CertificateRefused { why } => {
                format!("the new certificate was rejected; the previous one stays in force: {why}")
            }
            GatewayEvent::Definition(event) => event.to_string(),
            GatewayEvent::CallEnded {
                tool,
                caller,
                decision,
                outcome,
                code,
                duration,
                ..
            } => {
                let code = code.map_or(String::new(), |code| format!(" ({code})"));
                format!(
                    "call {tool} by {caller}: {decision}, {outcome}{code}, {} ms",
                    duration.as_millis()
                )
            }
            GatewayEvent::CallFailed { detail } => format!("a call failed: {detail}"),
            GatewayEvent::DefinitionNote { text }
            | GatewayEvent::Problem { text }
            | GatewayEvent::Note { text } => text.clone(),
            GatewayEvent::LinesDropped { count } => format!(
                "{} not written, because the terminal or the log file was too slow",
                match count {
                    1 => "1 line was".to_owned(),
                    count => format!("{count} lines were"),
                }
            ),
        }
    }

    /// Returns the lines below the message.
    pub(super) fn details(&self) -> &[String] {
        match self {
            GatewayEvent::ServerFailed { stderr, .. } => stderr,
            GatewayEvent::ConfigReloaded { notes, .. } => notes,
            _ => &[],
        }
    }

    /// Returns the fields of the event in JSON lines, besides the time, level, name and message.
    pub(super) fn fields(&self) -> Value {
        match self {
            GatewayEvent::Started { endpoint, data } => json!({"endpoint": endpoint, "data": data}),
            GatewayEvent::HandedOver { process, version } => {
                json!({"process": process, "version": version})
            }
            GatewayEvent::ServerRestarting { server, restarts } => {
                json!({"server": server, "restarts": restarts})
            }
            GatewayEvent::ServerStarted {
                server,
                revision,
                restarts,
            } => json!({"server": server, "revision": revision, "restarts": restarts}),
            GatewayEvent::ServerFailed {
                server,
                why,
                retry,
                stderr,
            } => {
                let retry = retry.map(|wait| wait.as_millis());
                json!({"server": server, "why": why, "retry_milliseconds": retry, "stderr": stderr})
            }
            GatewayEvent::ServerStopped { server }
            | GatewayEvent::UnusableMessage { server, .. } => {
                json!({"server": server})
            }
            GatewayEvent::ApprovalRequested {
                id,
                tool,
                caller,
                expires_in,
                needs_passkey,
                ..
            } => {
                let mut value = json!({"id": id, "tool": tool, "caller": caller, "expires_in_seconds": expires_in.as_secs()});
                if *needs_passkey {
                    value["needs_passkey"] = true.into();
                }
                value
            }
            GatewayEvent::ApprovalDecided {
                id,
                tool,
                caller,
                decision,
                by,
                reason,
            } => {
                json!({"id": id, "tool": tool, "caller": caller, "decision": decision, "by": by, "reason": reason})
            }
            GatewayEvent::ConfigReloaded {
                by,
                servers,
                rules,
                changes,
                notes,
            } => {
                json!({"by": by, "servers": servers, "rules": rules, "changes": changes, "notes": notes})
            }
            GatewayEvent::ConfigRefused { by, why } => json!({"by": by, "why": why}),
            GatewayEvent::CertificateReloaded { names, not_after } => {
                json!({"names": names, "not_after": millis(*not_after)})
            }
            GatewayEvent::CertificateRefused { why } => json!({"why": why}),
            GatewayEvent::Definition(event) => {
                json!({"server": event.server, "kind": event.kind, "name": event.name, "hidden": event.hidden})
            }
            GatewayEvent::CallEnded {
                id,
                tool,
                caller,
                decision,
                outcome,
                code,
                duration,
            } => json!({
                "call": id, "tool": tool, "caller": caller, "decision": decision, "outcome": outcome, "code": code,
                "milliseconds": duration.as_millis(),
            }),
            GatewayEvent::LinesDropped { count } => json!({"count": count}),
            GatewayEvent::Stopping
            | GatewayEvent::Failed { .. }
            | GatewayEvent::DefinitionNote { .. }
            | GatewayEvent::CallFailed { .. }
            | GatewayEvent::Problem { .. }
            | GatewayEvent::Note { .. } => json!({}),
        }
    }
}

/// Formats a duration in seconds, with one decimal below ten.
fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        short if short < 9.95 => format!("{short:.1} s"),
        long => format!("{long:.0} s"),
    }
}

/// Formats the time until a date in whole days.
fn days_left(end: SystemTime) -> String {
    let left = end.duration_since(SystemTime::now()).unwrap_or_default();
    count_of(left.as_secs() / (24 * 3600), "day")
}

/// Returns the last lines of a server's stderr for a message about its failure.
pub(crate) fn last_stderr_lines(mut lines: Vec<String>) -> Vec<String> {
    lines.split_off(lines.len().saturating_sub(SHOWN_STDERR_LINES))
}
