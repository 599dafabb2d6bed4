//! OAuth client of the gateway at a server's authorization server.

use crate::config::{Address, Client, KnownClient, Shows, SignsIn};
use std::sync::Arc;
use toolgate_auth::{
    Secret, Url,
    client::{Authenticate, Login, LoginBuilder, OauthClient, Scopes},
    fetch::Reach,
    jose::{Algorithm, SigningKey},
};

/// Builds the OAuth client for a server, without a store. `secret` is the secret or private key that
/// [`Client::given`] refers to.
///
/// # Errors
/// The address cannot be used for OAuth, or the key is invalid.
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

/// Builds the OAuth client for the client credentials grant. Nothing is stored, because a new token can always be
/// requested.
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

/// Reads a private key with the algorithm that it fits.
fn key(pem: &Secret) -> Result<SigningKey, String> {
    let all = [Algorithm::Es256, Algorithm::EdDsa, Algorithm::Rs256];
    let mut read = all
        .map(|algorithm| SigningKey::from_pem(algorithm, pem))
        .into_iter();
    match read.find_map(Result::ok) {
        Some(key) => Ok(key),
        // The error is the same for each algorithm, unless the key is of another type.
        None => Err(match SigningKey::from_pem(Algorithm::Es256, pem) {
            Err(bad) if pem.reveal().contains("BEGIN PRIVATE KEY") => format!(
                "{bad}, nor for another supported algorithm; use a key for ES256 (P-256), EdDSA (Ed25519) or RS256"
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
                "use a key for ES256",
            ),
        ] {
            let error = key(&Secret::new(pem)).map(drop).unwrap_err();
            assert!(error.contains(told) && !error.contains("canary"), "{error}");
        }
    }
}
