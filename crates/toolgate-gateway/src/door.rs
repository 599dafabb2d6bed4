//! Who may come in over HTTP, and as whom.

mod attempts;
mod bearers;
mod tokens;

pub(crate) use attempts::{Attempt, Attempts};
pub(crate) use bearers::{Bearer, Bearers};
pub(crate) use tokens::{Tokens, limits};

use http::{HeaderMap, Method, StatusCode};
use ring::digest;
use std::sync::Arc;
use toolgate::{
    BoxFuture, Caller,
    auth::{
        Secret, Url,
        resource::{Admitted, Refused, ResourceServer, Scheme, Shown},
    },
    edge::http::{HostGuard, protected},
};
use toolgate_policy::keys::{KEY_PREFIX, KeyRefused, Keys, Over};

/// The path of the resource itself, wherever a proxy puts it.
const MCP: &str = "mcp";

/// Who may come in over HTTP, and as whom.
pub(crate) struct Door {
    pub(crate) guard: HostGuard,
    pub(crate) token: Option<Secret>,
    /// Who takes tokens of authorization servers.
    pub(crate) resource: Option<Arc<ResourceServer>>,
    /// Whether those who do not say who they are stay out.
    pub(crate) closed: bool,
    /// Refused credentials of one address in a minute, of which each is recorded.
    pub(crate) failures: u32,
    /// Where tokens are held that are exchanged for those of servers, and how many; absent where none is.
    pub(crate) bearers: Option<(Arc<Bearers>, usize)>,
}

/// Somebody who came in.
pub(crate) struct Entered {
    pub(crate) caller: Caller,
    /// Ends when he has to leave at once: his key was revoked.
    pub(crate) withdrawn: Option<BoxFuture<'static, ()>>,
    /// Ends when he may begin nothing more: with his key or his token.
    pub(crate) over: Option<BoxFuture<'static, ()>>,
}

/// Why somebody stays out.
pub(crate) struct StaysOut {
    pub(crate) how: How,
    /// For the record.
    pub(crate) why: String,
    /// For himself.
    pub(crate) told: &'static str,
    /// The same, of those who take tokens.
    pub(crate) refused: Option<Box<Refused>>,
}

/// How somebody stays out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum How {
    /// He showed nothing that could be good.
    Silent,
    /// He showed what is not good.
    Wrong,
    /// He showed what cannot be read.
    Malformed,
    /// What he showed is not looked at now.
    Unasked,
}

impl Entered {
    fn as_one(name: &str) -> Entered {
        Entered {
            caller: Caller::new(name),
            withdrawn: None,
            over: None,
        }
    }

    fn by_token(admitted: Admitted, resource: &Arc<ResourceServer>, token: &str) -> Entered {
        Entered {
            caller: admitted.caller,
            withdrawn: None,
            over: protected::over(resource, token, admitted.until),
        }
    }
}

impl Door {
    /// Lets somebody in by the headers of his request. What he shows and is wrong keeps him out, also where he need not
    /// show anything. `over`: too much of what came from his address was wrong lately, so no issuer is asked for him.
    ///
    /// # Errors
    /// He stays out.
    pub(crate) async fn enter(
        &self,
        (method, path): (&Method, &str),
        headers: &HeaderMap,
        keys: &Arc<Keys>,
        over: bool,
    ) -> Result<Entered, StaysOut> {
        let shown = Shown::of(headers);
        if let Shown::Token(scheme, shown) = shown {
            let ours = self.token.as_ref().is_some_and(|token| token.is(shown));
            // No issuer sees what is ours, however it came.
            return match scheme {
                Scheme::Bearer if ours => Ok(Entered::as_one(over_http(true))),
                Scheme::Bearer if shown.starts_with(KEY_PREFIX) => self.by_key(shown, keys),
                Scheme::Dpop if ours || shown.starts_with(KEY_PREFIX) => {
                    let why = "a key came with DPoP".to_owned();
                    Err(self.wrong(why, "keys are sent as Authorization: Bearer KEY"))
                }
                _ => self.by_token((method, path), headers, shown, over).await,
            };
        }
        match shown {
            Shown::Malformed(why) => Err(self.malformed(why)),
            Shown::Nothing if !self.closed && self.resource.is_none() => {
                Ok(Entered::as_one(over_http(false)))
            }
            Shown::Nothing => Err(self.silent("no credentials were shown")),
            _ => Err(StaysOut {
                told: self.other_scheme(),
                ..self.silent("the credentials are not one bearer token")
            }),
        }
    }

