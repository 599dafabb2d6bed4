//! `[auth]`: how callers over HTTP say who they are, and what their tokens have to be good for.

use super::{
    error::ConfigError,
    given::WRITE,
    glob::Glob,
    issuer_sign_in::IssuerSignIn,
    rule,
    section::{Field, Section},
    server::Server,
    token::TokenSource,
};
use std::{collections::BTreeMap, path::Path};
use toolgate::auth::Url;

const KEYS: &[&str] = &[
    "required",
    "resource",
    "dpop_nonces",
    "danger_ask_every_issuer",
    "issuer",
    "scope",
    "implies",
];
const ISSUER: &[&str] = &[
    "url",
    "keys_url",
    "introspect",
    "introspect_url",
    "introspect_signed",
    "client_id",
    "client_secret",
    "token_prefix",
    "dpop_required",
    "sign_in",
];
const SCOPE: &[&str] = &["tools", "except", "needs"];
const RESOURCE: &str = "\"https://tools.example.com/mcp\", the address that clients use";

/// How callers over HTTP say who they are.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Auth {
    /// Whether those who do not say so are refused, also where there is no token.
    pub(crate) required: bool,
    /// The address of the endpoint, which is the audience of tokens.
    pub(crate) resource: Option<Url>,
    /// Whether proofs need a nonce of ours.
    pub(crate) dpop_nonces: bool,
    /// Whether issuers see tokens that may be of another one.
    pub(crate) ask_every: bool,
    /// Whose tokens are taken.
    pub(crate) issuers: Vec<IssuerSettings>,
    /// For what tokens have to be good.
    pub(crate) scopes: Vec<ScopeSettings>,
    /// Which scopes a scope implies.
    pub(crate) implies: BTreeMap<String, Vec<String>>,
}

/// One `[auth.issuer.NAME]`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct IssuerSettings {
    /// What the names of its callers begin with.
    pub(crate) id: String,
    /// As tokens name it.
    pub(crate) url: Url,
    /// Where its keys are, if not where its metadata says.
    pub(crate) keys: Option<Url>,
    /// How it is asked about tokens.
    pub(crate) introspect: Option<Introspect>,
    /// Whether only tokens with a proof are taken.
    pub(crate) dpop_required: bool,
    /// How a user of it shows who he is, at a page of the gateway.
    pub(crate) sign_in: Option<IssuerSignIn>,
}

/// How an issuer is asked about tokens.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Introspect {
    /// Where, if not where its metadata says.
    pub(crate) url: Option<Url>,
    /// Whether about signed tokens as well.
    pub(crate) signed: bool,
    pub(crate) client: String,
    pub(crate) secret: TokenSource,
    /// What its tokens begin with; empty where that is not said.
    pub(crate) prefix: String,
}

/// One `[[auth.scope]]`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ScopeSettings {
    pub(crate) tools: Vec<Glob>,
    pub(crate) except: Vec<Glob>,
    pub(crate) needs: Vec<String>,
}

impl Auth {
    /// Reads `[auth]`, which may be absent.
    pub(super) fn read(
        field: Option<Field<'_>>,
        servers: &[Server],
        search: bool,
        base: &Path,
    ) -> Result<Auth, ConfigError> {
        let Some(field) = field else {
            return Ok(Auth::default());
        };
        let section = field.section("[auth]", "a section that begins with [auth]", KEYS)?;
        let flag = |key| section.get(key).map_or(Ok(false), |field| field.boolean());
        let resource = section.get("resource").map(|f| url(&f)).transpose()?;
        let issuers = section
            .get("issuer")
            .map(|f| issuers(&f, base))
            .transpose()?;
        let issuers = issuers.unwrap_or_default();
        if let (None, Some(field)) = (&resource, section.get("issuer")) {
            return Err(field.is(format!(
                "needs \"resource\" in [auth], which tokens must be for; write resource = {RESOURCE}"
            )));
        }
        let ask_every = flag("danger_ask_every_issuer")?;
        if let (false, Some(field)) = (ask_every, section.get("issuer")) {
            apart(&field, &issuers)?;
        }
        if let (true, Some(field)) = (issuers.is_empty(), section.get("scope")) {
            return Err(field.is("means nothing without an issuer: only tokens have scopes; add [auth.issuer.NAME], or use [[rule]] with callers"));
        }
        Ok(Auth {
            required: flag("required")?,
            resource,
            dpop_nonces: flag("dpop_nonces")?,
            ask_every,
            issuers,
            scopes: section
                .get("scope")
                .map_or(Ok(Vec::new()), |field| scopes(&field, servers, search))?,
            implies: section
                .get("implies")
                .map_or(Ok(BTreeMap::new()), |field| implies(&field))?,
        })
    }
}

