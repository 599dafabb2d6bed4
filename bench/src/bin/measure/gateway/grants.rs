//! A gateway with remembered approvals: a person gives one, and the others are copies of it for other tools.

use super::{
    process::{self, program},
    trial::{AUDIT, SERVER, Trial},
};
use std::{path::Path, process::Command, thread, time::Duration};
use toolgate_policy::{StateStore, WritePrecondition};
use toolgate_store::{DatabaseStore, StoreLimits};

/// The table of grants in the state.
const TABLE: &str = "grants";
/// Writes that wait for the disk at the same time.
const WRITES: usize = 500;

/// Calls of the warm-up and counted calls, if there are many grants: such a call takes long.
const MANY: (u64, u64) = (3, 10);

/// Every call needs an approval.
const ASK: &str = "[[rule]]\ntools = [\"bare.*\"]\naction = \"ask\"\n\n";

/// A gateway whose state has so many grants, one of which approves the calls.
pub fn trial(grants: usize) -> Trial {
    let mut trial = Trial {
        limits: "grants = 100000\n".to_owned(),
        sections: format!("{AUDIT}{SERVER}{ASK}"),
        ..Trial::default()
    };
    if grants > 1_000 {
        (trial.warm, trial.load.counted) = MANY;
    }
    let data = process::data(&trial.folder);
    trial.prepare(|http| {
        http.say(&trial.load.request(1));
        approve(&data);
        let mut answer = String::new();
        http.hear(&mut answer);
        trial.load.check(&answer);
    });
    copy(grants, &data.join("state"));
    trial
}

/// Approves the pending call and remembers it, as a person does.
fn approve(data: &Path) {
    let toolgate = |args: &[&str]| {
        let output = Command::new(program())
            .args(args)
            .arg("--data")
            .arg(data)
            .output();
        let output = output.expect("the program runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let pending = (0..200).find_map(|_| {
        thread::sleep(Duration::from_millis(50));
        let inbox = toolgate(&["inbox"]);
        let id = inbox.split_whitespace().find(|word| word.starts_with("a-"));
        id.map(str::to_owned)
    });
    let id = pending.expect("a pending approval");
    toolgate(&["approve", &id, "--remember", "--when", "args.text != \"\""]);
}

/// Copies the only grant for other tools, until there are so many.
fn copy(grants: usize, state: &Path) {
    let state = DatabaseStore::open(state, StoreLimits::default()).expect("the state");
    let given = state.entries(TABLE).pop().expect("a grant");
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    let others: Vec<usize> = (1..grants).collect();
    for part in others.chunks(WRITES) {
        let writes = part.iter().map(|n| {
            let mut copy = given.value.clone();
            copy["tool"] = format!("tool_{n:05}").into();
            state.write(TABLE, &id(*n), Some(copy), WritePrecondition::Absent)
        });
        // Each write is queued before the first one is awaited.
        for write in writes.collect::<Vec<_>>() {
            runtime.block_on(write).expect("a stored grant");
        }
    }
    assert_eq!(state.entries(TABLE).len(), grants);
}

/// The id of a copy, in the form of the others.
fn id(n: usize) -> String {
    let letters = b"abcdefghjkmnpqrstuvwxyz023456789";
    let letter = |at: usize| char::from(letters[n >> (5 * at) & 31]);
    format!("g-{}", (0..6).map(letter).collect::<String>())
}
