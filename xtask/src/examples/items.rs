//! Public items that need an example, from the snapshots of the API.

use std::collections::BTreeSet;

/// Types that authors of servers, clients and pipelines use directly: their methods need an example as well.
pub(super) const AUTHOR_TYPES: [&str; 20] = [
    "Call",
    "CallResult",
    "Caller",
    "Client",
    "ClientBuilder",
    "Cx",
    "Error",
    "HandlerExit",
    "Http",
    "Policy",
    "Prompt",
    "Question",
    "Resource",
    "ResourceContents",
    "ResourceTemplate",
    "Server",
    "Skill",
    "Tool",
    "ToolCallBuilder",
    "ToolError",
];

/// Methods of traits of the standard library, of tower and of serde, and of conversions that the library itself calls.
/// They need no example.
const FOREIGN_METHODS: [&str; 21] = [
    "call",
    "clone",
    "cmp",
    "default",
    "deref",
    "deref_mut",
    "deserialize",
    "drop",
    "eq",
    "fmt",
    "from",
    "hash",
    "into_contents",
    "into_future",
    "into_prompt",
    "into_resource",
    "into_resource_template",
    "into_server",
    "partial_cmp",
    "poll_ready",
    "source",
];

/// Public item of a snapshot.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct PublicItem {
    /// Full path, for the list.
    pub(super) path: String,
    /// Kind of use that counts as an example.
    pub(super) shape: ItemShape,
    /// Names of the types that a free function returns: an example that calls it uses them.
    pub(super) returns: Vec<String>,
}

/// Kind of a public item, which decides what counts as a use.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum ItemShape {
    /// Type, trait or macro: its name.
    Name,
    /// Free function: a call.
    Function,
    /// Method of a type in [`AUTHOR_TYPES`]: a call.
    Method,
}

impl PublicItem {
    /// Returns the last segment of the path.
    pub(super) fn name(&self) -> &str {
        self.path.rsplit("::").next().unwrap_or(&self.path)
    }

    /// Returns the type of a method; empty for an item of a module, wherever it is exported.
    fn owner(&self) -> &str {
        let owner = self.path.rsplit("::").nth(1).unwrap_or_default();
        match owner.starts_with(char::is_uppercase) {
            true => owner,
            false => "",
        }
    }
}

/// Reads the items of a snapshot that need an example, each once even if several modules export it.
pub(super) fn read(snapshot: &str) -> Vec<PublicItem> {
    let mut known = BTreeSet::new();
    let items = snapshot.lines().filter_map(item);
    items
        .filter(|item| {
            let owner = item.owner().to_owned();
            known.insert((owner, item.name().to_owned(), item.returns.clone()))
        })
        .collect()
}

/// Reads a line of a snapshot; `None` if it is no item of the crate, or one that needs no example.
fn item(line: &str) -> Option<PublicItem> {
    let mut rest = line;
    while let Some((_, after)) = rest
        .strip_prefix("#[")
        .and_then(|rest| rest.split_once("] "))
    {
        rest = after;
    }
    rest = rest.strip_prefix("pub ")?;
    for qualifier in ["const ", "async ", "unsafe ", "proc "] {
        rest = rest.strip_prefix(qualifier).unwrap_or(rest);
    }
    let (keyword, rest) = rest.split_once(' ')?;
    let item = |shape| {
        let path = path_without_generics(rest);
        path.starts_with("toolgate").then_some(PublicItem {
            path,
            shape,
            returns: Vec::new(),
        })
    };
    match keyword {
        "struct" | "enum" | "trait" | "macro" => item(ItemShape::Name),
        "fn" => {
            let found = item(ItemShape::Function)?;
            let owner = found.owner();
            if !owner.starts_with(char::is_uppercase) {
                return Some(PublicItem {
                    returns: returned_types(rest),
                    ..found
                });
            }
            let needed = AUTHOR_TYPES.contains(&owner) && !FOREIGN_METHODS.contains(&found.name());
            needed.then_some(PublicItem {
                shape: ItemShape::Method,
                ..found
            })
        }
        _ => None,
    }
}

/// Returns the names in the return type of a function's signature.
fn returned_types(signature: &str) -> Vec<String> {
    let bounds = signature.find(" where ").unwrap_or(signature.len());
    let result = signature[..bounds].rsplit_once(" -> ");
    let result = result.map_or("", |(_, result)| result);
    let names = result.split(|c: char| !c.is_alphanumeric() && c != '_');
    let types = names.filter(|name| name.starts_with(char::is_uppercase));
    types.map(str::to_owned).collect()
}

/// Returns the path at the beginning of a text, without the generic arguments in it.
fn path_without_generics(text: &str) -> String {
    let mut path = String::new();
    let (mut depth, mut rest) = (0_usize, text);
    while let Some(next) = rest.chars().next() {
        let step = match rest.starts_with("::") {
            true => 2,
            false => next.len_utf8(),
        };
        match next {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            _ if step == 2 => path.push_str("::"),
            _ if next.is_alphanumeric() || next == '_' => path.push(next),
            _ => break,
        }
        rest = &rest[step..];
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(snapshot: &str) -> Vec<(String, ItemShape)> {
        let items = read(snapshot).into_iter();
        items.map(|item| (item.path.clone(), item.shape)).collect()
    }

    #[test]
    fn reads_types_functions_and_methods_of_author_types() {
        let found = names(
            "pub mod toolgate\n#[non_exhaustive] pub enum toolgate::client::CallState\n\
             pub fn toolgate::handlers::ask::Question<T>::map<U>(self) -> u8\n\
             pub async fn toolgate::serve(u8)\npub trait toolgate::Tower: core::marker::Send\n",
        );
        let expected = [
            ("toolgate::client::CallState", ItemShape::Name),
            ("toolgate::handlers::ask::Question::map", ItemShape::Method),
            ("toolgate::serve", ItemShape::Function),
            ("toolgate::Tower", ItemShape::Name),
        ];
        assert_eq!(
            found,
            expected.map(|(path, shape)| (path.to_owned(), shape))
        );
    }

    #[test]
    fn a_function_has_the_types_that_it_returns() {
        let found = read(
            "pub fn a::f(b::Arg) -> u8\npub fn toolgate::rule::from_fn<F>(F) -> toolgate::rule::FnRule<F> where F: Fn(u8) -> X",
        );
        let returns: Vec<&String> = found.iter().flat_map(|item| &item.returns).collect();
        assert_eq!(returns[0], "FnRule");
    }

    #[test]
    fn leaves_out_fields_foreign_methods_and_second_exports() {
        let found = names(
            "pub toolgate::Limits::bytes: usize\npub fn toolgate::Server::fmt(&self)\n\
             pub fn alloc::sync::Arc<T>::call(&self)\npub fn toolgate::Gauge::read(&self)\n\
             pub struct toolgate::Tool\npub struct toolgate::handlers::Tool\n",
        );
        assert_eq!(found.len(), 1, "{found:?}");
    }
}
