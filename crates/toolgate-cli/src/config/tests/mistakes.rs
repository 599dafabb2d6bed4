//! Messages about typical mistakes, as snapshots. `TOOLGATE_WRITE_SNAPSHOTS=1` writes them.

use super::{parse, schema_error};
use std::{fmt::Write, path::Path};

/// Name and text of each mistake, and whether an editor with the JSON Schema shows it too.
const MISTAKES: &[(&str, bool, &str)] = &[
    (
        "misspelled-key",
        true,
        "[server.files]\ncomand = [\"npx\", \"files\"]\n",
    ),
    (
        "key-after-a-section",
        true,
        "[server.files]\ncommand = [\"npx\", \"files\"]\nlisten = \"127.0.0.1:9000\"\n",
    ),
    (
        "command-as-one-string",
        true,
        "[server.files]\ncommand = \"npx files\"\n",
    ),
    (
        "secret-in-plaintext",
        false,
        "[server.github]\ncommand = [\"npx\", \"github\"]\nenv = { GITHUB_TOKEN = \"ghp_abcdefgh\" }\n",
    ),
    (
        "rule-for-an-unknown-server",
        false,
        "[server.files]\ncommand = [\"npx\", \"files\"]\n\n[[rule]]\ntools = [\"file.*\"]\naction = \"ask\"\n",
    ),
    (
        "unknown-action",
        true,
        "[server.files]\ncommand = [\"npx\", \"files\"]\n\n[[rule]]\ntools = [\"*\"]\naction = \"block\"\n",
    ),
    (
        "rule-section-with-one-bracket",
        true,
        "[server.files]\ncommand = [\"npx\", \"files\"]\n\n[rule]\ntools = [\"*\"]\naction = \"deny\"\n",
    ),
    (
        "limit-out-of-range",
        true,
        "[limits]\ncall_seconds = 0\n\n[server.files]\ncommand = [\"npx\", \"files\"]\n",
    ),
    (
        "reachable-without-a-token",
        false,
        "listen = \"0.0.0.0:8665\"\n\n[server.files]\ncommand = [\"npx\", \"files\"]\n",
    ),
    (
        "former-key",
        true,
        "[server.files]\ncommand = [\"npx\", \"files\"]\n\n[[rule]]\ntools = [\"*\"]\nthen = \"ask\"\n",
    ),
    (
        "plain-http-to-another-machine",
        false,
        "[server.search]\nurl = \"http://mcp.example.com/mcp\"\n",
    ),
    (
        "unset-variable",
        false,
        "[server.files]\ncommand = [\"npx\", \"files\", \"${TOOLGATE_TEST_UNSET}\"]\n",
    ),
    (
        "number-in-env",
        true,
        "[server.files]\ncommand = [\"npx\", \"files\"]\nenv = { PORT = 8080 }\n",
    ),
    (
        "number-in-quotes",
        true,
        "[limits]\ncall_seconds = \"90\"\n\n[server.files]\ncommand = [\"npx\", \"files\"]\n",
    ),
    (
        "unknown-unit-of-a-rate",
        true,
        "[limits]\nrate = \"60/minute\"\n\n[server.files]\ncommand = [\"npx\", \"files\"]\n",
    ),
    (
        "section-in-the-plural",
        true,
        "[servers.files]\ncommand = [\"npx\", \"files\"]\n",
    ),
    (
        "glob-without-a-server",
        false,
        "[server.files]\ncommand = [\"npx\", \"files\"]\n\n[[rule]]\ntools = [\"delete_*\"]\naction = \"deny\"\n",
    ),
    (
        "glob-as-a-string",
        true,
        "[server.files]\ncommand = [\"npx\", \"files\"]\n\n[[rule]]\ntools = \"files.*\"\naction = \"allow\"\n",
    ),
    (
        "rule-without-an-action",
        true,
        "[server.files]\ncommand = [\"npx\", \"files\"]\n\n[[rule]]\ntools = [\"files.*\"]\n",
    ),
    (
        "token-in-plaintext",
        true,
        "token = \"0123456789abcdef\"\n\n[server.files]\ncommand = [\"npx\", \"files\"]\n",
    ),
    (
        "port-as-listen-address",
        true,
        "listen = 8665\n\n[server.files]\ncommand = [\"npx\", \"files\"]\n",
    ),
];

#[test]
fn messages_about_typical_mistakes() {
    let mut all = String::new();
    for (name, in_editors, text) in MISTAKES {
        let error = parse(text).expect_err(name);
        assert_eq!(schema_error(text).is_some(), *in_editors, "{name}");
        write!(
            all,
            "# {name}\n\n```toml invalid\n{text}```\n\n```text\n{error}\n```\n\n"
        )
        .unwrap();
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/config-mistakes.md");
    if std::env::var_os("TOOLGATE_WRITE_SNAPSHOTS").is_some() {
        return std::fs::write(file, all).unwrap();
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), all);
}
