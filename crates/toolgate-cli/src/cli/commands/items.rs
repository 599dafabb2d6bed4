//! `toolgate tools`, `resources` and `prompts`: lists of items.

use super::{Result, collect_lists, print, unavailable};
use crate::{operator::control::GatewaySockets, operator::item_view::ITEM_LISTS};
use serde_json::Value;
use std::process::ExitCode;
use toolgate_core::{ItemKind, visible, visible_line};

/// Prints one line for each item, under the name that rules match, and one line for each dropped item or failed list.
pub(super) fn run(gateways: &GatewaySockets, list: &str) -> Result<ExitCode> {
    let offered = collect_lists(gateways, list)?;
    let statuses = unavailable::statuses(gateways);
    unavailable::print_unavailable(&statuses, |id| {
        offered.iter().all(|item| item["server"] != id)
    });
    let mut text: String = offered.iter().map(line).collect();
    let kinds = ITEM_LISTS.iter().find(|(name, _)| *name == list);
    let kinds = kinds.map(|(_, kinds)| *kinds).unwrap_or_default();
    for server in statuses
        .iter()
        .flat_map(|status| status["servers"].as_array())
    {
        server
            .iter()
            .for_each(|server| text.push_str(&absent_item_lines(server, kinds)));
    }
    print(&text)
}

fn line(item: &Value) -> String {
    let word = |key: &str| visible_line(item[key].as_str().unwrap_or_default());
    let verdict = match item["withheld"].as_str() {
        Some(why) => format!("withheld: {}", visible_line(why)),
        None => word("verdict"),
    };
    let about = word("description");
    let about = visible(about.lines().next().unwrap_or_default());
    let notes = item["notes"].as_array().into_iter().flatten();
    let notes: String = notes
        .map(|note| {
            let word = |key: &str| visible_line(note[key].as_str().unwrap_or_default());
            format!(" [{}: {}]", word("action"), word("reason"))
        })
        .collect();
    let name = format!("{}.{}", word("server"), word("name"));
    format!("{name:<32} {verdict:<6} {about}{notes}\n")
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
