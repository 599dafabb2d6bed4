//! A server that is reached by its address: opened, kept in use, and opened again.

use super::{
    Supervised,
    launch::Launch,
    life::{End, options, run, stopping},
};
use crate::{
    config::Address,
    signing_in::{self, Watched},
};
use std::{future::pending, time::Duration};
use tokio::sync::watch;
use toolgate::client::{HttpOptions, Remote};

/// One opening, to the end of its use.
pub(super) async fn reach(
    server: &Supervised,
    address: &Address,
    launch: &dyn Launch,
    mut stop: watch::Receiver<bool>,
) -> End {
    let env = |name: &str| std::env::var(name).ok();
    let http = tokio::select! {
        http = http_options(address, launch, server.spec.start) => http,
        _ = stop.wait_for(|stop| *stop) => return stopping(),
    };
    let http = http.and_then(|http| {
        let grants = server.spec.grants.as_deref();
        match grants.filter(|_| !address.has_authorization()) {
            // Nobody signs in here: a person does, by a command, and what was granted is used.
            Some(grants) => {
                let console = server.spec.console.as_deref();
                let login = signing_in::login(&server.spec.id, address, grants, console, None, env);
                let watched = login.map(|login| {
                    http.credentials(Watched {
                        login: login.build(),
                        need: server.need.clone(),
                    })
                });
                watched.map_err(|why| (why, false))
            }
            None => Ok(http),
        }
    });
    let http = match http {
        Ok(http) => http,
        Err((why, again)) => return End::NotStarted(why, again),
    };
    let opening = Remote::connect(&address.url, options(server, true), http);
    let end = tokio::select! {
        end = run(server, Box::pin(pending()), opening, false) => end,
        _ = stop.wait_for(|stop| *stop) => stopping(),
    };
    server.end().await;
    end
}

/// The headers, or why there are none and whether there may be later.
pub(super) async fn http_options(
    address: &Address,
    launch: &dyn Launch,
    within: Duration,
) -> Result<HttpOptions, (String, bool)> {
    let mut http = HttpOptions::default();
    for (name, given) in &address.headers {
        let value = launch.read(given, within).await.map_err(|why| {
            let why = format!("its header {name} cannot be sent: {why}");
            (why, given.may_come())
        })?;
        http = http
            .header(name, value.reveal())
            .map_err(|bad| (format!("its header {name} cannot be sent: {bad}"), false))?;
    }
    Ok(http)
}

#[cfg(test)]
mod tests {
    use super::super::{
        ServerSpec,
        launch::{NotStarted, Process},
    };
    use super::*;
    use crate::config::{Given, GrantsOf};
    use toolgate::BoxFuture;
    use toolgate_auth::Secret;

    /// An environment of its own.
    struct Only(Option<&'static str>);

    impl Launch for Only {
        fn launch<'a>(
            &'a self,
            _: &'a ServerSpec,
        ) -> BoxFuture<'a, Result<Box<dyn Process>, NotStarted>> {
            unreachable!("nothing is started for an address")
        }

        fn read<'a>(
            &'a self,
            given: &'a Given,
            _: Duration,
        ) -> BoxFuture<'a, Result<Secret, String>> {
            Box::pin(async { given.read_with(|_| self.0.map(str::to_owned)) })
        }
    }

    #[tokio::test]
    async fn a_header_of_the_environment_has_to_be_there() {
        let clear = Given::Clear("1".to_owned());
        let env = Given::Env("CANARY".to_owned());
        let address = Address {
            url: "https://a.test/".to_owned(),
            headers: vec![("x-a".to_owned(), clear), ("Authorization".to_owned(), env)],
            client: None,
            exchange: None,
            grants: GrantsOf::Server,
        };
        let options = async |env| http_options(&address, &Only(env), Duration::from_secs(1)).await;
        let (error, again) = options(None).await.unwrap_err();
        assert!(error.contains("CANARY is not set") && !again, "{error}");
        let fine = options(Some("Bearer canary\n")).await.unwrap();
        assert!(!format!("{fine:?}").contains("canary"));
        let (error, _) = options(Some("a\nb canary")).await.unwrap_err();
        assert!(!error.contains("canary"), "{error}");
    }
}
