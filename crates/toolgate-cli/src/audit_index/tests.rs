use super::*;
use serde_json::{Value, json};
use std::{fs, time::Duration};
use toolgate_journal::{AuditEntry, AuditEvent, AuditJournal, JournalOptions};

/// A data directory with an audit log.
struct Log {
    data: PathBuf,
    journal: Option<AuditJournal>,
}

impl Log {
    fn new(name: &str) -> Log {
        let data =
            std::env::temp_dir().join(format!("toolgate-index-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&data);
        fs::create_dir_all(&data).unwrap();
        let mut log = Log {
            data,
            journal: None,
        };
        log.open();
        log
    }

    fn audit(&self) -> PathBuf {
        self.data.join("audit")
    }

    fn open(&mut self) {
        self.journal = Some(AuditJournal::open(JournalOptions::new(self.audit())).unwrap());
    }

    fn write(&self, event: &'static str, fields: Value) {
        let fields = fields.as_object().unwrap().clone();
        let entry = fields.into_iter().fold(
            AuditEntry::new(AuditEvent::from(event)),
            |entry, (name, value)| entry.with(name, value),
        );
        self.journal.as_ref().unwrap().enqueue(entry).unwrap();
    }

    /// A call that ended so, with an approval or without.
    fn call(&self, id: &str, caller: &str, approved: bool, out: &str, micros: u64) {
        let approval = json!({"by": "confirm", "verdict": "approved", "why": "a-1 by ann"});
        let rule = json!({"by": "access", "verdict": "allow", "why": "rule 1 (toolgate.toml:4)"});
        let trail = if approved {
            json!([rule, approval])
        } else {
            json!([rule])
        };
        let about = json!({"call": id, "caller": caller, "name": "s_t", "tool": "s.t", "srv": "s", "trail": trail});
        self.write("call.begin", about);
        self.write("call.end", json!({"call": id, "caller": caller, "name": "s_t", "tool": "s.t", "srv": "s", "out": out, "dur_us": micros}));
    }

    fn denied(&self, id: &str, caller: &str, by: &str, code: &str) {
        let trail =
            json!([{"by": by, "verdict": "refuse", "why": "refused: rule 2 (toolgate.toml:9)"}]);
        self.write("deny", json!({"call": id, "caller": caller, "name": "s_x", "tool": "s.x", "srv": "s", "out": "refused", "code": code, "trail": trail, "dur_us": 10}));
    }

    /// Ends the journal, so that all records are on disk.
    fn close(&mut self) {
        if let Some(journal) = self.journal.take() {
            journal.close();
        }
    }

    /// Ends the journal, and reads all records into the index.
    fn index(&mut self) -> AuditIndex {
        self.close();
        let mut index = AuditIndex::open(&self.data).unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        assert_eq!(index.catch_up(&self.audit(), end).unwrap(), 0);
        index
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.close();
        let _ = fs::remove_dir_all(&self.data);
    }
}

fn all() -> CallFilter {
    CallFilter {
        to: u64::MAX,
        ..CallFilter::default()
    }
}

fn minutes() -> CountFilter {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs()
        / 60;
    CountFilter {
        from: now - 5,
        to: now + 2,
        ..CountFilter::default()
    }
}

#[test]
fn calls_have_the_class_of_their_decision_and_outcome() {
    let mut log = Log::new("classes");
    log.call("c-1", "ann", false, "ok", 1000);
    log.call("c-2", "ann", true, "ok", 2000);
    log.call("c-3", "bob", false, "tool_error", 4000);
    log.denied("c-4", "bob", "access", "refused_rule");
    log.denied("c-5", "bob", "freeze", "refused_rule");
    log.denied("c-6", "bob", "arguments", "invalid");
    let index = log.index();
    let calls = index.calls(&all(), None, 100).unwrap();
    let classes: Vec<(&str, &str)> = calls
        .iter()
        .map(|call| (call.id.as_str(), call.class.class.as_str()))
        .collect();
    assert_eq!(
        classes,
        [
            ("c-6", "invalid"),
            ("c-5", "frozen"),
            ("c-4", "rule"),
            ("c-3", "failed"),
            ("c-2", "approved"),
            ("c-1", "allowed")
        ]
    );
    assert_eq!(calls[5].rule.as_deref(), Some("rule 1 (toolgate.toml:4)"));
    assert_eq!(calls[2].rule.as_deref(), Some("rule 2 (toolgate.toml:9)"));
    assert_eq!(calls[5].records.len(), 2, "its begin and its end");
    let filter = CallFilter {
        caller: Some("bob".to_owned()),
        classes: vec!["rule".to_owned(), "frozen".to_owned()],
        ..all()
    };
    assert_eq!(index.calls(&filter, None, 100).unwrap().len(), 2);
    let page = index.calls(&all(), None, 2).unwrap();
    let next = index.calls(&all(), Some(page[1].ts), 100).unwrap();
    assert_eq!(next[0].id, "c-4", "after the last one of the page");
    assert_eq!(index.find_call("c-2").unwrap().unwrap().micros, 2000);
    assert!(index.find_call("c-9").unwrap().is_none());
}

#[test]
fn counts_are_those_of_the_calls_in_the_log() {
    let mut log = Log::new("counts");
    for n in 0..20 {
        log.call(
            &format!("c-{n}"),
            "ann",
            n % 2 == 0,
            "ok",
            if n == 0 { 1_000_000 } else { 1000 },
        );
    }
    for n in 0..3 {
        log.denied(&format!("d-{n}"), "bob", "access", "refused_rule");
    }
    let index = log.index();
    let parts = index.counts_over_time(&minutes(), 1).unwrap();
    let total: u64 = parts.iter().map(CountBucket::total).sum();
    assert_eq!(total, 23);
    let servers = index
        .counts_by(CountColumn::Server, &minutes(), 10)
        .unwrap();
    let server = &servers[0];
    assert_eq!((server.name.as_str(), server.counts.total()), ("s", 23));
    assert_eq!(server.counts.classes["approved"], 10);
    let within =
        |micros: Option<f64>, low: f64, high: f64| micros.is_some_and(|m| (low..high).contains(&m));
    assert!(
        within(server.counts.p50, 800.0, 1250.0),
        "{:?}",
        server.counts.p50
    );
    let flows = index.flows(&minutes(), 10).unwrap();
    assert_eq!(
        (flows[0].caller.as_str(), flows[1].caller.as_str()),
        ("ann", "bob")
    );
    let refusals = index.refusals(&minutes(), 10).unwrap();
    assert_eq!(refusals.len(), 1);
    assert_eq!((refusals[0].caller.as_str(), refusals[0].count), ("bob", 3));
    let only = CountFilter {
        caller: Some("bob".to_owned()),
        ..minutes()
    };
    let parts = index.counts_over_time(&only, 7).unwrap();
    assert_eq!(parts.iter().map(CountBucket::total).sum::<u64>(), 3);
}

#[test]
fn new_records_are_added_and_nothing_is_counted_twice() {
    let mut log = Log::new("again");
    log.call("c-1", "ann", false, "ok", 1000);
    log.write("call.begin", json!({"call": "c-2", "caller": "ann", "name": "s_t", "tool": "s.t", "srv": "s", "trail": [{"by": "confirm", "verdict": "granted", "why": "g-1"}]}));
    let index = log.index();
    assert_eq!(index.calls(&all(), None, 10).unwrap().len(), 1);
    drop(index);
    // A log that is opened again ends the call as unknown.
    log.open();
    let mut index = log.index();
    let calls = index.calls(&all(), None, 10).unwrap();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].id, "c-2");
    assert_eq!(calls[0].records.len(), 2, "its begin was read before");
    let end = Instant::now() + Duration::from_secs(60);
    index.catch_up(&log.audit(), end).unwrap();
    let parts = index.counts_over_time(&minutes(), 7).unwrap();
    assert_eq!(parts.iter().map(CountBucket::total).sum::<u64>(), 2);
}

