//! Calls of a host's own tools, as its hooks describe them, and the answers that hooks expect.

use serde_json::{Map, Value, json};

/// Host whose own tools can pass the gateway, because it runs a command before each of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum HookHost {
    /// Claude Code: `PreToolUse`, see <https://code.claude.com/docs/en/hooks>.
    ClaudeCode,
    /// Codex: `PreToolUse`, see <https://developers.openai.com/codex/hooks>.
    Codex,
    /// Cursor: `beforeShellExecution`, `beforeReadFile` and `preToolUse`, see <https://cursor.com/docs/agent/hooks>.
    Cursor,
}

/// Call of a host's own tool, as a call of the server `host`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HookCall {
    /// Name of the tool, such as `bash`.
    pub(crate) tool: &'static str,
    /// Arguments of the tool, as the host wrote them. The path of a file is always `path`.
    pub(crate) arguments: Value,
}

/// Answer to a hook.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct HookAnswer {
    /// Text for standard output.
    pub(crate) output: String,
    /// Text for standard error, which the host shows to the model.
    pub(crate) message: String,
    /// Exit code.
    pub(crate) code: u8,
}

/// Exit code with which a hook of Claude Code or Codex blocks the tool.
const BLOCKED_CODE: u8 = 2;

/// Tools of hosts and their names in rules: `host.NAME`.
const TOOL_NAMES: &[(&str, &str)] = &[
    ("Bash", "bash"),
    ("apply_patch", "edit"),
    ("Edit", "edit"),
    ("MultiEdit", "edit"),
    ("NotebookEdit", "edit"),
    ("Write", "write"),
    ("Delete", "write"),
    ("Read", "read"),
    ("Glob", "read"),
    ("Grep", "read"),
    ("WebFetch", "fetch"),
    ("WebSearch", "search"),
];

/// Keys with the path of a file, in the tools of hosts.
const PATH_KEYS: &[&str] = &["file_path", "notebook_path"];

impl HookHost {
    /// All hosts with hooks.
    pub(crate) const ALL: [HookHost; 3] = [HookHost::ClaudeCode, HookHost::Codex, HookHost::Cursor];

    /// Returns the host with this id.
    pub(crate) fn find(id: &str) -> Option<HookHost> {
        HookHost::ALL.into_iter().find(|host| host.id() == id)
    }

    /// Returns the id of the host, as in the table of hosts.
    pub(crate) fn id(self) -> &'static str {
        match self {
            HookHost::ClaudeCode => "claude-code",
            HookHost::Codex => "codex",
            HookHost::Cursor => "cursor",
        }
    }

    /// Reads the input of a hook.
    ///
    /// # Errors
    /// The input is not what the host documents.
    pub(crate) fn read(self, input: &[u8]) -> Result<HookCall, String> {
        let wrong = |why: &str| format!("the input of the hook cannot be read: {why}");
        let input: Value =
            serde_json::from_slice(input).map_err(|error| wrong(&error.to_string()))?;
        let Value::Object(mut input) = input else {
            return Err(wrong("it is not a JSON object"));
        };
        let event = input.get("hook_event_name").and_then(Value::as_str);
        let (tool, mut arguments) = match (self, event) {
            (HookHost::Cursor, Some("beforeShellExecution")) => {
                ("bash", only(&mut input, &["command"]))
            }
            // The contents of the file are left out: only its path decides.
            (HookHost::Cursor, Some("beforeReadFile")) => {
                ("read", only(&mut input, &["file_path"]))
            }
            _ => {
                let name = input.get("tool_name").and_then(Value::as_str);
                let name = name.ok_or_else(|| wrong("it has no \"tool_name\""))?;
                let (tool, name) = (hook_tool_name(name).unwrap_or("other"), name.to_owned());
                let mut arguments = match input.remove("tool_input") {
                    Some(Value::Object(arguments)) => arguments,
                    other => Map::from_iter([("input".to_owned(), other.unwrap_or_default())]),
                };
                if tool == "other" {
                    arguments = Map::from_iter([
                        ("tool".to_owned(), name.into()),
                        ("input".to_owned(), Value::Object(arguments)),
                    ]);
                }
                (tool, arguments)
            }
        };
        for key in PATH_KEYS {
            if let Some(path) = arguments.remove(*key) {
                arguments.entry("path").or_insert(path);
            }
        }
        if let Some(directory) = input.remove("cwd").filter(Value::is_string) {
            arguments.entry("cwd").or_insert(directory);
        }
        Ok(HookCall {
            tool,
            arguments: Value::Object(arguments),
        })
    }

    /// Returns the answer that lets the host run its tool. The host's own permissions still apply.
    pub(crate) fn allow(self) -> HookAnswer {
        let output = match self {
            HookHost::ClaudeCode | HookHost::Codex => String::new(),
            HookHost::Cursor => format!("{}\n", json!({"permission": "allow"})),
        };
        HookAnswer {
            output,
            message: String::new(),
            code: 0,
        }
    }

    /// Returns the answer that keeps the host from running its tool, with a reason for the model.
    pub(crate) fn deny(self, reason: &str) -> HookAnswer {
        match self {
            HookHost::ClaudeCode | HookHost::Codex => HookAnswer {
                output: String::new(),
                message: format!("{reason}\n"),
                code: BLOCKED_CODE,
            },
            HookHost::Cursor => {
                let output =
                    json!({"permission": "deny", "user_message": reason, "agent_message": reason});
                HookAnswer {
                    output: format!("{output}\n"),
                    message: String::new(),
                    code: 0,
                }
            }
        }
    }
}

