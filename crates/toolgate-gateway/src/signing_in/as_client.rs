//! As which client the gateway comes to the authorization server of a server.

use crate::config::{Address, Client, KnownClient, Shows, SignsIn};
use std::sync::Arc;
use toolgate_auth::{
    Secret, Url,
    client::{Authenticate, Login, LoginBuilder, OauthClient, Scopes},
    fetch::Reach,
    jose::{Algorithm, SigningKey},
};

/// The way to the tokens of a server, without what is kept. `secret` is what [`Client::given`] led to: a secret or a
/// private key.
///
/// # Errors
/// Its address cannot be used for this, or its key is none.
pub(super) fn login(address: &Address, secret: Option<Secret>) -> Result<LoginBuilder, String> {
    let url = Url::parse(&address.url).map_err(|bad| format!("its url cannot be used: {bad}"))?;
    let mut reach = Reach::of(&url);
    if address.private {
        reach = reach.danger_and_private();
    }
    let login = Login::builder(url).name("Toolgate").reach(reach);
    match &address.client {
        Client::Registers => Ok(login),
        Client::Document(at) => Ok(login.client_document(at.clone())),
        Client::Known(known) => {
            let client = OauthClient::new(known.id.as_str(), authenticate(known, secret)?);
            Ok(login.client(Some(&known.issuer), client))
        }
    }
}

/// The same where nobody signs in but the gateway itself. Nothing is kept: there is always another token.
///
/// # Errors
/// As for [`login`].
pub(crate) fn by_itself(address: &Address, secret: Option<Secret>) -> Result<LoginBuilder, String> {
    let login = login(address, secret)?.client_credentials();
    match &address.sign_in {
        SignsIn::Client(scopes) if !scopes.is_empty() => {
            Ok(login.scopes(Scopes::read(&scopes.join(" "))))
        }
        _ => Ok(login),
    }
}

fn authenticate(known: &KnownClient, secret: Option<Secret>) -> Result<Authenticate, String> {
    match (&known.shows, secret) {
        (Shows::Nothing, _) => Ok(Authenticate::None),
        (Shows::Secret(_), Some(secret)) => Ok(Authenticate::Secret(secret)),
        (Shows::Key(given), Some(pem)) => {
            let key =
                key(&pem).map_err(|why| format!("its client_key, {}: {why}", given.shown()))?;
            Ok(Authenticate::Key(Arc::new(key)))
        }
        (Shows::Secret(given) | Shows::Key(given), None) => {
            Err(format!("{} was not read", given.shown()))
        }
    }
}

/// A private key of whichever algorithm it fits.
fn key(pem: &Secret) -> Result<SigningKey, String> {
    let all = [Algorithm::Es256, Algorithm::EdDsa, Algorithm::Rs256];
    let mut read = all
        .map(|algorithm| SigningKey::from_pem(algorithm, pem))
        .into_iter();
    match read.find_map(Result::ok) {
        Some(key) => Ok(key),
        // It says the same of each, unless it is of another kind.
        None => Err(match SigningKey::from_pem(Algorithm::Es256, pem) {
            Err(bad) if pem.reveal().contains("BEGIN PRIVATE KEY") => format!(
                "{bad}, and for no other that is known here; write one for ES256 (P-256), EdDSA (Ed25519) or RS256"
            ),
            Err(bad) => bad.to_string(),
            Ok(_) => String::new(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_no_key_is_refused_and_not_told() {
        for (pem, told) in [
            ("canary", "it has no BEGIN PRIVATE KEY"),
            ("-----BEGIN EC PRIVATE KEY-----\ncanary\n", "openssl pkcs8"),
            (
                "-----BEGIN PRIVATE KEY-----\nY2FuYXJ5\n-----END PRIVATE KEY-----\n",
                "write one for ES256",
            ),
        ] {
            let error = key(&Secret::new(pem)).map(drop).unwrap_err();
            assert!(error.contains(told) && !error.contains("canary"), "{error}");
        }
    }
}
