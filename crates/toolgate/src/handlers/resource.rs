//! Resources and resource templates: definition and handler.

use super::{
    Cx, HandlerExit, Icon, IntoContents, IntoHandlerExit, ResourceContents,
    complete::CompletionHandlers, definition::DefinitionDraft, text_arguments,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{future::Future, sync::Arc};
use toolgate_core::{BoxFuture, CacheHint, Definition, ItemKind, ReadResult};
use toolgate_protocol::method::uri_template;

type ContentsFuture = BoxFuture<'static, Result<Vec<ResourceContents>, HandlerExit>>;

/// Resource of an MCP server: its definition and the handler that reads it.
///
/// Specification: [resources](https://modelcontextprotocol.io/specification/2026-07-28/server/resources).
#[derive(Clone)]
pub struct Resource {
    draft: DefinitionDraft,
    hint: CacheHint,
    read: Arc<dyn Fn(Cx) -> ContentsFuture + Send + Sync>,
}

/// Resource template of an MCP server: its definition and the handler that reads the resources that match it.
///
/// Specification: [resource templates](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#resource-templates),
/// [RFC 6570](https://www.rfc-editor.org/rfc/rfc6570).
#[derive(Clone)]
pub struct ResourceTemplate {
    draft: DefinitionDraft,
    hint: CacheHint,
    read: Arc<dyn Fn(TemplateVariables, Cx) -> ContentsFuture + Send + Sync>,
    pub(super) completers: CompletionHandlers,
}

/// Types that can be added to a server as a resource: a [`Resource`], or a function that returns one, as `#[resource]`
/// generates.
pub trait IntoResource {
    /// Returns the resource to add.
    fn into_resource(self) -> Resource;
}

impl IntoResource for Resource {
    fn into_resource(self) -> Resource {
        self
    }
}

impl<F: FnOnce() -> Resource> IntoResource for F {
    fn into_resource(self) -> Resource {
        self()
    }
}

/// Types that can be added to a server as a resource template: a [`ResourceTemplate`], or a function that returns one,
/// as `#[template]` generates.
///
/// ```
/// use toolgate::{
///     HandlerExit, ResourceTemplate, Server,
///     handlers::{IntoResource, IntoResourceTemplate, TemplateVariables},
///     resource,
/// };
///
/// /// Terms of use.
/// #[resource("shop:///terms")]
/// fn terms() -> &'static str {
///     "Returns within 30 days."
/// }
///
/// /// Adds both for a day to the caches of clients.
/// fn add(server: Server, page: impl IntoResource, pages: impl IntoResourceTemplate) -> Server {
///     const DAY_MS: u64 = 24 * 3600 * 1000;
///     let server = server.resource(page.into_resource().cache(DAY_MS, true));
///     server.template(pages.into_resource_template().cache(DAY_MS, true))
/// }
///
/// let orders = ResourceTemplate::new("shop:///orders/{id}", "order", |variables: TemplateVariables, _cx| async move {
///     match variables.get("id").parse::<u32>() {
///         Ok(id) => Ok(format!("order {id}")),
///         Err(_) => Err(HandlerExit::not_found("no such order")),
///     }
/// });
/// let server = add(Server::new("shop", "1.0.0"), terms, orders);
/// # assert!(server.build().is_ok());
/// ```
pub trait IntoResourceTemplate {
    /// Returns the resource template to add.
    fn into_resource_template(self) -> ResourceTemplate;
}

impl IntoResourceTemplate for ResourceTemplate {
    fn into_resource_template(self) -> ResourceTemplate {
        self
    }
}

impl<F: FnOnce() -> ResourceTemplate> IntoResourceTemplate for F {
    fn into_resource_template(self) -> ResourceTemplate {
        self()
    }
}

/// Values of the URI template variables ([RFC 6570]) in a requested resource URI, unchanged. They come from the caller:
/// validate them before you use them in a file path.
///
/// [RFC 6570]: https://www.rfc-editor.org/rfc/rfc6570
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TemplateVariables(Vec<(String, String)>);

impl TemplateVariables {
    /// Returns the value of a URI template variable; empty if the URI has none.
    pub fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(n, _)| n == name);
        found.map_or("", |(_, value)| value)
    }
}

