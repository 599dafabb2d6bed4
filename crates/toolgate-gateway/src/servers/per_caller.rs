//! A server to which each caller has a connection of its own, with a token of its own, which was exchanged for that of
//! the caller or granted for it by a person: no session and no token is ever shared. What the server offers is taken to
//! be the same for all: it is listed in the name of whoever asks first, and that holds for a minute for everybody.

mod asking;

use self::asking::Asker;
use super::{
    Supervised,
    launch::{Launch, secret_of},
    life::{End, options, stopping},
    own_sign_ins::OwnSignIns,
    reach::http_options,
    status::OwnSignIn,
};
use crate::{
    config::{Address, Exchange},
    door::{Bearer, Bearers},
    signing_in::{At, Need, SignInIsWhy, Watched, callers},
};
use futures_util::FutureExt;
use std::{
    error::Error as _,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{OnceCell, watch},
    time::{Instant, sleep, timeout},
};
use toolgate::{
    Call, Caller, Catalog, Changed, Error, Event, ItemKind, Kind, List, Outcome, Progress, Service,
    client::{HttpOptions, Remote},
    visible_line,
};
use toolgate_auth::{
    Secret, Url,
    client::{Authenticate, Login, OauthClient, OnBehalf, Scopes, TokenExchange},
};

/// How long a connection is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// How long a list holds for everybody.
const FACE: Duration = Duration::from_secs(60);
/// How often idle connections are looked for.
const SWEEP: Duration = Duration::from_secs(60);
/// How often it is looked whether a caller has shown a token.
const SHOWN: Duration = Duration::from_millis(500);
/// How long it is taken for true that a grant is what it was: another process may have taken it back.
const TRUE: Duration = Duration::from_secs(1);

/// The connections of callers to one server.
pub(super) struct PerCaller {
    most: usize,
    bearers: Arc<Bearers>,
    /// How they are made; nothing before the server began, and after it ended.
    way: Mutex<Option<Way>>,
    open: Mutex<Vec<Place>>,
    own: OwnSignIns,
    face: Mutex<[Option<(Catalog, Instant)>; ItemKind::ALL.len()]>,
}

/// How a connection is made.
#[derive(Clone)]
struct Way {
    url: Url,
    http: HttpOptions,
    tokens: Tokens,
}

/// Where the tokens of callers come from.
#[derive(Clone)]
enum Tokens {
    Exchange(TokenExchange),
    /// A person granted them, and they are kept there; the secret of our client.
    Granted(Address, PathBuf, Option<Secret>),
}

/// Whose place it is.
#[derive(Eq, PartialEq)]
enum Whose {
    Bearer(Bearer),
    /// What an operator granted is for a name.
    Named(Arc<str>),
}

/// The way to the tokens of one caller.
#[derive(Clone)]
enum Token {
    OnBehalf(OnBehalf),
    Granted(Login, Arc<Need>),
}

/// The place of one caller.
struct Place {
    whose: Whose,
    token: Token,
    /// When its grant was last compared with the one that is kept.
    looked: Instant,
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
    let Some(callers) = &server.callers else {
        return End::NotStarted(
            "it is not used in the name of each caller".to_owned(),
            false,
        );
    };
    let way = tokio::select! {
        way = way(server, address, launch) => way,
        _ = stop.wait_for(|stop| *stop) => return stopping(),
    };
    match way {
        Ok(way) => *lock(&callers.way) = Some(way),
        Err((why, again)) => return End::NotStarted(why, again),
    }
    server.running(None);
    loop {
        callers.own.read(server).await;
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => break,
            () = server.woken() => {}
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
    launch: &dyn Launch,
) -> Result<Way, (String, bool)> {
    let http = http_options(address, launch, server.spec.start).await?;
    let url = Url::parse(&address.url)
        .map_err(|bad| (format!("its url cannot be used: {bad}"), false))?;
    let tokens = match (&address.exchange, &server.spec.grants) {
        (Some(exchange), _) => Tokens::Exchange(trade(server, exchange, launch).await?),
        (None, Some(grants)) => {
            let secret = secret_of(address, launch, server.spec.start).await?;
            Tokens::Granted(address.clone(), grants.clone(), secret)
        }
        (None, None) => return Err(("nothing is granted here".to_owned(), false)),
    };
    Ok(Way { url, http, tokens })
}

async fn trade(
    server: &Supervised,
    exchange: &Exchange,
    launch: &dyn Launch,
) -> Result<TokenExchange, (String, bool)> {
    let secret = launch.read(&exchange.secret, server.spec.start).await;
    let secret = secret.map_err(|why| {
        let why = format!("the secret of its exchange cannot be had: {why}");
        (why, exchange.secret.may_come())
    })?;
    let client = OauthClient::new(exchange.client.as_str(), Authenticate::Secret(secret));
    let mut with = TokenExchange::new(exchange.url.clone(), client)
        .scopes(Scopes::read(&exchange.scopes.join(" ")));
    if let Some(audience) = &exchange.audience {
        with = with.audience(audience);
    }
    Ok(with)
}

impl PerCaller {
    pub(super) fn new(most: usize, bearers: Arc<Bearers>) -> PerCaller {
        PerCaller {
            most,
            bearers,
            way: Mutex::default(),
            open: Mutex::default(),
            own: OwnSignIns::default(),
            face: Mutex::default(),
        }
    }

