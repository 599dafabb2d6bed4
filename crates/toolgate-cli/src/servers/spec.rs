//! Specification of a server, from the config.

use crate::{
    config::{ConfigValue, RemoteAddress, RevisionChoice},
    oauth::{SignInInstructions, SignInPages},
};
use std::{fmt, path::PathBuf, sync::Arc, time::Duration};
use toolgate_core::ClientCapabilities;
use toolgate_policy::SecretRedactor;
use toolgate_protocol::{json::JsonLimits, memory_budget::BudgetScope};

/// Specification of a server. Two equal specifications are the same server.
#[derive(Clone, PartialEq)]
pub(crate) struct ServerSpec {
    /// Configured ID of the server.
    pub(crate) id: Arc<str>,
    /// Program and arguments, without a shell. Empty for a server with an address.
    pub(crate) command: Vec<String>,
    /// Environment variables that are set beyond the default allowlist.
    pub(crate) env: Vec<(String, ConfigValue)>,
    /// Names of environment variables that are passed on beyond the default allowlist.
    pub(crate) pass_env: Vec<String>,
    /// Working directory; the gateway's own if absent.
    pub(crate) cwd: Option<PathBuf>,
    /// Address of a remote server; `None` for a process that the gateway starts.
    pub(crate) address: Option<RemoteAddress>,
    /// Directory of the sealed credentials for the server, if it has any.
    pub(crate) credentials_dir: Option<PathBuf>,
    /// Instructions for signing in to the server.
    pub(crate) sign_in_instructions: SignInInstructions,
    /// Sign-in pages for the users of its callers, if they are reachable.
    pub(crate) sign_in_pages: Option<SignInPages>,
    /// True if the operator trusts its tool annotations.
    pub(crate) trusted: bool,
    /// Protocol revision to use with it.
    pub(crate) revision: RevisionChoice,
    /// Timeout from the start to the end of the handshake; default 30 s.
    pub(crate) start_timeout: Duration,
    /// Maximum length of a line that it may write, in bytes; default 16 MiB.
    pub(crate) max_line_bytes: usize,
    /// Limits of its JSON messages.
    pub(crate) json_limits: JsonLimits,
    /// Budget that its messages count against; default none.
    pub(crate) budget: BudgetScope,
    /// Maximum number of its calls that may wait for input responses, of those for one caller, and for how long;
    /// default 64, 16 and 10 minutes.
    pub(crate) parked: (usize, usize, Duration),
    /// Idle time after which the server is pinged; default never.
    pub(crate) ping_interval: Option<Duration>,
    /// Maximum size of its instructions, in bytes; default 32 KiB.
    pub(crate) max_instruction_bytes: usize,
    /// Maximum number of its tools; default 1000.
    pub(crate) max_tools: usize,
    /// Maximum size of all its items of one kind, in bytes; default 16 MiB.
    pub(crate) max_list_bytes: usize,
    /// Maximum time for which its lists are cached; default 24 h.
    pub(crate) list_ttl: Duration,
    /// Maximum number of callers with a connection of their own; default 256.
    pub(crate) max_callers: usize,
    /// Maximum time that a call waits for its start; default 30 s.
    pub(crate) call_start_wait: Duration,
    /// Maximum time that lists wait for its start if no list is known; default 10 s.
    pub(crate) list_start_wait: Duration,
    /// Client capabilities that it may use; default all.
    pub(crate) capabilities: ClientCapabilities,
}

impl ServerSpec {
    /// Creates a specification with the defaults.
    pub(crate) fn new(id: impl Into<Arc<str>>, command: Vec<String>) -> ServerSpec {
        ServerSpec {
            id: id.into(),
            command,
            env: Vec::new(),
            pass_env: Vec::new(),
            cwd: None,
            address: None,
            credentials_dir: None,
            sign_in_instructions: SignInInstructions::default(),
            sign_in_pages: None,
            trusted: false,
            revision: RevisionChoice::default(),
            start_timeout: Duration::from_secs(30),
            max_line_bytes: 16 << 20,
            json_limits: JsonLimits::default(),
            budget: BudgetScope::default(),
            parked: (64, 16, Duration::from_secs(10 * 60)),
            ping_interval: None,
            max_instruction_bytes: 32 << 10,
            max_tools: 1000,
            max_list_bytes: 16 << 20,
            list_ttl: Duration::from_secs(24 * 60 * 60),
            max_callers: 256,
            call_start_wait: Duration::from_secs(30),
            list_start_wait: Duration::from_secs(10),
            capabilities: ClientCapabilities::ALL,
        }
    }

    /// Returns whether a person can sign in to it for all its callers.
    pub(crate) fn has_shared_sign_in(&self) -> bool {
        let address = self
            .address
            .as_ref()
            .filter(|_| self.credentials_dir.is_some());
        address.is_some_and(|a| a.sign_in_obstacle().is_none() && !a.has_caller_credentials())
    }

    /// Returns whether each caller has a credential of its own.
    pub(crate) fn has_caller_credentials(&self) -> bool {
        self.address
            .as_ref()
            .is_some_and(RemoteAddress::has_caller_credentials)
    }

    /// Returns its command or URL for the console, with secrets removed.
    pub(crate) fn display_origin(&self) -> String {
        let words = match &self.address {
            Some(address) => address.without_query().to_owned(),
            None => self.command.join(" "),
        };
        SecretRedactor::redact_for_display(&words).into_owned()
    }
}

impl fmt::Debug for ServerSpec {
    /// Formats the ID only, because values of the environment may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSpec")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
