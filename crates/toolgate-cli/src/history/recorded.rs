//! Calls from the audit log.

use crate::runtime::stated_caller::StatedCaller;
use serde_json::{Map, Value};
use toolgate_core::{Caller, Json, Op, PinState, PredictedOutcome};

/// Prefix of a redaction placeholder.
pub(crate) const REDACTED_PREFIX: &str = "[redacted:";
/// Placeholder of a value that the schema marks as secret; no secret rule matched it.
const REDACTED_BY_SCHEMA: &str = "[redacted:schema]";
/// Placeholder of an argument that no rule read: only its name is recorded.
pub(crate) const REDACTED_UNREAD: &str = "[redacted:unread]";
/// Prefix of the placeholder of an oversized text.
pub(crate) const OMITTED_PREFIX: &str = "[omitted:";

/// Recorded call and its decision.
pub(crate) struct RecordedCall {
    pub(crate) id: String,
    /// Microseconds since 1970.
    pub(crate) at: u64,
    pub(crate) caller: Caller,
    pub(crate) op: Op,
    /// Name that the caller used.
    pub(crate) name: String,
    /// Server id and full name, with the server's own item name; `None` if the caller was not allowed to know the item.
    pub(crate) item: Option<(String, String)>,
    pub(crate) arguments: RecordedArguments,
    pub(crate) pin: PinState,
    /// Recorded decision; `None` if no rule decided.
    pub(crate) decision: Option<RecordedDecision>,
    /// True if a secret was found in the arguments.
    pub(crate) has_secret: bool,
}

/// Recorded form of the arguments.
pub(crate) enum RecordedArguments {
    /// Complete arguments.
    Whole(Json),
    /// Arguments with redacted values.
    Redacted(Json),
    /// Only a digest.
    Digest,
}

/// Decision on a call.
#[derive(Clone, Debug)]
pub(crate) struct RecordedDecision {
    pub(crate) outcome: PredictedOutcome,
    /// Name of the policy layer.
    pub(crate) by: String,
    pub(crate) why: String,
}

impl RecordedCall {
    /// Reads a record of a sent or rejected call; `None` for other records.
    pub(crate) fn read(event: &str, at: u64, fields: &Map<String, Value>) -> Option<RecordedCall> {
        let begun = match event {
            "call.begin" => true,
            "deny" => false,
            _ => return None,
        };
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        let ops = [Op::Tool, Op::Resource, Op::Prompt];
        let op = ops
            .into_iter()
            .find(|op| Some(op.method()) == text("method"))?;
        let name = text("name")?;
        let trail = recorded_steps(fields);
        let of = text("srv").zip(text("tool"));
        let arguments = arguments(fields, op, name);
        let saw = |step: &RecordedDecision| step.by == "leaks";
        let marked = match &arguments {
            RecordedArguments::Redacted(json) => {
                let text = json
                    .as_str()
                    .replace(REDACTED_BY_SCHEMA, "")
                    .replace(REDACTED_UNREAD, "");
                text.contains(REDACTED_PREFIX)
            }
            _ => false,
        };
        Some(RecordedCall {
            id: text("call")?.to_owned(),
            at,
            caller: StatedCaller::read(&Value::Object(fields.clone()))
                .caller(text("caller")?, |_| Default::default()),
            op,
            name: name.to_owned(),
            item: of.map(|(server, tool)| {
                let own = text("own").map(|own| format!("{server}.{own}"));
                (server.to_owned(), own.unwrap_or_else(|| tool.to_owned()))
            }),
            pin: pin_state(&trail),
            decision: match begun {
                true => Some(allowing_step(&trail)),
                false => rejecting_step(&trail),
            },
            has_secret: marked || trail.iter().any(|(_, step)| saw(step)),
            arguments,
        })
    }
}

/// Steps of a recorded decision log, each with its outcome word.
type RecordedSteps = Vec<(String, RecordedDecision)>;

fn recorded_steps(fields: &Map<String, Value>) -> RecordedSteps {
    let steps = fields.get("trail").and_then(Value::as_array);
    let read = |step: &Value| {
        let text = |key: &str| step[key].as_str().unwrap_or_default().to_owned();
        let end = match step["verdict"].as_str()? {
            "ask" => PredictedOutcome::Ask,
            "refuse" | "hide" => PredictedOutcome::Deny,
            _ => PredictedOutcome::Allow,
        };
        let (by, why) = (text("by"), text("why"));
        Some((
            text("verdict"),
            RecordedDecision {
                outcome: end,
                by,
                why,
            },
        ))
    };
    steps.into_iter().flatten().filter_map(read).collect()
}

