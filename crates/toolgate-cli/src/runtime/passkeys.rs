//! Passkey settings of the config: the anchor, and the addresses of the console at which passkeys work.

use crate::config::Config;
use std::net::SocketAddr;
use toolgate_policy::passkeys::{PasskeySettings, RelyingParty};

/// Returns the settings of passkeys for a gateway with this listener.
pub(crate) fn passkey_settings(config: &Config, listener: Option<SocketAddr>) -> PasskeySettings {
    let mut settings = PasskeySettings::default();
    let Some(passkeys) = &config.passkeys else {
        return settings;
    };
    settings.anchor.clone_from(&passkeys.anchor);
    if let Some(url) = &config.console_url {
        // A passkey cannot belong to an IP address.
        if url.ip().is_none() {
            settings
                .parties
                .push(RelyingParty::new(url.host(), &url.origin()));
        }
    }
    if let Some(address) =
        listener.filter(|address| address.ip().is_loopback() || address.ip().is_unspecified())
    {
        let (scheme, default) = match config.tls {
            Some(_) => ("https", 443),
            None => ("http", 80),
        };
        let origin = match address.port() {
            port if port == default => format!("{scheme}://localhost"),
            port => format!("{scheme}://localhost:{port}"),
        };
        add_localhost(&mut settings.parties, &origin);
    }
    settings
}

/// Adds an origin on this machine, perhaps beside that of `console_url`.
fn add_localhost(parties: &mut Vec<RelyingParty>, origin: &str) {
    let id = "localhost";
    match parties.iter_mut().find(|party| party.id == id) {
        Some(party) if party.origins.iter().any(|own| own == origin) => {}
        Some(party) => party.origins.push(origin.to_owned()),
        None => parties.push(RelyingParty::new(id, origin)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn passkeys_work_at_names_and_not_at_addresses() {
        let parties = |text: &str, listener: &str| -> Vec<String> {
            let text = format!("{text}\n[passkeys]\n[server.s]\ncommand = [\"true\"]\n");
            let config = Config::parse(Path::new("toolgate.toml"), &text).unwrap();
            let settings = passkey_settings(&config, Some(listener.parse().unwrap()));
            let all = settings.parties.into_iter();
            all.map(|party| format!("{} {}", party.id, party.origins.join(" ")))
                .collect()
        };
        let local = "localhost http://localhost:8665";
        assert_eq!(parties("", "127.0.0.1:8665"), [local]);
        assert_eq!(parties("", "[::1]:80"), ["localhost http://localhost"]);
        let url = "console_url = \"https://t.example.com\"";
        let named = "t.example.com https://t.example.com";
        assert_eq!(parties(url, "127.0.0.1:8665"), [named, local]);
        assert_eq!(
            parties(
                "console_url = \"https://t.example.com:8443\"",
                "127.0.0.1:8665"
            )[0],
            "t.example.com https://t.example.com:8443"
        );
        assert_eq!(
            parties("console_url = \"http://127.0.0.1:9\"", "127.0.0.1:8665"),
            [local]
        );
        assert_eq!(
            parties("console_url = \"http://localhost:9\"", "127.0.0.1:8665"),
            ["localhost http://localhost:9 http://localhost:8665"]
        );
        let config = "[server.s]\ncommand = [\"true\"]\n";
        let config = Config::parse(Path::new("toolgate.toml"), config).unwrap();
        let off = passkey_settings(&config, Some("127.0.0.1:8665".parse().unwrap()));
        assert_eq!(off, PasskeySettings::default());
    }
}
