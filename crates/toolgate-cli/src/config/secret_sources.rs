//! All secrets that a config names, for checks before they are needed.

use super::{Config, ConfigValue, ServerSettings};

/// Value that a config takes from the environment, a file or the keyring.
pub(crate) struct SecretUse<'c> {
    /// Server that needs it; `None` for the gateway itself.
    pub(crate) server: Option<&'c str>,
    /// Use, as a noun, such as `the environment variable API_KEY`.
    pub(crate) purpose: String,
    /// Source of the value.
    pub(crate) value: &'c ConfigValue,
}

impl Config {
    /// Returns the values that the gateway and its enabled servers take from elsewhere.
    pub(crate) fn secret_uses(&self) -> Vec<SecretUse<'_>> {
        let own = |purpose: &str, value| SecretUse {
            server: None,
            purpose: purpose.to_owned(),
            value,
        };
        let token = self
            .token
            .iter()
            .map(|token| own("the token of the clients", &token.value));
        let mut uses: Vec<_> = token.collect();
        let admin = self.admin.token.iter();
        uses.extend(admin.map(|token| own("the token for the metrics", &token.value)));
        let headers = self.telemetry.otlp_headers.iter();
        uses.extend(
            headers
                .map(|(name, value)| own(&format!("the header {name} of the OTLP export"), value)),
        );
        let url = self.store.url.iter();
        uses.extend(url.map(|url| own("the URL of the shared store", url)));
        for issuer in &self.auth.issuers {
            let asked = issuer
                .introspection
                .iter()
                .map(|asked| &asked.client_secret);
            let pages = issuer
                .sign_in
                .iter()
                .filter_map(|pages| pages.client_secret.as_ref());
            uses.extend(
                asked
                    .chain(pages)
                    .map(|secret| own("a client secret of an issuer", &secret.value)),
            );
        }
        uses.extend(self.servers.iter().flat_map(ServerSettings::secret_uses));
        uses.retain(|one| !matches!(one.value, ConfigValue::Plaintext(_)));
        uses
    }
}

impl ServerSettings {
    /// Returns the values of its variables, headers and OAuth client.
    pub(crate) fn secret_uses(&self) -> Vec<SecretUse<'_>> {
        let mine = |purpose: String, value| SecretUse {
            server: Some(&self.id),
            purpose,
            value,
        };
        let variables = self.env.iter();
        let variables =
            variables.map(|(name, value)| mine(format!("its environment variable {name}"), value));
        let mut uses: Vec<_> = variables.collect();
        if let Some(address) = &self.address {
            let headers = address.headers.iter();
            uses.extend(headers.map(|(name, value)| mine(format!("its header {name}"), value)));
            let client = address.client.credential_value();
            let exchange = address
                .exchange
                .as_ref()
                .map(|exchange| &exchange.client_secret);
            let secrets = client.into_iter().chain(exchange);
            uses.extend(secrets.map(|value| mine("its OAuth client".to_owned(), value)));
        }
        uses
    }
}
