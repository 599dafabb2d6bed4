//! List of enrolled passkeys. A passkey that was enrolled before signs each change after the first.

use super::{
    EnrolledPasskey, PasskeyAssertion, PasskeyChange, PasskeyRequest, RelyingParty, challenge_of,
};
use serde_json::{Value, json};
use std::fmt;
use toolgate_protocol::hex;

/// Maximum number of changes.
const MAX_CHANGES: usize = 10_000;

/// Error of a list of passkeys, or of a change to it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PasskeyListError(String);

impl fmt::Display for PasskeyListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PasskeyListError {}

impl From<toolgate_core::Error> for PasskeyListError {
    fn from(error: toolgate_core::Error) -> PasskeyListError {
        PasskeyListError(error.public_message().to_owned())
    }
}

pub(super) fn wrong<T>(why: impl Into<String>) -> Result<T, PasskeyListError> {
    Err(PasskeyListError(why.into()))
}

/// List of enrolled passkeys: a chain of changes, each with the signatures that it needs.
///
/// A change names the digest of the change before it. Whoever knows the digest of one change can therefore detect that
/// it, or one before it, was replaced or removed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PasskeyList {
    /// Digests of the changes, in hexadecimal.
    digests: Vec<String>,
    passkeys: Vec<EnrolledPasskey>,
}

impl PasskeyList {
    /// Reads the changes of a list, and verifies every signature.
    ///
    /// The pages that signed may have had other ports than today. Their exact address was checked when the change was made.
    ///
    /// # Errors
    /// A change is malformed, or not signed as it has to be. None of the passkeys counts then.
    pub fn read<'a>(
        changes: impl IntoIterator<Item = &'a Value>,
    ) -> Result<PasskeyList, PasskeyListError> {
        let mut list = PasskeyList::default();
        for (at, change) in changes.into_iter().enumerate() {
            list.append(change, None)
                .map_err(|why| PasskeyListError(format!("change {}: {why}", at + 1)))?;
        }
        Ok(list)
    }

    /// Appends a change. `parties` are the relying parties whose pages may have signed; `None` for any.
    ///
    /// # Errors
    /// The change is malformed, or not signed as it has to be. The list is unchanged then.
    pub fn append(
        &mut self,
        entry: &Value,
        parties: Option<&[RelyingParty]>,
    ) -> Result<(), PasskeyListError> {
        if self.digests.len() == MAX_CHANGES {
            return wrong(format!("the list has {MAX_CHANGES} changes already"));
        }
        let text = entry["text"].as_str().unwrap_or_default();
        let Some((change, previous, at)) = PasskeyChange::read(text) else {
            return wrong("it is malformed");
        };
        if previous != self.head() {
            return wrong("it does not continue the change before it");
        }
        let challenge = challenge_of(text);
        match change {
            PasskeyChange::Enroll(request) => {
                let new = self.check_request(&request, entry, parties)?;
                if !self.digests.is_empty() {
                    self.check_signer(entry, parties, &challenge, new, new.is_admin)?;
                } else if !new.is_admin {
                    return wrong("the first passkey must be able to sign for others");
                }
                self.passkeys.push(EnrolledPasskey {
                    enrolled_at: at,
                    ..new.clone()
                });
            }
            PasskeyChange::Remove(credential) => {
                let Some(removed) = self.find(&credential) else {
                    return wrong("there is no such passkey");
                };
                self.check_signer(entry, parties, &challenge, removed, removed.is_admin)?;
                let admins = self.passkeys.iter().filter(|one| one.is_admin).count();
                if removed.is_admin && admins == 1 {
                    return wrong(
                        "it is the last passkey that can sign for others; enroll another such passkey first",
                    );
                }
                self.passkeys.retain(|one| one.credential != credential);
            }
        }
        self.digests.push(hex::encode(&challenge));
        Ok(())
    }

    /// Returns a change with the signatures that it needs: `proof` by a new passkey, `by` by an enrolled one.
    #[must_use]
    pub fn entry(
        text: &str,
        proof: Option<&PasskeyAssertion>,
        by: Option<&PasskeyAssertion>,
    ) -> Value {
        let mut entry = json!({"text": text});
        for (key, assertion) in [("proof", proof), ("by", by)] {
            if let Some(assertion) = assertion {
                entry[key] = assertion.json();
            }
        }
        entry
    }

    /// Returns the text of the next change, at a time in milliseconds since 1970. Its SHA-256 digest is the challenge.
    #[must_use]
    pub fn next_text(&self, change: &PasskeyChange, at: u64) -> String {
        change.text(self.head(), at)
    }

    /// Returns the enrolled passkeys, in the order of their enrollment.
    #[must_use]
    pub fn passkeys(&self) -> &[EnrolledPasskey] {
        &self.passkeys
    }

    /// Returns the enrolled passkey with this credential.
    #[must_use]
    pub fn find(&self, credential: &[u8]) -> Option<&EnrolledPasskey> {
        self.passkeys
            .iter()
            .find(|one| one.credential == credential)
    }

    /// Returns the digest of the last change in hexadecimal; empty for an empty list.
    #[must_use]
    pub fn head(&self) -> &str {
        self.digests.last().map_or("", String::as_str)
    }

    /// Returns the digests of all changes in hexadecimal.
    #[must_use]
    pub fn digests(&self) -> &[String] {
        &self.digests
    }

    /// Verifies that an enrolled passkey signed the challenge; returns the passkey. `parties` as in
    /// [`PasskeyList::append`].
    ///
    /// # Errors
    /// The passkey is not enrolled, or did not sign this.
    pub fn verify(
        &self,
        challenge: &[u8; 32],
        assertion: &PasskeyAssertion,
        parties: Option<&[RelyingParty]>,
    ) -> Result<&EnrolledPasskey, PasskeyListError> {
        let Some(passkey) = self.find(&assertion.credential) else {
            return wrong("the passkey is not enrolled, or was removed");
        };
        verify(assertion, passkey, parties, challenge)?;
        Ok(passkey)
    }

    /// Checks that a request is for a new passkey, and that this passkey signed it.
    pub(super) fn check_request<'a>(
        &self,
        request: &'a PasskeyRequest,
        entry: &Value,
        parties: Option<&[RelyingParty]>,
    ) -> Result<&'a EnrolledPasskey, PasskeyListError> {
        let new = request.passkey();
        if self.find(&new.credential).is_some() {
            return wrong("the passkey is enrolled already");
        }
        let proof = PasskeyAssertion::read(&entry["proof"]);
        let Some(proof) = proof.filter(|proof| proof.credential == new.credential) else {
            return wrong("the new passkey did not sign its enrollment");
        };
        verify(&proof, new, parties, &challenge_of(request.text()))?;
        Ok(new)
    }

    /// Checks that an enrolled passkey signed a change that it may make: one of its own person that is about no
    /// administrator, or any if it is one itself.
    fn check_signer(
        &self,
        entry: &Value,
        parties: Option<&[RelyingParty]>,
        challenge: &[u8; 32],
        about: &EnrolledPasskey,
        is_admin: bool,
    ) -> Result<(), PasskeyListError> {
        let Some(by) = PasskeyAssertion::read(&entry["by"]) else {
            return wrong("no enrolled passkey signed it");
        };
        let signer = self.verify(challenge, &by, parties)?;
        match signer.is_admin || (about.person == signer.person && !is_admin) {
            true => Ok(()),
            false => wrong(
                "the passkey that signed it may enroll and remove passkeys of its own person only",
            ),
        }
    }
}

