//! Input requests of a handler: to the user, the model, or the client.
//!
//! ```
//! # use toolgate::handlers::{Cx, HandlerExit, ask};
//! # fn f(cx: &Cx) -> Result<(), HandlerExit> {
//! let unit = cx.ask("unit", ask::choice("Which unit?", ["C", "F"]))?;
//! # let _: String = unit; Ok(())
//! # }
//! ```

use super::{Cx, HandlerExit, schema};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use toolgate_core::{InputRequest, InputRequestKind, Json, SamplingParams, SamplingResult};
use toolgate_protocol::{json::ObjectWriter, method::elicitation::ElicitAnswer};

/// Reads a response; `None` if it is unusable.
type ResponseReader<T> = Box<dyn Fn(&Json) -> Option<Reply<T>> + Send + Sync>;

/// Question of a handler to the user, the model or the client (an MCP input request), with an answer of type `T`.
///
/// Specification: [multi round-trip requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).
///
/// ```
/// use toolgate::{Cx, HandlerExit, handlers::ask::{self, Question, Reply}};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Guest {
///     name: String,
///     age: u8,
/// }
///
/// /// Asks for a table, in the words of this program.
/// fn table() -> Question<u8> {
///     ask::integer("How many people?").map(|people| people.clamp(1, 20) as u8)
/// }
///
/// fn reserve(cx: &Cx) -> Result<String, HandlerExit> {
///     let people = cx.ask("people", table())?;
///     let guest: Guest = cx.ask("guest", ask::form("Who is the host?"))?;
///     let tip = cx.ask_reply("tip", ask::number("Your tip, in euros?"))?;
///     // The card number must not pass through the client.
///     cx.ask("card", ask::url("Please pay the deposit.", "https://pay.example.com/r/17"))?;
///     Ok(match tip {
///         Reply::Accepted(tip) => format!("{} for {people}, {tip} € tip, {}", guest.name, guest.age),
///         Reply::Declined | Reply::Cancelled => format!("{} for {people}", guest.name),
///     })
/// }
/// ```
pub struct Question<T> {
    kind: InputRequestKind,
    read: ResponseReader<T>,
}

/// User's reply to an input request of a handler: an answer, a decline or a cancellation.
///
/// Specification: [response actions](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#response-actions).
#[derive(Clone, Debug, PartialEq)]
pub enum Reply<T> {
    /// The user answered the input request.
    Accepted(T),
    /// The user declined to answer the input request.
    Declined,
    /// The user dismissed the input request without a choice.
    Cancelled,
}

impl<T> Reply<T> {
    /// Returns the user's answer.
    ///
    /// # Errors
    /// The user did not answer; the model sees the error.
    pub fn accepted(self) -> Result<T, HandlerExit> {
        match self {
            Reply::Accepted(answer) => Ok(answer),
            Reply::Declined => Err(HandlerExit::new("the user declined to answer")),
            Reply::Cancelled => Err(HandlerExit::new(
                "the user dismissed the request without an answer",
            )),
        }
    }
}

impl<T> Question<T> {
    pub(super) fn ask(&self, key: &str) -> InputRequest {
        InputRequest {
            key: key.to_owned(),
            kind: self.kind.clone(),
        }
    }

    pub(super) fn read(&self, answer: &Json) -> Option<Reply<T>> {
        (self.read)(answer)
    }
}

impl<T: 'static> Question<T> {
    /// Returns the same input request with its answer converted by `f`.
    pub fn map<U>(self, f: impl Fn(T) -> U + Send + Sync + 'static) -> Question<U> {
        let read = self.read;
        Question {
            kind: self.kind,
            read: Box::new(move |answer| {
                Some(match read(answer)? {
                    Reply::Accepted(value) => Reply::Accepted(f(value)),
                    Reply::Declined => Reply::Declined,
                    Reply::Cancelled => Reply::Cancelled,
                })
            }),
        }
    }
}

