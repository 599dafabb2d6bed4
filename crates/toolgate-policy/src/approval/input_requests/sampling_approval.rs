//! Approval of sampling requests. Until an approver decides, the requests wait in a slot of the call.

use super::{InputRequestPolicy, NAME};
use std::sync::Arc;
use toolgate_core::{
    ApprovalOutcome, Call, CallArguments, Definition, Error, ErrorKind, InputRequest,
    InputRequestKind, InputRequests, Item, Json, Outcome, RefusalReason,
};
use toolgate_protocol::{
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
pub(super) fn pending_requests(call: &Call) -> Option<InputRequests> {
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
    // No guard: the previous round still holds the open request at the server.
    let mut requests = InputRequests::new(asks.into_iter().map(ask).collect());
    requests.slots = slots;
    Some(requests)
}

/// Serializes input requests, for [`pending_requests`] to read.
fn serialize_requests(questions: &InputRequests) -> String {
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
        requests: questions.requests.iter().map(request).collect(),
        ..InputRequiredResult::default()
    };
    required.json().as_str().to_owned()
}

/// Returns a synthetic tool that represents sampling requests of one server to the approver.
///
/// An approval of a tool therefore never covers its sampling requests, and the reverse.
fn sampling_tool(item: &Item) -> Result<Item, Error> {
    let definition = serde_json::json!({
        "name": elicitation::SAMPLING,
        "description": "Sampling requests from this server to the model of the caller",
        "inputSchema": {"type": "object"},
    });
    let definition = Definition::tool(Json::from_value(&definition));
    let definition = definition.map_err(|why| Error::new(ErrorKind::Bug, why))?;
    Ok(Item::new(item.origin.clone(), definition))
}

/// Returns a copy of the call with the sampling requests as its arguments.
fn sampling_call(call: &Call, item: &Item, questions: &InputRequests) -> Call {
    let mut about = call.clone();
    item.def.name().clone_into(&mut about.invocation.name);
    let mut asked = ObjectWriter::new();
    for ask in &questions.requests {
        if let InputRequestKind::Sample(params) = &ask.kind {
            asked.raw(&ask.key, params);
        }
    }
    about.invocation.arguments = CallArguments::new(asked.finish());
    let id = call.round.slots.get(SAMPLING_APPROVAL_SLOT);
    about.round.slots = id
        .map(|id| (CONFIRM_SLOT.to_owned(), id.clone()))
        .into_iter()
        .collect();
    about
}

impl InputRequestPolicy {
    /// Passes on the input requests once the sampling requests are approved, or requests the approval.
    pub(super) async fn approve_sampling(
        &self,
        call: &Call,
        item: &Item,
        mut questions: InputRequests,
    ) -> Result<Outcome, Error> {
        let Some(person) = &self.approval else {
            let text = "refused: a sampling request requires the approval of a person, but no approver is available here; ask the operator to allow the request without approval";
            call.decision_log.add(NAME, "refuse", text);
            return Err(Error::new(ErrorKind::Refused(RefusalReason::Rule), text));
        };
        let tool = Arc::new(sampling_tool(item)?);
        let about = sampling_call(call, &tool, &questions);
        let why = format!(
            "the server {} asks to use the model of {} (sampling)",
            item.origin.server, call.caller
        );
        match person.request_approval(&about, &tool, vec![why]).await? {
            ApprovalOutcome::Approved { .. } => {}
            ApprovalOutcome::ApprovedWithEdits { arguments, .. } => {
                apply_edit(&mut questions, &arguments)?
            }
            ApprovalOutcome::InputRequired(approval) => {
                let id = approval
                    .slots
                    .get(CONFIRM_SLOT)
                    .cloned()
                    .unwrap_or_default();
                let mut slots = questions.slots.clone();
                slots.insert(
                    PENDING_REQUESTS_SLOT.to_owned(),
                    serialize_requests(&questions),
                );
                slots.insert(SAMPLING_APPROVAL_SLOT.to_owned(), id);
                let mut requests = InputRequests::new(approval.requests);
                requests.slots = slots;
                requests.guard = questions.guard;
                return Ok(Outcome::InputRequired(requests));
            }
        }
        Ok(Outcome::InputRequired(questions))
    }
}

/// Replaces the sampling requests with those that the approver edited.
fn apply_edit(questions: &mut InputRequests, written: &Json) -> Result<(), Error> {
    for ask in &mut questions.requests {
        if let InputRequestKind::Sample(params) = &mut ask.kind {
            let text = "refused: the approver edited the sampling requests of this call and removed one of them; call again";
            let new = written.get(&ask.key);
            *params =
                new.ok_or_else(|| Error::new(ErrorKind::Refused(RefusalReason::Approver), text))?;
        }
    }
    Ok(())
}
