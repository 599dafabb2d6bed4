//! The shared store, on a real PostgreSQL server.

use crate::{
    alike,
    kit::{Scratch, block_on, done, put, values, wait_until},
};
use serde_json::json;
use std::sync::atomic::{AtomicU32, Ordering};
use toolgate_policy::{StateStore, WriteOutcome, WritePrecondition};
use toolgate_store::{
    StoreError, export, import,
    postgres::{
        PostgresAddress, PostgresOptions, PostgresStore, STATE_SPACE, TASK_SPACE, check_shared,
        clear_shared, export_shared, import_shared, migrate, move_to_shared,
    },
};
use toolgate_testkit::postgres::PostgresServer;

pub(crate) fn address(url: &str) -> PostgresAddress {
    PostgresAddress::parse(url, false).unwrap()
}

pub(crate) fn open(url: &str) -> PostgresStore {
    PostgresStore::open(PostgresOptions::new(address(url), STATE_SPACE)).unwrap()
}

/// Name of the database of a URL.
fn name(url: &str) -> &str {
    url.rsplit('/').next().unwrap()
}

/// A database of its own, on the server of all tests.
fn database() -> Option<String> {
    PostgresServer::is_installed().then(|| PostgresServer::shared().create_database())
}

#[test]
fn it_handles_conflicts_as_the_other_stores_do() {
    let Some(url) = database() else { return };
    let store = open(&url);
    block_on(alike::once(&store));
}

#[test]
fn it_outlives_the_process() {
    let Some(url) = database() else { return };
    let state = open(&url);
    put(
        &state,
        "a",
        Some(json!({"uses": 1})),
        WritePrecondition::Any,
    );
    let long = "k".repeat(100_000);
    let big = json!({"text": "a line\nand \u{1F600} \u{0}", "n": 9_007_199_254_740_993_u64});
    put(&state, &long, Some(big.clone()), WritePrecondition::Absent);
    put(&state, "c", Some(json!(3)), WritePrecondition::Any);
    let last = done(put(&state, "c", None, WritePrecondition::Any));
    drop(state);
    let state = open(&url);
    assert_eq!(
        values(&state),
        [("a".into(), json!({"uses": 1})), (long, big)]
    );
    assert!(done(put(&state, "d", Some(json!(4)), WritePrecondition::Absent)) > last);
    // Tasks have entries of their own.
    let tasks = PostgresStore::open(PostgresOptions::new(address(&url), TASK_SPACE)).unwrap();
    assert_eq!(values(&tasks), []);
}

#[test]
fn an_entry_that_is_used_by_ten_gateways_at_once_is_used_once() {
    let Some(url) = database() else { return };
    let gateways: Vec<PostgresStore> = (0..10).map(|_| open(&url)).collect();
    for round in 0..20 {
        let key = format!("a-{round}");
        let open = done(put(
            &gateways[0],
            &key,
            Some(json!("open")),
            WritePrecondition::Absent,
        ));
        let won = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for gateway in &gateways {
                scope.spawn(|| {
                    let expect = WritePrecondition::Version(open);
                    if let WriteOutcome::Done(_) = put(gateway, &key, Some(json!("used")), expect) {
                        won.fetch_add(1, Ordering::SeqCst);
                    }
                    // Whoever lost sees the use.
                    assert_eq!(gateway.row("grants", &key).unwrap().value, json!("used"));
                });
            }
        });
        assert_eq!(won.into_inner(), 1, "round {round}");
    }
}

#[test]
fn a_counter_of_several_gateways_loses_no_step() {
    let Some(url) = database() else { return };
    let gateways: Vec<PostgresStore> = (0..4).map(|_| open(&url)).collect();
    std::thread::scope(|scope| {
        for gateway in &gateways {
            scope.spawn(|| {
                for _ in 0..50 {
                    loop {
                        let row = gateway.row("grants", "count");
                        let count = row.as_ref().and_then(|row| row.value.as_u64()).unwrap_or(0);
                        let expect = row.map_or(WritePrecondition::Absent, |row| {
                            WritePrecondition::Version(row.version)
                        });
                        match put(gateway, "count", Some(json!(count + 1)), expect) {
                            WriteOutcome::Done(_) => break,
                            WriteOutcome::Conflict => {}
                        }
                    }
                }
            });
        }
    });
    assert_eq!(values(&open(&url)), [("count".to_owned(), json!(200))]);
    for gateway in &gateways {
        wait_until("all gateways agree", || {
            values(gateway) == [("count".to_owned(), json!(200))]
        });
    }
}

