//! Attribute macros of Toolgate: functions as tools, prompts, resources and templates.
//!
//! The crate `toolgate` exports them and the generated code refers to it, so use them from there.

mod arguments;
mod complete;
mod completion_handlers;
mod docs;
mod free;
mod kind;
mod limits;
mod options;
mod rename;
mod set;
#[cfg(test)]
mod tests;
mod uri;

use kind::ItemKind;
use options::AttributeOptions;
use proc_macro::TokenStream;
use set::BlockOptions;

/// Turns a function into an MCP tool: its parameters are the arguments, its doc comment is the description.
///
/// The name then denotes a function without parameters that returns the `Tool`: `server.tool(forecast)`, or
/// `server.tool(forecast().icons(…))`. The annotated function itself is `forecast::call`.
///
/// - A parameter of type `Cx` is the context of the call. It may be at any position, or be omitted.
/// - Doc comments on parameters are descriptions of arguments. `#[serde(…)]` and `#[schemars(…)]` on a parameter work
///   as on a field. `#[serde(default)]` makes an argument optional, and so does the type `Option`.
/// - Unknown arguments are rejected.
/// - It returns a type that implements `IntoOutput`, or a `Result` of that with any error that converts into `HandlerExit`.
/// - It may be `async` or not.
///
/// | option | meaning |
/// | --- | --- |
/// | `name = "…"` | another name than that of the function |
/// | `title = "…"` | display name |
/// | `description = "…"` | another description than the doc comment |
/// | `read_only` | it changes nothing |
/// | `destructive = false` | it changes things, but destroys nothing |
/// | `idempotent` | a second call with the same arguments changes nothing more |
/// | `open_world = false` | it does not interact with anything outside of the server |
/// | `task = "optional"`, `"required"` | it can, or must, be called as a task, without waiting for the result |
/// | `output = false` | no output schema |
/// | `icon = "…"` | URL of an icon |
/// | `timeout = "5s"` | time limit of a call; units are `ms`, `s`, `min` and `h` |
/// | `concurrency = 4` | number of calls at once; further calls wait |
/// | `rate = "10/min"` | rate limit of each caller |
/// | `max_result_bytes = 65536` | maximum size of a result |
/// | `ui = "ui://…"` | page of MCP Apps that shows the result |
/// | `app_only` | only pages call the tool, not models |
/// | `crate = "…"` | the path of `toolgate`, if it has another name |
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    expand(options, item, ItemKind::Tool)
}

/// Turns the methods of a type that are marked `#[tool]`, `#[prompt]`, `#[resource]` or `#[template]` into items of an
/// MCP server, which share one value of the type: `server.tools(value)`.
///
/// The methods stay unchanged. They take `&self`, because calls run concurrently: put mutable state behind a lock.
/// The options of the attributes are the same as on a function.
///
/// A type can have several blocks, also in several modules. One block needs no name. For each other one, give the
/// function that returns its items, with its visibility: `#[tools(pub fn admin)]` makes the method `admin` of
/// `Arc<Type>`, for `server.tools(value.clone()).tools(value.admin())`.
///
/// The only other option is `crate = "…"`.
#[proc_macro_attribute]
pub fn tools(options: TokenStream, item: TokenStream) -> TokenStream {
    let options = BlockOptions::of(options.into());
    into_tokens(options.and_then(|options| set::tools(&options, syn::parse(item)?)))
}

/// Turns a function into an MCP prompt: its parameters are the arguments, its doc comment is the description.
///
/// The name then denotes a function without parameters that returns the `Prompt`: `server.prompt(review)`. The
/// annotated function itself is `review::call`.
///
/// Clients send text. A parameter has a type that implements `serde::Deserialize` or `FromStr`, for example `String`,
/// `i32`, `bool` or an enum, or is an `Option` of one. Lists and objects are read from JSON text. An argument that cannot
/// be read is an error that names it. The function returns a type that implements `IntoMessages`, or a `Result` of that.
///
/// A single parameter `#[serde(flatten)] arguments: BTreeMap<String, String>` takes all arguments. The prompt then
/// declares none, and clients can send any.
///
/// Options: `name`, `title`, `description`, `icon` and `crate`, as of `#[tool]`, and
/// `complete(city = cities, country = Self::countries)`: the completion functions of arguments. A function of the same
/// `#[tools]` block is named with `Self::`. It takes the text typed so far as a `String`, and optionally `&self` and
/// `Cx`. It returns values that convert to `String`, in a `Vec` or another iterator, or a `Result` of that, and may be
/// `async` or not. Any other function has the signature that `Prompt::complete` takes: `async` with a `String` and `Cx`,
/// and a `Result` of `Vec<String>`.
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    expand(options, item, ItemKind::Prompt)
}

/// Turns a function into an MCP resource with a URI: its return value is the contents, its doc comment is the
/// description.
///
/// The name then denotes a function without parameters that returns the `Resource`: `server.resource(about)`. The
/// annotated function itself is `about::call`. Its only parameter is the context, `Cx`, which may be omitted.
///
/// It returns a type that implements `IntoContents`: text, `Vec<u8>`, `Structured(value)` as JSON, or
/// `ResourceContents`; or a `Result` of that. It may be `async` or not.
///
/// Options after the URI: `name`, `title`, `description`, `icon` and `crate`, as of `#[tool]`, and `mime = "…"`, the MIME type.
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    expand(options, item, ItemKind::Resource)
}

/// Turns a function into an MCP resource template: the variables of the URI template (RFC 6570) are its parameters.
///
/// The name then denotes a function without parameters that returns the `ResourceTemplate`: `server.template(note)`.
/// The annotated function itself is `note::call`.
///
/// - Each variable is a parameter of the same name, of a type that implements `serde::Deserialize` or `FromStr`. A
///   variable of a query, such as `{?page}`, may be absent: its type is an `Option`.
/// - A value that cannot be read as the type is a "not found" error that names the variable.
/// - Values are not percent-decoded, and they come from the caller: validate them before you use them in a file path.
/// - A parameter of type `Cx` is the context of the call.
///
/// The return type and the options are those of `#[resource]`. In addition, there is the option `complete` of
/// `#[prompt]`, for the variables.
#[proc_macro_attribute]
pub fn template(options: TokenStream, item: TokenStream) -> TokenStream {
    expand(options, item, ItemKind::Template)
}

/// Expands the attribute of an item on a function.
fn expand(options: TokenStream, item: TokenStream, kind: ItemKind) -> TokenStream {
    let options = AttributeOptions::of_item(options.into(), kind);
    into_tokens(options.and_then(|options| free::expand(&options, syn::parse(item)?, kind)))
}

/// Returns the generated code, or a compile error at its source location.
fn into_tokens(made: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    made.unwrap_or_else(syn::Error::into_compile_error).into()
}
