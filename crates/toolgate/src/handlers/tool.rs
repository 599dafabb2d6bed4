//! Tools: definition and handler.

use super::{
    Cx, HandlerExit, Icon, IntoHandlerExit, IntoOutput, TaskSupport,
    argument_error::ArgumentProblem, definition::DefinitionDraft, schema, typed,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{future::Future, sync::Arc};
use toolgate_core::{
    BoxFuture, Call, Definition, Error, ErrorKind, ItemKind, Layer, RequiredCapability, Rule,
    SchemaViolation, ToolResult,
};

type ToolHandler =
    Arc<dyn Fn(&Call, Cx) -> BoxFuture<'static, Result<ToolResult, HandlerExit>> + Send + Sync>;

/// Tool of an MCP server: its definition and its handler.
///
/// Without annotations a tool counts as destructive.
///
/// Specification: [tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools).
///
/// ```
/// use serde_json::json;
/// use toolgate::{HandlerExit, Server, Structured, Tool, handlers::TaskSupport};
///
/// let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
/// let index = Tool::dynamic("index", schema, |arguments, cx| async move {
///     cx.become_task(); // it takes minutes
///     println!("call {} of trace {:?}", cx.call_id(), cx.trace());
///     Ok::<_, HandlerExit>(Structured(json!({"indexed": arguments["path"]})))
/// })
/// .description("Indexes a folder.")
/// .destructive(false)
/// .idempotent()
/// .open_world(false)
/// .task(TaskSupport::Optional)
/// .output_schema(json!({"type": "object", "properties": {"indexed": {"type": "string"}}}))
/// .without_text();
/// let server = Server::new("search", "1.0.0").tool(index);
/// # assert!(server.build().is_ok());
/// ```
#[derive(Clone)]
pub struct Tool {
    pub(super) draft: DefinitionDraft,
    run: ToolHandler,
    fault: Option<String>,
    /// True if structured content is repeated as text.
    repeats_as_text: bool,
    task_support: TaskSupport,
    layers: Arc<[Arc<dyn Layer>]>,
    pub(super) rules: Arc<[Arc<dyn Rule>]>,
    /// Page of MCP Apps.
    pub(super) page: Option<String>,
}

/// Types that can be added to a server as a tool: a [`Tool`], or a function that returns one, as `#[tool]` generates.
pub trait IntoTool {
    /// Returns the tool to add.
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

impl Tool {
    /// Creates a tool whose arguments are the fields of `A`, with derived schemas. `A` should be a struct that denies
    /// unknown fields.
    ///
    /// ```
    /// # use toolgate::handlers::{Cx, HandlerExit, Tool};
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
    ///     Ok::<_, HandlerExit>((args.a + args.b).to_string())
    /// })
    /// .description("Adds two numbers.")
    /// .read_only();
    /// # let _ = add;
    /// ```
    pub fn new<A, F, Fut, R, E, C>(name: &str, handler: F) -> Tool
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        E: IntoHandlerExit<C>,
        R: IntoOutput + 'static,
    {
        let handler = Arc::new(handler);
        let run: ToolHandler = Arc::new(move |call, cx| {
            let arguments = typed::read::<A>(call.arguments())
                .map_err(|error| invalid(&error, call.arguments().value()));
            let handler = handler.clone();
            Box::pin(async move {
                let arguments = arguments.map_err(HandlerExit::error)?;
                handler(arguments, cx)
                    .await
                    .map_err(E::into_handler_exit)?
                    .into_output()
            })
        });
        let mut tool = Tool::with(name, run);
        match schema::input_schema::<A>() {
            Ok(input) => tool.draft.set("inputSchema", input),
            Err(why) => tool.fault = Some(why),
        }
        match R::schema() {
            Some(Ok(output)) => tool.draft.set("outputSchema", output),
            Some(Err(why)) => tool.fault = Some(why),
            None => {}
        }
        tool
    }

    /// Creates a tool with an input schema given at run time, as JSON. Arguments are validated against it before the
    /// handler is called.
    pub fn dynamic<F, Fut, R, E, C>(name: &str, input_schema: Value, handler: F) -> Tool
    where
        F: Fn(Value, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        E: IntoHandlerExit<C>,
        R: IntoOutput + 'static,
    {
        let handler = Arc::new(handler);
        let run: ToolHandler = Arc::new(move |call, cx| {
            let (arguments, handler) = (call.arguments().value().clone(), handler.clone());
            Box::pin(async move {
                handler(arguments, cx)
                    .await
                    .map_err(E::into_handler_exit)?
                    .into_output()
            })
        });
        let mut tool = Tool::with(name, run);
        tool.draft.set("inputSchema", input_schema);
        tool
    }

    fn with(name: &str, run: ToolHandler) -> Tool {
        Tool {
            draft: DefinitionDraft::new("name", name),
            run,
            fault: None,
            repeats_as_text: true,
            task_support: TaskSupport::default(),
            layers: Arc::new([]),
            rules: Arc::new([]),
            page: None,
        }
    }

    fn set(mut self, member: &str, value: impl Into<Value>) -> Tool {
        self.draft.set(member, value);
        self
    }

    fn hint(mut self, name: &str, value: bool) -> Tool {
        self.draft.set_nested("annotations", name, value);
        self
    }

    /// Sets the tool's title, which hosts show to people.
    pub fn title(self, title: &str) -> Tool {
        self.set("title", title)
    }

    /// Sets the tool's description for the model.
    pub fn description(self, text: &str) -> Tool {
        self.set("description", text)
    }

    /// Sets the tool annotation `readOnlyHint`: the tool changes nothing.
    pub fn read_only(self) -> Tool {
        self.hint("readOnlyHint", true)
    }

    /// Sets the tool annotation `destructiveHint`: whether changes may be destructive. Only meaningful if the tool is
    /// not read-only.
    pub fn destructive(self, hint: bool) -> Tool {
        self.hint("destructiveHint", hint)
    }

    /// Sets the tool annotation `idempotentHint`: repeating a call with the same arguments has no further effect.
    pub fn idempotent(self) -> Tool {
        self.hint("idempotentHint", true)
    }

    /// Sets the tool annotation `openWorldHint`: whether the tool interacts with external systems.
    pub fn open_world(self, hint: bool) -> Tool {
        self.hint("openWorldHint", hint)
    }

    /// Sets the tool's task support: with `Optional` a long call can become a task, with `Required` every call is one.
    /// A caller without task support waits, and its call is rejected if tasks are required.
    ///
    /// Specification: [tasks](https://modelcontextprotocol.io/extensions/tasks/overview),
    /// [tasks of 2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks).
    #[cfg(feature = "tasks")]
    pub fn task(mut self, support: TaskSupport) -> Tool {
        self.draft
            .set_nested("execution", "taskSupport", support.as_str());
        self.task_support = support;
        self
    }

    /// Adds a layer around each call of this tool, inside the layers of the server. The first one added is outermost.
    ///
    /// ```
    /// use std::time::Duration;
    /// use toolgate::{Server, handlers::IntoTool, layer, tool};
    ///
    /// /// Looks up a word.
    /// #[tool(read_only)]
    /// fn define(word: String) -> String {
    ///     format!("{word}: …")
    /// }
    ///
    /// let define = define
    ///     .into_tool()
    ///     .layer(layer::TimeoutLayer::new(Duration::from_secs(5)))
    ///     .layer(layer::ResultCache::new(Duration::from_secs(60)));
    /// let server = Server::new("dictionary", "1.0.0").tool(define);
    /// # assert!(server.build().is_ok());
    /// ```
    pub fn layer(mut self, layer: impl Layer) -> Tool {
        let added: Arc<dyn Layer> = Arc::new(layer);
        self.layers = self.layers.iter().cloned().chain([added]).collect();
        self
    }

    /// Adds an icon, which hosts show to people.
    pub fn icon(mut self, icon: Icon) -> Tool {
        self.draft.push("icons", icon.into_json());
        self
    }

    /// Sets the icons in the protocol's format: an array of objects with `src`.
    ///
    /// ```
    /// # use toolgate::{HandlerExit, Tool};
    /// let icons = serde_json::json!([{"src": "https://weather.example.com/sun.png", "sizes": ["48x48"]}]);
    /// let tool = Tool::dynamic("now", serde_json::json!({"type": "object"}), |_, _cx| async {
    ///     Ok::<_, HandlerExit>("sunny")
    /// })
    /// .icons(icons);
    /// # drop(tool);
    /// ```
    pub fn icons(self, icons: Value) -> Tool {
        self.set("icons", icons)
    }

    /// Sets a member of the tool's `_meta`, for example `ui` of MCP Apps.
    pub fn meta(mut self, key: &str, value: impl Into<Value>) -> Tool {
        self.draft.set_nested("_meta", key, value);
        self
    }

    /// Sets the tool's output schema, instead of a derived one.
    pub fn output_schema(self, schema: Value) -> Tool {
        self.set("outputSchema", schema)
    }

    /// Omits the text copy of the tool's structured content. Clients without support for structured content then get
    /// nothing.
    pub fn without_text(mut self) -> Tool {
        self.repeats_as_text = false;
        self
    }

    pub(super) fn layers(&self) -> &Arc<[Arc<dyn Layer>]> {
        &self.layers
    }

    pub(super) fn rules(&self) -> &Arc<[Arc<dyn Rule>]> {
        &self.rules
    }

    pub(super) fn support(&self) -> TaskSupport {
        self.task_support
    }

    pub(super) fn name(&self) -> &str {
        self.draft.text("name").unwrap_or_default()
    }

    pub(super) fn definition(&self) -> Result<Definition, String> {
        match &self.fault {
            Some(why) => Err(why.clone()),
            None => self.draft.finish(ItemKind::Tool),
        }
    }

    pub(super) async fn run(&self, call: &Call, cx: Cx) -> Result<ToolResult, HandlerExit> {
        match self.task_support {
            TaskSupport::Forbidden => {}
            TaskSupport::Optional => call.task_control.allow_task(),
            TaskSupport::Required => cx.require(RequiredCapability::Tasks)?,
        }
        let mut result = (self.run)(call, cx).await?;
        match &result.structured {
            Some(_) if !self.repeats_as_text => result.content.clear(),
            // A handler that returns a `ToolResult` may have omitted the text.
            Some(structured) if result.content.is_empty() => {
                result.content = ToolResult::text(structured.as_str()).content;
            }
            _ => {}
        }
        Ok(result)
    }
}

/// Returns the error for arguments that match the schema but not the type.
fn invalid(error: &serde_json::Error, arguments: &Value) -> Error {
    let problem = ArgumentProblem::read(&error.to_string(), arguments);
    let text = format!("the arguments do not match the parameters of the tool: {problem}");
    let (expected, received) = problem.into_parts();
    let problem = SchemaViolation::new("", expected, received);
    Error::new(ErrorKind::InvalidArguments(vec![problem]), text)
}
