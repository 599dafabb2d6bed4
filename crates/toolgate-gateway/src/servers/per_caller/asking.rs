//! Input request for a sign-in: a call without its caller's sign-in leads the caller's user to a page.

use super::CallerConnections;
use crate::{servers::SupervisedServer, signing_in::MissingSignIn};
use toolgate::{
    Call, Caller, Error, ErrorKind, InputRequest, InputRequestKind, InputRequests, Outcome,
    RefusalReason,
};

/// Key of the gateway's own input request.
const SIGN_IN_REQUEST_KEY: &str = "toolgate.sign-in";

/// Caller that may be asked to sign in.
pub(super) struct SignInCandidate {
    caller: Caller,
    /// True if its client can open a URL for its user (URL mode elicitation).
    opens_pages: bool,
    /// Response of the user to the input request of the previous round.
    answer: Option<String>,
}

impl SignInCandidate {
    /// Removes the response to our own input request from a call, because the server must not see it.
    pub(super) fn of(call: &mut Call) -> SignInCandidate {
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
            opens_pages: call.abilities.elicitation_url,
            answer,
        }
    }
}

impl CallerConnections {
    /// Asks the caller's user to open the sign-in page. Requires a client that supports this, and a user who can
    /// prove their identity; otherwise the error is returned unchanged.
    pub(super) async fn asks(
        &self,
        server: &SupervisedServer,
        asker: SignInCandidate,
        error: Error,
    ) -> Result<Outcome, Error> {
        let spec = &server.spec;
        let (Some(pages), Some(address), Some(grants)) = (&spec.pages, &spec.address, &spec.grants)
        else {
            return Err(error);
        };
        if !asker.opens_pages || pages.shown_by(asker.caller.name()).is_none() {
            return Err(error);
        }
        let opened = match asker.answer.as_deref() {
            None => false,
            Some("accept") => true,
            Some(_) => {
                let text = format!("{}; the user did not open the sign-in page", error.public());
                return Err(Error::new(ErrorKind::Refused(RefusalReason::Person), text));
            }
        };
        let caller = asker.caller.shared();
        let lacking = MissingSignIn {
            server: &spec.id,
            address,
            grants: grants.clone(),
            caller: &caller,
            before: self.before(&caller).await,
        };
        Ok(Outcome::Ask(InputRequests {
            asks: vec![InputRequest {
                key: SIGN_IN_REQUEST_KEY.to_owned(),
                kind: InputRequestKind::SignIn(pages.question(&lacking, opened)),
            }],
            ..InputRequests::default()
        }))
    }
}
