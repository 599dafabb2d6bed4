//! A server as a line in the console.

use serde::Serialize;
use toolgate::DefinitionNote;

/// What a server does at the moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// It was started and did not answer yet.
    Starting,
    /// It can be used.
    Running,
    /// It ended, and is started again after a while.
    Backoff,
    /// A person has to sign in at it first.
    #[serde(rename = "sign-in")]
    SignIn,
    /// It could not be started at all, for example because there is no such program.
    Failed,
    /// It was ended with the gateway.
    Stopped,
}

/// A caller of a server where each has a sign-in of its own.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct OwnSignIn {
    /// Its name.
    pub(crate) caller: String,
    /// Whether it has one; else it was told lately that it needs one.
    pub(crate) granted: bool,
}

/// A server as a line in the console.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ServerStatus {
    /// Its id.
    pub(crate) id: String,
    /// What it does.
    pub(crate) state: State,
    /// Whether a person can sign in at it here.
    pub(crate) signs_in: bool,
    /// Whether a token was sent that was granted to a person, or to the gateway itself.
    pub(crate) signed_in: bool,
    /// Where each caller has a sign-in of its own: those who have one or wait for one, as far as they are shown.
    pub(crate) own_sign_ins: Option<Vec<OwnSignIn>>,
    /// Whether it was reached by now, where callers use it in their own name and nobody else does.
    pub(crate) reached: bool,
    /// How often it was started again.
    pub(crate) restarts: u32,
    /// Why it does not run, or, of a child, why it was started again the last time.
    pub(crate) error: Option<String>,
    /// Its last lines on standard error.
    pub(crate) stderr: Vec<String>,
    /// How many tools it has.
    pub(crate) tools: usize,
    /// The revision that is spoken with it.
    pub(crate) revision: Option<&'static str>,
    /// Name and version that it gives itself; not verified.
    pub(crate) server: Option<String>,
    /// What was started.
    pub(crate) command: String,
    /// The lists that could not be read the last time.
    #[serde(skip)]
    pub(crate) failed_lists: Vec<DefinitionNote>,
    /// The last thing that went wrong on its stream.
    pub(crate) note: Option<String>,
    /// The last message of it that could not be used, in words, and how many there were.
    #[serde(skip)]
    pub(crate) unusable: Option<(u64, String)>,
}
