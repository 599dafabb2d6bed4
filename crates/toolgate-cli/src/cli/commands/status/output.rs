//! Status of a gateway, as `toolgate status --json` prints it.

use crate::cli::{commands::keys::KeyOutput, output::OutputTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Status of a running gateway.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct StatusOutput {
    /// Version of the gateway.
    pub(super) version: String,
    /// URL of the MCP endpoint, or `stdio`.
    pub(super) endpoint: String,
    /// Address of the listener; `null` for a gateway over stdio.
    listen: Option<String>,
    /// Certificate of the listener; `null` without TLS.
    pub(super) certificate: Option<CertificateOutput>,
    /// Reasons for which the gateway cannot serve calls; empty if it is ready.
    pub(super) not_ready: Vec<String>,
    /// Data directory.
    pub(super) data: String,
    /// Options of the command line that name this gateway's config and data directory.
    pub(super) flags: String,
    #[serde(rename(deserialize = "policy"))]
    pub(super) config: ActiveConfigOutput,
    #[serde(rename(deserialize = "record"))]
    pub(super) audit_log: AuditLogOutput,
    pub(super) servers: Vec<ServerOutput>,
    /// Names of the servers that are disabled in the config.
    pub(super) disabled: Vec<String>,
    /// Authorization servers of callers.
    pub(super) issuers: Vec<IssuerOutput>,
    /// API keys that expire in the next 14 days.
    pub(super) keys_ending: Vec<KeyOutput>,
    #[serde(rename(deserialize = "waiting"))]
    pub(super) pending_approvals: u64,
    /// How far the stored clock is ahead of the system clock.
    pub(super) clock_ahead_seconds: u64,
}

impl StatusOutput {
    /// Returns true if the audit log is damaged or not written, or a server is down.
    pub(super) fn is_failure(&self) -> bool {
        let down = self.servers.iter().any(|server| server.down);
        down || !self.audit_log.damage.is_empty() || self.audit_log.state != "written"
    }
}

/// Certificate of a listener.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct CertificateOutput {
    /// DNS names and IP addresses for which the certificate is valid.
    pub(super) names: Vec<String>,
    /// Time at which the certificate expires.
    not_after: OutputTime,
    /// SHA-256 of the certificate in DER, in hexadecimal.
    sha256: String,
    /// Warning if the certificate has expired or expires in the next 14 days.
    pub(super) warning: Option<String>,
}

/// Active config of a gateway.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct ActiveConfigOutput {
    /// Digest of the config.
    pub(super) hash: Option<String>,
    /// File of the config; `null` for the demo and for `toolgate run`.
    file: Option<String>,
    /// Time of the last load.
    #[serde(rename(deserialize = "at"))]
    loaded_at: OutputTime,
    /// Cause of the last load.
    #[serde(rename(deserialize = "by"))]
    loaded_by: Option<String>,
    /// Reason why a newer config was rejected.
    #[serde(rename(deserialize = "refused"))]
    pub(super) rejection: Option<String>,
    /// Notes of the last load.
    notes: Vec<String>,
}

/// Audit log of a gateway.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct AuditLogOutput {
    /// `written`, `failed` or `closed`.
    pub(super) state: String,
    /// Reason why it cannot be written.
    #[serde(rename(deserialize = "why"))]
    pub(super) error: Option<String>,
    /// Reason why checkpoints are not mirrored; `null` if they are.
    #[serde(rename(deserialize = "checkpoints"))]
    pub(super) mirror_error: Option<String>,
    /// Damage that is not acknowledged.
    pub(super) damage: Vec<DamageOutput>,
}

/// Damage to the audit log.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct DamageOutput {
    /// Damaged part.
    pub(super) about: String,
    #[serde(rename(deserialize = "why"))]
    pub(super) reason: String,
}

/// Server of a gateway.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct ServerOutput {
    /// Name in the config.
    pub(super) id: String,
    /// `starting`, `running`, `backoff`, `sign-in`, `failed` or `stopped`.
    pub(super) state: String,
    /// True if the server cannot be used, and does not start for the first time or after a good run.
    pub(super) down: bool,
    /// True if any caller has reached it.
    pub(super) reached: bool,
    /// Number of restarts.
    restarts: u64,
    /// Reason for which it does not run, or for the last restart.
    pub(super) error: Option<String>,
    /// Last error on its stream.
    note: Option<String>,
    /// Number of its tools.
    tools: u64,
    /// Protocol revision in use.
    pub(super) revision: Option<String>,
    /// Name and version that the server states about itself.
    #[serde(rename(deserialize = "server"))]
    product: Option<String>,
    /// Program or URL.
    command: String,
    /// True if a person can sign in to it.
    signs_in: bool,
    signed_in: bool,
    /// Callers that have or need a sign-in of their own.
    pub(super) own_sign_ins: Option<Vec<CallerSignInOutput>>,
    /// Last lines of its stderr.
    stderr: Vec<String>,
    /// Last lines of its stderr before it failed the last time.
    pub(super) failure_stderr: Vec<String>,
    /// Notes on its definitions.
    pub(super) notes: Vec<DefinitionNoteOutput>,
}

/// Sign-in of a caller to a server.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct CallerSignInOutput {
    pub(super) caller: String,
    /// True if it has a sign-in; otherwise it was recently asked for one.
    pub(super) granted: bool,
}

/// Note on a definition, such as a repair.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct DefinitionNoteOutput {
    /// Kind of the item.
    kind: String,
    /// Name of the item; empty for its list.
    name: String,
    /// What was done, such as `repaired` or `dropped`.
    action: String,
    reason: String,
    /// The note as a sentence.
    pub(super) text: String,
}

/// Authorization server of callers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct IssuerOutput {
    /// Name in the config.
    pub(super) id: String,
    url: Option<String>,
    /// Reason why it cannot be used.
    pub(super) error: Option<String>,
    /// Time of the first failure.
    #[serde(rename(deserialize = "since"))]
    pub(super) failing_since: Option<OutputTime>,
}
