use super::*;
use crate::hosts::HostEntryValue;

const SERVERS: &[&str] = &["mcpServers"];
const CODEX: &[&str] = &["mcp_servers"];
const NESTED: &[&str] = &["mcp", "servers"];

fn entry() -> HostEntryValue {
    let words = ["serve", "--stdio"].map(str::to_owned);
    HostEntryValue::object([
        ("command", HostEntryValue::Text("/opt/toolgate".to_owned())),
        ("args", HostEntryValue::List(words.to_vec())),
    ])
}

fn parse(text: &str, syntax: HostSyntax, path: &'static [&'static str]) -> HostDocument {
    HostDocument::parse(text, syntax, path).unwrap()
}

/// Adds an entry, reads the new text, and removes the entry again.
fn add_and_remove(
    text: &str,
    syntax: HostSyntax,
    path: &'static [&'static str],
) -> (String, String) {
    let mut document = parse(text, syntax, path);
    let created = document.add("toolgate", &entry()).unwrap();
    let with = document.text();
    let mut document = parse(&with, syntax, path);
    assert!(document.has_entry("toolgate", &entry()), "{with}");
    document.take("toolgate").unwrap();
    document.remove_empty(created);
    (with, document.text())
}

#[test]
fn an_entry_comes_and_goes_without_a_trace() {
    for text in [
        "{\n  \"a\": 1\n}\n",
        "{\n  // servers\n  \"mcpServers\": {\n    \"x\": {\n      \"command\": \"y\"\n    } // why\n  },\n  \"z\": [1,2]\n}\n",
        "{\n\t\"mcpServers\": {},\n}\n",
        "{\n  \"mcpServers\": {\n    \"x\": {},\n  },\n}",
        "\u{feff}{\n  \"mcpServers\": {\n    \"x\": {}\n  }\n}\n",
        "{\r\n  \"mcpServers\": {\r\n    \"x\": {}\r\n  }\r\n}\r\n",
    ] {
        let (with, back) = add_and_remove(text, HostSyntax::Jsonc, SERVERS);
        assert_eq!(back, text, "{with}");
        assert_eq!(with.contains("\r\n"), text.contains("\r\n"), "{with:?}");
    }
    for text in [
        "model = \"m\"\n",
        "# mine\n[mcp_servers.x]\ncommand = \"y\" # why\n\n[tui]\ntheme = 'dark'\n",
        "mcp_servers = { x = { command = \"y\" } }\n",
        "[mcp_servers]\nx = { command = \"y\" }\n",
    ] {
        let (with, back) = add_and_remove(text, HostSyntax::Toml, CODEX);
        assert_eq!(back, text, "{with}");
    }
}

#[test]
fn an_entry_of_a_new_file() {
    let (with, _) = add_and_remove("", HostSyntax::Json, NESTED);
    assert_eq!(
        with,
        "{\n  \"mcp\": {\n    \"servers\": {\n      \"toolgate\": {\n        \"command\": \"/opt/toolgate\",\n        \"args\": [\"serve\", \"--stdio\"]\n      }\n    }\n  }\n}\n"
    );
    let (with, back) = add_and_remove("", HostSyntax::Toml, CODEX);
    assert_eq!(
        with,
        "[mcp_servers.toolgate]\ncommand = \"/opt/toolgate\"\nargs = [\"serve\", \"--stdio\"]\n"
    );
    assert_eq!(back, "");
}

#[test]
fn a_server_that_was_taken_out_comes_back() {
    let json = "{\n  \"mcpServers\": {\n    \"x\": {\n      \"command\": \"y\",\n      \"n\": 1.50e3,\n      \"on\": [true, null, \"ä\"]\n    }\n  }\n}\n";
    let toml = "[mcp_servers.x]\ncommand = \"y\"\n\n[mcp_servers.x.env]\nA = \"1\"\n";
    for (text, syntax, path) in [
        (json, HostSyntax::Json, SERVERS),
        (toml, HostSyntax::Toml, CODEX),
    ] {
        let mut document = parse(text, syntax, path);
        let taken = document.take("x").unwrap();
        assert!(document.names().is_empty());
        let mut document = parse(&document.text(), syntax, path);
        document.put_back(&taken).unwrap();
        assert_eq!(document.names(), ["x"]);
        let (again, before) = (document.entry_text("x"), parse(text, syntax, path));
        match syntax {
            HostSyntax::Toml => assert_eq!(again, before.entry_text("x")),
            _ => {
                let value =
                    |text: String| serde_json::from_str::<serde_json::Value>(&text).unwrap();
                assert_eq!(again.map(value), before.entry_text("x").map(value));
                assert!(document.text().contains("1.50e3"), "{}", document.text());
            }
        }
    }
}

#[test]
fn what_is_in_the_way_is_named() {
    let wrong = |text, syntax| HostDocument::parse(text, syntax, SERVERS).map(|_| ());
    assert_eq!(
        wrong("{\n  \"a\": [}\n", HostSyntax::Json),
        Err("is not valid JSON (line 2, column 9: Unexpected close brace)".to_owned())
    );
    assert!(
        wrong("a = [", HostSyntax::Toml)
            .unwrap_err()
            .starts_with("is not valid TOML (line 1: ")
    );
    let mut list = parse("[]", HostSyntax::Json, SERVERS);
    assert_eq!(
        list.add("toolgate", &entry()),
        Err("contains a value that is not a JSON object".to_owned())
    );
    let mut text = parse("{\"mcpServers\": \"x\"}", HostSyntax::Json, SERVERS);
    assert_eq!(
        text.add("toolgate", &entry()),
        Err("has a \"mcpServers\" that is not an object".to_owned())
    );
}
