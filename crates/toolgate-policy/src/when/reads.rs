//! Whether a condition looks at a part of the arguments that was taken out of them.

use super::{When, tree::Expr};
use serde_json::{Map, Value};

impl When {
    /// Whether it may look at something whose place holds a text with this mark. It is told by the paths that it names:
    /// where it computes one, all that lies there counts.
    pub fn may_read(&self, args: &Value, mark: &str) -> bool {
        let look = Look { args, mark };
        look.at(&self.0.expr)
    }
}

struct Look<'a> {
    args: &'a Value,
    mark: &'a str,
}

/// What lies at the end of a path.
enum End<'a> {
    /// A value that is what it was.
    There(&'a Value),
    /// Nothing.
    Nothing,
    /// Nobody can tell.
    Hidden,
}

impl<'a> Look<'a> {
    fn at(&self, expr: &Expr) -> bool {
        if let Expr::Has(of, key) = expr
            && let Some(end) = self.end(of)
        {
            // That it is there says nothing of what it is.
            return matches!(self.step(end, key), End::Hidden);
        }
        match self.end(expr) {
            Some(End::Hidden) => true,
            Some(End::Nothing) => false,
            Some(End::There(value)) => self.marks(value),
            None => expr.parts().into_iter().any(|part| self.at(part)),
        }
    }

    /// Where a path leads that begins with the arguments and is written out; `None` for anything else.
    fn end(&self, expr: &Expr) -> Option<End<'a>> {
        match expr {
            Expr::Args => Some(End::There(self.args)),
            Expr::Select(of, key) => Some(self.step(self.end(of)?, key)),
            Expr::Index(of, at) => match at.as_ref() {
                Expr::Text(key) => Some(self.step(self.end(of)?, key)),
                _ => None,
            },
            _ => None,
        }
    }

    fn step(&self, end: End<'a>, key: &str) -> End<'a> {
        match end {
            End::There(Value::Object(map)) => match map.get(key) {
                Some(value) => End::There(value),
                None if self.marks_keys(map) => End::Hidden,
                None => End::Nothing,
            },
            End::There(value) if self.marks(value) => End::Hidden,
            End::There(_) => End::Nothing,
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
    use serde_json::json;

    #[test]
    fn only_what_is_looked_at_counts() {
        let args = json!({
            "path": "/a", "token": "[redacted:x:1]", "deep": {"a": 1, "b": "see [redacted:y:2]"},
            "list": ["a", "[redacted:x:1]"], "keys": {"[redacted:z:3]": 1},
        });
        let reads = |text: &str| When::compile(text).unwrap().may_read(&args, "[redacted:");
        for text in [
            "args.path == '/a'",
            "args['path'].startsWith('/')",
            "has(args.token) && has(args.none)",
            "args.deep.a == 1",
            "args.none == 1",
            "caller.name == 'a'",
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
}
