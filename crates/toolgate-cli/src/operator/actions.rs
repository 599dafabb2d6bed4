//! Actions of the operator, and the right that each of them needs.

pub(crate) use crate::console_roles::ActionRight;
use ActionRight::{Approve, Audit, Contents, Operate, Own, Requests, View};

/// Every action of the control socket and the console. This is the only place that assigns rights: an action that is
/// missing here cannot be executed.
const OPERATOR_ACTIONS: &[(&str, ActionRight)] = &[
    ("approval", Requests),
    ("approve", Approve),
    ("approve/text", Approve),
    ("audit/call", Audit),
    ("audit/export", Audit),
    ("audit/search", Audit),
    ("audit/verify", Audit),
    ("call", Operate),
    ("calls", Contents),
    ("calls/get", Contents),
    ("config/check", Own),
    ("config/get", Own),
    ("config/preview", Own),
    ("config/save", Own),
    ("config/version", Own),
    ("console", Own),
    ("console/end", Own),
    ("console/revoke", Own),
    ("console/sessions", Own),
    ("deny", Approve),
    ("explain", View),
    ("freeze", Operate),
    ("freezes", View),
    ("grants", View),
    ("grants/revoke", Approve),
    ("history/calls", View),
    ("history/insights", View),
    ("history/overview", View),
    ("inbox", Requests),
    ("items", View),
    ("items/get", View),
    ("keys", View),
    ("keys/create", Own),
    ("keys/extend", Own),
    ("keys/revoke", Own),
    ("keys/rotate", Own),
    ("notifications", View),
    ("notifications/test", Operate),
    ("passkeys", View),
    ("passkeys/change", Approve),
    ("passkeys/entries", Audit),
    ("passkeys/prepare", Approve),
    ("passkeys/request", Approve),
    ("passkeys/sign", Approve),
    ("pins", View),
    ("pins/accept", Operate),
    ("pins/diff", View),
    ("pins/forget", Operate),
    ("pins/open", View),
    ("pins/reject", Operate),
    ("prompts", View),
    ("push/key", Approve),
    ("push/remove", Own),
    ("push/subscribe", Approve),
    ("push/subscriptions", Own),
    ("push/unsubscribe", Approve),
    ("reload", Own),
    ("requests/conditions", Requests),
    ("requests/get", Requests),
    ("requests/look", View),
    ("requests/reveal", Approve),
    ("resources", View),
    ("servers/restart", Operate),
    ("servers/signed-in", Operate),
    ("servers/signed-out", Operate),
    ("sign-in/begin", Operate),
    ("sign-in/end", Operate),
    ("sign-in/out", Operate),
    ("state", Contents),
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
