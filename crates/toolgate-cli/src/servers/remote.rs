//! Remote server: connected by its URL, used, and connected again.

use super::{
    SupervisedServer,
    launch::{ProcessLauncher, client_secret},
    lifecycle::{OpeningAttempt, ServerEnd, remote_options, run_connection, stopping},
};
use crate::{
    config::{RemoteAddress, SignInParty},
    oauth::{self, ReportingCredentials, SignInTarget},
};
use std::{future::pending, time::Duration};
use tokio::sync::watch;
use toolgate::client::{HttpOptions, RemoteServer};

/// Connects to a server, and uses it until the connection ends.
pub(super) async fn run_remote(
    server: &SupervisedServer,
    address: &RemoteAddress,
    launch: &dyn ProcessLauncher,
    mut stop: watch::Receiver<bool>,
) -> ServerEnd {
    // Subscribe before the credentials are read.
    let taken_back = server.wait_for_revocation();
    let http = tokio::select! {
        http = options_with_credentials(server, address, launch) => http,
        _ = stop.wait_for(|stop| *stop) => return stopping(),
    };
    let http = match http {
        Ok(http) => http,
        Err((why, again)) => return ServerEnd::NotStarted(why, again),
    };
    let opening = RemoteServer::connect(
        &address.url,
        remote_options(server, OpeningAttempt::First),
        http,
    );
    let mut out = false;
    let end = tokio::select! {
        end = run_connection(server, Box::pin(pending()), opening, OpeningAttempt::Second) => end,
        () = taken_back => {
            out = true;
            ServerEnd::Lost("a user signed out".to_owned(), None)
        }
        _ = stop.wait_for(|stop| *stop) => stopping(),
    };
    server.end_session().await;
    if out {
        // Ending the session used the credential once more, so forget it again.
        server.sign_in_need.forget_token();
    }
    end
}

/// Returns the HTTP options with headers and credentials.
async fn options_with_credentials(
    server: &SupervisedServer,
    address: &RemoteAddress,
    launch: &dyn ProcessLauncher,
) -> Result<HttpOptions, (String, bool)> {
    let spec = &server.spec;
    let http = http_options(address, launch, spec.start_timeout).await?;
    let Some(grants) = spec.credentials_dir.as_deref() else {
        return Ok(http);
    };
    let secret = client_secret(address, launch, spec.start_timeout).await?;
    let login = match (&address.sign_in, address.sign_in_obstacle()) {
        (SignInParty::Gateway(_), _) => oauth::client_credentials_builder(address, secret),
        // The gateway does not start a sign-in here. A person does, by a command, and its credentials are used.
        (SignInParty::Person, None) => {
            let at = SignInTarget {
                server_id: &spec.id,
                address,
                credentials_dir: grants,
                caller: None,
            };
            at.oauth_client(secret)
                .map(|login| login.sign_in_hint(&spec.sign_in_instructions.text(&spec.id, None)))
        }
        (SignInParty::Person, Some(_)) => return Ok(http),
    };
    let login = login.map_err(|why| (why, false))?;
    Ok(http.credentials(ReportingCredentials {
        client: login.build(),
        need: server.sign_in_need.clone(),
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
            let why = format!("the value for its header {name} cannot be read: {why}");
            (why, given.can_retry())
        })?;
        http = http
            .header(name, value.reveal())
            .map_err(|bad| (format!("its header {name} cannot be used: {bad}"), false))?;
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
    use toolgate_auth::Secret;
    use toolgate_core::BoxFuture;

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
    async fn requires_a_header_from_the_environment() {
        let clear = ConfigValue::Plaintext("1".to_owned());
        let env = ConfigValue::Env("CANARY".to_owned());
        let address = RemoteAddress {
            url: "https://a.test/".to_owned(),
            headers: vec![("x-a".to_owned(), clear), ("Authorization".to_owned(), env)],
            client: ClientRegistration::Dynamic,
            sign_in: SignInParty::Person,
            danger_private: false,
            exchange: None,
            credential_owner: CredentialOwner::Shared,
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
