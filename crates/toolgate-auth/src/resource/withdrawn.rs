//! Revocation of tokens during open streams.

use super::{RejectionReason, ResourceServer, jwt::ParsedJwt, now};
use crate::Secret;
use futures_util::future::BoxFuture;
use std::sync::Arc;

impl ResourceServer {
    /// Returns a future that ends once the issuer reports a token as no longer active, by repeated introspection.
    /// `None` if the token is not introspected. An unreachable issuer revokes nothing.
    pub fn withdrawn(self: &Arc<Self>, token: &str) -> Option<BoxFuture<'static, ()>> {
        if !self.asks_about(token) {
            return None;
        }
        let (resource, token) = (self.clone(), Secret::new(token));
        Some(Box::pin(async move {
            loop {
                tokio::time::sleep(resource.limits.again).await;
                let said = resource.token(token.reveal(), (now(), true)).await;
                if let Err(RejectionReason::Invalid(_) | RejectionReason::Elsewhere(_)) = said {
                    return;
                }
            }
        }))
    }

    fn asks_about(&self, token: &str) -> bool {
        match ParsedJwt::read(token) {
            Some(parsed) => {
                let of = |issuer: &str| self.issuers.iter().find(|known| known.is(issuer));
                let issuer = parsed.issuer();
                issuer.is_some_and(|issuer| of(&issuer).is_some_and(|known| known.asks_all()))
            }
            None => true,
        }
    }
}
