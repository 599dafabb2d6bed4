//! Approvals: a person decides calls for which a rule asks.

mod binding;
mod book;
mod claim;
mod condition;
mod decide;
mod desk;
mod grants;
mod id;
mod kept;
mod once;
mod over;
mod persons;
mod slip;
mod standing;
mod view;
mod waiting;
mod who;

pub use binding::Binding;
pub use decide::Yes;
pub use desk::Desk;
pub use grants::{GrantView, Remember};
pub use once::AskOnce;
pub use persons::{Persons, PersonsRule};
pub use standing::Standing;
pub use view::{ApprovalView, DeskError, DeskLimits};
pub use who::{By, Who};

use claim::{Claim, Opened};
use grants::Grant;
use std::sync::Arc;
use toolgate_core::{
    Approval, Ask, AskKind, BoxFuture, Call, Confirm as Confirms, Confirmed, Error, Item, Json,
    Questions, Slots,
};
use toolgate_wire::method::elicitation::Answer;

/// Key of the input request for an approval, and of its response.
pub const KEY: &str = "approval";
/// Slot that holds the id of the approval when the call is retried.
const SLOT: &str = "confirm";

/// Condition under which the caller's own client may ask its user for the approval.
///
/// An agent may answer instead of the user there.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ViaClient {
    /// Never.
    Never,
    /// If a trusted server annotates the tool as read-only or not destructive.
    #[default]
    Harmless,
    /// Always.
    Always,
}

impl ViaClient {
    fn allows(self, item: &Item) -> bool {
        match self {
            ViaClient::Never => false,
            ViaClient::Harmless => harmless(item),
            ViaClient::Always => true,
        }
    }
}

/// Reports whether a trusted server annotates the tool as read-only or not destructive.
fn harmless(item: &Item) -> bool {
    let hints = item.hints();
    hints.read_only || !hints.destructive
}

/// Confirms calls with the approval service. It never waits for a decision.
pub struct Confirm {
    desk: Arc<Desk>,
    policy: Arc<str>,
    via_client: ViaClient,
    persons: Persons,
}

impl Confirm {
    /// Creates a confirm for an approval service. Approvals given under another policy do not count.
    pub fn new(desk: Arc<Desk>, policy: Arc<str>, via_client: ViaClient) -> Confirm {
        Confirm {
            desk,
            policy,
            via_client,
            persons: Persons::default(),
        }
    }

    /// Sets the rules for calls that need several approvers.
    pub fn by_persons(mut self, persons: Persons) -> Confirm {
        self.persons = persons;
        self
    }

    async fn settle(
        &self,
        call: &Call,
        item: &Arc<Item>,
        reasons: Vec<String>,
    ) -> Result<Confirmed, Error> {
        let binding = Binding::of(call, item, &self.policy);
        let slot = call.round.slots.get(SLOT).map(String::as_str);
        let needs = self.persons.needed(&call.caller, item, call.name());
        // The caller's own client does not count as a second approver.
        let via_client = needs <= 1 && call.abilities.elicitation && self.via_client.allows(item);
        if let (true, Some(id)) = (via_client, slot) {
            self.hear(call, id, &binding).await?;
        }
        match self.desk.claim(call, item, &binding, slot).await? {
            Claim::Spent { id, why, edit } => {
                call.trail.add("confirm", "approved", why);
                let slot = Some(id.to_string());
                Ok(match edit {
                    Some(arguments) => Confirmed::Edited { slot, arguments },
                    None => Confirmed::Yes { slot },
                })
            }
            Claim::Granted { why } => {
                call.trail.add("confirm", "granted", why);
                Ok(Confirmed::Yes { slot: None })
            }
            Claim::Open => {
                let opened = self.desk.open(call, item, binding, &reasons, needs).await?;
                Ok(Confirmed::Ask(question(
                    call, item, reasons, opened, via_client,
                )))
            }
        }
    }

    /// Applies the elicitation result of the caller's own client as the decision of its user.
    async fn hear(&self, call: &Call, id: &str, binding: &Binding) -> Result<(), Error> {
        let Some(answer) = call.round.answer(KEY).and_then(Answer::read) else {
            return Ok(());
        };
        if !self.desk.is_open(id, binding) {
            return Ok(());
        }
        let (yes, reason) = match &answer {
            Answer::Accept(Some(form)) => (said_yes(form), said_why(form)),
            _ => (false, None),
        };
        let who = Who::named(By::Client, call.caller.name());
        let heard = match yes {
            true => self.desk.approve(id, who, Yes::default()).await.map(|_| ()),
            false => self.desk.deny(id, who, reason).await,
        };
        match heard {
            Err(DeskError::Unkept(error) | DeskError::Unrecorded(error)) => Err(error),
            // Another approver decided first, or the client must not decide: the approval service has the final status.
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

fn said_yes(form: &Json) -> bool {
    form.get("approve").and_then(|yes| yes.bool()) == Some(true)
}

fn said_why(form: &Json) -> Option<String> {
    form.get("reason")
        .and_then(|why| why.string())
        .filter(|why| !why.trim().is_empty())
}

fn question(
    call: &Call,
    item: &Arc<Item>,
    reasons: Vec<String>,
    opened: Opened,
    via_client: bool,
) -> Questions {
    let approval = Approval {
        id: opened.id.clone(),
        item: item.clone(),
        arguments: call.arguments().raw().clone(),
        reasons,
        expires: opened.expires,
        via_client,
        waiting: opened.waiting,
    };
    let asks = vec![Ask {
        key: KEY.to_owned(),
        kind: AskKind::Approve(approval),
    }];
    Questions {
        asks,
        slots: Slots::from([(SLOT.to_owned(), opened.id.to_string())]),
        ..Questions::default()
    }
}

impl Confirms for Confirm {
    fn confirm<'a>(
        &'a self,
        call: &'a Call,
        item: &'a Arc<Item>,
        reasons: Vec<String>,
    ) -> BoxFuture<'a, Result<Confirmed, Error>> {
        Box::pin(async move {
            let settled = self.settle(call, item, reasons).await;
            settled.inspect_err(|error| call.trail.add("confirm", "refuse", error.public()))
        })
    }

    fn explain(&self, call: &Call, item: &Item) -> String {
        let who = match self.persons.needed(&call.caller, item, call.name()) {
            0 | 1 => "an approver at the console or the terminal decides, or the user of the caller's own client"
                .to_owned(),
            more => format!("{more} approvers at the console or the terminal decide"),
        };
        format!("{who}, unless a grant matches")
    }
}
