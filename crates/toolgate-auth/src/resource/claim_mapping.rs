//! Mapping of token claims to the groups, roles and claims of callers.

use serde_json::{Map, Value};
use toolgate_core::CallerAttributes;
use toolgate_protocol::json::{Json, JsonKind};

/// Maximum number of groups or of roles that a token may have.
const MAX_TOKEN_GROUPS: usize = 1024;
/// Maximum length of the name of a group or role, in bytes.
const MAX_GROUP_BYTES: usize = 255;

/// Path of a claim in a token: the names of nested members, outermost first.
pub type ClaimPath = Vec<String>;

/// Claim mapping of a [`TrustedIssuer`](super::TrustedIssuer): the claims of its tokens that become groups, roles and
/// claims of callers. By default none do.
///
/// ```
/// use toolgate_auth::{Url, resource::{ClaimMapping, TrustedIssuer}};
///
/// let mut mapping = ClaimMapping::default();
/// mapping.groups = Some(vec!["groups".to_owned()]);
/// mapping.roles = Some(vec!["realm_access".to_owned(), "roles".to_owned()]);
/// mapping.claims = vec![("tenant".to_owned(), vec!["tid".to_owned()])];
/// let issuer = TrustedIssuer::new("corp", Url::parse("https://login.example.com")?).map_claims(mapping);
/// # drop(issuer);
/// # Ok::<(), toolgate_auth::InvalidUrl>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ClaimMapping {
    /// Claim with the groups of the caller: a string, or a list of strings.
    pub groups: Option<ClaimPath>,
    /// Claim with the roles of the caller: a string, or a list of strings.
    pub roles: Option<ClaimPath>,
    /// Further claims: the name that rules use, and the claim.
    pub claims: Vec<(String, ClaimPath)>,
    /// Prefix that the names of groups and roles get, which distinguishes those of several issuers.
    pub group_prefix: String,
}

impl ClaimMapping {
    /// Reads the groups, roles and claims of a caller from the claims of its token.
    ///
    /// # Errors
    /// The reason for which they are unknown, so that the token must be rejected.
    #[doc(hidden)]
    pub fn attributes(&self, payload: &Json) -> Result<CallerAttributes, &'static str> {
        let mut attributes = CallerAttributes::default();
        attributes.groups = self.names(payload, self.groups.as_ref())?;
        attributes.roles = self.names(payload, self.roles.as_ref())?;
        attributes.claims = self.mapped_claims(payload)?;
        Ok(attributes)
    }

    fn names(&self, payload: &Json, path: Option<&ClaimPath>) -> Result<Vec<String>, &'static str> {
        let Some(path) = path else {
            return Ok(Vec::new());
        };
        // A rule that denies a group must not miss it because the token says to look elsewhere.
        if is_overage(payload, path) {
            return Err(
                "the token only refers to the groups or roles of its user, because they are too many for it (overage); let the issuer write only the groups into the token that the gateway needs",
            );
        }
        let Some(claim) = find_claim(payload, path) else {
            return Ok(Vec::new());
        };
        let malformed = "the claim of the token that is mapped to groups or roles is neither a string nor a list of strings, is too long, or has control characters in it";
        let names: Option<Vec<String>> = match claim.kind() {
            JsonKind::Array => claim.items().map(|item| item.string()).collect(),
            JsonKind::Null => return Ok(Vec::new()),
            _ => claim.string().map(|name| vec![name]),
        };
        let Some(names) = names.filter(|names| names.len() <= MAX_TOKEN_GROUPS) else {
            return Err(malformed);
        };
        let is_plain =
            |name: &String| name.len() <= MAX_GROUP_BYTES && !name.chars().any(char::is_control);
        if !names.iter().all(is_plain) {
            return Err(malformed);
        }
        let named = names.into_iter().filter(|name| !name.is_empty());
        let mut names: Vec<String> = named
            .map(|name| format!("{}{name}", self.group_prefix))
            .collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn mapped_claims(&self, payload: &Json) -> Result<Map<String, Value>, &'static str> {
        let mut claims = Map::new();
        for (name, path) in &self.claims {
            let Some(claim) = find_claim(payload, path) else {
                continue;
            };
            let (value, is_lossy) = claim.to_value_and_loss();
            if is_lossy {
                return Err(
                    "a claim of the token that is mapped for rules contains a number that cannot be represented exactly",
                );
            }
            claims.insert(name.clone(), value);
        }
        Ok(claims)
    }
}

