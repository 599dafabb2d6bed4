//! Remote server: connected by its URL, used, and connected again.

use super::{
    SupervisedServer,
    launch::{ProcessLauncher, secret_of},
    life::{OpeningAttempt, ServerEnd, options, run, stopping},
};
use crate::{
    config::{RemoteAddress, SignInParty},
    signing_in::{self, ReportingCredentials, SignInTarget},
};
use std::{future::pending, time::Duration};
use tokio::sync::watch;
use toolgate::client::{HttpOptions, RemoteServer};

/// Connects to a server, and uses it until the connection ends.
pub(super) async fn reach(
    server: &SupervisedServer,
    address: &RemoteAddress,
    launch: &dyn ProcessLauncher,
    mut stop: watch::Receiver<bool>,
) -> ServerEnd {
    // Subscribe before the credentials are read.
    let taken_back = server.taken_back();
    let http = tokio::select! {
        http = with_credentials(server, address, launch) => http,
        _ = stop.wait_for(|stop| *stop) => return stopping(),
    };
    let http = match http {
        Ok(http) => http,
        Err((why, again)) => return ServerEnd::NotStarted(why, again),
    };
    let opening = RemoteServer::connect(&address.url, options(server, OpeningAttempt::First), http);
    let mut out = false;
    let end = tokio::select! {
        end = run(server, Box::pin(pending()), opening, OpeningAttempt::Second) => end,
        () = taken_back => {
            out = true;
            ServerEnd::Gone("a user signed out".to_owned(), None)
        }
        _ = stop.wait_for(|stop| *stop) => stopping(),
    };
    server.end().await;
    if out {
        // Ending the session used the credential once more, so forget it again.
        server.need.forget();
    }
    end
}

/// Returns the HTTP options with headers and credentials.
async fn with_credentials(
    server: &SupervisedServer,
    address: &RemoteAddress,
    launch: &dyn ProcessLauncher,
) -> Result<HttpOptions, (String, bool)> {
    let spec = &server.spec;
    let http = http_options(address, launch, spec.start).await?;
    let Some(grants) = spec.grants.as_deref() else {
        return Ok(http);
    };
    let secret = secret_of(address, launch, spec.start).await?;
    let login = match (&address.sign_in, address.no_sign_in()) {
        (SignInParty::Client(_), _) => signing_in::by_itself(address, secret),
        // The gateway does not start a sign-in here. A person does, by a command, and its credentials are used.
        (SignInParty::Person, None) => {
            let at = SignInTarget {
                id: &spec.id,
                address,
                grants,
                caller: None,
            };
            at.login(secret)
                .map(|login| login.how(&spec.how.words(&spec.id, None)))
        }
        (SignInParty::Person, Some(_)) => return Ok(http),
    };
    let login = login.map_err(|why| (why, false))?;
    Ok(http.credentials(ReportingCredentials {
        login: login.build(),
        need: server.need.clone(),
    }))
}

/// Returns the HTTP options with headers. The error says whether a retry may help.
pub(super) async fn http_options(
    address: &RemoteAddress,
    launch: &dyn ProcessLauncher,
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
        launch::{LaunchError, ServerProcess},
    };
    use super::*;
    use crate::config::{ClientRegistration, ConfigValue, CredentialOwner};
    use toolgate::BoxFuture;
    use toolgate_auth::Secret;

    /// Launcher with an environment of its own.
    struct TestLauncher(Option<&'static str>);

    impl ProcessLauncher for TestLauncher {
        fn launch<'a>(
            &'a self,
            _: &'a ServerSpec,
        ) -> BoxFuture<'a, Result<Box<dyn ServerProcess>, LaunchError>> {
            unreachable!("nothing is started for an address")
        }

        fn read<'a>(
            &'a self,
            given: &'a ConfigValue,
            _: Duration,
        ) -> BoxFuture<'a, Result<Secret, String>> {
            Box::pin(async { given.read_with(|_| self.0.map(str::to_owned)) })
        }
    }

    #[tokio::test]
    async fn a_header_of_the_environment_has_to_be_there() {
        let clear = ConfigValue::Clear("1".to_owned());
        let env = ConfigValue::Env("CANARY".to_owned());
        let address = RemoteAddress {
            url: "https://a.test/".to_owned(),
            headers: vec![("x-a".to_owned(), clear), ("Authorization".to_owned(), env)],
            client: ClientRegistration::Registers,
            sign_in: SignInParty::Person,
            private: false,
            exchange: None,
            grants: CredentialOwner::Server,
        };
        let options =
            async |env| http_options(&address, &TestLauncher(env), Duration::from_secs(1)).await;
        let (error, again) = options(None).await.unwrap_err();
        assert!(error.contains("CANARY is not set") && !again, "{error}");
        let fine = options(Some("Bearer canary\n")).await.unwrap();
        assert!(!format!("{fine:?}").contains("canary"));
        let (error, _) = options(Some("a\nb canary")).await.unwrap_err();
        assert!(!error.contains("canary"), "{error}");
    }
}
