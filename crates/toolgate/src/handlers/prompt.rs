//! A prompt: its definition, and the function behind it.

use super::{Cx, IntoMessages, Stop, complete::Completers, definition::Draft, schema};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, future::Future, sync::Arc};
use toolgate_core::{BoxFuture, Call, Definition, Error, ItemKind, Kind, PromptResult};

type Run = Arc<dyn Fn(&Call, Cx) -> BoxFuture<'static, Result<PromptResult, Stop>> + Send + Sync>;

/// A prompt: its definition, and the function behind it.
#[derive(Clone)]
pub struct Prompt {
    draft: Draft,
    arguments: Vec<Value>,
    run: Run,
    wrong: Option<String>,
    pub(super) completers: Completers,
}

/// What can be added to a server as a prompt: a [`Prompt`], or a function that makes one, as `#[prompt]`
/// does.
pub trait IntoPrompt {
    /// The prompt.
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
    /// A prompt whose arguments are named with [`Prompt::argument`].
    pub fn new<F, Fut, R>(name: &str, handler: F) -> Prompt
    where
        F: Fn(BTreeMap<String, String>, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Stop>> + Send + 'static,
        R: IntoMessages + 'static,
    {
        let handler = Arc::new(handler);
        let run: Run = Arc::new(move |call, cx| {
            let (arguments, handler) = (texts(call), handler.clone());
            Box::pin(async move { handler(arguments, cx).await?.into_messages() })
        });
        Prompt::with(name, run)
    }

    /// A prompt whose arguments are the fields of `A`, all of them texts.
    pub fn typed<A, F, Fut, R>(name: &str, handler: F) -> Prompt
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Stop>> + Send + 'static,
        R: IntoMessages + 'static,
    {
        let handler = Arc::new(handler);
        let run: Run = Arc::new(move |call, cx| {
            let arguments = serde_json::from_value::<A>(call.arguments().value().clone());
            let handler = handler.clone();
            Box::pin(async move {
                let arguments = arguments.map_err(|error| {
                    let text = format!("invalid arguments: {error}");
                    Stop::error(Error::new(Kind::Invalid(Vec::new()), text))
                })?;
                handler(arguments, cx).await?.into_messages()
            })
        });
        let mut prompt = Prompt::with(name, run);
        match schema::input_schema::<A>() {
            Ok(schema) => prompt.arguments = arguments(&schema),
            Err(why) => prompt.wrong = Some(why),
        }
        prompt
    }

    fn with(name: &str, run: Run) -> Prompt {
        Prompt {
            draft: Draft::new("name", name),
            arguments: Vec::new(),
            run,
            wrong: None,
            completers: Completers::default(),
        }
    }

    /// What people call it.
    pub fn title(mut self, title: &str) -> Prompt {
        self.draft.set("title", title);
        self
    }

    /// What it is for.
    pub fn description(mut self, text: &str) -> Prompt {
        self.draft.set("description", text);
        self
    }

    /// Its icons, as the protocol writes them.
    pub fn icons(mut self, icons: Value) -> Prompt {
        self.draft.set("icons", icons);
        self
    }

    /// A member of its `_meta`.
    pub fn meta(mut self, key: &str, value: impl Into<Value>) -> Prompt {
        self.draft.within("_meta", key, value);
        self
    }

    /// Puts the arguments of these names first, in this order. People fill them in one after the other.
    pub fn in_order(mut self, names: &[&str]) -> Prompt {
        let place = |argument: &Value| {
            let place = names.iter().position(|name| argument["name"] == *name);
            place.unwrap_or(names.len())
        };
        self.arguments.sort_by_key(place);
        self
    }

    /// One more argument.
    pub fn argument(mut self, name: &str, description: &str, required: bool) -> Prompt {
        self.arguments
            .push(json!({"name": name, "description": description, "required": required}));
        self
    }

    /// Completes an argument from what is typed so far, the best first. The other arguments stand in
    /// [`Cx::arguments`], under `context`.
    pub fn complete<F, Fut>(mut self, argument: &str, f: F) -> Prompt
    where
        F: Fn(String, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<String>, Stop>> + Send + 'static,
    {
        self.completers.add(argument, f);
        self
    }

    pub(super) fn name(&self) -> &str {
        self.draft.text("name").unwrap_or_default()
    }

    pub(super) fn definition(&self) -> Result<Definition, String> {
        if let Some(why) = &self.wrong {
            return Err(why.clone());
        }
        let mut draft = self.draft.clone();
        if !self.arguments.is_empty() {
            draft.set("arguments", self.arguments.clone());
        }
        draft.finish(ItemKind::Prompt)
    }

    pub(super) async fn run(&self, call: &Call, cx: Cx) -> Result<PromptResult, Stop> {
        let mut result = (self.run)(call, cx).await?;
        if result.description.is_none() {
            result.description = self.draft.text("description").map(str::to_owned);
        }
        Ok(result)
    }
}

/// The arguments of a prompt are texts.
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
