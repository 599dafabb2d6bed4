//! The shared store while PostgreSQL is killed, frozen or cut off.

use crate::{
    kit::{Scratch, block_on, done, put, values, wait_until},
    postgres::{address, open},
};
use serde_json::json;
use std::time::{Duration, Instant};
use toolgate_policy::{StateStore, WritePrecondition};
use toolgate_store::postgres::{PostgresOptions, PostgresStore, STATE_SPACE};
use toolgate_testkit::postgres::PostgresServer;

/// A store that gives up soon, with an outbox.
fn quick(url: &str, scratch: &Scratch) -> PostgresStore {
    let mut options = PostgresOptions::new(address(url), STATE_SPACE);
    options.timeout = Duration::from_millis(300);
    options.stale_after = Duration::from_millis(1500);
    options.outbox = Some(scratch.0.clone());
    PostgresStore::open(options).unwrap()
}

fn write(store: &PostgresStore, key: &str) -> Result<(), String> {
    let written = store.write("grants", key, Some(json!(1)), WritePrecondition::Any);
    block_on(written)
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Checks a store through an outage: refusals at once, an urgent change, and the return.
fn outage(server: &PostgresServer, begin: impl Fn(), end: impl Fn()) {
    let url = server.create_database();
    let (scratch, other) = (Scratch::new(), open(&url));
    let store = quick(&url, &scratch);
    let version = done(put(
        &store,
        "approval",
        Some(json!("approved")),
        WritePrecondition::Any,
    ));
    begin();
    // The first write may wait for the time limit. It may have been stored, but it does not count.
    let first = write(&store, "first").unwrap_err();
    assert!(
        first.contains("the shared store cannot be reached"),
        "{first}"
    );
    wait_until("the outage is known", || {
        store.status().borrow().outage.is_some()
    });
    let started = Instant::now();
    for _ in 0..100 {
        write(&store, "later").unwrap_err();
    }
    // A hundred timeouts would take half a minute.
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(store.row("grants", "approval").unwrap().version, version);
    // A freeze holds here at once, also for a process that starts now.
    block_on(store.write_urgent("freezes", "all", json!({"by": "ann"}))).unwrap();
    assert_eq!(store.entries("freezes").len(), 1);
    wait_until("the copy is stale", || store.stale_reason().is_some());
    let started = Instant::now();
    end();
    wait_until("it is back", || store.status().borrow().outage.is_none());
    println!("back {:?} after the database", started.elapsed());
    assert_eq!(store.stale_reason(), None);
    write(&store, "again").unwrap();
    wait_until("the freeze reaches the other gateway", || {
        other.entries("freezes").len() == 1
    });
    assert_eq!(store.entries("freezes"), other.entries("freezes"));
    assert!(
        other.row("grants", "later").is_none(),
        "what was refused is not stored"
    );
    drop(store);
    assert_eq!(
        scratch.open().entries("outbox"),
        [],
        "nothing is written again"
    );
}

#[test]
fn a_killed_server_refuses_writes_at_once_and_loses_none() {
    if !PostgresServer::is_installed() {
        return;
    }
    let server = PostgresServer::start();
    outage(&server, || server.kill(), || server.run());
}

#[test]
fn a_frozen_server_refuses_writes_after_the_time_limit() {
    if !PostgresServer::is_installed() {
        return;
    }
    let server = PostgresServer::start();
    outage(&server, || server.freeze(), || server.thaw());
}

#[test]
fn a_freeze_survives_a_restart_of_the_gateway_during_an_outage() {
    if !PostgresServer::is_installed() {
        return;
    }
    let server = PostgresServer::start();
    let url = server.create_database();
    let scratch = Scratch::new();
    let store = quick(&url, &scratch);
    server.kill();
    wait_until("the outage is known", || {
        store.status().borrow().outage.is_some()
    });
    block_on(store.write_urgent("freezes", "all", json!({"by": "ann"}))).unwrap();
    drop(store);
    server.run();
    let store = quick(&url, &scratch);
    assert_eq!(store.entries("freezes").len(), 1);
    wait_until("it is in the database", || {
        open(&url).entries("freezes").len() == 1
    });
    assert_eq!(values(&store), []);
}

#[test]
fn a_gateway_that_stops_in_a_transaction_does_not_block_the_others() {
    if !PostgresServer::is_installed() {
        return;
    }
    let server = PostgresServer::start();
    let url = server.create_database();
    let store = open(&url);
    put(&store, "a", Some(json!(1)), WritePrecondition::Any);
    // Another gateway holds the lock of the counter, and hangs.
    let database = url.rsplit('/').next().unwrap().to_owned();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let sql = "BEGIN; SELECT value FROM toolgate.counters WHERE name = 'version' FOR UPDATE; SELECT pg_sleep(4); COMMIT";
            server.execute(&database, sql);
        });
        wait_until("the lock is held", || {
            let sql = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()";
            server.execute(&database, sql) == "1"
        });
        assert!(write(&store, "b").is_err(), "it waits two seconds at most");
        wait_until("it writes again", || write(&store, "c").is_ok());
    });
}
