//! `[auth]`: authentication of HTTP callers, and the scopes that their tokens need.

use super::{
    config_value::SECRET_ALTERNATIVES,
    error::ConfigError,
    glob::NameGlob,
    issuer_sign_in::IssuerSignInSettings,
    rule,
    section::{ConfigField, ConfigSection},
    server::ServerSettings,
    token::TokenSource,
};
use std::{collections::BTreeMap, path::Path};
use toolgate::auth::{Url, fetch::AddressPolicy};

const KEYS: &[&str] = &[
    "required",
    "resource",
    "dpop_nonces",
    "danger_ask_every_issuer",
    "issuer",
    "scope",
    "implies",
];
const ISSUER_KEYS: &[&str] = &[
    "url",
    "keys_url",
    "introspect",
    "introspect_url",
    "introspect_signed",
    "client_id",
    "client_secret",
    "token_prefix",
    "audiences",
    "dpop_required",
    "sign_in",
    "danger_private_addresses",
];
const SCOPE_KEYS: &[&str] = &["tools", "except", "scopes"];
/// Maximum number of additional audiences of one issuer.
const MAX_AUDIENCES: usize = 16;
const EXAMPLE_RESOURCE: &str = "\"https://tools.example.com/mcp\", the URL that clients use";

/// Authentication settings for HTTP callers.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct AuthSettings {
    /// True if anonymous requests are rejected even without a bearer token.
    pub(crate) required: bool,
    /// URL of the MCP endpoint, the required audience of tokens (RFC 8707).
    pub(crate) resource: Option<Url>,
    /// True if DPoP proofs need a nonce of the gateway (RFC 9449).
    pub(crate) dpop_nonces: bool,
    /// True if each issuer may introspect tokens that may belong to another issuer.
    pub(crate) danger_ask_every: bool,
    /// Trusted token issuers.
    pub(crate) issuers: Vec<IssuerSettings>,
    /// Scopes required for tools.
    pub(crate) scopes: Vec<ScopeSettings>,
    /// Scopes that each scope implies.
    pub(crate) implies: BTreeMap<String, Vec<String>>,
}

/// Settings of one trusted issuer, `[auth.issuer.NAME]`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct IssuerSettings {
    /// Name of the issuer in the config and prefix of its callers' names.
    pub(crate) id: String,
    /// Issuer identifier, the `iss` claim of its tokens.
    pub(crate) url: Url,
    /// JWK set URL; by default taken from the issuer's metadata.
    pub(crate) keys_url: Option<Url>,
    /// Token introspection settings.
    pub(crate) introspection: Option<IntrospectionSettings>,
    /// Accepted `aud` values in addition to the resource.
    pub(crate) audiences: Vec<String>,
    /// True if only DPoP-bound tokens are accepted.
    pub(crate) dpop_required: bool,
    /// OAuth client for signing in the issuer's users at a page of the gateway.
    pub(crate) sign_in: Option<IssuerSignInSettings>,
    /// True if URLs that the issuer names may point to private networks.
    pub(crate) danger_private: bool,
}

impl IssuerSettings {
    /// Returns the address policy for URLs that the issuer names.
    pub(crate) fn address_policy(&self) -> AddressPolicy {
        match self.danger_private {
            true => AddressPolicy::for_server(&self.url).danger_and_private(),
            false => AddressPolicy::for_server(&self.url),
        }
    }
}

/// Token introspection settings of an issuer (RFC 7662).
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct IntrospectionSettings {
    /// Introspection endpoint; by default taken from the issuer's metadata.
    pub(crate) url: Option<Url>,
    /// True if JWTs are introspected too.
    pub(crate) introspect_signed: bool,
    pub(crate) client_id: String,
    pub(crate) client_secret: TokenSource,
    /// Prefix of the issuer's opaque tokens; empty if not configured.
    pub(crate) token_prefix: String,
}

/// Scopes required for some tools, `[[auth.scope]]`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ScopeSettings {
    pub(crate) tools: Vec<NameGlob>,
    pub(crate) except: Vec<NameGlob>,
    pub(crate) scopes: Vec<String>,
}

