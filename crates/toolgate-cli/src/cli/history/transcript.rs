//! Tool calls in the transcripts of hosts: the sessions of Claude Code and Codex, as JSON Lines.

use crate::hosts::hook_tool_name;
use serde_json::{Map, Value, json};
use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

/// Maximum length of a line in bytes; a longer one is skipped.
const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;
/// Maximum depth of directories with transcripts.
const MAX_DEPTH: usize = 6;
/// Names of the shell in Codex.
const CODEX_SHELLS: [&str; 4] = ["shell", "exec_command", "local_shell", "shell_command"];
/// Separator between server and tool in the names that hosts show to models.
const SEPARATOR: &str = "__";

/// Host that wrote a transcript.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TranscriptHost {
    ClaudeCode,
    Codex,
}

/// Tool call in a transcript.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TranscriptCall {
    pub(super) host: TranscriptHost,
    /// Name of the server in the host's config, or `host` for a tool of the host itself.
    pub(super) server: String,
    /// Name of the tool at the server.
    pub(super) tool: String,
    pub(super) arguments: Value,
}

/// Returns the transcripts at a path: the file itself, or all `.jsonl` files of a directory, in the order of their names.
///
/// # Errors
/// The path cannot be read.
pub(crate) fn transcript_files(path: &Path) -> io::Result<Vec<PathBuf>> {
    fn collect(path: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
        let mut entries: Vec<PathBuf> = fs::read_dir(path)?
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<_>>()?;
        entries.sort();
        for entry in entries {
            match entry.symlink_metadata()?.file_type() {
                kind if kind.is_dir() && depth < MAX_DEPTH => collect(&entry, depth + 1, found)?,
                kind if kind.is_file() && entry.extension().is_some_and(|end| end == "jsonl") => {
                    found.push(entry);
                }
                _ => {}
            }
        }
        Ok(())
    }
    if path.metadata()?.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    collect(path, 0, &mut found)?;
    Ok(found)
}

/// Reads the tool calls of a transcript. Lines that are none are skipped.
///
/// # Errors
/// The file cannot be read.
pub(super) fn read_calls(file: &Path, mut each: impl FnMut(TranscriptCall)) -> io::Result<()> {
    let mut reader = BufReader::new(File::open(file)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.len() > MAX_LINE_BYTES {
            continue;
        }
        let Ok(value) = serde_json::from_slice::<Value>(&line) else {
            continue;
        };
        calls_of(&value).into_iter().for_each(&mut each);
    }
}

