//! `[auth]`: authentication of HTTP callers, and the scopes that their tokens need.

use super::{
    claim_mapping::{ClaimName, ClaimSettings, has_shared_groups},
    glob::NameGlob,
    https_url::HttpsUrl,
    issuer_sign_in::{IssuerSignInSection, IssuerSignInSettings},
    reader::{ConfigTree, ExpandedText, NamedSettings, SettingError, SettingPath},
    scopes::Scopes,
    token::TokenSource,
    tool_targets::ToolTargets,
    value_source::{SECRET_ALTERNATIVES, SecretSource},
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use toolgate::auth::{Url, fetch::AddressPolicy, resource::ClaimMapping};

/// Maximum number of additional audiences of one issuer.
const MAX_AUDIENCES: usize = 16;
const EXAMPLE_RESOURCE: &str = "\"https://tools.example.com/mcp\", the URL that clients use";

/// Authentication of HTTP callers, and the scopes that their tokens need.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AuthSection {
    /// True if every caller needs credentials. A `token` and an issuer imply it.
    required: bool,
    /// Address that clients use for the endpoint, and the audience that tokens need (RFC 8707). Default: none; required
    /// with an issuer.
    resource: Option<HttpsUrl>,
    /// True if DPoP proofs need a nonce of this gateway (RFC 9449). It needs an issuer.
    dpop_nonces: bool,
    /// True if the gateway asks the issuers in turn about a token that no `token_prefix` matches, until an issuer
    /// recognizes it. Issuers then see tokens of other issuers. It needs an issuer.
    danger_ask_every_issuer: bool,
    /// Authorization servers whose tokens the gateway accepts.
    issuer: NamedSettings<IssuerSection>,
    /// Scopes that the tokens of callers need for some tools.
    scope: Vec<ScopeSection>,
    /// Scopes that a scope implies, such as `{ "files:write" = ["files:read"] }`. It needs an issuer.
    #[schemars(example = serde_json::json!({"write": ["read"]}))]
    implies: NamedSettings<Scopes>,
}

/// Trusted token issuer, `[auth.issuer.NAME]`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct IssuerSection {
    /// Issuer, exactly as its tokens name it in `iss`.
    #[schemars(example = &"https://login.example.com")]
    url: HttpsUrl,
    /// Address of the issuer's public keys (JWKS). Default: from its metadata.
    keys_url: Option<HttpsUrl>,
    /// True if the gateway asks the issuer about opaque (unsigned) tokens (RFC 7662).
    #[serde(default)]
    introspect: bool,
    /// Introspection endpoint. It implies `introspect`. Default: from its metadata.
    introspect_url: Option<HttpsUrl>,
    /// True if the gateway asks the issuer about signed tokens as well. It needs `introspect`.
    #[serde(default)]
    introspect_signed: bool,
    /// Client id of the gateway at the issuer. It needs `introspect`. Default: none; required for introspection.
    #[schemars(example = &"toolgate")]
    client_id: Option<ExpandedText>,
    /// Secret of that client, at least 16 characters. It needs `introspect`. Default: none; required for introspection.
    client_secret: Option<SecretSource>,
    /// Prefix of the issuer's opaque tokens; it needs `introspect`. The gateway asks this issuer only about tokens with
    /// this prefix, and asks no other issuer about them. If several issuers have introspection, one may have no prefix.
    token_prefix: Option<TokenPrefix>,
    /// Further values, at most 16, that the issuer writes into `aud` for this gateway besides `resource`, compared
    /// exactly. Use only values that it gives to this gateway alone.
    #[schemars(example = ["api://toolgate"])]
    audiences: Option<Vec<AudienceName>>,
    /// True if the gateway accepts only tokens that are bound to a key (DPoP).
    #[serde(default)]
    dpop_required: bool,
    /// Claim with the groups of a caller, for `group:NAME` in `callers` and `caller.groups` in conditions. A nested claim
    /// is an array of names. Default: callers of this issuer have no groups.
    #[schemars(example = &"groups")]
    groups_claim: Option<ClaimName>,
    /// Claim with the roles of a caller, for `role:NAME` and `caller.roles`. Default: callers of this issuer have no
    /// roles.
    roles_claim: Option<ClaimName>,
    /// Further claims that conditions read as `caller.claims.NAME`, by this name.
    #[serde(default)]
    #[schemars(example = serde_json::json!({"department": "department"}))]
    claims: NamedSettings<ClaimName>,
    /// Prefix of the names of this issuer's groups and roles in rules. If several issuers have groups or roles, each
    /// needs another prefix; one may have none. Default: none.
    #[schemars(example = &"partner/")]
    group_prefix: Option<GroupPrefix>,
    /// OAuth client for signing the issuer's users in at a page of the gateway.
    sign_in: Option<IssuerSignInSection>,
    /// True if addresses that the issuer's metadata names may be in private networks. `url`, `keys_url` and
    /// `introspect_url` may always be in private networks.
    #[serde(default)]
    danger_private_addresses: bool,
}

