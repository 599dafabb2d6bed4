//! Passkeys of approvers: WebAuthn signatures over the exact call that they approve.
//!
//! - `assertion`: verification of WebAuthn assertions.
//! - `public_key`: public keys of passkeys.
//! - `list`: the list of enrolled passkeys, each change of which an enrolled passkey signed.
//! - `change`: one change of the list, and its text.
//! - `registry`: the list in the store, and requests for enrollment.
//! - `signed_approval`: the text that a passkey signs for an approval.
//!
//! # Examples
//! A person enrolls a passkey. The first one may sign for others; each later one waits for such a signature.
//!
//! ```
//! use serde_json::Value;
//! use toolgate_policy::{Approver, passkeys::{
//!     EnrollOutcome, PasskeyAssertion, PasskeyChange, PasskeyListError, PasskeyPublicKey, PasskeyRegistry,
//!     PasskeyRequest, PendingPasskeyRequest, challenge_of,
//! }};
//!
//! /// `sign` asks the browser for a signature, with `navigator.credentials.get()`.
//! async fn enroll(
//!     registry: &PasskeyRegistry,
//!     person: &Approver,
//!     (credential, spki): (&[u8], &[u8]),
//!     sign: impl Fn([u8; 32]) -> Value,
//! ) -> Result<(), PasskeyListError> {
//!     let sign = |text: &str| PasskeyAssertion::read(&sign(challenge_of(text))).expect("an assertion");
//!     let key = PasskeyPublicKey::from_spki(spki).expect("a key for ES256, EdDSA or RS256");
//!     let new = (credential, &key);
//!     let request = PasskeyRequest::new(new, "ann", "laptop", "localhost", true).expect("short names");
//!     match registry.request(request.text(), sign(request.text()), person).await? {
//!         EnrollOutcome::First(digest) => println!("anchor = {digest:?}"),
//!         EnrollOutcome::Pending(id) => {
//!             let waiting: Vec<PendingPasskeyRequest> = registry.pending_requests();
//!             let found = waiting.into_iter().find(|one| one.id == id).expect("it waits");
//!             let text = registry.change_text(&PasskeyChange::Enroll(Box::new(found.request)))?;
//!             registry.change(&text, &sign(&text), person).await?;
//!         }
//!         _ => {}
//!     }
//!     Ok(())
//! }
//! ```
//!
//! Whoever has the list and what was signed verifies an approval without the gateway:
//!
//! ```
//! use toolgate_policy::passkeys::{
//!     EnrolledPasskey, PasskeyAssertion, PasskeyList, PasskeyListError, RelyingParty, SignedApproval,
//! };
//!
//! fn signer<'a>(
//!     list: &'a PasskeyList,
//!     signed: &SignedApproval,
//!     assertion: &PasskeyAssertion,
//! ) -> Result<&'a EnrolledPasskey, PasskeyListError> {
//!     let page = RelyingParty::new("localhost", "http://localhost:8600");
//!     list.verify(&signed.challenge(), assertion, Some(&[page]))
//! }
//!
//! let empty = PasskeyList::read([]).unwrap();
//! assert!(empty.passkeys().is_empty());
//! ```

mod assertion;
mod change;
mod list;
mod public_key;
mod registry;
mod signed_approval;

pub use assertion::{PasskeyAssertion, RelyingParty};
pub use change::{EnrolledPasskey, PasskeyChange, PasskeyRequest};
pub use list::{PasskeyList, PasskeyListError};
pub use public_key::PasskeyPublicKey;
pub use registry::{EnrollOutcome, PasskeyRegistry, PasskeySettings, PendingPasskeyRequest};
pub use signed_approval::SignedApproval;

use ring::digest::{SHA256, digest};
use serde_json::Value;
use toolgate_core::Json;

/// Returns JSON with sorted members. Its values are texts and booleans.
fn canonical(value: &Value) -> String {
    Json::from_value(value).canonical()
}

/// Returns the SHA-256 digest of a text, which is the challenge that a passkey signs for it.
#[must_use]
pub fn challenge_of(text: &str) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    out
}
