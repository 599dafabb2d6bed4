//! Policy for input requests of servers: elicitation, sampling and roots.

mod elicitation_url;
mod form_response;
mod form_secrets;
mod layer;
mod sampling_approval;
mod secret_words;
mod warnings;

pub use form_response::check_form_response;

use crate::{PerServer, RateLimiter, RateQuota};
use std::sync::Arc;
use toolgate_core::{
    ApprovalStep, Caller, ClientCapabilities, DecisionLog, Error, ErrorKind, InputRequestKind,
    Json, RefusalReason, RequiredCapability,
};

/// Policy for form elicitations (`elicitation/create`) that servers send.
///
/// Specification: [form mode security](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#form-mode-security).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ElicitationPolicy {
    /// Allows form elicitations, except those that ask for a secret.
    #[default]
    Check,
    /// Allows all form elicitations; the audit log names those that ask for a secret.
    Warn,
    /// Rejects all form elicitations.
    Off,
}

/// Policy for sampling requests (`sampling/createMessage`) that servers send.
///
/// Specification: [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum SamplingPolicy {
    /// Rejects all sampling requests.
    #[default]
    Off,
    /// Requires a person's approval of each sampling request.
    Ask,
    /// Allows sampling requests up to a rate limit for each caller.
    RateLimited(RateQuota),
    /// Allows all sampling requests, including tools and context; for servers of the program itself.
    Unlimited,
}

/// Policy for servers' input requests to the client: elicitation, sampling and roots. Disabled capabilities are not
/// offered to the server either.
///
/// Specification: [elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation),
/// [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling).
///
/// ```
/// use toolgate_policy::{
///     ElicitationPolicy, InputRequestPolicy, PerServer, Policy, RateQuota, SamplingPolicy,
/// };
///
/// let mut requests = InputRequestPolicy::default();
/// requests.elicitation_forms = PerServer::all(ElicitationPolicy::Off).with("shop", ElicitationPolicy::Check);
/// requests.elicitation_urls = PerServer::all(false).with("shop", true);
/// requests.sampling = PerServer::all(SamplingPolicy::RateLimited(RateQuota::per_minute(6)));
/// requests.max_tokens = PerServer::all(2000);
/// let mut policy = Policy::for_program();
/// policy.input_requests = requests;
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct InputRequestPolicy {
    /// Policy for form elicitations, by server.
    pub elicitation_forms: PerServer<ElicitationPolicy>,
    /// True to fail a call whose form elicitation gets a response that does not match the form. If false, the
    /// application must validate responses.
    pub validate_responses: bool,
    /// True to allow URL elicitations, by server; `https` only.
    pub elicitation_urls: PerServer<bool>,
    /// True to allow URL elicitations with `http` on a loopback address, for programs on the user's own machine.
    pub allow_loopback_urls: bool,
    /// Policy for sampling requests, by server.
    pub sampling: PerServer<SamplingPolicy>,
    /// Upper bound of `maxTokens` in sampling requests, by server.
    pub max_tokens: PerServer<u64>,
    /// True to allow requests for the client's roots (`roots/list`), by server.
    pub roots: PerServer<bool>,
    /// True to begin forms and URL elicitations with the name of the server and the host. Not needed if the application
    /// displays them.
    pub show_server: bool,
    /// Rate limiter of sampling requests, for [`SamplingPolicy::RateLimited`].
    pub rate: RateLimiter,
    approval: Option<Arc<dyn ApprovalStep>>,
}

impl Default for InputRequestPolicy {
    /// Returns the defaults for a program with one server whose application answers requests: forms without secrets,
    /// URLs including loopback, and unlimited sampling.
    fn default() -> InputRequestPolicy {
        InputRequestPolicy {
            elicitation_forms: PerServer::default(),
            validate_responses: true,
            elicitation_urls: PerServer::all(true),
            allow_loopback_urls: true,
            sampling: PerServer::all(SamplingPolicy::Unlimited),
            max_tokens: PerServer::all(u64::MAX),
            roots: PerServer::all(true),
            show_server: false,
            rate: RateLimiter::new(Vec::new(), RateQuota::per_minute(60)),
            approval: None,
        }
    }
}

