//! Prompts: definition and handler.

use super::{
    Cx, HandlerExit, Icon, IntoHandlerExit, IntoMessages, complete::CompletionHandlers,
    definition::DefinitionDraft, schema, text_arguments,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, future::Future, sync::Arc};
use toolgate_core::{BoxFuture, Call, Definition, ItemKind, PromptResult};

type PromptHandler =
    Arc<dyn Fn(&Call, Cx) -> BoxFuture<'static, Result<PromptResult, HandlerExit>> + Send + Sync>;

/// Prompt of an MCP server: its definition and its handler.
///
/// Specification: [prompts](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts).
///
/// ```
/// use toolgate::{HandlerExit, Prompt, Server};
///
/// let review = Prompt::new("review", |arguments, _cx| async move {
///     let tone = arguments.get("tone").map_or("mild", String::as_str);
///     Ok::<_, HandlerExit>(format!("Give a {tone} review:\n\n{}", arguments["text"]))
/// })
/// .description("Reviews a text.")
/// .argument("tone", "How strict, from mild to harsh", false)
/// .argument("text", "The text", true)
/// .in_order(&["text", "tone"])
/// .complete("tone", |typed, _cx| async move {
///     let tones = ["mild", "neutral", "harsh"].into_iter();
///     Ok::<_, HandlerExit>(tones.filter(|tone| tone.starts_with(&typed)).map(str::to_owned).collect())
/// });
/// let server = Server::new("reviews", "1.0.0").prompt(review);
/// # assert!(server.build().is_ok());
/// ```
#[derive(Clone)]
pub struct Prompt {
    draft: DefinitionDraft,
    arguments: Vec<Value>,
    /// True if the list of arguments is complete even when it is empty.
    is_closed: bool,
    run: PromptHandler,
    fault: Option<String>,
    pub(super) completers: CompletionHandlers,
}

/// Types that can be added to a server as a prompt: a [`Prompt`], or a function that returns one (as from `#[prompt]`).
///
/// ```
/// use toolgate::{Server, handlers::{IntoPrompt, Prompt}, prompt};
///
/// /// Greets somebody.
/// #[prompt]
/// fn greet(name: String) -> String {
///     format!("Greet {name}.")
/// }
///
/// /// Adds a prompt in the language of this server.
/// fn add(server: Server, prompt: impl IntoPrompt) -> Server {
///     let prompt: Prompt = prompt.into_prompt();
///     server.prompt(prompt.meta("example.com/language", "en"))
/// }
///
/// let server = add(Server::new("greetings", "1.0.0"), greet);
/// # assert!(server.build().is_ok());
/// ```
pub trait IntoPrompt {
    /// Returns the prompt to add.
    fn into_prompt(self) -> Prompt;
}

impl IntoPrompt for Prompt {
    fn into_prompt(self) -> Prompt {
        self
    }
}

impl<F: FnOnce() -> Prompt> IntoPrompt for F {
    fn into_prompt(self) -> Prompt {
        self()
    }
}

