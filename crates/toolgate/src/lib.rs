//! MCP servers, clients and gateways, with a policy around each call that is on by default.
//!
//! - **Write a server**: [`Server`] with the macros [`tool`](macro@tool), [`prompt`](macro@prompt),
//!   [`resource`](macro@resource), [`template`](macro@template) and [`tools`](macro@tools), served by [`stdio()`] or [`http()`].
//! - **Write a client, a host or an agent**: [`Client`] connects to a server by URL, as a child process, or in the same
//!   process.
//! - **Extend the pipeline**: [`layer`], [`rule`] and [`sanitizer`] make parts of functions and of types.
//! - **Change the policy**: [`policy`] has the settings; [`auth`] has OAuth for both sides.
//! - **Build a gateway or a service of your own**: a [`Service`] offers items and runs each [`Call`]. [`edge`] serves it,
//!   [`client::RemoteServer`] makes a remote server one, and [`aggregate`] joins many into one.
//!
//! # Features
//!
//! All are on by default. No feature turns a check off: whatever a smaller build cannot check is an error.
//!
//! | feature | contents | without it |
//! | --- | --- | --- |
//! | `stdio` | [`stdio()`] | |
//! | `http-server` | [`http()`] | |
//! | `client` | [`Client`]: clients, also in the same process | |
//! | `http-client` | [`Client::connect`] | |
//! | `spawn` | [`Client::spawn`]: servers as child processes | |
//! | `auth` | [`auth`]: OAuth for both sides | |
//! | `macros` | [`tool`](macro@tool), [`tools`](macro@tools), [`prompt`](macro@prompt) | |
//! | `audit` | [`Server::audit_in`]: tamper-evident audit logs in files (Unix) | the records go to `tracing` only |
//! | `full-json-schema` | JSON Schemas with any keyword | [`Server::build`] rejects a tool with other keywords than the plain ones; a client withholds it |
//! | `full-regex` | regular expressions with any Unicode class, and their fastest search | a condition with a class such as `\p{Greek}` is an error |
//! | `full-uri` | resource URIs as the URL Standard reads them | requests for other than plain URIs are rejected |
//! | `secret-rule-files` | [`SecretRules::parse`](policy::SecretRules::parse): your own rules for secrets | only the built-in rules |
//! | `skills` | skills of servers and clients | `Server::build` rejects a skill; a client blocks its `SKILL.md` |
//! | `tasks` | [`Tool::task`]: calls that become tasks | no server offers tasks |
//!
//! Plain keywords are `type`, `enum`, `const`, `properties`, `required`, `additionalProperties`, `items`, `allOf`, `anyOf`,
//! `oneOf`, `not`, the limits of numbers and counts, and annotations such as `description` and `format` (2020-12).
//!
//! The [`guide`] shows how to use the crate. The examples in the repository are complete programs.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(all(
        unix,
        feature = "audit",
        feature = "auth",
        feature = "client",
        feature = "http-client",
        feature = "http-server",
        feature = "spawn",
        feature = "stdio",
        feature = "tasks"
    )),
    allow(dead_code, reason = "parts that only some transports use")
)]

#[cfg(feature = "http-client")]
#[doc(hidden)]
#[path = "fuzz.rs"]
pub mod __fuzz;
#[doc(hidden)]
#[path = "private/mod.rs"]
pub mod __private;
pub mod aggregate;
#[cfg(feature = "client")]
pub mod client;
pub mod edge;
pub mod guide;
pub mod handlers;
mod header_value;
#[doc(hidden)]
pub mod ids;
pub mod layer;
mod param_headers;
pub mod rule;
pub mod sanitizer;
mod seal;
mod serve;
pub mod transport;

