//! A tool: its definition, and the function behind it.

use super::{Cx, IntoOutput, Stop, TaskSupport, definition::Draft, schema, typed};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{future::Future, sync::Arc};
use toolgate_core::{
    BoxFuture, Call, Definition, Error, ItemKind, Kind, Need, Problem, ToolResult,
};

type Run = Arc<dyn Fn(&Call, Cx) -> BoxFuture<'static, Result<ToolResult, Stop>> + Send + Sync>;

/// A tool: its definition, and the function behind it.
///
/// What nobody says is read as the most careful: it may change things, and destroy.
#[derive(Clone)]
pub struct Tool {
    draft: Draft,
    run: Run,
    wrong: Option<String>,
    /// Whether the structured result is repeated as text.
    repeats: bool,
    support: TaskSupport,
}

/// What can be added to a server as a tool: a [`Tool`], or a function that makes one, as `#[tool]` does.
pub trait IntoTool {
    /// The tool.
    fn into_tool(self) -> Tool;
}

impl IntoTool for Tool {
    fn into_tool(self) -> Tool {
        self
    }
}

impl<F: FnOnce() -> Tool> IntoTool for F {
    fn into_tool(self) -> Tool {
        self()
    }
}

/// Several tools over one state, such as what `#[tools]` makes of the methods of a type.
pub trait ToolSet: Send + Sync + 'static {
    /// The tools, each with the state.
    fn tools(self: Arc<Self>) -> Vec<Tool>;
}

impl Tool {
    /// A tool whose arguments are the fields of `A`; the schemas are derived. `A` should be a struct that denies unknown
    /// fields.
    ///
    /// ```
    /// # use toolgate::handlers::{Cx, Stop, Tool};
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// #[serde(deny_unknown_fields)]
    /// struct Add {
    ///     /// The one.
    ///     a: i64,
    ///     /// The other.
    ///     b: i64,
    /// }
    ///
    /// let add = Tool::new("add", |args: Add, _cx: Cx| async move {
    ///     Ok::<_, Stop>((args.a + args.b).to_string())
    /// })
    /// .description("Adds two numbers.")
    /// .read_only();
    /// # let _ = add;
    /// ```
    pub fn new<A, F, Fut, R>(name: &str, handler: F) -> Tool
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Stop>> + Send + 'static,
        R: IntoOutput + 'static,
    {
        let handler = Arc::new(handler);
        let run: Run = Arc::new(move |call, cx| {
            let arguments = typed::read::<A>(call.arguments());
            let handler = handler.clone();
            Box::pin(async move {
                let arguments = arguments.map_err(|error| Stop::error(invalid(&error)))?;
                handler(arguments, cx).await?.into_output()
            })
        });
        let mut tool = Tool::with(name, run);
        match schema::input_schema::<A>() {
            Ok(input) => tool.draft.set("inputSchema", input),
            Err(why) => tool.wrong = Some(why),
        }
        match R::schema() {
            Some(Ok(output)) => tool.draft.set("outputSchema", output),
            Some(Err(why)) => tool.wrong = Some(why),
            None => {}
        }
        tool
    }

    /// A tool whose schema is given at run time. The arguments fit it when the function is called.
    pub fn dynamic<F, Fut, R>(name: &str, input_schema: Value, handler: F) -> Tool
    where
        F: Fn(Value, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Stop>> + Send + 'static,
        R: IntoOutput + 'static,
    {
        let handler = Arc::new(handler);
        let run: Run = Arc::new(move |call, cx| {
            let (arguments, handler) = (call.arguments().value().clone(), handler.clone());
            Box::pin(async move { handler(arguments, cx).await?.into_output() })
        });
        let mut tool = Tool::with(name, run);
        tool.draft.set("inputSchema", input_schema);
        tool
    }

    fn with(name: &str, run: Run) -> Tool {
        Tool {
            draft: Draft::new("name", name),
            run,
            wrong: None,
            repeats: true,
            support: TaskSupport::default(),
        }
    }

    fn set(mut self, member: &str, value: impl Into<Value>) -> Tool {
        self.draft.set(member, value);
        self
    }

    fn hint(mut self, name: &str, value: bool) -> Tool {
        self.draft.within("annotations", name, value);
        self
    }

    /// What people call it.
    pub fn title(self, title: &str) -> Tool {
        self.set("title", title)
    }

    /// What it does, for the model.
    pub fn description(self, text: &str) -> Tool {
        self.set("description", text)
    }

    /// It changes nothing.
    pub fn read_only(self) -> Tool {
        self.hint("readOnlyHint", true)
    }

    /// Whether it may destroy; where it changes things at all.
    pub fn destructive(self, destroys: bool) -> Tool {
        self.hint("destructiveHint", destroys)
    }

    /// A second call with the same arguments changes nothing more.
    pub fn idempotent(self) -> Tool {
        self.hint("idempotentHint", true)
    }

    /// Whether it reaches out of the server's own world.
    pub fn open_world(self, reaches: bool) -> Tool {
        self.hint("openWorldHint", reaches)
    }

    /// Whether it can be called as a task, so that its caller need not wait: where it takes long (`Optional`), or always
    /// (`Required`). A caller that knows no tasks waits; where they are required it is refused.
    pub fn task(mut self, support: TaskSupport) -> Tool {
        self.draft
            .within("execution", "taskSupport", support.word());
        self.support = support;
        self
    }

    /// Its icons, as the protocol writes them: an array of objects with `src`.
    pub fn icons(self, icons: Value) -> Tool {
        self.set("icons", icons)
    }

    /// A member of its `_meta`, for example `ui` of MCP Apps.
    pub fn meta(mut self, key: &str, value: impl Into<Value>) -> Tool {
        self.draft.within("_meta", key, value);
        self
    }

    /// The schema of its structured result, in the place of a derived one.
    pub fn output_schema(self, schema: Value) -> Tool {
        self.set("outputSchema", schema)
    }

    /// Does not repeat the structured result as text. Older clients then get nothing.
    pub fn without_text(mut self) -> Tool {
        self.repeats = false;
        self
    }

    pub(super) fn support(&self) -> TaskSupport {
        self.support
    }

    pub(super) fn name(&self) -> &str {
        self.draft.text("name").unwrap_or_default()
    }

    pub(super) fn definition(&self) -> Result<Definition, String> {
        match &self.wrong {
            Some(why) => Err(why.clone()),
            None => self.draft.finish(ItemKind::Tool),
        }
    }

    pub(super) async fn run(&self, call: &Call, cx: Cx) -> Result<ToolResult, Stop> {
        match self.support {
            TaskSupport::Forbidden => {}
            TaskSupport::Optional => call.background.allow(),
            TaskSupport::Required => cx.require(Need::Tasks)?,
        }
        let mut result = (self.run)(call, cx).await?;
        match &result.structured {
            Some(_) if !self.repeats => result.content.clear(),
            // An author's own result may have left it out.
            Some(structured) if result.content.is_empty() => {
                result.content = ToolResult::text(structured.as_str()).content;
            }
            _ => {}
        }
        Ok(result)
    }
}

/// The schema let it pass, the type did not.
fn invalid(error: &serde_json::Error) -> Error {
    let problem = Problem {
        path: String::new(),
        expected: "arguments of the right types".to_owned(),
        got: error.to_string(),
    };
    let text = format!("invalid arguments: {error}");
    Error::new(Kind::Invalid(vec![problem]), text)
}
