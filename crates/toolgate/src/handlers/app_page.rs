//! Pages of MCP Apps: user interfaces that hosts show with the results of tools.

use super::{Cx, IntoResource, Resource, ResourceContents, Tool};
use serde_json::{Map, Value, json};
use toolgate_core::Json;

/// Identifier of the extension MCP Apps (SEP-1865).
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// MIME type of a page.
pub(super) const MIME: &str = "text/html;profile=mcp-app";

/// Page of MCP Apps (SEP-1865): an HTML document with the URI `ui://…` that a host shows in a sandbox, with the result of
/// a tool. By default the page has no access to other origins and no permissions.
///
/// Specification: [MCP Apps](https://modelcontextprotocol.io/extensions/apps/overview).
///
/// ```
/// use toolgate::{Server, handlers::{AppPage, AppPermission}, tool};
///
/// /// Tells the time.
/// #[tool(read_only, ui = "ui://clock/face")]
/// fn now() -> &'static str {
///     "It is noon."
/// }
///
/// let face = AppPage::new("ui://clock/face", "<!doctype html><title>Clock</title>")
///     .connect_domains(["https://time.example"])
///     .permission(AppPermission::Geolocation)
///     .prefers_border(false);
/// let server = Server::new("clock", "1.0.0").app(face).tool(now);
/// # assert!(server.build().is_ok());
/// ```
///
/// Hosts without the extension show only the result, so it must say in text what the page shows.
#[derive(Clone, Debug)]
pub struct AppPage {
    uri: String,
    html: String,
    name: String,
    description: Option<String>,
    settings: Map<String, Value>,
}

/// Permission of a browser that a page asks the host for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum AppPermission {
    /// Access to a camera.
    Camera,
    /// Access to a microphone.
    Microphone,
    /// Access to the location.
    Geolocation,
    /// Writing to the clipboard.
    ClipboardWrite,
}

impl AppPage {
    /// Creates a page from a URI, which begins with `ui://`, and a complete HTML document.
    pub fn new(uri: &str, html: impl Into<String>) -> AppPage {
        AppPage {
            uri: uri.to_owned(),
            html: html.into(),
            name: uri.trim_start_matches("ui://").to_owned(),
            description: None,
            settings: Map::new(),
        }
    }

    /// Sets the name of the page. Default: the URI without its scheme.
    #[must_use]
    pub fn name(mut self, name: &str) -> AppPage {
        name.clone_into(&mut self.name);
        self
    }

    /// Sets the description of the page.
    #[must_use]
    pub fn description(mut self, text: &str) -> AppPage {
        self.description = Some(text.to_owned());
        self
    }

    /// Adds origins to which the page may send requests (`connect-src` of its Content Security Policy).
    #[must_use]
    pub fn connect_domains<'a>(self, origins: impl IntoIterator<Item = &'a str>) -> AppPage {
        self.csp("connectDomains", origins)
    }

    /// Adds origins from which the page may load images, scripts, styles, fonts and media.
    #[must_use]
    pub fn resource_domains<'a>(self, origins: impl IntoIterator<Item = &'a str>) -> AppPage {
        self.csp("resourceDomains", origins)
    }

    /// Adds origins of frames in the page (`frame-src`).
    #[must_use]
    pub fn frame_domains<'a>(self, origins: impl IntoIterator<Item = &'a str>) -> AppPage {
        self.csp("frameDomains", origins)
    }

    /// Adds base URIs of the document (`base-uri`).
    #[must_use]
    pub fn base_uri_domains<'a>(self, origins: impl IntoIterator<Item = &'a str>) -> AppPage {
        self.csp("baseUriDomains", origins)
    }

    /// Asks for a permission of the browser. The host may refuse it.
    #[must_use]
    pub fn permission(mut self, permission: AppPermission) -> AppPage {
        let name = match permission {
            AppPermission::Camera => "camera",
            AppPermission::Microphone => "microphone",
            AppPermission::Geolocation => "geolocation",
            AppPermission::ClipboardWrite => "clipboardWrite",
        };
        let all = self
            .settings
            .entry("permissions")
            .or_insert_with(|| json!({}));
        all[name] = json!({});
        self
    }

    /// Sets a dedicated origin for the page, in a format that the host defines.
    #[must_use]
    pub fn domain(mut self, domain: &str) -> AppPage {
        self.settings.insert("domain".to_owned(), domain.into());
        self
    }

    /// Sets whether the host draws a border and a background around the page. Default: the host decides.
    #[must_use]
    pub fn prefers_border(mut self, border: bool) -> AppPage {
        self.settings
            .insert("prefersBorder".to_owned(), border.into());
        self
    }

    fn csp<'a>(mut self, directive: &str, origins: impl IntoIterator<Item = &'a str>) -> AppPage {
        let csp = self.settings.entry("csp").or_insert_with(|| json!({}));
        let known = csp[directive].as_array().cloned().unwrap_or_default();
        let added = origins.into_iter().map(Value::from);
        csp[directive] = known.into_iter().chain(added).collect();
        self
    }
}