    /// How many tools are known.
    pub(super) fn tools(&self) -> usize {
        let face = lock(&self.face);
        let tools = face[ItemKind::Tool as usize].as_ref();
        tools.map_or(0, |(catalog, _)| catalog.items().len())
    }

    pub(super) async fn call(&self, server: &Supervised, mut call: Call) -> Result<Outcome, Error> {
        let asker = Asker::of(&mut call);
        self.token_is_shown(server, &call).await;
        match self.called(server, call).await {
            Err(error) if error.source().is_some_and(|why| why.is::<SignInIsWhy>()) => {
                self.asks(server, asker, error).await
            }
            done => done,
        }
    }

    /// A task that another process began needs the token of its caller, and only the caller shows it: it waits, for as long
    /// as calls may take.
    async fn token_is_shown(&self, server: &Supervised, call: &Call) {
        let is_exchanged = |way: &Way| matches!(way.tokens, Tokens::Exchange(_));
        let is_exchanged = lock(&self.way).as_ref().is_some_and(is_exchanged);
        let Some(bearer) = Bearer::of(&call.caller) else {
            return;
        };
        if call.under_way.is_none() || !is_exchanged || self.bearers.subject(&bearer).is_some() {
            return;
        }
        let tell = |message: String| {
            call.reporter.tell(Event::Progress(Progress {
                progress: 0.0,
                total: None,
                message: Some(message),
            }));
        };
        tell(format!(
            "waits for its caller: the server {} is used with a token that is exchanged for the caller's, and the caller \
             has shown none since the gateway was started anew; any request with one is enough",
            server.spec.id
        ));
        while self.bearers.subject(&bearer).is_none() {
            sleep(SHOWN).await;
        }
        tell("goes on: its caller has shown a token".to_owned());
    }

    async fn called(&self, server: &Supervised, call: Call) -> Result<Outcome, Error> {
        let (seat, token) = self.seat(server, &call.caller).await?;
        match seat.get() {
            Some(remote) => {
                let called = remote.call(call).await;
                called.map_err(|error| token.why(server, error))
            }
            None => Err(down(server, "its connection is gone")),
        }
    }

    /// What was granted for a caller and is not taken any more.
    async fn before(&self, caller: &str) -> Option<Secret> {
        let token = {
            let open = lock(&self.open);
            let own =
                |place: &&Place| matches!(&place.whose, Whose::Named(name) if **name == *caller);
            open.iter().find(own).map(|place| place.token.clone())
        };
        let Some(Token::Granted(login, _)) = token else {
            return None;
        };
        login
            .granted()
            .await
            .ok()
            .flatten()
            .map(|grant| grant.access)
    }

    /// Who has a sign-in of its own, and who waits for one.
    pub(super) fn own_sign_ins(&self) -> Vec<OwnSignIn> {
        self.own.shown()
    }

    /// Ends the connection of a caller, with what runs over it: what was granted is taken back.
    pub(super) fn end(&self, caller: &str) {
        let own = |place: &Place| matches!(&place.whose, Whose::Named(name) if **name == *caller);
        let gone: Vec<Place> = lock(&self.open)
            .extract_if(.., |place| own(place))
            .collect();
        let seats = gone.iter().filter_map(|place| place.seat.get());
        seats.for_each(Remote::close);
    }

    /// Has a caller connected anew, with what is granted for it now.
    pub(super) fn forget(&self, caller: &str) {
        lock(&self.open)
            .retain(|place| !matches!(&place.whose, Whose::Named(name) if **name == *caller));
    }

