//! The file in which a host keeps its hooks.

use super::{HookHost, HostPath, HostPlaces, host_document::parse_json};
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject};
use std::path::{Path, PathBuf};

/// End of a command whose user lets the host go on without a gateway.
const WITHOUT_GATEWAY: &str = " --if-unavailable allow";

/// Event of a host before one of its tools runs.
struct HookEvent {
    name: &'static str,
    /// Regular expression of the tools, if the host has other tools too.
    matcher: Option<&'static str>,
}

const ONLY_OWN_TOOLS: Option<&str> =
    Some("Bash|Edit|MultiEdit|Write|NotebookEdit|Read|WebFetch|WebSearch");
const CLAUDE_EVENTS: &[HookEvent] = &[HookEvent {
    name: "PreToolUse",
    matcher: ONLY_OWN_TOOLS,
}];
const CODEX_EVENTS: &[HookEvent] = &[HookEvent {
    name: "PreToolUse",
    matcher: Some("Bash|apply_patch|Edit|Write"),
}];
const CURSOR_EVENTS: &[HookEvent] = &[
    HookEvent {
        name: "beforeShellExecution",
        matcher: None,
    },
    HookEvent {
        name: "beforeReadFile",
        matcher: None,
    },
    HookEvent {
        name: "preToolUse",
        matcher: Some("Write|Edit|MultiEdit|NotebookEdit|Delete"),
    },
];

impl HookHost {
    /// Returns the path of the file with the hooks of a host, for the user or for one project.
    pub(crate) fn file(self, project: bool, places: &HostPlaces) -> Option<PathBuf> {
        let path = match (self, project) {
            (HookHost::ClaudeCode, false) => HostPath::Variable {
                name: "CLAUDE_CONFIG_DIR",
                default: ".claude",
                file: "settings.json",
            },
            (HookHost::ClaudeCode, true) => HostPath::Project(".claude/settings.json"),
            (HookHost::Codex, false) => HostPath::Variable {
                name: "CODEX_HOME",
                default: ".codex",
                file: "hooks.json",
            },
            (HookHost::Codex, true) => HostPath::Project(".codex/hooks.json"),
            (HookHost::Cursor, false) => HostPath::Home(".cursor/hooks.json"),
            (HookHost::Cursor, true) => HostPath::Project(".cursor/hooks.json"),
        };
        path.resolve(places)
    }