#[cfg(feature = "client")]
pub use client::{CallResult, Client};
pub use handlers::{
    Cx, HandlerExit, Prompt, Resource, ResourceTemplate, Server, Structured, Tool, ToolError,
};
#[cfg(feature = "http-server")]
pub use serve::{Http, http};
#[cfg(feature = "stdio")]
pub use serve::{ServeError, stdio};
/// OAuth authorization over HTTP for both sides: a client signs in to protected servers, and a server [accepts access
/// tokens](Http::protected).
///
/// ```no_run
/// use toolgate::{Client, auth::{Url, client::{LoopbackBrowser, OAuthClient}}};
///
/// # async fn main_() -> Result<(), Box<dyn std::error::Error>> {
/// let url = "https://tools.example/mcp";
/// let browser = LoopbackBrowser::new(|page| eprintln!("sign in here: {}", page.as_str()));
/// let login = OAuthClient::builder(Url::parse(url)?).name("my-app").sign_in(browser).build();
/// login.sign_in().await?; // before connecting, so that no time-out applies
/// let client = Client::builder().credentials(login).connect(url).await?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "auth")]
pub use toolgate_auth as auth;
/// Services, calls, layers, rules and pipelines: the types that every server, client and policy shares.
pub use toolgate_core as core;
pub use toolgate_core::{Call, Caller, Content, Error, Json, Outcome, Service};
/// Makes a function a tool of an MCP server: its doc comments are the description, its parameters the input schema.
///
/// ```
/// use toolgate::{Cx, Server, HandlerExit, tool};
///
/// /// Weather of tomorrow.
/// #[tool(read_only)]
/// async fn forecast(
///     /// City name or postal code.
///     place: String,
///     cx: Cx,
/// ) -> Result<String, HandlerExit> {
///     cx.progress(1.0, 2.0, "asking the station");
///     Ok(format!("rain in {place}"))
/// }
///
/// let server = Server::new("weather", "1.0.0").tool(forecast);
/// # assert!(server.build().is_ok());
/// ```
///
/// A parameter is an argument, so it needs a name:
///
/// ```compile_fail
/// # use toolgate::tool;
/// #[tool]
/// async fn add((a, b): (u8, u8)) -> String {
///     (a + b).to_string()
/// }
/// ```
#[cfg(feature = "macros")]
pub use toolgate_macros::tool;
/// Policies and their settings: access rules, rate limits, size limits, time-outs, sanitizers and the audit log.
pub use toolgate_policy as policy;
/// Messages, definitions and revisions of the Model Context Protocol, without I/O.
pub use toolgate_protocol as protocol;

/// Makes methods of a type tools, prompts, resources and templates of an MCP server that share the state of a value.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use toolgate::{Server, tools};
///
/// #[derive(Default)]
/// struct Counter(AtomicU64);
///
/// #[tools]
/// impl Counter {
///     /// Counts up.
///     #[tool(destructive = false)]
///     async fn up(&self, by: u64) -> String {
///         (self.0.fetch_add(by, Ordering::Relaxed) + by).to_string()
///     }
/// }
///
/// let server = Server::new("counter", "1.0.0").tools(Counter::default());
/// # assert!(server.build().is_ok());
/// ```
#[cfg(feature = "macros")]
pub use toolgate_macros::tools;

