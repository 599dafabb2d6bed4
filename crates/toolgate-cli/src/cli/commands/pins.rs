//! `toolgate pins`: accepted and pending definitions.

use super::{CommandError, Result, print, send_by_id};
use crate::{
    args::PinsCommand,
    cli::output::{OutputTable, OutputTime, TableColumn, print_json, read_answer},
    operator::control::{ControlResponse, GatewaySockets},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{collections::BTreeMap, path::Path, process::ExitCode};
use toolgate_core::visible_line;
use toolgate_protocol::plural::count_of;

/// Shown length of a digest in characters.
const SHOWN_DIGEST_CHARS: usize = 12;

/// Runs a pin command at the running gateways.
pub(super) fn run(data: &Path, command: &PinsCommand) -> Result<ExitCode> {
    match command {
        PinsCommand::List { server, json } => {
            list(&GatewaySockets::find(data)?, server.as_deref(), json.json)
        }
        PinsCommand::Diff { name, json } => {
            let pins = diff(&GatewaySockets::find(data)?, name)?;
            match json.json {
                true => print_json(&pins),
                false => print(&format_pins(&pins)),
            }
        }
        PinsCommand::Accept {
            name: Some(name),
            digest,
            ..
        } => {
            let pins = diff(&GatewaySockets::find(data)?, name)?;
            print(&format_pins(&pins))?;
            // Accept exactly the definition that was shown.
            let shown = single_digest(&pins).map(str::to_owned);
            let digest = digest.clone().or(shown);
            send_by_id(
                data,
                "pins/accept",
                &json!({"name": name, "digest": digest}),
            )
        }
        PinsCommand::Accept { server, .. } => {
            let done = GatewaySockets::find(data)?
                .request_any("pins/accept", &json!({"server": server}))?;
            print(&format!(
                "accepted: {}\n",
                count_of(done["count"].as_u64().unwrap_or(0), "definition")
            ))
        }
        PinsCommand::Reject { name, digest } => send_by_id(
            data,
            "pins/reject",
            &json!({"name": name, "digest": digest}),
        ),
        PinsCommand::Forget { name } => send_by_id(data, "pins/forget", &json!({"name": name})),
    }
}

/// Pinned definition.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct PinOutput {
    /// Full name of the item, or `SERVER.instructions`.
    name: String,
    /// Server in the config.
    server: String,
    /// `tool`, `resource`, `resource template`, `prompt`, `skill` or `instructions`.
    kind: String,
    /// `accepted`, `new` or `changed`.
    state: String,
    /// Operator who rejected the pending definition.
    #[serde(rename(deserialize = "rejected"))]
    rejected_by: Option<String>,
    /// Time at which the item was first listed.
    #[serde(rename(deserialize = "first"))]
    first_seen_at: OutputTime,
    #[serde(rename(deserialize = "accepted"))]
    accepted_digest: Option<String>,
    /// Origin of the acceptance, such as `first sight` or `terminal`.
    #[serde(rename(deserialize = "by"))]
    accepted_by: Option<String>,
    #[serde(rename(deserialize = "at"))]
    accepted_at: Option<OutputTime>,
    /// Digest of the definition that waits for a decision.
    #[serde(rename(deserialize = "other"))]
    pending_digest: Option<String>,
    /// True if callers do not get the pending definition.
    hidden: bool,
    /// Suspicious properties of the definition, such as a name that looks like another one.
    #[serde(rename(deserialize = "flags"))]
    review_flags: Option<Vec<String>>,
    /// Texts in the pending definition that may steer a model, the strongest first. They decide nothing.
    steering: Vec<SteeringOutput>,
}

/// Text in a definition that may steer a model.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct SteeringOutput {
    /// `hidden text`, `instruction to the model`, `asks for a secret`, `too long to check`, `other tool`, `path` or `URL`.
    kind: String,
    /// Place in the definition.
    place: String,
    text: String,
}

impl SteeringOutput {
    fn line(&self) -> String {
        let text = format!("{} in {}: {}", self.kind, self.place, self.text);
        visible_line(&text)
    }
}

/// Pinned definition with its differences.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct PinDiffOutput {
    #[serde(flatten)]
    pin: PinOutput,
    /// Differences of the pending definition from the accepted one; empty if one is too large to be stored.
    differences: Vec<DifferenceOutput>,
    /// New definition as canonical JSON, if no definition was accepted before.
    #[serde(rename(deserialize = "text"))]
    pending_text: Option<String>,
}