    /// Returns true if a path is that of a file with the hooks of this host, for the user or for any project.
    pub(crate) fn has_file(self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|project| {
            let places = HostPlaces::of_this_user(project.to_owned());
            [false, true]
                .map(|project| self.file(project, &places))
                .iter()
                .any(|file| file.as_deref() == Some(path))
        })
    }

    fn events(self) -> &'static [HookEvent] {
        match self {
            HookHost::ClaudeCode => CLAUDE_EVENTS,
            HookHost::Codex => CODEX_EVENTS,
            HookHost::Cursor => CURSOR_EVENTS,
        }
    }

    /// Adds a command to the hooks of a file, unless it is there, and removes the gateway's older commands. The host
    /// cancels the command after `seconds`.
    ///
    /// # Errors
    /// The text is not JSON, or a value on the way to the hooks has another type.
    pub(crate) fn add_hooks(
        self,
        text: &str,
        command: &str,
        seconds: u64,
    ) -> Result<String, String> {
        let root = parse_json(text)?;
        let object = root
            .object_value_or_create()
            .ok_or("contains a value that is not a JSON object")?;
        if self == HookHost::Cursor && object.get("version").is_none() {
            object.append("version", CstInputValue::Number("1".to_owned()));
        }
        let hooks = object
            .object_value_or_create("hooks")
            .ok_or("has a \"hooks\" that is not an object")?;
        for event in self.events() {
            let list = hooks
                .array_value_or_create(event.name)
                .ok_or_else(|| format!("has a {:?} that is not an array", event.name))?;
            let own = self.own_hooks(&list);
            // The user's own choice about a missing gateway stays.
            let chosen = own
                .iter()
                .any(|(_, found)| found.ends_with(WITHOUT_GATEWAY));
            let command = match chosen {
                true => &format!("{command}{WITHOUT_GATEWAY}"),
                false => command,
            };
            if !matches!(own.as_slice(), [(_, found)] if found == command) {
                for (element, _) in own {
                    element.remove();
                }
                list.ensure_multiline();
                list.append(self.hook(event, command, seconds));
            }
        }
        Ok(root.to_string())
    }

    /// Removes the gateway's commands from the hooks of a file, and the keys that are empty then. `None` if no hook
    /// has one.
    ///
    /// # Errors
    /// The text is not JSON.
    pub(crate) fn remove_hooks(self, text: &str) -> Result<Option<String>, String> {
        let root = parse_json(text)?;
        let hooks = root
            .object_value()
            .and_then(|root| root.object_value("hooks"));
        let Some(hooks) = hooks else { return Ok(None) };
        let mut removed = false;
        for event in self.events() {
            let Some(list) = hooks.array_value(event.name) else {
                continue;
            };
            for (element, _) in self.own_hooks(&list) {
                element.remove();
                removed = true;
            }
            if list.elements().is_empty() {
                remove_key(&hooks, event.name);
            }
        }
        if hooks.properties().is_empty()
            && let Some(root) = root.object_value()
        {
            remove_key(&root, "hooks");
        }
        Ok(removed.then(|| root.to_string()))
    }

    /// Returns the gateway's commands in the hooks of a file.
    ///
    /// # Errors
    /// The text is not JSON.
    pub(crate) fn hook_commands(self, text: &str) -> Result<Vec<String>, String> {
        let root = parse_json(text)?;
        let hooks = root
            .object_value()
            .and_then(|root| root.object_value("hooks"));
        let events = self.events().iter();
        let lists = events.filter_map(|event| hooks.as_ref()?.array_value(event.name));
        Ok(lists
            .flat_map(|list| self.own_hooks(&list))
            .map(|(_, command)| command)
            .collect())
    }

    /// Returns true if a command runs `toolgate hook` for this host.
    pub(crate) fn is_own_command(self, command: &str) -> bool {
        command.contains(&format!(" hook {} --wait ", self.id()))
    }

    /// Returns the hooks of an event's list that run `toolgate hook` for this host, with their commands. A group that has
    /// no other hook is returned as a whole.
    fn own_hooks(self, list: &CstArray) -> Vec<(CstNode, String)> {
        let own_command = |node: &CstNode| {
            let value = node.to_serde_value().unwrap_or_default();
            let command = value["command"].as_str().unwrap_or_default();
            self.is_own_command(command).then(|| command.to_owned())
        };
        let mut found = Vec::new();
        for element in list.elements() {
            let group = element
                .as_object()
                .and_then(|group| group.array_value("hooks"));
            let Some(handlers) = group.map(|group| group.elements()) else {
                found.extend(own_command(&element).map(|command| (element.clone(), command)));
                continue;
            };
            let is_alone = handlers.len() == 1;
            for handler in handlers {
                let node = if is_alone {
                    element.clone()
                } else {
                    handler.clone()
                };
                found.extend(own_command(&handler).map(|command| (node, command)));
            }
        }
        found
    }

    fn hook(self, event: &HookEvent, command: &str, seconds: u64) -> CstInputValue {
        let text = |text: &str| CstInputValue::String(text.to_owned());
        let timeout = (
            "timeout".to_owned(),
            CstInputValue::Number(seconds.to_string()),
        );
        let matcher = event
            .matcher
            .map(|matcher| ("matcher".to_owned(), text(matcher)));
        let command = ("command".to_owned(), text(command));
        match self {
            HookHost::Cursor => {
                let strict = ("failClosed".to_owned(), CstInputValue::Bool(true));
                let fields = matcher.into_iter().chain([command, timeout, strict]);
                CstInputValue::Object(fields.collect())
            }
            HookHost::ClaudeCode | HookHost::Codex => {
                let kind = ("type".to_owned(), text("command"));
                let hook = CstInputValue::Object(vec![kind, command, timeout]);
                let hooks = ("hooks".to_owned(), CstInputValue::Array(vec![hook]));
                CstInputValue::Object(matcher.into_iter().chain([hooks]).collect())
            }
        }
    }
}

