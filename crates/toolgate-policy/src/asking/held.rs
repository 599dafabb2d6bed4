//! Approval of sampling requests. Until an approver decides, the requests wait in a slot of the call.

use super::{InputRequestPolicy, NAME};
use std::sync::Arc;
use toolgate_core::{
    ApprovalOutcome, Call, CallArguments, Definition, Error, ErrorKind, InputRequest,
    InputRequestKind, InputRequests, Item, Json, Outcome, RefusalReason,
};
use toolgate_wire::{
    json::{JsonLimits, ObjectWriter},
    method::elicitation::{self, InputRequiredResult, RawInputRequest},
};

/// Slot with the pending input requests.
const PENDING_REQUESTS_SLOT: &str = "asking";
/// Slot with the id of their approval.
const SAMPLING_APPROVAL_SLOT: &str = "asking-approval";
/// Slot in which `confirm` expects that id.
const CONFIRM_SLOT: &str = "confirm";

/// Returns the input requests that awaited an approval since the last round.
pub(super) fn questions(call: &Call) -> Option<InputRequests> {
    let held = call.round.slots.get(PENDING_REQUESTS_SLOT)?;
    let held = Json::read(held.clone().into_bytes(), &JsonLimits::default()).ok()?;
    let mut slots = call.round.slots.clone();
    slots.retain(|name, _| {
        !matches!(
            name.as_str(),
            PENDING_REQUESTS_SLOT | SAMPLING_APPROVAL_SLOT | CONFIRM_SLOT
        )
    });
    let ask = |request: RawInputRequest| {
        let params = request
            .params
            .unwrap_or_else(|| ObjectWriter::new().finish());
        let kind = match request.method.as_str() {
            elicitation::NAME => InputRequestKind::Elicit(params),
            elicitation::SAMPLING => InputRequestKind::Sample(params),
            _ => InputRequestKind::Roots,
        };
        InputRequest {
            key: request.key,
            kind,
        }
    };
    let asks = InputRequiredResult::read(&held).ok()?.requests;
    Some(InputRequests {
        asks: asks.into_iter().map(ask).collect(),
        slots,
        // The previous round still holds the open request at the server.
        ..InputRequests::default()
    })
}

/// Serializes input requests, for [`questions`] to read.
fn text(questions: &InputRequests) -> String {
    let request = |ask: &InputRequest| {
        let (method, params) = match &ask.kind {
            InputRequestKind::Elicit(params) => (elicitation::NAME, Some(params.clone())),
            InputRequestKind::Sample(params) => (elicitation::SAMPLING, Some(params.clone())),
            InputRequestKind::SignIn(page) => (elicitation::NAME, Some(page.params())),
            InputRequestKind::Approve(_) | InputRequestKind::Roots => (elicitation::ROOTS, None),
        };
        RawInputRequest {
            key: ask.key.clone(),
            method: method.to_owned(),
            params,
        }
    };
    let required = InputRequiredResult {
        requests: questions.asks.iter().map(request).collect(),
        ..InputRequiredResult::default()
    };
    required.json().as_str().to_owned()
}

/// Returns a synthetic tool that represents sampling requests of one server to the approver.
///
/// An approval of a tool therefore never covers its sampling requests, and the reverse.
fn as_tool(item: &Item) -> Result<Item, Error> {
    let definition = serde_json::json!({
        "name": elicitation::SAMPLING,
        "description": "Questions of this server to the model of whoever calls it",
        "inputSchema": {"type": "object"},
    });
    let definition = Definition::tool(Json::from_value(&definition));
    let definition = definition.map_err(|why| Error::new(ErrorKind::Bug, why))?;
    Ok(Item::new(item.origin.clone(), definition))
}

/// Returns a copy of the call with the sampling requests as its arguments.
fn as_call(call: &Call, item: &Item, questions: &InputRequests) -> Call {
    let mut about = call.clone();
    item.def.name().clone_into(&mut about.of.name);
    let mut asked = ObjectWriter::new();
    for ask in &questions.asks {
        if let InputRequestKind::Sample(params) = &ask.kind {
            asked.raw(&ask.key, params);
        }
    }
    about.of.arguments = CallArguments::new(asked.finish());
    let id = call.round.slots.get(SAMPLING_APPROVAL_SLOT);
    about.round.slots = id
        .map(|id| (CONFIRM_SLOT.to_owned(), id.clone()))
        .into_iter()
        .collect();
    about
}

impl InputRequestPolicy {
    /// Passes on the input requests once the sampling requests are approved, or requests the approval.
    pub(super) async fn hold(
        &self,
        call: &Call,
        item: &Item,
        mut questions: InputRequests,
    ) -> Result<Outcome, Error> {
        let Some(person) = &self.person else {
            let text =
                "refused: a sampling request needs an approval, and no approver is available here";
            call.trail.add(NAME, "refuse", text);
            return Err(Error::new(ErrorKind::Refused(RefusalReason::Rule), text));
        };
        let tool = Arc::new(as_tool(item)?);
        let about = as_call(call, &tool, &questions);
        let why = format!(
            "the server {} sends a sampling request to the model of {}",
            item.origin.server, call.caller
        );
        match person.confirm(&about, &tool, vec![why]).await? {
            ApprovalOutcome::Yes { .. } => {}
            ApprovalOutcome::Edited { arguments, .. } => edit(&mut questions, &arguments)?,
            ApprovalOutcome::Ask(approval) => {
                let id = approval
                    .slots
                    .get(CONFIRM_SLOT)
                    .cloned()
                    .unwrap_or_default();
                let mut slots = questions.slots.clone();
                slots.insert(PENDING_REQUESTS_SLOT.to_owned(), text(&questions));
                slots.insert(SAMPLING_APPROVAL_SLOT.to_owned(), id);
                return Ok(Outcome::Ask(InputRequests {
                    asks: approval.asks,
                    slots,
                    open: questions.open,
                }));
            }
        }
        Ok(Outcome::Ask(questions))
    }
}

/// Replaces the sampling requests with those that the approver edited.
fn edit(questions: &mut InputRequests, written: &Json) -> Result<(), Error> {
    for ask in &mut questions.asks {
        if let InputRequestKind::Sample(params) = &mut ask.kind {
            let text = "refused: the edit of the approver removed a sampling request";
            let new = written.get(&ask.key);
            *params =
                new.ok_or_else(|| Error::new(ErrorKind::Refused(RefusalReason::Person), text))?;
        }
    }
    Ok(())
}