/// Returns the step that allowed a call; if an approval was needed, the step that required it.
fn allowing_step(trail: &RecordedSteps) -> RecordedDecision {
    let asked = trail
        .iter()
        .find(|(_, step)| step.outcome == PredictedOutcome::Ask);
    let allows =
        |(word, step): &&(String, RecordedDecision)| step.by == "access" && word == "allow";
    let step = asked.or_else(|| trail.iter().find(allows));
    step.map_or_else(
        || RecordedDecision {
            outcome: PredictedOutcome::Allow,
            by: "access".to_owned(),
            why: String::new(),
        },
        |(_, step)| step.clone(),
    )
}

/// Returns the rule step that rejected a call. Returns `None` if the cause was not a rule but a rate limit, a freeze, a
/// pin,
/// an unknown name or a failure.
fn rejecting_step(trail: &RecordedSteps) -> Option<RecordedDecision> {
    let rules = ["access", "arguments", "leaks", "placeholders"];
    let refused = trail
        .iter()
        .rev()
        .find(|(_, step)| step.outcome == PredictedOutcome::Deny);
    if let Some((_, step)) = refused
        && step.by != "confirm"
    {
        return rules.contains(&step.by.as_str()).then(|| step.clone());
    }
    // An approval was required and not given.
    let asked = trail
        .iter()
        .find(|(_, step)| step.outcome == PredictedOutcome::Ask);
    asked.map(|(_, step)| step.clone())
}

/// Returns the pin state of the definition; an accepted definition has no step.
fn pin_state(trail: &RecordedSteps) -> PinState {
    let states = [PinState::New, PinState::Changed];
    let is = |state: &PinState| {
        let said =
            |(word, step): &(String, RecordedDecision)| step.by == "pins" && word == state.as_str();
        trail.iter().any(said)
    };
    states.into_iter().find(is).unwrap_or(PinState::Accepted)
}

fn arguments(fields: &Map<String, Value>, op: Op, name: &str) -> RecordedArguments {
    if op == Op::Resource {
        return RecordedArguments::Whole(Json::from_value(&serde_json::json!({ "uri": name })));
    }
    let text = fields.get("args").and_then(Value::as_str);
    let held = text.filter(|text| !text.starts_with(OMITTED_PREFIX));
    let read = |text: &str| Json::read(text.as_bytes().to_vec(), &Default::default()).ok();
    match held.and_then(read) {
        Some(json) if json.as_str().contains(REDACTED_PREFIX) => RecordedArguments::Redacted(json),
        Some(json) => RecordedArguments::Whole(json),
        // Only the empty object has two bytes.
        None if fields.get("args_len").and_then(Value::as_u64) == Some(2) => {
            RecordedArguments::Whole(Json::from_value(&serde_json::json!({})))
        }
        None => RecordedArguments::Digest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn then(ev: &str, trail: Value) -> Option<(PredictedOutcome, String)> {
        let fields = json!({
            "call": "c", "caller": "a", "name": "s_t", "method": "tools/call", "trail": trail, "args_len": 9,
        });
        let call = RecordedCall::read(ev, 1, fields.as_object().unwrap()).unwrap();
        assert!(matches!(call.arguments, RecordedArguments::Digest));
        call.decision.map(|then| (then.outcome, then.why))
    }

    #[test]
    fn finds_the_deciding_step() {
        let step =
            |by: &str, verdict: &str, why: &str| json!({"by": by, "verdict": verdict, "why": why});
        let allowed = json!([step("access", "also", "x"), step("access", "allow", "r1")]);
        assert_eq!(
            then("call.begin", allowed),
            Some((PredictedOutcome::Allow, "r1".to_owned()))
        );
        let asked = json!([
            step("access", "ask", "r2"),
            step("confirm", "approved", "a-1")
        ]);
        assert_eq!(
            then("call.begin", asked),
            Some((PredictedOutcome::Ask, "r2".to_owned()))
        );
        let denied = json!([step("access", "refuse", "refused: r3")]);
        assert_eq!(
            then("deny", denied),
            Some((PredictedOutcome::Deny, "refused: r3".to_owned()))
        );
        let hidden = json!([step("access", "hide", "r4")]);
        assert_eq!(
            then("deny", hidden),
            Some((PredictedOutcome::Deny, "r4".to_owned()))
        );
        let no = json!([step("leaks", "ask", "r5"), step("confirm", "refuse", "no")]);
        assert_eq!(
            then("deny", no),
            Some((PredictedOutcome::Ask, "r5".to_owned()))
        );
        for by in ["rate", "freeze", "pins", "stop"] {
            assert_eq!(then("deny", json!([step(by, "refuse", "x")])), None, "{by}");
        }
        assert_eq!(then("deny", json!([])), None);
    }
}
