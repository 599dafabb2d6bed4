//! Check of what an operator wants to freeze: a typo would freeze nothing.

use super::{ActionError, OperatorApi};
use crate::{config::SEARCH_SERVER, runtime::dry_run::nearest_name};
use toolgate_policy::FreezeScope;

impl OperatorApi {
    /// Checks the target of a freeze. Returns a note about a caller that was never seen.
    ///
    /// # Errors
    /// The config has no such server, or no caller can have that name. Another gateway may know it.
    pub(super) fn check_freeze(&self, scope: &FreezeScope) -> Result<Option<String>, ActionError> {
        match scope {
            FreezeScope::Server(id) => self.check_frozen_server(id).map(|()| None),
            FreezeScope::Caller(name) => self.check_frozen_caller(name),
            _ => Ok(None),
        }
    }

    fn check_frozen_server(&self, id: &str) -> Result<(), ActionError> {
        let plan = self.active.snapshot();
        let servers = plan.config.servers.iter().map(|server| server.id.clone());
        let search = plan
            .config
            .search
            .as_ref()
            .map(|_| SEARCH_SERVER.to_owned());
        let known: Vec<String> = servers.chain(search).collect();
        if known.iter().any(|server| server == id) {
            return Ok(());
        }
        let all = known.join(", ");
        Err(ActionError::Unknown(match nearest_name(id, known) {
            Some(near) => format!("there is no server {id:?}; did you mean {near:?}?"),
            None => format!("there is no server {id:?}; the servers are: {all}"),
        }))
    }

    fn check_frozen_caller(&self, name: &str) -> Result<Option<String>, ActionError> {
        let plan = self.active.snapshot();
        let auth = &plan.config.auth;
        let issuers = auth.issuers.iter().map(|issuer| issuer.id.as_str());
        let forms: Vec<String> = issuers.map(|id| format!("{id}:SUBJECT")).collect();
        let forms = [vec!["key:NAME".to_owned()], forms].concat().join(", ");
        let refused = |why: String| {
            ActionError::Unknown(format!(
                "{why}; callers are: {forms}, anonymous@http, token@http, local@stdio, operator@NAME"
            ))
        };
        if name.contains(['*', '?']) || name.ends_with([':', '@']) {
            return Err(refused(format!("{name:?} is not the name of one caller")));
        }
        auth.check_caller_name(name).map_err(refused)?;
        let keys = self.approvals.freezes().keys().list();
        let key_name = name.strip_prefix("key:");
        let key = key_name.and_then(|name| keys.iter().find(|key| *key.name == *name));
        if self.feed.has_caller(name) || key.is_some_and(|key| key.last_used.is_some()) {
            return Ok(None);
        }
        let names = keys.iter().map(|key| format!("key:{}", key.name));
        Ok(Some(match (key_name, key) {
            (Some(missing), None) => {
                let near = nearest_name(name, names);
                let near = near.map_or(String::new(), |near| format!("; did you mean {near:?}?"));
                format!("note: there is no API key {missing:?} yet{near}")
            }
            _ => format!(
                "note: this gateway has not seen a call by {name}; the freeze applies to its next call"
            ),
        }))
    }
}
