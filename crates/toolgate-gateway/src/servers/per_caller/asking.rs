//! Input request for a sign-in: a call without its caller's sign-in leads the caller's user to a page.

use super::PerCaller;
use crate::{servers::Supervised, signing_in::Lacking};
use toolgate::{Ask, AskKind, Call, Caller, Error, Kind, Outcome, Questions, Refusal};

/// Key of the gateway's own input request.
const ASKED: &str = "toolgate.sign-in";

/// Caller that may be asked to sign in.
pub(super) struct Asker {
    caller: Caller,
    /// True if its client can open a URL for its user (URL mode elicitation).
    opens_pages: bool,
    /// Response of the user to the input request of the previous round.
    answer: Option<String>,
}

impl Asker {
    /// Removes the response to our own input request from a call, because the server must not see it.
    pub(super) fn of(call: &mut Call) -> Asker {
        let answer = call
            .round
            .answer(ASKED)
            .and_then(|answer| answer.get("action"));
        let answer = answer.and_then(|action| action.string());
        call.round.answers.retain(|(key, _)| key != ASKED);
        Asker {
            caller: call.caller.clone(),
            opens_pages: call.abilities.elicitation_url,
            answer,
        }
    }
}

impl PerCaller {
    /// Asks the caller's user to open the sign-in page. Requires a client that supports this, and a user who can
    /// prove their identity; otherwise the error is returned unchanged.
    pub(super) async fn asks(
        &self,
        server: &Supervised,
        asker: Asker,
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
                return Err(Error::new(Kind::Refused(Refusal::Person), text));
            }
        };
        let caller = asker.caller.shared();
        let lacking = Lacking {
            server: &spec.id,
            address,
            grants: grants.clone(),
            caller: &caller,
            before: self.before(&caller).await,
        };
        Ok(Outcome::Ask(Questions {
            asks: vec![Ask {
                key: ASKED.to_owned(),
                kind: AskKind::SignIn(pages.question(&lacking, opened)),
            }],
            ..Questions::default()
        }))
    }
}
