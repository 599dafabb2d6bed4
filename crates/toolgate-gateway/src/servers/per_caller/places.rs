//! The places of callers: who has a connection, and who gives way.

use super::{
    PerCaller, down, lock,
    tokens::{Token, Way, Whose},
};
use crate::{
    servers::{
        Supervised,
        life::{OpeningAttempt, options},
    },
    signing_in::Watched,
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
use toolgate::{Caller, Error, Kind, client::Remote};

/// How long a connection is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(10 * 60);

/// The place of one caller.
pub(super) struct Place {
    pub(super) whose: Whose,
    pub(super) token: Token,
    /// When its grant was last compared with the one that is kept.
    pub(super) looked: Instant,
    /// Held by whoever uses it.
    pub(super) seat: Arc<OnceCell<Remote>>,
    pub(super) used: Instant,
}

impl PerCaller {
    /// The connection of a caller, which is made where there is none.
    pub(super) async fn seat(
        &self,
        server: &Supervised,
        caller: &Caller,
    ) -> Result<(Arc<OnceCell<Remote>>, Token), Error> {
        let way = lock(&self.way).clone();
        let way = way.ok_or_else(|| down(server, "it is not ready"))?;
        let whose = self.whose(server, caller, &way).await?;
        let (seat, token) = self.place(server, whose, &way)?;
        let connect = async {
            let http = way.http.clone();
            let http = match &token {
                Token::OnBehalf(token) => http.credentials(token.clone()),
                Token::Granted(login, need) => http.credentials(Watched {
                    login: login.clone(),
                    need: need.clone(),
                }),
            };
            Remote::connect(
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
                let why = format!("it did not answer within {:?}", server.spec.call_wait);
                Err(down(server, &why))
            }
        }
    }

    /// The place of a caller: its own, a free one, or the one that was not in use for longest.
    fn place(
        &self,
        server: &Supervised,
        whose: Whose,
        way: &Way,
    ) -> Result<(Arc<OnceCell<Remote>>, Token), Error> {
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
                    "the server {} is in use by {} callers in their own name, and takes no more; try again later",
                    server.spec.id, self.most
                );
                return Err(Error::new(Kind::Busy(Some(Duration::from_secs(5))), text));
            };
            open.swap_remove(oldest);
        }
        let now = Instant::now();
        let place = Place {
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

    /// Ends the connection of a caller, with what runs over it: what was granted is taken back.
    pub(in crate::servers) fn end(&self, caller: &str) {
        let own = |place: &Place| matches!(&place.whose, Whose::Named(name) if **name == *caller);
        let gone: Vec<Place> = lock(&self.open)
            .extract_if(.., |place| own(place))
            .collect();
        let seats = gone.iter().filter_map(|place| place.seat.get());
        seats.for_each(Remote::close);
    }

    /// Has all callers connected again; what runs over the connections of now ends by itself.
    pub(in crate::servers) fn reconnect(&self) {
        lock(&self.open)
            .iter_mut()
            .for_each(|place| place.seat = Arc::default());
    }

    /// Has a caller connected anew, with what is granted for it now.
    pub(in crate::servers) fn forget(&self, caller: &str) {
        lock(&self.open)
            .retain(|place| !matches!(&place.whose, Whose::Named(name) if **name == *caller));
    }

    /// Ends the connections that nobody uses, and those of callers whose token has ended.
    pub(super) fn sweep(&self) {
        lock(&self.open).retain(|place| {
            let ended = match &place.whose {
                Whose::Bearer(bearer) => self.bearers.subject(bearer).is_none(),
                Whose::Named(_) => false,
            };
            !(place.is_idle() && (ended || place.used.elapsed() > IDLE))
        });
    }
}

impl Place {
    /// Whether nobody uses it.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.seat) == 1
    }

    /// Whether its connection is over.
    fn is_gone(&self) -> bool {
        let remote = self.seat.get();
        remote.is_some_and(|remote| remote.closed().now_or_never().is_some())
    }
}
