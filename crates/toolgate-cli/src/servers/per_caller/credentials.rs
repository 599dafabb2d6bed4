//! Tokens of callers for a server: exchanged for the caller's own token, or granted for it by a person.

use super::{CallerConnections, lock, pool::CallerConnection, unusable_error};
use crate::{
    authentication::TokenOwner,
    config::{ExchangeSettings, RemoteAddress},
    oauth::{SignInNeed, SignInRequired, SignInTarget, caller_credentials},
    servers::{
        SupervisedServer,
        launch::{ProcessLauncher, client_secret},
        remote::http_options,
    },
};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::time::Instant;
use toolgate::client::HttpOptions;
use toolgate_auth::{
    Secret, Url,
    client::{
        ClientAuthentication, ExchangedCredentials, OAuthClient, RegisteredClient, ScopeSet,
        TokenExchange,
    },
};
use toolgate_core::{Caller, Error, ErrorKind, OperatorDetail, visible_line};

/// Time for which a credential counts as unchanged. Another process may have revoked it.
const CREDENTIAL_CACHE_TTL: Duration = Duration::from_secs(1);

/// Parameters of a new connection.
#[derive(Clone)]
pub(super) struct ConnectionParameters {
    pub(super) url: Url,
    pub(super) http: HttpOptions,
    pub(super) token_source: CallerTokenSource,
}

/// Source of the callers' tokens.
#[derive(Clone)]
pub(super) enum CallerTokenSource {
    Exchange(TokenExchange),
    /// Credentials that a person granted: the server's address, the store, and the secret of our client.
    Granted(RemoteAddress, PathBuf, Option<Secret>),
}

/// Identity that owns a connection.
#[derive(Eq, PartialEq)]
pub(super) enum CallerIdentity {
    Bearer(TokenOwner),
    /// Name of a caller, for which a person granted credentials.
    Named(Arc<str>),
}

/// Token source of one caller.
#[derive(Clone)]
pub(super) enum CallerCredentials {
    OnBehalf(ExchangedCredentials),
    Granted(OAuthClient, Arc<SignInNeed>),
}

pub(super) async fn connection_parameters(
    server: &SupervisedServer,
    address: &RemoteAddress,
    launch: &dyn ProcessLauncher,
) -> Result<ConnectionParameters, (String, bool)> {
    let http = http_options(address, launch, server.spec.start_timeout).await?;
    let url = Url::parse(&address.url)
        .map_err(|bad| (format!("its URL cannot be used: {bad}; correct it"), false))?;
    let tokens = match (&address.exchange, &server.spec.credentials_dir) {
        (Some(exchange), _) => {
            CallerTokenSource::Exchange(token_exchange(server, exchange, launch).await?)
        }
        (None, Some(grants)) => {
            let secret = client_secret(address, launch, server.spec.start_timeout).await?;
            CallerTokenSource::Granted(address.clone(), grants.clone(), secret)
        }
        (None, None) => {
            return Err((
                "internal error: the gateway has no directory for its credentials; report this"
                    .to_owned(),
                false,
            ));
        }
    };
    Ok(ConnectionParameters {
        url,
        http,
        token_source: tokens,
    })
}

async fn token_exchange(
    server: &SupervisedServer,
    exchange: &ExchangeSettings,
    launch: &dyn ProcessLauncher,
) -> Result<TokenExchange, (String, bool)> {
    let secret = launch
        .read(&exchange.client_secret, server.spec.start_timeout)
        .await;
    let secret = secret.map_err(|why| {
        let why = format!("the client secret for its token exchange cannot be read: {why}");
        (why, exchange.client_secret.can_retry())
    })?;
    let client = RegisteredClient::new(
        exchange.client_id.as_str(),
        ClientAuthentication::Secret(secret),
    );
    let mut with = TokenExchange::new(exchange.token_endpoint.clone(), client)
        .scopes(ScopeSet::parse(&exchange.scopes.join(" ")));
    if let Some(audience) = &exchange.audience {
        with = with.audience(audience);
    }
    Ok(with)
}

impl CallerConnections {
    /// Returns the stored access token of a caller that the server no longer accepts.
    pub(super) async fn rejected_token(&self, caller: &str) -> Option<Secret> {
        let token = {
            let open = lock(&self.connections);
            let own = |place: &&CallerConnection| matches!(&place.owner, CallerIdentity::Named(name) if **name == *caller);
            open.iter().find(own).map(|place| place.token.clone())
        };
        let Some(CallerCredentials::Granted(login, _)) = token else {
            return None;
        };
        login
            .credential()
            .await
            .ok()
            .flatten()
            .map(|grant| grant.access_token)
    }

