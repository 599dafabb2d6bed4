//! Signatures of passkeys over approvals.

use super::{
    ApprovalError, ApprovalService, ApprovalStatus, ApprovalTerms, Approver,
    pending::PendingApproval,
};
use crate::{ApprovalChannel, passkeys::SignedApproval, unix_time::to_unix_millis};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};
use toolgate_core::{Call, Error, ErrorKind, Json, RefusalReason};
use toolgate_protocol::hex;

impl ApprovalService {
    /// Returns the text that the passkey of this approver has to sign for the approval with this id, with these arguments
    /// as edited.
    ///
    /// # Errors
    /// The approval is decided or unknown, needs no passkey, or this channel cannot use one.
    pub fn text_to_sign(
        &self,
        id: &str,
        approver: &Approver,
        edited: Option<&Json>,
    ) -> Result<SignedApproval, ApprovalError> {
        self.sweep();
        let mut index = self.lock_index();
        let approval = index.find_by_id(id).filter(|approval| approval.version > 0);
        let approval = approval.ok_or(ApprovalError::Unknown)?;
        if approval.status() != ApprovalStatus::Pending {
            return Err(ApprovalError::Decided(approval.status()));
        }
        if approver.channel != ApprovalChannel::Console {
            return Err(self.passkey_required());
        }
        Ok(self.signed_text(approval, approver, edited))
    }

    /// Verifies the signature of an approver, if the approval needs one. Returns the approver, who has the name of the
    /// passkey's person, and the signature for the audit log.
    pub(super) fn check_passkey(
        &self,
        id: &str,
        who: Approver,
        terms: &ApprovalTerms,
    ) -> Result<(Approver, Option<Value>), ApprovalError> {
        let mut index = self.lock_index();
        let approval = index.find_by_id(id).filter(|approval| approval.version > 0);
        let approval = approval.ok_or(ApprovalError::Unknown)?;
        if !approval.stored.requirement.passkey {
            return Ok((who, None));
        }
        if approval.status() != ApprovalStatus::Pending {
            return Err(ApprovalError::Decided(approval.status()));
        }
        let assertion = match (&terms.passkey, who.channel) {
            (Some(assertion), ApprovalChannel::Console) => assertion,
            _ => return Err(self.passkey_required()),
        };
        let signed = self.signed_text(approval, &who, terms.edited_arguments.as_ref());
        let verified = self.passkeys.verify(&signed.challenge(), assertion);
        let (passkey, head) =
            verified.map_err(|why| ApprovalError::InvalidPasskey(why.to_string()))?;
        match &who.name {
            Some(name) if **name != *passkey.person => {
                return Err(ApprovalError::InvalidPasskey(format!(
                    "the passkey is that of {}, and you are signed in as {name}; use your own passkey",
                    passkey.person
                )));
            }
            _ => {}
        }
        let mut record = assertion.json();
        record["signed"] = hex::encode(signed.as_str().as_bytes()).into();
        record["list"] = head.into();
        let who = Approver {
            name: Some(passkey.person.into()),
            ..who
        };
        Ok((who, Some(record)))
    }

    /// Verifies the signatures of a stored approval again for its use by a call, with the passkeys that are enrolled now.
    pub(super) fn check_signatures(
        &self,
        approval: &PendingApproval,
        call: &Arc<str>,
    ) -> Result<(), String> {
        let kept = &approval.stored;
        if !kept.requirement.passkey {
            return Ok(());
        }
        if kept.approvers.is_empty() || kept.approvers.len() != kept.assertions.len() {
            return Err("a signature is missing".to_owned());
        }
        for (who, assertion) in kept.approvers.iter().zip(&kept.assertions) {
            let signed = self.signed_text(approval, who, kept.edited_arguments.as_ref());
            let verified = self.passkeys.verify(&signed.challenge(), assertion);
            let (passkey, _) = verified.map_err(|why| why.to_string())?;
            if who.name.as_deref() != Some(&*passkey.person) {
                return Err("a signature is that of another person".to_owned());
            }
        }
        match self.signed_uses.add(approval, call, self.now()) {
            true => Ok(()),
            false => Err("another call used it before".to_owned()),
        }
    }

    /// Ends an approval whose signatures do not count; returns the error for its call.
    pub(super) fn end_unsigned(&self, id: &str, why: &str) -> Error {
        let record = {
            let mut index = self.lock_index();
            index
                .find_by_id(id)
                .map(|approval| approval.record("unsigned"))
        };
        if let Some(record) = record {
            self.recorder.note(record.with("why", why));
        }
        self.expire(&ApprovalStatus::Expired, |approval| *approval.id == *id);
        Error::new(
            ErrorKind::Refused(RefusalReason::Approver),
            "refused: the passkey signatures of the approval of this call are not valid; call again to request a new approval",
        )
    }

    fn passkey_required(&self) -> ApprovalError {
        let settings = self.passkeys.settings();
        let party = settings.parties.first();
        let origin = party.and_then(|party| party.origins.first());
        ApprovalError::PasskeyRequired(origin.cloned().unwrap_or_default())
    }

    fn signed_text(
        &self,
        approval: &PendingApproval,
        who: &Approver,
        edited: Option<&Json>,
    ) -> SignedApproval {
        let (kept, binding) = (&approval.stored, &approval.stored.binding);
        let digest = |json: &Json| {
            let bytes = json.as_str().as_bytes();
            let mac = self.recorder.mac(bytes);
            mac.unwrap_or_else(|| hex::encode(&crate::passkeys::challenge_of(json.as_str())))
        };
        let identity = who.identity.as_ref();
        let groups = identity.map(|identity| {
            let groups = identity.groups.iter();
            groups.map(|group| json!(&**group)).collect::<Value>()
        });
        SignedApproval::new(json!({
            "approval": &*approval.id, "asked": to_unix_millis(kept.requested_at).to_string(),
            "expires": to_unix_millis(kept.expires_at).to_string(),
            "needs": kept.requirement.approvers().to_string(),
            "issuer": identity.map(|identity| &*identity.issuer), "groups": groups,
            "caller": binding.caller.name(), "generation": binding.generation.map(|number| number.to_string()),
            "view": binding.caller.view(), "srv": &*binding.server, "tool": kept.item.full_name(), "item": binding.tool,
            "tool_hash": binding.definition, "policy_hash": &*binding.policy,
            "args_mac": digest(&kept.arguments), "edited_mac": edited.map(digest),
        }))
    }
}

/// Calls that used signed approvals, until those expire.
#[derive(Debug, Default)]
pub(super) struct SignedUses(Mutex<HashMap<Arc<str>, SignedUse>>);

/// Use of a signed approval by a call.
#[derive(Debug)]
struct SignedUse {
    call: Arc<str>,
    expires: SystemTime,
}

impl SignedUses {
    /// Adds a use. Returns false if another call used the approval before.
    fn add(&self, approval: &PendingApproval, call: &Arc<str>, now: SystemTime) -> bool {
        let mut uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        uses.retain(|_, used| used.expires > now);
        let used = uses
            .entry(approval.id.clone())
            .or_insert_with(|| SignedUse {
                call: call.clone(),
                expires: approval.stored.expires_at,
            });
        used.call == *call
    }
}

impl PendingApproval {
    /// Returns whether the approval is for the arguments of the call byte for byte, if passkeys sign it. The signature is
    /// for these bytes, so other spelling of the same arguments needs an approval of its own.
    pub(super) fn covers_text_of(&self, call: &Call) -> bool {
        !self.stored.requirement.passkey
            || self.stored.arguments.as_str() == call.arguments().raw().as_str()
    }
}