/// Difference between two definitions.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct DifferenceOutput {
    /// JSON Pointer of the changed value; empty for the whole definition.
    #[serde(rename(deserialize = "place"))]
    path: String,
    old: Option<String>,
    new: Option<String>,
    /// True if the difference does not change the meaning.
    cosmetic: bool,
}

/// Lists one line per pin, and below it one line per flag. All gateways of a data directory share the pins; each knows
/// its own servers.
fn list(gateways: &GatewaySockets, server: Option<&str>, json: bool) -> Result<ExitCode> {
    let mut pins = BTreeMap::new();
    let (mut known, mut unknown) = (false, None);
    for answer in gateways.request_all("pins", &json!({"server": server}))? {
        match answer {
            ControlResponse::Ok(answer) => {
                known = true;
                for pin in read_answer::<Vec<PinOutput>>(answer)? {
                    pins.insert((pin.name.clone(), pin.kind.clone()), pin);
                }
            }
            ControlResponse::Unknown(why) => unknown = Some(why),
            ControlResponse::Refused(why) => return Err(CommandError::Failure(why)),
        }
    }
    let pins: Vec<PinOutput> = pins.into_values().collect();
    match unknown {
        Some(why) if !known => Err(CommandError::Failure(why)),
        _ if json => print_json(&pins),
        _ => print(&table(&pins).text()),
    }
}

fn table(pins: &[PinOutput]) -> OutputTable {
    let mut table = OutputTable::new(&[
        TableColumn::Whole,
        TableColumn::State,
        TableColumn::Cut,
        TableColumn::Whole,
        TableColumn::Whole,
    ]);
    for pin in pins {
        let state = match pin.rejected_by {
            Some(_) => "rejected".to_owned(),
            None => visible_line(&pin.state),
        };
        let digest = |digest: &Option<String>| {
            let digest = visible_line(digest.as_deref().unwrap_or_default());
            digest.chars().take(SHOWN_DIGEST_CHARS).collect::<String>()
        };
        table.add([
            visible_line(&pin.name),
            state,
            visible_line(pin.accepted_by.as_deref().unwrap_or_default()),
            digest(&pin.accepted_digest),
            digest(&pin.pending_digest),
        ]);
        for flag in pin.review_flags.iter().flatten() {
            table.add_line(format!("  flagged: {}", visible_line(flag)));
        }
        for flag in &pin.steering {
            table.add_line(format!("  {}", flag.line()));
        }
    }
    table
}

fn diff(gateways: &GatewaySockets, name: &str) -> Result<Vec<PinDiffOutput>> {
    read_answer(gateways.request_any("pins/diff", &json!({"name": name}))?)
}

fn format_pins(pins: &[PinDiffOutput]) -> String {
    pins.iter().map(format_differences).collect()
}

/// Returns the digest of the changed definition if exactly one pin has the name.
fn single_digest(pins: &[PinDiffOutput]) -> Option<&str> {
    match pins {
        [one] => one.pin.pending_digest.as_deref(),
        _ => None,
    }
}

/// Formats the differences of a definition with control and invisible characters escaped.
fn format_differences(diff: &PinDiffOutput) -> String {
    let pin = &diff.pin;
    let (kind, name) = (visible_line(&pin.kind), visible_line(&pin.name));
    let Some(other) = &pin.pending_digest else {
        return format!("{kind} {name}: unchanged since it was accepted\n");
    };
    let (state, other) = (visible_line(&pin.state), visible_line(other));
    let mut out = format!("{kind} {name} is {state}: {other}\n");
    for flag in &pin.steering {
        out.push_str(&format!("  {}\n", flag.line()));
    }
    for one in &diff.differences {
        let path = match one.path.as_str() {
            "" => "the whole definition".to_owned(),
            path => visible_line(path),
        };
        let weight = if one.cosmetic { "cosmetic" } else { "semantic" };
        out.push_str(&format!("\n  {path} ({weight})\n"));
        for (sign, value) in [("-", &one.old), ("+", &one.new)] {
            if let Some(value) = value {
                out.push_str(&format!("  {sign} {}\n", visible_line(value)));
            }
        }
    }
    match &diff.pending_text {
        Some(new) => out.push_str(&format!("\n  + {}\n", visible_line(new))),
        None if diff.differences.is_empty() => {
            out.push_str("\n  one of the two definitions is too large to be stored, so the differences are unknown\n");
        }
        None => {}
    }
    out
}