    async fn by_token(
        &self,
        (method, path): (&Method, &str),
        headers: &HeaderMap,
        shown: &str,
        over: bool,
    ) -> Result<Entered, StaysOut> {
        let Some(resource) = &self.resource else {
            return Err(self.wrong(
                "the bearer token is wrong".to_owned(),
                match self.token {
                    Some(_) => {
                        "this bearer token is not known here; send a key that `toolgate keys create` made, or the token of the config"
                    }
                    None => {
                        "this bearer token is not known here; send a key that `toolgate keys create` made"
                    }
                },
            ));
        };
        let beside = beside(resource.resource(), path);
        let address = beside.as_ref().unwrap_or(resource.resource());
        let admitted = resource.admit_at(address, method, headers, !over).await;
        let admitted = admitted.map_err(StaysOut::of)?;
        if let Some((bearers, most)) = &self.bearers {
            bearers.hold(&admitted.caller, shown, admitted.until, *most);
        }
        Ok(Entered::by_token(admitted, resource, shown))
    }

    fn by_key(&self, shown: &str, keys: &Arc<Keys>) -> Result<Entered, StaysOut> {
        match keys.open(shown) {
            Ok(pass) => Ok(Entered {
                caller: pass.caller(),
                withdrawn: Some(Box::pin(keys.clone().withdrawn(pass.clone()))),
                over: Some(Box::pin(keys.clone().ended(pass))),
            }),
            Err(KeyRefused::Unknown) => Err(self.wrong(
                "there is no such key".to_owned(),
                "this key is not known here, or was replaced by another long ago; ask the operator for one, who makes it with `toolgate keys create NAME`",
            )),
            Err(KeyRefused::Over(name, over)) => Err(self.wrong(
                format!("the key {name} is {}", over.as_str()),
                match over {
                    Over::Replaced => "this key was replaced by another; ask the operator for that one",
                    _ => "this key was revoked or has expired; ask the operator for a new one",
                },
            )),
        }
    }

    /// Somebody showed what is not good.
    pub(crate) fn wrong(&self, why: String, told: &'static str) -> StaysOut {
        let refused = self.refused(|resource| resource.refuses(told));
        StaysOut {
            how: How::Wrong,
            why,
            told,
            refused,
        }
    }

    /// The refusal in the words of those who take tokens, where there are any.
    fn refused(&self, of: impl FnOnce(&ResourceServer) -> Refused) -> Option<Box<Refused>> {
        let resource = self.resource.as_ref()?;
        Some(Box::new(of(resource)))
    }

    fn silent(&self, why: &str) -> StaysOut {
        StaysOut {
            how: How::Silent,
            why: why.to_owned(),
            told: "credentials are needed here: send Authorization: Bearer KEY with a key that the operator made with `toolgate keys create NAME`",
            refused: self.refused(|resource| resource.asks_for()),
        }
    }

    /// What is told of credentials of another scheme, or of none.
    fn other_scheme(&self) -> &'static str {
        match self.closed || self.resource.is_some() {
            true => {
                "this Authorization does not begin with a scheme that is taken here; send Authorization: Bearer KEY with a key that the operator made with `toolgate keys create NAME`"
            }
            false => {
                "this Authorization does not begin with a scheme that is taken here; send Authorization: Bearer KEY, or no Authorization, which is not needed here"
            }
        }
    }

    fn malformed(&self, why: &'static str) -> StaysOut {
        StaysOut {
            how: How::Malformed,
            why: why.to_owned(),
            told: "the header Authorization cannot be read here; send it once, as Bearer and one key",
            refused: self.refused(|resource| resource.cannot_read(why)),
        }
    }
}

/// The address of another path of ours, beside that of the resource: a proof has to be for it.
fn beside(resource: &Url, path: &str) -> Option<Url> {
    let (folder, own) = resource.path().rsplit_once('/')?;
    let path = path.trim_start_matches('/');
    match path == own || path == MCP {
        true => None,
        false => resource.at(&format!("{folder}/{path}")).ok(),
    }
}

impl StaysOut {
    fn of(refused: Refused) -> StaysOut {
        let how = match refused.status() {
            StatusCode::TOO_MANY_REQUESTS => How::Unasked,
            _ if refused.tried() => How::Wrong,
            _ => How::Silent,
        };
        StaysOut {
            how,
            why: refused.why().to_owned(),
            told: refused.told(),
            refused: Some(Box::new(refused)),
        }
    }

    /// Where no token of an issuer is taken: the status, and the header that says what is wanted.
    pub(crate) fn challenge(&self) -> (StatusCode, &'static str) {
        match self.how {
            How::Malformed => (StatusCode::BAD_REQUEST, "Bearer error=\"invalid_request\""),
            How::Wrong => (StatusCode::UNAUTHORIZED, "Bearer error=\"invalid_token\""),
            How::Silent | How::Unasked => (StatusCode::UNAUTHORIZED, "Bearer"),
        }
    }
}

/// The name of a caller over HTTP that says no other.
pub(crate) fn over_http(token: bool) -> &'static str {
    match token {
        true => "token@http",
        false => Caller::ANONYMOUS_HTTP,
    }
}

/// Compares secrets by their digests, so that the time it takes says nothing about where they differ.
pub(crate) fn same(given: &str, wanted: &str) -> bool {
    let digest = |text: &str| digest::digest(&digest::SHA256, text.as_bytes());
    digest(given).as_ref() == digest(wanted).as_ref()
}
