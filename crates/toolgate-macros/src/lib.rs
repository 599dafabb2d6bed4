//! The attributes of Toolgate: functions as tools and prompts.
//!
//! They are exported by `toolgate`, and what they make refers to it; use them from there.

mod arguments;
mod docs;
mod free;
mod options;
mod set;
#[cfg(test)]
mod tests;

use options::Options;
use proc_macro::TokenStream;

/// Makes a tool of a function: its parameters are the arguments, its doc comment is the description.
///
/// The name is then that of a function without parameters, which makes the `Tool`: `server.tool(forecast)`, or
/// `server.tool(forecast().icons(…))`. The function that was written is `forecast::call`.
///
/// - A parameter of type `Cx` is the context of the call. It may stand anywhere, or be left out.
/// - Doc comments on parameters are descriptions of arguments. `#[serde(…)]` and `#[schemars(…)]` on a parameter work
///   as on a field: `#[serde(default)]` for one that may be left out. So may one of type `Option`.
/// - Arguments that are no parameters are refused.
/// - It returns what implements `IntoOutput`, or a `Result` of that with any error that turns into `Stop`.
/// - It may be `async` or not.
///
/// | option | what it says |
/// | --- | --- |
/// | `name = "…"` | another name than that of the function |
/// | `title = "…"` | what people call it |
/// | `description = "…"` | another description than the doc comment |
/// | `read_only` | it changes nothing |
/// | `destructive = false` | it changes things, but destroys nothing |
/// | `idempotent` | a second call with the same arguments changes nothing more |
/// | `open_world = false` | it does not reach out of the server's own world |
/// | `task = "optional"`, `"required"` | it can, or must, be called as a task, for which its caller does not wait |
/// | `output = false` | no schema of the result |
/// | `crate = "…"` | the path of `toolgate`, where it has another name |
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    let options = Options::of(options.into(), options::TOOL);
    code(options.and_then(|options| free::tool(&options, syn::parse(item)?)))
}

/// Makes a set of tools of a type: the methods that carry `#[tool]`.
///
/// The methods stay as they are. They take `&self`, because calls run side by side: what changes is behind a lock. The
/// one option here is `crate = "…"`; those of `#[tool]` are as on a function.
#[proc_macro_attribute]
pub fn tools(options: TokenStream, item: TokenStream) -> TokenStream {
    let options = Options::of(options.into(), options::TOOLS);
    code(options.and_then(|options| set::tools(&options, syn::parse(item)?)))
}

/// Makes a prompt of a function: its parameters are the arguments, its doc comment is the description.
///
/// The name is then that of a function without parameters, which makes the `Prompt`: `server.prompt(review)`. The
/// function that was written is `review::call`. Clients send texts, so a parameter is a `String`, an `Option<String>`, or
/// an enum of words. It returns what implements `IntoMessages`, or a `Result` of that. Options: `name`, `title`, `description` and `crate`, as of `#[tool]`.
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    let options = Options::of(options.into(), options::PROMPT);
    code(options.and_then(|options| free::prompt(&options, syn::parse(item)?)))
}

/// The code, or the error at its place.
fn code(made: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    made.unwrap_or_else(syn::Error::into_compile_error).into()
}
