//! `elicitation/create`: a question to the user (since 2025-06-18), and the rounds that carry it (2026-07-28).

use super::{initialize::Implementation, meta};
use crate::json::{Json, Kind, ObjectWriter};

/// The method.
pub const NAME: &str = "elicitation/create";
/// The method that asks the model.
pub const SAMPLING: &str = "sampling/createMessage";
/// The method that asks for roots.
pub const ROOTS: &str = "roots/list";

/// One question of a server, as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Names its answer.
    pub key: String,
    /// [`NAME`], [`SAMPLING`] or [`ROOTS`].
    pub method: String,
    /// What is asked.
    pub params: Option<Json>,
}

impl Request {
    /// Whether it opens a page instead of showing a form.
    pub fn is_url(&self) -> bool {
        let mode = self
            .params
            .as_ref()
            .and_then(|p| p.get("mode"))
            .and_then(|m| m.string());
        self.method == NAME && mode.as_deref() == Some("url")
    }

    /// Reads the value of `inputRequests`: an object of questions by their keys.
    ///
    /// # Errors
    /// A question has no method.
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
        requests.ok_or("a question has no \"method\"")
    }

    /// Writes questions as the member `inputRequests`.
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

/// A result of the kind `input_required`.
#[derive(Clone, Debug, Default)]
pub struct InputRequired {
    /// The questions.
    pub requests: Vec<Request>,
    /// What comes back unchanged with the answers.
    pub state: Option<String>,
    /// Who asks.
    pub server: Option<Implementation>,
}

impl InputRequired {
    /// Reads it.
    ///
    /// # Errors
    /// Says what is wrong: neither questions nor state, or a question without method.
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

    /// Writes it.
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

/// What the user did with a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Filled it in.
    Accept(Option<Json>),
    /// Said no.
    Decline,
    /// Closed it without a choice.
    Cancel,
}

impl Answer {
    /// Reads an `ElicitResult`; `None` where it is none.
    pub fn read(result: &Json) -> Option<Answer> {
        match result.get("action")?.str_cow()?.as_ref() {
            "accept" => Some(Answer::Accept(result.get("content"))),
            "decline" => Some(Answer::Decline),
            "cancel" => Some(Answer::Cancel),
            _ => None,
        }
    }
}
