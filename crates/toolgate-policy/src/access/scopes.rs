//! OAuth scopes required for items. Callers without a token with scopes are not restricted.

use crate::{GlobPattern, access::names};
use std::{collections::BTreeMap, sync::Arc};
use toolgate_core::{
    BoxFuture, CacheHint, Call, Caller, Catalog, ChangeFilter, ChangeStream, Error, ErrorKind,
    Item, Layer, ListRequest, Next, Op, Outcome,
};

/// OAuth scopes that a caller's access token needs to use the items that match some patterns.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ScopeRule {
    /// Patterns of the full names of items that need the scopes.
    pub tools: Vec<GlobPattern>,
    /// Patterns of the full names of items that do not need the scopes, despite `tools`.
    pub except: Vec<GlobPattern>,
    /// OAuth scopes that the access token needs; it needs all of them.
    pub scopes: Vec<String>,
}

impl ScopeRule {
    /// Creates a rule for the items that the patterns match: the access token needs all scopes.
    pub fn new(tools: Vec<GlobPattern>, scopes: Vec<String>) -> ScopeRule {
        ScopeRule {
            tools,
            except: Vec::new(),
            scopes,
        }
    }
}

/// Layer that enforces the OAuth scopes of the caller's access token.
///
/// Items that the token does not authorize are not listed. A call of one fails with all required scopes at once, so
/// that the client can request them. The scopes of all rules that match an item add up.
///
/// Specification: [scope challenges](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#scope-challenge-handling).
#[derive(Clone, Debug, Default)]
pub struct RequiredScopes {
    rules: Arc<[ScopeRule]>,
    implied: Arc<BTreeMap<String, Vec<String>>>,
}

impl RequiredScopes {
    /// Creates the layer that enforces OAuth scopes by these rules.
    pub fn new(rules: Vec<ScopeRule>) -> RequiredScopes {
        RequiredScopes {
            rules: rules.into(),
            implied: Arc::default(),
        }
    }

    /// Sets implied OAuth scopes: a token with a scope also has the scopes that it implies here, transitively.
    #[must_use]
    pub fn implying(self, implied: BTreeMap<String, Vec<String>>) -> RequiredScopes {
        RequiredScopes {
            implied: Arc::new(implied),
            ..self
        }
    }

    /// Returns all OAuth scopes that any rule requires, sorted.
    pub fn all(&self) -> Vec<String> {
        let mut all: Vec<String> = self.rules.iter().flat_map(|r| r.scopes.clone()).collect();
        all.sort();
        all.dedup();
        all
    }

    /// Returns the OAuth scopes required to use an item, sorted.
    pub fn required(&self, item: &Item, uri: Option<&str>) -> Vec<String> {
        if self.rules.is_empty() {
            return Vec::new();
        }
        let names = names::of(item, uri);
        let speaks = |rule: &&ScopeRule| names.restricted_by(&rule.tools, &rule.except);
        let rules = self.rules.iter().filter(speaks);
        let mut needs: Vec<String> = rules.flat_map(|rule| rule.scopes.clone()).collect();
        needs.sort();
        needs.dedup();
        needs
    }

    /// Returns all OAuth scopes required for an item if the caller's token lacks one of them, else `None`.
    pub fn missing(&self, caller: &Caller, item: &Item, uri: Option<&str>) -> Option<Vec<String>> {
        let principal = caller.principal()?;
        let needs = self.required(item, uri);
        let has = |need: &String| self.has_scope(&principal.scopes, need);
        (!needs.iter().all(has)).then_some(needs)
    }

    /// Returns whether one of the scopes is the required one or implies it.
    fn has_scope(&self, scopes: &[String], need: &str) -> bool {
        let mut seen: Vec<&str> = Vec::new();
        let mut open: Vec<&str> = scopes.iter().map(String::as_str).collect();
        while let Some(scope) = open.pop() {
            if scope == need {
                return true;
            }
            if seen.contains(&scope) {
                continue;
            }
            seen.push(scope);
            let implied = self.implied.get(scope).into_iter().flatten();
            open.extend(implied.map(String::as_str));
        }
        false
    }
}

