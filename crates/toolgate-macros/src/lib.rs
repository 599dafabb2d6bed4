//! Attribute macros of Toolgate: functions as tools and prompts.
//!
//! The crate `toolgate` exports them and the generated code refers to it, so use them from there.

mod arguments;
mod docs;
mod free;
mod options;
mod set;
#[cfg(test)]
mod tests;

use options::AttributeOptions;
use proc_macro::TokenStream;

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
/// | `crate = "…"` | the path of `toolgate`, if it has another name |
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    let options = AttributeOptions::of(options.into(), options::TOOL);
    into_tokens(options.and_then(|options| free::tool(&options, syn::parse(item)?)))
}

/// Turns the methods of a type that are marked `#[tool]` into a set of MCP tools, which share one value of the type.
///
/// The methods stay unchanged. They take `&self`, because calls run concurrently: put mutable state behind a lock.
/// The only option here is `crate = "…"`; the options of `#[tool]` are the same as on a function.
#[proc_macro_attribute]
pub fn tools(options: TokenStream, item: TokenStream) -> TokenStream {
    let options = AttributeOptions::of(options.into(), options::TOOLS);
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
/// Options: `name`, `title`, `description` and `crate`, as of `#[tool]`.
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    let options = AttributeOptions::of(options.into(), options::PROMPT);
    into_tokens(options.and_then(|options| free::prompt(&options, syn::parse(item)?)))
}

/// Returns the generated code, or a compile error at its source location.
fn into_tokens(made: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    made.unwrap_or_else(syn::Error::into_compile_error).into()
}
