//! Messages about typical mistakes with the commands that edit the config, as a snapshot.
//! `TOOLGATE_WRITE_SNAPSHOTS=1` writes it.

use crate::editing::Home;
use std::{fmt::Write, path::Path};

const CONFIG: &str = "[server.files]\ncommand = [\"PROGRAM\", \"demo-server\"]\n\n[server.git]\ncommand = [\"PROGRAM\", \"demo-server\"]\n\n[[rule]]\ntools = [\"git.*\"]\naction = \"allow\"\n";

/// Config, and the words after `toolgate`, split at spaces.
const MISTAKES: &[(&str, &str)] = &[
    (CONFIG, "add"),
    (CONFIG, "add npx"),
    (CONFIG, "add npx server-filesystem"),
    (CONFIG, "add files npx -y server"),
    (CONFIG, "add files -- npx"),
    (CONFIG, "add My_Files -- npx"),
    (CONFIG, "add https://mcp.example.com/mcp -- npx"),
    (CONFIG, "add http://mcp.example.com/mcp"),
    (CONFIG, "add x --env GITHUB_TOKEN=ghp_1234 -- npx"),
    (CONFIG, "add x --env A-B=1 -- npx"),
    (CONFIG, "add x --env A=1 --env A=2 -- npx"),
    (CONFIG, "add x -- npx --api-key k3R9vQ2mX7bT"),
    (CONFIG, "add x https://mcp.example.com/mcp --env A=1"),
    (CONFIG, "add x --header A=1 -- npx"),
    (
        CONFIG,
        "add x https://mcp.example.com/mcp --header Authorization",
    ),
    (
        CONFIG,
        "add x https://mcp.example.com/mcp --header Authorization=Bearer",
    ),
    (CONFIG, "add x --secret GITHUB_TOKEN=ghp_1234 -- npx"),
    (CONFIG, "add x --secret GITHUB_TOKEN -- npx"),
    (CONFIG, "remove file"),
    (CONFIG, "remove git"),
    (CONFIG, "remove files git"),
    (CONFIG, "enable github"),
    (CONFIG, "init"),
    (CONFIG, "run --name Docs -- npx"),
    ("", "remove files"),
    ("[server.files]\ncomand = [\"npx\"]\n", "disable files"),
    ("[server.files\n", "add x -- npx"),
    (
        "{\"mcpServers\": {\"files\": {\"command\": \"npx\"}}}",
        "add x -- npx",
    ),
];

#[test]
fn messages_about_mistakes_equal_the_snapshot() {
    let mut all = String::new();
    for (config, words) in MISTAKES {
        let home = Home::new("mistake");
        let config = config.replace("PROGRAM", env!("CARGO_BIN_EXE_toolgate"));
        if !config.is_empty() {
            home.write(&config);
        }
        let words: Vec<&str> = words.split(' ').collect();
        let (code, out, err) = home.run(&words);
        assert_eq!(out, "", "{words:?}");
        assert!((1..=2).contains(&code), "{words:?}: {code} {err}");
        for secret in ["ghp_1234", "k3R9vQ2mX7bT"] {
            assert!(!err.contains(secret), "{err}");
        }
        match config.is_empty() {
            true => assert!(!home.config().exists()),
            false => assert_eq!(home.text(), config, "{words:?}"),
        }
        let err = err.replace(home.path().to_str().unwrap(), "~");
        let _ = write!(
            all,
            "$ toolgate {}\n{}exit code {code}\n\n",
            words.join(" "),
            err
        );
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/edit-mistakes.txt");
    if std::env::var_os("TOOLGATE_WRITE_SNAPSHOTS").is_some() {
        std::fs::write(&file, &all).unwrap();
    }
    let stored = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(all, stored, "set TOOLGATE_WRITE_SNAPSHOTS=1 to write it");
}
