//! Tests every example of `docs/rules.md`: it is read as a config, and decides each call as the page says.

use super::access_policy;
use crate::config::Config;
use serde_json::json;
use toolgate_core::{
    Call, Caller, Definition, Item, Json, MaybeReady, Op, Origin, Rule, RuleDecision,
};
use toolgate_policy::AccessRules;

const RULES_PAGE: &str = include_str!("../../../../../docs/rules.md");

/// Returns the code blocks of the page, with their language.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let mut parts = RULES_PAGE.split("```");
    parts.next();
    let blocks = parts
        .step_by(2)
        .map(|block| block.split_once('\n').unwrap());
    blocks.collect()
}

fn config(rules: &str) -> Config {
    let server = |id| format!("[server.{id}]\ncommand = [\"x\"]\ntrust_annotations = true\n");
    let text = format!("{}{}{rules}", server("files"), server("mail"));
    let dir = std::env::temp_dir().join(format!("toolgate-rules-page-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("toolgate.toml");
    std::fs::write(&file, text).unwrap();
    let config = Config::load(Some(&file)).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    config
}

fn verdict(access: &AccessRules, caller: &str, name: &str, args: &str) -> &'static str {
    let (server, tool) = name.split_once('.').unwrap();
    let read_only = tool.starts_with("read");
    let def = json!({"name": tool, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": read_only}});
    let origin = Origin {
        server: server.into(),
        trusted: true,
    };
    let item = Item::new(origin, Definition::tool(Json::from_value(&def)).unwrap());
    let args = Json::from_value(&serde_json::from_str(args).unwrap());
    let call = Call::new("c", Caller::new(caller), Op::Tool, tool, args);
    if !access.is_visible(&call.caller, &item) {
        return "hide";
    }
    match access.decide(&call, &item) {
        MaybeReady::Ready(RuleDecision::Allow) => "allow",
        MaybeReady::Ready(RuleDecision::Ask(_)) => "ask",
        _ => "deny",
    }
}

#[test]
fn the_examples_of_the_page_hold() {
    let (mut rules, mut told) = (None, 0);
    for (language, text) in blocks() {
        match language {
            "toml" => rules = Some(access_policy(&config(text))),
            "verdicts" => {
                for line in text.lines() {
                    let words: Vec<&str> = line.split_whitespace().collect();
                    let [says, caller, name, args @ ..] = words.as_slice() else {
                        panic!("{line}")
                    };
                    let found = verdict(rules.as_ref().unwrap(), caller, name, &args.join(" "));
                    assert_eq!(found, *says, "{line}");
                    told += 1;
                }
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(told, 13);
}
