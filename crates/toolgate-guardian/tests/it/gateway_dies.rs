//! The gateway is killed, and nothing of it stays.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::help::{alive, guardian, numbers, shell};

/// Ten times what is promised, for a machine under load.
const BOUND: Duration = Duration::from_secs(20);
const ROLE: &str = "TOOLGATE_TEST_GATEWAY";

/// Each writes the numbers of two processes, and none of them wants to go.
const SCRIPTS: [&str; 4] = [
    "echo $$; sleep 1000 & echo $!; cat",
    "trap '' TERM HUP; echo $$; sleep 1000 & echo $!; while :; do sleep 1000; done",
    // The rest is for Linux, where those who left the group are found.
    "setsid sh -c 'echo $$; exec sleep 1000' & echo $$; cat",
    "(trap '' TERM; setsid sh -c 'echo $$; (setsid sh -c \"echo \\$\\$; sleep 1000\") & sleep 1000' &) ; cat",
];

fn scripts() -> &'static [&'static str] {
    if cfg!(target_os = "linux") {
        &SCRIPTS
    } else {
        &SCRIPTS[..2]
    }
}

/// Becomes a gateway when this binary is run as one; nothing in an ordinary run.
#[test]
fn as_gateway() {
    if std::env::var_os(ROLE).is_some() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(serve());
    }
}

async fn serve() {
    let guardian = guardian();
    let mut out = std::io::stdout();
    writeln!(out, "\npid {}", guardian.pid()).unwrap();
    let mut children = Vec::new();
    for script in scripts() {
        let mut child = guardian.spawn(shell(script)).await.unwrap();
        for pid in numbers(&mut child, 2).await {
            writeln!(out, "pid {pid}").unwrap();
        }
        children.push(child);
    }
    std::future::pending::<()>().await;
}

fn gateway() -> (Child, Vec<i32>) {
    #[allow(clippy::disallowed_methods, reason = "the test starts a gateway")]
    let mut gateway = Command::new(std::env::current_exe().unwrap())
        .args(["gateway_dies::as_gateway", "--exact", "--nocapture"])
        .env(ROLE, "yes")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let wanted = 1 + 2 * scripts().len();
    let pids: Vec<i32> = BufReader::new(gateway.stdout.take().unwrap())
        .lines()
        .filter_map(|line| line.unwrap().strip_prefix("pid ")?.parse().ok())
        .take(wanted)
        .collect();
    assert_eq!(pids.len(), wanted);
    (gateway, pids)
}

#[test]
fn sigkill_of_the_gateway_leaves_no_process() {
    let (mut gateway, pids) = gateway();
    assert!(pids.iter().all(|pid| alive(*pid)), "all run before");
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    let killed = Instant::now();
    while pids.iter().any(|pid| alive(*pid)) {
        assert!(killed.elapsed() < BOUND, "some of {pids:?} still run");
        std::thread::sleep(Duration::from_millis(5));
    }
    eprintln!("the whole tree was gone after {:?}", killed.elapsed());
}
