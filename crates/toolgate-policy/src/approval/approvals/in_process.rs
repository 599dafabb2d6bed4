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

/// Requests approval once for each call. The response arrives with the next round, under [`APPROVAL_KEY`].
///
/// Use it only in a pipeline whose caller is the program itself, for example a client. Slots and responses must not
/// come from outside the process.
pub struct InProcessConfirm;

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
            if call
                .round
                .slots
                .get(APPROVAL_SLOT)
                .is_some_and(|said| said == APPROVED_VALUE)
            {
                return Ok(approved());
            }
            let Some(answer) = call.round.answer(APPROVAL_KEY).and_then(ElicitAnswer::read) else {
                return Ok(ApprovalOutcome::InputRequired(approval_request(
                    call, item, reasons,
                )));
            };
            let why = match &answer {
                ElicitAnswer::Accept(Some(form)) if is_approved(form) => {
                    call.decision_log
                        .add("confirm", "approved", "by the application");
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

fn approval_request(call: &Call, item: &Arc<Item>, reasons: Vec<String>) -> InputRequests {
    let approval = ApprovalRequest {
        id: call.id.clone(),
        item: item.clone(),
        arguments: call.arguments().raw().clone(),
        reasons,
        expires: SystemTime::now() + REPORTED_LIFETIME,
        via_client: false,
        waiter: Arc::new(NeverDecided),
    };
    InputRequests {
        requests: vec![InputRequest {
            key: APPROVAL_KEY.to_owned(),
            kind: InputRequestKind::Approve(approval),
        }],
        ..InputRequests::default()
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
