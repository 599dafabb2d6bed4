use super::*;
use crate::config::{Config, ConfigValue};
use std::path::Path;

/// Variable that is not set when tests run.
const UNSET: &str = "TOOLGATE_TEST_UNSET";

fn env(name: &str) -> Option<String> {
    match name {
        "A" => Some("one".to_owned()),
        "EMPTY" => Some(String::new()),
        "NESTED" => Some("${A}".to_owned()),
        _ => None,
    }
}

/// Parses a config as `/etc/t.toml`.
fn parse(text: &str) -> Result<Config, String> {
    Config::parse(Path::new("/etc/t.toml"), text).map_err(|error| error.to_string())
}

/// Returns the value of a variable that cargo sets for tests.
fn package() -> String {
    std::env::var("CARGO_PKG_NAME").unwrap()
}

#[test]
fn expands_variables_with_defaults_and_escapes() {
    for (text, expanded) in [
        ("", ""),
        ("plain $A $$ {A}", "plain $A $$ {A}"),
        ("${A}", "one"),
        ("<${A}-${A}>", "<one-one>"),
        ("${EMPTY}", ""),
        ("${A:-two}", "one"),
        ("${EMPTY:-two}", "two"),
        ("${NONE:-two}", "two"),
        ("${NONE:-}", ""),
        ("${NONE:-a:-b}", "a:-b"),
        ("$${A}", "${A}"),
        ("$${A} ${A}", "${A} one"),
        ("$${", "${"),
        ("${NESTED}", "${A}"),
    ] {
        assert_eq!(expand_variables(text, env).unwrap(), expanded, "{text}");
    }
}

#[test]
fn rejects_unset_variables_and_malformed_references() {
    let unset = expand_variables("x${NONE}", env).unwrap_err();
    assert_eq!(
        unset,
        "refers to the environment variable NONE, which is not set; set it, or write ${NONE:-default}"
    );
    for text in [
        "${A", "${}", "${A B}", "${1}", "${env:A}", "${#A}", "${A-x}", "${:-x}",
    ] {
        let wrong = expand_variables(text, env).unwrap_err();
        assert!(wrong.contains("; write ${NAME}"), "{text}: {wrong}");
    }
}

#[test]
fn expands_the_home_directory_at_the_start_of_a_path() {
    let at = |path| expand_home_with(path, Some("/home/ann".into()));
    for (path, expanded) in [
        ("~", "/home/ann"),
        ("~/a/b", "/home/ann/a/b"),
        ("a/~", "a/~"),
        ("~ann/a", "~ann/a"),
        ("/a", "/a"),
    ] {
        assert_eq!(at(path), Ok(expanded.into()), "{path}");
    }
    for home in [None, Some("".into()), Some("relative".into())] {
        assert!(
            expand_home_with("~/a", home)
                .unwrap_err()
                .contains("HOME is not set")
        );
    }
    assert_eq!(expand_home_with("a", None), Ok("a".into()));
}

#[test]
fn expands_the_values_of_a_server() {
    let home = home().unwrap();
    let config = parse(
        "data = \"~/d\"\n[server.s]\ncommand = [\"~/x\", \"${CARGO_PKG_NAME}\", \"~/y\", \"$${A}\"]\n\
         cwd = \"~\"\nenv = { NAME = \"<${CARGO_PKG_NAME}>\", A = { danger_clear = \"${B}\" } }\n\
         [server.far]\nurl = \"https://${CARGO_PKG_NAME}.test/mcp\"\nheaders = { X-Name = \"${CARGO_PKG_NAME}\" }\n",
    )
    .unwrap();
    let (server, far) = (
        &config.servers[0],
        config.servers[1].address.as_ref().unwrap(),
    );
    let program = home.join("x").to_str().unwrap().to_owned();
    assert_eq!(
        server.command,
        [program, package(), "~/y".to_owned(), "${A}".to_owned()]
    );
    assert_eq!(
        (config.data, &server.cwd),
        (Some(home.join("d")), &Some(home))
    );
    let plain = |text: &str| ConfigValue::Plaintext(text.to_owned());
    assert_eq!(server.env[0].1, plain(&format!("<{}>", package())));
    assert_eq!(
        server.env[1].1,
        plain("${B}"),
        "marked text stays unchanged"
    );
    assert_eq!(far.url, format!("https://{}.test/mcp", package()));
    assert_eq!(far.headers[0].1, plain(&package()));
}

