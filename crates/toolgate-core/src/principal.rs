//! Principals that an authorization server attests, and the groups, roles and claims of callers.

use serde_json::{Map, Value, json};

/// Principal that an authorization server attests in a verified access token. Contains no token.
///
/// Standard: [actors, RFC 8693, section 4.1](https://www.rfc-editor.org/rfc/rfc8693#section-4.1).
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Principal {
    /// Issuer identifier of the authorization server that issued the token.
    pub issuer: String,
    /// Subject of the token; unique at the issuer.
    pub subject: String,
    /// Client id of the program that obtained the token, if the issuer states it.
    pub client: Option<String>,
    /// Scopes of the token, sorted.
    pub scopes: Vec<String>,
    /// Actors that act for the subject, the current one first (RFC 8693, section 4.1).
    pub actors: Vec<String>,
}

impl Principal {
    /// Creates a principal from issuer and subject, without scopes.
    pub fn new(issuer: impl Into<String>, subject: impl Into<String>) -> Principal {
        Principal {
            issuer: issuer.into(),
            subject: subject.into(),
            ..Principal::default()
        }
    }

    /// Returns true if the principal's token has this scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.iter().any(|has| has == scope)
    }
}

/// Groups, roles and mapped claims of a caller, which rules can name. The authorization server states them in a token,
/// or the operator gives groups to an API key.
///
/// ```
/// use toolgate_core::{Caller, CallerAttributes};
///
/// let mut attributes = CallerAttributes::default();
/// attributes.groups = vec!["oncall".to_owned()];
/// let ann = Caller::new("corp:ann").with_attributes(attributes);
/// assert!(ann.attributes().groups.iter().any(|group| group == "oncall"));
/// assert!(Caller::new("corp:ben").attributes().groups.is_empty());
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct CallerAttributes {
    /// Groups of the caller, sorted.
    pub groups: Vec<String>,
    /// Roles of the caller, sorted.
    pub roles: Vec<String>,
    /// Claims of the caller's token that the operator maps, by the name that rules use.
    pub claims: Map<String, Value>,
}

impl CallerAttributes {
    /// Returns true if the caller has no groups, roles or claims.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.roles.is_empty() && self.claims.is_empty()
    }

    /// Returns the attributes as JSON, for stores.
    #[doc(hidden)]
    pub fn to_value(&self) -> Value {
        json!({"groups": self.groups, "roles": self.roles, "claims": self.claims})
    }

    /// Reads attributes from JSON of a store or an audit record; members that are missing are empty.
    #[doc(hidden)]
    pub fn from_value(value: &Value) -> CallerAttributes {
        let names = |key: &str| {
            let names = value[key].as_array().into_iter().flatten();
            names.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        CallerAttributes {
            groups: names("groups"),
            roles: names("roles"),
            claims: value["claims"].as_object().cloned().unwrap_or_default(),
        }
    }
}
