//! Proposals of rules that would have made approvals unnecessary.

use crate::history::{OMITTED_PREFIX, REDACTED_PREFIX};
use serde_json::Value;
use std::{cmp::Reverse, collections::BTreeMap};
use toolgate_policy::SecretRedactor;

/// Minimum number of approvals that a proposal makes unnecessary.
const MIN_APPROVALS: u64 = 3;
/// Maximum number of proposals.
const MAX_PROPOSALS: usize = 10;
/// Maximum number of commands in one rule.
const MAX_COMMANDS: usize = 20;
/// Maximum number of different values of an argument that are counted for a tool.
const MAX_VALUES: usize = 10_000;
/// Minimum number of directories in a proposed prefix: `/home/ada` is too wide.
const MIN_PREFIX_DEPTH: usize = 3;
/// First words of names of tools that only read.
const READING_WORDS: [&str; 7] = ["get", "list", "read", "search", "find", "describe", "show"];

/// Calls of one tool that need an approval.
#[derive(Clone, Debug, Default)]
pub(super) struct AskedCalls {
    count: u64,
    commands: BTreeMap<String, u64>,
    paths: BTreeMap<String, u64>,
}

impl AskedCalls {
    /// Adds a call.
    pub(super) fn add(&mut self, arguments: &Value) {
        self.count += 1;
        for (key, values) in [("command", &mut self.commands), ("path", &mut self.paths)] {
            if let Some(text) = arguments[key].as_str()
                // A placeholder is not what the caller sent.
                && !text.contains(REDACTED_PREFIX)
                && !text.contains(OMITTED_PREFIX)
                && (values.len() < MAX_VALUES || values.contains_key(text))
            {
                *values.entry(text.to_owned()).or_default() += 1;
            }
        }
    }

    /// Returns the best proposal for a tool: its section in TOML, and the number of approvals that it makes unnecessary.
    fn proposal(&self, tool: &str) -> Option<(u64, String)> {
        let own = tool.rsplit_once('.').map_or(tool, |(_, own)| own);
        let first = own.split(['_', '-']).next().unwrap_or_default();
        let (count, condition) = if !self.commands.is_empty() {
            self.repeated_commands()?
        } else if READING_WORDS.contains(&first) {
            (self.count, None)
        } else {
            self.common_directory()?
        };
        if count < MIN_APPROVALS {
            return None;
        }
        let when = condition.map(|condition| format!("when = '{condition}'\n"));
        let text = format!(
            "# {count} calls\n[[rule]]\ntools = [\"{tool}\"]\n{}action = \"allow\"\n",
            when.unwrap_or_default()
        );
        Some((count, text))
    }

    /// Commands that were repeated word for word. A prefix would also match `cargo test; rm -rf ~`.
    fn repeated_commands(&self) -> Option<(u64, Option<String>)> {
        let repeated = |(text, count): &(&String, &u64)| {
            **count >= MIN_APPROVALS && is_literal(text) && text.len() <= 200
        };
        let mut commands: Vec<(&String, &u64)> = self.commands.iter().filter(repeated).collect();
        commands.sort_by_key(|(_, count)| Reverse(**count));
        commands.truncate(MAX_COMMANDS);
        let quoted: Vec<String> = commands
            .iter()
            .map(|(text, _)| format!("{text:?}"))
            .collect();
        let count = commands.iter().map(|(_, count)| **count).sum();
        (!quoted.is_empty()).then(|| {
            (
                count,
                Some(format!("args.command in [{}]", quoted.join(", "))),
            )
        })
    }

    /// The directory that contains all paths.
    fn common_directory(&self) -> Option<(u64, Option<String>)> {
        let directory = |path: &str| {
            path.rsplit_once('/')
                .map(|(directory, _)| directory.to_owned())
        };
        let plain: Vec<(&String, &u64)> = self
            .paths
            .iter()
            .filter(|(path, _)| path.starts_with('/') && !path.contains(".."))
            .collect();
        let mut common = directory(plain.first()?.0)?;
        for (path, _) in &plain {
            while !path.starts_with(&format!("{common}/")) {
                common = directory(&common)?;
            }
        }
        let deep = common.matches('/').count() >= MIN_PREFIX_DEPTH;
        let count = plain.iter().map(|(_, count)| **count).sum();
        (deep && is_literal(&common)).then(|| {
            let condition =
                format!("args.path.startsWith(\"{common}/\") && !args.path.contains(\"..\")");
            (count, Some(condition))
        })
    }
}

/// Returns true if a text can stand in a rule: it has no secret, and needs no escapes in CEL and TOML.
fn is_literal(text: &str) -> bool {
    let plain = |c: char| !c.is_control() && c != '\'' && c != '\\' && c != '"';
    text.chars().all(plain) && SecretRedactor::redact_text(text) == text
}

/// Returns proposals for the tools that needed most approvals, as sections of a config.
pub(super) fn propose(asked: &BTreeMap<String, AskedCalls>) -> (u64, String) {
    let proposals = asked
        .iter()
        .filter_map(|(tool, calls)| calls.proposal(tool));
    let mut proposals: Vec<(u64, String)> = proposals.collect();
    proposals.sort_by_key(|(count, _)| Reverse(*count));
    proposals.truncate(MAX_PROPOSALS);
    let count = proposals.iter().map(|(count, _)| count).sum();
    let texts: Vec<String> = proposals.into_iter().map(|(_, text)| text).collect();
    (count, texts.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn proposals(tool: &str, calls: &[(Value, u64)]) -> (u64, String) {
        let mut asked = AskedCalls::default();
        for (arguments, count) in calls {
            (0..*count).for_each(|_| asked.add(arguments));
        }
        propose(&BTreeMap::from([(tool.to_owned(), asked)]))
    }

    #[test]
    fn proposals_are_narrow() {
        let command = |text: &str| json!({"command": text});
        let (count, text) = proposals(
            "host.bash",
            &[
                (command("cargo test"), 9),
                (command("ls"), 3),
                (command("rm -rf x"), 2),
                (command("echo 'a'"), 5),
            ],
        );
        assert_eq!(count, 12);
        assert_eq!(
            text,
            "# 12 calls\n[[rule]]\ntools = [\"host.bash\"]\nwhen = 'args.command in [\"cargo test\", \"ls\"]'\naction = \"allow\"\n"
        );
        let path = |text: &str| json!({"path": text});
        let (_, text) = proposals(
            "files.write",
            &[
                (path("/srv/app/src/a.rs"), 2),
                (path("/srv/app/src/b/c.rs"), 2),
                (path("/srv/../etc"), 9),
            ],
        );
        assert!(
            text.contains(
                "when = 'args.path.startsWith(\"/srv/app/src/\") && !args.path.contains(\"..\")'"
            ),
            "{text}"
        );
        assert_eq!(
            proposals("files.write", &[(path("/srv/a"), 5), (path("/home/b"), 5)]).0,
            0
        );
        assert!(
            proposals("github.list_issues", &[(json!({}), 3)])
                .1
                .contains("tools = [\"github.list_issues\"]\naction")
        );
        assert_eq!(proposals("github.delete_repo", &[(json!({}), 30)]).0, 0);
    }
}
