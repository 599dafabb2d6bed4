//! Status of a server, as the console shows it.

use serde::Serialize;
use toolgate_core::DefinitionNote;

/// Current state of a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ServerState {
    /// Started, and not ready yet.
    Starting,
    /// Ready for use.
    Running,
    /// Ended, and will be restarted after a delay.
    Backoff,
    /// A person has to sign in first.
    #[serde(rename = "sign-in")]
    SignIn,
    /// Could not be started, for example because the program does not exist.
    Failed,
    /// Stopped with the gateway.
    Stopped,
}

/// Caller of a server to which each caller signs in.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CallerSignIn {
    /// Name of the caller.
    pub(crate) caller: String,
    /// True if it has a sign-in; otherwise it was recently asked for one.
    pub(crate) granted: bool,
}

/// Status of a server, as the console shows it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ServerStatus {
    /// Configured ID.
    pub(crate) id: String,
    /// Current state.
    pub(crate) state: ServerState,
    /// True if it cannot be used, and does not start for the first time or after a good run.
    pub(crate) down: bool,
    /// True if a person can sign in to it here.
    pub(crate) signs_in: bool,
    /// True if a token was sent that a person, or the gateway itself, obtained.
    pub(crate) signed_in: bool,
    /// Callers that have or need a sign-in of their own, up to a maximum; `None` if callers do not sign in one by
    /// one.
    pub(crate) own_sign_ins: Option<Vec<CallerSignIn>>,
    /// True if any caller has reached it. Always true if callers share one connection.
    pub(crate) reached: bool,
    /// Number of restarts.
    pub(crate) restarts: u32,
    /// Reason for which it does not run, or for the last restart of a process.
    pub(crate) error: Option<String>,
    /// Last lines of its stderr.
    pub(crate) stderr: Vec<String>,
    /// Last lines of its stderr before it failed the last time.
    pub(crate) failure_stderr: Vec<String>,
    /// Number of its tools.
    pub(crate) tools: usize,
    /// Protocol revision in use.
    pub(crate) revision: Option<&'static str>,
    /// Name and version that it reports; not verified.
    pub(crate) server: Option<String>,
    /// Command or URL.
    pub(crate) command: String,
    /// Lists that could not be read the last time.
    #[serde(skip)]
    pub(crate) failed_lists: Vec<DefinitionNote>,
    /// Last error on its stream.
    pub(crate) note: Option<String>,
    /// Number of its unusable messages, and the last of them as text.
    #[serde(skip)]
    pub(crate) unusable: Option<(u64, String)>,
}