/// Returns the tool calls of a line.
fn calls_of(line: &Value) -> Vec<TranscriptCall> {
    match line["type"].as_str() {
        Some("assistant") => {
            let blocks = line["message"]["content"].as_array().into_iter().flatten();
            let uses = blocks.filter(|block| block["type"] == "tool_use");
            let call = |used: &Value| {
                let name = used["name"].as_str()?;
                call(TranscriptHost::ClaudeCode, name, used["input"].clone())
            };
            uses.filter_map(call).collect()
        }
        Some("response_item") => codex_call(&line["payload"]).into_iter().collect(),
        // Before envelopes, Codex wrote the items themselves.
        Some("function_call" | "custom_tool_call" | "local_shell_call") => {
            codex_call(line).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn codex_call(item: &Value) -> Option<TranscriptCall> {
    match item["type"].as_str()? {
        "function_call" => {
            let text = item["arguments"].as_str().unwrap_or("{}");
            let arguments = serde_json::from_str(text).unwrap_or_else(|_| json!({"input": text}));
            call(TranscriptHost::Codex, item["name"].as_str()?, arguments)
        }
        "custom_tool_call" => {
            let arguments = json!({"command": item["input"]});
            call(TranscriptHost::Codex, item["name"].as_str()?, arguments)
        }
        "local_shell_call" => call(
            TranscriptHost::Codex,
            "shell",
            json!({"command": item["action"]["command"]}),
        ),
        _ => None,
    }
}

/// Returns a call, unless the tool only plans or asks inside the host.
fn call(host: TranscriptHost, name: &str, arguments: Value) -> Option<TranscriptCall> {
    let arguments = match arguments {
        Value::Object(fields) => fields,
        other => Map::from_iter([("input".to_owned(), other)]),
    };
    let plain = name.strip_prefix("mcp__").unwrap_or(name);
    if let Some((server, tool)) = plain.split_once(SEPARATOR) {
        return Some(TranscriptCall {
            host,
            server: server.to_owned(),
            tool: tool.to_owned(),
            arguments: Value::Object(arguments),
        });
    }
    let is_shell = host == TranscriptHost::Codex && CODEX_SHELLS.contains(&name);
    let tool = if is_shell {
        "bash"
    } else {
        hook_tool_name(name)?
    };
    Some(TranscriptCall {
        host,
        server: "host".to_owned(),
        tool: tool.to_owned(),
        arguments: Value::Object(host_arguments(arguments)),
    })
}

/// Returns the arguments as the hook of the host would send them.
fn host_arguments(mut arguments: Map<String, Value>) -> Map<String, Value> {
    for (theirs, ours) in [
        ("file_path", "path"),
        ("notebook_path", "path"),
        ("cmd", "command"),
    ] {
        if let Some(value) = arguments.remove(theirs) {
            arguments.entry(ours).or_insert(value);
        }
    }
    // `["bash", "-lc", "ls"]` is the shell command `ls`.
    let words = arguments.get("command").and_then(Value::as_array);
    if let Some(words) = words {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        let line = match words.as_slice() {
            [
                "bash" | "sh" | "zsh" | "/bin/bash" | "/bin/sh" | "/bin/zsh",
                "-c" | "-lc",
                line,
            ] => (*line).to_owned(),
            words => words.join(" "),
        };
        arguments.insert("command".to_owned(), line.into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(line: Value) -> (String, Value) {
        let mut calls = calls_of(&line);
        assert_eq!(calls.len(), 1, "{line}");
        let call = calls.remove(0);
        (format!("{}.{}", call.server, call.tool), call.arguments)
    }

    #[test]
    fn lines_of_claude_code() {
        let used = |name: &str, input: Value| {
            json!({"type": "assistant", "message": {"role": "assistant", "content": [
                {"type": "text", "text": "I will look."}, {"type": "tool_use", "id": "t", "name": name, "input": input}]}})
        };
        assert_eq!(
            only(used(
                "Bash",
                json!({"command": "ls", "description": "List"})
            )),
            (
                "host.bash".to_owned(),
                json!({"command": "ls", "description": "List"})
            )
        );
        assert_eq!(
            only(used("Read", json!({"file_path": "/a"}))),
            ("host.read".to_owned(), json!({"path": "/a"}))
        );
        assert_eq!(
            only(used("mcp__github__create_issue", json!({"title": "x"}))),
            ("github.create_issue".to_owned(), json!({"title": "x"}))
        );
        assert!(calls_of(&used("TodoWrite", json!({}))).is_empty());
        assert!(calls_of(&json!({"type": "user", "message": {"content": "hi"}})).is_empty());
    }

    #[test]
    fn lines_of_codex() {
        let item =
            |payload: Value| json!({"timestamp": "t", "type": "response_item", "payload": payload});
        let shell = json!({"type": "function_call", "name": "shell", "call_id": "c",
            "arguments": "{\"command\":[\"bash\",\"-lc\",\"cargo test\"],\"workdir\":\"/p\"}"});
        let wanted = (
            "host.bash".to_owned(),
            json!({"command": "cargo test", "workdir": "/p"}),
        );
        assert_eq!(only(item(shell.clone())), wanted);
        assert_eq!(only(shell), wanted);
        let patch =
            json!({"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin"});
        assert_eq!(only(item(patch)).0, "host.edit");
        let tool = json!({"type": "function_call", "name": "mcp__files__read_file", "arguments": "{\"path\":\"/a\"}"});
        assert_eq!(
            only(item(tool)),
            ("files.read_file".to_owned(), json!({"path": "/a"}))
        );
        assert!(calls_of(&item(json!({"type": "message"}))).is_empty());
    }
}
