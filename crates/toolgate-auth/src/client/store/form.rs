//! Grants and clients as values, to be sealed. The one place beside the wire where a secret is written out.

use super::{
    super::{Authenticate, Grant, OauthClient, Scopes},
    StoreError,
};
use crate::Secret;
use serde_json::{Value, json};

fn text(secret: &Option<Secret>) -> Option<&str> {
    secret.as_ref().map(Secret::reveal)
}

fn broken(what: &str) -> StoreError {
    StoreError(format!(
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
