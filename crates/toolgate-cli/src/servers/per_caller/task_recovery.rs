//! Recovered tasks that wait for the token of their caller.

use super::{
    CallerConnections,
    credentials::{CallerTokenSource, ConnectionParameters},
    lock,
};
use crate::{authentication::TokenOwner, servers::SupervisedServer};
use std::time::Duration;
use tokio::time::sleep;
use toolgate_core::{Call, Progress, ReporterEvent};

/// Interval at which the caller's token is looked up.
const TOKEN_POLL_INTERVAL: Duration = Duration::from_millis(500);

impl CallerConnections {
    /// Waits until the caller has sent a token, if the call is a recovered task of another process. Only the caller
    /// has the token. The wait ends at the latest with the timeout of the call.
    pub(super) async fn wait_for_token(&self, server: &SupervisedServer, call: &Call) {
        let is_exchanged =
            |way: &ConnectionParameters| matches!(way.token_source, CallerTokenSource::Exchange(_));
        let is_exchanged = lock(&self.parameters).as_ref().is_some_and(is_exchanged);
        let Some(bearer) = TokenOwner::from_caller(&call.caller) else {
            return;
        };
        if call.resumed_after.is_none()
            || !is_exchanged
            || self.caller_tokens.subject_token(&bearer).is_some()
        {
            return;
        }
        let tell = |message: String| {
            call.reporter.send(ReporterEvent::Progress(Progress {
                progress: 0.0,
                total: None,
                message: Some(message),
            }));
        };
        tell(format!(
            "paused: the gateway restarted and needs your token again to access the server {}; send any request to continue",
            server.spec.id
        ));
        while self.caller_tokens.subject_token(&bearer).is_none() {
            sleep(TOKEN_POLL_INTERVAL).await;
        }
        tell("resumed: your token arrived with a new request".to_owned());
    }
}