/// Scopes that tokens need for some tools, `[[auth.scope]]`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScopeSection {
    /// Globs over full names of tools, as in rules.
    #[schemars(example = ["server.*"])]
    tools: Vec<String>,
    /// Globs over full names that the entry does not match.
    #[serde(default)]
    #[schemars(example = ["server.*"])]
    except: Vec<String>,
    /// Scopes that a token needs, all of them.
    #[schemars(example = ["files:read"])]
    scopes: Scopes,
}

/// Value of the `aud` claim.
#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "ExpandedText")]
#[schemars(inline)]
struct AudienceName(String);

impl TryFrom<ExpandedText> for AudienceName {
    type Error = &'static str;

    fn try_from(ExpandedText { text, .. }: ExpandedText) -> Result<AudienceName, &'static str> {
        match (1..=256).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) {
            true => Ok(AudienceName(text)),
            false => Err(
                "is not a valid audience; write the \"aud\" value that the issuer uses for this gateway, 1 to 256 ASCII characters without spaces",
            ),
        }
    }
}

/// Prefix of an issuer's opaque tokens.
#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(inline)]
struct TokenPrefix(String);

impl TryFrom<String> for TokenPrefix {
    type Error = &'static str;

    fn try_from(text: String) -> Result<TokenPrefix, &'static str> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/".contains(&b);
        match (1..=64).contains(&text.len()) && text.bytes().all(plain) {
            true => Ok(TokenPrefix(text)),
            false => Err(
                "is not a valid token prefix; write 1 to 64 letters, digits and any of \"-._~+/\", such as \"corp_\"",
            ),
        }
    }
}

/// Prefix of the names of groups.
#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(inline)]
struct GroupPrefix(String);

impl TryFrom<String> for GroupPrefix {
    type Error = &'static str;

