//! A server to which each caller has a connection of its own, with a token of its own: no session and no token is ever
//! shared. What the server offers is taken to be the same for all: it is listed in the name of whoever asks first, and
//! that holds for a minute for everybody.

use super::{
    Supervised,
    launch::Launch,
    life::{End, options, stopping},
    reach::http_options,
};
use crate::{
    config::{Address, Exchange},
    door::{Bearer, Bearers},
};
use futures_util::FutureExt;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{OnceCell, watch},
    time::{Instant, sleep, timeout},
};
use toolgate::{
    Call, Caller, Catalog, Changed, Error, ItemKind, Kind, List, Outcome, Service,
    client::{HttpOptions, Remote},
};
use toolgate_auth::{
    Url,
    client::{Authenticate, OauthClient, OnBehalf, Scopes, TokenExchange},
};

/// How long a connection is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// How long a list holds for everybody.
const FACE: Duration = Duration::from_secs(60);
/// How often idle connections are looked for.
const SWEEP: Duration = Duration::from_secs(60);

/// The connections of callers to one server.
pub(super) struct PerCaller {
    most: usize,
    bearers: Arc<Bearers>,
    /// How they are made; nothing before the server began, and after it ended.
    way: Mutex<Option<Way>>,
    open: Mutex<Vec<Place>>,
    face: Mutex<[Option<(Catalog, Instant)>; ItemKind::ALL.len()]>,
}

/// How a connection is made.
#[derive(Clone)]
struct Way {
    url: Url,
    http: HttpOptions,
    exchange: TokenExchange,
}

/// The place of one caller.
struct Place {
    bearer: Bearer,
    token: OnBehalf,
    /// Held by whoever uses it.
    seat: Arc<OnceCell<Remote>>,
    used: Instant,
}

/// Serves callers until the gateway stops.
pub(super) async fn serve(
    server: &Supervised,
    address: &Address,
    launch: &dyn Launch,
    mut stop: watch::Receiver<bool>,
) -> End {
    let (Some(callers), Some(exchange)) = (&server.callers, &address.exchange) else {
        return End::NotStarted("it has no exchange".to_owned(), false);
    };
    let way = tokio::select! {
        way = way(server, address, exchange, launch) => way,
        _ = stop.wait_for(|stop| *stop) => return stopping(),
    };
    match way {
        Ok(way) => *lock(&callers.way) = Some(way),
        Err((why, again)) => return End::NotStarted(why, again),
    }
    server.running(None);
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => break,
            () = sleep(SWEEP) => callers.sweep(),
        }
    }
    *lock(&callers.way) = None;
    let open = std::mem::take(&mut *lock(&callers.open));
    let ends = open.iter().filter_map(|place| place.seat.get());
    futures_util::future::join_all(ends.map(Remote::end)).await;
    stopping()
}

async fn way(
    server: &Supervised,
    address: &Address,
    exchange: &Exchange,
    launch: &dyn Launch,
) -> Result<Way, (String, bool)> {
    let http = http_options(address, launch, server.spec.start).await?;
    let secret = launch.read(&exchange.secret, server.spec.start).await;
    let secret = secret.map_err(|why| {
        let why = format!("the secret of its exchange cannot be had: {why}");
        (why, exchange.secret.may_come())
    })?;
    let url = Url::parse(&address.url)
        .map_err(|bad| (format!("its url cannot be used: {bad}"), false))?;
    let client = OauthClient::new(exchange.client.as_str(), Authenticate::Secret(secret));
    let mut with = TokenExchange::new(exchange.url.clone(), client)
        .scopes(Scopes::read(&exchange.scopes.join(" ")));
    if let Some(audience) = &exchange.audience {
        with = with.audience(audience);
    }
    Ok(Way {
        url,
        http,
        exchange: with,
    })
}

impl PerCaller {
    pub(super) fn new(most: usize, bearers: Arc<Bearers>) -> PerCaller {
        PerCaller {
            most,
            bearers,
            way: Mutex::default(),
            open: Mutex::default(),
            face: Mutex::default(),
        }
    }

