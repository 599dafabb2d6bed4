//! A server that is reached by its address: opened, kept in use, and opened again.

use super::{
    Supervised,
    life::{End, options, run, stopping},
};
use crate::{config::Address, signing_in};
use std::future::pending;
use tokio::sync::watch;
use toolgate::client::{BadHeader, HttpOptions, Remote};

/// One opening, to the end of its use.
pub(super) async fn reach(
    server: &Supervised,
    address: &Address,
    mut stop: watch::Receiver<bool>,
) -> End {
    let env = |name: &str| std::env::var(name).ok();
    let http = http_options(address, env).and_then(|http| {
        let grants = server.spec.grants.as_deref();
        match grants.filter(|_| !address.has_authorization()) {
            // Nobody signs in here: a person does, by a command, and what was granted is used.
            Some(grants) => signing_in::login(&server.spec.id, address, grants, env)
                .map(|login| http.credentials(login.build())),
            None => Ok(http),
        }
    });
    let http = match http {
        Ok(http) => http,
        Err(why) => return End::NotStarted(why, false),
    };
    let opening = Remote::connect(&address.url, options(server, true), http);
    let end = tokio::select! {
        end = run(server, Box::pin(pending()), opening, false) => end,
        _ = stop.wait_for(|stop| *stop) => stopping(),
    };
    server.end().await;
    end
}

/// The headers, with what our environment has of them.
fn http_options(
    address: &Address,
    env: impl Fn(&str) -> Option<String>,
) -> Result<HttpOptions, String> {
    let mut http = HttpOptions::default();
    let bad = |name: &str, bad: BadHeader| format!("its header {name} cannot be sent: {bad}");
    for (name, value) in &address.headers {
        http = http.header(name, value).map_err(|b| bad(name, b))?;
    }
    for (name, variable) in &address.headers_env {
        let Some(value) = env(variable) else {
            return Err(format!(
                "the environment variable {variable} is not set; set it to the value of its header {name}"
            ));
        };
        let value = value.trim_end_matches(['\r', '\n']);
        http = http.header(name, value).map_err(|b| bad(name, b))?;
    }
    Ok(http)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_the_environment_has_to_be_there() {
        let address = Address {
            url: "https://a.test/".to_owned(),
            headers: vec![("x-a".to_owned(), "1".to_owned())],
            headers_env: vec![("Authorization".to_owned(), "CANARY".to_owned())],
            client: None,
        };
        let error = http_options(&address, |_| None).unwrap_err();
        assert!(error.contains("CANARY is not set"), "{error}");
        let fine = http_options(&address, |_| Some("Bearer canary\n".to_owned())).unwrap();
        assert!(!format!("{fine:?}").contains("canary"));
        let error = http_options(&address, |_| Some("a\nb canary".to_owned())).unwrap_err();
        assert!(!error.contains("canary"), "{error}");
    }
}
