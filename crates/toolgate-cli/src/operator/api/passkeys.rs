//! Passkeys of approvers: the list, enrollment and removal, and what a passkey signs for an approval.

use super::{ActionResult, OperatorApi, action_input::ActionInput};
use crate::timestamp::millis;
use serde_json::{Value, json};
use toolgate_policy::{
    ApprovalChannel, Approver,
    passkeys::{
        EnrollOutcome, EnrolledPasskey, PasskeyAssertion, PasskeyChange, PasskeyPublicKey,
        PasskeyRegistry, PasskeyRequest, RelyingParty, challenge_of,
    },
};
use toolgate_protocol::hex;

/// Error if the config has no passkeys.
const NO_PASSKEYS: &str = "passkeys are off; write [passkeys] in the config to turn them on";
/// Error of a browser's response that cannot be read.
const MALFORMED: &str = "the response of the browser is malformed; reload the page and try again";

impl OperatorApi {
    /// Executes an action on passkeys; `None` for any other action.
    pub(super) async fn passkey_action(
        &self,
        action: &str,
        with: &Value,
        who: &Approver,
    ) -> Option<ActionResult> {
        let done = match action {
            "passkeys" => self.passkey_list(),
            "passkeys/entries" => Ok(self.registry().entries().into()),
            "passkeys/prepare" => self.prepare_passkey(with, who),
            "passkeys/request" => self.request_passkey(with, who).await,
            "passkeys/sign" => self.passkey_change_to_sign(with),
            "passkeys/change" => self.change_passkeys(with, who).await,
            "approve/text" => return Some(self.approval_to_sign(with, who)),
            _ => return None,
        };
        Some(done.map_err(Into::into))
    }

    fn registry(&self) -> &PasskeyRegistry {
        self.approvals.passkeys()
    }

    fn passkey_list(&self) -> Result<Value, String> {
        let settings = self.registry().settings();
        let mut value = json!({
            "enabled": self.active.snapshot().config.passkeys.is_some(), "anchor": settings.anchor,
            "addresses": settings.parties.iter().flat_map(|party| &party.origins).collect::<Vec<_>>(),
            "passkeys": [], "requests": self.passkey_requests(),
        });
        match self.registry().list() {
            Ok(list) => {
                value["passkeys"] = list.passkeys().iter().map(passkey_json).collect();
                value["head"] = list.head().into();
                value["root"] = list.digests().first().map_or("", String::as_str).into();
            }
            Err(why) => value["problem"] = why.to_string().into(),
        }
        Ok(value)
    }

    fn passkey_requests(&self) -> Value {
        let requests = self.registry().pending_requests().into_iter();
        let requests = requests.map(|one| {
            let mut value = passkey_json(one.request.passkey());
            value["id"] = one.id.into();
            value["at"] = json!(millis(one.requested_at));
            value
        });
        requests.collect()
    }

    /// Returns the text of a request for enrollment, which the new passkey has to sign.
    fn prepare_passkey(&self, with: &Value, who: &Approver) -> Result<Value, String> {
        let input = ActionInput(with);
        let party = self.relying_party(input.text("host"))?;
        let credential = hex::decode(input.text("credential")).ok_or(MALFORMED)?;
        let key =
            hex::decode(input.text("key")).and_then(|spki| PasskeyPublicKey::from_spki(&spki));
        let key = key.ok_or(
            "the passkey has a key of an unknown algorithm; use one with ES256, EdDSA or RS256 (2048 bits)",
        )?;
        let person = person_of(who)?;
        // The first passkey has to be able to sign for others.
        let list = self.registry().list().map_err(|why| why.to_string())?;
        let is_admin = list.digests().is_empty() || with["admin"] == true;
        let new = (&*credential, &key);
        let request = PasskeyRequest::new(new, person, input.text("label"), &party.id, is_admin)?;
        Ok(json!({"text": request.text(), "challenge": hex::encode(&challenge_of(request.text()))}))
    }

    async fn request_passkey(&self, with: &Value, who: &Approver) -> Result<Value, String> {
        self.check_enabled()?;
        let text = with["text"].as_str().unwrap_or_default();
        let request = PasskeyRequest::read(text).ok_or(MALFORMED)?;
        if request.passkey().person != person_of(who)? {
            return Err(
                "you can request a passkey for yourself only; reload the page and try again"
                    .to_owned(),
            );
        }
        let proof = PasskeyAssertion::read(&with["proof"]).ok_or(MALFORMED)?;
        let made = self.registry().request(text, proof, who).await;
        self.send_passkeys();
        match made {
            Ok(EnrollOutcome::First(digest)) => Ok(json!({"first": digest})),
            Ok(EnrollOutcome::Pending(id)) => Ok(json!({"id": id})),
            Ok(_) => Ok(json!({})),
            Err(why) => Err(why.to_string()),
        }
    }

