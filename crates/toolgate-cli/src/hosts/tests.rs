//! Tests of the table: paths, scopes and forms.

use super::*;
use std::{collections::BTreeSet, ffi::OsString};

fn places(vars: &[(&str, &str)], macos: bool) -> HostPlaces {
    let env = |name: &str| {
        let mut all = vars.iter();
        all.find(|(n, _)| *n == name)
            .map(|(_, value)| OsString::from(value))
    };
    HostPlaces::new(env, "/p".into(), macos)
}

fn paths(id: &str, places: &HostPlaces) -> Vec<String> {
    let host = Host::find(id).unwrap();
    let path = |file: &HostFile| file.path(places).unwrap().display().to_string();
    host.files.iter().map(path).collect()
}

#[test]
fn files_of_each_host_on_linux_and_macos() {
    let linux = places(&[("HOME", "/h")], false);
    let macos = places(&[("HOME", "/h")], true);
    let code = "/h/Library/Application Support/Code/User";
    for (id, on_linux, on_macos) in [
        (
            "claude-desktop",
            vec!["/h/.config/Claude/claude_desktop_config.json"],
            vec!["/h/Library/Application Support/Claude/claude_desktop_config.json"],
        ),
        (
            "claude-code",
            vec!["/h/.claude.json", "/h/.claude.json", "/p/.mcp.json"],
            vec!["/h/.claude.json", "/h/.claude.json", "/p/.mcp.json"],
        ),
        (
            "vscode",
            vec![
                "/h/.config/Code/User/mcp.json",
                "/h/.config/Code/User/settings.json",
                "/p/.vscode/mcp.json",
            ],
            vec![
                &format!("{code}/mcp.json"),
                &format!("{code}/settings.json"),
                "/p/.vscode/mcp.json",
            ],
        ),
        (
            "cline",
            vec![
                "/h/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ],
            vec![&format!(
                "{code}/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
            )],
        ),
        (
            "codex",
            vec!["/h/.codex/config.toml", "/p/.codex/config.toml"],
            vec!["/h/.codex/config.toml", "/p/.codex/config.toml"],
        ),
        (
            "zed",
            vec!["/h/.config/zed/settings.json", "/p/.zed/settings.json"],
            vec!["/h/.config/zed/settings.json", "/p/.zed/settings.json"],
        ),
        (
            "kiro",
            vec!["/h/.kiro/settings/mcp.json", "/p/.kiro/settings/mcp.json"],
            vec!["/h/.kiro/settings/mcp.json", "/p/.kiro/settings/mcp.json"],
        ),
    ] {
        assert_eq!(paths(id, &linux), on_linux, "{id} on Linux");
        assert_eq!(paths(id, &macos), on_macos, "{id} on macOS");
    }
}

#[test]
fn variables_move_the_files() {
    let moved = places(
        &[
            ("HOME", "/h"),
            ("XDG_CONFIG_HOME", "/x"),
            ("CODEX_HOME", "/c"),
            ("CLAUDE_CONFIG_DIR", "/d"),
            ("COPILOT_HOME", "relative"),
        ],
        false,
    );
    assert_eq!(paths("zed", &moved)[0], "/x/zed/settings.json");
    assert_eq!(paths("codex", &moved)[0], "/c/config.toml");
    assert_eq!(paths("claude-code", &moved)[0], "/d/.claude.json");
    // A relative path would depend on the working directory.
    assert_eq!(
        paths("copilot-cli", &moved)[0],
        "/h/.copilot/mcp-config.json"
    );
}

#[test]
fn without_a_home_only_project_files_have_a_path() {
    let nowhere = places(&[], false);
    for host in HOSTS {
        for file in host.files {
            let is_known = file.path(&nowhere).is_some();
            assert_eq!(is_known, file.scope == HostScope::Project, "{}", host.id);
        }
    }
}

#[test]
fn ids_are_unique_and_every_host_has_a_user_file() {
    let ids: BTreeSet<_> = HOSTS.iter().map(|host| host.id).collect();
    assert_eq!(ids.len(), HOSTS.len());
    for host in HOSTS {
        let plain = |c: char| c.is_ascii_lowercase() || c == '-';
        assert!(host.id.chars().all(plain), "{}", host.id);
        assert!(host.file(HostScope::User).is_some(), "{}", host.id);
    }
    assert!(Host::find("netscape").is_none());
}

#[test]
fn references_to_variables() {
    for (id, reference) in [
        ("claude-desktop", None),
        ("claude-code", Some("${KEY}")),
        ("vscode", Some("${env:KEY}")),
        ("opencode", Some("{env:KEY}")),
    ] {
        let form = Host::find(id).unwrap().style.variables;
        let written = form.map(|form| form.reference("KEY"));
        assert_eq!(written.as_deref(), reference, "{id}");
    }
}

#[test]
fn only_claude_desktop_starts_all_its_servers() {
    let silent: Vec<_> = HOSTS
        .iter()
        .filter(|host| host.style.url.is_none())
        .collect();
    assert_eq!(silent.len(), 1);
    assert_eq!(silent[0].id, "claude-desktop");
}
