//! Tokens of callers for a server: exchanged for the caller's own token, or granted for it by a person.

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

/// Time for which a credential counts as unchanged. Another process may have revoked it.
const TRUE: Duration = Duration::from_secs(1);

/// Parameters of a new connection.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) url: Url,
    pub(super) http: HttpOptions,
    pub(super) tokens: Tokens,
}

/// Source of the callers' tokens.
#[derive(Clone)]
pub(super) enum Tokens {
    Exchange(TokenExchange),
    /// Credentials that a person granted: the server's address, the store, and the secret of our client.
    Granted(Address, PathBuf, Option<Secret>),
}

/// Identity that owns a connection.
#[derive(Eq, PartialEq)]
pub(super) enum Whose {
    Bearer(Bearer),
    /// Name of a caller, for which a person granted credentials.
    Named(Arc<str>),
}

/// Token source of one caller.
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
        (None, None) => return Err(("there are no credentials for it".to_owned(), false)),
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
        let why = format!("the secret of its token exchange is unavailable: {why}");
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
    /// Returns the stored access token of a caller that the server no longer accepts.
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

    /// Returns the identity under which a caller uses the server. Fails for a caller that has none of its own.
    pub(super) async fn whose(
        &self,
        server: &Supervised,
        caller: &Caller,
        way: &Way,
    ) -> Result<Whose, Error> {
        let Tokens::Granted(address, grants, _) = &way.tokens else {
            let bearer = Bearer::of(caller).map(Whose::Bearer);
            return bearer.ok_or_else(|| {
                let why = "it needs a token that is exchanged for the caller's, and only callers with a token of an authorization server have one";
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
            let error = down(server, "cannot read the credentials of its callers");
            error.with_detail(OperatorDetail::new(bad.to_string()))
        })?;
        let Some(kept) = kept else {
            self.forget(caller.name());
            if self.own.tell(caller.shared()) {
                server.show();
            }
            let how = server.spec.how.words(id, Some(caller.name()));
            let text = format!(
                "the server {id}: a user has to sign in for {}, and credentials of other callers are not used; {how}",
                visible_line(caller.name())
            );
            return Err(Error::new(Kind::Upstream, text).because(SignInIsWhy));
        };
        if let Some((Token::Granted(login, _), _)) = known {
            // A person may have signed in with another account meanwhile.
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
                // The gateway does not start a sign-in here. A person does, and names the caller.
                let login = login.how(&spec.how.words(&spec.id, Some(name)));
                Ok(Token::Granted(login.build(), server.own_need()))
            }
            _ => Err(down(server, "its configuration has changed")),
        }
    }
}

impl Token {
    /// Returns the error, or the need for a sign-in of this caller if that is the cause.
    pub(super) fn why(&self, server: &Supervised, error: Error) -> Error {
        match self {
            Token::Granted(_, need) => need.why(&server.spec.id, error),
            Token::OnBehalf(_) => error,
        }
    }
}
