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
/// [`Gateway::given`] refers to.
///
/// # Errors
/// The address cannot be used for OAuth, or the key is invalid.
pub(super) fn client_builder(
    address: &RemoteAddress,
    secret: Option<Secret>,
) -> Result<OAuthClientBuilder, String> {
    let url = Url::parse(&address.url)
        .map_err(|bad| format!("the URL cannot be used: {bad}; correct it"))?;
    let mut reach = AddressPolicy::for_server(&url);
    if address.danger_private {
        reach = reach.danger_and_private();
    }
    let login = OAuthClient::builder(url)
        .name("Toolgate")
        .address_policy(reach);
    match &address.client {
        ClientRegistration::Dynamic => Ok(login),
        ClientRegistration::MetadataDocument(at) => Ok(login.client_document(at.clone())),
        ClientRegistration::Preregistered(known) => {
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
pub(crate) fn client_credentials_builder(
    address: &RemoteAddress,
    secret: Option<Secret>,
) -> Result<OAuthClientBuilder, String> {
    let login = client_builder(address, secret)?.client_credentials();
    match &address.sign_in {
        SignInParty::Gateway(scopes) if !scopes.is_empty() => {
            Ok(login.scopes(ScopeSet::parse(&scopes.join(" "))))
        }
        _ => Ok(login),
    }
}

fn authenticate(
    known: &PreregisteredClient,
    secret: Option<Secret>,
) -> Result<ClientAuthentication, String> {
    match (&known.credential, secret) {
        (ClientCredential::Public, _) => Ok(ClientAuthentication::None),
        (ClientCredential::Secret(_), Some(secret)) => Ok(ClientAuthentication::Secret(secret)),
        (ClientCredential::PrivateKey(given), Some(pem)) => {
            let key = read_private_key(&pem).map_err(|why| {
                format!(
                    "the private key in {} cannot be used: {why}",
                    given.describe_source()
                )
            })?;
            Ok(ClientAuthentication::Key(Arc::new(key)))
        }
        (ClientCredential::Secret(given) | ClientCredential::PrivateKey(given), None) => {
            Err(format!(
                "internal error: {} was not read; report this",
                given.describe_source()
            ))
        }
    }
}

/// Reads a private key with the algorithm that it fits.
fn read_private_key(pem: &Secret) -> Result<SigningKey, String> {
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
            Err(_) if pem.reveal().contains("BEGIN PRIVATE KEY") => {
                "it is not a valid private key for a supported algorithm; use a key for ES256 (P-256), EdDSA (Ed25519) or RS256".to_owned()
            }
            Err(bad) => bad.to_string(),
            Ok(_) => String::new(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_an_invalid_key_without_revealing_it() {
        for (pem, told) in [
            ("canary", "it has no BEGIN PRIVATE KEY"),
            ("-----BEGIN EC PRIVATE KEY-----\ncanary\n", "openssl pkcs8"),
            (
                "-----BEGIN PRIVATE KEY-----\nY2FuYXJ5\n-----END PRIVATE KEY-----\n",
                "use a key for ES256",
            ),
        ] {
            let error = read_private_key(&Secret::new(pem)).map(drop).unwrap_err();
            assert!(error.contains(told) && !error.contains("canary"), "{error}");
        }
    }
}
