//! Who may come in over HTTP, and as whom.

mod attempts;
mod bearers;
mod tokens;

pub(crate) use attempts::{Attempt, Attempts};
pub(crate) use bearers::{Bearer, Bearers};
pub(crate) use tokens::{Tokens, limits};

use http::{HeaderMap, Method, header};
use ring::digest;
use std::sync::Arc;
use toolgate::{
    BoxFuture, Caller,
    auth::{
        Secret, Url,
        resource::{Admitted, Refused, ResourceServer},
    },
    edge::http::{HostGuard, protected},
};
use toolgate_policy::keys::{KEY_PREFIX, KeyRefused, Keys};

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
    /// Ends when he has to leave: with his key or his token.
    pub(crate) until: Option<BoxFuture<'static, ()>>,
}

/// Why somebody stays out.
pub(crate) struct StaysOut {
    /// Whether he showed credentials.
    pub(crate) tried: bool,
    /// For the record.
    pub(crate) why: String,
    /// For himself.
    pub(crate) told: &'static str,
    /// The same, of those who take tokens.
    pub(crate) refused: Option<Refused>,
}

impl Entered {
    fn as_one(name: &str) -> Entered {
        Entered {
            caller: Caller::new(name),
            until: None,
        }
    }

    fn by_token(admitted: Admitted) -> Entered {
        Entered {
            caller: admitted.caller,
            until: admitted.until.map(protected::at),
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
        let shown = bearer(headers);
        if let Shown::Token(shown) = shown {
            if let Some(token) = &self.token
                && token.is(shown)
            {
                return Ok(Entered::as_one(over_http(true)));
            }
            if shown.starts_with(KEY_PREFIX) {
                return by_key(shown, keys);
            }
        }
        if let Some(resource) = &self.resource {
            if over && resource.asks() && !matches!(shown, Shown::Nothing) {
                return Err(StaysOut {
                    tried: true,
                    why: "no issuer is asked for this address now".to_owned(),
                    told: "too many wrong tokens came from this address, so none of it is looked at now; come again in a minute",
                    refused: None,
                });
            }
            let admitted = match beside(resource.resource(), path) {
                Some(address) => resource.admit_at(&address, method, headers).await,
                None => resource.admit(method, headers).await,
            };
            let admitted = admitted.map_err(StaysOut::of)?;
            if let (Some((bearers, most)), Some(token)) = (&self.bearers, credential(headers)) {
                bearers.hold(&admitted.caller, token, admitted.until, *most);
            }
            return Ok(Entered::by_token(admitted));
        }
        match (self.closed, shown) {
            (false, _) => Ok(Entered::as_one(over_http(false))),
            (true, Shown::Nothing) => Err(StaysOut::silent("no credentials were shown")),
            (true, Shown::Other) => {
                Err(StaysOut::silent("the credentials are not one bearer token"))
            }
            (true, Shown::Token(_)) => Err(StaysOut {
                tried: true,
                why: "the bearer token is wrong".to_owned(),
                told: "this bearer token is not known here; send a key that `toolgate keys create` made, or the token of the config",
                refused: None,
            }),
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

fn by_key(shown: &str, keys: &Arc<Keys>) -> Result<Entered, StaysOut> {
    let (why, told) = match keys.open(shown) {
        Ok(pass) => {
            return Ok(Entered {
                caller: pass.caller(),
                until: Some(Box::pin(keys.clone().ended(pass))),
            });
        }
        Err(KeyRefused::Unknown) => (
            "there is no such key".to_owned(),
            "this key is not known here; ask the operator for one, who makes it with `toolgate keys create NAME`",
        ),
        Err(KeyRefused::Over(name, over)) => (
            format!("the key {name} is {}", over.as_str()),
            "this key was revoked or has expired; ask the operator for a new one",
        ),
    };
    Err(StaysOut {
        tried: true,
        why,
        told,
        refused: None,
    })
}

impl StaysOut {
    fn silent(why: &str) -> StaysOut {
        StaysOut {
            tried: false,
            why: why.to_owned(),
            told: "credentials are needed here: send Authorization: Bearer KEY with a key that the operator made with `toolgate keys create NAME`",
            refused: None,
        }
    }

    fn of(refused: Refused) -> StaysOut {
        StaysOut {
            tried: refused.tried(),
            why: refused.why().to_owned(),
            told: refused.told(),
            refused: Some(refused),
        }
    }

    /// The header that says what is wanted.
    pub(crate) fn challenge(&self) -> &'static str {
        match self.tried {
            true => "Bearer error=\"invalid_token\"",
            false => "Bearer",
        }
    }
}

/// The name of a caller over HTTP that says no other.
pub(crate) fn over_http(token: bool) -> &'static str {
    match token {
        true => "token@http",
        false => "anonymous@http",
    }
}

/// What stands in `Authorization`.
enum Shown<'a> {
    Nothing,
    Token(&'a str),
    /// Several, or of another scheme.
    Other,
}

/// The token of a request that was let in by it, whatever its scheme.
fn credential(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    value.split_once(' ').map(|(_, token)| token.trim())
}

fn bearer(headers: &HeaderMap) -> Shown<'_> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Shown::Nothing,
        (Some(value), None) => value,
        (Some(_), Some(_)) => return Shown::Other,
    };
    match value.to_str().ok().and_then(|value| value.split_once(' ')) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Shown::Token(token),
        _ => Shown::Other,
    }
}

/// Compares secrets by their digests, so that the time it takes says nothing about where they differ.
pub(crate) fn same(given: &str, wanted: &str) -> bool {
    let digest = |text: &str| digest::digest(&digest::SHA256, text.as_bytes());
    digest(given).as_ref() == digest(wanted).as_ref()
}
