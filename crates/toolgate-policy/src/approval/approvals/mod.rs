//! Approvals: a person decides calls for which a rule asks.

mod binding;
mod codec;
mod condition;
mod decisions;
mod expiry;
mod grant_index;
mod grant_uses;
mod grants;
mod id;
mod in_process;
mod index;
mod pending;
mod quorum;
mod redeem;
mod requirement;
mod service;
mod signatures;
mod status;
mod view;
mod wait;

pub use binding::ApprovalBinding;
pub use decisions::ApprovalTerms;
pub use grants::{GrantTerms, GrantView};
pub(crate) use in_process::InProcessConfirm;
pub use in_process::ProgramApproval;
pub use quorum::{QuorumRule, QuorumRules};
pub use requirement::ApprovalRequirement;
pub use service::ApprovalService;
pub use status::ApprovalStatus;
pub use view::{ApprovalError, ApprovalLimits, ApprovalView};

use crate::{ApprovalChannel, Approver};
use redeem::{OpenedApproval, RedeemOutcome};
use std::sync::Arc;
use toolgate_core::{
    ApprovalOutcome, ApprovalRequest, ApprovalStep as Confirms, BoxFuture, Call, Error,
    InputRequest, InputRequestKind, InputRequests, Item, Json, RoundSlots,
};
use toolgate_protocol::method::elicitation::ElicitAnswer;

/// Key of the input request with which the caller's own client is asked to approve a call, and of its response.
pub const APPROVAL_KEY: &str = "approval";
/// Slot that holds the id of the approval when the call is retried.
const APPROVAL_SLOT: &str = "confirm";

/// Mark at the end of the slot of a call that used its approval. Without it, a state from before the use would be a
/// later round of the call, and so a second use.
const USED_MARK: char = '+';

/// Slot of a retried call: the id of its approval, and whether an earlier round of the call used it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ApprovalSlot<'a> {
    pub(super) id: &'a str,
    pub(super) is_used: bool,
}

impl ApprovalSlot<'_> {
    fn read(text: &str) -> ApprovalSlot<'_> {
        let used = text.strip_suffix(USED_MARK);
        ApprovalSlot {
            id: used.unwrap_or(text),
            is_used: used.is_some(),
        }
    }
}

/// Condition under which a caller's own MCP client may ask its user to approve the call.
///
/// An agent may answer instead of the user there.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ClientApprovals {
    /// The caller's client is never asked for the approval.
    Never,
    /// The caller's client is asked if a trusted server annotates the tool as read-only or not destructive.
    #[default]
    Harmless,
    /// The caller's client is always asked for the approval.
    Always,
}

impl ClientApprovals {
    fn allows(self, item: &Item) -> bool {
        match self {
            ClientApprovals::Never => false,
            ClientApprovals::Harmless => is_harmless(item),
            ClientApprovals::Always => true,
        }
    }
}

/// Reports whether a trusted server annotates the tool as read-only or not destructive.
fn is_harmless(item: &Item) -> bool {
    let hints = item.annotations();
    hints.read_only || !hints.destructive
}

/// Approval step that requests approvals of calls from the [`ApprovalService`]. It never waits for a decision.
pub struct ApprovalConfirm {
    service: Arc<ApprovalService>,
    policy: Arc<str>,
    via_client: ClientApprovals,
    quorum: QuorumRules,
}

impl ApprovalConfirm {
    /// Creates an approval step for an approval service and the hash of the operator's policy in force. Approvals given
    /// under another policy do not count.
    pub fn new(
        service: Arc<ApprovalService>,
        policy: Arc<str>,
        via_client: ClientApprovals,
    ) -> ApprovalConfirm {
        ApprovalConfirm {
            service,
            policy,
            via_client,
            quorum: QuorumRules::default(),
        }
    }

    /// Sets the rules that require several approvers or groups of approvers for some calls.
    pub fn with_quorum(mut self, rules: QuorumRules) -> ApprovalConfirm {
        self.quorum = rules;
        self
    }

