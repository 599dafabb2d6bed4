//! Events of approvals, in the event log.

use crate::{
    event_log::{self, GatewayEvent},
    operator::api::approval_end,
};
use std::collections::HashMap;
use toolgate_policy::{ApprovalService, ApprovalView, Approver};

/// Announced approvals that were not decided yet.
#[derive(Default)]
pub(super) struct AnnouncedApprovals(HashMap<String, ApprovalText>);

/// Tool and caller of an approval, for the line about its end.
struct ApprovalText {
    tool: String,
    caller: String,
    /// Number of approvers so far.
    approvers: usize,
}

impl AnnouncedApprovals {
    /// Prints the approvals that are new, or decided, since the last time.
    pub(super) fn update(
        &mut self,
        open: &[ApprovalView],
        approvals: &ApprovalService,
        flags: &str,
    ) {
        let mut before = std::mem::take(&mut self.0);
        for view in open {
            let text = match before.remove(&*view.id) {
                Some(text) => text,
                None => announce(view, approvals, flags),
            };
            if view.approvers.len() > text.approvers
                && let Some(by) = view.approvers.last()
            {
                let rest = view
                    .requirement
                    .approvers()
                    .saturating_sub(view.approvers.len());
                let still = format!("{rest} more must approve");
                decided(&view.id, &text, "approved", Some(by), Some(still));
            }
            let approvers = view.approvers.len();
            self.0
                .insert(view.id.to_string(), ApprovalText { approvers, ..text });
        }
        for (id, text) in before {
            let status = approvals.find(&id).map(|view| view.status);
            let (decision, by, reason) = match &status {
                Some(status) => approval_end(status),
                None => ("expired", None, None),
            };
            decided(&id, &text, decision, by, reason);
        }
    }
}

fn announce(view: &ApprovalView, approvals: &ApprovalService, flags: &str) -> ApprovalText {
    let text = ApprovalText {
        tool: view.item.full_name(),
        caller: view.binding.caller.name().to_owned(),
        approvers: 0,
    };
    let left = view.expires_at.duration_since(approvals.now());
    event_log::emit(GatewayEvent::ApprovalRequested {
        id: view.id.to_string(),
        tool: text.tool.clone(),
        caller: text.caller.clone(),
        expires_in: left.unwrap_or_default(),
        needs_passkey: view.requirement.passkey,
        flags: flags.to_owned(),
    });
    text
}

fn decided(
    id: &str,
    text: &ApprovalText,
    decision: &'static str,
    by: Option<&Approver>,
    reason: Option<String>,
) {
    event_log::emit(GatewayEvent::ApprovalDecided {
        id: id.to_owned(),
        tool: text.tool.clone(),
        caller: text.caller.clone(),
        decision: decision.into(),
        by: by.map(ToString::to_string),
        reason,
    });
}