macro_rules! described {
    ($type:ident) => {
        impl $type {
            /// Sets the title of the resource or template, which hosts show to people.
            pub fn title(mut self, title: &str) -> $type {
                self.draft.set("title", title);
                self
            }

            /// Sets the description of the resource or template.
            pub fn description(mut self, text: &str) -> $type {
                self.draft.set("description", text);
                self
            }

            /// Sets the MIME type of the contents.
            pub fn mime(mut self, mime: &str) -> $type {
                self.draft.set("mimeType", mime);
                self
            }

            /// Adds an icon, which hosts show to people.
            pub fn icon(mut self, icon: Icon) -> $type {
                self.draft.push("icons", icon.into_json());
                self
            }

            /// Sets the icons of the resource or template, as JSON in the protocol's format.
            pub fn icons(mut self, icons: Value) -> $type {
                self.draft.set("icons", icons);
                self
            }

            /// Sets the resource annotations, as JSON in the protocol's format: `audience`, `priority`, `lastModified`.
            pub fn annotations(mut self, annotations: Value) -> $type {
                self.draft.set("annotations", annotations);
                self
            }

            /// Sets a member of the `_meta` of the resource or template.
            pub fn meta(mut self, key: &str, value: impl Into<Value>) -> $type {
                self.draft.set_nested("_meta", key, value);
                self
            }

            /// Sets the cache hint of the contents: the time to live in milliseconds, and whether caches may share them
            /// between callers. Default: 0 and private.
            pub fn cache(mut self, ttl_ms: u64, public: bool) -> $type {
                self.hint = CacheHint { ttl_ms, public };
                self
            }

            fn result(&self, uri: &str, parts: &[ResourceContents]) -> ReadResult {
                let mime = self.draft.text("mimeType");
                ReadResult {
                    contents: parts.iter().map(|part| part.json(uri, mime)).collect(),
                    hint: self.hint,
                    meta: None,
                }
            }
        }
    };
}

described!(Resource);
described!(ResourceTemplate);

