//! OAuth client of the gateway at a server's authorization server.

use crate::config::{
    ClientCredential, ClientRegistration, PreregisteredClient, RemoteAddress, SignInParty,
};
use std::sync::Arc;
use toolgate_auth::{
    Secret, Url,
    client::{ClientAuthentication, OAuthClient, OAuthClientBuilder, RegisteredClient, ScopeSet},
    fetch::AddressPolicy,
    jose::{SignatureAlgorithm, SigningKey},
};

/// Builds the OAuth client for a server, without a store. `secret` is the secret or private key that
/// [`Client::given`] refers to.
///
/// # Errors
/// The address cannot be used for OAuth, or the key is invalid.
pub(super) fn login(
    address: &RemoteAddress,
    secret: Option<Secret>,
) -> Result<OAuthClientBuilder, String> {
    let url = Url::parse(&address.url).map_err(|bad| format!("its url cannot be used: {bad}"))?;
    let mut reach = AddressPolicy::of(&url);
    if address.private {
        reach = reach.danger_and_private();
    }
    let login = OAuthClient::builder(url).name("Toolgate").reach(reach);
    match &address.client {
        ClientRegistration::Registers => Ok(login),
        ClientRegistration::Document(at) => Ok(login.client_document(at.clone())),
        ClientRegistration::Known(known) => {
            let client = RegisteredClient::new(known.id.as_str(), authenticate(known, secret)?);
            Ok(login.client(Some(&known.issuer), client))
        }
    }
}

/// Builds the OAuth client for the client credentials grant. Nothing is stored, because a new token can always be
/// requested.
///
/// # Errors
/// As for [`login`].
pub(crate) fn by_itself(
    address: &RemoteAddress,
    secret: Option<Secret>,
) -> Result<OAuthClientBuilder, String> {
    let login = login(address, secret)?.client_credentials();
    match &address.sign_in {
        SignInParty::Client(scopes) if !scopes.is_empty() => {
            Ok(login.scopes(ScopeSet::read(&scopes.join(" "))))
        }
        _ => Ok(login),
    }
}

fn authenticate(
    known: &PreregisteredClient,
    secret: Option<Secret>,
) -> Result<ClientAuthentication, String> {
    match (&known.shows, secret) {
        (ClientCredential::Nothing, _) => Ok(ClientAuthentication::None),
        (ClientCredential::Secret(_), Some(secret)) => Ok(ClientAuthentication::Secret(secret)),
        (ClientCredential::Key(given), Some(pem)) => {
            let key =
                key(&pem).map_err(|why| format!("its client_key, {}: {why}", given.shown()))?;
            Ok(ClientAuthentication::Key(Arc::new(key)))
        }
        (ClientCredential::Secret(given) | ClientCredential::Key(given), None) => {
            Err(format!("{} was not read", given.shown()))
        }
    }
}

/// Reads a private key with the algorithm that it fits.
fn key(pem: &Secret) -> Result<SigningKey, String> {
    let all = [
        SignatureAlgorithm::Es256,
        SignatureAlgorithm::EdDsa,
        SignatureAlgorithm::Rs256,
    ];
    let mut read = all
        .map(|algorithm| SigningKey::from_pem(algorithm, pem))
        .into_iter();
    match read.find_map(Result::ok) {
        Some(key) => Ok(key),
        // The error is the same for each algorithm, unless the key is of another type.
        None => Err(match SigningKey::from_pem(SignatureAlgorithm::Es256, pem) {
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
