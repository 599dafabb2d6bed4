//! Pool of the connections of callers, with eviction of idle ones.

use super::{
    CallerConnections, down, lock,
    tokens::{CallerCredentials, CallerIdentity, ConnectionParameters},
};
use crate::{
    servers::{
        SupervisedServer,
        life::{OpeningAttempt, options},
    },
    signing_in::ReportingCredentials,
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
use toolgate::{Caller, Error, ErrorKind, client::RemoteServer};

/// Time after which an idle connection is removed.
const IDLE_CONNECTION_LIFETIME: Duration = Duration::from_secs(10 * 60);

/// Connection slot of one caller.
pub(super) struct CallerConnection {
    pub(super) whose: CallerIdentity,
    pub(super) token: CallerCredentials,
    /// Time of the last comparison of its credential with the stored one.
    pub(super) looked: Instant,
    /// Connection; each user of it holds a clone.
    pub(super) seat: Arc<OnceCell<RemoteServer>>,
    pub(super) used: Instant,
}

impl CallerConnections {
    /// Returns the connection of a caller, and makes it if there is none.
    pub(super) async fn seat(
        &self,
        server: &SupervisedServer,
        caller: &Caller,
    ) -> Result<(Arc<OnceCell<RemoteServer>>, CallerCredentials), Error> {
        let way = lock(&self.way).clone();
        let way = way.ok_or_else(|| down(server, "it is not ready"))?;
        let whose = self.whose(server, caller, &way).await?;
        let (seat, token) = self.place(server, whose, &way)?;
        let connect = async {
            let http = way.http.clone();
            let http = match &token {
                CallerCredentials::OnBehalf(token) => http.credentials(token.clone()),
                CallerCredentials::Granted(login, need) => http.credentials(ReportingCredentials {
                    login: login.clone(),
                    need: need.clone(),
                }),
            };
            RemoteServer::connect(
                way.url.as_str(),
                options(server, OpeningAttempt::First),
                http,
            )
            .await
        };
        let made = timeout(server.spec.call_wait, seat.get_or_try_init(|| connect)).await;
        match made {
            Ok(Ok(_)) => {
                self.reached.store(true, Ordering::Relaxed);
                Ok((seat, token))
            }
            Ok(Err(error)) => Err(token.why(server, down(server, &error.to_string()))),
            Err(_) => {
                let why = format!("it did not respond within {:?}", server.spec.call_wait);
                Err(down(server, &why))
            }
        }
    }

    /// Returns the slot of a caller: its own, a free one, or that of the connection that was idle for longest.
    fn place(
        &self,
        server: &SupervisedServer,
        whose: CallerIdentity,
        way: &ConnectionParameters,
    ) -> Result<(Arc<OnceCell<RemoteServer>>, CallerCredentials), Error> {
        let mut open = lock(&self.open);
        if let Some(place) = open.iter_mut().find(|place| place.whose == whose) {
            place.used = Instant::now();
            if place.is_gone() {
                place.seat = Arc::default();
            }
            return Ok((place.seat.clone(), place.token.clone()));
        }
        if open.len() >= self.most {
            let idle = open.iter().enumerate().filter(|(_, place)| place.is_idle());
            let oldest = idle.min_by_key(|(_, place)| place.used).map(|(at, _)| at);
            let Some(oldest) = oldest else {
                let text = format!(
                    "the server {} has connections for {} callers, which is the limit; try again later",
                    server.spec.id, self.most
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
            token: self.token(server, &whose, way)?,
            whose,
            seat: Arc::default(),
            used: now,
            looked: now,
        };
        let found = (place.seat.clone(), place.token.clone());
        open.push(place);
        Ok(found)
    }

    /// Closes the connection of a caller, with its running requests, because its credential was revoked.
    pub(in crate::servers) fn end(&self, caller: &str) {
        let own = |place: &CallerConnection| matches!(&place.whose, CallerIdentity::Named(name) if **name == *caller);
        let gone: Vec<CallerConnection> = lock(&self.open)
            .extract_if(.., |place| own(place))
            .collect();
        let seats = gone.iter().filter_map(|place| place.seat.get());
        seats.for_each(RemoteServer::close);
    }

    /// Makes all callers connect again. Running requests complete on the old connections.
    pub(in crate::servers) fn reconnect(&self) {
        lock(&self.open)
            .iter_mut()
            .for_each(|place| place.seat = Arc::default());
    }

    /// Makes a caller connect again, with its current credential.
    pub(in crate::servers) fn forget(&self, caller: &str) {
        lock(&self.open).retain(
            |place| !matches!(&place.whose, CallerIdentity::Named(name) if **name == *caller),
        );
    }

    /// Removes idle connections, and those of callers whose token has expired.
    pub(super) fn sweep(&self) {
        lock(&self.open).retain(|place| {
            let ended = match &place.whose {
                CallerIdentity::Bearer(bearer) => self.bearers.subject(bearer).is_none(),
                CallerIdentity::Named(_) => false,
            };
            !(place.is_idle() && (ended || place.used.elapsed() > IDLE_CONNECTION_LIFETIME))
        });
    }
}

impl CallerConnection {
    /// Returns whether no request uses the connection.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.seat) == 1
    }

    /// Returns whether the connection is closed.
    fn is_gone(&self) -> bool {
        let remote = self.seat.get();
        remote.is_some_and(|remote| remote.closed().now_or_never().is_some())
    }
}
