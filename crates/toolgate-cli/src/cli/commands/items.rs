//! `toolgate tools`, `resources` and `prompts`: lists of items.

use super::{Result, collect_lists, print, unavailable};
use crate::{
    cli::output::{OutputTable, TableColumn, print_json, read_answer},
    operator::control::GatewaySockets,
    operator::item_view::ITEM_LISTS,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::process::ExitCode;
use toolgate_core::{ItemKind, visible, visible_line};

/// Item that a server offers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct ItemOutput {
    /// `tool`, `resource`, `template`, `skill` or `prompt`.
    kind: String,
    /// Name for rules and for the commands of toolgate.
    full_name: String,
    /// Server in the config.
    server: String,
    /// Name on its server.
    name: String,
    /// Name that clients use.
    #[serde(rename(deserialize = "wire"))]
    client_name: String,
    title: Option<String>,
    description: Option<String>,
    /// Decision of the rules about a caller without a key, if they need no arguments for it: `allow`, `ask` or `deny`.
    #[serde(rename(deserialize = "verdict"))]
    decision: String,
    /// Rule that decides.
    rule: Option<String>,
    /// True if the config trusts the annotations of the server.
    trusted: bool,
    /// Reason for which callers do not get the item.
    withheld: Option<String>,
    /// State of the definition: `accepted`, `new` or `changed`.
    pin: Option<String>,
    /// Annotations of the server.
    #[serde(rename(deserialize = "hints"))]
    annotations: AnnotationsOutput,
    /// Repairs and unchecked parts of the definition.
    notes: Vec<ItemNoteOutput>,
    /// Suspicious properties of the definition, such as a name that looks like another one.
    #[serde(rename(deserialize = "flags"))]
    review_flags: Vec<String>,
    /// MIME type of a resource.
    #[serde(rename(deserialize = "mime"))]
    mime_type: Option<String>,
    /// JSON Schema of the arguments.
    input_schema: Value,
    /// JSON Schema of the structured result.
    output_schema: Value,
}

/// Annotations of a tool, as its server states them.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct AnnotationsOutput {
    #[serde(rename(deserialize = "readOnly"))]
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    #[serde(rename(deserialize = "openWorld"))]
    open_world: Option<bool>,
}

/// Note on the definition of an item.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct ItemNoteOutput {
    /// What was done, such as `repaired` or `withheld`.
    action: String,
    reason: String,
}

/// Prints one line for each item, under the name that rules match, and one line for each dropped item or failed list.
pub(super) fn run(gateways: &GatewaySockets, list: &str, json: bool) -> Result<ExitCode> {
    let offered = collect_lists(gateways, list)?.into_iter().map(|item| {
        let item: ItemOutput = read_answer(item)?;
        let full_name = format!("{}.{}", item.server, item.name);
        Ok(ItemOutput { full_name, ..item })
    });
    let offered = offered.collect::<Result<Vec<ItemOutput>>>()?;
    let statuses = unavailable::statuses(gateways);
    unavailable::print_unavailable(&statuses, |id| offered.iter().all(|item| item.server != id));
    let kinds = ITEM_LISTS.iter().find(|(name, _)| *name == list);
    let kinds = kinds.map(|(_, kinds)| *kinds).unwrap_or_default();
    let servers = statuses
        .iter()
        .flat_map(|status| status["servers"].as_array())
        .flatten();
    let absent: String = servers
        .map(|server| absent_item_lines(server, kinds))
        .collect();
    if json {
        eprint!("{absent}");
        return print_json(&offered);
    }
    print(&format!("{}{absent}", table(&offered).text()))
}

fn table(items: &[ItemOutput]) -> OutputTable {
    let mut table = OutputTable::new(&[TableColumn::Whole, TableColumn::State, TableColumn::Cut]);
    for item in items {
        let about = visible_line(item.description.as_deref().unwrap_or_default());
        let notes = item.notes.iter();
        let notes = notes.map(|note| {
            let (action, reason) = (visible_line(&note.action), visible_line(&note.reason));
            format!(" [{action}: {reason}]")
        });
        let about = about + &notes.collect::<String>();
        let (decision, about) = match &item.withheld {
            Some(why) => (
                "withheld".to_owned(),
                format!("{} {about}", visible_line(why)),
            ),
            None => (visible(&item.decision), about),
        };
        table.add([visible_line(&item.full_name), decision, about]);
    }
    table
}

/// Formats the notes on dropped items and failed lists of a server.
fn absent_item_lines(server: &Value, kinds: &[ItemKind]) -> String {
    let notes = server["notes"].as_array().into_iter().flatten();
    let is_absent = |note: &&Value| {
        let of_kind = kinds.iter().any(|kind| note["kind"] == kind.as_str());
        of_kind && (note["action"] == "dropped" || note["action"] == "failed")
    };
    let id = visible_line(server["id"].as_str().unwrap_or_default());
    let text = |note: &Value| visible_line(note["text"].as_str().unwrap_or_default());
    let line = |note: &Value| format!("{id}: {}\n", text(note));
    notes.filter(is_absent).map(line).collect()
}