#[test]
fn an_unset_variable_is_an_error_with_its_place_and_key() {
    for (text, place) in [
        (
            "command = [\"a\", \"${U}\"]",
            "3:17: \"command\" in [server.s]",
        ),
        (
            "command = [\"a\"]\nenv = { X = \"${U}\" }",
            "4:13: \"X\" in [server.s.env]",
        ),
        (
            "command = [\"a\"]\ncwd = \"${U}/x\"",
            "4:7: \"cwd\" in [server.s]",
        ),
        ("url = \"https://${U}/mcp\"", "3:7: \"url\" in [server.s]"),
    ] {
        let text = format!(
            "# comment\n[server.s]\n{}\n",
            text.replace("${U}", &format!("${{{UNSET}}}"))
        );
        assert_eq!(
            parse(&text).unwrap_err(),
            format!(
                "/etc/t.toml:{place} refers to the environment variable {UNSET}, which is not set; set it, or write ${{{UNSET}:-default}}"
            )
        );
    }
}

/// A default is part of the file, so it can hold what looks like a secret before and after the expansion.
#[test]
fn rejects_a_secret_that_an_expansion_yields() {
    let token = format!("ghp_{}", "a4Gs".repeat(9));
    let default = format!("${{{UNSET}:-{token}}}");
    let halves = format!("${{{UNSET}:-ghp_}}{}", "a4Gs".repeat(9));
    for value in [default, halves] {
        for line in [
            format!("command = [\"a\", \"{value}\"]"),
            format!("command = [\"a\"]\nenv = {{ X = \"{value}\" }}"),
            format!("url = \"https://a.test/mcp?x={value}\""),
            format!("url = \"https://a.test/mcp\"\nheaders = {{ X-Tenant = \"{value}\" }}"),
        ] {
            let error = parse(&format!("[server.s]\n{line}\n")).unwrap_err();
            assert!(
                error.contains("looks like a secret") && !error.contains("a4Gs"),
                "{error}"
            );
        }
    }
    // A secret's name never accepts a variable, whatever its value is.
    for value in ["${CARGO_PKG_NAME}", "${TOOLGATE_TEST_UNSET:-}"] {
        let error = parse(&format!(
            "[server.s]\ncommand = [\"a\"]\nenv = {{ API_KEY = \"{value}\" }}\n"
        ));
        assert_eq!(
            error.unwrap_err(),
            "/etc/t.toml:3:19: \"API_KEY\" in [server.s.env] has the name of a secret, and variables are not expanded into secrets; write { env = \"NAME\" }, { file = \"PATH\" } or { keyring = \"NAME\" }"
        );
    }
}

#[test]
fn messages_show_the_reference_and_not_the_value() {
    for line in [
        "listen = \"${CARGO_PKG_NAME}\"",
        "allowed_hosts = [\"${CARGO_PKG_NAME}/x\"]",
    ] {
        let error = parse(&format!("{line}\n[server.s]\ncommand = [\"a\"]\n")).unwrap_err();
        assert!(
            error.contains("${CARGO_PKG_NAME}") && !error.contains(&package()),
            "{error}"
        );
    }
}

/// The environment must not change which rule applies, or what a tool is told.
#[test]
fn does_not_expand_rules_and_tool_overrides() {
    let config = parse(
        "[server.s]\ncommand = [\"a\"]\n[server.s.tools.t]\ndescription = \"${A}\"\n\
         [[rule]]\ntools = [\"s.*\"]\nwhen = 'args.a == \"${A}\"'\naction = \"deny\"\n",
    );
    assert!(config.is_ok(), "{config:?}");
    let error =
        parse("[server.s]\ncommand = [\"a\"]\n[[rule]]\ntools = [\"s.*\"]\naction = \"${A}\"\n");
    assert!(
        error
            .unwrap_err()
            .contains("\"action\" in [[rule]] is \"${A}\"")
    );
}
