//! Grants and clients as values, to be sealed. The one place beside the wire where a secret is written out.

use super::{
    super::{Authenticate, Grant, OauthClient, Scopes},
    StoreError,
};
use crate::Secret;
use serde_json::{Value, json};

/// Most bytes of a grant: two long tokens and what is said of them.
const GRANT: usize = 32 << 10;
/// Most bytes of a client.
const CLIENT: usize = 16 << 10;

impl Grant {
    /// All of it as a text, for a store of one's own. **The text is the secret itself**: who reads it can use the tokens,
    /// so it belongs where nobody else can read, and neither into a log nor into a copy that is not sealed.
    ///
    /// # Errors
    /// It is too big to be kept.
    ///
    /// ```
    /// use toolgate_auth::client::Grant;
    ///
    /// # let text = r#"{"issuer":"https://as.example","resource":"https://a.example","access":"a","bound":false,"scopes":"read"}"#;
    /// # let kept = toolgate_auth::Secret::new(text);
    /// let grant = Grant::from_text(&kept)?;
    /// let again = Grant::from_text(&grant.to_text()?)?;
    /// assert_eq!((again.issuer, again.scopes), (grant.issuer, grant.scopes));
    /// # Ok::<(), toolgate_auth::client::StoreError>(())
    /// ```
    pub fn to_text(&self) -> Result<Secret, StoreError> {
        bounded(&of_grant(self)).map(Secret::new)
    }

    /// Reads what [`Grant::to_text`] gave.
    ///
    /// # Errors
    /// It is another text.
    pub fn from_text(text: &Secret) -> Result<Grant, StoreError> {
        let value = serde_json::from_str(text.reveal()).map_err(|_| broken("a grant"))?;
        grant(&value)?.ok_or_else(|| broken("a grant"))
    }
}

impl OauthClient {
    /// All of it as a text, for a store of one's own, with its secret where it has one. Nothing of a client that signs: its
    /// key is set, and not kept.
    ///
    /// # Errors
    /// It is too big to be kept.
    pub fn to_text(&self) -> Result<Option<Secret>, StoreError> {
        let value = of_client(self);
        let text = value.map(|value| bounded_client(&value)).transpose()?;
        Ok(text.map(Secret::new))
    }

    /// Reads what [`OauthClient::to_text`] gave.
    ///
    /// # Errors
    /// It is another text.
    pub fn from_text(text: &Secret) -> Result<OauthClient, StoreError> {
        let value = serde_json::from_str(text.reveal()).map_err(|_| broken("a client"))?;
        client(&value)?.ok_or_else(|| broken("a client"))
    }
}

/// The text of a grant, which an authorization server cannot make as big as it likes.
pub(super) fn bounded(grant: &Value) -> Result<String, StoreError> {
    at_most(GRANT, grant, "what was granted")
}

/// The text of a client.
pub(super) fn bounded_client(client: &Value) -> Result<String, StoreError> {
    at_most(CLIENT, client, "the registration")
}

fn at_most(most: usize, value: &Value, what: &str) -> Result<String, StoreError> {
    let text = value.to_string();
    match text.len() <= most {
        true => Ok(text),
        false => Err(StoreError::new(format!(
            "{what} has {} bytes, and at most {most} are kept: its authorization server gives too much",
            text.len()
        ))),
    }
}

fn text(secret: &Option<Secret>) -> Option<&str> {
    secret.as_ref().map(Secret::reveal)
}

fn broken(what: &str) -> StoreError {
    StoreError::new(format!(
        "what is kept of {what} cannot be read; sign in again"
    ))
}

pub(super) fn of_grant(grant: &Grant) -> Value {
    json!({
        "issuer": grant.issuer,
        "resource": grant.resource,
        "access": grant.access.reveal(),
        "bound": grant.bound,
        "key": text(&grant.key),
        "until": grant.until,
        "refresh": text(&grant.refresh),
        "scopes": grant.scopes.to_string(),
        "wanted": grant.wanted.to_string(),
        "client": grant.client.as_ref().and_then(of_client),
    })
}

pub(super) fn grant(value: &Value) -> Result<Option<Grant>, StoreError> {
    if value.is_null() {
        return Ok(None);
    }
    let need = |key: &str| value[key].as_str().ok_or_else(|| broken("a grant"));
    let secret = |key: &str| value[key].as_str().map(Secret::new);
    Ok(Some(Grant {
        issuer: need("issuer")?.to_owned(),
        resource: need("resource")?.to_owned(),
        access: Secret::new(need("access")?),
        bound: value["bound"].as_bool().ok_or_else(|| broken("a grant"))?,
        key: secret("key"),
        until: value["until"].as_u64(),
        refresh: secret("refresh"),
        scopes: Scopes::read(need("scopes")?),
        // Absent in what older versions kept.
        wanted: Scopes::read(value["wanted"].as_str().unwrap_or_default()),
        client: client(&value["client"])?,
    }))
}

/// A client that signs is set by others, and not kept here.
pub(super) fn of_client(client: &OauthClient) -> Option<Value> {
    let (method, secret) = match &client.authenticate {
        Authenticate::None => ("none", None),
        Authenticate::Secret(secret) => ("secret", Some(secret)),
        Authenticate::Basic(secret) => ("basic", Some(secret)),
        Authenticate::Post(secret) => ("post", Some(secret)),
        Authenticate::Key(_) => return None,
    };
    Some(json!({
        "id": client.id,
        "method": method,
        "secret": secret.map(Secret::reveal),
        "redirect": client.redirect,
        "until": client.until,
    }))
}

pub(super) fn client(value: &Value) -> Result<Option<OauthClient>, StoreError> {
    if value.is_null() {
        return Ok(None);
    }
    let secret = value["secret"].as_str().map(Secret::new);
    let authenticate = match (value["method"].as_str(), secret) {
        (Some("none"), _) => Authenticate::None,
        (Some("secret"), Some(secret)) => Authenticate::Secret(secret),
        (Some("basic"), Some(secret)) => Authenticate::Basic(secret),
        (Some("post"), Some(secret)) => Authenticate::Post(secret),
        _ => return Err(broken("a client")),
    };
    let id = value["id"].as_str().ok_or_else(|| broken("a client"))?;
    Ok(Some(OauthClient {
        id: id.to_owned(),
        authenticate,
        redirect: value["redirect"].as_str().map(str::to_owned),
        until: value["until"].as_u64(),
    }))
}