fn issuers(field: &Field<'_>, base: &Path) -> Result<Vec<IssuerSettings>, ConfigError> {
    let all = field.open_section(
        "[auth.issuer]",
        "sections that begin with [auth.issuer.NAME]",
    )?;
    let issuers = all.entries().into_iter().map(|(id, at, field)| {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if id == "key" || !(1..=32).contains(&id.len()) || !id.bytes().all(plain) {
            let text = format!(
                "{id:?} cannot name an issuer: the names of its callers begin with it; write 1 to 32 of a-z, 0-9 and -, and not \"key\""
            );
            return Err(all.doc.error(at, text));
        }
        let name = format!("[auth.issuer.{id}]");
        let section = field.section(name, "a section", ISSUER)?;
        let optional = |key| section.get(key).map(|field| url(&field)).transpose();
        Ok(IssuerSettings {
            id: id.to_owned(),
            url: url(&section.need("url", "\"https://login.example.com\"")?)?,
            keys: optional("keys_url")?,
            introspect: introspect(&section, base)?,
            dpop_required: section
                .get("dpop_required")
                .map_or(Ok(false), |field| field.boolean())?,
            sign_in: IssuerSignIn::read(&section, id, base)?,
        })
    });
    issuers.collect()
}

fn introspect(section: &Section<'_>, base: &Path) -> Result<Option<Introspect>, ConfigError> {
    let wanted = section
        .get("introspect")
        .map_or(Ok(false), |f| f.boolean())?;
    let url_field = section.get("introspect_url");
    let secret = TokenSource::secret(section, base)?;
    if !wanted && url_field.is_none() {
        return match section.get("client_id").or(section.get("token_prefix")) {
            Some(field) => {
                Err(field.is("is for asking about tokens; write introspect = true, or take it out"))
            }
            None => Ok(None),
        };
    }
    let client = section.need(
        "client_id",
        "\"toolgate\", as the issuer knows this gateway",
    )?;
    let secret = secret
        .ok_or_else(|| client.is(format!("needs its secret; write client_secret = {WRITE}")))?;
    Ok(Some(Introspect {
        url: url_field.map(|field| url(&field)).transpose()?,
        signed: section
            .get("introspect_signed")
            .map_or(Ok(false), |field| field.boolean())?,
        client: client.text()?.to_owned(),
        secret,
        prefix: section
            .get("token_prefix")
            .map_or(Ok(String::new()), |f| token_prefix(&f))?,
    }))
}

/// What opaque tokens of one issuer begin with.
fn token_prefix(field: &Field<'_>) -> Result<String, ConfigError> {
    let text = field.text()?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/".contains(&b);
    match (1..=64).contains(&text.len()) && text.bytes().all(plain) {
        true => Ok(text.to_owned()),
        false => {
            Err(field
                .is("is no beginning of a token; write 1 to 64 signs of one, such as \"corp_\""))
        }
    }
}

/// Refuses two issuers that would both be asked about the same tokens: each would see those of the other.
fn apart(field: &Field<'_>, issuers: &[IssuerSettings]) -> Result<(), ConfigError> {
    let prefix = |issuer: &IssuerSettings| Some(issuer.introspect.as_ref()?.prefix.clone());
    let mut prefixes: Vec<String> = issuers.iter().filter_map(prefix).collect();
    prefixes.sort();
    match prefixes.windows(2).any(|two| two[0] == two[1]) {
        true => Err(field.is("has several that would be asked about the same tokens, so that each sees tokens of the others; say which are whose with token_prefix = \"corp_\" (one may be without), or write danger_ask_every_issuer = true in [auth]")),
        false => Ok(()),
    }
}

/// An address that is `https`, or on this machine.
pub(super) fn url(field: &Field<'_>) -> Result<Url, ConfigError> {
    let url = Url::parse(field.text()?).map_err(|bad| {
        field.is(format!(
            "cannot be used: {bad}; write an address such as \"https://login.example.com\""
        ))
    })?;
    match url.is_https() || url.is_loopback() {
        true => Ok(url),
        false => Err(field.is("cannot be used: http:// reaches only this machine, because everybody on the way could read and change it; write https://")),
    }
}

fn scopes(
    field: &Field<'_>,
    servers: &[Server],
    search: bool,
) -> Result<Vec<ScopeSettings>, ConfigError> {
    let list = field.list("[[auth.scope]] for each")?;
    let read = |field: &Field<'_>| {
        let section = field.section(
            "[[auth.scope]]",
            "a section that begins with [[auth.scope]]",
            SCOPE,
        )?;
        let needs = words(&section.need("needs", "[\"files:read\"]")?)?;
        let except = section.get("except");
        Ok(ScopeSettings {
            tools: rule::tools(&section.need("tools", "[\"server.*\"]")?, servers, search)?,
            except: except.map_or(Ok(Vec::new()), |field| {
                rule::tools_of(&field, servers, search)
            })?,
            needs,
        })
    };
    list.iter().map(read).collect()
}

