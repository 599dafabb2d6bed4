//! `elicitation/create`: elicitation of input from the user (since 2025-06-18), and `input_required` results
//! (2026-07-28).

use super::{initialize::Implementation, meta};
use crate::json::{Json, JsonKind, ObjectWriter};

/// Method name `elicitation/create`, by which a server requests input from the user.
pub const NAME: &str = "elicitation/create";
/// Method name `sampling/createMessage`, by which a server samples the client's model.
pub const SAMPLING: &str = "sampling/createMessage";
/// Method name `roots/list`, by which a server lists the client's roots.
pub const ROOTS: &str = "roots/list";

/// Input request of a server (elicitation, sampling or roots), with its original parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct RawInputRequest {
    /// Key of the request in `inputRequests`, and of its answer.
    pub key: String,
    /// Method of the input request: [`NAME`], [`SAMPLING`] or [`ROOTS`].
    pub method: String,
    /// Parameters of the method, unchanged.
    pub params: Option<Json>,
}

impl RawInputRequest {
    /// Returns true if the input request is a URL elicitation.
    pub fn is_url(&self) -> bool {
        let mode = self
            .params
            .as_ref()
            .and_then(|p| p.get("mode"))
            .and_then(|m| m.string());
        self.method == NAME && mode.as_deref() == Some("url")
    }

    /// Reads the member `inputRequests`: an object of input requests by their keys.
    ///
    /// # Errors
    /// Returns an error if a request has no method.
    pub fn read_all(map: &Json) -> Result<Vec<RawInputRequest>, &'static str> {
        let read = |(key, value): (std::borrow::Cow<'_, str>, Json)| {
            let method = value.get("method")?.string()?;
            Some(RawInputRequest {
                key: key.into_owned(),
                method,
                params: value.get("params"),
            })
        };
        let requests: Option<Vec<RawInputRequest>> = map.members().map(read).collect();
        requests.ok_or("the \"method\" of an input request is missing or not a string")
    }

    /// Writes input requests as the member `inputRequests`.
    pub fn write_all(requests: &[RawInputRequest], o: &mut ObjectWriter) {
        o.object("inputRequests", |map| {
            for ask in requests {
                map.object(&ask.key, |r| {
                    r.str("method", &ask.method);
                    if let Some(params) = &ask.params {
                        r.raw("params", params);
                    }
                });
            }
        });
    }
}

/// Result with `resultType` `input_required`: the client repeats the call with the answers (2026-07-28).
#[derive(Clone, Debug, Default)]
pub struct InputRequiredResult {
    /// Input requests of the server, by key.
    pub requests: Vec<RawInputRequest>,
    /// `requestState`, which the client returns unchanged with the answers.
    pub state: Option<String>,
    /// Self-reported name and version of the server that requests the input.
    pub server: Option<Implementation>,
}

impl InputRequiredResult {
    /// Reads an `input_required` result.
    ///
    /// # Errors
    /// Returns an error if there are neither requests nor state, or if a request has no method.
    pub fn read(result: &Json) -> Result<InputRequiredResult, &'static str> {
        let state = result.get("requestState").and_then(|s| s.string());
        let requests = match result.get("inputRequests") {
            Some(map) if map.kind() == JsonKind::Object => map,
            None if state.is_some() => {
                return Ok(InputRequiredResult {
                    requests: Vec::new(),
                    state,
                    server: None,
                });
            }
            _ => return Err("neither \"inputRequests\" nor \"requestState\""),
        };
        Ok(InputRequiredResult {
            requests: RawInputRequest::read_all(&requests)?,
            state,
            server: None,
        })
    }

    /// Writes the `input_required` result.
    pub fn json(&self) -> Json {
        let mut o = ObjectWriter::new();
        o.str("resultType", "input_required");
        if !self.requests.is_empty() {
            RawInputRequest::write_all(&self.requests, &mut o);
        }
        if let Some(state) = &self.state {
            o.str("requestState", state);
        }
        if let Some(server) = &self.server {
            o.object("_meta", |m| m.raw(meta::SERVER, &server.json()));
        }
        o.finish()
    }
}

/// Answer of the user to an elicitation, an `ElicitResult`.
#[derive(Clone, Debug, PartialEq)]
pub enum ElicitAnswer {
    /// The user accepted, with the content of the form.
    Accept(Option<Json>),
    /// The user declined.
    Decline,
    /// The user closed the dialog without a choice.
    Cancel,
}

impl ElicitAnswer {
    /// Reads an `ElicitResult`; `None` if it is invalid.
    pub fn read(result: &Json) -> Option<ElicitAnswer> {
        match result.get("action")?.str_cow()?.as_ref() {
            "accept" => Some(ElicitAnswer::Accept(result.get("content"))),
            "decline" => Some(ElicitAnswer::Decline),
            "cancel" => Some(ElicitAnswer::Cancel),
            _ => None,
        }
    }
}
