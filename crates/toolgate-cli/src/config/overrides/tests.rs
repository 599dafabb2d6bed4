//! Valid and invalid tool sections.

use super::ToolOverride;
use crate::config::Config;
use std::sync::atomic::{AtomicU32, Ordering};
use toolgate::aggregate::DefinitionOverride;

fn read(text: &str) -> Result<Vec<ToolOverride>, String> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("toolgate-overrides-{}-{number}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("t.toml");
    std::fs::write(&file, format!("[server.files]\ncommand = [\"x\"]\n{text}")).unwrap();
    let config = Config::load(Some(&file)).map_err(|e| e.to_string());
    std::fs::remove_dir_all(&dir).unwrap();
    Ok(config?.servers.remove(0).tool_overrides)
}

#[test]
fn all_keys() {
    let text = "[server.files.tools.read_file]\nname = \"look\"\ntitle = \"T\"\ndescription = \"D\"\n\
                arguments = { n = 1, deep = { a = [true, 1.5] }, key = { env = \"KEY\" } }\n\
                [server.files.tools.\"odd name\"]\nhide = true\n";
    let tools = read(text).unwrap();
    let of = |at: usize| tools[at].resolve_with(|name| Some(format!("value of {name}")));
    let look = DefinitionOverride::new()
        .name("look")
        .title("T")
        .description("D")
        .argument("n", 1)
        .argument("deep", serde_json::json!({"a": [true, 1.5]}))
        .argument("key", "value of KEY");
    assert_eq!(of(0).unwrap(), look);
    assert_eq!(tools[1].tool, "odd name");
    assert_eq!(of(1).unwrap(), DefinitionOverride::new().hide());
    let unset = tools[0].resolve_with(|_| None).unwrap_err().to_string();
    assert!(unset.contains("variable KEY is not set"), "{unset}");
    assert!(
        unset.contains(":7:") && unset.contains("read_file"),
        "{unset}"
    );
    let shown = format!("{:?} {:?}", tools[0], of(0).unwrap());
    assert!(!shown.contains("value of"), "{shown}");
}

#[test]
fn errors_say_how_to_fix_an_override() {
    let tool = |text: &str| read(&format!("[server.files.tools.t]\n{text}\n")).unwrap_err();
    let long = format!("name = \"{}\"", "x".repeat(123));
    for (text, why) in [
        ("names = \"x\"", "did you mean \"name\""),
        ("name = \"a/b\"", "write 1 to 122 letters"),
        ("name = \"\"", "write 1 to 122 letters"),
        (long.as_str(), "write 1 to 122 letters"),
        ("name = \"é\"", "\"_\", \"-\" and \".\""),
        ("hide = 1", "true or false"),
        ("description = []", "a string in quotes"),
        ("arguments = []", "write { name = \"value\" }"),
        ("arguments = { at = 2026-01-01 }", "has a date-time"),
        (
            "arguments = { n = nan }",
            "a number that JSON cannot represent",
        ),
        (
            "arguments = { n = { env = \"s3cret value\" } }",
            "write the name of the variable, not its value",
        ),
    ] {
        let error = tool(text);
        assert!(error.contains(why), "{text}: {error}");
        assert!(error.contains("t.toml:4"), "{text}: {error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
    assert!(
        read("tools = 1\n")
            .unwrap_err()
            .contains("[server.files.tools.NAME]")
    );
}
