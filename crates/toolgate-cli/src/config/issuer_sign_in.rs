//! `[auth.issuer.NAME.sign_in]`: the gateway's OAuth client for signing users in at its own pages.

use super::{
    reader::{ConfigTree, ExpandedText, SettingPath},
    scopes::Scopes,
    token::TokenSource,
    value_source::SecretSource,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// OAuth client for signing users in at pages of the gateway, `[auth.issuer.NAME.sign_in]`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct IssuerSignInSection {
    /// Client id of the gateway's pages at the issuer. Register one redirect address for it: the address of `resource`
    /// with `sign-in/shown` in place of `mcp`. For people who sign in to the console, also register that of the console
    /// with the path `/console/identity`. Do not register `sign-in/back` or `console/signed-in`: a server's authorization
    /// flow could then obtain codes of this client.
    #[schemars(example = &"toolgate-pages")]
    client_id: ExpandedText,
    /// Secret of that client, if it has one.
    client_secret: Option<SecretSource>,
    /// Scopes to request, if the issuer gives no token for the resource without them.
    #[schemars(example = ["openid"])]
    scopes: Option<Scopes>,
}

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
    /// Returns the settings of a section.
    pub(super) fn new(
        section: IssuerSignInSection,
        tree: &ConfigTree<'_>,
        path: &SettingPath,
    ) -> IssuerSignInSettings {
        let secret = |secret| TokenSource::new(secret, tree, &path.key("client_secret"));
        IssuerSignInSettings {
            client_id: section.client_id.text,
            client_secret: section.client_secret.map(secret),
            scopes: section.scopes.map_or_else(Vec::new, |scopes| scopes.0),
        }
    }
}
