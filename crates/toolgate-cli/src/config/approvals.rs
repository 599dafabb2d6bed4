//! `approvals` of a rule: a number of approvers, or a table with their groups and whether they sign with passkeys.

use super::reader::inline_schema;
use schemars::json_schema;
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};
use std::fmt;
use toolgate_policy::ApprovalRequirement;

/// Maximum number of approvers, and of entries of `groups`.
const MAX_APPROVERS: u32 = 8;
/// Maximum number of alternative groups of an entry.
const MAX_ALTERNATIVES: usize = 32;

/// Required approvers as written: `2`, or `{ count = 2, groups = [["security"], ["oncall", "lead"]] }`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ApprovalsSetting(pub(super) ApprovalRequirement);

/// Table form of the setting.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ApprovalsTable {
    count: u32,
    groups: Vec<Vec<String>>,
    passkey: bool,
}

impl Default for ApprovalsTable {
    fn default() -> ApprovalsTable {
        ApprovalsTable {
            count: 1,
            groups: Vec::new(),
            passkey: false,
        }
    }
}

impl<'de> Deserialize<'de> for ApprovalsSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ApprovalsSetting, D::Error> {
        deserializer.deserialize_any(ApprovalsVisitor)
    }
}

struct ApprovalsVisitor;

impl<'de> Visitor<'de> for ApprovalsVisitor {
    type Value = ApprovalsSetting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a number from 1 to {MAX_APPROVERS}, or a table such as {{ count = 2, groups = [[\"security\"], [\"oncall\", \"lead\"]] }}"
        )
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<ApprovalsSetting, E> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        check(ApprovalsTable {
            count,
            ..ApprovalsTable::default()
        })
        .map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, count: i64) -> Result<ApprovalsSetting, E> {
        self.visit_u64(u64::try_from(count).unwrap_or(0))
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<ApprovalsSetting, A::Error> {
        let table = ApprovalsTable::deserialize(MapAccessDeserializer::new(table))?;
        check(table).map_err(A::Error::custom)
    }
}

fn check(table: ApprovalsTable) -> Result<ApprovalsSetting, String> {
    if !(1..=MAX_APPROVERS).contains(&table.count) {
        return Err(format!(
            "is not a number of approvers; write an integer from 1 to {MAX_APPROVERS}"
        ));
    }
    if table.groups.len() > MAX_APPROVERS as usize {
        return Err(format!(
            "has more than {MAX_APPROVERS} entries of groups, each of which needs an approver of its own; remove some"
        ));
    }
    let is_group = |group: &String| !group.is_empty() && !group.chars().any(char::is_control);
    let is_entry = |entry: &Vec<String>| {
        (1..=MAX_ALTERNATIVES).contains(&entry.len()) && entry.iter().all(is_group)
    };
    if !table.groups.iter().all(is_entry) {
        return Err(format!(
            "has an entry of groups that is empty or has more than {MAX_ALTERNATIVES} names; write lists of names of groups, such as [[\"security\"], [\"oncall\", \"lead\"]]"
        ));
    }
    let mut needs = ApprovalRequirement::of_count(table.count);
    needs.groups = table.groups;
    needs.passkey = table.passkey;
    Ok(ApprovalsSetting(needs))
}

inline_schema!(ApprovalsSetting, |_| json_schema!({"anyOf": [
    {"type": "integer", "minimum": 1, "maximum": MAX_APPROVERS},
    {
        "type": "object",
        "title": "table with `count`, `groups` and `passkey`",
        "additionalProperties": false,
        "properties": {
            "count": {"type": "integer", "minimum": 1, "maximum": MAX_APPROVERS, "description": "Number of different approvers."},
            "groups": {
                "type": "array",
                "description": "Groups of the approvers. Each entry needs an approver of its own who is in one of the groups of the entry.",
                "maxItems": MAX_APPROVERS,
                "items": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": MAX_ALTERNATIVES,
                    "items": {"type": "string", "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$"},
                },
            },
            "passkey": {"type": "boolean", "description": "True if each approver has to sign the exact call with a passkey at the console. It needs `anchor` in `[passkeys]`."},
        },
        "examples": [{"count": 2, "groups": [["security"], ["oncall", "lead"]]}],
    },
]}));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_number_or_a_table() {
        let read = |text: &str| {
            toml::from_str::<toml::Table>(text)
                .ok()
                .and_then(|mut table| table.remove("a"))
                .map(|value| {
                    value
                        .try_into::<ApprovalsSetting>()
                        .map_err(|e| e.to_string())
                })
        };
        let two = read("a = 2").unwrap().unwrap().0;
        assert_eq!((two.approvers(), two.groups.len()), (2, 0));
        let groups = read("a = { groups = [[\"security\"], [\"oncall\", \"lead\"]] }");
        assert_eq!(groups.unwrap().unwrap().0.approvers(), 2);
        let passkey = read("a = { count = 2, passkey = true }")
            .unwrap()
            .unwrap()
            .0;
        assert!(passkey.passkey && passkey.approvers() == 2 && !two.passkey);
        for (text, expected) in [
            ("a = 0", "from 1 to 8"),
            ("a = 9", "from 1 to 8"),
            ("a = -1", "from 1 to 8"),
            ("a = \"2\"", "a table such as"),
            ("a = { count = 2, passkey = 1 }", "invalid type"),
            ("a = { count = 2, passkeys = true }", "passkeys"),
            ("a = { groups = [[]] }", "lists of names of groups"),
            ("a = { groups = [[\"\"]] }", "lists of names of groups"),
        ] {
            let error = read(text).unwrap().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
