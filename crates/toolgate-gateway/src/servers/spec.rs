//! What the operator says of a server.

use std::{path::PathBuf, sync::Arc, time::Duration};

/// What the operator says of a server.
#[derive(Clone, Debug)]
pub(crate) struct ServerSpec {
    /// Its id; a word of the operator.
    pub(crate) id: Arc<str>,
    /// Program and arguments. No shell.
    pub(crate) command: Vec<String>,
    /// What is set in its environment besides the usual names.
    pub(crate) env: Vec<(String, String)>,
    /// Names that it gets from our own environment besides the usual ones.
    pub(crate) pass_env: Vec<String>,
    /// Where it runs; our own directory where absent.
    pub(crate) cwd: Option<PathBuf>,
    /// Whether the operator believes its annotations.
    pub(crate) trusted: bool,
    /// Longest time from the start to the end of the handshake; 30 s.
    pub(crate) start: Duration,
    /// Longest time that a list or a call waits for it while it starts; 10 s.
    pub(crate) wait: Duration,
}

impl ServerSpec {
    /// The defaults.
    pub(crate) fn new(id: impl Into<Arc<str>>, command: Vec<String>) -> ServerSpec {
        ServerSpec {
            id: id.into(),
            command,
            env: Vec::new(),
            pass_env: Vec::new(),
            cwd: None,
            trusted: false,
            start: Duration::from_secs(30),
            wait: Duration::from_secs(10),
        }
    }
}
