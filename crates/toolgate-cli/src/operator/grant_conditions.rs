//! Conditions that the console proposes for remembering an approval, made from the arguments of the call.

use crate::operator::masked_arguments::PLACEHOLDER_PREFIX;
use toolgate_core::{CallArguments, Caller, Item, ItemKind, Json};
use toolgate_policy::{CelCondition, ConditionFacts};
use toolgate_protocol::json::{JsonKind, write_string};

/// Maximum number of proposals.
const MAX_PROPOSALS: usize = 8;
/// Maximum length of a text that a condition compares exactly, in bytes.
const MAX_EXACT_BYTES: usize = 200;

/// Maximum number of parent folders of a path that are proposed.
const MAX_FOLDERS: usize = 2;

/// Proposes conditions for a call with these arguments, whose secrets are masked: the narrowest first. A masked value
/// is part of no condition.
pub(crate) fn propose(item: &Item, masked: &Json) -> Vec<String> {
    let takes = matches!(item.kind(), ItemKind::Tool | ItemKind::Prompt);
    if masked.kind() != JsonKind::Object || !takes {
        return Vec::new();
    }
    let mut exact = Vec::new();
    let mut wider = Vec::new();
    for (name, value) in masked.members() {
        let path = access_path(&name);
        exact.extend(exact_condition(&path, &value));
        match value.string() {
            Some(text) => wider.extend(wider_conditions(&path, &text)),
            None if value.kind() == JsonKind::Number => {
                wider.push(format!("{path} <= {}", value.as_str()));
            }
            None => {}
        }
    }
    let whole = (exact.len() > 1).then(|| exact.join(" && "));
    let mut all: Vec<String> = whole.into_iter().chain(exact).chain(wider).collect();
    all.retain(|when| CelCondition::compile(when).is_ok());
    all.truncate(MAX_PROPOSALS);
    all
}

/// Returns the expression that reads an argument.
fn access_path(name: &str) -> String {
    let mut chars = name.chars();
    let word = chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    match word && chars.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        true => format!("args.{name}"),
        false => format!("args[{}]", quoted(name)),
    }
}

fn exact_condition(path: &str, value: &Json) -> Option<String> {
    let text = value.string();
    match value.kind() {
        JsonKind::String => {
            let text = text.filter(|text| {
                text.len() <= MAX_EXACT_BYTES && !text.contains(PLACEHOLDER_PREFIX)
            })?;
            Some(format!("{path} == {}", quoted(&text)))
        }
        JsonKind::Number | JsonKind::Bool => Some(format!("{path} == {}", value.as_str())),
        _ => None,
    }
}

/// Returns conditions that cover more than one text: the origin of a URL, the folders of a path, the domain of a mail
/// address.
fn wider_conditions(path: &str, text: &str) -> Vec<String> {
    if text.contains(PLACEHOLDER_PREFIX) || text.chars().any(char::is_control) {
        return Vec::new();
    }
    let begins = |prefix: &str| format!("{path}.startsWith({})", quoted(prefix));
    if let Some((scheme, rest)) = text.split_once("://") {
        let origin = rest.split('/').next().unwrap_or_default();
        let plain = !origin.is_empty() && !origin.contains('@') && rest.contains('/');
        return match plain {
            true => vec![begins(&format!("{scheme}://{origin}/"))],
            false => Vec::new(),
        };
    }
    if let Some((name, domain)) = text.split_once('@')
        && !name.is_empty()
        && domain.contains('.')
        && !text.contains(['/', ' '])
    {
        return vec![format!(
            "{path}.endsWith({})",
            quoted(&format!("@{domain}"))
        )];
    }
    if text.contains(' ') || text.contains("..") {
        return Vec::new();
    }
    let ends = text.char_indices().filter(|(_, c)| *c == '/');
    let folders = ends
        .map(|(at, _)| &text[..=at])
        .filter(|folder| *folder != "/");
    let mut folders: Vec<&str> = folders.collect();
    folders.reverse();
    let no_parents = format!("!{path}.contains(\"..\")");
    let folders = folders.into_iter().take(MAX_FOLDERS);
    folders
        .map(|folder| format!("{} && {no_parents}", begins(folder)))
        .collect()
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    write_string(&mut out, text);
    out
}

/// Returns how many of the arguments of past calls satisfy a condition.
pub(crate) fn count_covered(when: &str, item: &Item, past: &[Json]) -> usize {
    let Ok(condition) = CelCondition::compile(when) else {
        return 0;
    };
    let caller = Caller::new("operator");
    let holds = |arguments: &&Json| {
        let arguments = CallArguments::new((*arguments).clone());
        let facts = ConditionFacts::new(&caller, item).with(&arguments);
        condition.evaluate(&facts) == Ok(true)
    };
    past.iter().filter(holds).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolgate_core::{Definition, Origin};

    fn tool() -> Item {
        let definition = json!({"name": "t", "inputSchema": {"type": "object"}});
        let definition = Definition::tool(Json::from_value(&definition)).unwrap();
        let origin = Origin {
            server: "s".into(),
            trusted: false,
        };
        Item::new(origin, definition)
    }

    fn of(arguments: serde_json::Value) -> Vec<String> {
        propose(&tool(), &Json::from_value(&arguments))
    }

    #[test]
    fn proposes_folders_origins_and_domains() {
        let file = of(json!({"path": "docs/a/b.md"}));
        assert_eq!(
            file,
            [
                "args.path == \"docs/a/b.md\"",
                "args.path.startsWith(\"docs/a/\") && !args.path.contains(\"..\")",
                "args.path.startsWith(\"docs/\") && !args.path.contains(\"..\")",
            ]
        );
        assert!(of(json!({"path": "/etc"})).len() == 1, "not the root");
        let url = of(json!({"url": "https://a.example/x?y"}));
        assert_eq!(url[1], "args.url.startsWith(\"https://a.example/\")");
        assert_eq!(of(json!({"url": "https://u@a.example/x"})).len(), 1);
        let mail = of(json!({"to": "ann@a.example"}));
        assert_eq!(mail[1], "args.to.endsWith(\"@a.example\")");
    }

    #[test]
    fn a_masked_value_and_an_odd_name_are_no_problem() {
        assert_eq!(
            of(json!({"key": "[redacted:schema]"})),
            Vec::<String>::new()
        );
        assert_eq!(
            of(json!({"a-b": 1})),
            ["args[\"a-b\"] == 1", "args[\"a-b\"] <= 1"]
        );
        let two = of(json!({"a": true, "b": "x"}));
        assert_eq!(two[0], "args.a == true && args.b == \"x\"");
        assert_eq!(of(json!([])), Vec::<String>::new());
    }

    #[test]
    fn counts_the_past_calls_that_a_condition_covers() {
        let past = ["docs/a", "docs/b", "src/c"];
        let past = past.map(|path| Json::from_value(&json!({"path": path})));
        let when = "args.path.startsWith(\"docs/\")";
        assert_eq!(count_covered(when, &tool(), &past), 2);
        assert_eq!(count_covered("args.other == 1", &tool(), &past), 0);
    }
}
