//! Servers that are processes: how they start, what they get, and that nothing of them stays.

use crate::official::{Side, Talk};
use serde_json::json;
use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};
use toolgate::{Client, client::ClientBuilder, core::ErrorKind};

/// A bound on a hang.
const HANG: Duration = Duration::from_secs(30);

/// A server of 2025-11-25 in a few lines of shell. It writes to its standard error what it has in its environment,
/// starts a child, and shuts its ears to the request to end. What it reads it keeps.
const SERVER: &str = r#"
trap '' TERM
sleep 600 & echo $! > "$PIDS"; echo $$ >> "$PIDS"
echo "secret=${SECRET-none} set=$SET" >&2
while read -r line; do
  printf '%s\n' "$line" >> "$PIDS.said"
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
    *'"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"ok"}]}}\n' "$id" ;;
    *'"server/discover"'*) exit 1 ;;
  esac
done
sleep 600
"#;

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let file = format!("toolgate-client-{name}-{}", std::process::id());
        Place(std::env::temp_dir().join(file))
    }

    fn builder(&self) -> ClientBuilder {
        Client::builder()
            .grace(Duration::from_millis(50))
            .env("PIDS", self.0.to_str().unwrap())
            .env("SET", "here")
    }

    fn processes(&self) -> Vec<i32> {
        let text = std::fs::read_to_string(&self.0).unwrap();
        text.lines().map(|pid| pid.parse().unwrap()).collect()
    }

    /// All that the client wrote fits the official schemas.
    fn check(&self) {
        let said = std::fs::read_to_string(self.said()).unwrap();
        let mut talk = Talk::of(Side::Client);
        said.lines().for_each(|line| talk.said(line));
    }

    fn said(&self) -> PathBuf {
        PathBuf::from(format!("{}.said", self.0.display()))
    }

    /// Waits until none of them runs.
    async fn all_gone(&self) {
        for pid in self.processes() {
            let gone = async {
                while runs(pid) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(HANG, gone).await.expect("it is gone");
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_file(self.said());
    }
}

/// Returns whether a process runs; a zombie does not.
fn runs(pid: i32) -> bool {
    #[allow(clippy::disallowed_methods, reason = "the test looks from outside")]
    let ps = std::process::Command::new("ps")
        .args(["-o", "stat=", "-p", &pid.to_string()])
        .output()
        .unwrap();
    let state = String::from_utf8_lossy(&ps.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

/// Holds: STDIO-01, LIFE-15
#[tokio::test]
async fn a_stubborn_server_and_its_child_end_with_close() {
    let place = Place::new("close");
    let said = Arc::new(Mutex::new(Vec::new()));
    let to = said.clone();
    let builder = place
        .builder()
        .on_stderr(move |line| to.lock().unwrap().push(line));
    // The first one ends at the probe, as old servers do; a second one is started and not probed.
    let client = builder.spawn(["sh", "-c", SERVER]).await.unwrap();
    assert_eq!(client.revision(), "2025-11-25");
    assert_eq!(client.call("t", json!({})).await.unwrap().text(), "ok");
    assert!(place.processes().into_iter().all(runs));
    tokio::time::timeout(HANG, client.close()).await.unwrap();
    place.all_gone().await;
    place.check();
    let error = client.call("t", json!({})).await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Upstream);
    let said = said.lock().unwrap();
    assert!(
        said.iter().all(|line| line == "secret=none set=here"),
        "{said:?}"
    );
}

/// Holds: LIFE-15
#[tokio::test]
async fn a_server_that_nobody_has_any_more_ends() {
    let place = Place::new("drop");
    let builder = place.builder().revision("2025-11-25").on_stderr(drop);
    let client = builder.spawn(["sh", "-c", SERVER]).await.unwrap();
    assert!(place.processes().into_iter().all(runs));
    drop(client);
    place.all_gone().await;
}

/// Holds: LIFE-15
#[test]
fn a_server_ends_with_the_runtime() {
    let place = Place::new("runtime");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let builder = place.builder().revision("2025-11-25").on_stderr(drop);
    let client = runtime
        .block_on(builder.spawn(["sh", "-c", SERVER]))
        .unwrap();
    drop(runtime);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(place.all_gone());
    drop(client);
}

/// Holds: LIFE-14
#[tokio::test]
async fn what_cannot_be_started_says_so() {
    let error = Client::spawn(["/nowhere/at-all"]).await.unwrap_err();
    assert_eq!(
        error.public_message(),
        "the server at-all: /nowhere/at-all was not started: the file does not exist; correct the path"
    );
    let error = Client::spawn(["no-such-server"]).await.unwrap_err();
    let text = error.public_message();
    assert!(
        text.contains("no program named no-such-server was found in PATH"),
        "{text}"
    );
    assert!(Client::spawn(Vec::<String>::new()).await.is_err());
    let ended = Client::spawn(["false"]).await.unwrap_err();
    assert!(
        ended.public_message().contains("could not be opened"),
        "{ended}"
    );
    let wrong = Client::builder().revision("2023-01-01").spawn(["false"]);
    assert!(
        wrong
            .await
            .unwrap_err()
            .public_message()
            .contains("not a protocol revision")
    );
}
