//! Claims of `[auth.issuer.NAME]` that become groups, roles and claims of callers.

use super::reader::{NamedSettings, SettingError, SettingPath, inline_schema};
use schemars::json_schema;
use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Visitor},
};
use std::fmt;
use toolgate::auth::resource::ClaimMapping;

/// Maximum number of mapped claims of one issuer.
const MAX_CLAIMS: usize = 32;
/// Maximum number of nested members in the path of a claim.
const MAX_CLAIM_DEPTH: usize = 8;

/// Claim of a token: the name of a claim, or the names of nested members as an array.
#[derive(Clone)]
pub(super) struct ClaimName(Vec<String>);

impl<'de> Deserialize<'de> for ClaimName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ClaimName, D::Error> {
        deserializer.deserialize_any(ClaimNameVisitor)
    }
}

struct ClaimNameVisitor;

impl<'de> Visitor<'de> for ClaimNameVisitor {
    type Value = ClaimName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a claim or an array of names")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<ClaimName, E> {
        claim_name(vec![name.to_owned()]).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ClaimName, A::Error> {
        let mut names = Vec::new();
        while let Some(name) = list.next_element::<String>()? {
            names.push(name);
        }
        claim_name(names).map_err(A::Error::custom)
    }
}

fn claim_name(names: Vec<String>) -> Result<ClaimName, &'static str> {
    let is_valid =
        |name: &String| (1..=255).contains(&name.len()) && !name.chars().any(char::is_control);
    match (1..=MAX_CLAIM_DEPTH).contains(&names.len()) && names.iter().all(is_valid) {
        true => Ok(ClaimName(names)),
        false => Err(
            "is not a claim; write its name, such as \"groups\", or the names of 1 to 8 nested members, such as [\"realm_access\", \"roles\"]",
        ),
    }
}

inline_schema!(ClaimName, |_| json_schema!({"anyOf": [
    {"type": "string", "examples": ["groups"]},
    {"type": "array", "items": {"type": "string"}, "examples": [["realm_access", "roles"]]},
]}));

/// Settings of an issuer's claims, as written.
pub(super) struct ClaimSettings {
    pub(super) groups: Option<ClaimName>,
    pub(super) roles: Option<ClaimName>,
    pub(super) claims: NamedSettings<ClaimName>,
    pub(super) group_prefix: Option<String>,
}

impl ClaimSettings {
    /// Checks the claims of an issuer.
    pub(super) fn check(self, path: &SettingPath) -> Result<ClaimMapping, SettingError> {
        if self.group_prefix.is_some() && self.groups.is_none() && self.roles.is_none() {
            return Err(SettingError::about(
                path.key("group_prefix"),
                "has no effect without groups_claim or roles_claim; add one of them, or remove it",
            ));
        }
        let claims = path.key("claims");
        if self.claims.0.len() > MAX_CLAIMS {
            return Err(SettingError::about(
                claims,
                format!("has more than {MAX_CLAIMS} entries; map only the claims that rules read"),
            ));
        }
        let is_name = |name: &str| {
            let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
            (1..=64).contains(&name.len())
                && name.bytes().all(plain)
                && !name.starts_with(|c: char| c.is_ascii_digit())
        };
        if let Some((name, _)) = self.claims.0.iter().find(|(name, _)| !is_name(name)) {
            return Err(SettingError::at_key(
                claims.key(name),
                format!(
                    "{name:?} cannot be read by a condition; write a name of 1 to 64 letters, digits and \"_\", such as department = \"department\""
                ),
            ));
        }
        let mut mapping = ClaimMapping::default();
        mapping.groups = self.groups.map(|claim| claim.0);
        mapping.roles = self.roles.map(|claim| claim.0);
        let claims = self.claims.0.into_iter();
        mapping.claims = claims.map(|(name, claim)| (name, claim.0)).collect();
        mapping.group_prefix = self.group_prefix.unwrap_or_default();
        Ok(mapping)
    }
}

/// Returns true if two issuers could give callers the same groups or roles.
pub(super) fn has_shared_groups<'a>(issuers: impl Iterator<Item = &'a ClaimMapping>) -> bool {
    let named = issuers.filter(|claims| claims.groups.is_some() || claims.roles.is_some());
    let mut prefixes: Vec<&str> = named.map(|claims| claims.group_prefix.as_str()).collect();
    prefixes.sort_unstable();
    prefixes.windows(2).any(|two| two[0] == two[1])
}
