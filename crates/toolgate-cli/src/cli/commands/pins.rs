//! `toolgate pins`: accepted and pending definitions.

use super::{CommandError, Result, print, send_by_id};
use crate::{
    args::PinsCommand,
    operator::control::{ControlResponse, GatewaySockets},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::Path, process::ExitCode};
use toolgate_core::visible_line;
use toolgate_protocol::plural::count_of;

/// Runs a pin command at the running gateways.
pub(super) fn run(data: &Path, command: &PinsCommand) -> Result<ExitCode> {
    match command {
        PinsCommand::List { server } => list(&GatewaySockets::find(data)?, server.as_deref()),
        PinsCommand::Diff { name } => diff(&GatewaySockets::find(data)?, name),
        PinsCommand::Accept {
            name: Some(name),
            digest,
            ..
        } => {
            let pins =
                GatewaySockets::find(data)?.request_any("pins/diff", &json!({"name": name}))?;
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

/// Lists one line per pin, and below it one line per flag. All gateways of a data directory share the pins; each knows
/// its own servers.
fn list(gateways: &GatewaySockets, server: Option<&str>) -> Result<ExitCode> {
    let mut lines = BTreeMap::new();
    let (mut known, mut unknown) = (false, None);
    for answer in gateways.request_all("pins", &json!({"server": server}))? {
        match answer {
            ControlResponse::Ok(Value::Array(pins)) => {
                known = true;
                lines.extend(pins.iter().map(line));
            }
            ControlResponse::Ok(_) => {}
            ControlResponse::Unknown(why) => unknown = Some(why),
            ControlResponse::Refused(why) => return Err(CommandError::Failure(why)),
        }
    }
    match unknown {
        Some(why) if !known => Err(CommandError::Failure(why)),
        _ => print(&lines.into_values().collect::<String>()),
    }
}

fn line(pin: &Value) -> ((String, String), String) {
    let word = |key: &str| visible_line(pin[key].as_str().unwrap_or_default());
    let standing = match pin["rejected"].as_str() {
        Some(_) => "rejected".to_owned(),
        None => word("state"),
    };
    let digest = |key: &str| word(key).chars().take(12).collect::<String>();
    let mut text = format!(
        "{:<40} {standing:<9} {:<12} {:<12} {}\n",
        word("name"),
        word("by"),
        digest("accepted"),
        digest("other"),
    );
    for flag in pin["flags"].as_array().into_iter().flatten() {
        let flag = visible_line(flag.as_str().unwrap_or_default());
        text.push_str(&format!("  flagged: {flag}\n"));
    }
    ((word("name"), word("kind")), text)
}

fn diff(gateways: &GatewaySockets, name: &str) -> Result<ExitCode> {
    let pins = gateways.request_any("pins/diff", &json!({"name": name}))?;
    print(&format_pins(&pins))
}

fn format_pins(pins: &Value) -> String {
    let all = pins.as_array().into_iter().flatten();
    all.map(format_differences).collect()
}

/// Returns the digest of the changed definition if exactly one pin has the name.
fn single_digest(pins: &Value) -> Option<&str> {
    match pins.as_array()?.as_slice() {
        [pin] => pin["other"].as_str(),
        _ => None,
    }
}

/// Formats the differences of a definition with control and invisible characters escaped.
fn format_differences(pin: &Value) -> String {
    let text = |value: &Value| value.as_str().map(visible_line);
    let word = |key: &str| text(&pin[key]).unwrap_or_default();
    let Some(other) = text(&pin["other"]) else {
        return format!(
            "{} {}: unchanged since it was accepted\n",
            word("kind"),
            word("name")
        );
    };
    let mut out = format!(
        "{} {} is {}: {other}\n",
        word("kind"),
        word("name"),
        word("state")
    );
    for one in pin["differences"].as_array().into_iter().flatten() {
        let place = text(&one["place"])
            .filter(|p| !p.is_empty())
            .unwrap_or("the whole definition".to_owned());
        let weight = if one["cosmetic"] == true {
            "cosmetic"
        } else {
            "semantic"
        };
        out.push_str(&format!("\n  {place} ({weight})\n"));
        for (sign, key) in [("-", "old"), ("+", "new")] {
            if let Some(value) = text(&one[key]) {
                out.push_str(&format!("  {sign} {value}\n"));
            }
        }
    }
    match text(&pin["text"]) {
        Some(new) => out.push_str(&format!("\n  + {new}\n")),
        None if pin["differences"] == json!([]) => {
            out.push_str("\n  one of the two definitions is too large to be stored, so the differences are unknown\n");
        }
        None => {}
    }
    out
}