    fn try_from(text: String) -> Result<GroupPrefix, &'static str> {
        match (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) {
            true => Ok(GroupPrefix(text)),
            false => Err(
                "is not a valid prefix; write 1 to 64 visible ASCII characters, such as \"partner/\"",
            ),
        }
    }
}

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
    /// Claims that become groups, roles and claims of callers.
    pub(crate) claims: ClaimMapping,
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
    /// Checks `[auth]`.
    pub(super) fn check(
        section: AuthSection,
        tools: ToolTargets<'_>,
        tree: &ConfigTree<'_>,
    ) -> Result<AuthSettings, SettingError> {
        let path = SettingPath::new(&["auth"]);
        let wrong = |key: &str, text: String| Err(SettingError::about(path.key(key), text));
        let ask_every = section.danger_ask_every_issuer;
        if section.issuer.0.is_empty() {
            let useless = |on: bool, key| on.then_some(key);
            let scopes = useless(!section.scope.is_empty(), "scope")
                .or(useless(!section.implies.0.is_empty(), "implies"));
            if let Some(key) = scopes {
                return wrong(key, "has no effect without an issuer: only tokens have scopes; add [auth.issuer.NAME], or use [[rule]] with callers".to_owned());
            }
            let flag = useless(section.dpop_nonces, "dpop_nonces")
                .or(useless(ask_every, "danger_ask_every_issuer"));
            if let Some(key) = flag {
                return wrong(
                    key,
                    "has no effect without an issuer; add [auth.issuer.NAME], or remove it"
                        .to_owned(),
                );
            }
        } else if section.resource.is_none() {
            return wrong(
                "issuer",
                format!(
                    "needs \"resource\" in [auth], the audience of tokens; write resource = {EXAMPLE_RESOURCE}"
                ),
            );
        }
        let issuer = |(id, issuer): (String, IssuerSection)| {
            let path = path.key("issuer").key(&id);
            IssuerSettings::check(id, issuer, tree, &path)
        };
        let issuers: Vec<_> = section
            .issuer
            .0
            .into_iter()
            .map(issuer)
            .collect::<Result<_, _>>()?;
        if !ask_every && has_shared_prefix(&issuers) {
            return wrong("issuer", "has several issuers that would introspect the same tokens, so each would see the tokens of the others; set a different token_prefix such as \"corp_\" for each (one may have none), or write danger_ask_every_issuer = true in [auth]".to_owned());
        }
        if has_shared_groups(issuers.iter().map(|issuer| &issuer.claims)) {
            return wrong("issuer", "has several issuers whose groups or roles could not be distinguished, so one could name its users members of the other's groups; set a different group_prefix such as \"partner/\" for each (one may have none)".to_owned());
        }
        let scope = |(at, scope): (usize, ScopeSection)| {
            let path = path.key("scope").index(at);
            Ok(ScopeSettings {
                tools: tools.check_required(&scope.tools, &path.key("tools"))?,
                except: tools.check(&scope.except, &path.key("except"))?,
                scopes: scope.scopes.0,
            })
        };
        let scopes = section.scope.into_iter().enumerate().map(scope);
        let implied = |(scope, implied): (String, Scopes)| (scope, implied.0);
        Ok(AuthSettings {
            required: section.required,
            resource: section.resource.map(|resource| resource.url),
            dpop_nonces: section.dpop_nonces,
            danger_ask_every: ask_every,
            issuers,
            scopes: scopes.collect::<Result<_, SettingError>>()?,
            implies: section.implies.0.into_iter().map(implied).collect(),
        })
    }
}

impl IssuerSettings {
    fn check(
        id: String,
        mut section: IssuerSection,
        tree: &ConfigTree<'_>,
        path: &SettingPath,
    ) -> Result<IssuerSettings, SettingError> {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if ["key", "group", "role"].contains(&id.as_str())
            || !(1..=32).contains(&id.len())
            || !id.bytes().all(plain)
        {
            return Err(SettingError::at_key(
                path.clone(),
                format!(
                    "{id:?} is not a valid issuer name; write 1 to 32 characters from a-z, 0-9 and \"-\", but not \"key\", \"group\" or \"role\", which have a meaning of their own in rules (key:NAME, group:NAME, role:NAME)"
                ),
            ));
        }
        if section.dpop_required && section.sign_in.is_some() {
            return Err(SettingError::about(
                path.key("sign_in"),
                "cannot be combined with dpop_required = true: a token from a browser sign-in is not bound to a key; remove one of the two",
            ));
        }
        let audiences = section.audiences.take();
        if audiences
            .as_ref()
            .is_some_and(|list| !(1..=MAX_AUDIENCES).contains(&list.len()))
        {
            return Err(SettingError::about(
                path.key("audiences"),
                format!(
                    "must have 1 to {MAX_AUDIENCES} entries: the values that this issuer writes into \"aud\" for this gateway"
                ),
            ));
        }
        let sign_in = section
            .sign_in
            .take()
            .map(|sign_in| IssuerSignInSettings::new(sign_in, tree, &path.key("sign_in")));
        let claims = ClaimSettings {
            groups: section.groups_claim.take(),
            roles: section.roles_claim.take(),
            claims: std::mem::take(&mut section.claims),
            group_prefix: section.group_prefix.take().map(|prefix| prefix.0),
        };
        Ok(IssuerSettings {
            id,
            claims: claims.check(path)?,
            introspection: IntrospectionSettings::check(&mut section, tree, path)?,
            url: section.url.url,
            keys_url: section.keys_url.map(|keys| keys.url),
            audiences: audiences
                .into_iter()
                .flatten()
                .map(|audience| audience.0)
                .collect(),
            dpop_required: section.dpop_required,
            danger_private: section.danger_private_addresses,
            sign_in,
        })
    }
}

