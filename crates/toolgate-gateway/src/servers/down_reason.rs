//! Why a server is down: what its callers may read, and what only the operator does.

use toolgate::OperatorDetail;

/// Why a server is down.
#[derive(Clone, Debug)]
pub(super) struct DownReason {
    public: String,
    detail: OperatorDetail,
}

impl DownReason {
    /// What the server did: callers may read it.
    pub(super) fn of_server(text: String) -> DownReason {
        DownReason {
            detail: OperatorDetail::new(text.clone()),
            public: text,
        }
    }

    /// Why it could not be started here: that names commands, folders and files of the operator.
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