/// Name of the field in a form with a single value.
const VALUE_FIELD: &str = "value";

/// Creates an input request for a line of text from the user (form elicitation). Never use it for a secret: use [`url`]
/// instead.
pub fn text(message: &str) -> Question<String> {
    single_field_form(message, json!({"type": "string", "minLength": 1}))
}

/// Creates an input request for a yes or no from the user (form elicitation).
pub fn confirm(message: &str) -> Question<bool> {
    single_field_form(message, json!({"type": "boolean", "default": false}))
}

/// Creates an input request for an integer from the user (form elicitation).
pub fn integer(message: &str) -> Question<i64> {
    single_field_form(message, json!({"type": "integer"}))
}

/// Creates an input request for a number from the user (form elicitation).
pub fn number(message: &str) -> Question<f64> {
    single_field_form(message, json!({"type": "number"}))
}

/// Creates an input request for one of several values, chosen by the user (form elicitation).
pub fn choice<S: Into<String>>(
    message: &str,
    choices: impl IntoIterator<Item = S>,
) -> Question<String> {
    let choices: Vec<String> = choices.into_iter().map(Into::into).collect();
    single_field_form(message, json!({"type": "string", "enum": choices}))
}

/// Creates an input request for a form with the fields of `T` (form elicitation): strings, numbers, booleans and enums,
/// not nested.
///
/// Specification: [form mode elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#form-mode-elicitation-requests).
pub fn form<T: DeserializeOwned + JsonSchema + 'static>(message: &str) -> Question<T> {
    let schema = schema::input_schema::<T>().unwrap_or_else(|_| json!({"type": "object"}));
    form_with(message, form_schema(schema)).parsed()
}

/// Creates an input request for a form with this JSON Schema, the `requestedSchema` of a form elicitation.
///
/// Specification: [requested schema](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema).
///
/// ```
/// use serde_json::json;
/// use toolgate::{Cx, HandlerExit, handlers::ask};
///
/// fn color(cx: &Cx, colors: &[String]) -> Result<String, HandlerExit> {
///     let field = json!({"type": "string", "enum": colors, "default": colors.first()});
///     let schema = json!({"type": "object", "properties": {"color": field}, "required": ["color"]});
///     #[derive(serde::Deserialize)]
///     struct Choice {
///         color: String,
///     }
///     let chosen: Choice = cx.ask("color", ask::form_with("Your color?", schema).parsed())?;
///     Ok(chosen.color)
/// }
/// ```
pub fn form_with(message: &str, requested: Value) -> Question<Value> {
    let mut o = ObjectWriter::new();
    o.str("mode", "form");
    o.str("message", message);
    o.raw("requestedSchema", &Json::from_value(&requested));
    Question {
        kind: InputRequestKind::Elicit(o.finish()),
        read: Box::new(move |answer| {
            read_elicitation(answer, |content| {
                let value = content.map_or_else(|| json!({}), |content| content.to_value());
                toolgate_policy::fits_schema(&Json::from_value(&requested), &value).then_some(value)
            })
        }),
    }
}

/// Creates an input request that asks the user to open a URL (URL elicitation). For data that must not pass through the
/// client: credentials, payments, consent.
///
/// Specification: [URL mode elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#url-mode-elicitation-requests).
pub fn url(message: &str, url: &str) -> Question<()> {
    let mut o = ObjectWriter::new();
    o.str("mode", "url");
    o.str("message", message);
    o.str("url", url);
    Question {
        kind: InputRequestKind::Elicit(o.finish()),
        read: Box::new(|answer| read_elicitation(answer, |_| Some(()))),
    }
}

