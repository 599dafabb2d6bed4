//! Whose token is used: one that was exchanged for that of the caller, or one that a person granted for it.

use super::{PerCaller, down, lock, places::Place};
use crate::{
    config::{Address, Exchange},
    door::Bearer,
    servers::{
        Supervised,
        launch::{Launch, secret_of},
        reach::http_options,
    },
    signing_in::{At, Need, SignInIsWhy, callers},
};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::time::Instant;
use toolgate::{Caller, Error, Kind, OperatorDetail, client::HttpOptions, visible_line};
use toolgate_auth::{
    Secret, Url,
    client::{Authenticate, Login, OauthClient, OnBehalf, Scopes, TokenExchange},
};

/// How long it is taken for true that a grant is what it was: another process may have taken it back.
const TRUE: Duration = Duration::from_secs(1);

/// How a connection is made.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) url: Url,
    pub(super) http: HttpOptions,
    pub(super) tokens: Tokens,
}

/// Where the tokens of callers come from.
#[derive(Clone)]
pub(super) enum Tokens {
    Exchange(TokenExchange),
    /// A person granted them, and they are kept there; the secret of our client.
    Granted(Address, PathBuf, Option<Secret>),
}

/// Whose place it is.
#[derive(Eq, PartialEq)]
pub(super) enum Whose {
    Bearer(Bearer),
    /// What an operator granted is for a name.
    Named(Arc<str>),
}

/// The way to the tokens of one caller.
#[derive(Clone)]
pub(super) enum Token {
    OnBehalf(OnBehalf),
    Granted(Login, Arc<Need>),
}

pub(super) async fn way(
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
    /// What was granted for a caller and is not taken any more.
    pub(super) async fn before(&self, caller: &str) -> Option<Secret> {
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

    /// Whose name a caller uses it in; nobody's, where it has none of its own.
    pub(super) async fn whose(
        &self,
        server: &Supervised,
        caller: &Caller,
        way: &Way,
    ) -> Result<Whose, Error> {
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
        let kept = kept.map_err(|bad| {
            let error = down(server, "what was granted for its callers cannot be read");
            error.with_detail(OperatorDetail::new(bad.to_string()))
        })?;
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

    pub(super) fn token(
        &self,
        server: &Supervised,
        whose: &Whose,
        way: &Way,
    ) -> Result<Token, Error> {
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
}

impl Token {
    /// The error, or that somebody has to sign in for this caller, where that is why.
    pub(super) fn why(&self, server: &Supervised, error: Error) -> Error {
        match self {
            Token::Granted(_, need) => need.why(&server.spec.id, error),
            Token::OnBehalf(_) => error,
        }
    }
}