impl Resource {
    /// Creates a resource with that URI and name, and the handler that reads it.
    pub fn new<F, Fut, R, E, C>(uri: &str, name: &str, read: F) -> Resource
    where
        F: Fn(Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        E: IntoHandlerExit<C>,
        R: IntoContents + 'static,
    {
        let read = Arc::new(read);
        let mut draft = DefinitionDraft::new("uri", uri);
        draft.set("name", name);
        if let Some(mime) = R::mime() {
            draft.set("mimeType", mime);
        }
        Resource {
            draft,
            hint: CacheHint::default(),
            read: Arc::new(move |cx| {
                let read = read.clone();
                Box::pin(async move {
                    read(cx)
                        .await
                        .map_err(E::into_handler_exit)?
                        .into_contents()
                })
            }),
        }
    }

    /// Creates a resource with that URI and name, and constant contents.
    ///
    /// ```
    /// use toolgate::{Resource, Server, handlers::ResourceContents};
    ///
    /// let terms = ResourceContents::text("Returns within 30 days.").mime("text/plain");
    /// let server = Server::new("shop", "1.0.0").resource(Resource::fixed("shop:///terms", "terms", terms));
    /// # assert!(server.build().is_ok());
    /// ```
    pub fn fixed(uri: &str, name: &str, contents: ResourceContents) -> Resource {
        Resource::new(uri, name, move |_| {
            let contents = contents.clone();
            async move { Ok::<_, HandlerExit>(contents) }
        })
    }

    pub(super) fn mime_type(&self) -> Option<&str> {
        self.draft.text("mimeType")
    }

    pub(super) fn uri(&self) -> &str {
        self.draft.text("uri").unwrap_or_default()
    }

    pub(super) fn definition(&self) -> Result<Definition, String> {
        self.draft.finish(ItemKind::Resource)
    }

    pub(super) async fn read(&self, cx: Cx) -> Result<ReadResult, HandlerExit> {
        let parts = (self.read)(cx).await?;
        Ok(self.result(self.uri(), &parts))
    }
}

impl ResourceTemplate {
    /// Creates a resource template with a URI template ([RFC 6570]) and a name. Examples of a URI template:
    /// `file:///{+path}`, `note://{id}`.
    ///
    /// [RFC 6570]: https://www.rfc-editor.org/rfc/rfc6570
    pub fn new<F, Fut, R, E, C>(template: &str, name: &str, read: F) -> ResourceTemplate
    where
        F: Fn(TemplateVariables, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        E: IntoHandlerExit<C>,
        R: IntoContents + 'static,
    {
        let read = Arc::new(read);
        let mut draft = DefinitionDraft::new("uriTemplate", template);
        draft.set("name", name);
        if let Some(mime) = R::mime() {
            draft.set("mimeType", mime);
        }
        ResourceTemplate {
            draft,
            hint: CacheHint::default(),
            read: Arc::new(move |vars, cx| {
                let read = read.clone();
                Box::pin(async move {
                    read(vars, cx)
                        .await
                        .map_err(E::into_handler_exit)?
                        .into_contents()
                })
            }),
            completers: CompletionHandlers::default(),
        }
    }

    /// Creates a resource template whose variables are the fields of `A`. Numbers, booleans and enums are parsed from
    /// the text of a variable. A value that does not fit is a "not found" error that names the variable.
    ///
    /// ```
    /// # use toolgate::{Cx, HandlerExit, ResourceTemplate};
    /// #[derive(serde::Deserialize)]
    /// struct Date {
    ///     year: i32,
    ///     day: u16,
    /// }
    ///
    /// let note = ResourceTemplate::typed("note:///{year}/{day}", "note", |date: Date, _cx: Cx| async move {
    ///     Ok::<_, HandlerExit>(format!("the note of day {} of {}", date.day, date.year))
    /// });
    /// # let _ = note;
    /// ```
    pub fn typed<A, F, Fut, R, E, C>(template: &str, name: &str, read: F) -> ResourceTemplate
    where
        A: DeserializeOwned + Send + 'static,
        F: Fn(A, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        E: IntoHandlerExit<C>,
        R: IntoContents + 'static,
    {
        let read = Arc::new(read);
        ResourceTemplate::new(template, name, move |vars: TemplateVariables, cx| {
            let read = read.clone();
            async move {
                let arguments = text_arguments::read_variables(vars.0.into_iter());
                let arguments = arguments.map_err(|why| {
                    HandlerExit::not_found(format!("unknown resource: {}: {why}", cx.call().name()))
                })?;
                read(arguments, cx).await.map_err(E::into_handler_exit)
            }
        })
    }

    /// Sets the completion function of a URI template variable (`completion/complete`). It gets the text typed so far
    /// and returns the best match first. [`Cx::context_argument`] returns the other variables. The attribute
    /// [`#[template]`](macro@crate::template) has the option `complete` for it.
    pub fn complete<F, Fut, E, C>(mut self, variable: &str, f: F) -> ResourceTemplate
    where
        F: Fn(String, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<String>, E>> + Send + 'static,
        E: IntoHandlerExit<C>,
    {
        self.completers.add(variable, f);
        self
    }

    pub(super) fn template(&self) -> &str {
        self.draft.text("uriTemplate").unwrap_or_default()
    }

    pub(super) fn definition(&self) -> Result<Definition, String> {
        self.draft.finish(ItemKind::Template)
    }

    /// Returns the variables of a URI if it matches.
    pub(super) fn match_uri(&self, uri: &str) -> Option<TemplateVariables> {
        uri_template::variables(self.template(), uri).map(TemplateVariables)
    }

    pub(super) async fn read(
        &self,
        uri: &str,
        vars: TemplateVariables,
        cx: Cx,
    ) -> Result<ReadResult, HandlerExit> {
        let parts = (self.read)(vars, cx).await?;
        Ok(self.result(uri, &parts))
    }
}