fn verify(
    assertion: &PasskeyAssertion,
    passkey: &EnrolledPasskey,
    parties: Option<&[RelyingParty]>,
    challenge: &[u8; 32],
) -> Result<(), PasskeyListError> {
    let id = &passkey.relying_party;
    let any = RelyingParty::any_origin(id);
    let party = match parties {
        None => Some(&any),
        Some(parties) => parties.iter().find(|party| party.id == *id),
    };
    let Some(party) = party else {
        return wrong(format!(
            "the passkey is for {id}, which is not the address of this console"
        ));
    };
    assertion
        .verify(&passkey.key, party, challenge)
        .map_err(|why| PasskeyListError(why.to_owned()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::assertion::tests::{TestAuthenticator, party};
    use super::*;

    /// Appends an enrollment that `by` signs; returns the change.
    pub(crate) fn enroll(
        list: &mut PasskeyList,
        (new, person, is_admin): (&TestAuthenticator, &str, bool),
        by: Option<&TestAuthenticator>,
    ) -> Result<Value, PasskeyListError> {
        let key = new.public_key();
        let request =
            PasskeyRequest::new((&new.credential, &key), person, "key", "t.test", is_admin);
        let request = request.unwrap();
        let proof = new.sign(&challenge_of(request.text()));
        let text = list.next_text(&PasskeyChange::Enroll(Box::new(request)), 5);
        let by = by.map(|by| by.sign(&challenge_of(&text)));
        let entry = PasskeyList::entry(&text, Some(&proof), by.as_ref());
        list.append(&entry, Some(&[party()]))?;
        Ok(entry)
    }

    fn remove(
        list: &mut PasskeyList,
        old: &TestAuthenticator,
        by: &TestAuthenticator,
    ) -> Result<Value, PasskeyListError> {
        let text = list.next_text(&PasskeyChange::Remove(old.credential.clone()), 6);
        let entry = PasskeyList::entry(&text, None, Some(&by.sign(&challenge_of(&text))));
        list.append(&entry, Some(&[party()]))?;
        Ok(entry)
    }

    #[test]
    fn each_change_after_the_first_needs_a_signature() {
        let [owner, ann, ben] = ["owner", "ann", "ben"].map(TestAuthenticator::new);
        let mut list = PasskeyList::default();
        assert!(enroll(&mut list, (&owner, "owner", false), None).is_err());
        let mut entries = vec![enroll(&mut list, (&owner, "owner", true), None).unwrap()];
        assert!(enroll(&mut list, (&ann, "ann", false), None).is_err());
        assert!(enroll(&mut list, (&ann, "ann", false), Some(&ann)).is_err());
        entries.push(enroll(&mut list, (&ann, "ann", false), Some(&owner)).unwrap());
        // People add keys of their own, and nobody else's.
        assert!(enroll(&mut list, (&ben, "ben", false), Some(&ann)).is_err());
        assert!(enroll(&mut list, (&ben, "ann", true), Some(&ann)).is_err());
        entries.push(enroll(&mut list, (&ben, "ann", false), Some(&ann)).unwrap());
        assert!(enroll(&mut list, (&ben, "ann", false), Some(&ann)).is_err());
        assert!(remove(&mut list, &owner, &ann).is_err());
        assert!(remove(&mut list, &owner, &owner).is_err(), "the last");
        entries.push(remove(&mut list, &ben, &ann).unwrap());
        assert!(remove(&mut list, &ann, &ben).is_err(), "a removed key");
        let names = list.passkeys().iter().map(|one| one.person.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["owner", "ann"]);
        assert_eq!(PasskeyList::read(&entries), Ok(list));
    }

    #[test]
    fn a_changed_list_has_no_passkeys() {
        let [owner, ann, mallory] = ["owner", "ann", "mallory"].map(TestAuthenticator::new);
        let mut list = PasskeyList::default();
        let entries = [
            enroll(&mut list, (&owner, "owner", true), None).unwrap(),
            enroll(&mut list, (&ann, "ann", false), Some(&owner)).unwrap(),
            remove(&mut list, &ann, &owner).unwrap(),
        ];
        assert!(PasskeyList::read(&entries).is_ok());
        let changed = |at: usize, from: &str, to: &str| {
            let mut entries = entries.clone();
            let text = entries[at].to_string().replace(from, to);
            entries[at] = serde_json::from_str(&text).unwrap();
            PasskeyList::read(&entries)
        };
        let key = |one: &TestAuthenticator| hex::encode(one.public_key().spki());
        assert!(changed(1, "ann", "owner").is_err());
        assert!(changed(1, "false", "true").is_err());
        assert!(changed(0, "owner", "other").is_err());
        assert!(changed(1, &key(&ann), &key(&mallory)).is_err());
        assert!(changed(1, "\"by\"", "\"no\"").is_err());
        assert!(changed(1, "\"proof\"", "\"no\"").is_err());
        assert!(PasskeyList::read(&entries[1..]).is_err());
        assert!(PasskeyList::read([&entries[0], &entries[2]]).is_err());
        assert!(PasskeyList::read([&entries[0], &entries[1], &entries[1]]).is_err());
        // Whoever cuts the end off brings ann back: the digest of the last change is missing then.
        let cut = PasskeyList::read(&entries[..2]).unwrap();
        assert!(cut.find(&ann.credential).is_some());
        assert!(!cut.digests().contains(&list.head().to_owned()));
    }

    #[test]
    fn a_signature_counts_for_its_own_credential_and_site_only() {
        let (owner, other) = (TestAuthenticator::new("owner"), TestAuthenticator::new("x"));
        let mut list = PasskeyList::default();
        enroll(&mut list, (&owner, "owner", true), None).unwrap();
        let challenge = [3; 32];
        let parties = [party()];
        let verify = |assertion: &PasskeyAssertion| {
            list.verify(&challenge, assertion, Some(&parties)).is_ok()
        };
        assert!(verify(&owner.sign(&challenge)));
        assert!(!verify(&other.sign(&challenge)));
        let mut forged = other.sign(&challenge);
        forged.credential.clone_from(&owner.credential);
        assert!(!verify(&forged));
        let elsewhere = [RelyingParty::new("other.test", "https://other.test")];
        let good = owner.sign(&challenge);
        assert!(list.verify(&challenge, &good, Some(&elsewhere)).is_err());
        assert!(list.verify(&challenge, &good, None).is_ok());
    }
}