fn remove_key(object: &CstObject, key: &str) {
    if let Some(property) = object.get(key) {
        property.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_come_and_go_without_a_trace() {
        let theirs = "{\n  // mine\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"Bash\",\n        \"hooks\": [{\"type\": \"command\", \"command\": \"./check\"}]\n      }\n    ]\n  },\n  \"model\": \"m\"\n}\n";
        for host in HookHost::ALL {
            for text in ["{\n  \"version\": 1,\n  \"model\": \"m\"\n}\n", theirs] {
                let command = format!("toolgate hook {} --wait 590", host.id());
                let with = host.add_hooks(text, &command, 600).unwrap();
                assert!(with.contains(&format!("\"{command}\"")), "{with}");
                assert_eq!(host.add_hooks(&with, &command, 600).unwrap(), with);
                // A gateway that moved replaces its hook.
                let moved = format!("/opt/{command}");
                let again = host.add_hooks(&with, &moved, 600).unwrap();
                assert_eq!(again, with.replace(&command, &moved));
                let chosen = again.replace("590\"", "590 --if-unavailable allow\"");
                assert_eq!(host.add_hooks(&chosen, &moved, 600).unwrap(), chosen);
                let commands = host.hook_commands(&again).unwrap();
                assert!(!commands.is_empty() && commands.iter().all(|one| *one == moved));
                let back = host.remove_hooks(&again).unwrap().unwrap();
                if host == HookHost::Cursor && text == theirs {
                    assert_eq!(back.replace(",\n  \"version\": 1", ""), text);
                } else {
                    assert_eq!(back, text);
                }
                assert_eq!(host.remove_hooks(&back).unwrap(), None);
                assert!(host.hook_commands(&back).unwrap().is_empty());
            }
        }
    }

    #[test]
    fn a_hook_that_somebody_added_to_our_group_stays() {
        let host = HookHost::ClaudeCode;
        let ours = host
            .add_hooks("", "toolgate hook claude-code --wait 590", 600)
            .unwrap();
        let mut value: serde_json::Value = serde_json::from_str(&ours).unwrap();
        let group = value["hooks"]["PreToolUse"][0]["hooks"]
            .as_array_mut()
            .unwrap();
        group.push(serde_json::json!({"type": "command", "command": "./check"}));
        let text = host.remove_hooks(&value.to_string()).unwrap().unwrap();
        assert!(
            text.contains("./check") && !text.contains("toolgate"),
            "{text}"
        );
    }

    #[test]
    fn the_hooks_of_a_new_file() {
        let text = HookHost::ClaudeCode.add_hooks("", "toolgate hook claude-code", 600);
        let value: serde_json::Value = serde_json::from_str(&text.unwrap()).unwrap();
        assert_eq!(
            value,
            serde_json::json!({"hooks": {"PreToolUse": [{
                "matcher": "Bash|Edit|MultiEdit|Write|NotebookEdit|Read|WebFetch|WebSearch",
                "hooks": [{"type": "command", "command": "toolgate hook claude-code", "timeout": 600}]}]}})
        );
        let text = HookHost::Cursor
            .add_hooks("", "toolgate hook cursor", 600)
            .unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["version"], 1);
        assert_eq!(
            value["hooks"]["beforeShellExecution"],
            serde_json::json!([{"command": "toolgate hook cursor", "timeout": 600, "failClosed": true}])
        );
    }
}