/// Creates an input request for a completion by the client's model (`sampling/createMessage`). Of the parameters,
/// `messages` and `maxTokens` are required. The answer is the result of that request.
///
/// Specification: [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling).
///
/// ```
/// use serde_json::json;
/// use toolgate::{Cx, HandlerExit, handlers::ask};
///
/// fn summary(cx: &Cx, text: &str) -> Result<String, HandlerExit> {
///     let content = json!({"type": "text", "text": format!("Summarize:\n{text}")});
///     let params = json!({"messages": [{"role": "user", "content": content}], "maxTokens": 200});
///     let message = cx.ask("summary", ask::sample(params))?;
///     Ok(message["content"]["text"].as_str().unwrap_or_default().to_owned())
/// }
/// ```
pub fn sample(params: Value) -> Question<Value> {
    Question {
        kind: InputRequestKind::Sample(Json::from_value(&params)),
        read: Box::new(|answer| {
            let good = answer.get("content").is_some() && answer.get("role").is_some();
            good.then(|| Reply::Accepted(answer.to_value()))
        }),
    }
}

/// Creates an input request for a completion of the client's model (`sampling/createMessage`), with typed parameters and
/// result. Only a client that declares tools in sampling accepts them.
///
/// Specification: [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling).
///
/// ```
/// # use toolgate::{Cx, HandlerExit, core::{SamplingMessage, SamplingParams}, handlers::ask};
/// # fn f(cx: &Cx) -> Result<String, HandlerExit> {
/// let mut params = SamplingParams::new(50);
/// params.messages.push(SamplingMessage::user("Name a color."));
/// let said = cx.ask("color", ask::create_message(&params))?;
/// # Ok(
/// said.all_text()
/// # )
/// # }
/// ```
pub fn create_message(params: &SamplingParams) -> Question<SamplingResult> {
    Question {
        kind: InputRequestKind::Sample(params.to_json()),
        read: Box::new(|answer| SamplingResult::read(answer).ok().map(Reply::Accepted)),
    }
}

/// Creates an input request for a completion of the client's model for one prompt (sampling); the answer is its text.
pub fn model(prompt: &str, max_tokens: u32) -> Question<String> {
    let content = json!({"type": "text", "text": prompt});
    let params =
        json!({"messages": [{"role": "user", "content": content}], "maxTokens": max_tokens});
    sample(params).map(|result| text_of(&result["content"]))
}

fn text_of(content: &Value) -> String {
    match content {
        Value::Array(blocks) => blocks.iter().map(text_of).collect(),
        block => block["text"].as_str().unwrap_or_default().to_owned(),
    }
}

/// Root (`roots/list`): a directory or file that the client lets the server use.
///
/// Specification: [roots](https://modelcontextprotocol.io/specification/2026-07-28/client/roots).
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Root {
    /// Location of the root, as a `file://` URI.
    pub uri: String,
    /// Display name of the root.
    pub name: Option<String>,
}

/// Creates an input request for the client's roots (`roots/list`).
///
/// ```
/// use toolgate::{Cx, HandlerExit, core::RequiredCapability, handlers::ask::{self, Root}};
///
/// fn folders(cx: &Cx) -> Result<Vec<String>, HandlerExit> {
///     cx.require(RequiredCapability::Roots)?;
///     let roots: Vec<Root> = cx.ask("roots", ask::roots())?;
///     Ok(roots.into_iter().map(|root| root.uri).collect())
/// }
/// ```
pub fn roots() -> Question<Vec<Root>> {
    Question {
        kind: InputRequestKind::Roots,
        read: Box::new(|answer| {
            let roots = answer.get("roots")?.to_value();
            serde_json::from_value(roots).ok().map(Reply::Accepted)
        }),
    }
}

/// Returns a form with a single field.
fn single_field_form<T: DeserializeOwned + 'static>(message: &str, field: Value) -> Question<T> {
    let requested =
        json!({"type": "object", "properties": {VALUE_FIELD: field}, "required": [VALUE_FIELD]});
    let question = form_with(message, requested);
    Question {
        kind: question.kind,
        read: Box::new(move |answer| {
            Some(match (question.read)(answer)? {
                Reply::Accepted(mut form) => {
                    Reply::Accepted(serde_json::from_value(form[VALUE_FIELD].take()).ok()?)
                }
                Reply::Declined => Reply::Declined,
                Reply::Cancelled => Reply::Cancelled,
            })
        }),
    }
}

