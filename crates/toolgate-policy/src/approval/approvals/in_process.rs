//! Approvals within one process: the program that makes the call asks its own user.

use super::{APPROVAL_KEY, APPROVAL_SLOT, denial_reason, is_approved};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use toolgate_core::{
    ApprovalOutcome, ApprovalRequest, ApprovalStep, BoxFuture, Call, DecisionWaiter, Error,
    ErrorKind, InputRequest, InputRequestKind, InputRequests, Item, RefusalReason,
};
use toolgate_protocol::method::elicitation::ElicitAnswer;

/// Person who approves calls for which rules require it, in a server or client without an operator.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ProgramApproval {
    /// Nobody: calls that need approval are refused.
    #[default]
    Nobody,
    /// The user of this program, which makes the calls itself, as a client does. Slots and responses must not come from
    /// outside the process.
    Program,
    /// The user of the caller's own client. The call returns an input request, a form elicitation; the client repeats
    /// the call with the answer. Calls of clients without form elicitation are refused.
    CallersClient,
}

/// Approval step that asks the program or the caller's client, once for each call. The response arrives with the next round, under [`APPROVAL_KEY`].
pub(crate) struct InProcessConfirm {
    /// True if the caller's client asks its user.
    pub(crate) via_client: bool,
}

/// Value of the slot after the caller's client was asked. The state that leaves the process is sealed for the call, so
/// an answer counts only for the arguments about which the user was asked.
const ASKED_VALUE: &str = "asked";
/// Key of the input request of a server. A client or gateway of this crate in front of the server reserves
/// [`APPROVAL_KEY`] for its own approvals.
const SERVER_APPROVAL_KEY: &str = "server-approval";
/// Value of the slot after the user approved the call.
const APPROVED_VALUE: &str = "yes";
/// Reported lifetime of the approval. It is not enforced; the program decides when to give up.
const REPORTED_LIFETIME: Duration = Duration::from_secs(3600);

impl ApprovalStep for InProcessConfirm {
    fn request_approval<'a>(
        &'a self,
        call: &'a Call,
        item: &'a Arc<Item>,
        reasons: Vec<String>,
    ) -> BoxFuture<'a, Result<ApprovalOutcome, Error>> {
        Box::pin(async move {
            let slot = call.round.slots.get(APPROVAL_SLOT).map(String::as_str);
            if slot == Some(APPROVED_VALUE) {
                return Ok(approved());
            }
            let was_asked = !self.via_client || slot == Some(ASKED_VALUE);
            let answer = call.round.answer(self.key()).filter(|_| was_asked);
            let Some(answer) = answer.and_then(ElicitAnswer::read) else {
                self.check_client(call, &reasons)?;
                return Ok(ApprovalOutcome::InputRequired(
                    self.approval_request(call, item, reasons),
                ));
            };
            let why = match &answer {
                ElicitAnswer::Accept(Some(form)) if is_approved(form) => {
                    let by = match self.via_client {
                        true => "by the user of the caller's client",
                        false => "by the application",
                    };
                    call.decision_log.add("confirm", "approved", by);
                    return Ok(approved());
                }
                ElicitAnswer::Accept(Some(form)) => denial_reason(form),
                _ => None,
            };
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            let text = format!("refused: a person denied this call{why}");
            Err(Error::new(
                ErrorKind::Refused(RefusalReason::Approver),
                text,
            ))
        })
    }
}

fn approved() -> ApprovalOutcome {
    ApprovalOutcome::Approved {
        slot: Some(APPROVED_VALUE.to_owned()),
    }
}

impl InProcessConfirm {
    /// Returns the key of the input request.
    fn key(&self) -> &'static str {
        match self.via_client {
            true => SERVER_APPROVAL_KEY,
            false => APPROVAL_KEY,
        }
    }

    /// Refuses a call whose client cannot ask its user.
    fn check_client(&self, call: &Call, reasons: &[String]) -> Result<(), Error> {
        let fits = ApprovalRequest::fits_client(&call.capabilities, call.arguments().raw());
        if !self.via_client || fits {
            return Ok(());
        }
        let why = match call.capabilities.elicitation {
            true => {
                "its arguments are too long for a form that a person can read; shorten the arguments"
            }
            false => {
                "this client cannot ask its user, because it does not support form elicitation; use a client that supports it"
            }
        };
        Err(Error::new(
            ErrorKind::Refused(RefusalReason::Rule),
            format!(
                "refused: the call requires the approval of a person ({}), but {why}",
                reasons.join("; ")
            ),
        ))
    }

    fn approval_request(
        &self,
        call: &Call,
        item: &Arc<Item>,
        reasons: Vec<String>,
    ) -> InputRequests {
        let mut approval = ApprovalRequest::new(
            call.id.clone(),
            item.clone(),
            call.arguments().raw().clone(),
            SystemTime::now() + REPORTED_LIFETIME,
            Arc::new(NeverDecided),
        );
        approval.reasons = reasons;
        approval.via_client = self.via_client;
        let asked = (APPROVAL_SLOT.to_owned(), ASKED_VALUE.to_owned());
        let mut requests = InputRequests::new(vec![InputRequest {
            key: self.key().to_owned(),
            kind: InputRequestKind::Approve(approval),
        }]);
        requests.slots = self.via_client.then_some(asked).into_iter().collect();
        requests
    }
}

/// A wait that never completes: the response arrives only with the next round.
struct NeverDecided;

impl DecisionWaiter for NeverDecided {
    fn wait_for_decision(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn mark_waiting(&self) -> Box<dyn Send + Sync> {
        Box::new(())
    }
}
