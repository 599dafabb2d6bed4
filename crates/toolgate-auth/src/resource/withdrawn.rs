//! Tokens that were good when a stream was opened, and that their issuer withdraws while it is open.

use super::{ResourceServer, Why, jwt::Parsed, now};
use crate::Secret;
use futures_util::future::BoxFuture;
use std::sync::Arc;

impl ResourceServer {
    /// Ends once the issuer of a token that was admitted says that it is not good any more, which it is asked now and then;
    /// nothing where nobody is asked about that token. An issuer that cannot be asked withdraws nothing.
    pub fn withdrawn(self: &Arc<Self>, token: &str) -> Option<BoxFuture<'static, ()>> {
        if !self.asks_about(token) {
            return None;
        }
        let (resource, token) = (self.clone(), Secret::new(token));
        Some(Box::pin(async move {
            loop {
                tokio::time::sleep(resource.limits.again).await;
                let said = resource.token(token.reveal(), (now(), true)).await;
                if let Err(Why::Invalid(_) | Why::Elsewhere(_)) = said {
                    return;
                }
            }
        }))
    }

    fn asks_about(&self, token: &str) -> bool {
        match Parsed::read(token) {
            Some(parsed) => {
                let of = |issuer: &str| self.issuers.iter().find(|known| known.is(issuer));
                let issuer = parsed.issuer();
                issuer.is_some_and(|issuer| of(&issuer).is_some_and(|known| known.asks_all()))
            }
            None => true,
        }
    }
}