impl AuthSettings {
    /// Reads `[auth]`, which may be absent.
    pub(super) fn read(
        field: Option<ConfigField<'_>>,
        servers: &[ServerSettings],
        search: bool,
        base: &Path,
    ) -> Result<AuthSettings, ConfigError> {
        let Some(field) = field else {
            return Ok(AuthSettings::default());
        };
        let section = field.section("[auth]", "a section that begins with [auth]", KEYS)?;
        let flag = |key| section.get(key).map_or(Ok(false), |field| field.boolean());
        let resource = section
            .get("resource")
            .map(|f| read_https_url(&f))
            .transpose()?;
        let issuers = section
            .get("issuer")
            .map(|f| read_issuers(&f, base))
            .transpose()?;
        let issuers = issuers.unwrap_or_default();
        if let (None, Some(field)) = (&resource, section.get("issuer")) {
            return Err(field.key_error(format!(
                "needs \"resource\" in [auth], the audience of tokens; write resource = {EXAMPLE_RESOURCE}"
            )));
        }
        let ask_every = flag("danger_ask_every_issuer")?;
        if let (false, Some(field)) = (ask_every, section.get("issuer")) {
            check_token_prefixes(&field, &issuers)?;
        }
        for key in ["scope", "implies", "dpop_nonces", "danger_ask_every_issuer"] {
            if let (true, Some(field)) = (issuers.is_empty(), section.get(key))
                && !field.boolean().is_ok_and(|on| !on)
            {
                return Err(field.key_error(match key {
                    "scope" | "implies" => "has no effect without an issuer: only tokens have scopes; add [auth.issuer.NAME], or use [[rule]] with callers",
                    _ => "has no effect without an issuer; add [auth.issuer.NAME], or remove it",
                }));
            }
        }
        Ok(AuthSettings {
            required: flag("required")?,
            resource,
            dpop_nonces: flag("dpop_nonces")?,
            danger_ask_every: ask_every,
            issuers,
            scopes: section.get("scope").map_or(Ok(Vec::new()), |field| {
                read_scope_settings(&field, servers, search)
            })?,
            implies: section
                .get("implies")
                .map_or(Ok(BTreeMap::new()), |field| read_implied_scopes(&field))?,
        })
    }
}

fn read_issuers(field: &ConfigField<'_>, base: &Path) -> Result<Vec<IssuerSettings>, ConfigError> {
    let all = field.any_section(
        "[auth.issuer]",
        "sections that begin with [auth.issuer.NAME]",
    )?;
    let issuers = all.entries().into_iter().map(|(id, at, field)| {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if id == "key" || !(1..=32).contains(&id.len()) || !id.bytes().all(plain) {
            let text = format!(
                "{id:?} cannot name an issuer, because it is the prefix of its callers' names; write 1 to 32 of a-z, 0-9 and -, but not \"key\""
            );
            return Err(all.doc.error(at, text));
        }
        let name = format!("[auth.issuer.{id}]");
        let section = field.section(name, "a section", ISSUER_KEYS)?;
        let optional = |key| section.get(key).map(|field| read_https_url(&field)).transpose();
        let flag = |key| section.get(key).map_or(Ok(false), |field| field.boolean());
        Ok(IssuerSettings {
            id: id.to_owned(),
            url: read_https_url(&section.require("url", "\"https://login.example.com\"")?)?,
            keys_url: optional("keys_url")?,
            introspection: read_introspection(&section, base)?,
            audiences: section
                .get("audiences")
                .map_or(Ok(Vec::new()), |field| read_audiences(&field))?,
            dpop_required: flag("dpop_required")?,
            danger_private: flag("danger_private_addresses")?,
            sign_in: IssuerSignInSettings::read(&section, id, base)?,
        })
    });
    issuers.collect()
}

