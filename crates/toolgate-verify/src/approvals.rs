//! Approvals that passkeys signed, across all chains of a log.

use crate::checkpoints::unhex;
use crate::json::{self, RecordValue};
use crate::passkey_list::PasskeyChain;
use crate::{BadPosition, VerifyOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Members that the signed text and the record of its approval have in common.
const COMMON_MEMBERS: [&str; 6] = [
    "approval",
    "caller",
    "srv",
    "tool",
    "tool_hash",
    "policy_hash",
];

/// Approvals with passkeys, as the records state them.
#[derive(Debug, Default)]
pub(crate) struct SignedApprovals {
    list: Option<PasskeyChain>,
    /// Tools whose calls need an approval that passkeys signed.
    tools: Vec<String>,
    approvals: BTreeMap<String, ApprovalFacts>,
    /// Approval that a call used.
    used: BTreeMap<String, String>,
    /// Calls that used such an approval or need one, where they began, and the digest of their arguments.
    begun: Vec<(String, BadPosition, Option<String>)>,
    /// Number of signatures.
    pub(crate) signatures: u64,
}

#[derive(Debug, Default)]
struct ApprovalFacts {
    needs: Option<u64>,
    people: BTreeSet<String>,
    /// Digests of the arguments that the people signed.
    arguments: BTreeSet<String>,
    calls: BTreeSet<String>,
    used_at: Option<BadPosition>,
}

impl SignedApprovals {
    pub(crate) fn new(options: &VerifyOptions) -> Result<SignedApprovals, String> {
        let list = match (&options.passkeys, &options.passkey_anchor) {
            (Some(path), Some(anchor)) => Some(PasskeyChain::read(path, anchor)?),
            _ => None,
        };
        Ok(SignedApprovals {
            list,
            tools: options.passkey_tools.clone(),
            ..SignedApprovals::default()
        })
    }

    /// Returns whether signatures are verified.
    pub(crate) fn is_verified(&self) -> bool {
        self.list.is_some()
    }

    /// Accounts for a record. `head` is the position in the list of passkeys that the chain has reached.
    pub(crate) fn add(
        &mut self,
        event: &str,
        record: &RecordValue,
        place: (&Path, u64),
        head: &mut usize,
    ) -> Result<(), String> {
        match event {
            "call.begin" => self.begin(record, place),
            "approval" if is_required(record) => return self.approval(record, place, head),
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, record: &RecordValue, place: (&Path, u64)) {
        let (call, tool) = (record.str("call"), record.str("tool"));
        let (Some(call), Some(tool)) = (call, tool) else {
            return;
        };
        let needs = self.tools.iter().any(|pattern| matches(pattern, tool));
        if needs || self.used.contains_key(call) {
            let why = format!("the call of {tool} has no approval that passkeys signed");
            let arguments = record.str("args_mac").map(str::to_owned);
            self.begun
                .push((call.to_owned(), position(place, why), arguments));
        }
    }

    fn approval(
        &mut self,
        record: &RecordValue,
        place: (&Path, u64),
        head: &mut usize,
    ) -> Result<(), String> {
        let id = record.str("approval").unwrap_or_default();
        let facts = self.approvals.entry(id.to_owned()).or_default();
        match record.str("state") {
            Some("asked") => facts.needs = facts.needs.max(record.num("needs")),
            Some("spent") => {
                let call = record.str("call").unwrap_or_default();
                facts.calls.insert(call.to_owned());
                facts.used_at = Some(position(
                    place,
                    format!("the approval {id} was used, and too few passkeys signed it"),
                ));
                self.used.insert(call.to_owned(), id.to_owned());
            }
            Some("approved" | "seconded") => {
                self.signatures += 1;
                let Some(list) = &self.list else {
                    return Ok(());
                };
                let signed = check(record, list, head);
                let (person, arguments, needs) = signed.ok_or_else(|| {
                    format!("the approval {id} is not signed by a passkey of its approver, or for another call")
                })?;
                if !facts.people.insert(person) {
                    return Err(format!(
                        "the approval {id} has two signatures of one person"
                    ));
                }
                facts.arguments.insert(arguments);
                facts.needs = facts.needs.max(Some(needs));
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns what is wrong with approvals and calls as a whole.
    pub(crate) fn problems(&self) -> Vec<BadPosition> {
        if self.list.is_none() {
            return Vec::new();
        }
        let too_few = self.approvals.values().filter_map(|facts| {
            let enough = facts.people.len() as u64 >= facts.needs.unwrap_or(1).max(1);
            match (&facts.used_at, enough && facts.calls.len() == 1) {
                (Some(place), false) => Some(place.clone()),
                _ => None,
            }
        });
        let calls = self.begun.iter().filter_map(|(call, place, arguments)| {
            let used = self.used.get(call).and_then(|id| self.approvals.get(id));
            let is_signed = used
                .zip(arguments.as_ref())
                .is_some_and(|(facts, arguments)| {
                    facts.arguments.len() == 1 && facts.arguments.contains(arguments)
                });
            (!is_signed).then(|| place.clone())
        });
        too_few.chain(calls).collect()
    }
}

fn is_required(record: &RecordValue) -> bool {
    matches!(
        record.get("passkey_required"),
        Some(RecordValue::Bool(true))
    ) || record.get("passkey").is_some()
}

/// Verifies the signature in a record. Returns the person, the digest of the arguments that the person signed, and the
/// number of approvers that the call needs.
fn check(
    record: &RecordValue,
    list: &PasskeyChain,
    head: &mut usize,
) -> Option<(String, String, u64)> {
    let signature = record.get("passkey")?;
    let at = list.position(signature.str("list")?)?;
    // The list only grows: an older one would have passkeys that were removed.
    if at < *head {
        return None;
    }
    *head = at;
    let text = String::from_utf8(unhex(signature.str("signed")?)?).ok()?;
    let passkey = list.verify(at, signature, &text)?;
    let signed = json::read(text.as_bytes())?;
    let is_approval = signed.str("format")? == "toolgate-approval-v1"
        && signed.str("decision")? == "approve"
        && record.str("by")? == "console"
        && record.str("who")? == passkey.person;
    let is_same = COMMON_MEMBERS
        .iter()
        .all(|name| signed.str(name).is_some() && signed.str(name) == record.str(name));
    let arguments = signed.str("edited_mac").or(signed.str("args_mac"))?;
    let needs = signed.str("needs")?.parse().ok()?;
    (is_approval && is_same).then(|| (passkey.person.clone(), arguments.to_owned(), needs))
}

fn position((file, line): (&Path, u64), why: String) -> BadPosition {
    BadPosition {
        file: file.to_owned(),
        line,
        why,
    }
}

/// Returns whether a pattern matches a name: `*` at its end stands for any rest.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}
