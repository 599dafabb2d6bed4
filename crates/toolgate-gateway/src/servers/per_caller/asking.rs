//! The question for a sign-in: a call that lacks that of its caller leads the caller's own user to a page.

use super::PerCaller;
use crate::{servers::Supervised, signing_in::Lacking};
use toolgate::{Ask, AskKind, Call, Caller, Error, Kind, Outcome, Questions, Refusal};

/// The key of our own question.
const ASKED: &str = "toolgate.sign-in";

/// Who might be asked to sign in.
pub(super) struct Asker {
    caller: Caller,
    /// Whether its client can open a page for its user.
    opens_pages: bool,
    /// What the user did with the page of the round before.
    answer: Option<String>,
}

impl Asker {
    /// Takes our own answer out of a call: it is none of the server's business.
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
    /// Leads the user of the caller to a page where he signs in, where the caller's client can show it and he can show
    /// that the caller is his; else the error stays what it is.
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
                let text = format!("{}; the page for it was not opened", error.public());
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