#[test]
fn a_change_reaches_other_gateways_with_and_without_its_notice() {
    let Some(url) = database() else { return };
    let (one, other) = (open(&url), open(&url));
    let changed = other.changed();
    put(&one, "a", Some(json!(1)), WritePrecondition::Any);
    wait_until("the change arrives", || changed.has_changed().unwrap());
    assert_eq!(values(&other), [("a".into(), json!(1))]);
    // Whoever changes the tables by hand sends no notice.
    let sql = "UPDATE toolgate.entries SET value = '2', version = version + 5 WHERE key = 'a';
        UPDATE toolgate.counters SET value = (SELECT max(version) FROM toolgate.entries) WHERE name = 'version';
        INSERT INTO toolgate.changes SELECT space, version, tbl, id, key FROM toolgate.entries WHERE key = 'a'";
    PostgresServer::shared().execute(name(&url), sql);
    for gateway in [&one, &other] {
        wait_until("the poll finds it", || {
            values(gateway) == [("a".to_owned(), json!(2))]
        });
    }
}

#[test]
fn whoever_missed_too_many_changes_reads_everything() {
    let Some(url) = database() else { return };
    let (one, other) = (open(&url), open(&url));
    put(&one, "gone", Some(json!(1)), WritePrecondition::Any);
    wait_until("it arrives", || other.row("grants", "gone").is_some());
    for _ in 0..50 {
        let writes: Vec<_> = (0..100)
            .map(|n| one.write("grants", "b", Some(json!(n)), WritePrecondition::Any))
            .collect();
        block_on(async {
            for write in writes {
                write.await.unwrap();
            }
        });
    }
    put(&one, "gone", None, WritePrecondition::Any);
    let sql = "SELECT count(*) FROM toolgate.changes WHERE space = 'state'";
    let kept: u32 = PostgresServer::shared()
        .execute(name(&url), sql)
        .parse()
        .unwrap();
    assert!(kept < 4900, "{kept} changes are remembered");
    // As if a gateway had slept: the changes that it misses are no longer there.
    let sql = "UPDATE toolgate.counters SET value = value + 5000;
        DELETE FROM toolgate.changes; INSERT INTO toolgate.entries SELECT space, tbl, '\\x00', 'new', value, version + 1 FROM toolgate.entries WHERE key = 'b'";
    PostgresServer::shared().execute(name(&url), sql);
    wait_until("it reads everything", || {
        let keys: Vec<String> = values(&other).into_iter().map(|(key, _)| key).collect();
        keys == ["b", "new"]
    });
}

#[test]
fn a_database_that_was_set_back_never_uses_a_version_again() {
    let Some(url) = database() else { return };
    let one = open(&url);
    let old = done(put(
        &one,
        "a",
        Some(json!("approved")),
        WritePrecondition::Any,
    ));
    let backup = "CREATE TABLE backup AS SELECT * FROM toolgate.entries;
        CREATE TABLE backup2 AS SELECT * FROM toolgate.counters";
    PostgresServer::shared().execute(name(&url), backup);
    let newest = done(put(
        &one,
        "a",
        Some(json!("used")),
        WritePrecondition::Version(old),
    ));
    let restore = "TRUNCATE toolgate.entries, toolgate.counters, toolgate.changes;
        INSERT INTO toolgate.entries SELECT * FROM backup;
        INSERT INTO toolgate.counters SELECT * FROM backup2";
    PostgresServer::shared().execute(name(&url), restore);
    wait_until("the gateway reads the earlier state", || {
        values(&one) == [("a".to_owned(), json!("approved"))]
    });
    assert!(done(put(&one, "b", Some(json!(1)), WritePrecondition::Any)) > newest);
}

#[test]
fn gateways_that_start_together_create_the_tables_once() {
    let Some(url) = database() else { return };
    std::thread::scope(|scope| {
        for number in 0..6 {
            let url = &url;
            scope.spawn(move || {
                let store = open(url);
                put(
                    &store,
                    &format!("g-{number}"),
                    Some(json!(number)),
                    WritePrecondition::Absent,
                );
            });
        }
    });
    assert_eq!(values(&open(&url)).len(), 6);
    assert_eq!(migrate(&address(&url)).unwrap(), 2);
}

