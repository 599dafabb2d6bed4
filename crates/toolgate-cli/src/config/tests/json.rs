use super::{Config, ConfigValue, Path};

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(Path::new("/etc/hosts.json"), text)
        .map_err(|error| error.to_string().replace("/etc/", ""))
}

#[test]
fn the_config_of_a_host() {
    let text = r#"{
        "globalShortcut": "",
        "mcpServers": {
            "My Files": {"command": "npx", "args": ["-y", "server"], "env": {"KEY": "v\u0061"}, "autoApprove": ["x"]},
            "git": {"type": "stdio", "command": "git-mcp", "cwd": "repo"},
            "far": {"type": "http", "url": "https://api.example.com/mcp", "headers": {"X-Key": "canary"}},
            "off": {"command": "x", "disabled": true}
        }
    }"#;
    let config = parse(text).unwrap();
    let ids: Vec<_> = config
        .servers
        .iter()
        .map(|server| server.id.as_str())
        .collect();
    assert_eq!(ids, ["my-files", "git", "far"]);
    let far = config.servers[2].address.as_ref().unwrap();
    assert_eq!(far.url, "https://api.example.com/mcp");
    assert_eq!(
        far.headers,
        [(
            "X-Key".to_owned(),
            ConfigValue::Plaintext("canary".to_owned())
        )]
    );
    assert!(!format!("{config:?}").contains("canary"));
    let files = &config.servers[0];
    assert_eq!(
        (&files.command[..], files.prefix.as_str()),
        (&["npx", "-y", "server"].map(str::to_owned)[..], "my-files")
    );
    assert_eq!(
        files.env,
        [("KEY".to_owned(), ConfigValue::Plaintext("va".to_owned()))]
    );
    assert!(!files.trust_annotations && config.rules.is_empty());
    assert_eq!(config.servers[1].cwd, Some("/etc/repo".into()));
    let [off, key, header] = config.notes.as_slice() else {
        panic!("{:?}", config.notes)
    };
    assert_eq!(
        off,
        "/etc/hosts.json:7:20: the server \"off\" is skipped: it is disabled"
    );
    assert!(key.contains("plaintext secret in this file, in \"KEY\" of \"env\""));
    assert!(header.contains("\"X-Key\" of \"headers\"") && config.has_plaintext_secrets);
}

