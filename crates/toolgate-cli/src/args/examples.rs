//! Examples in the help of each command. A test parses every line.

/// Returns the examples of a command, such as `audit tail`; those of the program for an empty path. A line that begins
/// with `#` explains the lines below it.
pub(super) fn examples_of(path: &str) -> &'static str {
    let found = EXAMPLES.iter().find(|(of, _)| *of == path);
    found.map_or("", |(_, lines)| *lines)
}

/// Command paths and their examples.
#[rustfmt::skip]
pub(super) const EXAMPLES: &[(&str, &str)] = &[
    ("", "\
# Serve the default config, or the demo server if there is none
toolgate
# Put the gateway in front of one server, without a config
toolgate run -- npx -y @modelcontextprotocol/server-filesystem /srv/docs
# Decide pending calls from another terminal
toolgate inbox
toolgate approve a-k3x9pq"),
    ("serve", "\
# Serve HTTP on the address of the config
toolgate serve
# Serve the host that starts the program, as in its mcpServers config
toolgate serve --stdio --config ~/.config/toolgate/toolgate.toml"),
    ("run", "\
toolgate run -- npx -y @modelcontextprotocol/server-filesystem /srv/docs
toolgate run --stdio -- uvx mcp-server-git --repository /srv/code
# In rules and the audit log, call the server docs instead of filesystem
toolgate run --name docs -- npx -y @modelcontextprotocol/server-filesystem /srv/docs"),
    ("init", "\
toolgate init
toolgate init --config ./toolgate.toml"),
    ("add", "\
# The name is that of the package: filesystem
toolgate add -- npx -y @modelcontextprotocol/server-filesystem /srv/docs
toolgate add github --secret GITHUB_PERSONAL_ACCESS_TOKEN -- github-mcp-server stdio
# Pass a variable on from the environment of toolgate
toolgate add search --env SEARCH_API_KEY -- uvx mcp-server-search
toolgate add https://mcp.linear.app/mcp"),
    ("remove", "toolgate remove filesystem"),
    ("enable", "toolgate enable filesystem"),
    ("disable", "toolgate disable filesystem git"),
    ("uninstall", "\
toolgate uninstall
# Disconnect the hosts and stop the service, but keep the config and the audit log
toolgate uninstall hosts service"),
    ("doctor", "\
toolgate doctor
toolgate doctor --no-start --json
# Write a file for a bug report
toolgate doctor --bundle"),
    ("import", "\
# Show what an import would change
toolgate import --dry-run
# Import one file, and answer yes to the question
toolgate import ~/.cursor/mcp.json --yes"),
    ("check", "\
toolgate check
# In a pipeline: start the servers, and fail if a rule has no effect
toolgate check --servers --strict --config toolgate.toml"),
    ("config", "toolgate config schema"),
    ("config schema", "toolgate config schema"),
    ("demo-server", "\
toolgate run -- toolgate demo-server"),
    ("status", "toolgate status"),
    ("tools", "toolgate tools"),
    ("resources", "toolgate resources"),
    ("prompts", "toolgate prompts"),
    ("call", "\
toolgate call demo.add a=1 b=2
toolgate call demo.add '{\"a\": 1, \"b\": 2}'
toolgate call demo.note @note.json"),
    ("calls", "toolgate calls"),
    ("connect", "\
# List the known hosts
toolgate connect
toolgate connect claude-code
# Show the change of the file for this project, without writing it
toolgate connect cursor --project --dry-run
# Connect to the gateway that `toolgate serve` runs
toolgate connect vscode --http
# Move the host's other servers behind the gateway
toolgate connect cursor --replace
# Send the host's own tools, such as its shell, through the gateway
toolgate connect claude-code --hooks"),
    ("disconnect", "\
toolgate disconnect claude-code
toolgate disconnect claude-code --hooks"),
    ("hook", "toolgate hook claude-code --wait 590"),
    ("host-tools", "\
toolgate run -- toolgate host-tools"),
    ("service", "\
toolgate service install
toolgate service status"),
    ("service install", "\
toolgate service install
toolgate service install --dry-run
toolgate service install --system --config /etc/toolgate/toolgate.toml"),
    ("service status", "toolgate service status"),
    ("service uninstall", "toolgate service uninstall"),
    ("store", "\
toolgate store check
toolgate store export toolgate-state.jsonl"),
    ("store migrate", "toolgate store migrate"),
    ("store check", "toolgate store check"),
    ("store export", "toolgate store export toolgate-state.jsonl"),
    ("store import", "toolgate store import toolgate-state.jsonl --data ./restored"),
    ("store pki", "toolgate store pki --dir pki 10.0.0.5 10.0.0.6"),
    ("store clear", "toolgate store clear clock"),
    ("schema", "\
toolgate schema
toolgate schema keys list"),
    ("completions", "\
toolgate completions bash > ~/.local/share/bash-completion/completions/toolgate
# In a directory of zsh's $fpath
toolgate completions zsh > ~/.zfunc/_toolgate
toolgate completions fish > ~/.config/fish/completions/toolgate.fish
toolgate completions powershell >> $PROFILE"),
    ("man", "\
toolgate man audit tail | man -l -
toolgate man --dir ~/.local/share/man/man1"),
    ("explain", "\
# Find the rule that decides a call
toolgate explain files.write_file '{\"path\": \"/srv/docs/plan.md\"}' --caller key:ci
# Try a new config on the calls of the last week
toolgate explain --history 7d --config new.toml"),
    ("replay", "\
toolgate replay
# Try a new config on one session
toolgate replay session.jsonl --config new.toml
# Propose rules from the calls of the last 30 days
toolgate replay --audit 30d"),
    ("inbox", "\
toolgate inbox
# Decide calls as they arrive
toolgate inbox --watch
# Print a line for each new request and each decision
toolgate inbox --watch | tee approvals.log"),
    ("approve", "\
toolgate approve a-k3x9pq
# Approve at most ten later calls of this tool as well, during the next 8 hours
toolgate approve a-k3x9pq --remember --for 8h --uses 10
toolgate approve a-k3x9pq --edit '{\"path\": \"/srv/docs/plan.md\"}'"),
    ("deny", "\
toolgate deny a-k3x9pq -m 'use the staging database'"),
    ("stop", "toolgate stop k3x9pq7m"),
    ("grants", "\
toolgate grants list
toolgate grants revoke --all"),
    ("grants list", "toolgate grants list"),
    ("grants revoke", "\
toolgate grants revoke g-7h3m2x
toolgate grants revoke --all"),
    ("freeze", "\
toolgate freeze caller key:ci --reason 'leaked key'
toolgate freeze all"),
    ("freeze caller", "toolgate freeze caller key:ci --reason 'leaked key'"),
    ("freeze server", "toolgate freeze server github"),
    ("freeze all", "toolgate freeze all --reason 'maintenance until 18:00'"),
    ("freeze list", "toolgate freeze list"),
    ("thaw", "\
toolgate thaw caller key:ci
toolgate thaw all"),
    ("thaw caller", "toolgate thaw caller key:ci"),
    ("thaw server", "toolgate thaw server github"),
    ("thaw all", "toolgate thaw all"),
    ("keys", "\
toolgate keys create ci --expires 90d
toolgate keys list"),
    ("keys create", "\
toolgate keys create ci --expires 90d
toolgate keys create laptop --until 2027-01-31"),
    ("keys rotate", "\
# Accept the old key for another hour
toolgate keys rotate ci --keep-old 1h"),
    ("keys extend", "toolgate keys extend ci --expires 90d"),
    ("keys list", "toolgate keys list"),
    ("keys revoke", "toolgate keys revoke ci"),
    ("passkeys", "\
toolgate passkeys list
toolgate passkeys export"),
    ("passkeys list", "toolgate passkeys list"),
    ("passkeys export", "toolgate passkeys export"),
    ("reload", "toolgate reload"),
    ("pins", "\
toolgate pins list
toolgate pins diff github.create_issue
toolgate pins accept github.create_issue"),
    ("pins list", "\
toolgate pins list
toolgate pins list github"),
    ("pins diff", "toolgate pins diff github.create_issue"),
    ("pins accept", "\
toolgate pins accept github.create_issue
# Accept every pending definition of a server
toolgate pins accept --server github"),
    ("pins reject", "toolgate pins reject github.create_issue"),
    ("pins forget", "toolgate pins forget github.create_issue"),
    ("tasks", "toolgate tasks list"),
    ("tasks list", "toolgate tasks list"),
    ("logs", "\
toolgate logs github
toolgate logs github -n 20 -f"),
    ("tasks stop", "toolgate tasks stop k3x9pq7m"),
    ("login", "\
toolgate login github
# On a machine without a browser, behind ssh -L 8666:127.0.0.1:8666
toolgate login github --no-browser --port 8666"),
    ("logout", "\
toolgate logout github
toolgate logout github --caller key:ci"),
    ("logins", "toolgate logins"),
    ("console", "\
toolgate console --as alice
# End all console sessions
toolgate console --revoke"),
    ("audit", "\
toolgate audit tail -f
toolgate audit verify"),
    ("audit tail", "\
toolgate audit tail
toolgate audit tail -n 100 -f"),
    ("audit search", "\
toolgate audit search --tool files.write_file --since 7d
toolgate audit search --caller key:ci --decision deny --json"),
    ("audit export", "\
# Export the records since the last export
toolgate audit export --format ocsf --cursor export.cursor"),
    ("audit verify", "\
toolgate audit verify
toolgate audit verify --checkpoints /mnt/mirror/checkpoints
toolgate audit verify --fleet --log /mnt/gate-2 --log /mnt/gate-3"),
    ("audit copies", "\
toolgate audit copies"),
    ("audit restore-copy", "\
toolgate audit restore-copy --gateway 10.0.0.6:7445 --to ./gate-2-log"),
    ("audit prune-copies", "\
toolgate audit prune-copies --before 2026-11-30"),
    ("audit checkpoints", "toolgate audit checkpoints > checkpoints.jsonl"),
    ("audit erase", "\
toolgate audit erase --caller key:ci --dry-run
toolgate audit erase --before 2026-11-30 --yes"),
    ("audit acknowledge", "toolgate audit acknowledge"),
    ("audit key", "toolgate audit key"),
];