fn find_claim(payload: &Json, path: &ClaimPath) -> Option<Json> {
    let (first, rest) = path.split_first()?;
    rest.iter()
        .try_fold(payload.get(first)?, |claim, name| claim.get(name))
}

/// Returns whether the token refers to the claim instead of containing it, by distributed claims (OpenID Connect Core
/// 1.0, section 5.6.2) or the `hasgroups` of Microsoft Entra ID.
fn is_overage(payload: &Json, path: &ClaimPath) -> bool {
    let Some(first) = path.first() else {
        return false;
    };
    let refers = payload
        .get("_claim_names")
        .is_some_and(|names| names.get(first).is_some());
    let has_groups = || {
        payload
            .get("hasgroups")
            .is_some_and(|has| has.bool() == Some(true))
    };
    find_claim(payload, path).is_none() && (refers || (first == "groups" && has_groups()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn path(names: &[&str]) -> ClaimPath {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn attributes(payload: &Value) -> Result<CallerAttributes, &'static str> {
        let mapping = ClaimMapping {
            groups: Some(path(&["groups"])),
            roles: Some(path(&["realm_access", "roles"])),
            claims: vec![
                ("tenant".to_owned(), path(&["org", "id"])),
                ("url.claim".to_owned(), path(&["https://a.test/x"])),
            ],
            group_prefix: String::new(),
        };
        mapping.attributes(&Json::from_value(payload))
    }

    #[test]
    fn maps_groups_roles_and_claims_by_path() {
        let found = attributes(&json!({
            "groups": ["b", "a", "b", ""], "realm_access": {"roles": "admin"},
            "org": {"id": 7}, "https://a.test/x": [true], "other": 1,
        }));
        let found = found.unwrap_or_default();
        assert_eq!(found.groups, ["a", "b"]);
        assert_eq!(found.roles, ["admin"]);
        let claims = json!({"tenant": 7, "url.claim": [true]});
        assert_eq!(Value::Object(found.claims), claims);
        assert!(attributes(&json!({})).is_ok_and(|found| found.is_empty()));
        assert!(attributes(&json!({"groups": null})).is_ok_and(|found| found.is_empty()));
    }

    #[test]
    fn rejects_tokens_whose_groups_are_unknown() {
        let many: Vec<String> = (0..=MAX_TOKEN_GROUPS).map(|n| n.to_string()).collect();
        for payload in [
            json!({"_claim_names": {"groups": "src1"}}),
            json!({"hasgroups": true}),
            json!({"groups": {"a": 1}}),
            json!({"groups": ["a", 1]}),
            json!({"groups": 7}),
            json!({"groups": ["a\nb"]}),
            json!({"groups": "a".repeat(MAX_GROUP_BYTES + 1)}),
            json!({"groups": many}),
            json!({"realm_access": {"roles": [null]}}),
        ] {
            assert!(attributes(&payload).is_err(), "{payload}");
        }
        let both = json!({"hasgroups": true, "groups": ["a"], "_claim_names": {"groups": "s"}});
        assert!(attributes(&both).is_ok());
    }

    #[test]
    fn a_prefix_distinguishes_the_groups_of_issuers() {
        let mapping = ClaimMapping {
            groups: Some(path(&["g"])),
            group_prefix: "partner/".to_owned(),
            ..ClaimMapping::default()
        };
        let found = mapping.attributes(&Json::from_value(&json!({"g": "admin"})));
        assert_eq!(found.unwrap_or_default().groups, ["partner/admin"]);
    }
}
