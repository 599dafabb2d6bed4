//! Paths from `crate` and `super` in a source text.

use std::collections::{BTreeMap, BTreeSet};

/// Modules and re-exports of a crate root.
#[derive(Default)]
pub(super) struct CrateRoot {
    modules: BTreeSet<String>,
    /// Re-exported names, each with its module.
    re_exports: BTreeMap<String, String>,
}

impl CrateRoot {
    /// Reads the root, without test code.
    pub(super) fn read(text: &str) -> CrateRoot {
        let mut found = CrateRoot::default();
        for (at, _) in text.match_indices("mod ") {
            let name = identifier(&text[at + 4..]);
            if starts_word(text, at) && !name.is_empty() {
                found.modules.insert(name.to_owned());
            }
        }
        for (at, _) in text
            .match_indices("use ")
            .filter(|(at, _)| starts_word(text, *at))
        {
            for path in path_tree(&text[at + 4..]) {
                let path = path.strip_prefix(&["crate".to_owned()]).unwrap_or(&path);
                if let [module, .., name] = path
                    && found.modules.contains(module)
                {
                    found.re_exports.insert(name.clone(), module.clone());
                }
            }
        }
        found
    }

    /// Returns whether the root declares a module.
    pub(super) fn has_module(&self, name: &str) -> bool {
        self.modules.contains(name)
    }

    /// Returns the module of a name in the root.
    fn module_of<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        match self.has_module(name) {
            true => Some(name),
            false => self.re_exports.get(name).map(String::as_str),
        }
    }
}

/// Returns the top-level modules that a text refers to. `depth` is the number of `super` from there to the root.
pub(super) fn imported_modules(
    text: &str,
    depth: usize,
    crate_root: &CrateRoot,
) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for start in ["crate::", "super::"] {
        for (at, _) in text.match_indices(start) {
            // The rest of a path is read with its beginning.
            if !starts_word(text, at) || text[..at].ends_with("::") {
                continue;
            }
            for path in path_tree(&text[at..]) {
                let supers = path.iter().take_while(|word| *word == "super").count();
                let name = match path.first().map(String::as_str) {
                    Some("crate") => path.get(1),
                    _ if supers == depth => path.get(supers),
                    _ => None,
                };
                let module = name.and_then(|name| crate_root.module_of(name));
                found.extend(module.map(str::to_owned));
            }
        }
    }
    found
}

/// Reads a path with its groups: `a::{b, c::d as e}` is `a b` and `a c d e`.
fn path_tree(text: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    read_tree(text, &mut Vec::new(), &mut paths);
    paths
}

/// Returns the text after the tree.
fn read_tree<'a>(text: &'a str, before: &mut Vec<String>, paths: &mut Vec<Vec<String>>) -> &'a str {
    let mut rest = text.trim_start();
    let length = before.len();
    loop {
        if let Some(group) = rest.strip_prefix('{') {
            rest = group;
            loop {
                rest = rest.trim_start().trim_start_matches(',').trim_start();
                let inner = rest.strip_prefix('}');
                if inner.is_some() || rest.is_empty() {
                    rest = inner.unwrap_or_default();
                    break;
                }
                let after = read_tree(rest, before, paths);
                if after.len() == rest.len() {
                    break;
                }
                rest = after;
            }
            break;
        }
        let word = match rest.strip_prefix('*') {
            Some(_) => "*",
            None => identifier(rest),
        };
        rest = &rest[word.len()..];
        before.push(word.to_owned());
        match rest.trim_start().strip_prefix("::") {
            Some(more) if !word.is_empty() => rest = more.trim_start(),
            _ => {
                let renamed = rest.trim_start().strip_prefix("as ");
                if let Some(after) = renamed {
                    let name = identifier(after.trim_start());
                    before.push(name.to_owned());
                    rest = &after.trim_start()[name.len()..];
                }
                paths.push(before.clone());
                break;
            }
        }
    }
    before.truncate(length);
    rest
}

fn starts_word(text: &str, at: usize) -> bool {
    !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imported(text: &str, depth: usize) -> Vec<String> {
        let root = CrateRoot::read(
            "mod alpha;\npub mod beta;\nmod gamma;\nmod delta;\npub use gamma::{Gone, inner::Thing as Named};\n",
        );
        imported_modules(text, depth, &root).into_iter().collect()
    }

    #[test]
    fn reads_paths_groups_and_nested_groups() {
        assert_eq!(imported("use crate::alpha;", 1), ["alpha"]);
        assert_eq!(
            imported(
                "use crate::{alpha::{self, A}, beta::b::*,\n    delta as other};",
                1
            ),
            ["alpha", "beta", "delta"]
        );
        assert_eq!(imported("fn f() { crate::beta::g(1) }", 1), ["beta"]);
        assert!(imported("use other::alpha; use mycrate::beta;", 1).is_empty());
    }

    #[test]
    fn follows_the_re_exports_of_the_root() {
        assert_eq!(imported("use crate::Named;", 1), ["gamma"]);
        assert_eq!(imported("fn f(_: crate::Gone) {}", 1), ["gamma"]);
        assert!(imported("use crate::Thing;", 1).is_empty());
    }

    #[test]
    fn counts_super_up_to_the_root_only() {
        assert_eq!(
            imported("use super::{alpha, beta::B};", 1),
            ["alpha", "beta"]
        );
        assert!(imported("use super::alpha;", 2).is_empty());
        assert_eq!(imported("use super::super::alpha::A;", 2), ["alpha"]);
    }
}