impl IntoResource for AppPage {
    fn into_resource(self) -> Resource {
        let settings = Value::Object(self.settings);
        let mut contents = ResourceContents::text(self.html);
        if settings != json!({}) {
            contents = contents.meta(Json::from_value(&json!({"ui": settings})));
        }
        let mut resource = Resource::fixed(&self.uri, &self.name, contents).mime(MIME);
        if settings != json!({}) {
            resource = resource.meta("ui", settings);
        }
        match &self.description {
            Some(text) => resource.description(text),
            None => resource,
        }
    }
}

impl Tool {
    /// Ties the tool to a page of MCP Apps, which hosts show with the result. The page must be a resource of the same
    /// server; add it with [`Server::app`](super::Server::app).
    ///
    /// ```
    /// use toolgate::{Cx, Server, handlers::{AppPage, IntoTool}, tool};
    ///
    /// /// Temperatures of the last days.
    /// #[tool(read_only)]
    /// fn history(days: u32, cx: Cx) -> String {
    ///     match cx.shows_apps() {
    ///         true => format!("{days} days, shown as a chart"),
    ///         false => format!("{days} days: 12 °C, 14 °C, 11 °C"),
    ///     }
    /// }
    ///
    /// /// Returns newer values to the page.
    /// #[tool(read_only)]
    /// fn refresh() -> &'static str {
    ///     "13 °C"
    /// }
    ///
    /// let page = AppPage::new("ui://weather/chart", "<!doctype html><canvas></canvas>");
    /// let server = Server::new("weather", "1.0.0")
    ///     .tool(history.into_tool().ui("ui://weather/chart"))
    ///     .tool(refresh.into_tool().app_only())
    ///     .app(page);
    /// # assert!(server.build().is_ok());
    /// ```
    #[must_use]
    pub fn ui(mut self, page: &str) -> Tool {
        self.set_ui("resourceUri", page.into());
        self.page = Some(page.to_owned());
        self
    }

    /// Makes the tool one for pages of MCP Apps: hosts hide it from their models.
    #[must_use]
    pub fn app_only(mut self) -> Tool {
        self.set_ui("visibility", json!(["app"]));
        self
    }

    fn set_ui(&mut self, member: &str, value: Value) {
        let mut settings = self
            .draft
            .nested("_meta", "ui")
            .unwrap_or_else(|| json!({}));
        settings[member] = value;
        self.draft.set_nested("_meta", "ui", settings);
    }
}

impl Cx {
    /// Returns whether the client declared that it shows pages of MCP Apps. Behind a gateway, the declaration is that of
    /// the gateway.
    pub fn shows_apps(&self) -> bool {
        let settings = self.client_capabilities().extension(EXTENSION);
        let types = settings.and_then(|settings| settings.get("mimeTypes"));
        types.is_some_and(|types| {
            types
                .items()
                .any(|mime| mime.string().as_deref() == Some(MIME))
        })
    }
}

/// Checks the page of a tool: it must be a resource of the server.
pub(super) fn check_page(tool: &Tool, resources: &[Resource]) -> Result<(), String> {
    let Some(page) = &tool.page else {
        return Ok(());
    };
    match resources.iter().any(|resource| resource.uri() == page) {
        true => Ok(()),
        false => Err(format!(
            "its page {page:?} is not a resource of the server; add it with Server::app"
        )),
    }
}

/// Checks the URI of a resource that is a page.
pub(super) fn check_uri(resource: &Resource) -> Result<(), String> {
    match resource.mime_type() == Some(MIME) && !resource.uri().starts_with("ui://") {
        true => Err("the URI of a page of MCP Apps begins with \"ui://\"".to_owned()),
        false => Ok(()),
    }
}

/// Returns the settings of the extension.
pub(super) fn extension_settings() -> Json {
    Json::from_value(&json!({"mimeTypes": [MIME]}))
}
