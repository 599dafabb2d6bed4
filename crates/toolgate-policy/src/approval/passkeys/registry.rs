//! Registry of passkeys: the list in the store, and requests for enrollment that wait for a signature.

use super::{
    EnrolledPasskey, PasskeyAssertion, PasskeyChange, PasskeyList, PasskeyListError,
    PasskeyRequest, RelyingParty, challenge_of, list::wrong,
};
use crate::{
    Approver, AuditRecorder, StateStore, WriteOutcome, WritePrecondition, unix_time::to_unix_millis,
};
use serde_json::Value;
use std::{
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, SystemTime},
};
use toolgate_journal::{AuditEntry, AuditEvent};
use toolgate_protocol::hex;

/// Table of the store: one change in each row, by its number.
const PASSKEYS_TABLE: &str = "passkeys";
/// Maximum number of requests that wait for a signature.
const MAX_PENDING_REQUESTS: usize = 32;
/// Time in which an enrolled passkey has to sign a request.
const REQUEST_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// Time in which a passkey has to sign a change after its text was made.
const CHANGE_LIFETIME: Duration = Duration::from_secs(15 * 60);
/// Characters of the id of a request.
const REQUEST_ID_CHARS: usize = 12;

/// Settings of passkeys, from the config.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct PasskeySettings {
    /// Digest of a change that the list must contain (trust anchor), in hexadecimal. Without it, no passkey counts.
    pub anchor: Option<String>,
    /// Relying parties of the console: the addresses at which people use passkeys.
    pub parties: Vec<RelyingParty>,
}

/// Request for enrollment that waits for the signature of an enrolled passkey.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PendingPasskeyRequest {
    /// Id of the request: the beginning of the digest of its text.
    pub id: String,
    /// Request with the passkey.
    pub request: PasskeyRequest,
    /// Time at which it was made.
    pub requested_at: SystemTime,
    proof: PasskeyAssertion,
}

/// Outcome of a request for enrollment.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum EnrollOutcome {
    /// The first passkey is enrolled. The digest of its enrollment can be the anchor of the config.
    First(String),
    /// An enrolled passkey has to sign the request with this id.
    Pending(String),
}

/// Registry of the enrolled passkeys, shared by all processes of a data directory.
///
/// No passkey counts if the list in the store is not intact, or lacks the anchor of the settings. A process also rejects a
/// list that lacks a change which it has read before.
///
/// ```
/// use std::sync::Arc;
/// use toolgate_policy::{AuditRecorder, MemoryStateStore, passkeys::{PasskeyRegistry, PasskeySettings, RelyingParty}};
///
/// let recorder = Arc::new(AuditRecorder::log());
/// let passkeys = PasskeyRegistry::new(recorder, Arc::new(MemoryStateStore::new()));
/// let mut settings = PasskeySettings::default();
/// settings.parties = vec![RelyingParty::new("localhost", "http://localhost:8665")];
/// passkeys.configure(settings.clone());
/// assert!(passkeys.list().unwrap().passkeys().is_empty());
///
/// // The list must contain the change that the config names.
/// settings.anchor = Some("ab".repeat(32));
/// passkeys.configure(settings);
/// assert!(passkeys.list().is_err());
/// ```
pub struct PasskeyRegistry {
    recorder: Arc<AuditRecorder>,
    store: Arc<dyn StateStore>,
    settings: RwLock<Arc<PasskeySettings>>,
    read: Mutex<ReadList>,
    requests: Mutex<Vec<PendingPasskeyRequest>>,
    /// Serializes the changes of this process.
    turns: tokio::sync::Mutex<()>,
}

/// The list as this process read it last.
struct ReadList {
    versions: Option<Vec<(String, u64)>>,
    /// The last intact list.
    known: Arc<PasskeyList>,
    problem: Option<PasskeyListError>,
}

impl PasskeyRegistry {
    /// Creates a registry of the passkeys in this store, which records changes with this recorder.
    pub fn new(recorder: Arc<AuditRecorder>, store: Arc<dyn StateStore>) -> Arc<PasskeyRegistry> {
        Arc::new(PasskeyRegistry {
            recorder,
            store,
            settings: RwLock::default(),
            read: Mutex::new(ReadList {
                versions: None,
                known: Arc::default(),
                problem: None,
            }),
            requests: Mutex::default(),
            turns: tokio::sync::Mutex::default(),
        })
    }

    /// Replaces the settings.
    pub fn configure(&self, settings: PasskeySettings) {
        let mut now = self
            .settings
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *now = Arc::new(settings);
    }

