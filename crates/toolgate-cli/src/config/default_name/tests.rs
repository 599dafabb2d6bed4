use super::*;
use crate::config::server_names::check_id;

/// Command lines as the documentation of servers has them, with the names.
const COMMANDS: &[(&str, &str)] = &[
    (
        "npx -y @modelcontextprotocol/server-filesystem@1.2 /x",
        "filesystem",
    ),
    (
        "npx -y @modelcontextprotocol/server-filesystem /x",
        "filesystem",
    ),
    (
        "npx --yes @modelcontextprotocol/server-sequential-thinking",
        "sequential-thinking",
    ),
    (
        "/usr/bin/npx -y @playwright/mcp@latest --headless",
        "playwright",
    ),
    ("npx -y @upstash/context7-mcp --api-key x", "context7"),
    ("npx -p @scope/tools -y mcp-server-thing", "thing"),
    ("npx -y @sentry/mcp-server@latest", "sentry"),
    ("npx -y mcp-remote https://mcp.linear.app/sse", "linear"),
    (
        "npx mcp-remote@latest https://mcp.notion.com/mcp --debug",
        "notion",
    ),
    ("npx -y firecrawl-mcp", "firecrawl"),
    (
        "npm exec -- @executeautomation/playwright-mcp-server",
        "playwright",
    ),
    ("pnpm dlx figma-developer-mcp --stdio", "figma-developer"),
    ("bunx @supabase/mcp-server-supabase@latest", "supabase"),
    ("bun x repomix --mcp", "repomix"),
    ("deno run -A npm:@acme/mcp-weather@2", "weather"),
    ("uvx mcp-server-git", "git"),
    ("uvx mcp-server-git==2025.1.1 --repository /srv", "git"),
    (
        "uvx --from git+https://github.com/oraios/serena serena start-mcp-server",
        "serena",
    ),
    (
        "uvx --from mcp-alchemy==1.0 --with psycopg2-binary mcp-alchemy",
        "alchemy",
    ),
    (
        "uvx awslabs.aws-documentation-mcp-server@latest",
        "awslabs-aws-documentation",
    ),
    ("uvx mcp[cli]", "mcp"),
    ("uv tool run mcp-server-time", "time"),
    ("uv run --directory /srv/weather weather.py", "weather"),
    ("uv --directory /srv/weather run weather.py", "uv"),
    ("uv run -m my_server.weather", "my-server-weather"),
    ("pipx run mcp-server-fetch", "fetch"),
    ("python -m mcp_server_time --local-timezone=UTC", "time"),
    ("python3 /srv/weather/server.py", "weather"),
    ("python3.12 -m mcp_server_time", "python3-12"),
    ("node /srv/github-tools/dist/index.js", "github-tools"),
    ("node --import tsx ./src/index.ts", "index"),
    (
        "docker run -i --rm ghcr.io/github/github-mcp-server",
        "github",
    ),
    (
        "docker run -i --rm -e GITHUB_PERSONAL_ACCESS_TOKEN ghcr.io/github/github-mcp-server:v1",
        "github",
    ),
    (
        "docker run -i --rm --mount type=bind,src=/a,dst=/b mcp/postgres postgres://x",
        "postgres",
    ),
    (
        "docker run -i --rm registry.local:5000/grafana/mcp-grafana@sha256:abcd -t stdio",
        "grafana",
    ),
    ("podman run --rm -i docker.io/mcp/server", "mcp"),
    ("env A=1 uvx mcp-server-git", "git"),
    ("/opt/acme/mcp-server-acme --flag", "acme"),
    ("github-mcp-server stdio", "github"),
    ("mcp-server-filesystem /srv", "filesystem"),
    ("./target/debug/my-server", "my-server"),
    (
        "java -jar /opt/weather-server-1.0.jar",
        "weather-server-1-0",
    ),
    ("npx", "npx"),
    ("npx -y", "npx"),
    ("server", "server"),
    ("日本", "server"),
    (
        "/srv/a-very-long-name-of-a-program-that-nobody-can-type",
        "a-very-long-name-of-a-program-th",
    ),
];

const URLS: &[(&str, &str)] = &[
    ("https://mcp.linear.app/mcp", "linear"),
    ("https://mcp.notion.com/mcp", "notion"),
    ("https://api.githubcopilot.com/mcp/", "githubcopilot"),
    ("https://huggingface.co/mcp", "huggingface"),
    ("https://docs.mcp.cloudflare.com/sse", "cloudflare"),
    ("https://mcp.example.co.uk/mcp?x=1", "example"),
    ("https://weather.acme.workers.dev/mcp", "acme"),
    ("https://user@tools.example.com:8443/mcp", "example"),
    ("http://localhost:3000/mcp", "localhost"),
    ("http://127.0.0.1:3000/mcp", "server"),
    ("http://[::1]:3000/mcp", "server"),
    ("https://", "server"),
];

#[test]
fn names_come_from_the_package_and_not_from_its_runner() {
    for (line, name) in COMMANDS {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let found = name_of_command(&words);
        assert_eq!(found, *name, "{line}");
        check_id(&found).unwrap();
    }
    check_id(&name_of_command(&[])).unwrap();
}

#[test]
fn names_of_urls_come_from_the_host() {
    for (url, name) in URLS {
        let found = name_of_url(url);
        assert_eq!(found, *name, "{url}");
        check_id(&found).unwrap();
    }
}
