//! Whole valid configs. Invalid configs are in `invalid`.

mod files;
mod fuzz;
mod invalid;
mod json;
mod limit_coverage;
mod mistakes;
mod notify;

use super::*;
use std::sync::LazyLock;
use toolgate_policy::{
    AuditContentForm, AuditDurability, OnPlaceholder, RequiredDefaults, UriSpelling,
};
use toolgate_protocol::dialect;

/// Config reference with an example.
const REFERENCE: &str = include_str!("../../../../docs/config.md");

/// Parses a text as `/etc/toolgate.toml`; errors name it `toolgate.toml`.
fn parse(text: &str) -> Result<Config, String> {
    let path = Path::new("/etc/toolgate.toml");
    let config = Config::parse(path, text);
    if config.is_ok() && !text.trim_start().starts_with(['{', '\u{feff}']) {
        assert_eq!(
            schema_error(text),
            None,
            "the schema rejects a valid config:\n{text}"
        );
    }
    config.map_err(|error| error.to_string().replace("/etc/", ""))
}

/// Returns the error of the JSON Schema for a config in TOML, as an editor would show it.
fn schema_error(text: &str) -> Option<String> {
    static VALIDATOR: LazyLock<jsonschema::Validator> =
        LazyLock::new(|| jsonschema::draft7::new(schema::config_schema()).unwrap());
    let config: serde_json::Value = toml::from_str(text).unwrap();
    VALIDATOR
        .validate(&config)
        .err()
        .map(|error| error.to_string())
}

#[test]
fn the_example_of_the_reference() {
    let example = REFERENCE
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let config = parse(example).unwrap();
    assert_eq!(config.listen, "127.0.0.1:8665".parse().unwrap());
    assert!(config.token.is_some());
    assert_eq!(
        config.allowed_hosts,
        ["tools.example.com", "tools.example.com:8443"]
    );
    assert_eq!(config.allowed_origins, ["https://app.example.com"]);
    assert_eq!(config.data, Some("/var/lib/toolgate".into()));
    assert_eq!(
        (config.limits.call_seconds, config.limits.body_bytes),
        (90, 4_194_304)
    );
    assert_eq!(config.limits.rate, RateSetting::per_minute(120));
    let ids: Vec<_> = config
        .servers
        .iter()
        .map(|server| server.id.as_str())
        .collect();
    assert_eq!(ids, ["files", "github", "search"]);
    let rules: Vec<_> = config
        .rules
        .iter()
        .map(|rule| (rule.action, rule.line))
        .collect();
    let lines: Vec<_> = example
        .lines()
        .zip(1..)
        .filter(|(line, _)| *line == "[[rule]]")
        .map(|(_, n)| n)
        .collect();
    assert_eq!(
        rules,
        [
            (ConfigRuleAction::Allow, lines[0]),
            (ConfigRuleAction::Deny, lines[1])
        ]
    );
}

#[test]
fn reads_the_revision_of_a_server() {
    let read = |value: &str| {
        let text = format!("[server.a]\ncommand = [\"x\"]\nrevision = {value}\n");
        parse(&text).map(|mut config| config.servers.remove(0).revision)
    };
    assert_eq!(read("\"auto\"").unwrap(), RevisionChoice::Auto);
    assert_eq!(read("\"newest\"").unwrap(), RevisionChoice::Newest);
    for dialect in dialect::ALL {
        let one = read(&format!("{:?}", dialect.revision)).unwrap();
        assert_eq!(one, RevisionChoice::Only(dialect));
    }
    let error = read("\"2025-11-26\"").unwrap_err().to_string();
    let all = r#"is "2025-11-26"; write "auto", "newest", "2026-07-28", "2025-11-25","#;
    assert!(error.contains(all), "{error}");
    assert!(read("2025").is_err());
}

