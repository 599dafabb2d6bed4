//! Starter rules for well-known servers. They agree with the guides in `docs/guides/rules-for-*.md`.

/// Rules for a well-known server.
struct KnownServer {
    /// Words of a command or starts of a URL that identify the server; a version after `@` or `==` does not matter.
    words: &'static [&'static str],
    /// Rules; `ID` stands for the ID of the server.
    rules: &'static str,
}

/// Placeholder for the ID of the server.
const ID_PLACEHOLDER: &str = "ID.";

/// Returns the starter rules for a server, by the words of its command and its URL.
pub(crate) fn starter_rules(id: &str, command: &[String], url: Option<&str>) -> Option<String> {
    let known = KNOWN_SERVERS.iter().find(|known| {
        known.words.iter().any(|wanted| {
            let is_url = wanted.starts_with("https://");
            match url {
                Some(url) => is_url && url.starts_with(wanted),
                None => !is_url && command.iter().any(|word| is_package(word, wanted)),
            }
        })
    })?;
    Some(
        known
            .rules
            .replace(ID_PLACEHOLDER, &format!("{id}."))
            .trim_start()
            .to_owned(),
    )
}

/// Returns true if a word names a package, as a path or with a version too.
fn is_package(word: &str, package: &str) -> bool {
    let base = match package.contains('/') {
        true => word,
        false => word.rsplit('/').next().unwrap_or(word),
    };
    let Some(rest) = base.strip_prefix(package) else {
        return false;
    };
    rest.is_empty() || rest.starts_with(['@', '=', ':', '[', '~', '>', '<'])
}