fn read_introspection(
    section: &ConfigSection<'_>,
    base: &Path,
) -> Result<Option<IntrospectionSettings>, ConfigError> {
    let wanted = section
        .get("introspect")
        .map_or(Ok(false), |f| f.boolean())?;
    let url_field = section.get("introspect_url");
    let secret = TokenSource::read_client_secret(section, base)?;
    let signed = section
        .get("introspect_signed")
        .map_or(Ok(false), |field| field.boolean())?;
    if !wanted && url_field.is_none() {
        let useless = ["client_id", "client_secret", "token_prefix"];
        let useless = useless.into_iter().find_map(|key| section.get(key));
        return match useless.or(section.get("introspect_signed").filter(|_| signed)) {
            Some(field) => Err(field.key_error(
                "is only used for token introspection; write introspect = true, or remove it",
            )),
            None => Ok(None),
        };
    }
    let client = section.require(
        "client_id",
        "\"toolgate\", as the issuer knows this gateway",
    )?;
    let secret = secret.ok_or_else(|| {
        client.key_error(format!(
            "needs its secret; write client_secret = {SECRET_ALTERNATIVES}"
        ))
    })?;
    Ok(Some(IntrospectionSettings {
        url: url_field.map(|field| read_https_url(&field)).transpose()?,
        introspect_signed: signed,
        client_id: client.expanded()?.into_owned(),
        client_secret: secret,
        token_prefix: section
            .get("token_prefix")
            .map_or(Ok(String::new()), |f| read_token_prefix(&f))?,
    }))
}

/// Reads the additional audiences of an issuer.
fn read_audiences(field: &ConfigField<'_>) -> Result<Vec<String>, ConfigError> {
    let list = field.list("an array such as [\"api://toolgate\"]")?;
    if !(1..=MAX_AUDIENCES).contains(&list.len()) {
        return Err(field.key_error(format!("is empty or too long; write 1 to {MAX_AUDIENCES} values that this issuer writes into \"aud\" for this gateway")));
    }
    let name = |item: ConfigField<'_>| {
        let text = item.expanded()?;
        match (1..=256).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) {
            true => Ok(text.into_owned()),
            false => Err(item.key_error("is not a valid audience; write the \"aud\" value that the issuer uses for this gateway, 1 to 256 ASCII characters without blanks")),
        }
    };
    list.into_iter().map(name).collect()
}

/// Reads the prefix of an issuer's opaque tokens.
fn read_token_prefix(field: &ConfigField<'_>) -> Result<String, ConfigError> {
    let text = field.text()?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/".contains(&b);
    match (1..=64).contains(&text.len()) && text.bytes().all(plain) {
        true => Ok(text.to_owned()),
        false => Err(field
            .key_error("is not a valid token prefix; write 1 to 64 characters, such as \"corp_\"")),
    }
}

/// Rejects two issuers that would introspect the same tokens: each would see those of the other.
fn check_token_prefixes(
    field: &ConfigField<'_>,
    issuers: &[IssuerSettings],
) -> Result<(), ConfigError> {
    let prefix =
        |issuer: &IssuerSettings| Some(issuer.introspection.as_ref()?.token_prefix.clone());
    let mut prefixes: Vec<String> = issuers.iter().filter_map(prefix).collect();
    prefixes.sort();
    match prefixes.windows(2).any(|two| two[0] == two[1]) {
        true => Err(field.key_error("has several issuers that would introspect the same tokens, so that each sees tokens of the others; set a different token_prefix such as \"corp_\" for each (one may have none), or write danger_ask_every_issuer = true in [auth]")),
        false => Ok(()),
    }
}

/// Reads a URL that must be `https`, or `http` on loopback.
pub(super) fn read_https_url(field: &ConfigField<'_>) -> Result<Url, ConfigError> {
    let url = Url::parse(&field.expanded()?).map_err(|bad| {
        field.key_error(format!(
            "cannot be used: {bad}; write a URL such as \"https://login.example.com\""
        ))
    })?;
    match url.is_https() || url.is_loopback() {
        true => Ok(url),
        false => Err(field.key_error("cannot be used: http:// is allowed only for this machine, because anyone on the network path could read and change the traffic; write https://")),
    }
}