    /// Returns the text of a change, which an enrolled passkey has to sign.
    fn passkey_change_to_sign(&self, with: &Value) -> Result<Value, String> {
        let input = ActionInput(with);
        let party = self.relying_party(input.text("host"))?;
        let change = match with["request"].as_str() {
            Some(id) => {
                let pending = self.registry().pending_requests();
                let found = pending.into_iter().find(|one| one.id == id);
                let found = found.ok_or("there is no such request for a passkey; it may have expired, or the gateway was restarted")?;
                PasskeyChange::Enroll(Box::new(found.request))
            }
            None => PasskeyChange::Remove(hex::decode(input.text("remove")).ok_or(MALFORMED)?),
        };
        let text = self.registry().change_text(&change);
        let text = text.map_err(|why| why.to_string())?;
        self.to_sign(&text, &party, None)
    }

    async fn change_passkeys(&self, with: &Value, who: &Approver) -> Result<Value, String> {
        self.check_enabled()?;
        let by = PasskeyAssertion::read(&with["by"]).ok_or(MALFORMED)?;
        let text = with["text"].as_str().unwrap_or_default();
        let changed = self.registry().change(text, &by, who).await;
        self.send_passkeys();
        let digest = changed.map_err(|why| why.to_string())?;
        Ok(json!({"change": digest}))
    }

    /// Returns the text that the passkey of this approver has to sign for an approval.
    fn approval_to_sign(&self, with: &Value, who: &Approver) -> ActionResult {
        let input = ActionInput(with);
        let id = input.text("id");
        let edited = self.edited_arguments(id, with)?;
        let signed = self.approvals.text_to_sign(id, who, edited.as_ref());
        let signed = match signed {
            Ok(signed) => signed,
            Err(why) => return super::decisions::decision_result(Err(why), id),
        };
        let party = self.relying_party(input.text("host"))?;
        Ok(self.to_sign(signed.as_str(), &party, who.name.as_deref())?)
    }

    /// Returns what a page needs to ask for a signature of an enrolled passkey, or of one of this person.
    fn to_sign(
        &self,
        text: &str,
        party: &RelyingParty,
        person: Option<&str>,
    ) -> Result<Value, String> {
        let list = self.registry().list().map_err(|why| why.to_string())?;
        let fits = |one: &&EnrolledPasskey| {
            one.relying_party == party.id && person.is_none_or(|person| one.person == person)
        };
        let allowed: Vec<String> = list
            .passkeys()
            .iter()
            .filter(fits)
            .map(|one| hex::encode(&one.credential))
            .collect();
        if allowed.is_empty() {
            return Err(match person {
                Some(person) => format!(
                    "no passkey is enrolled for {person} at {}; add one on the page Passkeys",
                    party.id
                ),
                None => format!("no passkey is enrolled at {}", party.id),
            });
        }
        Ok(json!({
            "text": text, "challenge": hex::encode(&challenge_of(text)), "relying_party": party.id, "allowed": allowed,
        }))
    }

    /// Tells open pages that the list or its requests changed. They ask for it, as far as their person may see it.
    fn send_passkeys(&self) {
        let changes = || json!(self.registry().entries().len());
        self.feed.send_with("passkeys", changes);
    }

    fn check_enabled(&self) -> Result<(), String> {
        match self.active.snapshot().config.passkeys.is_some() {
            true => Ok(()),
            false => Err(NO_PASSKEYS.to_owned()),
        }
    }

    /// Returns the relying party of the page at this host.
    fn relying_party(&self, host: &str) -> Result<RelyingParty, String> {
        self.check_enabled()?;
        let settings = self.registry().settings();
        let party = settings.parties.iter().find(|party| party.id == host);
        party.cloned().ok_or_else(|| {
            let origins = settings.parties.iter().flat_map(|party| &party.origins);
            let origins: Vec<&str> = origins.map(String::as_str).collect();
            match origins.is_empty() {
                true => "passkeys work at no address of this console; set console_url in the config to its https address".to_owned(),
                false => format!(
                    "passkeys do not work at this address; open the console at {}",
                    origins.join(" or ")
                ),
            }
        })
    }
}

/// Returns the name of a person at the console.
fn person_of(who: &Approver) -> Result<&str, String> {
    match (&who.name, who.channel) {
        (Some(name), ApprovalChannel::Console) => Ok(name),
        _ => Err(
            "only a person at the console can enroll a passkey; `toolgate console` opens it"
                .to_owned(),
        ),
    }
}

fn passkey_json(one: &EnrolledPasskey) -> Value {
    json!({
        "credential": hex::encode(&one.credential), "person": one.person, "label": one.label, "address": one.relying_party,
        "admin": one.is_admin, "at": one.enrolled_at,
    })
}