#[test]
fn a_newer_schema_is_used_only_if_it_allows_that() {
    let Some(url) = database() else { return };
    drop(open(&url));
    let set = |version: u32, oldest: u32| {
        let sql = format!("UPDATE toolgate.schema SET version = {version}, oldest = {oldest}");
        PostgresServer::shared().execute(name(&url), &sql);
    };
    set(7, 1);
    put(&open(&url), "a", Some(json!(1)), WritePrecondition::Any);
    set(7, 5);
    let options = PostgresOptions::new(address(&url), STATE_SPACE);
    match PostgresStore::open(options).map(drop) {
        Err(error @ StoreError::Refused(_)) => {
            assert!(error.detail().contains("version 7"), "{}", error.detail());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_user_without_the_right_to_create_tables_can_use_them() {
    let Some(url) = database() else { return };
    let server = PostgresServer::shared();
    let role = format!("gateway_{}", name(&url));
    server.execute(name(&url), &format!("CREATE ROLE {role} LOGIN"));
    let as_role = url.replace("postgres@", &format!("{role}@"));
    let options = || PostgresOptions::new(address(&as_role), STATE_SPACE);
    match PostgresStore::open(options()).map(drop) {
        Err(error @ StoreError::Refused(_)) => {
            let detail = error.detail();
            assert!(detail.contains("toolgate store migrate"), "{detail}");
        }
        other => panic!("{other:?}"),
    }
    migrate(&address(&url)).unwrap();
    let grant = format!(
        "GRANT USAGE ON SCHEMA toolgate TO {role};
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA toolgate TO {role}"
    );
    server.execute(name(&url), &grant);
    let store = PostgresStore::open(options()).unwrap();
    put(&store, "a", Some(json!(1)), WritePrecondition::Any);
    // A database or a role that does not exist needs the operator.
    for wrong in [
        url.replace(name(&url), "none"),
        url.replace("postgres@", "nobody@"),
    ] {
        let opened = PostgresStore::open(PostgresOptions::new(address(&wrong), STATE_SPACE));
        assert!(
            matches!(opened.map(drop), Err(StoreError::Refused(_))),
            "{wrong}"
        );
    }
}

#[test]
fn limits() {
    let Some(url) = database() else { return };
    let mut options = PostgresOptions::new(address(&url), STATE_SPACE);
    options.limits.max_rows = 2;
    options.limits.max_row_bytes = 100;
    let state = PostgresStore::open(options).unwrap();
    let write = |key: &str, value| {
        block_on(state.write("grants", key, Some(value), WritePrecondition::Any))
            .map_err(|error| error.to_string())
    };
    assert!(write("a", json!("x".repeat(97))).is_ok());
    let long = write("a", json!("x".repeat(98))).unwrap_err();
    assert!(long.contains("the limit is 100"), "{long}");
    assert!(write("b", json!(1)).is_ok());
    let full = write("c", json!(1)).unwrap_err();
    assert!(full.contains("already has 2 entries"), "{full}");
    assert!(write("b", json!(2)).is_ok());
    assert!(write("n\0", json!(2)).unwrap_err().contains("NUL"));
}

#[test]
fn state_moves_to_the_shared_store_and_back_without_loss() {
    let Some(url) = database() else { return };
    let scratch = Scratch::new();
    let local = scratch.open();
    for n in 0..300 {
        let value =
            json!({"n": n, "text": "a line\nand \u{1F600}", "big": 9_007_199_254_740_993_u64});
        put(
            &local,
            &format!("g-{n}"),
            Some(value),
            WritePrecondition::Absent,
        );
    }
    put(&local, "g-7", None, WritePrecondition::Any);
    let mut before = Vec::new();
    export(&scratch.0, &mut before).unwrap();
    let running = open(&url);
    assert_eq!(
        move_to_shared(&scratch.0, &address(&url), STATE_SPACE).unwrap(),
        300
    );
    // A gateway that runs follows.
    wait_until("the gateway reads them", || values(&running).len() == 299);
    assert_eq!(running.versions("grants"), local.versions("grants"));
    drop(running);
    let again = move_to_shared(&scratch.0, &address(&url), STATE_SPACE).unwrap_err();
    assert!(
        again.detail().contains("already has entries"),
        "{}",
        again.detail()
    );
    let report = check_shared(&address(&url), STATE_SPACE).unwrap();
    let grants = report.tables.iter().find(|table| table.name == "grants");
    assert_eq!(grants.map(|table| table.entries), Some(299));
    // Back into another directory, and into another database.
    let mut out = Vec::new();
    export_shared(&address(&url), STATE_SPACE, &mut out).unwrap();
    let lines = |export: &[u8]| {
        let text = String::from_utf8(export.to_vec()).unwrap();
        let of_grants = text.lines().filter(|line| line.contains("\"grants\""));
        of_grants.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(&out), lines(&before));
    let other = Scratch::new();
    import(&other.0, &mut &out[..]).unwrap();
    assert_eq!(values(&other.open()), values(&local));
    let second = database().unwrap();
    import_shared(&address(&second), STATE_SPACE, &mut &out[..]).unwrap();
    assert_eq!(values(&open(&second)), values(&local));
    assert_eq!(
        clear_shared(&address(&second), STATE_SPACE, "grants").unwrap(),
        299
    );
    assert_eq!(values(&open(&second)), []);
}
