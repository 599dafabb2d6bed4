//! Groups, roles and claims of a caller, for dry runs.

use clap::Args;
use serde_json::Value;
use toolgate_core::CallerAttributes;

/// Groups, roles and claims that a dry run states for its caller.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AttributeOptions {
    /// Group of the caller; may be repeated [default: those of the caller's API key]
    #[arg(long = "group", value_name = "GROUP", conflicts_with = "history")]
    groups: Vec<String>,
    /// Role of the caller; may be repeated
    #[arg(long = "role", value_name = "ROLE", conflicts_with = "history")]
    roles: Vec<String>,
    /// Claim of the caller, as conditions read it: a JSON value, or else a text; may be repeated
    #[arg(long = "claim", value_name = "NAME=VALUE", value_parser = claim, conflicts_with = "history")]
    claims: Vec<(String, Value)>,
}

impl AttributeOptions {
    /// Returns the stated attributes.
    pub(crate) fn attributes(&self) -> CallerAttributes {
        let mut attributes = CallerAttributes::default();
        attributes.groups.clone_from(&self.groups);
        attributes.roles.clone_from(&self.roles);
        attributes.claims.extend(self.claims.iter().cloned());
        attributes
    }
}

fn claim(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or("write NAME=VALUE, such as department=sales")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((name.to_owned(), value))
}