#[test]
fn a_pass_that_runs_out_of_time_goes_on_where_it_stopped() {
    let mut log = Log::new("deadline");
    for n in 0..2000 {
        log.call(&format!("c-{n}"), "ann", false, "ok", 1000);
    }
    log.close();
    let mut index = AuditIndex::open(&log.data).unwrap();
    let (mut rounds, mut behind) = (0, u64::MAX);
    while behind > 0 {
        // The time is over at once, so that each pass ends at its first check of the deadline.
        let now = index.catch_up(&log.audit(), Instant::now()).unwrap();
        assert!(now < behind, "each pass reads something");
        (rounds, behind) = (rounds + 1, now);
    }
    assert!(rounds > 3, "{rounds}");
    let parts = index.counts_over_time(&minutes(), 7).unwrap();
    assert_eq!(parts.iter().map(CountBucket::total).sum::<u64>(), 2000);
    assert_eq!(index.calls(&all(), None, 5000).unwrap().len(), 2000);
}

#[test]
fn requests_for_approval_are_counted_by_day_with_the_time_until_the_decision() {
    let mut log = Log::new("approvals");
    let event = |id: &str, state: &str| json!({"approval": id, "state": state, "caller": "ann", "srv": "s", "tool": "s.t"});
    for (id, state) in [("a-1", "approved"), ("a-2", "denied"), ("a-3", "expired")] {
        log.write("approval", event(id, "asked"));
        log.write("approval", event(id, state));
    }
    log.write("approval", event("a-4", "asked"));
    let index = log.index();
    let now = crate::timestamp::millis(std::time::SystemTime::now()) * 1000;
    let day = 24 * 3600 * 1_000_000;
    let days = index
        .approval_days(now - day / 2, now + day / 2, day)
        .unwrap();
    let today = &days[0];
    assert_eq!(
        (today.asked, today.approved, today.denied, today.expired),
        (4, 1, 1, 1)
    );
    assert!(today.median_wait.is_some_and(|wait| wait < 60_000_000));
    assert_eq!(
        index.approvals_by_tool(0).unwrap(),
        [("s.t".to_owned(), 1, 1)]
    );
    assert_eq!(index.approval_records("a-1").unwrap().len(), 2);
}

#[test]
fn records_are_found_newest_first_and_by_event() {
    let mut log = Log::new("records");
    for n in 0..5 {
        log.denied(&format!("d-{n}"), "bob", "access", "refused_rule");
    }
    log.write(
        "freeze",
        json!({"state": "frozen", "what": "all", "by": "console"}),
    );
    let index = log.index();
    let filter = RecordFilter {
        to: u64::MAX,
        caller: Some("bob".to_owned()),
        ..RecordFilter::default()
    };
    let found = index.records(&filter, 100).unwrap();
    assert_eq!(found.len(), 5);
    assert!(
        found.windows(2).all(|pair| pair[0].3 >= pair[1].3),
        "newest first"
    );
    let freeze = RecordFilter {
        event: Some("freeze".to_owned()),
        caller: None,
        ..filter
    };
    assert_eq!(index.records(&freeze, 100).unwrap().len(), 1);
}
