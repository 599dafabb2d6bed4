//! Our client, as any application gets it with all duties on, and at its end one bad thing for each of them.
//!
//! Besides what every client of the bench is told: `[--audit FOLDER] [--confirm]`: records in a folder instead of as events
//! that nobody hears; asks the application before each call.

use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{task::JoinSet, time::timeout};
use toolgate::{Client, handlers::ask::Reply, policy::RateQuota};
use toolgate_bench::{breaking::key, has, job::Job, word};

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Timeout of a call that never ends.
const SOON: Duration = Duration::from_millis(500);
/// Longest wait for a call that ends by no timeout.
const NEVER: Duration = Duration::from_secs(20);
/// Environment variable of a run whose instructions are counted.
const COUNTED_RUN: &str = "TOOLGATE_BENCH_COUNTED";
/// The most that run and wait together.
const AT_ONCE: u64 = 64 + 512;
/// Calls of the tool that is measured which break a duty after the rate has let them through.
const COUNTED: u64 = 3;
/// Calls of one tool at the end, at most.
const LAST: u64 = AT_ONCE + 10;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let job = Arc::new(Job::read());
    let client = open(&job).await?;
    let begin = Instant::now();
    let mut all = JoinSet::new();
    for _ in 0..job.flight {
        all.spawn(work(client.clone(), job.clone()));
    }
    while let Some(done) = all.join_next().await {
        done??;
    }
    let took = begin.elapsed();
    all_refused(&client).await?;
    client.close().await;
    job.done(took);
    Ok(())
}

async fn open(job: &Job) -> Result<Client, toolgate::Error> {
    let century = Duration::from_secs(3_155_760_000);
    // A list is no call of a tool.
    let calls = if job.lists { 0 } else { job.calls };
    let quota = RateQuota {
        count: u32::try_from(LAST.max(calls + COUNTED)).unwrap_or(u32::MAX),
        per: century,
    };
    let mut builder = Client::builder()
        .name("bench", "1.0.0")
        .id("bench")
        .rate_limit(quota)
        .deny(["denied"])
        .on_elicit(|_| async { Reply::Accepted(json!({"password": "given away"})) });
    if has("--confirm") {
        builder = builder.confirm(|_| async { Ok(()) });
    }
    if let Some(folder) = word("--audit") {
        builder = builder.audit_in(folder);
    }
    match &job.url {
        Some(url) => builder.connect(url).await,
        None => builder.spawn(job.server().unwrap_or_default()).await,
    }
}

async fn work(client: Client, job: Arc<Job>) -> Result<(), toolgate::Error> {
    while let Some(id) = job.next() {
        if job.lists {
            // The denied one is not listed.
            job.check_list(client.tools().await?.len() + 1);
            continue;
        }
        let result = client.call("echo", json!({"text": job.text(id)})).await?;
        job.check(id, &result.text());
    }
    Ok(())
}

/// Breaks each duty once. A duty, the tool and arguments that break it, and a word of the outcome that shows it.
async fn all_refused(client: &Client) -> Result<(), Failed> {
    let none = || json!({});
    let mut broken = Vec::new();
    // Where the application is asked it says yes, and the secret comes back.
    let leak = match has("--confirm") {
        true => "the key is [redacted",
        false => "requires the approval of a person",
    };
    for (duty, tool, arguments, word) in [
        ("unknown tools", "nobody", none(), "unknown tool: nobody"),
        ("rules", "denied", none(), "unknown tool: denied"),
        ("arguments", "echo", json!({"text": 5}), "invalid arguments"),
        (
            "arguments: unknown",
            "echo",
            json!({"text": "a", "more": 1}),
            "invalid arguments",
        ),
        (
            "secrets on their way out",
            "echo",
            json!({"text": key()}),
            leak,
        ),
        ("secrets", "key", none(), "the key is [redacted"),
        ("text", "unseen", none(), "abc"),
        ("output schema", "broken", none(), "held back"),
        ("size", "blocks", none(), "1000"),
        ("what servers ask", "fishing", none(), "password"),
        ("strict reading", "twice", none(), "duplicate key"),
        ("time-out", "slow", none(), "timed out after"),
        ("pins: before", "changed", none(), "passed"),
    ] {
        let said = outcome(client, tool, arguments).await;
        broken.extend(fails(duty, &said, word));
    }
    client.tools().await?;
    let said = outcome(client, "changed", none()).await;
    broken.extend(fails("pins", &said, "changed"));
    // The timeouts of a crowd end in an order that no two runs share, so a run whose instructions are counted has none.
    if std::env::var_os(COUNTED_RUN).is_none() {
        broken.extend(crowd(client).await);
    }
    broken.extend(often(client).await);
    match broken.is_empty() {
        true => Ok(()),
        false => Err(broken.join("; ").into()),
    }
}

/// Returns the failure of a policy check, if there is one.
fn fails(duty: &str, said: &str, word: &str) -> Option<String> {
    let holds = said.contains(word) && (word == "passed" || !said.contains("passed"));
    (!holds).then(|| format!("{duty}: does not hold: {said}"))
}

/// The text of a result, or the words of an error.
async fn outcome(client: &Client, tool: &str, arguments: Value) -> String {
    match timeout(NEVER, client.call_with(tool, arguments).timeout(SOON)).await {
        Ok(Ok(result)) => result.text(),
        Ok(Err(error)) => error.public_message().to_owned(),
        Err(_) => "it did not end".to_owned(),
    }
}

/// One more than may run and wait; the others end by their time-out.
async fn crowd(client: &Client) -> Option<String> {
    let mut all = JoinSet::new();
    for _ in 0..=AT_ONCE {
        let client = client.clone();
        all.spawn(async move { outcome(&client, "slow", json!({})).await });
    }
    let said = all.join_all().await;
    let refused = said
        .iter()
        .filter(|said| said.contains("too many concurrent"))
        .count();
    let late = said.iter().filter(|said| said.contains("timed out after"));
    match (refused, late.count() as u64) {
        (1, AT_ONCE) => None,
        _ => Some(format!("the limit at once does not hold: {said:?}")),
    }
}

/// Uses up the quota, and one more.
async fn often(client: &Client) -> Option<String> {
    for _ in 0..=LAST {
        let said = outcome(client, "echo", json!({"text": "once more"})).await;
        if said.contains("rate limit of") {
            return None;
        }
    }
    Some("the rate does not hold".to_owned())
}
