//! Our server, with all duties on, as any author gets it: over stdio, or with `--http PORT` over HTTP.

use toolgate::{Cx, Server, Stop, Tool, tool};

/// Says the text again.
#[tool(read_only)]
async fn echo(
    /// The text.
    text: String,
) -> String {
    text
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut server = Server::new("bench", "1.0.0")
        .rate(toolgate::duties::Quota::per_minute(1_000_000_000))
        .tool(echo);
    for definition in toolgate_bench::many(toolgate_bench::count()) {
        let name = definition["name"].as_str().unwrap_or_default().to_owned();
        let schema = definition["inputSchema"].clone();
        let tool = Tool::dynamic(&name, schema, |_, _: Cx| async { Ok::<_, Stop>("") });
        server = server.tool(tool.description(definition["description"].as_str().unwrap_or_default()));
    }
    toolgate::stdio(server).await?;
    Ok(())
}
