//! Events of a server's lifecycle, for the audit log and the event log.

use std::{sync::Arc, time::Duration};

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
