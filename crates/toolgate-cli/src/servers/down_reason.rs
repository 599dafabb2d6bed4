//! Reason for which a server is down: a public part for callers, and details for the operator.

use toolgate_core::OperatorDetail;

/// Reason for which a server is down.
#[derive(Clone, Debug)]
pub(super) struct DownReason {
    public: String,
    detail: OperatorDetail,
}

impl DownReason {
    /// Creates a reason from the server's own behavior, which callers may read.
    pub(super) fn of_server(text: String) -> DownReason {
        DownReason {
            detail: OperatorDetail::new(text.clone()),
            public: text,
        }
    }

    /// Creates a reason for a failed start. It names commands and files of the operator, so callers get a generic
    /// text.
    pub(super) fn of_start(text: String) -> DownReason {
        DownReason {
            detail: OperatorDetail::new(text),
            public: "it could not be started".to_owned(),
        }
    }

    /// Returns what callers may read.
    pub(super) fn public(&self) -> &str {
        &self.public
    }

    /// Returns what only the operator may read.
    pub(super) fn detail(&self) -> &OperatorDetail {
        &self.detail
    }
}
