//! Sets of items that share one state.

use super::{
    IntoPrompt, IntoResource, IntoResourceTemplate, IntoTool, Prompt, Resource, ResourceTemplate,
    Tool,
};
use std::sync::Arc;

/// Set of tools, prompts, resources and templates, to add to a server with
/// [`Server::tools`](super::Server::tools). The macro `#[tools]` makes one from the methods of a type.
///
/// ```
/// use toolgate::{Server, handlers::ItemSet, tool};
///
/// /// Says hello.
/// #[tool(read_only)]
/// fn hello() -> &'static str {
///     "hello"
/// }
///
/// let greetings = ItemSet::new().tool(hello);
/// let server = Server::new("greetings", "1.0.0").tools(greetings);
/// # assert!(server.build().is_ok());
/// ```
#[derive(Clone, Default)]
pub struct ItemSet {
    pub(super) tools: Vec<Tool>,
    pub(super) prompts: Vec<Prompt>,
    pub(super) resources: Vec<Resource>,
    pub(super) templates: Vec<ResourceTemplate>,
}

impl ItemSet {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> ItemSet {
        ItemSet::default()
    }

    /// Adds a tool to the set.
    #[must_use]
    pub fn tool(mut self, tool: impl IntoTool) -> ItemSet {
        self.tools.push(tool.into_tool());
        self
    }

    /// Adds a prompt to the set.
    #[must_use]
    pub fn prompt(mut self, prompt: impl IntoPrompt) -> ItemSet {
        self.prompts.push(prompt.into_prompt());
        self
    }

    /// Adds a resource to the set.
    #[must_use]
    pub fn resource(mut self, resource: impl IntoResource) -> ItemSet {
        self.resources.push(resource.into_resource());
        self
    }

    /// Adds a resource template to the set.
    #[must_use]
    pub fn template(mut self, template: impl IntoResourceTemplate) -> ItemSet {
        self.templates.push(template.into_resource_template());
        self
    }
}

/// Types that provide items of a server: a type with a `#[tools]` block, an `Arc` of one, or an [`ItemSet`].
///
/// ```
/// use std::sync::Arc;
/// use toolgate::{Server, handlers::{ItemSet, ItemSource, Tool}, HandlerExit};
///
/// /// Tools that a configuration names.
/// struct Greetings(Vec<String>);
///
/// impl ItemSource for Greetings {
///     fn items(self: Arc<Self>) -> ItemSet {
///         self.0.iter().fold(ItemSet::new(), |set, name| {
///             let text = format!("Hello, {name}");
///             set.tool(Tool::dynamic(name, serde_json::json!({"type": "object"}), move |_, _cx| {
///                 let text = text.clone();
///                 async move { Ok::<_, HandlerExit>(text) }
///             }))
///         })
///     }
/// }
///
/// let server = Server::new("greetings", "1.0.0").tools(Greetings(vec!["ann".to_owned()]));
/// # assert!(server.build().is_ok());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` provides no items for a server",
    label = "this type has no block with `#[tools]`",
    note = "put `#[tools]` on an `impl` block of the type, or build an `ItemSet`",
    note = "a block with a function, such as `#[tools(fn admin)]`, provides its items only through that function"
)]
pub trait ItemSource: Send + Sync + 'static {
    /// Returns the items, each with the shared state.
    fn items(self: Arc<Self>) -> ItemSet;
}

impl ItemSource for ItemSet {
    fn items(self: Arc<Self>) -> ItemSet {
        Arc::unwrap_or_clone(self)
    }
}

impl<T: ItemSource> ItemSource for Arc<T> {
    fn items(self: Arc<Self>) -> ItemSet {
        T::items(Arc::clone(&self))
    }
}