#[test]
fn every_key_of_a_server() {
    let text = r#"
        [server.files]
        command = ["npx", "-y", "server"]
        env = { A = "1", B = "" }
        env_pass = ["C"]
        cwd = "docs"
        trust_annotations = true
        prefix = "fs"
        start_seconds = 5
        call_seconds = 7
        unknown_arguments = "allow"
        uris = "verbatim"
        placeholders = "deny"
        required_with_default = "required"
        output = "warn"
        audit_mode = "strict"
        audit_arguments = "redacted"
        audit_results = "digest"
    "#;
    let server = parse(text).unwrap().servers.remove(0);
    assert_eq!(server.command, ["npx", "-y", "server"]);
    assert_eq!(
        server.env,
        [
            ("A".to_owned(), ConfigValue::Plaintext("1".to_owned())),
            ("B".to_owned(), ConfigValue::Plaintext(String::new()))
        ]
    );
    assert_eq!(server.env_pass, ["C"]);
    assert_eq!(server.cwd, Some("/etc/docs".into()));
    assert_eq!(
        (server.trust_annotations, server.prefix.as_str()),
        (true, "fs")
    );
    assert_eq!(
        (server.start_seconds, server.call_seconds),
        (Some(5), Some(7))
    );
    assert_eq!(
        (server.unknown_arguments, server.output_check),
        (UnknownArguments::Allow, OutputCheck::Warn)
    );
    assert_eq!(
        (server.uri_spelling, server.sanitizer.placeholders),
        (UriSpelling::Verbatim, OnPlaceholder::Deny)
    );
    assert_eq!(server.required_defaults, RequiredDefaults::Required);
    assert_eq!(
        server.audit_content.durability,
        Some(AuditDurability::Strict)
    );
    assert_eq!(
        (server.audit_content.arguments, server.audit_content.results),
        (
            Some(AuditContentForm::Redacted),
            Some(AuditContentForm::Digest)
        )
    );
}

/// Holds: HTTPL-03, HTTPM-03
#[test]
fn the_defaults_are_the_safe_ones() {
    let config = parse("[server.b]\ncommand = [\"x\"]\n[server.a]\ncommand = [\"x\"]").unwrap();
    assert_eq!(
        (config.listen, config.token.is_none(), config.rules.len()),
        (network::DEFAULT_LISTEN_ADDRESS, true, 0)
    );
    assert!(config.listen.ip().is_loopback());
    assert_eq!(config.limits, GatewayLimits::default());
    let server = &config.servers[0];
    assert_eq!(
        (
            server.id.as_str(),
            server.prefix.as_str(),
            server.trust_annotations
        ),
        ("b", "b", false)
    );
    assert_eq!(
        (server.unknown_arguments, server.output_check),
        (UnknownArguments::Refuse, OutputCheck::Block)
    );
    assert_eq!(
        (server.uri_spelling, server.sanitizer.placeholders),
        (UriSpelling::Canonical, OnPlaceholder::Ask)
    );
    assert_eq!(server.required_defaults, RequiredDefaults::Optional);
}

#[test]
fn reads_every_key_of_a_rule() {
    let text = "[server.s]\ncommand = [\"x\"]\n\n[[rule]]\ntools = [\"s.*\", \"*.y\"]\ncallers = [\"key:ci\"]\n\
                except = [\"s.delete_*\"]\naction = \"ask\"\nrate = \"30/min\"\n";
    let rule = parse(text).unwrap().rules.remove(0);
    let glob = |text: &str| NameGlob::parse(text).unwrap();
    assert_eq!((rule.tools, rule.line), (vec![glob("s.*"), glob("*.y")], 4));
    assert_eq!(
        (rule.callers, rule.except),
        (vec![glob("key:ci")], vec![glob("s.delete_*")])
    );
    assert_eq!(
        (rule.action, rule.rate),
        (ConfigRuleAction::Ask, Some(RateSetting::per_minute(30)))
    );
}

#[test]
fn every_limit_can_be_set_to_its_ends_and_no_further() {
    let read = |key: &str, number: u64| {
        parse(&format!(
            "[limits]\n{key} = {number}\n[server.s]\ncommand = [\"x\"]"
        ))
    };
    let range = |error: &str| error.contains("write an integer from");
    for (key, _, low, high) in limits::TABLE {
        for number in [*low, *high] {
            assert!(
                !read(key, number).is_err_and(|error| range(&error)),
                "{key} = {number}"
            );
        }
        for number in low.checked_sub(1).into_iter().chain([high + 1]) {
            assert!(range(&read(key, number).unwrap_err()), "{key} = {number}");
        }
    }
}