    /// How many tools are known.
    pub(super) fn tools(&self) -> usize {
        let face = lock(&self.face);
        let tools = face[ItemKind::Tool as usize].as_ref();
        tools.map_or(0, |(catalog, _)| catalog.items().len())
    }

    pub(super) async fn call(&self, server: &Supervised, call: Call) -> Result<Outcome, Error> {
        let seat = self.seat(server, &call.caller).await?;
        match seat.get() {
            Some(remote) => remote.call(call).await,
            None => Err(down(server, "its connection is gone")),
        }
    }

    pub(super) async fn list(&self, server: &Supervised, ask: List) -> Result<Catalog, Error> {
        let kind = ask.kind;
        let known = lock(&self.face)[kind as usize].clone();
        if let Some((catalog, at)) = &known
            && at.elapsed() < FACE
        {
            return Ok(catalog.clone());
        }
        let listed = match self.seat(server, &ask.caller).await {
            // All of it: what one asks for alone must not be what all are told.
            Ok(seat) => match seat.get() {
                Some(remote) => remote.list(List { only: None, ..ask }).await,
                None => Err(down(server, "its connection is gone")),
            },
            Err(error) => Err(error),
        };
        let known = known.map(|(catalog, _)| catalog);
        match (listed, known) {
            (Ok(catalog), known) => {
                lock(&self.face)[kind as usize] = Some((catalog.clone(), Instant::now()));
                if known.is_none_or(|known| !known.same(&catalog)) {
                    server.tell(&Changed {
                        lists: vec![kind],
                        updated: Vec::new(),
                    });
                }
                Ok(catalog)
            }
            (Err(_), Some(known)) => Ok(known),
            (Err(error), None) => Err(error),
        }
    }

    /// The connection of a caller, which is made where there is none.
    async fn seat(
        &self,
        server: &Supervised,
        caller: &Caller,
    ) -> Result<Arc<OnceCell<Remote>>, Error> {
        let Some(bearer) = Bearer::of(caller) else {
            let why = "it is used in the name of each caller, and only callers with a token of an authorization server have one";
            return Err(down(server, why));
        };
        let way = lock(&self.way).clone();
        let way = way.ok_or_else(|| down(server, "it is not ready"))?;
        let (seat, token) = self.place(server, bearer, &way)?;
        let connect = async {
            let http = way.http.clone().credentials(token);
            Remote::connect(way.url.as_str(), options(server, true), http).await
        };
        let made = timeout(server.spec.wait, seat.get_or_try_init(|| connect)).await;
        match made {
            Ok(Ok(_)) => Ok(seat),
            Ok(Err(error)) => Err(down(server, &error.to_string())),
            Err(_) => {
                let why = format!("it did not answer within {:?}", server.spec.wait);
                Err(down(server, &why))
            }
        }
    }

    /// The place of a caller: its own, a free one, or the one that was not in use for longest.
    fn place(
        &self,
        server: &Supervised,
        bearer: Bearer,
        way: &Way,
    ) -> Result<(Arc<OnceCell<Remote>>, OnBehalf), Error> {
        let mut open = lock(&self.open);
        if let Some(place) = open.iter_mut().find(|place| place.bearer == bearer) {
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
        let (bearers, of) = (self.bearers.clone(), bearer.clone());
        let token = way
            .exchange
            .on_behalf(way.url.clone(), move || bearers.subject(&of));
        let place = Place {
            bearer,
            token,
            seat: Arc::default(),
            used: Instant::now(),
        };
        let found = (place.seat.clone(), place.token.clone());
        open.push(place);
        Ok(found)
    }

    /// Ends the connections that nobody uses, and those of callers whose token has ended.
    fn sweep(&self) {
        lock(&self.open).retain(|place| {
            let ended = self.bearers.subject(&place.bearer).is_none();
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

fn down(server: &Supervised, why: &str) -> Error {
    let text = format!("the server {} cannot be used: {why}", server.spec.id);
    Error::new(Kind::Upstream, text)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