fn implies(field: &Field<'_>) -> Result<BTreeMap<String, Vec<String>>, ConfigError> {
    let all = field.open_section("[auth.implies]", "{ \"files:write\" = [\"files:read\"] }")?;
    let pair = |(scope, _, field): (&str, usize, Field<'_>)| Ok((scope.to_owned(), words(&field)?));
    all.entries().into_iter().map(pair).collect()
}

/// Scopes, at least one.
pub(super) fn words(field: &Field<'_>) -> Result<Vec<String>, ConfigError> {
    let list = field.list("a list such as [\"files:read\"]")?;
    if list.is_empty() {
        return Err(field.is("is empty; name at least one scope"));
    }
    let word = |item: Field<'_>| {
        let text = item.text()?;
        let plain = |b: u8| b.is_ascii_graphic() && b != b'"' && b != b'\\';
        match !text.is_empty() && text.len() <= 255 && text.bytes().all(plain) {
            // The specification keeps it out of what a resource asks for.
            true if text != "offline_access" => Ok(text.to_owned()),
            _ => Err(item.wrong(format!("{text:?} is no scope of a tool; write one such as \"files:read\", without blanks and quotes"))),
        }
    };
    list.into_iter().map(word).collect()
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use std::path::Path;

    const ISSUER: &str =
        "[auth]\nresource = \"https://t.test/mcp\"\n[auth.issuer.corp]\nurl = \"https://l.test\"\n";

    fn read(text: &str) -> Result<Config, String> {
        let text = format!("{text}\n[server.files]\ncommand = [\"a\"]\n");
        Config::parse(Path::new("/etc/t.toml"), &text).map_err(|error| error.to_string())
    }

    #[test]
    fn an_issuer_closes_the_door() {
        assert!(!read("").unwrap().is_closed());
        assert!(read("[auth]\nrequired = true").unwrap().is_closed());
        let config = read(&format!("listen = \"0.0.0.0:1\"\n{ISSUER}")).unwrap();
        assert!(config.is_closed() && config.auth.issuers[0].id == "corp");
    }

    /// Holds: AUTH-37
    #[test]
    fn what_is_wrong_is_told_with_what_to_write() {
        let scope = |needs: &str| {
            format!("{ISSUER}[[auth.scope]]\ntools = [\"files.*\"]\nneeds = {needs}\n")
        };
        let issuer = |more: &str| format!("{ISSUER}{more}\n");
        let asked = "introspect = true\nclient_id = \"a\"\nclient_secret = { env = \"A\" }\n";
        for (text, told) in [
            (scope("[\"offline_access\"]"), "is no scope of a tool"),
            (scope("[\"a b\"]"), "is no scope of a tool"),
            (scope("[]"), "name at least one scope"),
            (
                scope("[\"a\"]").replace("files.*", "file.*"),
                "did you mean \"files\"",
            ),
            (
                issuer("client_secret = \"0123456789abcdef\""),
                "in clear in this file",
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
                "bound to no key",
            ),
            (
                issuer("sign_in = { client_id = \"a\", client_secret = \"0123456789abcdef\" }"),
                "in clear in this file",
            ),
            (
                issuer(&format!("{asked}token_prefix = \"c d\"")),
                "is no beginning of a token",
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
                "everybody on the way",
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
                "[auth]\n[[auth.scope]]\ntools = [\"files.*\"]\nneeds = [\"a\"]\n".to_owned(),
                "means nothing without an issuer",
            ),
        ] {
            let error = read(&text).map(|_| ()).unwrap_err();
            assert!(error.contains(told), "{text}\n{error}");
            assert!(!error.contains("0123456789abcdef"), "{error}");
        }
    }

    #[test]
    fn several_issuers_are_asked_where_it_is_clear_who_sees_what() {
        let asked = "introspect = true\nclient_id = \"a\"\nclient_secret = { env = \"A\" }\n";
        let second = format!("[auth.issuer.b]\nurl = \"https://b.test\"\n{asked}");
        let two = format!("{ISSUER}{asked}{second}");
        assert!(read(&format!("{two}token_prefix = \"b_\"\n")).is_ok());
        let danger = two.replacen("[auth]\n", "[auth]\ndanger_ask_every_issuer = true\n", 1);
        assert!(read(&danger).unwrap().auth.ask_every);
        let same = two.replace(asked, &format!("{asked}token_prefix = \"b_\"\n"));
        assert!(read(&same).unwrap_err().contains("each sees tokens"));
    }
}
