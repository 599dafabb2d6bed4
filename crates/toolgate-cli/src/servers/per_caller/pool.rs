//! Pool of the connections of callers, with eviction of idle ones.

use super::{
    CallerConnections,
    credentials::{CallerCredentials, CallerIdentity, ConnectionParameters},
    lock, unusable_error,
};
use crate::{
    oauth::ReportingCredentials,
    servers::{
        SupervisedServer,
        lifecycle::{OpeningAttempt, remote_options},
    },
};
use futures_util::FutureExt;
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{
    sync::OnceCell,
    time::{Instant, timeout},
};
use toolgate::client::RemoteServer;
use toolgate_core::{Caller, Error, ErrorKind};

/// Time after which an idle connection is removed.
const IDLE_CONNECTION_LIFETIME: Duration = Duration::from_secs(10 * 60);

/// Connection slot of one caller.
pub(super) struct CallerConnection {
    pub(super) owner: CallerIdentity,
    pub(super) token: CallerCredentials,
    /// Time of the last comparison of its credential with the stored one.
    pub(super) checked_at: Instant,
    /// Connection; each user of it holds a clone.
    pub(super) connection: Arc<OnceCell<RemoteServer>>,
    pub(super) used_at: Instant,
}

impl CallerConnections {
    /// Returns the connection of a caller, and makes it if there is none.
    pub(super) async fn connect(
        &self,
        server: &SupervisedServer,
        caller: &Caller,
    ) -> Result<(Arc<OnceCell<RemoteServer>>, CallerCredentials), Error> {
        let way = lock(&self.parameters).clone();
        let way = way
            .ok_or_else(|| unusable_error(server, "it is still starting; try again in a moment"))?;
        let whose = self.identify(server, caller, &way).await?;
        let (seat, token) = self.slot_for(server, whose, &way)?;
        let connect = async {
            let http = way.http.clone();
            let http = match &token {
                CallerCredentials::OnBehalf(token) => http.credentials(token.clone()),
                CallerCredentials::Granted(login, need) => http.credentials(ReportingCredentials {
                    client: login.clone(),
                    need: need.clone(),
                }),
            };
            RemoteServer::connect(
                way.url.as_str(),
                remote_options(server, OpeningAttempt::First),
                http,
            )
            .await
        };
        let made = timeout(
            server.spec.call_start_wait,
            seat.get_or_try_init(|| connect),
        )
        .await;
        match made {
            Ok(Ok(_)) => {
                self.reached.store(true, Ordering::Relaxed);
                Ok((seat, token))
            }
            Ok(Err(error)) => {
                Err(token.explain_error(server, unusable_error(server, &error.to_string())))
            }
            Err(_) => {
                let why = format!(
                    "it did not respond within {:?}",
                    server.spec.call_start_wait
                );
                Err(unusable_error(server, &why))
            }
        }
    }

    /// Returns the slot of a caller: its own, a free one, or that of the connection that was idle for longest.
    fn slot_for(
        &self,
        server: &SupervisedServer,
        whose: CallerIdentity,
        way: &ConnectionParameters,
    ) -> Result<(Arc<OnceCell<RemoteServer>>, CallerCredentials), Error> {
        let mut open = lock(&self.connections);
        if let Some(place) = open.iter_mut().find(|place| place.owner == whose) {
            place.used_at = Instant::now();
            if place.is_closed() {
                place.connection = Arc::default();
            }
            return Ok((place.connection.clone(), place.token.clone()));
        }
        if open.len() >= self.max_connections {
            let idle = open.iter().enumerate().filter(|(_, place)| place.is_idle());
            let oldest = idle
                .min_by_key(|(_, place)| place.used_at)
                .map(|(at, _)| at);
            let Some(oldest) = oldest else {
                let text = format!(
                    "the server {} has reached its limit of connections for callers ({}); try again later",
                    server.spec.id, self.max_connections
                );
                return Err(Error::new(
                    ErrorKind::Busy(Some(Duration::from_secs(5))),
                    text,
                ));
            };
            open.swap_remove(oldest);
        }
        let now = Instant::now();
        let place = CallerConnection {
            token: self.credentials_for(server, &whose, way)?,
            owner: whose,
            connection: Arc::default(),
            used_at: now,
            checked_at: now,
        };
        let found = (place.connection.clone(), place.token.clone());
        open.push(place);
        Ok(found)
    }

    /// Closes the connection of a caller, with its running requests, because its credential was revoked.
    pub(in crate::servers) fn close_connection(&self, caller: &str) {
        let own = |place: &CallerConnection| matches!(&place.owner, CallerIdentity::Named(name) if **name == *caller);
        let gone: Vec<CallerConnection> = lock(&self.connections)
            .extract_if(.., |place| own(place))
            .collect();
        let seats = gone.iter().filter_map(|place| place.connection.get());
        seats.for_each(RemoteServer::close);
    }

    /// Makes all callers connect again. Running requests complete on the old connections.
    pub(in crate::servers) fn reconnect(&self) {
        lock(&self.connections)
            .iter_mut()
            .for_each(|place| place.connection = Arc::default());
    }

    /// Makes a caller connect again, with its current credential.
    pub(in crate::servers) fn drop_connection(&self, caller: &str) {
        lock(&self.connections).retain(
            |place| !matches!(&place.owner, CallerIdentity::Named(name) if **name == *caller),
        );
    }

    /// Removes idle connections, and those of callers whose token has expired.
    pub(super) fn sweep(&self) {
        lock(&self.connections).retain(|place| {
            let ended = match &place.owner {
                CallerIdentity::Bearer(bearer) => {
                    self.caller_tokens.subject_token(bearer).is_none()
                }
                CallerIdentity::Named(_) => false,
            };
            !(place.is_idle() && (ended || place.used_at.elapsed() > IDLE_CONNECTION_LIFETIME))
        });
    }
}

impl CallerConnection {
    /// Returns whether no request uses the connection.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.connection) == 1
    }

    /// Returns whether the connection is closed.
    fn is_closed(&self) -> bool {
        let remote = self.connection.get();
        remote.is_some_and(|remote| remote.closed().now_or_never().is_some())
    }
}
