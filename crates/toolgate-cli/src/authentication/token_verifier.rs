//! Verification of access tokens from the configured issuers.

use super::required_scopes;
use crate::config::{Config, IssuerSettings};
use std::{sync::Arc, time::Duration};
use toolgate::auth::{
    Secret,
    fetch::FetchLimits,
    resource::{DpopVerifier, ResourceLimits, ResourceServer, TrustedIssuer},
};

/// Verifier of access tokens, with the gateway's secrets for introspection.
#[derive(Clone, Default)]
pub(crate) struct TokenVerifier {
    /// Verifier of access tokens; `None` if the config has no issuer.
    pub(crate) resource_server: Option<Arc<ResourceServer>>,
    /// Introspection secret of each issuer; `None` for an issuer without introspection.
    secrets: Vec<Option<Secret>>,
}

impl TokenVerifier {
    /// Builds the verifier of a config, with the introspection secret of each issuer. The previous one is reused if
    /// nothing changed, secrets included. Otherwise the new one continues with its remembered DPoP proofs.
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub(crate) fn build(
        config: &Config,
        secrets: Vec<Option<Secret>>,
        before: Option<(&Config, &TokenVerifier)>,
    ) -> Result<TokenVerifier, String> {
        if let Some((old, tokens)) = before
            && old.auth == config.auth
            && issuer_limits(old) == issuer_limits(config)
            && same_secrets(&tokens.secrets, &secrets)
        {
            return Ok(tokens.clone());
        }
        let server = build_resource_server(config, &secrets)?.map(|server| match before {
            Some((
                old,
                TokenVerifier {
                    resource_server: Some(seen),
                    ..
                },
            )) if old.auth.dpop_nonces == config.auth.dpop_nonces => server.with_proofs_of(seen),
            _ => server,
        });
        Ok(TokenVerifier {
            resource_server: server.map(Arc::new),
            secrets,
        })
    }
}

fn same_secrets(these: &[Option<Secret>], those: &[Option<Secret>]) -> bool {
    let pairs = these.iter().zip(those);
    these.len() == those.len()
        && pairs.into_iter().all(|pair| match pair {
            (Some(this), Some(that)) => this.matches(that.reveal()),
            (None, None) => true,
            _ => false,
        })
}

fn build_resource_server(
    config: &Config,
    secrets: &[Option<Secret>],
) -> Result<Option<ResourceServer>, String> {
    let auth = &config.auth;
    let (Some(resource), false) = (&auth.resource, auth.issuers.is_empty()) else {
        return Ok(None);
    };
    let (fetching, remembered) = issuer_limits(config);
    let mut server = ResourceServer::new(resource.clone())
        .scopes(required_scopes(config).all())
        .limits(remembered);
    if auth.danger_ask_every {
        server = server.danger_introspect_at_every_issuer();
    }
    if auth.dpop_nonces {
        let proofs = DpopVerifier::with_nonces();
        server = server.proofs(proofs.map_err(|_| "the DPoP nonces cannot be created: the operating system provides no random numbers; check its random device, or restart the machine")?);
    }
    for (settings, secret) in auth.issuers.iter().zip(secrets) {
        let issuer = trusted_issuer(settings, secret.as_ref());
        let fetcher = issuer.fetcher(fetching.clone());
        server = server.issuer_with_fetcher(issuer, fetcher);
    }
    Ok(Some(server))
}

/// Returns the limits of requests to issuers, and of what is cached about tokens.
pub(crate) fn issuer_limits(config: &Config) -> (FetchLimits, ResourceLimits) {
    let (limits, seconds) = (&config.limits, Duration::from_secs);
    let mut fetching = FetchLimits::default();
    fetching.timeout = seconds(limits.issuer_seconds);
    fetching.max_body_bytes = limits.issuer_bytes;
    fetching.max_redirects = limits.issuer_redirects;
    let mut remembered = ResourceLimits::default();
    remembered.introspection_lifetime = seconds(limits.introspection_seconds);
    remembered.max_introspections = limits.introspections;
    remembered.introspection_recheck = seconds(limits.introspection_recheck_seconds);
    remembered.key_lifetime = seconds(limits.issuer_keys_seconds);
    remembered.min_fetch_interval = seconds(limits.issuer_pause_seconds);
    remembered.max_proofs = limits.proofs;
    (fetching, remembered)
}

fn trusted_issuer(settings: &IssuerSettings, secret: Option<&Secret>) -> TrustedIssuer {
    let mut issuer = TrustedIssuer::new(settings.id.as_str(), settings.url.clone())
        .audiences(settings.audiences.iter().cloned())
        .map_claims(settings.claims.clone());
    if let Some(url) = &settings.keys_url {
        issuer = issuer.keys(url.clone());
    }
    if let (Some(introspect), Some(secret)) = (&settings.introspection, secret) {
        issuer = issuer
            .introspection(
                introspect.url.clone(),
                &introspect.client_id,
                secret.clone(),
            )
            .token_prefix(&introspect.token_prefix);
        if introspect.introspect_signed {
            issuer = issuer.introspect_signed_tokens();
        }
    }
    if settings.danger_private {
        issuer = issuer.danger_permit_private_addresses();
    }
    match settings.dpop_required {
        true => issuer.require_dpop(),
        false => issuer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use toolgate::auth::Url;

    /// Returns whether the fetcher of a config's issuer may connect to that URL at that address.
    fn fetches(more: &str, url: &str, ip: &str) -> bool {
        let text = format!(
            "[auth]\nresource = \"https://t.test/mcp\"\n[auth.issuer.corp]\nurl = \"https://login.corp.test\"\n{more}\n\
             [server.files]\ncommand = [\"a\"]\n"
        );
        let config = Config::parse(Path::new("/etc/t.toml"), &text).unwrap();
        let secret = Secret::new("0123456789abcdef");
        let issuer = trusted_issuer(&config.auth.issuers[0], Some(&secret));
        let fetcher = issuer.fetcher(issuer_limits(&config).0);
        let url = Url::parse(url).unwrap();
        fetcher.permits(&url, ip.parse().unwrap()).is_ok()
    }

    #[test]
    fn permits_private_addresses_of_an_issuer_only_where_configured() {
        let (login, keys) = (
            "https://login.corp.test/keys",
            "https://keys.corp.test/keys",
        );
        assert!(fetches("", login, "10.1.2.3"));
        assert!(!fetches("", keys, "10.1.2.3"));
        assert!(fetches(
            "keys_url = \"https://keys.corp.test/keys\"",
            keys,
            "10.1.2.3"
        ));
        let ask = "introspect_url = \"https://ask.corp.test/\"\nclient_id = \"a\"\nclient_secret = { env = \"A\" }";
        assert!(fetches(ask, "https://ask.corp.test/", "10.1.2.3"));
        let danger = "danger_private_addresses = true";
        assert!(fetches(danger, keys, "10.1.2.3"));
        assert!(!fetches(danger, keys, "169.254.169.254"));
        assert!(!fetches(danger, keys, "127.0.0.1"));
    }
}

#[cfg(test)]
mod unprinted {
    use super::TokenVerifier;

    #[test]
    fn t62_secrets_at_issuers_cannot_be_printed() {
        is_unprinted!(TokenVerifier);
    }
}
