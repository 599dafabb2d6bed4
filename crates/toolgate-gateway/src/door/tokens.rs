//! Tokens of authorization servers: whose are taken, as the config says.

use crate::{
    config::{Config, IssuerSettings},
    plan::Shared,
    stack,
};
use std::time::Duration;
use toolgate::auth::{
    fetch::{FetchLimits, Fetcher, Reach},
    resource::{Issuer, Proofs, ResourceLimits, ResourceServer},
};

/// Who takes tokens, where the config names an issuer.
///
/// # Errors
/// A secret cannot be read, in words.
pub(crate) async fn resource_server(
    config: &Config,
    shared: &Shared,
) -> Result<Option<ResourceServer>, String> {
    let auth = &config.auth;
    let (Some(resource), false) = (&auth.resource, auth.issuers.is_empty()) else {
        return Ok(None);
    };
    let (fetching, remembered) = limits(config);
    let mut server = ResourceServer::new(resource.clone())
        .scopes(stack::scopes(config).all())
        .limits(remembered);
    if auth.ask_every {
        server = server.danger_asking_every_issuer();
    }
    if auth.dpop_nonces {
        let proofs = Proofs::with_nonces();
        server = server.proofs(proofs.map_err(|_| "the system gives no random numbers")?);
    }
    for settings in &auth.issuers {
        // The operator named it: what it names itself may lie as near as it does.
        let fetcher = Fetcher::new(Reach::of(&settings.url), fetching.clone());
        server = server.issuer(issuer(settings, config, shared).await?, fetcher);
    }
    Ok(Some(server))
}

/// How much of an issuer is waited for, read and remembered.
pub(crate) fn limits(config: &Config) -> (FetchLimits, ResourceLimits) {
    let (limits, seconds) = (&config.limits, Duration::from_secs);
    let mut fetching = FetchLimits::default();
    fetching.time = seconds(limits.issuer_seconds);
    fetching.body = limits.issuer_bytes;
    fetching.redirects = limits.issuer_redirects;
    let mut remembered = ResourceLimits::default();
    remembered.introspection = seconds(limits.introspection_seconds);
    remembered.keys = seconds(limits.issuer_keys_seconds);
    remembered.ask = seconds(limits.issuer_pause_seconds);
    remembered.proofs = limits.proofs;
    (fetching, remembered)
}

async fn issuer(
    settings: &IssuerSettings,
    config: &Config,
    shared: &Shared,
) -> Result<Issuer, String> {
    let mut issuer = Issuer::new(settings.id.as_str(), settings.url.clone());
    if let Some(url) = &settings.keys {
        issuer = issuer.keys(url.clone());
    }
    if let Some(introspect) = &settings.introspect {
        let secret = shared.secret(config, &introspect.secret).await?;
        issuer = issuer
            .introspection(introspect.url.clone(), &introspect.client, secret)
            .token_prefix(&introspect.prefix);
        if introspect.signed {
            issuer = issuer.introspecting_all();
        }
    }
    Ok(match settings.dpop_required {
        true => issuer.proofs_required(),
        false => issuer,
    })
}
