//! `[auth.issuer.NAME.sign_in]`: who the gateway is at an issuer, where a user of it has to show who he is.

use super::{
    auth::words,
    error::ConfigError,
    section::{Field, Section},
    token::TokenSource,
};
use std::path::Path;

const KEYS: &[&str] = &["client_id", "client_secret", "scopes"];

/// As which client the gateway asks a user of an issuer who he is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct IssuerSignIn {
    pub(crate) client: String,
    /// Where its secret is, if it has one.
    pub(crate) secret: Option<TokenSource>,
    /// What is asked for.
    pub(crate) scopes: Vec<String>,
}

impl IssuerSignIn {
    /// Reads it out of the section of an issuer.
    pub(super) fn read(
        issuer: &Section<'_>,
        id: &str,
        base: &Path,
    ) -> Result<Option<IssuerSignIn>, ConfigError> {
        let Some(field) = issuer.get("sign_in") else {
            return Ok(None);
        };
        if let Some(bound) = issuer.get("dpop_required")
            && bound.boolean()?
        {
            return Err(field.is(
                "goes with no dpop_required = true: a token that a page gets is bound to no key; take one of them out",
            ));
        }
        one(&field, id, base).map(Some)
    }
}

fn one(field: &Field<'_>, id: &str, base: &Path) -> Result<IssuerSignIn, ConfigError> {
    let name = format!("[auth.issuer.{id}.sign_in]");
    let section = field.section(name, "a section", KEYS)?;
    let client = section.need(
        "client_id",
        "\"toolgate-pages\", as the issuer knows the pages of this gateway",
    )?;
    Ok(IssuerSignIn {
        client: client.text()?.to_owned(),
        secret: TokenSource::secret(&section, base)?,
        scopes: section
            .get("scopes")
            .map_or(Ok(Vec::new()), |field| words(&field))?,
    })
}
