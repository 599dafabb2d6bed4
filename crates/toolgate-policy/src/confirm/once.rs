//! Approvals within one process: the program that makes the call asks its own user.

use super::{KEY, SLOT, said_why, said_yes};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use toolgate_core::{
    Approval, Ask, AskKind, BoxFuture, Call, Confirm, Confirmed, Error, Item, Kind, Questions,
    Refusal, Waiting,
};
use toolgate_wire::method::elicitation::Answer;

/// Requests approval once for each call. The response arrives with the next round, under [`KEY`].
///
/// Use it only in a pipeline whose caller is the program itself, for example a client. Slots and responses must not
/// come from outside the process.
pub struct AskOnce;

/// Value of the slot after the user approved the call.
const YES: &str = "yes";
/// Reported lifetime of the approval. It is not enforced; the program decides when to give up.
const LIFE: Duration = Duration::from_secs(3600);

impl Confirm for AskOnce {
    fn confirm<'a>(
        &'a self,
        call: &'a Call,
        item: &'a Arc<Item>,
        reasons: Vec<String>,
    ) -> BoxFuture<'a, Result<Confirmed, Error>> {
        Box::pin(async move {
            if call.round.slots.get(SLOT).is_some_and(|said| said == YES) {
                return Ok(yes());
            }
            let Some(answer) = call.round.answer(KEY).and_then(Answer::read) else {
                return Ok(Confirmed::Ask(question(call, item, reasons)));
            };
            let why = match &answer {
                Answer::Accept(Some(form)) if said_yes(form) => {
                    call.trail.add("confirm", "approved", "by the program");
                    return Ok(yes());
                }
                Answer::Accept(Some(form)) => said_why(form),
                _ => None,
            };
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            let text = format!("refused: a person denied this call{why}");
            Err(Error::new(Kind::Refused(Refusal::Person), text))
        })
    }
}

fn yes() -> Confirmed {
    Confirmed::Yes {
        slot: Some(YES.to_owned()),
    }
}

fn question(call: &Call, item: &Arc<Item>, reasons: Vec<String>) -> Questions {
    let approval = Approval {
        id: call.id.clone(),
        item: item.clone(),
        arguments: call.arguments().raw().clone(),
        reasons,
        expires: SystemTime::now() + LIFE,
        via_client: false,
        waiting: Arc::new(Nobody),
    };
    Questions {
        asks: vec![Ask {
            key: KEY.to_owned(),
            kind: AskKind::Approve(approval),
        }],
        ..Questions::default()
    }
}

/// A wait that never completes: the response arrives only with the next round.
struct Nobody;

impl Waiting for Nobody {
    fn decided(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn attend(&self) -> Box<dyn Send + Sync> {
        Box::new(())
    }
}