impl Prompt {
    /// Creates a prompt with this handler, whose arguments are declared with [`Prompt::argument`]. A prompt that declares
    /// none is free-form: clients can send any arguments.
    pub fn new<F, Fut, R, E, C>(name: &str, handler: F) -> Prompt
    where
        F: Fn(BTreeMap<String, String>, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        E: IntoHandlerExit<C>,
        R: IntoMessages + 'static,
    {
        let handler = Arc::new(handler);
        let run: PromptHandler = Arc::new(move |call, cx| {
            let (arguments, handler) = (texts(call), handler.clone());
            Box::pin(async move {
                handler(arguments, cx)
                    .await
                    .map_err(E::into_handler_exit)?
                    .into_messages()
            })
        });
        Prompt::with(name, run)
    }

    /// Creates a prompt with this handler, whose arguments are the fields of `A`. Clients send text: numbers, booleans
    /// and enums are parsed from it, and lists and objects from JSON text.
    ///
    /// A map as `A` makes the prompt free-form: it declares no arguments, and clients can send any. `A` cannot declare
    /// fields and accept others as well, because clients and gateways reject arguments that are not declared.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use toolgate::{HandlerExit, Prompt, Server};
    ///
    /// let fill = Prompt::typed("fill", |values: BTreeMap<String, String>, _cx| async move {
    ///     let lines: Vec<String> = values.iter().map(|(name, text)| format!("{name}: {text}")).collect();
    ///     Ok::<_, HandlerExit>(lines.join("\n"))
    /// });
    /// let server = Server::new("forms", "1.0.0").prompt(fill);
    /// # assert!(server.build().is_ok());
    /// ```
    pub fn typed<A, F, Fut, R, E, C>(name: &str, handler: F) -> Prompt
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        E: IntoHandlerExit<C>,
        R: IntoMessages + 'static,
    {
        let handler = Arc::new(handler);
        let run: PromptHandler = Arc::new(move |call, cx| {
            let arguments = text_arguments::read::<A>(call.arguments().raw());
            let handler = handler.clone();
            Box::pin(async move {
                let arguments = arguments.map_err(HandlerExit::error)?;
                handler(arguments, cx)
                    .await
                    .map_err(E::into_handler_exit)?
                    .into_messages()
            })
        });
        let mut prompt = Prompt::with(name, run);
        match schema::input_schema::<A>() {
            Ok(schema) => prompt.declare(&schema),
            Err(why) => prompt.fault = Some(why),
        }
        prompt
    }

    fn with(name: &str, run: PromptHandler) -> Prompt {
        Prompt {
            draft: DefinitionDraft::new("name", name),
            arguments: Vec::new(),
            is_closed: false,
            run,
            fault: None,
            completers: CompletionHandlers::default(),
        }
    }

    /// Declares the arguments that a schema describes.
    fn declare(&mut self, schema: &Value) {
        self.arguments = arguments(schema);
        let further = schema.get("additionalProperties");
        self.is_closed = further.is_none_or(|further| *further == false);
        if !self.is_closed && !self.arguments.is_empty() {
            let why = "its arguments are some declared ones and a map of any others, but clients and gateways reject arguments that are not declared; declare all, or take all as one map";
            self.fault = Some(why.to_owned());
        }
    }

    /// Sets the prompt's title, which hosts show to people.
    pub fn title(mut self, title: &str) -> Prompt {
        self.draft.set("title", title);
        self
    }

    /// Sets the prompt's description.
    pub fn description(mut self, text: &str) -> Prompt {
        self.draft.set("description", text);
        self
    }

    /// Adds an icon, which hosts show to people.
    pub fn icon(mut self, icon: Icon) -> Prompt {
        self.draft.push("icons", icon.into_json());
        self
    }

    /// Sets the prompt's icons, as JSON in the protocol's format.
    pub fn icons(mut self, icons: Value) -> Prompt {
        self.draft.set("icons", icons);
        self
    }

    /// Sets a member of the prompt's `_meta`.
    pub fn meta(mut self, key: &str, value: impl Into<Value>) -> Prompt {
        self.draft.set_nested("_meta", key, value);
        self
    }

    /// Moves the prompt's arguments with these names to the front, in this order. Hosts show them to people in the
    /// order of the list.
    pub fn in_order(mut self, names: &[&str]) -> Prompt {
        let place = |argument: &Value| {
            let place = names.iter().position(|name| argument["name"] == *name);
            place.unwrap_or(names.len())
        };
        self.arguments.sort_by_key(place);
        self
    }

    /// Declares an argument of the prompt.
    pub fn argument(mut self, name: &str, description: &str, required: bool) -> Prompt {
        self.arguments
            .push(json!({"name": name, "description": description, "required": required}));
        self
    }

    /// Sets the completion function of a prompt argument (`completion/complete`). It gets the text typed so far and
    /// returns the best match first. [`Cx::context_argument`] returns the other arguments. The attribute
    /// [`#[prompt]`](macro@crate::prompt) has the option `complete` for it.
    pub fn complete<F, Fut, E, C>(mut self, argument: &str, f: F) -> Prompt
    where
        F: Fn(String, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<String>, E>> + Send + 'static,
        E: IntoHandlerExit<C>,
    {
        self.completers.add(argument, f);
        self
    }

    pub(super) fn name(&self) -> &str {
        self.draft.text("name").unwrap_or_default()
    }

    pub(super) fn definition(&self) -> Result<Definition, String> {
        if let Some(why) = &self.fault {
            return Err(why.clone());
        }
        let mut draft = self.draft.clone();
        if self.is_closed || !self.arguments.is_empty() {
            draft.set("arguments", self.arguments.clone());
        }
        draft.finish(ItemKind::Prompt)
    }

    pub(super) async fn run(&self, call: &Call, cx: Cx) -> Result<PromptResult, HandlerExit> {
        let mut result = (self.run)(call, cx).await?;
        if result.description.is_none() {
            result.description = self.draft.text("description").map(str::to_owned);
        }
        Ok(result)
    }
}

/// Returns the arguments of a prompt, which are strings.
fn texts(call: &Call) -> BTreeMap<String, String> {
    let members = call.arguments().raw().members();
    members
        .filter_map(|(key, value)| Some((key.into_owned(), value.string()?)))
        .collect()
}

fn arguments(schema: &Value) -> Vec<Value> {
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let required = |name: &String| {
        let list = schema["required"].as_array();
        list.is_some_and(|list| list.iter().any(|r| r.as_str() == Some(name)))
    };
    let one = |(name, property): (&String, &Value)| {
        let mut argument = json!({"name": name, "required": required(name)});
        if let Some(text) = property["description"].as_str() {
            argument["description"] = text.into();
        }
        argument
    };
    properties.iter().map(one).collect()
}
