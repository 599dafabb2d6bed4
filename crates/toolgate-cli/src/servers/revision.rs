//! Change of the protocol revision of a server.
//!
//! A server may be opened with a session, and then send input requests as results, which a session cannot carry. It
//! is then opened again in the newest revision, until the gateway ends.

use super::SupervisedServer;
use crate::config::RevisionChoice;
use std::error::Error as _;
use toolgate::client::InputByResultError;
use toolgate_core::{Call, Error, Op, Outcome, StartWait};
use toolgate_protocol::dialect;

impl SupervisedServer {
    /// Returns the revision with which to open the server.
    pub(super) fn current_revision(&self) -> RevisionChoice {
        match self.spec.revision {
            RevisionChoice::Auto if *self.input_by_result.borrow() => RevisionChoice::Newest,
            choice => choice,
        }
    }

    /// Resolves once the server turns out to send input requests as results.
    pub(super) async fn wait_for_input_by_result(&self) {
        if *self.input_by_result.borrow() {
            return std::future::pending().await;
        }
        // The sender lives as long as the server.
        let _ = self
            .input_by_result
            .subscribe()
            .wait_for(|asks| *asks)
            .await;
    }

    /// Sends a call over the current connection.
    pub(super) async fn send_call(&self, call: Call) -> Result<Outcome, Error> {
        if let Some(callers) = &self.caller_connections {
            // Boxed, because it may connect.
            return Box::pin(callers.call(self, call)).await;
        }
        let called = self.call_shared(call).await;
        called.map_err(|error| self.explain_error(error))
    }

    /// Returns whether the connection carries input requests as results, after waiting until it is open again.
    pub(super) async fn carries_input_by_result(&self) -> bool {
        if self.caller_connections.is_some() {
            return true;
        }
        let remote = self.wait_until_settled(StartWait::Call, true).await.remote;
        let dialect = remote.and_then(|remote| dialect::find(remote.revision()));
        dialect.is_some_and(|dialect| dialect.input_required_results)
    }

    /// Opens the server again if a failed call shows that it sends input requests as results. Returns whether the
    /// call may be sent again; `None` for other failures.
    pub(super) fn reopen_for_input(&self, call: &Call, error: &Error) -> Option<bool> {
        let asks = error.source()?.downcast_ref::<InputByResultError>()?;
        if self.spec.revision != RevisionChoice::Auto {
            return None;
        }
        if !self.input_by_result.send_replace(true) {
            self.mark_reopening();
        }
        let reads =
            call.op != Op::Tool || call.item().is_some_and(|item| item.annotations().read_only);
        Some(asks.at_question || reads)
    }

    /// Returns the error of a call that was not sent again, because it may have taken effect.
    pub(super) fn not_resent_error(&self, mut error: Error) -> Error {
        error.set_public_message(format!(
            "the server {} answered in a form that its protocol revision does not allow; the call may have taken effect; from now on \
             the gateway uses the newest revision of that server, so call again if a repetition does no harm",
            self.spec.id
        ));
        error
    }
}
