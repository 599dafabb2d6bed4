//! `toolgate passkeys`: the enrolled passkeys of approvers. Only the console enrolls and removes them.

use super::{Result, print};
use crate::{
    args::PasskeysCommand,
    cli::output::{OutputTable, OutputTime, TableColumn, print_json, read_answer},
    operator::control::GatewaySockets,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{fmt::Write, path::Path, process::ExitCode};
use toolgate_core::visible_line;

/// Passkeys of approvers, and the digests with which the config can pin their list.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct PasskeyListOutput {
    passkeys: Vec<PasskeyOutput>,
    /// Passkeys that wait for the signature of an enrolled one.
    #[serde(rename(deserialize = "requests"))]
    waiting: Vec<PasskeyOutput>,
    /// Digest of the first change of the list; empty for an empty list.
    #[serde(rename(deserialize = "root"))]
    first_change: String,
    /// Digest of the last change of the list; empty for an empty list.
    #[serde(rename(deserialize = "head"))]
    last_change: String,
    /// Anchor in the config. `null`: no passkey counts.
    anchor: Option<String>,
    /// Reason for which no passkey counts; `null` if there is none.
    problem: Option<String>,
}

/// Passkey of a person.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct PasskeyOutput {
    person: String,
    label: String,
    /// Host of the console at which it works.
    #[serde(rename(deserialize = "address"))]
    host: String,
    /// True if it may sign the enrollment and removal of other people's passkeys.
    #[serde(rename(deserialize = "admin"))]
    signs_for_others: bool,
    /// Id of the credential in hexadecimal.
    credential: String,
    #[serde(rename(deserialize = "at"))]
    since: OutputTime,
}

/// Runs `toolgate passkeys`.
pub(super) fn run(data: &Path, wanted: &PasskeysCommand) -> Result<ExitCode> {
    let gateways = GatewaySockets::find(data)?;
    match wanted {
        PasskeysCommand::List(output) => {
            let answer = gateways.request_any("passkeys", &json!({}))?;
            list(&read_answer(answer)?, output.json)
        }
        PasskeysCommand::Export => {
            let entries = gateways.request_any("passkeys/entries", &json!({}))?;
            let entries = entries.as_array().map(Vec::as_slice).unwrap_or_default();
            print(&entries.iter().fold(String::new(), |mut lines, entry| {
                let _ = writeln!(lines, "{entry}");
                lines
            }))
        }
    }
}

fn list(list: &PasskeyListOutput, json: bool) -> Result<ExitCode> {
    if json {
        return print_json(list);
    }
    if let Some(problem) = &list.problem {
        return Err(visible_line(problem).into());
    }
    let mut table = OutputTable::new(&[TableColumn::Whole; 4]);
    for one in &list.passkeys {
        let role = match one.signs_for_others {
            true => "signs for others",
            false => "",
        };
        let texts = [&one.person, &one.label, &one.host].map(|text| visible_line(text));
        let [person, label, host] = texts;
        table.add([person, label, host, role.to_owned()]);
    }
    let mut out = table.text();
    if list.passkeys.is_empty() {
        eprintln!(
            "no passkey is enrolled; write [passkeys] in the config, open the console with `toolgate console`, and add one on the page Passkeys"
        );
    }
    if !list.waiting.is_empty() {
        let _ = writeln!(
            out,
            "{} waiting for a signature on the page Passkeys of the console",
            list.waiting.len()
        );
    }
    if !list.last_change.is_empty() {
        let _ = writeln!(out, "first change: {}", visible_line(&list.first_change));
        let _ = writeln!(out, "last change:  {}", visible_line(&list.last_change));
        let _ = match &list.anchor {
            Some(anchor) => writeln!(out, "anchor:       {}", visible_line(anchor)),
            None => writeln!(
                out,
                "anchor:       none, so no passkey counts; if these are your passkeys, set `anchor` in [passkeys] to the last change"
            ),
        };
    }
    print(&out)
}
