//! Workload identity: the platform on which a program runs says who it is.
//!
//! Source: the extension `io.modelcontextprotocol/auth/wif`; RFC 7523, section 2.1.

use super::{
    super::{
        AuthError, AuthErrorKind, Found, Scopes,
        endpoint::{Endpoint, NoToken},
        tokens::Answer,
    },
    Assertion, by_assertion,
};
use ring::digest::{Context, SHA256};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Most refusals that are remembered.
const REFUSALS: usize = 256;

/// A program whose platform says who it is. A refusal is final: the same words are not tried again, and no other way.
/// Clones share what was refused.
///
/// ```
/// use toolgate_auth::{
///     Url,
///     client::{Assertion, Authenticate, Login, OauthClient, Workload},
/// };
///
/// // The platform puts another one there before it ends.
/// let token = Assertion::file("/var/run/secrets/tokens/tools");
/// let login = Login::builder(Url::parse("https://tools.example.com/mcp")?)
///     .client(None, OauthClient::new("my-job", Authenticate::None))
///     .workload(Workload::new(token))
///     .build();
/// # drop(login);
/// # Ok::<(), toolgate_auth::BadUrl>(())
/// ```
#[derive(Clone)]
pub struct Workload {
    assertion: Assertion,
    refused: Arc<Mutex<Refused>>,
}

/// Digests of what was refused, and how.
type Refused = HashMap<Vec<u8>, AuthError>;

impl Workload {
    /// One with that assertion, whose audience is the authorization server.
    pub fn new(assertion: impl Into<Assertion>) -> Workload {
        Workload {
            assertion: assertion.into(),
            refused: Arc::default(),
        }
    }

    pub(in super::super) async fn ask(
        &self,
        found: &Found,
        scopes: &Scopes,
        endpoint: &Endpoint<'_>,
    ) -> Result<Answer, NoToken> {
        let assertion = self.assertion.get().await?;
        let assertion = assertion.reveal();
        let of = |scopes: &str| {
            digest(&[
                endpoint.url.as_str(),
                &endpoint.client.id,
                assertion,
                scopes,
            ])
        };
        // Words that say nothing of the assertion may be said of it with other scopes.
        let (whole, with) = (of(""), of(&format!("for {scopes}")));
        if let Some(error) = [&whole, &with]
            .iter()
            .find_map(|key| self.refused().get(*key).cloned())
        {
            let words = format!("{error}; the same assertion is not sent again");
            return Err(AuthError::new(AuthErrorKind::Refused, words).into());
        }
        let asked = by_assertion(found, scopes, assertion, endpoint).await;
        if let Err(no) = &asked
            && no.error.kind() == AuthErrorKind::Refused
            && no.code.is_some()
        {
            // Without a word of the protocol it may be somebody on the way who refused.
            let by_scope = no.code.as_deref() == Some("invalid_scope");
            self.remember(if by_scope { with } else { whole }, no.error.clone());
        }
        asked
    }

    fn remember(&self, key: Vec<u8>, error: AuthError) {
        let mut refused = self.refused();
        if refused.len() >= REFUSALS {
            refused.clear();
        }
        refused.insert(key, error);
    }

    fn refused(&self) -> MutexGuard<'_, Refused> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn digest(texts: &[&str]) -> Vec<u8> {
    let mut context = Context::new(&SHA256);
    for text in texts {
        context.update(&text.len().to_be_bytes());
        context.update(text.as_bytes());
    }
    context.finish().as_ref().to_vec()
}