fn read_scope_settings(
    field: &ConfigField<'_>,
    servers: &[ServerSettings],
    search: bool,
) -> Result<Vec<ScopeSettings>, ConfigError> {
    let list = field.list("[[auth.scope]] for each")?;
    let read = |field: &ConfigField<'_>| {
        let section = field.section(
            "[[auth.scope]]",
            "a section that begins with [[auth.scope]]",
            SCOPE_KEYS,
        )?;
        let needs = read_scopes(&section.require("scopes", "[\"files:read\"]")?)?;
        let except = section.get("except");
        Ok(ScopeSettings {
            tools: rule::read_tools(
                &section.require("tools", "[\"server.*\"]")?,
                servers,
                search,
            )?,
            except: except.map_or(Ok(Vec::new()), |field| {
                rule::read_tool_globs(&field, servers, search)
            })?,
            scopes: needs,
        })
    };
    list.iter().map(read).collect()
}

fn read_implied_scopes(
    field: &ConfigField<'_>,
) -> Result<BTreeMap<String, Vec<String>>, ConfigError> {
    let all = field.any_section("[auth.implies]", "{ \"files:write\" = [\"files:read\"] }")?;
    let pair = |(scope, _, field): (&str, usize, ConfigField<'_>)| {
        Ok((scope.to_owned(), read_scopes(&field)?))
    };
    all.entries().into_iter().map(pair).collect()
}

