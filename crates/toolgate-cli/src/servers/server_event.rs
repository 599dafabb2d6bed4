//! Events of a server's lifecycle, for the audit log and the event log.

use super::StderrFiles;
use std::{sync::Arc, time::Duration};
use toolgate_core::OperationObserver;

/// Event of one server's process or connection.
#[derive(Clone, Debug)]
pub(crate) enum ServerEvent {
    /// It is started or opened again.
    Restarting {
        /// Number of restarts so far.
        restarts: u32,
    },
    /// It is ready for use.
    Started {
        /// Protocol revision; `None` if each caller has a connection of its own.
        revision: Option<&'static str>,
        /// Number of restarts so far.
        restarts: u32,
    },
    /// It ended, or could not be started.
    Failed {
        /// Reason, for the operator.
        why: String,
        /// Time until the next start; `None` if it is not started again.
        retry: Option<Duration>,
        /// Last lines of its stderr.
        stderr: Vec<String>,
    },
    /// It was stopped with the gateway, or because no config uses it any more.
    Stopped,
}

/// Receiver of the events of all servers, with the id of the server. It must not block.
pub(crate) type ServerObserver = Arc<dyn Fn(&str, ServerEvent) + Send + Sync>;

/// Receivers of what servers report, shared by all servers.
#[derive(Clone, Default)]
pub(crate) struct ServerOutputs {
    /// Receiver of lifecycle events.
    pub(crate) observer: Option<ServerObserver>,
    /// Files that get their stderr.
    pub(crate) stderr_files: Option<Arc<StderrFiles>>,
    /// Observer of the requests to them, for metrics and traces.
    pub(crate) operations: Option<Arc<dyn OperationObserver>>,
}