    pub(super) async fn list(&self, server: &Supervised, ask: List) -> Result<Catalog, Error> {
        let kind = ask.kind;
        if server.is_of_accounts(kind) {
            return self.listed(server, ask).await;
        }
        let known = lock(&self.face)[kind as usize].clone();
        if let Some((catalog, at)) = &known
            && at.elapsed() < FACE
        {
            return Ok(catalog.clone());
        }
        // All of it: what one asks for alone must not be what all are told.
        let listed = self.listed(server, List { only: None, ..ask }).await;
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

    /// What a caller is told of it.
    async fn listed(&self, server: &Supervised, ask: List) -> Result<Catalog, Error> {
        let (seat, token) = self.seat(server, &ask.caller).await?;
        match seat.get() {
            Some(remote) => {
                let listed = remote.list(ask).await;
                listed.map_err(|error| token.why(server, error))
            }
            None => Err(down(server, "its connection is gone")),
        }
    }

    /// The connection of a caller, which is made where there is none.
    async fn seat(
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
            Remote::connect(way.url.as_str(), options(server, true), http).await
        };
        let made = timeout(server.spec.wait, seat.get_or_try_init(|| connect)).await;
        match made {
            Ok(Ok(_)) => Ok((seat, token)),
            Ok(Err(error)) => Err(token.why(server, down(server, &error.to_string()))),
            Err(_) => {
                let why = format!("it did not answer within {:?}", server.spec.wait);
                Err(down(server, &why))
            }
        }
    }

    /// Whose name a caller uses it in; nobody's, where it has none of its own.
    async fn whose(&self, server: &Supervised, caller: &Caller, way: &Way) -> Result<Whose, Error> {
        let Tokens::Granted(address, grants, _) = &way.tokens else {
            let bearer = Bearer::of(caller).map(Whose::Bearer);
            return bearer.ok_or_else(|| {
                let why = "it is used in the name of each caller, and only callers with a token of an authorization server have one";
                down(server, why)
            });
        };
        callers::apart(caller.name()).map_err(|why| down(server, why))?;
        let whose = Whose::Named(caller.shared());
        let known = {
            let open = lock(&self.open);
            let place = open.iter().find(|place| place.whose == whose);
            place.map(|place| (place.token.clone(), place.looked))
        };
        if let Some((_, looked)) = &known
            && looked.elapsed() < TRUE
        {
            return Ok(whose);
        }
        let id = &server.spec.id;
        let kept = callers::granted(grants, id, address, caller.name()).await;
        let kept = kept.map_err(|bad| down(server, &bad.0))?;
        let Some(kept) = kept else {
            self.forget(caller.name());
            if self.own.tell(caller.shared()) {
                server.show();
            }
            let how = server.spec.how.words(id, Some(caller.name()));
            let text = format!(
                "the server {id}: somebody has to sign in for {}, and what others were granted is not used; {how}",
                visible_line(caller.name())
            );
            return Err(Error::new(Kind::Upstream, text).because(SignInIsWhy));
        };
        if let Some((Token::Granted(login, _), _)) = known {
            // Somebody may have signed in with another account meanwhile.
            let now = login.granted().await.ok().flatten();
            if !now.is_some_and(|now| now.access.is(kept.access.reveal())) {
                self.forget(caller.name());
            }
        }
        let mut open = lock(&self.open);
        if let Some(place) = open.iter_mut().find(|place| place.whose == whose) {
            place.looked = Instant::now();
        }
        Ok(whose)
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

    fn token(&self, server: &Supervised, whose: &Whose, way: &Way) -> Result<Token, Error> {
        match (&way.tokens, whose) {
            (Tokens::Exchange(exchange), Whose::Bearer(bearer)) => {
                let (bearers, of) = (self.bearers.clone(), bearer.clone());
                let token = exchange.on_behalf(way.url.clone(), move || bearers.subject(&of));
                Ok(Token::OnBehalf(token))
            }
            (Tokens::Granted(address, grants, secret), Whose::Named(name)) => {
                let spec = &server.spec;
                let at = At {
                    id: &spec.id,
                    address,
                    grants,
                    caller: Some(name),
                };
                let login = at.login(secret.clone()).map_err(|why| down(server, &why))?;
                // Nobody signs in here: a person does, and says for whom.
                let login = login.how(&spec.how.words(&spec.id, Some(name)));
                Ok(Token::Granted(login.build(), server.own_need()))
            }
            _ => Err(down(server, "it is used in another way now")),
        }
    }

    /// Ends the connections that nobody uses, and those of callers whose token has ended.
    fn sweep(&self) {
        lock(&self.open).retain(|place| {
            let ended = match &place.whose {
                Whose::Bearer(bearer) => self.bearers.subject(bearer).is_none(),
                Whose::Named(_) => false,
            };
            !(place.is_idle() && (ended || place.used.elapsed() > IDLE))
        });
    }
}

impl Token {
    /// The error, or that somebody has to sign in for this caller, where that is why.
    fn why(&self, server: &Supervised, error: Error) -> Error {
        match self {
            Token::Granted(_, need) => need.why(&server.spec.id, error),
            Token::OnBehalf(_) => error,
        }
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
