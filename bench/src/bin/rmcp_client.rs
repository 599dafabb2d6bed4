//! A client by the Rust SDK of the specification's project, as its papers say: its child over pipes, or reqwest.

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, Peer, RoleClient,
    model::{CallToolRequestParams, ProtocolVersion},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::json;
use std::{sync::Arc, time::Instant};
use tokio::{process::Command, task::JoinSet};
use toolgate_bench::job::Job;

type Failed = Box<dyn std::error::Error + Send + Sync>;

struct Bench;

impl ClientHandler for Bench {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let job = Arc::new(Job::read());
    let life = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    let client = match &job.url {
        Some(url) => {
            let transport = StreamableHttpClientTransport::from_uri(url.as_str());
            Bench.serve_with_lifecycle(transport, life).await?
        }
        None => {
            let words = job.server()?;
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            let transport = TokioChildProcess::new(command)?;
            Bench.serve_with_lifecycle(transport, life).await?
        }
    };
    let begin = Instant::now();
    let mut all = JoinSet::new();
    for _ in 0..job.flight {
        all.spawn(work(client.peer().clone(), job.clone()));
    }
    while let Some(done) = all.join_next().await {
        done??;
    }
    let took = begin.elapsed();
    client.cancel().await?;
    job.done(took);
    Ok(())
}

async fn work(client: Peer<RoleClient>, job: Arc<Job>) -> Result<(), Failed> {
    while let Some(id) = job.next() {
        if job.lists {
            job.check_list(client.list_all_tools().await?.len());
            continue;
        }
        let mut params = CallToolRequestParams::new("echo");
        params.arguments = json!({"text": job.text(id)}).as_object().cloned();
        let result = client.call_tool(params).await?;
        let text = result.content.first().and_then(|block| block.as_text());
        job.check(id, text.map_or("", |text| &text.text));
    }
    Ok(())
}