impl Layer for RequiredScopes {
    fn name(&self) -> &'static str {
        "scopes"
    }

    fn list<'a>(
        &'a self,
        ask: ListRequest,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Catalog, Error>> {
        // A lookup of one item for a call stays: the call then fails with the required scopes.
        if ask.only_name.is_some() || ask.caller.principal().is_none() || self.rules.is_empty() {
            return next.list(ask);
        }
        let caller = ask.caller.clone();
        Box::pin(async move {
            let catalog = next.list(ask).await?;
            let items = catalog.items().iter();
            let may = |item: &&Arc<Item>| self.missing(&caller, item, None).is_none();
            let items: Vec<_> = items.filter(may).cloned().collect();
            // Another token may see more or less, so a shared cache must not store the list.
            let hint = CacheHint {
                public: false,
                ..catalog.cache_hint()
            };
            Ok(catalog.with_items(items).with_cache_hint(hint))
        })
    }

    /// Drops subscriptions to resources that the token may not read.
    fn changes<'a>(
        &'a self,
        mut want: ChangeFilter,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<ChangeStream, Error>> {
        if want.uris.is_empty() || want.caller.principal().is_none() || self.rules.is_empty() {
            return next.changes(want);
        }
        Box::pin(async move {
            let mut may = Vec::new();
            for uri in std::mem::take(&mut want.uris) {
                // If the lookup fails, it is unknown who may read the resource.
                let Ok(item) = find_resource(&next, &want.caller, &uri).await else {
                    continue;
                };
                let lacks = |item: Arc<Item>| self.missing(&want.caller, &item, Some(&uri));
                if item.and_then(lacks).is_none() {
                    may.push(uri);
                }
            }
            want.uris = may;
            // Below this layer all subscribers may share one source.
            Ok(next.changes(want.clone()).await?.filtered(&want))
        })
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Result<Outcome, Error>> {
        let lacking = call
            .item()
            .and_then(|item| self.missing(&call.caller, item, Some(call.name())));
        let Some(needs) = lacking else {
            return next.call(call);
        };
        let plural = if needs.len() == 1 { "" } else { "s" };
        let text = format!(
            "refused: this call requires an access token with the scope{plural} {}",
            needs.join(" ")
        );
        call.decision_log.add("scopes", "refuse", text.clone());
        Box::pin(async move { Err(Error::new(ErrorKind::InsufficientScope(needs), text)) })
    }
}

/// Looks up the item for a resource URI.
async fn find_resource(
    next: &Next<'_>,
    caller: &Caller,
    uri: &str,
) -> Result<Option<Arc<Item>>, Error> {
    for kind in Op::Resource.kinds() {
        let catalog = next
            .lookup(ListRequest::one(caller.clone(), *kind, uri))
            .await?;
        if let Some(item) = catalog.find(uri).filter(|item| item.withheld.is_none()) {
            return Ok(Some(item.clone()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::{Definition, Json, Origin, Principal};

    fn tool(name: &str) -> Item {
        let def = format!(r#"{{"name": "{name}", "inputSchema": {{"type": "object"}}}}"#);
        let def = Json::read(def.into_bytes(), &Default::default()).unwrap();
        let origin = Origin {
            server: "files".into(),
            trusted: false,
        };
        Item::new(origin, Definition::tool(def).unwrap())
    }

    fn scopes() -> RequiredScopes {
        let rule = |tools: &str, except: &[&str], needs: &[&str]| ScopeRule {
            tools: vec![GlobPattern::new(tools)],
            except: except.iter().map(|e| GlobPattern::new(*e)).collect(),
            scopes: needs.iter().map(|&n| n.to_owned()).collect(),
        };
        let implied = BTreeMap::from([
            ("admin".to_owned(), vec!["write".to_owned()]),
            // A cycle terminates.
            (
                "write".to_owned(),
                vec!["read".to_owned(), "admin".to_owned()],
            ),
        ]);
        RequiredScopes::new(vec![
            rule("files.*", &["files.about"], &["read"]),
            rule("files.put", &[], &["write"]),
        ])
        .implying(implied)
    }

    fn lacking(scopes: &RequiredScopes, has: &[&str], tool: &str) -> Option<Vec<String>> {
        let mut principal = Principal::new("https://login.example.com", "ann");
        principal.scopes = has.iter().map(|&s| s.to_owned()).collect();
        let caller = Caller::new("corp:ann").with_principal(principal);
        scopes.missing(&caller, &super::tests::tool(tool), None)
    }

    #[test]
    fn reports_all_required_scopes_at_once() {
        let scopes = scopes();
        assert_eq!(scopes.all(), ["read", "write"]);
        let both = Some(vec!["read".to_owned(), "write".to_owned()]);
        for (has, tool, lacks) in [
            (&[][..], "get", Some(vec!["read".to_owned()])),
            (&["read"], "get", None),
            (&["Read"], "get", Some(vec!["read".to_owned()])),
            (&["read "], "get", Some(vec!["read".to_owned()])),
            (&[], "about", None),
            (&["read"], "put", both.clone()),
            (&["other"], "put", both),
            (&["write"], "put", None),
            (&["admin"], "put", None),
        ] {
            assert_eq!(lacking(&scopes, has, tool), lacks, "{has:?} {tool}");
        }
    }

    #[test]
    fn callers_without_a_token_are_not_restricted() {
        let item = tool("put");
        let caller = Caller::new("key:ci");
        assert_eq!(scopes().missing(&caller, &item, None), None);
        assert_eq!(RequiredScopes::default().all(), Vec::<String>::new());
    }
}
