//! Approval requirements: how many people must approve a call, of which groups, and whether with passkeys.

use super::{ApprovalError, Approver};
use crate::ApprovalChannel;
use serde_json::{Value, json};

/// Requirement of an approval: the number of approvers (quorum), their groups, and whether each signs with a passkey.
///
/// ```
/// use toolgate_policy::{ApprovalRequirement, GlobPattern, QuorumRule};
///
/// let mut needs = ApprovalRequirement::of_count(2);
/// needs.groups = vec![vec!["security".to_owned()], vec!["oncall".to_owned(), "lead".to_owned()]];
/// assert_eq!(needs.approvers(), 2);
/// let rule = QuorumRule::new(vec![GlobPattern::new("bank.transfer")], needs);
/// # drop(rule);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ApprovalRequirement {
    /// Number of different approvers.
    pub count: u32,
    /// Groups of the approvers: each entry needs an approver of its own who is in one of the groups of the entry.
    pub groups: Vec<Vec<String>>,
    /// True if each approver signs the exact call with an enrolled passkey ([`crate::passkeys`]).
    pub passkey: bool,
}

impl Default for ApprovalRequirement {
    /// Returns the requirement of one approver.
    fn default() -> ApprovalRequirement {
        ApprovalRequirement::of_count(1)
    }
}

impl From<u32> for ApprovalRequirement {
    fn from(count: u32) -> ApprovalRequirement {
        ApprovalRequirement::of_count(count)
    }
}

impl ApprovalRequirement {
    /// Returns the requirement of this number of different approvers.
    pub fn of_count(count: u32) -> ApprovalRequirement {
        ApprovalRequirement {
            count: count.max(1),
            groups: Vec::new(),
            passkey: false,
        }
    }

    /// Adds another requirement: an approval has to meet both.
    pub(super) fn and(mut self, other: &ApprovalRequirement) -> ApprovalRequirement {
        self.count = self.count.max(other.count);
        self.passkey |= other.passkey;
        for groups in &other.groups {
            if !self.groups.contains(groups) {
                self.groups.push(groups.clone());
            }
        }
        self
    }

    /// Returns the number of different approvers that are needed at least.
    pub fn approvers(&self) -> usize {
        (self.count as usize).max(self.groups.len()).max(1)
    }

    /// Returns whether any single person may approve: then the caller's own client may, and a grant may be given.
    pub fn is_single(&self) -> bool {
        self.approvers() == 1 && self.groups.is_empty() && !self.passkey
    }

    /// Returns whether an approval that meets this requirement meets the other one as well.
    pub(super) fn covers(&self, other: &ApprovalRequirement) -> bool {
        self.count >= other.count
            && self.passkey >= other.passkey
            && other
                .groups
                .iter()
                .all(|groups| self.groups.contains(groups))
    }

    /// Returns whether these approvers are enough.
    pub(super) fn is_met_by(&self, approvers: &[Approver]) -> bool {
        approvers.len() >= self.approvers() && self.covered_groups(approvers) == self.groups.len()
    }

    /// Checks whether a further approver counts beside those so far.
    pub(super) fn check_approver(
        &self,
        approvers: &[Approver],
        who: &Approver,
    ) -> Result<(), ApprovalError> {
        if self.is_single() {
            return Ok(());
        }
        if who.name.is_none() || who.channel == ApprovalChannel::Client {
            return Err(ApprovalError::UnidentifiedApprover);
        }
        let with: Vec<Approver> = approvers.iter().chain([who]).cloned().collect();
        // People of other groups count only as far as the number exceeds the groups.
        let others = self.approvers() - self.groups.len();
        match with.len() - self.covered_groups(&with) > others {
            true => Err(ApprovalError::WrongGroup(self.missing_groups(approvers))),
            false => Ok(()),
        }
    }

    /// Returns the groups from which an approver is still missing, as text: alternatives after `or`.
    pub fn missing_groups(&self, approvers: &[Approver]) -> String {
        let covered = self.assign(approvers);
        let missing = self
            .groups
            .iter()
            .zip(covered)
            .filter(|(_, by)| by.is_none());
        let missing: Vec<String> = missing.map(|(groups, _)| groups.join(" or ")).collect();
        missing.join(", and ")
    }

    /// Returns the number of entries of `groups` that have an approver of their own.
    fn covered_groups(&self, approvers: &[Approver]) -> usize {
        self.assign(approvers).iter().flatten().count()
    }

    /// Assigns approvers to the entries of `groups`, each to one at most, so that as many entries as possible have one.
    fn assign(&self, approvers: &[Approver]) -> Vec<Option<usize>> {
        let mut owners = vec![None; self.groups.len()];
        for approver in 0..approvers.len() {
            self.place(
                approver,
                approvers,
                &mut owners,
                &mut vec![false; self.groups.len()],
            );
        }
        owners
    }

    /// Finds an entry for an approver, and moves others to other entries if that helps (an augmenting path).
    fn place(
        &self,
        approver: usize,
        approvers: &[Approver],
        owners: &mut Vec<Option<usize>>,
        seen: &mut Vec<bool>,
    ) -> bool {
        for (entry, groups) in self.groups.iter().enumerate() {
            if seen[entry] || !approvers[approver].is_in_any(groups) {
                continue;
            }
            seen[entry] = true;
            let free = match owners[entry] {
                None => true,
                Some(owner) => self.place(owner, approvers, owners, seen),
            };
            if free {
                owners[entry] = Some(approver);
                return true;
            }
        }
        false
    }

