//! Input request for a sign-in: a call without its caller's sign-in leads the caller's user to a page.

use super::CallerConnections;
use crate::{oauth::MissingSignIn, servers::SupervisedServer};
use toolgate_core::{
    Call, Caller, Error, ErrorKind, InputRequest, InputRequestKind, InputRequests, Outcome,
    RefusalReason,
};

/// Key of the gateway's own input request.
const SIGN_IN_REQUEST_KEY: &str = "toolgate.sign-in";

/// Caller that may be asked to sign in.
pub(super) struct SignInCandidate {
    caller: Caller,
    /// True if its client can open a URL for its user (URL mode elicitation).
    supports_url: bool,
    /// Response of the user to the input request of the previous round.
    response: Option<String>,
}

impl SignInCandidate {
    /// Removes the response to our own input request from a call, because the server must not see it.
    pub(super) fn from_call(call: &mut Call) -> SignInCandidate {
        let answer = call
            .round
            .answer(SIGN_IN_REQUEST_KEY)
            .and_then(|answer| answer.get("action"));
        let answer = answer.and_then(|action| action.string());
        call.round
            .answers
            .retain(|(key, _)| key != SIGN_IN_REQUEST_KEY);
        SignInCandidate {
            caller: call.caller.clone(),
            supports_url: call.capabilities.elicitation_url,
            response: answer,
        }
    }
}

impl CallerConnections {
    /// Asks the caller's user to open the sign-in page. Requires a client that supports this, and a user who can
    /// prove their identity; otherwise the error is returned unchanged.
    pub(super) async fn request_sign_in(
        &self,
        server: &SupervisedServer,
        candidate: SignInCandidate,
        error: Error,
    ) -> Result<Outcome, Error> {
        let spec = &server.spec;
        let (Some(pages), Some(address), Some(grants)) =
            (&spec.sign_in_pages, &spec.address, &spec.credentials_dir)
        else {
            return Err(error);
        };
        if !candidate.supports_url || pages.identity_proof(candidate.caller.name()).is_none() {
            return Err(error);
        }
        let opened = match candidate.response.as_deref() {
            None => false,
            Some("accept") => true,
            Some(_) => {
                let text = format!(
                    "{}; the user did not open the sign-in page",
                    error.public_message()
                );
                return Err(Error::new(
                    ErrorKind::Refused(RefusalReason::Approver),
                    text,
                ));
            }
        };
        let caller = candidate.caller.shared_name();
        let lacking = MissingSignIn {
            server: &spec.id,
            address,
            credentials_dir: grants.clone(),
            caller: &caller,
            old_token: self.rejected_token(&caller).await,
        };
        Ok(Outcome::InputRequired(InputRequests::new(vec![
            InputRequest {
                key: SIGN_IN_REQUEST_KEY.to_owned(),
                kind: InputRequestKind::SignIn(pages.input_request(&lacking, opened)),
            },
        ])))
    }
}
