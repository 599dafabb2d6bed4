//! Analysis of the arguments that a condition reads, also of whether it may read a redacted part.

use super::tree::{BinaryOperator, CelExpr};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Names of the top-level call arguments that CEL conditions read: certain ones, or any.
#[doc(hidden)]
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ArgumentNames {
    /// The CEL conditions read only call arguments with these names; possibly none.
    Some(BTreeSet<String>),
    /// The CEL conditions may read any call argument: they compute a name or iterate over all.
    All,
}

impl Default for ArgumentNames {
    fn default() -> ArgumentNames {
        ArgumentNames::Some(BTreeSet::new())
    }
}

impl ArgumentNames {
    /// Adds the argument names that another CEL condition reads.
    pub fn extend(&mut self, other: &ArgumentNames) {
        match (&mut *self, other) {
            (ArgumentNames::Some(names), ArgumentNames::Some(more)) => {
                names.extend(more.iter().cloned());
            }
            _ => *self = ArgumentNames::All,
        }
    }

    /// Returns whether a CEL condition reads the argument with this name.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            ArgumentNames::Some(names) => names.contains(name),
            ArgumentNames::All => true,
        }
    }

    /// Returns whether no CEL condition reads any argument.
    pub fn is_empty(&self) -> bool {
        matches!(self, ArgumentNames::Some(names) if names.is_empty())
    }
}

/// Returns the names of the top-level call arguments whose values an expression may read.
pub(super) fn argument_names(expr: &CelExpr) -> ArgumentNames {
    let mut names = ArgumentNames::default();
    add_names(expr, &mut names);
    names
}

/// Returns whether an expression may read a text in `args` that contains `mark`.
pub(super) fn may_read_mark(expr: &CelExpr, args: &Value, mark: &str) -> bool {
    MarkSearch { args, mark }.at(expr)
}

fn add_names(expr: &CelExpr, names: &mut ArgumentNames) {
    let one = |key: &String| ArgumentNames::Some(BTreeSet::from([key.clone()]));
    match expr {
        CelExpr::Args => *names = ArgumentNames::All,
        CelExpr::Select(of, key) if is_args(of) => names.extend(&one(key)),
        // These read only the presence of a name, not its value.
        CelExpr::Has(of, _) if is_args(of) => {}
        CelExpr::Binary(BinaryOperator::In, parts) if is_args(&parts[1]) => {
            add_names(&parts[0], names)
        }
        CelExpr::Index(of, at) if is_args(of) => match at.as_ref() {
            CelExpr::Text(key) => names.extend(&one(key)),
            _ => *names = ArgumentNames::All,
        },
        other => other
            .parts()
            .into_iter()
            .for_each(|part| add_names(part, names)),
    }
}

fn is_args(expr: &CelExpr) -> bool {
    matches!(expr, CelExpr::Args)
}

struct MarkSearch<'a> {
    args: &'a Value,
    mark: &'a str,
}

/// The result of following a path.
enum PathEnd<'a> {
    /// An unredacted value or a container.
    Visible(&'a Value),
    /// No value.
    Nothing,
    /// A value that is hidden by a mark.
    Hidden,
}

impl<'a> MarkSearch<'a> {
    fn at(&self, expr: &CelExpr) -> bool {
        if let CelExpr::Has(of, key) = expr
            && let Some(end) = self.end(of)
        {
            // Its presence reveals nothing about its value.
            return matches!(self.step(end, key), PathEnd::Hidden);
        }
        // A test for a name in an object reads none of its values.
        if let CelExpr::Binary(BinaryOperator::In, parts) = expr
            && let Some(PathEnd::Visible(Value::Object(map))) = self.end(&parts[1])
        {
            return self.marks_keys(map) || self.at(&parts[0]);
        }
        match self.end(expr) {
            Some(PathEnd::Hidden) => true,
            Some(PathEnd::Nothing) => false,
            Some(PathEnd::Visible(value)) => self.marks(value),
            None => expr.parts().into_iter().any(|part| self.at(part)),
        }
    }

