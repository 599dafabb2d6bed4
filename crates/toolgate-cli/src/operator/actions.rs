//! Actions of the operator, and the right that each of them needs.

/// Right that an action of the operator needs. Each is meant for a role; so far, every session has all of them.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum ActionRight {
    /// See calls, items, servers and pending requests, without contents that only the audit log has.
    View,
    /// Decide requests for approval, and see the secrets in them.
    Approve,
    /// Read, verify and export the audit log.
    Audit,
    /// Stop calls, freeze, decide on definitions, restart servers, sign in to servers, and call tools.
    Operate,
    /// Change who may do what: keys, rules, settings, and sessions.
    Own,
}

use ActionRight::{Approve, Audit, Operate, Own, View};

/// Every action of the control socket and the console. This is the only place that assigns rights: an action that is
/// missing here cannot be executed.
const OPERATOR_ACTIONS: &[(&str, ActionRight)] = &[
    ("approval", View),
    ("approve", Approve),
    ("audit/call", Audit),
    ("audit/export", Audit),
    ("audit/search", Audit),
    ("audit/verify", Audit),
    ("call", Operate),
    ("calls", View),
    ("calls/get", View),
    ("config/check", Own),
    ("config/get", Own),
    ("config/preview", Own),
    ("config/save", Own),
    ("config/version", Own),
    ("console", Own),
    ("console/revoke", Own),
    ("deny", Approve),
    ("explain", View),
    ("freeze", Operate),
    ("freezes", View),
    ("grants", View),
    ("grants/revoke", Approve),
    ("history/calls", View),
    ("history/insights", View),
    ("history/overview", View),
    ("inbox", View),
    ("items", View),
    ("items/get", View),
    ("keys", View),
    ("keys/create", Own),
    ("keys/extend", Own),
    ("keys/revoke", Own),
    ("keys/rotate", Own),
    ("pins", View),
    ("pins/accept", Operate),
    ("pins/diff", View),
    ("pins/forget", Operate),
    ("pins/open", View),
    ("pins/reject", Operate),
    ("prompts", View),
    ("push/key", Approve),
    ("push/subscribe", Approve),
    ("push/unsubscribe", Approve),
    ("reload", Own),
    ("requests/conditions", View),
    ("requests/get", View),
    ("requests/look", View),
    ("requests/reveal", Approve),
    ("resources", View),
    ("servers/restart", Operate),
    ("servers/signed-in", Operate),
    ("servers/signed-out", Operate),
    ("sign-in/begin", Operate),
    ("sign-in/end", Operate),
    ("sign-in/out", Operate),
    ("state", View),
    ("status", View),
    ("stop", Operate),
    ("tasks", View),
    ("tasks/stop", Operate),
    ("thaw", Operate),
    ("tools", View),
];

/// Returns the right that an action needs; `None` if there is no such action.
pub(crate) fn required_right(action: &str) -> Option<ActionRight> {
    let found = OPERATOR_ACTIONS.iter().find(|(name, _)| *name == action);
    found.map(|(_, right)| *right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_action_is_listed_once_in_order() {
        let names: Vec<&str> = OPERATOR_ACTIONS.iter().map(|(name, _)| *name).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(names, sorted);
        assert_eq!(required_right("approve"), Some(Approve));
        assert_eq!(required_right("no/such"), None);
    }
}
