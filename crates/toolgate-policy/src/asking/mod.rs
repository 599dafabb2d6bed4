//! What servers ask of a caller, its user and its model, in the middle of a call.

mod answer;
mod form;
mod held;
mod layer;
mod page;
mod warnings;
mod words;

pub use answer::check_form_answer;

use crate::{PerServer, Quota, Rate};
use std::sync::Arc;
use toolgate_core::{Abilities, AskKind, Caller, Confirm, Error, Json, Kind, Need, Refusal, Trail};

/// Whether a server may put forms to users.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnForm {
    /// Those that ask for no secret.
    #[default]
    Check,
    /// All; the record says which ones ask for a secret.
    Warn,
    /// None.
    Off,
}

/// Whether a server may put questions to the caller's model.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnSample {
    /// Never.
    #[default]
    Off,
    /// A person looks at each first.
    Ask,
    /// So often for each caller.
    Often(Quota),
    /// As often as it likes, with tools and context: for what is the program's own.
    Free,
}

/// Stands between the questions of a server and whoever would answer them. A kind that is off is not offered to the
/// server either.
#[derive(Clone)]
#[non_exhaustive]
pub struct Asking {
    /// Forms.
    pub forms: PerServer<OnForm>,
    /// Whether an answer that does not fit its form ends the call. Where it does not, whoever asked has to check it.
    pub answers: bool,
    /// Whether it may lead users to pages: at `https` only.
    pub pages: PerServer<bool>,
    /// Whether a page may be at `http` on a loopback address too, as programs on the user's own machine have it.
    pub loopback: bool,
    /// Questions to the model.
    pub sampling: PerServer<OnSample>,
    /// The tokens that an answer of the model may have, where that is bounded by more than the server's wish.
    pub tokens: PerServer<u64>,
    /// Whether it may ask for the roots of the client.
    pub roots: PerServer<bool>,
    /// Whether forms and pages say who asks and where they lead, in front of the server's own words. Not needed where the
    /// application shows it.
    pub named: bool,
    /// Where it is counted how often models were asked.
    pub rate: Rate,
    person: Option<Arc<dyn Confirm>>,
}

impl Default for Asking {
    /// All that asks for no secret, pages on the machine itself, and the model as often as the server likes: for a program
    /// with one server, whose application answers itself.
    fn default() -> Asking {
        Asking {
            forms: PerServer::default(),
            answers: true,
            pages: PerServer::all(true),
            loopback: true,
            sampling: PerServer::all(OnSample::Free),
            tokens: PerServer::all(u64::MAX),
            roots: PerServer::all(true),
            named: false,
            rate: Rate::new(Vec::new(), Quota::per_minute(60)),
            person: None,
        }
    }
}

impl std::fmt::Debug for Asking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asking")
            .field("forms", &self.forms)
            .field("pages", &self.pages)
            .field("sampling", &self.sampling)
            .finish_non_exhaustive()
    }
}

/// What the steps and the layer are called.
const NAME: &str = "asking";

impl Asking {
    /// The same, where a person can be asked about questions to the model.
    pub fn by_person(mut self, person: Arc<dyn Confirm>) -> Asking {
        self.person = Some(person);
        self
    }

    /// What is left of the abilities of a caller for a server.
    pub fn offered(&self, server: &str, has: &Abilities) -> Abilities {
        let sampling = self.sampling.of(server);
        let free = sampling == OnSample::Free;
        Abilities {
            elicitation: has.elicitation && self.forms.of(server) != OnForm::Off,
            elicitation_url: has.elicitation_url && self.pages.of(server),
            sampling: has.sampling && sampling != OnSample::Off,
            sampling_tools: has.sampling_tools && free,
            sampling_context: has.sampling_context && free,
            roots: has.roots && self.roots.of(server),
            extensions: has.extensions.clone(),
        }
    }

    /// Looks at one question, and takes out or adds what it has to. Of a question to the model, one is counted.
    ///
    /// # Errors
    /// It must not be asked. The trail says why.
    pub fn judge(
        &self,
        server: &str,
        caller: &Caller,
        kind: &mut AskKind,
        trail: &Trail,
    ) -> Result<(), Error> {
        let judged = match kind {
            // Ours: no server can ask it.
            AskKind::Approve(_) | AskKind::SignIn(_) => Ok(()),
            AskKind::Elicit(params) if is_page(params) => self.page(server, params, trail),
            AskKind::Elicit(params) => self.form(server, params, trail),
            AskKind::Sample(params) => self.sample(server, caller, params),
            AskKind::Roots if self.roots.of(server) => Ok(()),
            AskKind::Roots => Err(off(server, "for the roots of its caller", "roots = false")),
        };
        judged.inspect_err(|error| trail.add(NAME, "refuse", error.public()))
    }