    /// Returns the identity under which a caller uses the server. Fails for a caller that has none of its own.
    pub(super) async fn identify(
        &self,
        server: &SupervisedServer,
        caller: &Caller,
        way: &ConnectionParameters,
    ) -> Result<CallerIdentity, Error> {
        let CallerTokenSource::Granted(address, grants, _) = &way.token_source else {
            let bearer = TokenOwner::from_caller(caller).map(CallerIdentity::Bearer);
            return bearer.ok_or_else(|| {
                let why = "it accepts only tokens that the gateway gets in exchange for the caller's OAuth token, and this caller sent none; call with an OAuth token";
                unusable_error(server, why)
            });
        };
        caller_credentials::check_distinguishable(caller.name())
            .map_err(|why| unusable_error(server, why))?;
        let whose = CallerIdentity::Named(caller.shared_name());
        let known = {
            let open = lock(&self.connections);
            let place = open.iter().find(|place| place.owner == whose);
            place.map(|place| (place.token.clone(), place.checked_at))
        };
        if let Some((_, looked)) = &known
            && looked.elapsed() < CREDENTIAL_CACHE_TTL
        {
            return Ok(whose);
        }
        let id = &server.spec.id;
        let kept = caller_credentials::stored_credential(grants, id, address, caller.name()).await;
        let kept = kept.map_err(|bad| {
            let error = unusable_error(server, "the stored credentials of its callers cannot be read; the operator has to repair them");
            error.with_detail(OperatorDetail::new(bad.to_string()))
        })?;
        let Some(kept) = kept else {
            self.drop_connection(caller.name());
            if self.sign_ins.mark_asked(caller.shared_name()) {
                server.notify_console();
            }
            let how = server
                .spec
                .sign_in_instructions
                .text(id, Some(caller.name()));
            let text = format!(
                "the server {id}: a user has to sign in for {}, because each caller needs separate credentials; {how}",
                visible_line(caller.name())
            );
            return Err(Error::new(ErrorKind::Upstream, text).with_source(SignInRequired));
        };
        if let Some((CallerCredentials::Granted(login, _), _)) = known {
            // A person may have signed in with another account meanwhile.
            let now = login.credential().await.ok().flatten();
            if !now.is_some_and(|now| now.access_token.matches(kept.access_token.reveal())) {
                self.drop_connection(caller.name());
            }
        }
        let mut open = lock(&self.connections);
        if let Some(place) = open.iter_mut().find(|place| place.owner == whose) {
            place.checked_at = Instant::now();
        }
        Ok(whose)
    }

    pub(super) fn credentials_for(
        &self,
        server: &SupervisedServer,
        whose: &CallerIdentity,
        way: &ConnectionParameters,
    ) -> Result<CallerCredentials, Error> {
        match (&way.token_source, whose) {
            (CallerTokenSource::Exchange(exchange), CallerIdentity::Bearer(bearer)) => {
                let (bearers, of) = (self.caller_tokens.clone(), bearer.clone());
                let token = exchange.on_behalf(way.url.clone(), move || bearers.subject_token(&of));
                Ok(CallerCredentials::OnBehalf(token))
            }
            (CallerTokenSource::Granted(address, grants, secret), CallerIdentity::Named(name)) => {
                let spec = &server.spec;
                let at = SignInTarget {
                    server_id: &spec.id,
                    address,
                    credentials_dir: grants,
                    caller: Some(name),
                };
                let login = at
                    .oauth_client(secret.clone())
                    .map_err(|why| unusable_error(server, &why))?;
                // The gateway does not start a sign-in here. A person does, and names the caller.
                let login =
                    login.sign_in_hint(&spec.sign_in_instructions.text(&spec.id, Some(name)));
                Ok(CallerCredentials::Granted(
                    login.build(),
                    server.caller_sign_in_need(),
                ))
            }
            _ => Err(unusable_error(
                server,
                "its configuration changed during the call; call again",
            )),
        }
    }
}

impl CallerCredentials {
    /// Returns the error, or the need for a sign-in of this caller if that is the cause.
    pub(super) fn explain_error(&self, server: &SupervisedServer, error: Error) -> Error {
        match self {
            CallerCredentials::Granted(_, need) => need.explain_error(&server.spec.id, error),
            CallerCredentials::OnBehalf(_) => error,
        }
    }
}
