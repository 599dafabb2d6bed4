//! Revocation of tokens during open streams.

use super::{RejectionReason, ResourceServer, jwt::ParsedJwt, now};
use crate::Secret;
use futures_util::future::BoxFuture;
use std::sync::Arc;

impl ResourceServer {
    /// Returns a future that ends once introspection reports the token as no longer active. `None` if the token is not
    /// introspected. An unreachable issuer revokes nothing.
    pub fn revoked(self: &Arc<Self>, token: &str) -> Option<BoxFuture<'static, ()>> {
        if !self.is_introspected(token) {
            return None;
        }
        let (resource, token) = (self.clone(), Secret::new(token));
        Some(Box::pin(async move {
            loop {
                tokio::time::sleep(resource.limits.introspection_recheck).await;
                let said = resource.verify_token(token.reveal(), (now(), true)).await;
                if let Err(RejectionReason::Invalid(_) | RejectionReason::WrongAudience(_)) = said {
                    return;
                }
            }
        }))
    }

    fn is_introspected(&self, token: &str) -> bool {
        match ParsedJwt::parse(token) {
            Some(parsed) => {
                let of = |issuer: &str| {
                    self.issuers
                        .iter()
                        .find(|known| known.has_identifier(issuer))
                };
                let issuer = parsed.issuer();
                issuer.is_some_and(|issuer| {
                    of(&issuer).is_some_and(|known| known.introspects_signed())
                })
            }
            None => true,
        }
    }
}