    fn form(&self, server: &str, params: &mut Json, trail: &Trail) -> Result<(), Error> {
        let forms = self.forms.of(server);
        if forms == OnForm::Off {
            return Err(off(server, "a user by a form", "forms = \"off\""));
        }
        if let Some((place, what)) = form::fishes(params) {
            let what =
                format!("a form of the server {server} asks for a secret: {place} has {what:?}");
            if forms == OnForm::Check {
                return Err(Error::new(
                    Kind::Refused(Refusal::Result),
                    format!("refused: {what}; a server has to lead to a page of its own for that"),
                ));
            }
            trail.add(NAME, "warn", what);
        }
        self.name(params, format!("[{server}]"));
        Ok(())
    }

    fn page(&self, server: &str, params: &mut Json, trail: &Trail) -> Result<(), Error> {
        if !self.pages.of(server) {
            return Err(off(server, "a user to open a page", "pages = \"off\""));
        }
        let url = params
            .get("url")
            .and_then(|url| url.string())
            .unwrap_or_default();
        let page = page::Page::read(&url, self.loopback).map_err(|why| {
            let text = format!(
                "refused: the server {server} leads to a page that nobody should open: {why}"
            );
            Error::new(Kind::Refused(Refusal::Result), text)
        })?;
        let mut head = format!("[{server}] [page at {}]", page.host);
        if page.alike {
            trail.add(
                NAME,
                "warn",
                format!("the host {} can look like another one", page.host),
            );
            head.push_str(
                " [careful: this host has letters that can look like those of another one]",
            );
        }
        self.name(params, head);
        Ok(())
    }

    /// Puts our words in front of the server's, so that they cannot be its own.
    fn name(&self, params: &mut Json, head: String) {
        if !self.named {
            return;
        }
        let message = params
            .get("message")
            .and_then(|m| m.string())
            .unwrap_or_default();
        let message = Json::from_value(&format!("{head} {message}").into());
        *params = params.with("message", &message);
    }

    fn sample(&self, server: &str, caller: &Caller, params: &mut Json) -> Result<(), Error> {
        match self.sampling.of(server) {
            OnSample::Off => {
                return Err(off(server, "the model of its caller", "sampling = \"off\""));
            }
            OnSample::Free => return Ok(()),
            OnSample::Often(quota) => {
                bounded(server, params, self.tokens.of(server))?;
                self.rate.take_for(
                    caller,
                    &format!("{server} for questions to the model"),
                    quota,
                )?;
            }
            OnSample::Ask => bounded(server, params, self.tokens.of(server))?,
        }
        Ok(())
    }

    /// What the error means where the server was not offered what the caller has.
    fn told(
        &self,
        server: &str,
        (has, left): (&Abilities, &Abilities),
        error: Error,
        trail: &Trail,
    ) -> Error {
        let Kind::Unsupported(need) = error.kind() else {
            return error;
        };
        let (cut, what, how) = match need {
            Need::Elicitation => (
                has.elicitation && !left.elicitation,
                "a user by a form",
                "forms = \"off\"",
            ),
            Need::ElicitationUrl => (
                has.elicitation_url && !left.elicitation_url,
                "a user to open a page",
                "pages = \"off\"",
            ),
            Need::Sampling => (
                has.sampling && !left.sampling,
                "the model of its caller",
                "sampling = \"off\"",
            ),
            Need::SamplingTools => (
                has.sampling_tools && !left.sampling_tools,
                "the model of its caller with tools",
                "it never may",
            ),
            Need::Roots => (
                has.roots && !left.roots,
                "for the roots of its caller",
                "roots = false",
            ),
            // Nothing that is asked of anybody.
            Need::Tasks => return error,
        };
        if !cut {
            return error;
        }
        let error = off(server, what, how);
        trail.add(NAME, "refuse", error.public());
        error
    }
}

/// A question of a kind that is off.
fn off(server: &str, what: &str, how: &str) -> Error {
    let text = format!("refused: the server {server} may not ask {what} ({how})");
    Error::new(Kind::Refused(Refusal::Rule), text)
}

/// A question to the model as it may be asked: without tools and context, and for so many tokens.
fn bounded(server: &str, params: &mut Json, most: u64) -> Result<(), Error> {
    if params.get("tools").is_some() || params.get("toolChoice").is_some() {
        return Err(off(
            server,
            "the model of its caller with tools",
            "it never may",
        ));
    }
    let tokens = params
        .get("maxTokens")
        .and_then(|n| n.u64())
        .unwrap_or(u64::MAX);
    if tokens > most {
        *params = params.with("maxTokens", &Json::from_value(&most.into()));
    }
    *params = params.without("includeContext");
    Ok(())
}

fn is_page(params: &Json) -> bool {
    params.get("mode").and_then(|mode| mode.string()).as_deref() == Some("url")
}