/// Returns the name in rules of a host's own tool, such as `bash` for `Bash`.
pub(crate) fn hook_tool_name(name: &str) -> Option<&'static str> {
    let known = TOOL_NAMES.iter().find(|(theirs, _)| *theirs == name);
    known.map(|(_, ours)| *ours)
}

/// Takes these keys out of an input.
fn only(input: &mut Map<String, Value>, keys: &[&str]) -> Map<String, Value> {
    let pair = |key: &&str| Some(((*key).to_owned(), input.remove(*key)?));
    keys.iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(host: HookHost, input: &Value) -> HookCall {
        host.read(input.to_string().as_bytes()).unwrap()
    }

    /// Inputs as the hosts document them.
    #[test]
    fn inputs_of_the_hosts() {
        let bash = json!({"session_id": "s", "transcript_path": "/t", "cwd": "/srv", "permission_mode": "default",
            "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "u",
            "tool_input": {"command": "ls", "description": "List files", "timeout": 1000}});
        for host in [HookHost::ClaudeCode, HookHost::Codex] {
            let call = read(host, &bash);
            assert_eq!(call.tool, "bash");
            assert_eq!(
                call.arguments,
                json!({"command": "ls", "description": "List files", "timeout": 1000, "cwd": "/srv"})
            );
        }
        let edit = json!({"hook_event_name": "PreToolUse", "tool_name": "Edit",
            "tool_input": {"file_path": "/a", "old_string": "x", "new_string": "y"}});
        let call = read(HookHost::ClaudeCode, &edit);
        assert_eq!(
            (call.tool, call.arguments),
            (
                "edit",
                json!({"path": "/a", "old_string": "x", "new_string": "y"})
            )
        );
        let patch = json!({"hook_event_name": "PreToolUse", "tool_name": "apply_patch", "tool_input": {"command": "*** Begin Patch"}});
        assert_eq!(read(HookHost::Codex, &patch).tool, "edit");
        let shell = json!({"hook_event_name": "beforeShellExecution", "conversation_id": "c", "command": "npm i", "cwd": "/p"});
        let call = read(HookHost::Cursor, &shell);
        assert_eq!(
            (call.tool, call.arguments),
            ("bash", json!({"command": "npm i", "cwd": "/p"}))
        );
        let file = json!({"hook_event_name": "beforeReadFile", "file_path": "/p/.env", "content": "SECRET"});
        let call = read(HookHost::Cursor, &file);
        assert_eq!(
            (call.tool, call.arguments),
            ("read", json!({"path": "/p/.env"}))
        );
        let other =
            json!({"hook_event_name": "preToolUse", "tool_name": "Dance", "tool_input": {"a": 1}});
        let call = read(HookHost::Cursor, &other);
        assert_eq!(
            (call.tool, call.arguments),
            ("other", json!({"tool": "Dance", "input": {"a": 1}}))
        );
        for wrong in ["", "[]", "{}", "{\"tool_name\": 1}"] {
            assert!(
                HookHost::ClaudeCode.read(wrong.as_bytes()).is_err(),
                "{wrong}"
            );
        }
    }
}
