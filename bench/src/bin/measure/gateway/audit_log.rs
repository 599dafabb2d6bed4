//! A long audit log: records of real calls, written again by the journal.

use super::{process, trial::Trial};
use serde_json::{Map, Value};
use std::{
    collections::VecDeque,
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};
use toolgate_journal::{AuditEntry, AuditEvent, AuditJournal, JournalOptions};

/// Fields that the journal writes itself.
const OWN: [&str; 10] = [
    "boot", "chain", "ev", "h", "mono", "prev", "seg", "seq", "ts", "v",
];
/// Entries that wait for the disk at the same time.
const WAITING: usize = 4096;

/// Puts an audit log of so many records into a data directory. It is made once and kept in the folder of the build.
pub fn prepare(records: usize, data: &Path) {
    if records == 0 {
        return;
    }
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("target/growth/{records}"));
    if !kept.exists() {
        let unfinished = kept.with_extension("new");
        let _ = fs::remove_dir_all(&unfinished);
        create(&unfinished);
        write(records, &unfinished);
        fs::rename(&unfinished, &kept).expect("the finished log");
    }
    link(&kept, data);
}

/// Writes the log.
fn write(records: usize, data: &Path) {
    let sample = sample();
    let mut options = JournalOptions::new(data.join("audit"));
    options.checkpoint_mirror = Some(data.join("checkpoints"));
    options.max_batch_records = WAITING;
    let journal = AuditJournal::open(options).expect("a journal");
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    let mut waiting = VecDeque::new();
    for n in 0..records {
        let (begins, fields) = &sample[n % 2];
        let event = match begins {
            true => AuditEvent::CALL_BEGIN,
            false => AuditEvent::CALL_END,
        };
        let mut entry = AuditEntry::new(event).with("call", format!("{:032x}", n / 2));
        for (name, value) in fields {
            entry = entry.with(name.clone(), value.clone());
        }
        waiting.push_back(journal.append(entry));
        if waiting.len() == WAITING
            && let Some(oldest) = waiting.pop_front()
        {
            runtime.block_on(oldest).expect("a record");
        }
    }
    for written in waiting {
        runtime.block_on(written).expect("a record");
    }
    journal.close();
}

/// The two records of a call of a gateway: whether it begins, and its fields.
fn sample() -> [(bool, Map<String, Value>); 2] {
    let trial = Trial::default();
    let audit = process::data(&trial.folder).join("audit");
    let mut records = Vec::new();
    trial.prepare(|http| {
        let mut answer = String::new();
        http.say(&trial.load.request(1));
        http.hear(&mut answer);
        trial.load.check(&answer);
        for segment in segments(&audit) {
            let text = fs::read_to_string(segment).expect("a segment");
            let read = text.lines().map(serde_json::from_str::<Map<String, Value>>);
            records.extend(read.map(|record| record.expect("a record")));
        }
    });
    let _ = fs::remove_dir_all(&trial.folder);
    ["call.begin", "call.end"].map(|event| {
        let found = records.iter().find(|record| record["ev"] == event);
        let mut fields = found.expect("a record of the call").clone();
        fields.retain(|name, _| name != "call" && !OWN.contains(&name.as_str()));
        (event == "call.begin", fields)
    })
}

/// Returns the segments of all chains.
fn segments(audit: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let files = entries(audit).into_iter().flat_map(|chain| entries(&chain));
    files.filter(|file| is_segment(file)).collect()
}

/// Copies a data directory; sealed segments, which nothing changes, are linked.
fn link(from: &Path, to: &Path) {
    create(to);
    let entries = fs::read_dir(from).expect("a kept log").flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    let last = files.iter().rposition(|file| is_segment(file));
    for (at, file) in files.iter().enumerate() {
        let copy = to.join(file.file_name().expect("a name"));
        if file.is_dir() {
            link(file, &copy);
        } else if is_segment(file) && Some(at) != last {
            fs::hard_link(file, &copy).expect("a link");
        } else {
            fs::copy(file, &copy).expect("a copy");
        }
    }
}

/// Returns whether a file is a segment of a chain.
fn is_segment(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "jsonl")
}

/// Creates a private folder.
fn create(folder: &Path) {
    let mut builder = fs::DirBuilder::new();
    let created = builder.recursive(true).mode(0o700).create(folder);
    created.expect("a folder");
}