#[test]
fn a_default_of_the_schema_changes_nothing() {
    let schema = schema::config_schema();
    let command = ("[server.s]\n", "command = [\"x\"]\n");
    let url = ("[server.s]\n", "url = \"https://s.test/mcp\"\n");
    let server = &schema["properties"]["server"]["additionalProperties"];
    let mut sections = vec![
        ("", schema, vec![command]),
        ("", server, vec![command, url]),
    ];
    let names = ["auth", "audit", "limits", "pins", "search", "store"]
        .map(|name| (name, format!("[{name}]\n")));
    for (name, head) in &names {
        sections.push((head, &schema["properties"][name], vec![command]));
    }
    for (head, schema, servers) in sections {
        let of_server = std::ptr::eq(schema, server);
        for (key, setting) in schema["properties"].as_object().unwrap() {
            let Some(default) = setting.get("default").filter(|value| !value.is_object()) else {
                continue;
            };
            let line = format!("{key} = {default}\n");
            let changes = |(begin, end): &(&str, &str)| {
                let text = match of_server {
                    true => format!("{begin}{line}{end}"),
                    false => format!("{head}{line}{begin}{end}"),
                };
                let without = text.replacen(&line, "", 1);
                Some(settings_of(&parse(&text).ok()?) != settings_of(&parse(&without).unwrap()))
            };
            let changes: Vec<bool> = servers.iter().filter_map(changes).collect();
            assert!(
                !changes.is_empty() && !changes.contains(&true),
                "{head}{line}"
            );
        }
    }
}

/// Returns the settings with a default as text, to compare them.
fn settings_of(config: &Config) -> String {
    let server = &config.servers[0];
    let server = (
        (server.trust_annotations, server.revision, &server.sanitizer),
        (server.unknown_arguments, server.uri_spelling),
        (server.required_defaults, server.output_check),
        (&server.input_requests, &server.prefix),
        server.address.as_ref().map(|address| {
            let owner = address.credential_owner;
            (owner, address.danger_private, &address.sign_in)
        }),
    );
    let top = (
        &config.listen,
        &config.tool_names,
        &config.limits,
        &config.pins,
    );
    let sections = (&config.audit, &config.auth, &config.search, &config.store);
    format!("{server:?} {top:?} {sections:?}")
}

#[test]
fn the_built_in_configs() {
    let demo = Config::demo().unwrap();
    assert!(demo.is_demo() && demo.rules.is_empty() && demo.hash.is_none());
    assert_eq!(
        (
            demo.servers[0].id.as_str(),
            demo.servers[0].trust_annotations
        ),
        ("demo", true)
    );
    assert_eq!(demo.servers[0].command[1], "demo-server");
    for (program, id) in [
        ("/usr/bin/My_Server.py", "my-server"),
        ("npx", "npx"),
        ("é", "server"),
    ] {
        let single = Config::for_command(None, vec![program.to_owned()]).unwrap();
        assert_eq!(
            (
                single.servers[0].id.as_str(),
                single.servers[0].prefix.as_str()
            ),
            (id, "")
        );
        assert!(!single.is_demo() && !single.servers[0].trust_annotations);
    }
    assert!(
        Config::for_command(None, Vec::new()).is_err()
            && Config::for_command(None, vec![String::new()]).is_err()
    );
}

#[test]
fn no_secret_of_the_config_is_printed() {
    let config =
        parse("[server.s]\ncommand = [\"x\", \"-x=canary\"]\nenv = { KEY = { danger_clear = \"canary\" } }")
            .unwrap();
    assert!(!format!("{config:?}").contains("canary"));
    let text = "[server.s]\nurl = \"https://a.test/m?q=canary\"\nheaders = { A = \"canary\" }";
    let config = parse(text).unwrap();
    assert!(!format!("{config:?}").contains("canary"));
}

#[test]
fn a_server_with_an_address() {
    let text = "[server.s]\nurl = \"https://a.test/mcp\"\ncall_seconds = 9\n\
                headers = { X-Tenant = \"acme\", Authorization = { env = \"S_AUTHORIZATION\" } }";
    let server = parse(text).unwrap().servers.remove(0);
    let address = server.address.unwrap();
    let env = ConfigValue::Env("S_AUTHORIZATION".to_owned());
    let headers = [
        (
            "X-Tenant".to_owned(),
            ConfigValue::Plaintext("acme".to_owned()),
        ),
        ("Authorization".to_owned(), env),
    ];
    assert_eq!(
        (address.headers, server.call_seconds),
        (headers.to_vec(), Some(9))
    );
    assert!(server.command.is_empty());
}