/// Reads a list of at least one scope.
pub(super) fn read_scopes(field: &ConfigField<'_>) -> Result<Vec<String>, ConfigError> {
    let list = field.list("an array such as [\"files:read\"]")?;
    if list.is_empty() {
        return Err(field.key_error("is empty; name at least one scope"));
    }
    let word = |item: ConfigField<'_>| {
        let text = item.text()?;
        let plain = |b: u8| b.is_ascii_graphic() && b != b'"' && b != b'\\';
        match !text.is_empty() && text.len() <= 255 && text.bytes().all(plain) {
            // The specification excludes `offline_access` from the scopes that a resource requests.
            true if text != "offline_access" => Ok(text.to_owned()),
            _ => Err(item.error(format!("{text:?} is not a valid scope of a tool; write one such as \"files:read\", without blanks and quotes"))),
        }
    };
    list.into_iter().map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::AddressPolicy;
    use crate::config::Config;
    use std::path::Path;

    const ISSUER: &str =
        "[auth]\nresource = \"https://t.test/mcp\"\n[auth.issuer.corp]\nurl = \"https://l.test\"\n";

    fn read(text: &str) -> Result<Config, String> {
        let text = format!("{text}\n[server.files]\ncommand = [\"a\"]\n");
        Config::parse(Path::new("/etc/t.toml"), &text).map_err(|error| error.to_string())
    }

    #[test]
    fn an_issuer_requires_authentication() {
        assert!(!read("").unwrap().requires_authentication());
        assert!(
            read("[auth]\nrequired = true")
                .unwrap()
                .requires_authentication()
        );
        let config = read(&format!("listen = \"0.0.0.0:1\"\n{ISSUER}")).unwrap();
        assert!(config.requires_authentication() && config.auth.issuers[0].id == "corp");
    }

    /// Holds: AUTH-37
    #[test]
    fn errors_say_what_to_write() {
        let scope = |needs: &str| {
            format!("{ISSUER}[[auth.scope]]\ntools = [\"files.*\"]\nscopes = {needs}\n")
        };
        let issuer = |more: &str| format!("{ISSUER}{more}\n");
        let asked = "introspect = true\nclient_id = \"a\"\nclient_secret = { env = \"A\" }\n";
        for (text, told) in [
            (
                scope("[\"offline_access\"]"),
                "is not a valid scope of a tool",
            ),
            (scope("[\"a b\"]"), "is not a valid scope of a tool"),
            (scope("[]"), "name at least one scope"),
            (
                scope("[\"a\"]").replace("files.*", "file.*"),
                "did you mean \"files\"",
            ),
            (
                issuer("client_secret = \"0123456789abcdef\""),
                "in plaintext in this file",
            ),
            (issuer("introspect = true"), "has no \"client_id\""),
            (
                issuer("introspect = true\nclient_id = \"a\""),
                "needs its secret",
            ),
            (issuer("client_id = \"a\""), "write introspect = true"),
            (issuer("token_prefix = \"c_\""), "write introspect = true"),
            (
                issuer("sign_in = { scopes = [\"a\"] }"),
                "has no \"client_id\"",
            ),
            (
                issuer("dpop_required = true\nsign_in = { client_id = \"a\" }"),
                "not bound to a key",
            ),
            (
                issuer("sign_in = { client_id = \"a\", client_secret = \"0123456789abcdef\" }"),
                "in plaintext in this file",
            ),
            (
                issuer("client_secret = { env = \"A\" }"),
                "write introspect = true",
            ),
            (
                issuer("introspect_signed = true"),
                "write introspect = true",
            ),
            (issuer("audiences = []"), "is empty or too long"),
            (issuer("audiences = [\"a b\"]"), "without blanks"),
            (issuer("audiences = [\"\"]"), "without blanks"),
            (
                issuer("danger_private_addresses = \"yes\""),
                "write true or false",
            ),
            (
                "[auth]\ndpop_nonces = true".to_owned(),
                "has no effect without an issuer",
            ),
            (
                "[auth]\ndanger_ask_every_issuer = true".to_owned(),
                "has no effect without an issuer",
            ),
            (
                "[auth.implies]\n\"a\" = [\"b\"]".to_owned(),
                "has no effect without an issuer",
            ),
            (
                issuer(&format!("{asked}token_prefix = \"c d\"")),
                "is not a valid token prefix",
            ),
            (
                issuer(&format!(
                    "{asked}[auth.issuer.b]\nurl = \"https://b.test\"\n{asked}"
                )),
                "each sees tokens of the others",
            ),
            (
                issuer("kees_url = \"https://l.test\""),
                "did you mean \"keys_url\"",
            ),
            (
                ISSUER.replace("https://l.test", "http://l.test"),
                "anyone on the network path",
            ),
            (
                ISSUER.replace("https://l.test", "https://u:p@l.test"),
                "cannot be used",
            ),
            (
                ISSUER.replace("issuer.corp", "issuer.key"),
                "cannot name an issuer",
            ),
            (
                ISSUER.replace("issuer.corp", "issuer.\"a:b\""),
                "cannot name an issuer",
            ),
            (
                ISSUER.replace("resource = \"https://t.test/mcp\"", ""),
                "needs \"resource\"",
            ),
            (
                "[auth]\n[[auth.scope]]\ntools = [\"files.*\"]\nscopes = [\"a\"]\n".to_owned(),
                "has no effect without an issuer",
            ),
        ] {
            let error = read(&text).map(|_| ()).unwrap_err();
            assert!(error.contains(told), "{text}\n{error}");
            assert!(!error.contains("0123456789abcdef"), "{error}");
        }
    }

    #[test]
    fn disabled_settings_need_no_others() {
        assert!(read("[auth]\ndpop_nonces = false").is_ok());
        assert!(read(&format!("{ISSUER}introspect_signed = false")).is_ok());
        let named = format!("{ISSUER}audiences = [\"api://gate\", \"0b1c\"]");
        let auth = read(&named).unwrap().auth;
        assert_eq!(auth.issuers[0].audiences, ["api://gate", "0b1c"]);
        let reach = AddressPolicy::for_server(&auth.issuers[0].url);
        assert_eq!(auth.issuers[0].address_policy(), reach);
        let danger = read(&format!("{ISSUER}danger_private_addresses = true"));
        let issuer = danger.unwrap().auth.issuers.remove(0);
        assert_eq!(issuer.address_policy(), reach.danger_and_private());
    }

    #[test]
    fn introspection_needs_distinct_token_prefixes() {
        let asked = "introspect = true\nclient_id = \"a\"\nclient_secret = { env = \"A\" }\n";
        let second = format!("[auth.issuer.b]\nurl = \"https://b.test\"\n{asked}");
        let two = format!("{ISSUER}{asked}{second}");
        assert!(read(&format!("{two}token_prefix = \"b_\"\n")).is_ok());
        let danger = two.replacen("[auth]\n", "[auth]\ndanger_ask_every_issuer = true\n", 1);
        assert!(read(&danger).unwrap().auth.danger_ask_every);
        let same = two.replace(asked, &format!("{asked}token_prefix = \"b_\"\n"));
        assert!(read(&same).unwrap_err().contains("each sees tokens"));
    }
}
