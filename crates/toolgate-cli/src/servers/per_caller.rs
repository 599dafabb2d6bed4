//! Server to which each caller has a connection and a token of its own.
//!
//! The token was exchanged for the caller's own, or a person granted it for the caller. No session and no token is
//! ever shared. The items are assumed to be the same for all callers: a list on behalf of one caller is valid for all
//! for one minute.

mod catalog_cache;
mod credentials;
mod pool;
mod sign_in_request;
mod task_recovery;

use self::{
    credentials::{ConnectionParameters, connection_parameters},
    pool::CallerConnection,
    sign_in_request::SignInCandidate,
};
use super::{
    SupervisedServer,
    caller_sign_ins::CallerSignIns,
    launch::ProcessLauncher,
    lifecycle::{ServerEnd, stopping},
    status::CallerSignIn,
};
use crate::{authentication::CallerTokens, config::RemoteAddress, oauth::SignInRequired};
use std::{
    error::Error as _,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use toolgate::client::RemoteServer;
use toolgate_auth::client::{AuthError, AuthErrorKind};
use toolgate_core::{Call, Catalog, DefinitionNote, Error, ErrorKind, ItemKind, Outcome, Service};

/// Interval at which idle connections are removed.
const IDLE_SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Connections of callers to one server.
pub(super) struct CallerConnections {
    max_connections: usize,
    caller_tokens: Arc<CallerTokens>,
    /// Parameters of new connections; `None` before the server began and after it ended.
    parameters: Mutex<Option<ConnectionParameters>>,
    connections: Mutex<Vec<CallerConnection>>,
    /// True if any connection was ever made.
    reached: AtomicBool,
    sign_ins: CallerSignIns,
    catalogs: Mutex<[Option<(Catalog, Instant)>; ItemKind::ALL.len()]>,
    /// Lists that failed on the connection that was asked last.
    failed_lists: Mutex<Vec<DefinitionNote>>,
}

/// Serves callers until the gateway stops.
pub(super) async fn serve(
    server: &SupervisedServer,
    address: &RemoteAddress,
    launch: &dyn ProcessLauncher,
    mut stop: watch::Receiver<bool>,
) -> ServerEnd {
    let Some(callers) = &server.caller_connections else {
        return ServerEnd::NotStarted(
            "internal error: it has no connections per caller; report this".to_owned(),
            false,
        );
    };
    let way = tokio::select! {
        way = connection_parameters(server, address, launch) => way,
        _ = stop.wait_for(|stop| *stop) => return stopping(),
    };
    match way {
        Ok(way) => *lock(&callers.parameters) = Some(way),
        Err((why, again)) => return ServerEnd::NotStarted(why, again),
    }
    let mut restarted = pin!(server.wait_for_restart());
    server.running(None);
    let end = loop {
        callers.sign_ins.refresh(server).await;
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => break stopping(),
            () = &mut restarted => break ServerEnd::Restarted,
            () = server.wait_for_retry() => {}
            () = sleep(IDLE_SWEEP_INTERVAL) => callers.sweep(),
        }
    };
    *lock(&callers.parameters) = None;
    let open = std::mem::take(&mut *lock(&callers.connections));
    let ends = open.iter().filter_map(|place| place.connection.get());
    futures_util::future::join_all(ends.map(RemoteServer::close_and_wait)).await;
    end
}

impl CallerConnections {
    pub(super) fn new(most: usize, bearers: Arc<CallerTokens>) -> CallerConnections {
        CallerConnections {
            max_connections: most,
            caller_tokens: bearers,
            parameters: Mutex::default(),
            connections: Mutex::default(),
            reached: AtomicBool::new(false),
            sign_ins: CallerSignIns::default(),
            catalogs: Mutex::default(),
            failed_lists: Mutex::default(),
        }
    }

    pub(super) async fn call(
        &self,
        server: &SupervisedServer,
        mut call: Call,
    ) -> Result<Outcome, Error> {
        let candidate = SignInCandidate::from_call(&mut call);
        self.wait_for_token(server, &call).await;
        match self.send_call(server, call).await {
            Err(error) if lacks_sign_in(&error) => {
                self.request_sign_in(server, candidate, error).await
            }
            done => done,
        }
    }

    async fn send_call(&self, server: &SupervisedServer, call: Call) -> Result<Outcome, Error> {
        let (seat, token) = self.connect(server, &call.caller).await?;
        match seat.get() {
            Some(remote) => {
                let called = remote.call(call).await;
                called.map_err(|error| token.explain_error(server, error))
            }
            None => Err(unusable_error(
                server,
                "its connection was closed; call again",
            )),
        }
    }

    /// Returns whether any caller ever reached the server.
    pub(super) fn was_reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }

    /// Returns the callers that have or need a sign-in of their own.
    pub(super) fn own_sign_ins(&self) -> Vec<CallerSignIn> {
        self.sign_ins.summary()
    }
}

/// Returns whether the caller's sign-in is missing or has too few scopes.
fn lacks_sign_in(error: &Error) -> bool {
    error.source().is_some_and(|why| {
        let auth = why.downcast_ref::<AuthError>();
        let more = auth.is_some_and(|why| why.kind() == AuthErrorKind::NeedsSignIn);
        more || why.is::<SignInRequired>()
    })
}

fn unusable_error(server: &SupervisedServer, why: &str) -> Error {
    let text = format!("the server {} cannot be used: {why}", server.spec.id);
    Error::new(ErrorKind::Upstream, text)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