#[test]
fn errors_of_host_json() {
    let server = |entry: &str| format!("{{\"mcpServers\": {{\"a\": {entry}}}}}");
    for (text, error) in [
        (
            "{".to_owned(),
            "1:1: the file is not valid JSON: EOF while parsing an object",
        ),
        (
            "{\n \"a\" 1}".to_owned(),
            "2:6: the file is not valid JSON: expected `:`",
        ),
        (
            "{}".to_owned(),
            "1:1: this JSON has no \"mcpServers\"; write {\"mcpServers\": {\"NAME\": {\"command\": \"program\"}}}",
        ),
        (
            "{\"mcpServers\": []}".to_owned(),
            "1:16: \"mcpServers\" must be an object",
        ),
        (
            "{\"mcpServers\": {}}".to_owned(),
            "1:16: \"mcpServers\" contains no server; add one",
        ),
        (server("1"), "1:22: \"a\" must be an object"),
        (
            server("{}"),
            "1:22: \"a\" has neither \"command\" nor \"url\"; write \"command\": \"program\" or \"url\": \"https://mcp.example.com/mcp\"",
        ),
        (
            server("{\"command\": [\"x\"]}"),
            "1:34: \"command\" of \"a\" must be a string",
        ),
        (
            server("{\"command\": \"\"}"),
            "1:22: \"command\" of \"a\" is empty; write the program to start",
        ),
        (
            server("{\"command\": \"x\", \"args\": \"y\"}"),
            "1:47: \"args\" of \"a\" must be an array of strings",
        ),
        (
            server("{\"command\": \"x\", \"args\": [1]}"),
            "1:48: \"args\" of \"a\" must be a string",
        ),
        (
            server("{\"command\": \"x\", \"command\": \"y\"}"),
            "1:50: \"command\" is set twice in \"a\"; keep one of the two",
        ),
        (
            server("{\"command\": \"x\", \"env\": {\"A\": 1}}"),
            "1:52: \"A\" in \"env\" of \"a\" must be a string",
        ),
        (
            server("{\"command\": \"x\", \"env\": {\"A\": \"${B}\"}}"),
            "1:52: \"A\" in \"env\" of \"a\" refers to the environment variable B, which is not set; set it, or write ${B:-default}",
        ),
        (
            server("{\"command\": \"x\", \"args\": [\"${workspaceFolder:a}\"]}"),
            "1:48: \"args\" of \"a\" has \"${workspaceFolder:a}\", which has no valid variable name; write ${NAME}, ${NAME:-default}, or $${ for a literal ${",
        ),
        (
            "{\"mcpServers\": {\"a b\": {\"command\": \"x\"},\n\"A-B\": {\"command\": \"x\"}}}"
                .to_owned(),
            "2:8: \"A-B\" and an entry before it both become the server id \"a-b\"; rename one of them",
        ),
        (
            "{\"mcpServers\": {\"é\": {\"command\": \"x\"}}}".to_owned(),
            "1:22: \"é\" cannot be turned into a server id; choose a name of 1 to 32 letters, digits and \"-\"",
        ),
        (
            server("{\"url\": \"x\"}"),
            "1:30: \"url\" of \"a\" cannot be used: it does not begin with https:// or http://; correct it",
        ),
    ] {
        assert_eq!(
            parse(&text).unwrap_err(),
            format!("hosts.json:{error}"),
            "{text}"
        );
    }
}

/// Hosts expand these values, and a secret that a variable gives is not in the file.
#[test]
fn expands_variables_of_host_json() {
    let text = r#"{"mcpServers": {"a": {"command": "${CARGO_PKG_NAME}", "args": ["${UNSET_HERE:-x}", "~/y"],
        "env": {"API_KEY": "${CARGO_PKG_NAME}", "B": "<${CARGO_PKG_NAME}>"}}}}"#;
    let config = parse(text).unwrap();
    let (server, package) = (&config.servers[0], std::env::var("CARGO_PKG_NAME").unwrap());
    assert_eq!(server.command, [package.as_str(), "x", "~/y"]);
    let key = ConfigValue::Env("CARGO_PKG_NAME".to_owned());
    assert_eq!(server.env[0], ("API_KEY".to_owned(), key));
    let plain = ConfigValue::Plaintext(format!("<{package}>"));
    assert_eq!(server.env[1], ("B".to_owned(), plain));
    assert!(!config.has_plaintext_secrets, "{:?}", config.notes);
}

#[test]
fn comments_and_trailing_commas_of_hosts() {
    let text = r#"// Settings
    {
        /* all
           servers */ "mcpServers": {
            "a": {"command": "x", "args": ["// no comment", "b /* neither */",],}, // the first
            // "off": {},
        },
    }"#;
    let config = parse(text).unwrap();
    assert_eq!(
        config.servers[0].command,
        ["x", "// no comment", "b /* neither */"]
    );
    for wrong in [
        r#"{"mcpServers": {"a": {"command": "x"},,}}"#,
        r#"{"mcpServers": {,}}"#,
        r#"{"mcpServers": {"a": {"command": "x",}} /* "#,
        r#"{"mcpServers": {"a": {"command": / "x"}}}"#,
    ] {
        assert!(
            parse(wrong).unwrap_err().contains("not valid JSON"),
            "{wrong}"
        );
    }
    // Positions stay.
    let error = parse("{ /* é */\n // x\n \"mcpServers\": {\"a\": {\"command\": 1}}}");
    assert!(error.unwrap_err().starts_with("hosts.json:3:34: "));
}