impl IntrospectionSettings {
    fn check(
        section: &mut IssuerSection,
        tree: &ConfigTree<'_>,
        path: &SettingPath,
    ) -> Result<Option<IntrospectionSettings>, SettingError> {
        let wrong = |key: &str, text: String| Err(SettingError::about(path.key(key), text));
        if !section.introspect && section.introspect_url.is_none() {
            let useless = [
                ("client_id", section.client_id.is_some()),
                ("client_secret", section.client_secret.is_some()),
                ("token_prefix", section.token_prefix.is_some()),
                ("introspect_signed", section.introspect_signed),
            ];
            return match useless.iter().find(|(_, given)| *given) {
                Some((key, _)) => wrong(
                    key,
                    "is only used for token introspection; write introspect = true, or remove it"
                        .to_owned(),
                ),
                None => Ok(None),
            };
        }
        let Some(client_id) = section.client_id.take() else {
            return Err(SettingError::missing(path.clone(), "client_id"));
        };
        let Some(secret) = section.client_secret.take() else {
            return wrong(
                "client_id",
                format!("needs its secret; write client_secret = {SECRET_ALTERNATIVES}"),
            );
        };
        Ok(Some(IntrospectionSettings {
            url: section.introspect_url.take().map(|url| url.url),
            introspect_signed: section.introspect_signed,
            client_id: client_id.text,
            client_secret: TokenSource::new(secret, tree, &path.key("client_secret")),
            token_prefix: section
                .token_prefix
                .take()
                .map_or_else(String::new, |prefix| prefix.0),
        }))
    }
}

/// Returns true if two issuers would introspect the same tokens: each would see those of the other.
fn has_shared_prefix(issuers: &[IssuerSettings]) -> bool {
    let prefix =
        |issuer: &'_ IssuerSettings| Some(issuer.introspection.as_ref()?.token_prefix.clone());
    let mut prefixes: Vec<String> = issuers.iter().filter_map(prefix).collect();
    prefixes.sort();
    prefixes.windows(2).any(|two| two[0] == two[1])
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
            (scope("[\"offline_access\"]"), "is not a scope for tools"),
            (scope("[\"a b\"]"), "is not a valid scope"),
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
            (issuer("audiences = []"), "must have 1 to 16 entries"),
            (issuer("audiences = [\"a b\"]"), "without spaces"),
            (issuer("audiences = [\"\"]"), "without spaces"),
            (
                issuer("groups_claim = []"),
                "is not a claim; write its name",
            ),
            (issuer("groups_claim = 1"), "write a string such as"),
            (
                issuer("claims = { \"a-b\" = \"c\" }"),
                "cannot be read by a condition",
            ),
            (
                issuer("group_prefix = \"p/\""),
                "has no effect without groups_claim or roles_claim",
            ),
            (
                issuer(
                    "groups_claim = \"groups\"\n[auth.issuer.b]\nurl = \"https://b.test\"\nroles_claim = \"roles\"",
                ),
                "set a different group_prefix",
            ),
            (
                ISSUER.replace("issuer.corp", "issuer.group"),
                "is not a valid issuer name",
            ),
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
                "each would see the tokens of the others",
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
                "is not a valid issuer name",
            ),
            (
                ISSUER.replace("issuer.corp", "issuer.\"a:b\""),
                "is not a valid issuer name",
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
        assert!(
            read(&same)
                .unwrap_err()
                .contains("each would see the tokens")
        );
    }
}
