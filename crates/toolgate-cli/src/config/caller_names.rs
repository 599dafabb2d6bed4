//! Caller names in configs and commands.

use super::{
    auth::AuthSettings,
    error::suggestion,
    glob::NameGlob,
    reader::{SettingError, SettingPath},
};
use crate::hosts::HookHost;

/// Names of callers that authenticate without an API key or an issuer's token.
const FIXED_CALLER_NAMES: &[&str] = &["anonymous@http", "token@http", "local@stdio"];
/// Prefix of operator names at the terminal and in the console.
const OPERATOR_PREFIX: &str = "operator@";
/// Prefix of the names of hosts whose own tools pass the gateway (`toolgate hook`).
const HOOK_PREFIX: &str = "hook@";

/// Returns the host of a caller such as `hook@claude-code`, if it is one that has hooks.
fn hook_host(caller: &str) -> Option<HookHost> {
    HookHost::find(caller.strip_prefix(HOOK_PREFIX)?)
}

/// Returns the caller name of the tools of a host.
pub(crate) fn hook_caller(host: HookHost) -> String {
    format!("{HOOK_PREFIX}{}", host.id())
}

impl AuthSettings {
    /// Checks globs for callers, each of which must match a possible caller. No globs match every caller.
    pub(super) fn check_callers(
        &self,
        globs: Option<&[String]>,
        path: &SettingPath,
    ) -> Result<Vec<NameGlob>, SettingError> {
        if globs.is_some_and(<[String]>::is_empty) {
            return Err(SettingError::about(
                path.clone(),
                "is empty; remove it to match every caller",
            ));
        }
        let glob = |(at, text): (usize, &String)| {
            let wrong = |text: String| SettingError::message(path.index(at), text);
            let glob = NameGlob::parse(text).map_err(wrong)?;
            self.check_caller_name(glob.as_str()).map_err(wrong)?;
            Ok(glob)
        };
        globs
            .unwrap_or_default()
            .iter()
            .enumerate()
            .map(glob)
            .collect()
    }

    /// Checks that a name or glob can match a caller. A typo would silently disable a deny rule.
    ///
    /// # Errors
    /// No caller can have the name; the message lists possible names.
    pub(crate) fn check_caller_name(&self, caller: &str) -> Result<(), String> {
        let wild = |text: &str| text.contains(['*', '?']);
        if let Some((kind, _)) = caller.split_once('@')
            && (!kind.contains(':') || wild(kind))
        {
            let known = wild(caller)
                || FIXED_CALLER_NAMES.contains(&caller)
                || caller.starts_with(OPERATOR_PREFIX)
                || hook_host(caller).is_some();
            let hint = suggestion(
                caller,
                FIXED_CALLER_NAMES
                    .iter()
                    .copied()
                    .chain(["operator@NAME", "hook@HOST"]),
            );
            return match known {
                true => Ok(()),
                false => Err(format!("there is no caller {caller:?}{hint}")),
            };
        }
        let Some((kind, name)) = caller.split_once(':') else {
            return match wild(caller) {
                true => Ok(()),
                false => Err(format!(
                    "there is no caller {caller:?}; write \"key:{caller}\" for the caller with that API key, or for example \"anonymous@http\" for callers without credentials"
                )),
            };
        };
        let issuers = self.issuers.iter().map(|issuer| issuer.id.as_str());
        let known: Vec<&str> = ["key", "group"].into_iter().chain(issuers).collect();
        if kind == "role"
            && !self
                .issuers
                .iter()
                .any(|issuer| issuer.claims.roles.is_some())
        {
            return Err(format!(
                "no caller has the role {name:?}: no issuer of this config maps roles; set roles_claim in [auth.issuer.NAME]"
            ));
        }
        if wild(kind) || kind == "role" || known.contains(&kind) {
            return Ok(());
        }
        let hint = suggestion(kind, known);
        let hint = match hint.strip_suffix("\"?") {
            Some(near) => format!("{near}:{name}\"?"),
            None => hint,
        };
        Err(format!(
            "there is no caller {caller:?}: {kind:?} is not \"key\", \"group\", \"role\" or the name of an [auth.issuer] in this config{hint}"
        ))
    }
}