impl Question<Value> {
    /// Returns the same input request with its JSON answer deserialized to `T`. The request is repeated if the answer
    /// does not match.
    pub fn parsed<T: DeserializeOwned + 'static>(self) -> Question<T> {
        let read = self.read;
        Question {
            kind: self.kind,
            read: Box::new(move |answer| {
                Some(match read(answer)? {
                    Reply::Accepted(value) => Reply::Accepted(serde_json::from_value(value).ok()?),
                    Reply::Declined => Reply::Declined,
                    Reply::Cancelled => Reply::Cancelled,
                })
            }),
        }
    }
}

fn read_elicitation<T>(
    answer: &Json,
    read: impl FnOnce(Option<&Json>) -> Option<T>,
) -> Option<Reply<T>> {
    match ElicitAnswer::read(answer)? {
        ElicitAnswer::Accept(content) => read(content.as_ref()).map(Reply::Accepted),
        ElicitAnswer::Decline => Some(Reply::Declined),
        ElicitAnswer::Cancel => Some(Reply::Cancelled),
    }
}

/// Reduces a schema to what a form allows: clients accept neither closed schemas nor separate definitions.
fn form_schema(mut schema: Value) -> Value {
    if let Some(map) = schema.as_object_mut() {
        map.retain(|key, _| matches!(key.as_str(), "type" | "properties" | "required"));
    }
    schema
}

/// Several input requests that a handler sends together; implemented for tuples of up to four pairs of key and
/// [`Question`].
///
/// ```
/// use toolgate::{Cx, HandlerExit, handlers::ask::{self, QuestionTuple}};
///
/// /// Sends the questions if the client can show forms.
/// fn ask_if_possible<Q: QuestionTuple>(cx: &Cx, questions: Q) -> Result<Option<Q::Answers>, HandlerExit> {
///     match cx.client_capabilities().elicitation {
///         true => cx.ask_all(questions).map(Some),
///         false => Ok(None),
///     }
/// }
///
/// fn delivery(cx: &Cx) -> Result<String, HandlerExit> {
///     let questions = (("street", ask::text("Street?")), ("floor", ask::integer("Floor?")));
///     Ok(match ask_if_possible(cx, questions)? {
///         Some((street, floor)) => format!("{street}, floor {floor}"),
///         None => "at the reception".to_owned(),
///     })
/// }
/// ```
pub trait QuestionTuple {
    /// Tuple of the answers to the input requests, in the same order.
    type Answers;

    /// Sends the input requests to the client together, and returns the answers once the client has responded to all.
    ///
    /// # Errors
    /// As [`Cx::ask`].
    fn ask_all(self, cx: &Cx) -> Result<Self::Answers, HandlerExit>;
}

macro_rules! asks {
    ($($t:ident $n:tt),+) => {
        impl<$($t),+> QuestionTuple for ($((&str, Question<$t>),)+) {
            type Answers = ($($t,)+);

            fn ask_all(self, cx: &Cx) -> Result<Self::Answers, HandlerExit> {
                let looked = ($(cx.read_response(self.$n.0, &self.$n.1),)+);
                let mut open = Vec::new();
                $(if let Err(ask) = &looked.$n {
                    open.push(InputRequest::clone(ask));
                })+
                if !open.is_empty() {
                    return Err(cx.request_input(open));
                }
                Ok(($(looked.$n.map_err(|ask| cx.request_input(vec![*ask]))?.accepted()?,)+))
            }
        }
    };
}

asks!(A 0);
asks!(A 0, B 1);
asks!(A 0, B 1, C 2);
asks!(A 0, B 1, C 2, D 3);