/// Makes a function a prompt of an MCP server: its parameters are the prompt's arguments.
///
/// ```
/// use toolgate::{Server, prompt};
///
/// /// Reviews a text.
/// #[prompt]
/// fn review(
///     /// The text.
///     text: String,
///     /// How strict, from mild to harsh.
///     tone: Option<String>,
/// ) -> String {
///     let tone = tone.unwrap_or_else(|| "mild".to_owned());
///     format!("Give a {tone} review of this text:\n\n{text}")
/// }
///
/// let server = Server::new("reviews", "1.0.0").prompt(review);
/// # assert!(server.build().is_ok());
/// ```
///
/// A map takes all arguments, and the prompt then declares none. The option `complete` names the completion functions of
/// arguments:
///
/// ```
/// use std::collections::BTreeMap;
/// use toolgate::{Cx, HandlerExit, Server, prompt};
///
/// /// Fills in a form.
/// #[prompt]
/// fn form(#[serde(flatten)] fields: BTreeMap<String, String>) -> String {
///     format!("Check this form: {fields:?}")
/// }
///
/// /// Greets in a language.
/// #[prompt(complete(language = languages))]
/// fn greet(language: String) -> String {
///     format!("Greet the user in {language}.")
/// }
///
/// async fn languages(typed: String, _cx: Cx) -> Result<Vec<String>, HandlerExit> {
///     let languages = ["Danish", "Dutch", "Norwegian"].into_iter();
///     Ok(languages.filter(|name| name.starts_with(&typed)).map(str::to_owned).collect())
/// }
///
/// let server = Server::new("forms", "1.0.0").prompt(form).prompt(greet);
/// # assert!(server.build().is_ok());
/// ```
///
/// An argument is read from text, so its type implements `FromStr` or `serde::Deserialize`:
///
/// ```compile_fail,E0277
/// # use toolgate::prompt;
/// struct Unreadable;
///
/// #[prompt]
/// fn review(text: Unreadable) -> String {
///     String::new()
/// }
/// ```
#[cfg(feature = "macros")]
pub use toolgate_macros::prompt;

/// Makes a function a resource of an MCP server: it returns the contents of one URI.
///
/// ```
/// use toolgate::{Server, resource};
///
/// /// Terms of use.
/// #[resource("shop:///terms", mime = "text/plain")]
/// fn terms() -> &'static str {
///     "Returns within 30 days."
/// }
///
/// let server = Server::new("shop", "1.0.0").resource(terms);
/// # assert!(server.build().is_ok());
/// ```
///
/// A resource has no arguments:
///
/// ```compile_fail
/// # use toolgate::resource;
/// #[resource("shop:///orders")]
/// fn order(id: u32) -> String {
///     id.to_string()
/// }
/// ```
///
/// The return type implements [`IntoContents`](handlers::IntoContents):
///
/// ```compile_fail,E0277
/// # use toolgate::resource;
/// struct Terms;
///
/// #[resource("shop:///terms")]
/// fn terms() -> Terms {
///     Terms
/// }
/// ```
#[cfg(feature = "macros")]
pub use toolgate_macros::resource;

/// Makes a function a resource template of an MCP server: its parameters are the variables of the URI template.
///
/// ```
/// use toolgate::{Server, Structured, ToolError, template};
///
/// #[derive(serde::Serialize)]
/// struct Order {
///     id: u32,
///     open: bool,
/// }
///
/// /// Order of a customer.
/// #[template("shop:///orders/{id}")]
/// async fn order(id: u32) -> Result<Structured<Order>, ToolError> {
///     match id {
///         1..100 => Ok(Structured(Order { id, open: true })),
///         _ => Err(ToolError::not_found(format!("there is no order {id}"))),
///     }
/// }
///
/// let server = Server::new("shop", "1.0.0").template(order);
/// # assert!(server.build().is_ok());
/// ```
///
/// Variables and parameters have the same names:
///
/// ```compile_fail
/// # use toolgate::template;
/// #[template("shop:///orders/{id}")]
/// fn order(number: u32) -> String {
///     number.to_string()
/// }
/// ```
///
/// A variable is read from text, so its type implements `FromStr` or `serde::Deserialize`:
///
/// ```compile_fail,E0277
/// # use toolgate::template;
/// struct Unreadable;
///
/// #[template("shop:///orders/{id}")]
/// fn order(id: Unreadable) -> String {
///     String::new()
/// }
/// ```
#[cfg(feature = "macros")]
pub use toolgate_macros::template;

/// Doctests of the examples in the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Doctests of the examples in the book.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/extend-the-pipeline.md")]
#[doc = include_str!("../../../docs/guides/from-rmcp.md")]
#[doc = include_str!("../../../docs/guides/from-fastmcp.md")]
#[doc = include_str!("../../../docs/reference/stability.md")]
struct BookGuide;