    async fn confirm_call(
        &self,
        call: &Call,
        item: &Arc<Item>,
        reasons: Vec<String>,
    ) -> Result<ApprovalOutcome, Error> {
        let binding = ApprovalBinding::of(call, item, &self.policy);
        let slot = call.round.slots.get(APPROVAL_SLOT).map(String::as_str);
        let slot = slot.map(ApprovalSlot::read);
        let needs = self.quorum.requirement(&call.caller, item, call.name());
        // The caller's own client does not count as a second approver.
        let via_client =
            needs.is_single() && call.capabilities.elicitation && self.via_client.allows(item);
        if let (true, Some(slot)) = (via_client, slot) {
            self.apply_client_decision(call, slot.id, &binding).await?;
        }
        let redeemed = self.service.redeem(call, item, &binding, slot, &needs);
        match redeemed.await? {
            RedeemOutcome::Spent { id, why, edit } => {
                call.decision_log.add("confirm", "approved", why);
                let slot = Some(format!("{id}{USED_MARK}"));
                Ok(match edit {
                    Some(arguments) => ApprovalOutcome::ApprovedWithEdits { slot, arguments },
                    None => ApprovalOutcome::Approved { slot },
                })
            }
            RedeemOutcome::Granted { why } => {
                call.decision_log.add("confirm", "granted", why);
                Ok(ApprovalOutcome::Approved { slot: None })
            }
            RedeemOutcome::NotApproved => {
                let opened = self
                    .service
                    .open_approval(call, item, binding, &reasons, &needs)
                    .await?;
                Ok(ApprovalOutcome::InputRequired(approval_request(
                    call, item, reasons, opened, via_client,
                )))
            }
        }
    }

    /// Applies the elicitation result of the caller's own client as the decision of its user.
    async fn apply_client_decision(
        &self,
        call: &Call,
        id: &str,
        binding: &ApprovalBinding,
    ) -> Result<(), Error> {
        let Some(answer) = call.round.answer(APPROVAL_KEY).and_then(ElicitAnswer::read) else {
            return Ok(());
        };
        if !self.service.is_open(id, binding) {
            return Ok(());
        }
        let (yes, reason) = match &answer {
            ElicitAnswer::Accept(Some(form)) => (is_approved(form), denial_reason(form)),
            _ => (false, None),
        };
        let who = Approver::named(ApprovalChannel::Client, call.caller.name());
        let heard = match yes {
            true => self
                .service
                .approve(id, who, ApprovalTerms::default())
                .await
                .map(|_| ()),
            false => self.service.deny(id, who, reason).await,
        };
        match heard {
            Err(ApprovalError::NotStored(error) | ApprovalError::NotAudited(error)) => Err(error),
            // Another approver decided first, or the client must not decide: the approval service has the final status.
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

fn is_approved(form: &Json) -> bool {
    form.get("approve").and_then(|yes| yes.bool()) == Some(true)
}

fn denial_reason(form: &Json) -> Option<String> {
    form.get("reason")
        .and_then(|why| why.string())
        .filter(|why| !why.trim().is_empty())
}

fn approval_request(
    call: &Call,
    item: &Arc<Item>,
    reasons: Vec<String>,
    opened: OpenedApproval,
    via_client: bool,
) -> InputRequests {
    let mut approval = ApprovalRequest::new(
        opened.id.clone(),
        item.clone(),
        call.arguments().raw().clone(),
        opened.expires,
        opened.waiting,
    );
    approval.reasons = reasons;
    approval.via_client = via_client;
    let asks = vec![InputRequest {
        key: APPROVAL_KEY.to_owned(),
        kind: InputRequestKind::Approve(approval),
    }];
    let mut requests = InputRequests::new(asks);
    requests.slots = RoundSlots::from([(APPROVAL_SLOT.to_owned(), opened.id.to_string())]);
    requests
}

impl Confirms for ApprovalConfirm {
    fn request_approval<'a>(
        &'a self,
        call: &'a Call,
        item: &'a Arc<Item>,
        reasons: Vec<String>,
    ) -> BoxFuture<'a, Result<ApprovalOutcome, Error>> {
        Box::pin(async move {
            let settled = self.confirm_call(call, item, reasons).await;
            settled.inspect_err(|error| {
                call.decision_log
                    .add("confirm", "refuse", error.public_message())
            })
        })
    }

    fn explain(&self, call: &Call, item: &Item) -> String {
        let needs = self.quorum.requirement(&call.caller, item, call.name());
        if needs.is_single() {
            return "a person decides: an approver in the console or terminal, or the user of the caller's client; not if a grant (remembered approval) covers the call"
                .to_owned();
        }
        let place = match !needs.groups.is_empty() || needs.passkey {
            true => "in the console",
            false => "in the console or terminal",
        };
        format!("{}, {place}", needs.describe())
    }
}