const KNOWN_SERVERS: &[KnownServer] = &[
    KnownServer {
        words: &[
            "@modelcontextprotocol/server-filesystem",
            "mcp-server-filesystem",
            "mcp/filesystem",
        ],
        rules: r#"
[[rule]] # reading and listing
tools = ["ID.read_*", "ID.list_*", "ID.search_files", "ID.directory_tree", "ID.get_file_info"]
action = "allow"

[[rule]] # writing
tools = ["ID.write_file", "ID.edit_file", "ID.create_directory"]
action = "ask"

[[rule]] # nothing is moved or renamed
tools = ["ID.move_file"]
action = "deny"

[[rule]] # files that usually hold credentials
tools = ["ID.read_*", "ID.write_file", "ID.edit_file"]
except = ["ID.read_multiple_files"]
when = '''
args.path.lowerAscii().matches("(^|/)([.]env|[.]git|[.]ssh|[.]aws|id_(rsa|ecdsa|ed25519))($|[./])")
  || args.path.lowerAscii().matches("[.](pem|key|p12|pfx)$")
'''
action = "deny"

[[rule]]
tools = ["ID.read_multiple_files"]
when = '''
args.paths.exists(p,
  p.lowerAscii().matches("(^|/)([.]env|[.]git|[.]ssh|[.]aws|id_(rsa|ecdsa|ed25519))($|[./])")
  || p.lowerAscii().matches("[.](pem|key|p12|pfx)$"))
'''
action = "deny"
"#,
    },
    KnownServer {
        words: &[
            "github-mcp-server",
            "ghcr.io/github/github-mcp-server",
            "@modelcontextprotocol/server-github",
            "https://api.githubcopilot.com/mcp",
        ],
        rules: r#"
[[rule]] # reading
tools = ["ID.get_*", "ID.list_*", "ID.search_*", "ID.issue_read", "ID.pull_request_read"]
action = "allow"

[[rule]] # changes
tools = ["ID.create_*", "ID.update_*", "ID.add_*", "ID.push_files", "ID.issue_write", "ID.merge_pull_request"]
action = "ask"

[[rule]] # never
tools = ["ID.delete_*", "ID.create_repository", "ID.fork_repository"]
action = "deny"

[[rule]]
tools = ["ID.push_files", "ID.create_or_update_file"]
when = 'args.branch in ["main", "master"]'
action = "deny"
"#,
    },
    KnownServer {
        words: &["mcp-server-git", "mcp/git"],
        rules: r#"
[[rule]] # reading
tools = ["ID.git_status", "ID.git_diff*", "ID.git_log", "ID.git_show", "ID.git_branch"]
action = "allow"

[[rule]] # changes
tools = ["ID.git_add", "ID.git_commit", "ID.git_create_branch", "ID.git_checkout"]
action = "ask"

[[rule]] # changes that lose work
tools = ["ID.git_reset"]
action = "ask"
"#,
    },
    KnownServer {
        words: &["mcp-server-fetch", "mcp/fetch"],
        rules: r#"
[[rule]] # a page can be anything, and an address can carry data away
tools = ["ID.fetch"]
action = "ask"
"#,
    },
    KnownServer {
        words: &["mcp-server-sqlite", "mcp/sqlite"],
        rules: r#"
[[rule]] # schema
tools = ["ID.list_tables", "ID.describe_table"]
action = "allow"

[[rule]] # single SELECT statements
tools = ["ID.read_query"]
when = '''
args.query.lowerAscii().matches("^\\s*(select|with)\\s") && !args.query.contains(";")
'''
action = "allow"
rate = "30/min"

[[rule]] # changes ask
tools = ["ID.write_query", "ID.create_table"]
action = "ask"

[[rule]] # statements that drop, or change every row
tools = ["ID.write_query"]
when = '''
args.query.lowerAscii().matches("\\b(drop|alter|truncate|attach|detach|pragma|vacuum)\\b")
  || (args.query.lowerAscii().matches("\\b(update|delete)\\b") && !args.query.lowerAscii().matches("\\bwhere\\b"))
'''
action = "deny"
"#,
    },
    KnownServer {
        words: &["@modelcontextprotocol/server-postgres", "mcp/postgres"],
        rules: r#"
[[rule]] # single SELECT statements
tools = ["ID.query"]
when = '''
args.sql.lowerAscii().matches("^\\s*(select|with)\\s") && !args.sql.contains(";")
'''
action = "allow"
rate = "30/min"

[[rule]] # statements that drop, or change every row
tools = ["ID.query"]
when = '''
args.sql.lowerAscii().matches("\\b(drop|alter|truncate)\\b")
  || (args.sql.lowerAscii().matches("\\b(update|delete)\\b") && !args.sql.lowerAscii().matches("\\bwhere\\b"))
'''
action = "deny"
"#,
    },
    KnownServer {
        words: &["@modelcontextprotocol/server-memory", "mcp/memory"],
        rules: r#"
[[rule]] # reading
tools = ["ID.read_graph", "ID.search_nodes", "ID.open_nodes"]
action = "allow"

[[rule]] # changes
tools = ["ID.create_*", "ID.add_observations", "ID.delete_*"]
action = "ask"
"#,
    },
    KnownServer {
        words: &["mcp-server-time", "mcp/time"],
        rules: r#"
[[rule]]
tools = ["ID.get_current_time", "ID.convert_time"]
action = "allow"
"#,
    },
    KnownServer {
        words: &[
            "@modelcontextprotocol/server-sequential-thinking",
            "mcp-server-sequential-thinking",
            "mcp/sequentialthinking",
        ],
        rules: r#"
[[rule]]
tools = ["ID.sequentialthinking"]
action = "allow"
"#,
    },
    KnownServer {
        words: &["@playwright/mcp", "mcp/playwright"],
        rules: r#"
[[rule]] # looking at the page
tools = ["ID.browser_snapshot", "ID.browser_take_screenshot", "ID.browser_console_messages", "ID.browser_network_requests"]
action = "allow"

[[rule]] # everything else acts on pages
tools = ["ID.browser_*"]
except = ["ID.browser_snapshot", "ID.browser_take_screenshot", "ID.browser_console_messages", "ID.browser_network_requests"]
action = "ask"
"#,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::path::Path;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_server_is_known_by_its_package() {
        for (command, known) in [
            ("npx -y @modelcontextprotocol/server-filesystem /srv", true),
            ("npx @modelcontextprotocol/server-filesystem@1.2 /srv", true),
            ("/usr/local/bin/github-mcp-server stdio", true),
            ("uvx mcp-server-git==1.0 --repository .", true),
            (
                "docker run -i --rm ghcr.io/github/github-mcp-server:v1",
                true,
            ),
            ("uvx mcp-server-git-lab", false),
            ("npx @evil/server-filesystem", false),
            ("cat https://api.githubcopilot.com/mcp", false),
        ] {
            let rules = starter_rules("x", &words(command), None);
            assert_eq!(rules.is_some(), known, "{command}");
        }
        let url = Some("https://api.githubcopilot.com/mcp/");
        assert!(starter_rules("x", &[], url).is_some_and(|rules| rules.contains("\"x.get_*\"")));
    }

    #[test]
    fn all_rules_are_valid() {
        for known in KNOWN_SERVERS {
            let rules = known.rules.replace(ID_PLACEHOLDER, "x.");
            let text = format!("[server.x]\ncommand = [\"x\"]\n{rules}");
            let config = Config::parse(Path::new("rules"), &text);
            assert!(
                config.is_ok_and(|config| !config.rules.is_empty()),
                "{rules}"
            );
        }
    }

    /// The guides show the same rules; where they also have rules of an example, these are left out here.
    #[test]
    fn the_guides_have_the_same_rules() {
        let guides = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides");
        for (package, guide, id) in [
            (
                "@modelcontextprotocol/server-filesystem",
                "rules-for-a-file-server.md",
                "files",
            ),
            ("mcp-server-sqlite", "rules-for-a-database.md", "db"),
        ] {
            let guide = std::fs::read_to_string(guides.join(guide)).unwrap();
            let rules = starter_rules(id, &words(package), None).unwrap();
            for condition in rules.split("'''").skip(1).step_by(2) {
                assert!(guide.contains(condition), "{package}: {condition}");
            }
        }
    }
}
