//! `[auth.issuer.NAME.sign_in]`: the gateway's OAuth client for signing users in at its own pages.

use super::{
    auth::read_scopes,
    error::ConfigError,
    section::{ConfigField, ConfigSection},
    token::TokenSource,
};
use std::path::Path;

const KEYS: &[&str] = &["client_id", "client_secret", "scopes"];

/// OAuth client that the gateway uses at an issuer to sign users in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct IssuerSignInSettings {
    pub(crate) client_id: String,
    /// Source of the client secret, if the client has one.
    pub(crate) client_secret: Option<TokenSource>,
    /// Requested scopes.
    pub(crate) scopes: Vec<String>,
}

impl IssuerSignInSettings {
    /// Reads `sign_in` from the section of an issuer.
    pub(super) fn read(
        issuer: &ConfigSection<'_>,
        id: &str,
        base: &Path,
    ) -> Result<Option<IssuerSignInSettings>, ConfigError> {
        let Some(field) = issuer.get("sign_in") else {
            return Ok(None);
        };
        if let Some(bound) = issuer.get("dpop_required")
            && bound.boolean()?
        {
            return Err(field.key_error(
                "cannot be combined with dpop_required = true: a token from a browser sign-in is not bound to a key; remove one of the two",
            ));
        }
        read_section(&field, id, base).map(Some)
    }
}

fn read_section(
    field: &ConfigField<'_>,
    id: &str,
    base: &Path,
) -> Result<IssuerSignInSettings, ConfigError> {
    let name = format!("[auth.issuer.{id}.sign_in]");
    let section = field.section(name, "a section", KEYS)?;
    let client = section.require(
        "client_id",
        "\"toolgate-pages\", as the issuer knows the pages of this gateway",
    )?;
    Ok(IssuerSignInSettings {
        client_id: client.expanded()?.into_owned(),
        client_secret: TokenSource::read_client_secret(&section, base)?,
        scopes: section
            .get("scopes")
            .map_or(Ok(Vec::new()), |field| read_scopes(&field))?,
    })
}