    /// Describes the requirement in a sentence for `explain`, without the channel.
    pub(super) fn describe(&self) -> String {
        let people = match self.approvers() {
            1 => "a person must approve each call".to_owned(),
            more => format!("{more} different people must approve each call"),
        };
        let groups = self
            .groups
            .iter()
            .map(|groups| format!("one of {}", groups.join(" or ")));
        let groups: Vec<String> = groups.collect();
        let of = match groups.is_empty() {
            true => String::new(),
            false => format!(", {}", groups.join(" and ")),
        };
        let how = match self.passkey {
            true => ", each with a passkey",
            false => "",
        };
        format!("{people}{of}{how}")
    }

    pub(super) fn json(&self) -> Value {
        match self.groups.is_empty() && !self.passkey {
            true => json!(self.count),
            false => {
                json!({"count": self.count, "groups": self.groups, "passkey": self.passkey})
            }
        }
    }

    /// Reads the requirement of a stored approval; a number is that of the approvers.
    pub(super) fn read(value: &Value) -> Option<ApprovalRequirement> {
        if let Some(count) = value.as_u64() {
            return Some(ApprovalRequirement::of_count(count.try_into().ok()?));
        }
        Some(ApprovalRequirement {
            count: value.get("count")?.as_u64()?.try_into().ok()?,
            groups: serde_json::from_value(value.get("groups")?.clone()).ok()?,
            passkey: match value.get("passkey") {
                None => false,
                Some(passkey) => passkey.as_bool()?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApproverIdentity;

    fn person(name: &str, groups: &[&str]) -> Approver {
        let mut identity = ApproverIdentity::new("corp");
        identity.groups = groups.iter().map(|&group| group.into()).collect();
        Approver::named(ApprovalChannel::Console, name).with_identity(identity)
    }

    fn requirement(count: u32, groups: &[&[&str]]) -> ApprovalRequirement {
        let words = |groups: &&[&str]| groups.iter().map(|&group| group.to_owned()).collect();
        ApprovalRequirement {
            groups: groups.iter().map(words).collect(),
            ..ApprovalRequirement::of_count(count)
        }
    }

    #[test]
    fn each_entry_needs_an_approver_of_its_own() {
        let needs = requirement(2, &[&["security"], &["oncall", "lead"]]);
        let (both, lead) = (person("a", &["security", "oncall"]), person("b", &["lead"]));
        let security = person("c", &["security"]);
        let other = person("d", &["sales"]);
        let met = |people: &[&Approver]| {
            needs.is_met_by(&people.iter().map(|&one| one.clone()).collect::<Vec<_>>())
        };
        assert!(met(&[&both, &lead]) && met(&[&both, &security]) && met(&[&security, &both]));
        assert!(met(&[&security, &lead]));
        assert!(!met(&[&both]) && !met(&[&both, &other]) && !met(&[&security, &other, &other]));
        assert!(needs.check_approver(&[], &both).is_ok());
        assert!(
            needs
                .check_approver(std::slice::from_ref(&security), &both)
                .is_ok()
        );
        assert!(needs.check_approver(&[], &other).is_err());
        let again =
            needs.check_approver(std::slice::from_ref(&security), &person("e", &["security"]));
        assert!(
            matches!(again, Err(ApprovalError::WrongGroup(missing)) if missing == "oncall or lead")
        );
        // A third person may be of any group.
        let three = requirement(3, &[&["security"]]);
        assert!(
            three
                .check_approver(&[other.clone(), lead.clone()], &security)
                .is_ok()
        );
        assert!(three.check_approver(&[other, lead.clone()], &lead).is_err());
    }

    #[test]
    fn people_without_an_identity_are_in_no_group() {
        let needs = requirement(1, &[&["security"]]);
        let label = Approver::named(ApprovalChannel::Console, "security");
        assert!(needs.check_approver(&[], &label).is_err() && !needs.is_met_by(&[label]));
        assert!(!needs.is_single() && ApprovalRequirement::default().is_single());
    }

    #[test]
    fn a_weaker_approval_does_not_cover_a_stronger_requirement() {
        let (one, two) = (requirement(1, &[]), requirement(2, &[]));
        let grouped = requirement(1, &[&["a"], &["b"]]);
        assert!(two.covers(&one) && !one.covers(&two));
        assert!(grouped.covers(&requirement(1, &[&["b"]])) && !two.covers(&grouped));
        let all = one.clone().and(&two).and(&grouped).and(&grouped);
        assert_eq!((all.approvers(), all.groups.len()), (2, 2));
        assert!(all.covers(&grouped) && all.covers(&two));
        assert_eq!(ApprovalRequirement::read(&all.json()), Some(all));
        assert_eq!(ApprovalRequirement::read(&json!(2)), Some(two.clone()));
        let mut signed = requirement(1, &[]);
        signed.passkey = true;
        assert!(signed.covers(&one) && !one.covers(&signed) && !two.covers(&signed));
        assert!(!signed.is_single() && two.and(&signed).passkey);
        assert_eq!(ApprovalRequirement::read(&signed.json()), Some(signed));
    }
}