    /// Returns the settings.
    pub fn settings(&self) -> Arc<PasskeySettings> {
        let settings = self.settings.read();
        settings.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the list of enrolled passkeys.
    ///
    /// # Errors
    /// The list in the store is not intact, or lacks the anchor of the settings.
    pub fn list(&self) -> Result<Arc<PasskeyList>, PasskeyListError> {
        let mut versions = self.store.versions(PASSKEYS_TABLE);
        versions.sort_unstable();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.versions.as_ref() != Some(&versions) {
            match self.read_store(&read.known) {
                Ok(list) => (read.known, read.problem) = (Arc::new(list), None),
                Err(why) => read.problem = Some(why),
            }
            read.versions = Some(versions);
        }
        if let Some(problem) = &read.problem {
            return Err(problem.clone());
        }
        match &self.settings().anchor {
            Some(anchor) if !read.known.digests().contains(anchor) => wrong(
                "the list of passkeys lacks the change that `anchor` of [passkeys] names: it was replaced or cut off, or the anchor is wrong",
            ),
            _ => Ok(read.known.clone()),
        }
    }

    fn read_store(&self, known: &PasskeyList) -> Result<PasskeyList, PasskeyListError> {
        let mut rows = self.store.entries(PASSKEYS_TABLE);
        rows.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        let is_gapless = (0..).zip(&rows).all(|(at, row)| row.key == row_key(at));
        if !is_gapless {
            return wrong("the list of passkeys has a gap: changes were removed from the store");
        }
        let list = PasskeyList::read(rows.iter().map(|row| &row.value));
        let list = list.or_else(|why| {
            wrong(format!(
                "the list of passkeys in the store is not intact: {why}"
            ))
        })?;
        match list.digests().starts_with(known.digests()) {
            true => Ok(list),
            false => wrong(
                "the list of passkeys was replaced or cut off in the store; restore the state of the data directory",
            ),
        }
    }

    /// Returns the changes of the list, for export.
    pub fn entries(&self) -> Vec<Value> {
        let mut rows = self.store.entries(PASSKEYS_TABLE);
        rows.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        rows.into_iter().map(|row| row.value).collect()
    }

    /// Verifies that an enrolled passkey signed the challenge on a page of this console. Returns the passkey and the digest
    /// of the last change of the list.
    ///
    /// # Errors
    /// It is not enrolled, or did not sign this; or the settings have no anchor.
    pub fn verify(
        &self,
        challenge: &[u8; 32],
        assertion: &PasskeyAssertion,
    ) -> Result<(EnrolledPasskey, String), PasskeyListError> {
        let settings = self.settings();
        if settings.anchor.is_none() {
            return wrong("the config has no anchor of passkeys; set `anchor` in [passkeys]");
        }
        let list = self.list()?;
        let passkey = list.verify(challenge, assertion, Some(&settings.parties))?;
        Ok((passkey.clone(), list.head().to_owned()))
    }

    /// Returns the requests that wait for a signature, oldest first.
    pub fn pending_requests(&self) -> Vec<PendingPasskeyRequest> {
        let now = self.store.clock().now();
        let mut requests = self.lock_requests();
        requests.retain(|one| {
            let age = now.duration_since(one.requested_at).unwrap_or_default();
            age < REQUEST_LIFETIME
        });
        requests.clone()
    }

    /// Adds a request for enrollment, which the new passkey signed. The first passkey is enrolled at once.
    ///
    /// # Errors
    /// The request is malformed or not signed, there are too many, or it could not be stored.
    pub async fn request(
        &self,
        text: &str,
        proof: PasskeyAssertion,
        who: &Approver,
    ) -> Result<EnrollOutcome, PasskeyListError> {
        let Some(request) = PasskeyRequest::read(text) else {
            return wrong("the request is malformed; reload the page and try again");
        };
        let list = self.list()?;
        if list.digests().is_empty() {
            let change = PasskeyChange::Enroll(Box::new(request));
            let text = list.next_text(&change, self.now());
            let entry = PasskeyList::entry(&text, Some(&proof), None);
            return Ok(EnrollOutcome::First(self.append(&entry, who).await?));
        }
        let entry = PasskeyList::entry("", Some(&proof), None);
        list.check_request(&request, &entry, Some(&self.settings().parties))?;
        let pending = self.pending_requests();
        let others = |one: &&PendingPasskeyRequest| {
            one.request.passkey().credential != request.passkey().credential
        };
        if pending.iter().filter(others).count() >= MAX_PENDING_REQUESTS {
            return wrong(
                "too many requests wait for a signature; sign some of them, or try again tomorrow",
            );
        }
        let mut id = hex::encode(&challenge_of(text));
        id.truncate(REQUEST_ID_CHARS);
        let mut requests = self.lock_requests();
        let credential = request.passkey().credential.clone();
        requests.retain(|one| one.request.passkey().credential != credential);
        requests.push(PendingPasskeyRequest {
            id: id.clone(),
            request,
            requested_at: self.store.clock().now(),
            proof,
        });
        Ok(EnrollOutcome::Pending(id))
    }

    /// Returns the text of the next change, which an enrolled passkey has to sign.
    ///
    /// # Errors
    /// The list in the store is not intact.
    pub fn change_text(&self, change: &PasskeyChange) -> Result<String, PasskeyListError> {
        Ok(self.list()?.next_text(change, self.now()))
    }

    /// Applies a change that an enrolled passkey signed. Returns its digest.
    ///
    /// # Errors
    /// The change is malformed, outdated or not signed as it has to be, or it could not be stored or recorded.
    pub async fn change(
        &self,
        text: &str,
        by: &PasskeyAssertion,
        who: &Approver,
    ) -> Result<String, PasskeyListError> {
        let Some((change, _, at)) = PasskeyChange::read(text) else {
            return wrong("the change is malformed; reload the page and try again");
        };
        let lifetime = u64::try_from(CHANGE_LIFETIME.as_millis()).unwrap_or(u64::MAX);
        if self.now().abs_diff(at) > lifetime {
            return wrong("the change is too old; reload the page and try again");
        }
        let proof = match &change {
            PasskeyChange::Enroll(request) => {
                let pending = self.pending_requests();
                let found = pending.into_iter().find(|one| one.request == **request);
                let Some(found) = found else {
                    return wrong("there is no such request for a passkey; it may have expired");
                };
                Some(found.proof)
            }
            PasskeyChange::Remove(_) => None,
        };
        let entry = PasskeyList::entry(text, proof.as_ref(), Some(by));
        let digest = self.append(&entry, who).await?;
        if let PasskeyChange::Enroll(request) = &change {
            self.lock_requests().retain(|one| one.request != **request);
        }
        Ok(digest)
    }

    async fn append(&self, entry: &Value, who: &Approver) -> Result<String, PasskeyListError> {
        let _turn = self.turns.lock().await;
        let list = self.list()?;
        let mut longer = (*list).clone();
        longer.append(entry, Some(&self.settings().parties))?;
        let record = who.add_to(change_record(&list, &longer));
        // Recorded before it counts, like an approval.
        self.recorder.append(record)?.await?;
        let key = row_key(list.digests().len());
        let (value, expect) = (Some(entry.clone()), WritePrecondition::Absent);
        let writing = self.store.write(PASSKEYS_TABLE, &key, value, expect);
        match writing.await? {
            WriteOutcome::Done(_) => Ok(longer.head().to_owned()),
            WriteOutcome::Conflict => {
                wrong("the list of passkeys changed meanwhile; reload the page and try again")
            }
        }
    }

    fn now(&self) -> u64 {
        to_unix_millis(self.store.clock().now())
    }

    fn lock_requests(&self) -> std::sync::MutexGuard<'_, Vec<PendingPasskeyRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the key of a row, whose order is that of the changes.
fn row_key(at: usize) -> String {
    format!("{:08}", at + 1)
}

/// Returns the audit record of the difference between two lists.
fn change_record(before: &PasskeyList, after: &PasskeyList) -> AuditEntry {
    let lacks = |list: &PasskeyList, one: &EnrolledPasskey| list.find(&one.credential).is_none();
    let added = after.passkeys().iter().find(|one| lacks(before, one));
    let removed = before.passkeys().iter().find(|one| lacks(after, one));
    let entry = AuditEntry::new(AuditEvent::from("passkey")).with("change", after.head());
    let (state, passkey) = match added {
        Some(passkey) => ("enrolled", Some(passkey)),
        None => ("removed", removed),
    };
    let entry = entry.with("state", state);
    match passkey {
        Some(passkey) => entry
            .with("credential", hex::encode(&passkey.credential))
            .with("person", &*passkey.person)
            .with("label", &*passkey.label)
            .with("admin", passkey.is_admin),
        None => entry,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        assertion::tests::{TestAuthenticator, party},
        list::tests::enroll,
    };
    use super::*;
    use crate::{ApprovalChannel, MemoryStateStore};

    fn registry() -> (Arc<PasskeyRegistry>, Arc<MemoryStateStore>) {
        let store = Arc::new(MemoryStateStore::new());
        let registry = PasskeyRegistry::new(Arc::new(AuditRecorder::log()), store.clone());
        registry.configure(settings(None));
        (registry, store)
    }

    fn settings(anchor: Option<&str>) -> PasskeySettings {
        PasskeySettings {
            anchor: anchor.map(str::to_owned),
            parties: vec![party()],
        }
    }

    async fn request(
        registry: &PasskeyRegistry,
        key: &TestAuthenticator,
        person: &str,
    ) -> Result<EnrollOutcome, PasskeyListError> {
        let public = key.public_key();
        let new = (&*key.credential, &public);
        let request = PasskeyRequest::new(new, person, "key", "t.test", person == "owner");
        let text = request.unwrap().text().to_owned();
        let proof = key.sign(&challenge_of(&text));
        registry.request(&text, proof, &who()).await
    }

    fn who() -> Approver {
        Approver::named(ApprovalChannel::Console, "owner")
    }

    #[tokio::test]
    async fn a_request_waits_for_the_signature_of_an_enrolled_passkey() {
        let (registry, _) = registry();
        let [owner, ann] = ["owner", "ann"].map(TestAuthenticator::new);
        let EnrollOutcome::First(anchor) = request(&registry, &owner, "owner").await.unwrap()
        else {
            panic!("the first passkey is not enrolled");
        };
        let challenge = [1; 32];
        let signed = owner.sign(&challenge);
        assert!(registry.verify(&challenge, &signed).is_err(), "no anchor");
        registry.configure(settings(Some(&anchor)));
        let (passkey, head) = registry.verify(&challenge, &signed).unwrap();
        assert_eq!((passkey.person.as_str(), head), ("owner", anchor.clone()));

        let outcome = request(&registry, &ann, "ann").await.unwrap();
        let pending = registry.pending_requests();
        assert_eq!(outcome, EnrollOutcome::Pending(pending[0].id.clone()));
        let change = PasskeyChange::Enroll(Box::new(pending[0].request.clone()));
        let text = registry.change_text(&change).unwrap();
        let by = |key: &TestAuthenticator| key.sign(&challenge_of(&text));
        assert!(registry.change(&text, &by(&ann), &who()).await.is_err());
        assert!(registry.verify(&challenge, &ann.sign(&challenge)).is_err());
        registry.change(&text, &by(&owner), &who()).await.unwrap();
        assert!(registry.verify(&challenge, &ann.sign(&challenge)).is_ok());
        assert!(registry.pending_requests().is_empty());
        // The same change again continues nothing.
        assert!(registry.change(&text, &by(&owner), &who()).await.is_err());

        let remove = PasskeyChange::Remove(ann.credential.clone());
        let text = registry.change_text(&remove).unwrap();
        let by = owner.sign(&challenge_of(&text));
        let head = registry.change(&text, &by, &who()).await.unwrap();
        assert!(registry.verify(&challenge, &ann.sign(&challenge)).is_err());
        // A digest of any change is an anchor.
        registry.configure(settings(Some(&head)));
        assert!(registry.verify(&challenge, &signed).is_ok());
        registry.configure(settings(Some(&"0".repeat(64))));
        assert!(registry.verify(&challenge, &signed).is_err());
    }

    #[tokio::test]
    async fn a_list_that_something_else_changed_has_no_passkeys() {
        let [owner, ann, mallory] = ["owner", "ann", "mallory"].map(TestAuthenticator::new);
        let mut list = PasskeyList::default();
        let first = enroll(&mut list, (&owner, "owner", true), None).unwrap();
        let anchor = list.head().to_owned();
        let second = enroll(&mut list, (&ann, "ann", false), Some(&owner)).unwrap();
        let mut own = PasskeyList::default();
        let forged = enroll(&mut own, (&mallory, "owner", true), None).unwrap();
        let challenge = [1; 32];
        let good = owner.sign(&challenge);
        for (rows, expected) in [
            (vec![(0, &first), (1, &second)], true),
            (vec![(0, &first)], true),
            (vec![], false),
            (vec![(0, &forged)], false),
            (vec![(0, &first), (1, &forged)], false),
            (vec![(0, &first), (2, &second)], false),
            (vec![(1, &first)], false),
        ] {
            let (registry, store) = registry();
            registry.configure(settings(Some(&anchor)));
            for (at, entry) in rows {
                let writing = store.write(
                    PASSKEYS_TABLE,
                    &row_key(at),
                    Some(entry.clone()),
                    WritePrecondition::Any,
                );
                writing.await.unwrap();
            }
            assert_eq!(registry.verify(&challenge, &good).is_ok(), expected);
            let forged = mallory.sign(&challenge);
            assert!(registry.verify(&challenge, &forged).is_err());
            if !expected {
                continue;
            }
            // A list that loses a change, which this process has read, counts no more.
            let has_two = registry.list().unwrap().digests().len() == 2;
            let cut = store.write(PASSKEYS_TABLE, &row_key(1), None, WritePrecondition::Any);
            cut.await.unwrap();
            assert_eq!(registry.verify(&challenge, &good).is_err(), has_two);
        }
    }
}