impl std::fmt::Debug for InputRequestPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InputRequestPolicy")
            .field("forms", &self.elicitation_forms)
            .field("pages", &self.elicitation_urls)
            .field("sampling", &self.sampling)
            .finish_non_exhaustive()
    }
}

/// Name of the layer and of its steps in the decision log.
const NAME: &str = "asking";

impl InputRequestPolicy {
    /// Sets the approval step that requests a person's approval of sampling requests.
    pub fn with_approval(mut self, step: Arc<dyn ApprovalStep>) -> InputRequestPolicy {
        self.approval = Some(step);
        self
    }

    /// Returns the client capabilities that are offered to a server: those of the client that the policy allows.
    pub fn offered_capabilities(
        &self,
        server: &str,
        client: &ClientCapabilities,
    ) -> ClientCapabilities {
        let sampling = self.sampling.of(server);
        let free = sampling == SamplingPolicy::Unlimited;
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation =
            client.elicitation && self.elicitation_forms.of(server) != ElicitationPolicy::Off;
        capabilities.elicitation_url = client.elicitation_url && self.elicitation_urls.of(server);
        capabilities.sampling = client.sampling && sampling != SamplingPolicy::Off;
        capabilities.sampling_tools = client.sampling_tools && free;
        capabilities.sampling_context = client.sampling_context && free;
        capabilities.roots = client.roots && self.roots.of(server);
        capabilities.extensions = client.extensions.clone();
        capabilities
    }

    /// Allows or rejects one input request of a server, and edits its parameters where the policy requires it. A
    /// sampling request consumes its rate limit.
    ///
    /// # Errors
    /// The request is not allowed. The decision log holds the reason.
    pub fn judge(
        &self,
        server: &str,
        caller: &Caller,
        kind: &mut InputRequestKind,
        log: &DecisionLog,
    ) -> Result<(), Error> {
        let judged = match kind {
            // Created by the gateway; no server can send it.
            InputRequestKind::Approve(_) | InputRequestKind::SignIn(_) => Ok(()),
            InputRequestKind::Elicit(params) if is_url_mode(params) => {
                self.judge_url(server, params, log)
            }
            InputRequestKind::Elicit(params) => self.judge_form(server, params, log),
            InputRequestKind::Sample(params) => self.judge_sampling(server, caller, params),
            InputRequestKind::Roots if self.roots.of(server) => Ok(()),
            InputRequestKind::Roots => Err(disabled_error(
                server,
                "list the roots of the client",
                "roots = false",
            )),
        };
        judged.inspect_err(|error| log.add(NAME, "refuse", error.public_message()))
    }

    fn judge_form(
        &self,
        server: &str,
        params: &mut Json,
        trail: &DecisionLog,
    ) -> Result<(), Error> {
        let forms = self.elicitation_forms.of(server);
        if forms == ElicitationPolicy::Off {
            return Err(disabled_error(
                server,
                "send a form to a user",
                "elicitation_forms = \"off\"",
            ));
        }
        if let Some((place, what)) = form_secrets::find_secret_request(params) {
            let what =
                format!("a form from the server {server} asks for a secret ({what:?}) in {place}");
            if forms == ElicitationPolicy::Check {
                return Err(Error::new(
                    ErrorKind::Refused(RefusalReason::BlockedResult),
                    format!(
                        "refused: {what}; the server must use URL mode elicitation for secrets"
                    ),
                ));
            }
            trail.add(NAME, "warn", what);
        }
        self.prefix_message(params, format!("[{server}]"));
        Ok(())
    }

