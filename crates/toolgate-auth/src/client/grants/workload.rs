//! Workload identity: the platform on which a program runs says who it is.
//!
//! Source: the extension `io.modelcontextprotocol/auth/wif`; RFC 7523, section 2.1.

use super::{
    super::{
        Found, Scopes,
        endpoint::{Endpoint, NoToken},
        tokens::Answer,
    },
    Assertion, by_assertion,
};

/// A program whose platform says who it is. A refusal is final: the same words are not tried again, and no other way.
#[derive(Clone)]
pub struct Workload(Assertion);

impl Workload {
    /// One with that assertion, whose audience is the authorization server.
    pub fn new(assertion: impl Into<Assertion>) -> Workload {
        Workload(assertion.into())
    }

    pub(in super::super) async fn ask(
        &self,
        found: &Found,
        scopes: &Scopes,
        endpoint: &Endpoint<'_>,
    ) -> Result<Answer, NoToken> {
        let assertion = self.0.get().await?;
        by_assertion(found, scopes, assertion.reveal(), endpoint).await
    }
}
