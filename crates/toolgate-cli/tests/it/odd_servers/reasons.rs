//! The reasons that the operator reads for what was withheld, dropped or repaired.

use super::corpus::Case;
use crate::help::{Gate, output, toolgate};
use serde_json::json;
use std::process::Output;

/// Last line of many notes of a server in `toolgate status`; the console shows all of them.
const AND_MORE: &str = "more notes on definitions";

/// Printed lines of the commands that name their server.
struct Printed {
    items: String,
    status: String,
    check: String,
}

/// Looks for the reason of each case in each place where operators look; returns what is missing.
pub(super) fn missing(gate: &Gate, cases: &[Case]) -> Vec<String> {
    let file = gate.data.file("toolgate.toml");
    let mut check = toolgate();
    check.args(["check", "--servers", "--config"]).arg(file);
    check.arg("--data").arg(gate.data.file("checked"));
    let printed = Printed {
        items: ["tools", "resources", "prompts"]
            .map(|kind| all_of(&gate.run(&[kind])))
            .concat()
            // The reason is a column of its own.
            .replace("withheld  ", "withheld: "),
        // Odd servers are down, so the command fails.
        status: with_servers(&all_of(&gate.run(&["status"]))),
        check: all_of(&output(&mut check)),
    };
    cases
        .iter()
        .flat_map(|case| case.places_without_reason(&printed))
        .collect()
}

/// Both outputs: a server that does not run is named on standard error.
fn all_of(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .concat()
}

/// The lines of `toolgate status`, in which notes stand below their server, each with the name of its server.
fn with_servers(status: &str) -> String {
    let mut server = "";
    let lines = status.lines().map(|line| {
        let mut words = line.split_whitespace();
        if words.next() == Some("server") {
            server = words.next().unwrap_or_default();
        }
        format!("{server}: {line}\n")
    });
    lines.collect()
}

impl Case {
    fn places_without_reason(&self, printed: &Printed) -> Vec<String> {
        let Some(reason) = self.line["reason"].as_str() else {
            return Vec::new();
        };
        let noted = self.noted();
        let is_in = |text: &str, name: &str| {
            let mut lines = text.lines();
            lines.any(|line| {
                line.contains(&self.server) && line.contains(name) && line.contains(reason)
            })
        };
        let may_be_cut = self.line["listed"] != json!(false);
        let is_cut = printed
            .status
            .lines()
            .any(|line| line.starts_with(&self.server) && line.contains(AND_MORE));
        let places = [
            (
                "toolgate tools, resources or prompts",
                is_in(&printed.items, noted),
            ),
            (
                "toolgate status",
                is_in(&printed.status, noted) || (may_be_cut && is_cut),
            ),
            // It names a few of many tools with the same reason.
            (
                "toolgate check --servers",
                is_in(&printed.check, noted) || is_in(&printed.check, " more: "),
            ),
        ];
        let without = places.into_iter().filter(|(_, there)| !there);
        without
            .map(|(place, _)| format!("{place}: no reason for {}: {}", self.file, self.name))
            .collect()
    }

    /// The name that stands beside its reason.
    fn noted(&self) -> &str {
        let line = &self.line;
        let own = [
            &line["noted"],
            &line["resource"]["uri"],
            &line["template"]["uriTemplate"],
            &line["tool"]["name"],
        ];
        let own = own.into_iter().find_map(|name| name.as_str());
        own.unwrap_or(if self.is_server() { "" } else { &self.name })
    }
}
