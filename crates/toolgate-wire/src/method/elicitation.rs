//! `elicitation/create`: elicitation of input from the user (since 2025-06-18), and `input_required` results
//! (2026-07-28).

use super::{initialize::Implementation, meta};
use crate::json::{Json, Kind, ObjectWriter};

/// Method name.
pub const NAME: &str = "elicitation/create";
/// Method that samples the client's model.
pub const SAMPLING: &str = "sampling/createMessage";
/// Method that lists the client's roots.
pub const ROOTS: &str = "roots/list";

/// Input request of a server, with its original parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Key of the answer.
    pub key: String,
    /// Method: [`NAME`], [`SAMPLING`] or [`ROOTS`].
    pub method: String,
    /// Parameters of the method.
    pub params: Option<Json>,
}

impl Request {
    /// Returns true for a URL elicitation.
    pub fn is_url(&self) -> bool {
        let mode = self
            .params
            .as_ref()
            .and_then(|p| p.get("mode"))
            .and_then(|m| m.string());
        self.method == NAME && mode.as_deref() == Some("url")
    }

    /// Reads the value of `inputRequests`: an object of requests by their keys.
    ///
    /// # Errors
    /// Returns an error if a request has no method.
    pub fn read_all(map: &Json) -> Result<Vec<Request>, &'static str> {
        let read = |(key, value): (std::borrow::Cow<'_, str>, Json)| {
            let method = value.get("method")?.string()?;
            Some(Request {
                key: key.into_owned(),
                method,
                params: value.get("params"),
            })
        };
        let requests: Option<Vec<Request>> = map.members().map(read).collect();
        requests.ok_or("an input request has no \"method\"")
    }

    /// Writes requests as the member `inputRequests`.
    pub fn write_all(requests: &[Request], o: &mut ObjectWriter) {
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

/// Result with `resultType` `input_required`.
#[derive(Clone, Debug, Default)]
pub struct InputRequired {
    /// Input requests.
    pub requests: Vec<Request>,
    /// `requestState`, which the client returns unchanged with the answers.
    pub state: Option<String>,
    /// Server that sends the requests.
    pub server: Option<Implementation>,
}

impl InputRequired {
    /// Reads the result.
    ///
    /// # Errors
    /// Returns an error if there are neither requests nor state, or if a request has no method.
    pub fn read(result: &Json) -> Result<InputRequired, &'static str> {
        let state = result.get("requestState").and_then(|s| s.string());
        let requests = match result.get("inputRequests") {
            Some(map) if map.kind() == Kind::Object => map,
            None if state.is_some() => {
                return Ok(InputRequired {
                    requests: Vec::new(),
                    state,
                    server: None,
                });
            }
            _ => return Err("neither \"inputRequests\" nor \"requestState\""),
        };
        Ok(InputRequired {
            requests: Request::read_all(&requests)?,
            state,
            server: None,
        })
    }

    /// Writes the result.
    pub fn json(&self) -> Json {
        let mut o = ObjectWriter::new();
        o.str("resultType", "input_required");
        if !self.requests.is_empty() {
            Request::write_all(&self.requests, &mut o);
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

/// Answer of the user to an elicitation.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The user accepted, with the content of the form.
    Accept(Option<Json>),
    /// The user declined.
    Decline,
    /// The user closed the dialog without a choice.
    Cancel,
}

impl Answer {
    /// Reads an `ElicitResult`; `None` if it is invalid.
    pub fn read(result: &Json) -> Option<Answer> {
        match result.get("action")?.str_cow()?.as_ref() {
            "accept" => Some(Answer::Accept(result.get("content"))),
            "decline" => Some(Answer::Decline),
            "cancel" => Some(Answer::Cancel),
            _ => None,
        }
    }
}
