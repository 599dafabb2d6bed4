//! Trust of Codex in hooks. Codex runs a hook only after its user trusted it in Codex itself.

use super::{HookHost, HostPath, HostPlaces, digest_digits};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Trust of Codex in the gateway's hook.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CodexTrust {
    /// Codex runs the hook.
    Trusted,
    /// The hook changed since the user trusted it, so Codex skips it.
    Changed,
    /// The user did not trust the hook yet, so Codex skips it.
    Missing,
}

impl CodexTrust {
    /// Returns the path of Codex's config, which contains the trust.
    pub(crate) fn config_path(places: &HostPlaces) -> Option<PathBuf> {
        let path = HostPath::Variable {
            name: "CODEX_HOME",
            default: ".codex",
            file: "config.toml",
        };
        path.resolve(places)
    }

    /// Returns the trust in the gateway's hook. `hooks` is the text of the file with the hooks, `config` that of
    /// Codex's config.
    pub(crate) fn find(file: &Path, hooks: &str, config: &str) -> CodexTrust {
        let hooks: Value = serde_json::from_str(hooks).unwrap_or_default();
        let config: Value = toml::from_str(config).unwrap_or_default();
        let groups = hooks["hooks"]["PreToolUse"]
            .as_array()
            .into_iter()
            .flatten();
        for (group_index, group) in groups.enumerate() {
            let handlers = group["hooks"].as_array().into_iter().flatten();
            for (index, handler) in handlers.enumerate() {
                let command = handler["command"].as_str().unwrap_or_default();
                if !HookHost::Codex.is_own_command(command) {
                    continue;
                }
                let key = format!("{}:pre_tool_use:{group_index}:{index}", file.display());
                return match config["hooks"]["state"][&key]["trusted_hash"].as_str() {
                    None => CodexTrust::Missing,
                    Some(hash) if hash == trusted_hash(group, handler) => CodexTrust::Trusted,
                    Some(_) => CodexTrust::Changed,
                };
            }
        }
        CodexTrust::Missing
    }
}

/// Returns the hash that Codex stores for a hook: SHA-256 of its JSON with sorted keys.
fn trusted_hash(group: &Value, handler: &Value) -> String {
    let mut handler = handler.clone();
    if let Some(handler) = handler.as_object_mut() {
        handler.entry("async").or_insert(false.into());
    }
    let mut hook = json!({"event_name": "pre_tool_use", "hooks": [handler]});
    if let Some(matcher) = group.get("matcher") {
        hook["matcher"] = matcher.clone();
    }
    // Objects of serde_json have sorted keys.
    format!("sha256:{}", digest_digits(hook.to_string().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash was written by Codex 0.169.0 for this file.
    #[test]
    fn trust_as_codex_stores_it() {
        let file = Path::new("/home/ada/.codex/hooks.json");
        let hooks = r#"{"hooks": {"PreToolUse": [{"matcher": "Bash|apply_patch|Edit|Write", "hooks": [{
            "type": "command", "command": "/usr/local/bin/toolgate hook codex --wait 590", "timeout": 600}]}]}}"#;
        let config = "[hooks.state]\n\n[hooks.state.\"/home/ada/.codex/hooks.json:pre_tool_use:0:0\"]\n\
            trusted_hash = \"sha256:f2d03b45b1f0ad7d99db5b8581e914ef6b31b71e7054a53051b80c818be5c4dc\"\n";
        assert_eq!(CodexTrust::find(file, hooks, config), CodexTrust::Trusted);
        let moved = hooks.replace("/usr/local/bin/toolgate", "/usr/bin/toolgate");
        assert_eq!(CodexTrust::find(file, &moved, config), CodexTrust::Changed);
        assert_eq!(CodexTrust::find(file, hooks, ""), CodexTrust::Missing);
        let second = hooks.replace("[{\"matcher\"", "[{\"hooks\": []}, {\"matcher\"");
        assert_eq!(CodexTrust::find(file, &second, config), CodexTrust::Missing);
    }
}
