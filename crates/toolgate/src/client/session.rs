//! Requests outside of calls: ping, log level, roots.

use super::{
    connection::{RequestFailure, RequestPurpose},
    remote::RemoteServer,
};
use tokio::time::timeout;
use toolgate_core::{Error, ErrorKind};
use toolgate_protocol::{
    json::{Json, ObjectWriter},
    method::{PING, SET_LEVEL, discover, notifications},
};

impl RemoteServer {
    /// Returns the capabilities that the server declared, as JSON.
    pub fn capabilities(&self) -> &Json {
        &self.peer.capabilities
    }

    /// Returns the server's `instructions` for the model, not sanitized.
    pub fn instructions(&self) -> Option<&str> {
        self.peer.instructions.as_deref()
    }

    /// Checks that the server answers: `ping`, or `server/discover` since 2026-07-28, which has no `ping`.
    ///
    /// # Errors
    /// The server does not answer within [`RemoteOptions::list_timeout`](super::RemoteOptions::list_timeout), or the request fails.
    pub async fn ping(&self) -> Result<(), Error> {
        let method = match self.peer.dialect.ping {
            true => PING,
            false => discover::NAME,
        };
        self.simple_request(method, |_| {}).await
    }

    /// Sets the minimum level of log messages of the server's session (`logging/setLevel`). Since 2026-07-28 each call
    /// sets its own, with its [`CallReporter`](toolgate_core::CallReporter). A server without the logging capability
    /// gets no request.
    ///
    /// # Errors
    /// The server rejects the request, or does not answer.
    pub async fn set_log_level(&self, level: &str) -> Result<(), Error> {
        if self.peer.dialect.request_log_level || self.peer.capabilities.get("logging").is_none() {
            return Ok(());
        }
        self.simple_request(SET_LEVEL, |o| o.str("level", level))
            .await
    }

    /// Notifies the server that the client's roots changed (`notifications/roots/list_changed`). Since 2026-07-28 there
    /// is no such notification: a server requests roots when it needs them.
    pub fn roots_changed(&self) {
        if self.peer.dialect.roots_list_changed {
            self.link.notify(notifications::ROOTS_CHANGED, None);
        }
    }

    async fn simple_request(
        &self,
        method: &str,
        fill: impl FnOnce(&mut ObjectWriter),
    ) -> Result<(), Error> {
        let params = |_: &_| {
            let mut o = ObjectWriter::new();
            self.write_request_meta(&mut o);
            fill(&mut o);
            o.finish()
        };
        let asked = self.link.request(method, RequestPurpose::List, params);
        match timeout(self.options.list_timeout, asked).await {
            Ok(Ok(_)) => Ok(()),
            // An error for an unknown method also shows that the server is alive.
            Ok(Err(RequestFailure::Rpc(_))) if method == PING => Ok(()),
            Ok(Err(failure)) => Err(self.request_error(failure)),
            Err(_) => Err(Error::new(
                ErrorKind::TimedOut,
                format!(
                    "the server {} did not answer within {:?}",
                    self.name(),
                    self.options.list_timeout
                ),
            )),
        }
    }
}