    fn judge_url(&self, server: &str, params: &mut Json, trail: &DecisionLog) -> Result<(), Error> {
        if !self.elicitation_urls.of(server) {
            return Err(disabled_error(
                server,
                "ask a user to open a URL",
                "elicitation_urls = \"off\"",
            ));
        }
        let url = params
            .get("url")
            .and_then(|url| url.string())
            .unwrap_or_default();
        let page = elicitation_url::ElicitationUrl::read(&url, self.allow_loopback_urls).map_err(
            |why| {
                let text = format!("refused: the server {server} sent an unsafe URL: {why}");
                Error::new(ErrorKind::Refused(RefusalReason::BlockedResult), text)
            },
        )?;
        let mut head = format!("[{server}] [page at {}]", page.host);
        if page.is_confusable {
            trail.add(
                NAME,
                "warn",
                format!("the host {} can be confused with another host", page.host),
            );
            head.push_str(
                " [warning: this host has letters that can look like those of another host]",
            );
        }
        self.prefix_message(params, head);
        Ok(())
    }

    /// Prefixes the message with our text, so that the server cannot forge it.
    fn prefix_message(&self, params: &mut Json, head: String) {
        if !self.show_server {
            return;
        }
        let message = params
            .get("message")
            .and_then(|m| m.string())
            .unwrap_or_default();
        let message = Json::from_value(&format!("{head} {message}").into());
        *params = params.with("message", &message);
    }

    fn judge_sampling(
        &self,
        server: &str,
        caller: &Caller,
        params: &mut Json,
    ) -> Result<(), Error> {
        match self.sampling.of(server) {
            SamplingPolicy::Off => {
                return Err(disabled_error(
                    server,
                    "send sampling requests",
                    "sampling = \"off\"",
                ));
            }
            SamplingPolicy::Unlimited => return Ok(()),
            SamplingPolicy::RateLimited(quota) => {
                bound_sampling(server, params, self.max_tokens.of(server))?;
                self.rate.take_for(
                    caller,
                    &format!("sampling requests from the server {server}"),
                    quota,
                )?;
            }
            SamplingPolicy::Ask => bound_sampling(server, params, self.max_tokens.of(server))?,
        }
        Ok(())
    }

    /// Replaces a missing-capability error if the policy withheld the capability from the server.
    fn explain_unsupported(
        &self,
        server: &str,
        (has, left): (&ClientCapabilities, &ClientCapabilities),
        error: Error,
        trail: &DecisionLog,
    ) -> Error {
        let ErrorKind::MissingCapability(need) = error.kind() else {
            return error;
        };
        let (cut, what, how) = match need {
            RequiredCapability::Elicitation => (
                has.elicitation && !left.elicitation,
                "send a form to a user",
                "elicitation_forms = \"off\"",
            ),
            RequiredCapability::ElicitationUrl => (
                has.elicitation_url && !left.elicitation_url,
                "ask a user to open a URL",
                "elicitation_urls = \"off\"",
            ),
            RequiredCapability::Sampling => (
                has.sampling && !left.sampling,
                "send sampling requests",
                "sampling = \"off\"",
            ),
            RequiredCapability::SamplingTools => (
                has.sampling_tools && !left.sampling_tools,
                "include tools in sampling requests",
                "not permitted for any server",
            ),
            RequiredCapability::Roots => (
                has.roots && !left.roots,
                "list the roots of the client",
                "roots = false",
            ),
            // Not an input request, for example tasks.
            _ => return error,
        };
        if !cut {
            return error;
        }
        let error = disabled_error(server, what, how);
        trail.add(NAME, "refuse", error.public_message());
        error
    }
}

/// Returns the error for a disabled kind of input request.
fn disabled_error(server: &str, what: &str, how: &str) -> Error {
    let text = format!("refused: the server {server} may not {what} ({how})");
    Error::new(ErrorKind::Refused(RefusalReason::Rule), text)
}

/// Bounds a sampling request: no tools, no context, and at most this many tokens.
fn bound_sampling(server: &str, params: &mut Json, most: u64) -> Result<(), Error> {
    if params.get("tools").is_some() || params.get("toolChoice").is_some() {
        return Err(disabled_error(
            server,
            "include tools in sampling requests",
            "not permitted for any server",
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

fn is_url_mode(params: &Json) -> bool {
    params.get("mode").and_then(|mode| mode.string()).as_deref() == Some("url")
}
