//! Startup banner: addresses and paths, and snippets to paste.

use std::{fmt::Write, path::Path};

/// Content of the startup banner.
pub(crate) struct StartupBanner<'a> {
    pub(crate) endpoint: Option<&'a str>,
    pub(crate) console: Option<&'a str>,
    pub(crate) data: &'a Path,
    /// Memory bound of the gateway.
    pub(crate) memory: &'a str,
    pub(crate) program: &'a Path,
    /// Arguments with which a host would start the gateway.
    pub(crate) stdio_arguments: &'a [String],
    /// Example tool call, with its arguments.
    pub(crate) example: Option<(&'a str, &'a str)>,
    pub(crate) needs_token: bool,
    /// Additional note.
    pub(crate) note: Option<String>,
}

impl StartupBanner<'_> {
    /// Renders the banner for stderr.
    pub(crate) fn render(&self) -> String {
        let mut out = String::new();
        let mut line = |name: &str, value: &dyn std::fmt::Display| {
            let _ = writeln!(out, "{name:<15}{value}");
        };
        if let Some(endpoint) = self.endpoint {
            line("MCP endpoint", &endpoint);
        }
        if let Some(console) = self.console {
            line("console", &console);
        }
        line("data", &self.data.display());
        line("program", &self.program.display());
        line("memory", &self.memory);
        if let Some(endpoint) = self.endpoint {
            let _ = write!(
                out,
                "\nPaste into a host; its pending approvals appear in this console:\n{}\n\
                 Or let the host start its own gateway over stdio; its pending approvals appear in `toolgate inbox`:\n{}\n",
                url_snippet(endpoint, self.needs_token),
                self.stdio_snippet(),
            );
        }
        if let Some(note) = &self.note {
            let _ = write!(out, "\n{note}\n");
        }
        if let Some((tool, arguments)) = self.example {
            let _ = write!(
                out,
                "\nTry it from another terminal:\n  {} call {tool} '{arguments}'{}\n",
                shell_quote(&self.program.display().to_string()),
                option_words(self.stdio_arguments, &["--data"])
            );
        }
        out
    }

    fn stdio_snippet(&self) -> String {
        let entry = serde_json::json!({"toolgate": {"command": self.program, "args": self.stdio_arguments}});
        format!("  {}", serde_json::json!({"mcpServers": entry}))
    }
}

/// Returns those of the options that are in the arguments, with their values, quoted for a shell. Words behind `--`
/// belong to a server's command.
pub(crate) fn option_words(words: &[String], names: &[&str]) -> String {
    let own = words.iter().position(|word| word == "--");
    let own = words.get(..own.unwrap_or(words.len())).unwrap_or_default();
    let flag = |name: &&str| {
        let at = own.iter().position(|word| word == *name)?;
        let value = own.get(at + 1)?;
        Some(format!(" {name} {}", shell_quote(value)))
    };
    names.iter().filter_map(flag).collect()
}

fn url_snippet(endpoint: &str, token: bool) -> String {
    let entry = match token {
        true => {
            serde_json::json!({"type": "http", "url": endpoint, "headers": {"Authorization": "Bearer ${TOKEN}"}})
        }
        false => serde_json::json!({"type": "http", "url": endpoint}),
    };
    format!(
        "  {}",
        serde_json::json!({"mcpServers": {"toolgate": entry}})
    )
}

/// Quotes a word for a shell, if necessary.
pub(crate) fn shell_quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_banner_is_complete_and_its_snippets_are_json() {
        let stdio = ["--stdio", "--data", "/tmp/a b"].map(str::to_owned);
        let ready = StartupBanner {
            endpoint: Some("http://127.0.0.1:8665/mcp"),
            console: Some("http://127.0.0.1:8665/#token=x"),
            data: Path::new("/tmp/a b"),
            memory: "at most 1.0 GiB",
            program: Path::new("/opt/toolgate"),
            stdio_arguments: &stdio,
            example: Some(("demo.add", "{\"a\": 1, \"b\": 2}")),
            needs_token: false,
            note: None,
        };
        let text = ready.render();
        assert!(text.starts_with("MCP endpoint   http://127.0.0.1:8665/mcp\nconsole        http://127.0.0.1:8665/#token=x\n"));
        assert!(
            text.contains("/opt/toolgate call demo.add '{\"a\": 1, \"b\": 2}' --data '/tmp/a b'"),
            "{text}"
        );
        let snippets = text.lines().filter(|l| l.trim_start().starts_with('{'));
        let parsed: Vec<serde_json::Value> =
            snippets.map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(parsed.len(), 2);
    }
}
