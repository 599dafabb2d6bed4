//! JSON form of credentials and clients for encryption. Apart from HTTP requests, only this module serializes secrets.

use super::{
    super::{ClientAuthentication, OAuthCredential, RegisteredClient, ScopeSet},
    StoreError,
};
use crate::Secret;
use serde_json::{Value, json};

/// Maximum size of a serialized credential in bytes: two long tokens and their metadata.
const MAX_CREDENTIAL_BYTES: usize = 32 << 10;
/// Maximum size of a serialized client in bytes.
const MAX_CLIENT_BYTES: usize = 16 << 10;

impl OAuthCredential {
    /// Serializes the OAuth credential for a store of your own. **The text contains the tokens in plain text**: anyone
    /// who reads it can use them. Store it only where nobody else can read it, never in a log or in an unencrypted
    /// copy.
    ///
    /// # Errors
    /// The credential is too large to be stored.
    ///
    /// ```
    /// use toolgate_auth::client::OAuthCredential;
    ///
    /// # let text = concat!(
    /// #     r#"{"issuer":"https://as.example","resource":"https://a.example","#,
    /// #     r#""access":"a","bound":false,"scopes":"read"}"#,
    /// # );
    /// # let kept = toolgate_auth::Secret::new(text);
    /// let credential = OAuthCredential::from_text(&kept)?;
    /// let again = OAuthCredential::from_text(&credential.to_text()?)?;
    /// assert_eq!((again.issuer, again.scopes), (credential.issuer, credential.scopes));
    /// # Ok::<(), toolgate_auth::client::StoreError>(())
    /// ```
    pub fn to_text(&self) -> Result<Secret, StoreError> {
        credential_text(&credential_to_json(self)).map(Secret::new)
    }

    /// Parses an OAuth credential from the text of [`OAuthCredential::to_text`].
    ///
    /// # Errors
    /// The text has another form.
    pub fn from_text(text: &Secret) -> Result<OAuthCredential, StoreError> {
        let value = serde_json::from_str(text.reveal()).map_err(|_| broken("a credential"))?;
        credential_from_json(&value)?.ok_or_else(|| broken("a credential"))
    }
}

impl RegisteredClient {
    /// Serializes the client registration, including its secret, for a store of your own. Returns `None` for a client
    /// with a signing key: the key is configured and not stored.
    ///
    /// # Errors
    /// The client is too large to be stored.
    pub fn to_text(&self) -> Result<Option<Secret>, StoreError> {
        let value = client_to_json(self);
        let text = value.map(|value| client_text(&value)).transpose()?;
        Ok(text.map(Secret::new))
    }

    /// Parses a client registration from the text of [`RegisteredClient::to_text`].
    ///
    /// # Errors
    /// The text has another form.
    pub fn from_text(text: &Secret) -> Result<RegisteredClient, StoreError> {
        let value =
            serde_json::from_str(text.reveal()).map_err(|_| broken("a client registration"))?;
        client_from_json(&value)?.ok_or_else(|| broken("a client registration"))
    }
}

/// Serializes a credential up to a size limit, because an authorization server controls the length of its tokens.
pub(super) fn credential_text(grant: &Value) -> Result<String, StoreError> {
    bounded_text(MAX_CREDENTIAL_BYTES, grant, "the credential")
}

/// Serializes a client up to a size limit.
pub(super) fn client_text(client: &Value) -> Result<String, StoreError> {
    bounded_text(MAX_CLIENT_BYTES, client, "the client registration")
}

fn bounded_text(most: usize, value: &Value, what: &str) -> Result<String, StoreError> {
    let text = value.to_string();
    match text.len() <= most {
        true => Ok(text),
        false => Err(StoreError::new(format!(
            "{what} is {} bytes long, but the limit is {most}; the operator of the authorization server has to issue shorter tokens",
            text.len()
        ))),
    }
}

fn text(secret: &Option<Secret>) -> Option<&str> {
    secret.as_ref().map(Secret::reveal)
}

fn broken(what: &str) -> StoreError {
    StoreError::new(format!(
        "{what} in the credential store cannot be read; sign in again"
    ))
}

pub(super) fn credential_to_json(grant: &OAuthCredential) -> Value {
    json!({
        "issuer": grant.issuer,
        "resource": grant.resource,
        "access": grant.access_token.reveal(),
        "bound": grant.is_dpop_bound,
        "key": text(&grant.dpop_key),
        "until": grant.expires_at,
        "refresh": text(&grant.refresh_token),
        "scopes": grant.scopes.to_string(),
        "wanted": grant.demanded_scopes.to_string(),
        "client": grant.client.as_ref().and_then(client_to_json),
    })
}

pub(super) fn credential_from_json(value: &Value) -> Result<Option<OAuthCredential>, StoreError> {
    if value.is_null() {
        return Ok(None);
    }
    let need = |key: &str| value[key].as_str().ok_or_else(|| broken("a credential"));
    let secret = |key: &str| value[key].as_str().map(Secret::new);
    Ok(Some(OAuthCredential {
        issuer: need("issuer")?.to_owned(),
        resource: need("resource")?.to_owned(),
        access_token: Secret::new(need("access")?),
        is_dpop_bound: value["bound"]
            .as_bool()
            .ok_or_else(|| broken("a credential"))?,
        dpop_key: secret("key"),
        expires_at: value["until"].as_u64(),
        refresh_token: secret("refresh"),
        scopes: ScopeSet::parse(need("scopes")?),
        // Absent in credentials of older versions.
        demanded_scopes: ScopeSet::parse(value["wanted"].as_str().unwrap_or_default()),
        client: client_from_json(&value["client"])?,
    }))
}

/// Returns the JSON form of a client. `None` for a client with a signing key, which is configured and not stored.
pub(super) fn client_to_json(client: &RegisteredClient) -> Option<Value> {
    let (method, secret) = match &client.authentication {
        ClientAuthentication::None => ("none", None),
        ClientAuthentication::Secret(secret) => ("secret", Some(secret)),
        ClientAuthentication::Basic(secret) => ("basic", Some(secret)),
        ClientAuthentication::Post(secret) => ("post", Some(secret)),
        ClientAuthentication::Key(_) => return None,
    };
    Some(json!({
        "id": client.id,
        "method": method,
        "secret": secret.map(Secret::reveal),
        "redirect": client.redirect_uri,
        "until": client.secret_expires_at,
    }))
}

pub(super) fn client_from_json(value: &Value) -> Result<Option<RegisteredClient>, StoreError> {
    if value.is_null() {
        return Ok(None);
    }
    let secret = value["secret"].as_str().map(Secret::new);
    let authenticate = match (value["method"].as_str(), secret) {
        (Some("none"), _) => ClientAuthentication::None,
        (Some("secret"), Some(secret)) => ClientAuthentication::Secret(secret),
        (Some("basic"), Some(secret)) => ClientAuthentication::Basic(secret),
        (Some("post"), Some(secret)) => ClientAuthentication::Post(secret),
        _ => return Err(broken("a client registration")),
    };
    let id = value["id"]
        .as_str()
        .ok_or_else(|| broken("a client registration"))?;
    Ok(Some(RegisteredClient {
        id: id.to_owned(),
        authentication: authenticate,
        redirect_uri: value["redirect"].as_str().map(str::to_owned),
        secret_expires_at: value["until"].as_u64(),
    }))
}