    /// Follows a path of literal names from the arguments; `None` for any other expression.
    fn end(&self, expr: &CelExpr) -> Option<PathEnd<'a>> {
        match expr {
            CelExpr::Args => Some(PathEnd::Visible(self.args)),
            CelExpr::Select(of, key) => Some(self.step(self.end(of)?, key)),
            CelExpr::Index(of, at) => match at.as_ref() {
                CelExpr::Text(key) => Some(self.step(self.end(of)?, key)),
                _ => None,
            },
            _ => None,
        }
    }

    fn step(&self, end: PathEnd<'a>, key: &str) -> PathEnd<'a> {
        match end {
            PathEnd::Visible(Value::Object(map)) => match map.get(key) {
                Some(value) => PathEnd::Visible(value),
                None if self.marks_keys(map) => PathEnd::Hidden,
                None => PathEnd::Nothing,
            },
            PathEnd::Visible(value) if self.marks(value) => PathEnd::Hidden,
            PathEnd::Visible(_) => PathEnd::Nothing,
            end => end,
        }
    }

    fn marks(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => text.contains(self.mark),
            Value::Array(all) => all.iter().any(|one| self.marks(one)),
            Value::Object(map) => self.marks_keys(map) || map.values().any(|one| self.marks(one)),
            _ => false,
        }
    }

    fn marks_keys(&self, map: &Map<String, Value>) -> bool {
        map.keys().any(|key| key.contains(self.mark))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CelCondition;
    use serde_json::json;

    #[test]
    fn detects_reads_of_marked_values() {
        let args = json!({
            "path": "/a", "token": "[redacted:x:1]", "deep": {"a": 1, "b": "see [redacted:y:2]"},
            "list": ["a", "[redacted:x:1]"], "keys": {"[redacted:z:3]": 1},
        });
        let reads = |text: &str| {
            CelCondition::compile(text)
                .unwrap()
                .may_read_mark(&args, "[redacted:")
        };
        for text in [
            "args.path == '/a'",
            "args['path'].startsWith('/')",
            "has(args.token) && has(args.none)",
            "args.deep.a == 1",
            "args.none == 1",
            "caller.name == 'a'",
            "'token' in args.deep",
        ] {
            assert!(!reads(text), "{text}");
        }
        for text in [
            "args.token == 'a'",
            "args.path == '/a' && size(args.token) > 1",
            "args.token.more == 1",
            "has(args.token.more)",
            "args['token'] == 'a'",
            "args.deep.b.contains('x')",
            "args.list[0] == 'a'",
            "args.list.exists(x, x == 'a')",
            "args.keys.a == 1",
            "has(args.keys.a)",
            "args.all(k, k != 'a')",
            "args[args.path] == 1",
            "'a' in args.keys",
        ] {
            assert!(reads(text), "{text}");
        }
    }

    #[test]
    fn names_the_arguments_that_a_condition_reads() {
        let names = |text: &str| CelCondition::compile(text).unwrap().argument_names();
        let some =
            |all: &[&str]| ArgumentNames::Some(all.iter().map(|n| (*n).to_owned()).collect());
        for (text, read) in [
            ("caller.name == 'a' || time.hour > 3", &[][..]),
            ("has(args.a) && 'b' in args", &[]),
            ("args.path == '/a' || has(args.deep.b)", &["deep", "path"]),
            ("args['a-b'].startsWith(args.c)", &["a-b", "c"]),
            ("args.list.exists(x, x == args.y)", &["list", "y"]),
        ] {
            assert_eq!(names(text), some(read), "{text}");
        }
        for text in [
            "args.all(k, k != 'a')",
            "args[args.path] == 1",
            "size(args) > 1",
        ] {
            assert_eq!(names(text), ArgumentNames::All, "{text}");
        }
    }
}
