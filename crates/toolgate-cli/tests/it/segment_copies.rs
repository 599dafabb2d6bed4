//! Copies of the audit log's segments in PostgreSQL.

use crate::{
    help::{Gate, LONG, Setup, TempDir, output, toolgate, until},
    json_outputs::check_output,
    monitoring::metrics_of,
    shared_store::{add, config, database, fleet, name, note},
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Output,
};
use toolgate_testkit::postgres::PostgresServer;
use toolgate_verify::{VerifyOptions, verify};

/// Small segments, so that a few calls fill several.
const COPIES: &str = "\n[audit]\nsegment_bytes = 4096\ncheckpoint_seconds = 1\ncopy_segments = true\ncopy_seconds = 1";

/// Runs an audit command with the config and the data directory of a gateway.
fn audit(home: &TempDir, words: &[&str]) -> Output {
    let mut run = toolgate();
    run.arg("audit").args(words);
    run.arg("--config").arg(home.file("toolgate.toml"));
    run.arg("--data").arg(home.file("state"));
    output(&mut run)
}

fn printed(out: &Output) -> String {
    let all = [&out.stdout[..], &out.stderr[..]].concat();
    String::from_utf8_lossy(&all).into_owned()
}

/// Returns the copies as `toolgate audit copies` lists them, by chain.
fn copies(home: &TempDir) -> BTreeMap<String, Value> {
    let out = audit(home, &["copies", "--json"]);
    assert!(out.status.success(), "{out:?}");
    let listed = check_output("audit copies", &String::from_utf8(out.stdout).unwrap()).remove(0);
    let copies = listed.as_array().unwrap().iter();
    let named = copies.map(|copy| (copy["chain"].as_str().unwrap().to_owned(), copy.clone()));
    named.collect()
}

/// Returns the segment files of a data directory: chain and number, and bytes.
fn segments(data: &Path) -> BTreeMap<(String, u64), Vec<u8>> {
    let files = toolgate_journal::read::segment_files(&data.join("audit")).unwrap();
    let read = files.into_iter().map(|file| {
        let bytes = fs::read(&file.path).unwrap();
        ((file.chain, file.number), bytes)
    });
    read.collect()
}

/// Returns the number of records of each chain of a data directory.
fn records(data: &Path) -> BTreeMap<String, u64> {
    let mut records = BTreeMap::new();
    for ((chain, _), bytes) in segments(data) {
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        *records.entry(chain).or_default() += lines;
    }
    records
}

/// Waits until the copy of a gateway's log has all records that it has now. Returns its first chain, and their number.
fn all_copied(home: &TempDir) -> (String, u64) {
    let records = records(&home.file("state"));
    until("the log is copied", LONG, || {
        let copies = copies(home);
        let has = |(chain, count): (&String, &u64)| {
            let copy = copies.get(chain);
            copy.is_some_and(|copy| copy["last"].as_u64().unwrap() >= *count)
        };
        records.iter().all(has).then_some(())
    });
    records.into_iter().next().unwrap()
}

/// Returns the bytes of a copied segment, as its pieces give them in order.
fn copied_bytes(server: &PostgresServer, url: &str, chain: &str, segment: u64) -> String {
    let sql = format!(
        "SELECT encode(string_agg(bytes, '' ORDER BY start), 'hex') FROM toolgate.audit_pieces
        WHERE chain = '{chain}' AND segment = {segment}"
    );
    server.execute(name(url), &sql)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Asserts that the copy has each byte of a data directory's log once.
#[track_caller]
fn is_copied(server: &PostgresServer, url: &str, data: &Path) {
    for ((chain, segment), bytes) in segments(data) {
        let copied = copied_bytes(server, url, &chain, segment);
        assert!(copied == hex(&bytes), "segment {segment} of {chain}");
    }
}

#[test]
fn the_log_of_a_lost_gateway_is_restored_from_its_copy() {
    let Some(url) = database() else { return };
    let mut gates = fleet(&url, COPIES);
    for gate in &gates {
        for _ in 0..20 {
            assert_eq!(add(gate, None).status, 200);
        }
    }
    let victim = gates.pop().unwrap();
    let (chain, count) = all_copied(&victim.data);
    let key = victim.cli(&["audit", "key"]).trim().to_owned();
    let (home, lost) = (gates[0].data.clone(), victim.kill());
    let copy = copies(&home).remove(&chain).unwrap();
    let local = segments(&lost.file("state"));
    fs::remove_dir_all(lost.file("state")).unwrap();

    let gateway = copy["gateway"].as_str().unwrap();
    let to = TempDir::new("restored");
    let to = to.file("log");
    let restore = ["restore-copy", "--gateway", gateway, "--key", &key, "--to"];
    let out = audit(&home, &[&restore[..], &[to.to_str().unwrap()]].concat());
    let told = printed(&out);
    assert_eq!(out.status.code(), Some(0), "{told}");
    let restored = records(&to)[&chain];
    assert_eq!(copy["last"], restored);
    assert!(restored >= count, "{restored} of {count} records");
    assert!(
        told.contains(&format!("{chain} up to record {restored}")),
        "{told}"
    );
    // The bytes are those of the lost disk.
    let restored = segments(&to);
    assert!(restored.len() > 2, "the calls fill several segments");
    let last = restored.keys().next_back().unwrap();
    for (place, bytes) in &restored {
        match place == last {
            true => assert!(local[place].starts_with(bytes), "{place:?}"),
            false => assert!(local[place] == *bytes, "{place:?}"),
        }
    }
    let against = VerifyOptions {
        keys: vec![key.clone()],
        ..VerifyOptions::default()
    };
    let second = verify(&to.join("audit"), &against).unwrap();
    assert_eq!(second.exit_code(), 0);
    // A directory with files is not used, so that nothing is mixed.
    let again = audit(&home, &[&restore[..], &[to.to_str().unwrap()]].concat());
    assert!(printed(&again).contains("is not empty"), "{again:?}");

    // The verification of all logs needs none of the lost directory.
    let other = gates[1].data.file("state");
    let all = ["verify", "--fleet", "--log", other.to_str().unwrap()];
    let out = audit(&home, &all);
    let told = printed(&out);
    assert_eq!(out.status.code(), Some(0), "{told}");
    assert!(told.contains("3 of 3 chains"), "{told}");
    assert!(told.contains("copy of the log of"), "{told}");
    let json = audit(&home, &[&all[..], &["--json"]].concat());
    let json = check_output(
        "audit verify --fleet",
        &String::from_utf8(json.stdout).unwrap(),
    );
    let logs = json[0]["logs"].as_array().unwrap();
    assert_eq!(logs.last().unwrap()["copy_of"], gateway, "{json:?}");
}

#[test]
fn a_copy_continues_after_an_outage_without_a_missing_or_doubled_byte() {
    if !PostgresServer::is_installed() {
        return;
    }
    let server = PostgresServer::start();
    let url = server.create_database();
    let gates = fleet(&url, COPIES);
    let calls = || {
        for gate in &gates {
            for _ in 0..10 {
                assert_eq!(add(gate, None).status, 200, "no call waits for a copy");
            }
        }
    };
    calls();
    all_copied(&gates[0].data);
    for outage in 0..2 {
        match outage {
            0 => server.kill(),
            _ => server.freeze(),
        }
        calls();
        match outage {
            0 => server.run(),
            _ => server.thaw(),
        }
        calls();
        for gate in &gates {
            all_copied(&gate.data);
        }
    }
    // A gateway that stops copies its last records.
    for home in gates.into_iter().map(Gate::stop).collect::<Vec<_>>() {
        let data = home.file("state");
        assert!(segments(&data).len() > 1, "the calls fill several segments");
        is_copied(&server, &url, &data);
    }
}

/// Returns the file of the last segment of a log.
fn last_segment(data: &Path) -> PathBuf {
    let files = toolgate_journal::read::segment_files(&data.join("audit")).unwrap();
    files.last().unwrap().path.clone()
}

#[test]
fn a_log_that_was_cut_is_not_copied_and_its_copy_stays() {
    let Some(url) = database() else { return };
    // The last segment has all records.
    let config = config(&url, &COPIES.replace("segment_bytes = 4096\n", ""));
    let gate = Setup::config(config.clone()).start();
    for _ in 0..10 {
        assert_eq!(add(&gate, None).status, 200);
    }
    let home = gate.stop();
    let data = home.file("state");
    let server = PostgresServer::shared();
    is_copied(server, &url, &data);
    let (chain, count) = records(&data).into_iter().next().unwrap();
    let whole = segments(&data);
    // Whoever cuts the log cuts its mirror too, and the gateway signs other records in their place.
    let last = last_segment(&data);
    let mirror = data.join("checkpoints").join(format!("{chain}.jsonl"));
    let lines = fs::read_to_string(&last).unwrap();
    let mut lines: Vec<&str> = lines.split_inclusive('\n').collect();
    lines.pop();
    fs::write(&last, lines.concat()).unwrap();
    let kept = fs::read_to_string(&mirror).unwrap();
    let mut kept: Vec<&str> = kept.split_inclusive('\n').collect();
    kept.pop();
    fs::write(&mirror, kept.concat()).unwrap();

    let gate = Setup::config(config).start_in(home);
    for _ in 0..10 {
        assert_eq!(add(&gate, None).status, 200);
    }
    let problem = until("the gateway finds it", LONG, || {
        let copy = copies(&gate.data).remove(&chain)?;
        assert_eq!(copy["last"], count, "nothing is copied over it: {copy}");
        copy["problem"].as_str().map(str::to_owned)
    });
    assert!(problem.contains("removed or changed"), "{problem}");
    until("the gateway says it", LONG, || {
        let said = gate.said().join("\n");
        said.contains("does not continue its copy in the shared store")
            .then_some(())
    });
    let metrics = metrics_of(gate.port);
    assert_eq!(metrics["toolgate_audit_copies_diverged"], 1.0);
    assert!(metrics.contains_key("toolgate_audit_copies_behind_bytes"));
    let out = audit(&gate.data, &["verify", "--fleet"]);
    let told = printed(&out);
    assert_eq!(out.status.code(), Some(1), "{told}");
    assert!(told.contains("DIVERGED"), "{told}");
    for ((chain, segment), bytes) in whole {
        assert!(copied_bytes(server, &url, &chain, segment) == hex(&bytes));
    }
}

#[test]
fn verify_fleet_finds_a_log_that_differs_from_its_copy() {
    let Some(url) = database() else { return };
    let gate = Setup::config(config(&url, COPIES)).start();
    for _ in 0..10 {
        assert_eq!(add(&gate, None).status, 200);
    }
    let home = gate.stop();
    let out = audit(&home, &["verify", "--fleet"]);
    assert_eq!(out.status.code(), Some(0), "{}", printed(&out));
    let segment = last_segment(&home.file("state"));
    let mut bytes = fs::read(&segment).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let out = audit(&home, &["verify", "--fleet"]);
    let told = printed(&out);
    assert_eq!(out.status.code(), Some(1), "{told}");
    assert!(told.contains("differs from its copy"), "{told}");
}

#[test]
fn erased_contents_are_in_no_copy() {
    let Some(url) = database() else { return };
    let text = "[audit]\narguments = \"redacted\"\nresults = \"redacted\"\nencrypt_contents = true\ncopy_segments = true\ncopy_seconds = 1\n";
    let rule = "\n[[rule]]\ntools = [\"demo.note\"]\naction = \"allow\"\n";
    let config = format!("{}{rule}", config(&url, &format!("\n{text}")));
    let gate = Setup::config(config).start();
    assert_eq!(note(&gate, "the-address-of-ann").status, 200);
    all_copied(&gate.data);
    let server = PostgresServer::shared();
    let copied = "SELECT count(*) FROM toolgate.audit_pieces WHERE position('\"args_enc\"'::bytea IN bytes) > 0";
    assert_ne!(server.execute(name(&url), copied), "0");
    let secrets = "SELECT count(*) FROM toolgate.entries WHERE tbl = 'content_keys'";
    assert_ne!(server.execute(name(&url), secrets), "0");
    let out = audit(
        &gate.data,
        &["erase", "--caller", "anonymous@http", "--yes"],
    );
    assert!(out.status.success(), "{}", printed(&out));
    all_copied(&gate.data);
    let clear = "SELECT count(*) FROM toolgate.audit_pieces WHERE position('the-address-of-ann'::bytea IN bytes) > 0";
    assert_eq!(server.execute(name(&url), clear), "0");
    let caller =
        "SELECT count(*) FROM toolgate.entries WHERE tbl = 'content_keys' AND key LIKE 'caller:%'";
    assert_eq!(server.execute(name(&url), caller), "0");
}

#[test]
fn copies_of_retired_segments_stay_until_they_are_pruned_and_the_rest_verifies() {
    let Some(url) = database() else { return };
    let text = "[audit]\narguments = \"redacted\"\ncontents_bytes = 49152\nsegment_bytes = 131072\nkeep_bytes = 1048576\ncopy_segments = true\ncopy_seconds = 1\n";
    let rule = "\n[[rule]]\ntools = [\"demo.note\"]\naction = \"allow\"\n";
    let gate = Setup::config(format!("{}{rule}", config(&url, &format!("\n{text}")))).start();
    // Less than retention keeps, so that all is copied before it is removed.
    for _ in 0..2 {
        for _ in 0..20 {
            assert_eq!(note(&gate, &"x".repeat(40_000)).status, 200);
        }
        all_copied(&gate.data);
    }
    let home = gate.stop();
    let first = |data: &Path| segments(data).keys().next().unwrap().clone();
    let (chain, first_kept) = first(&home.file("state"));
    assert!(first_kept > 1, "retention removed a segment");
    let (server, to) = (PostgresServer::shared(), TempDir::new("pruned"));
    let copied = || {
        let sql = "SELECT string_agg(DISTINCT segment::text, ' ') FROM toolgate.audit_pieces";
        let segments = server.execute(name(&url), sql);
        let mut segments: Vec<u64> = segments.split(' ').map(|n| n.parse().unwrap()).collect();
        segments.sort_unstable();
        segments
    };
    assert_eq!(copied()[0], 1, "the copy has what retention removed");
    let gateway = copies(&home)[&chain]["gateway"].clone();
    let gateway = gateway.as_str().unwrap();
    let restore = |dir: &str| {
        let dir = to.file(dir);
        let to = dir.to_str().unwrap();
        let out = audit(&home, &["restore-copy", "--gateway", gateway, "--to", to]);
        assert_eq!(out.status.code(), Some(0), "{}", printed(&out));
        first(&dir).1
    };
    assert_eq!(restore("whole"), 1);

    // Nothing is that old.
    let out = audit(&home, &["prune-copies", "--before", "2020-01-01", "--yes"]);
    assert!(printed(&out).contains("0 segments"), "{}", printed(&out));
    let prune = ["prune-copies", "--before", "2999-01-01"];
    // A hold keeps the copies, as it keeps the log, and nobody answers the question here.
    let hold = home.file("state").join("audit/hold");
    fs::write(&hold, "").unwrap();
    let out = audit(&home, &[&prune[..], &["--yes"]].concat());
    assert!(printed(&out).contains("on hold"), "{}", printed(&out));
    fs::remove_file(hold).unwrap();
    let out = audit(&home, &prune);
    assert!(printed(&out).contains("pass --yes"), "{}", printed(&out));
    assert_eq!(copied()[0], 1);
    let out = audit(&home, &[&prune[..], &["--yes"]].concat());
    assert!(out.status.success(), "{}", printed(&out));
    assert_eq!(copied()[0], first_kept, "only retired segments are removed");
    assert_eq!(restore("rest"), first_kept);
    let out = audit(&home, &["verify", "--fleet"]);
    assert_eq!(out.status.code(), Some(0), "{}", printed(&out));
}

#[test]
fn a_database_user_who_may_only_add_pieces_is_enough_for_copies() {
    let Some(url) = database() else { return };
    // The owner of the database creates the tables.
    let owner = Setup::config(config(&url, COPIES)).start().stop();
    let server = PostgresServer::shared();
    let user = format!("user_{}", name(&url));
    server.execute(
        name(&url),
        &format!(
            "CREATE ROLE {user} LOGIN; GRANT USAGE ON SCHEMA toolgate TO {user};
            GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA toolgate TO {user};
            REVOKE UPDATE, DELETE ON toolgate.audit_pieces FROM {user}"
        ),
    );
    let restricted = url.replace("postgres://postgres@", &format!("postgres://{user}@"));
    let gate = Setup::config(config(&restricted, COPIES)).start();
    for _ in 0..10 {
        assert_eq!(add(&gate, None).status, 200);
    }
    let home = gate.stop();
    is_copied(server, &url, &home.file("state"));
    let prune = ["prune-copies", "--before", "2999-01-01", "--yes"];
    let out = audit(&home, &prune);
    assert!(printed(&out).contains("permission denied"), "{out:?}");
    assert!(audit(&owner, &prune).status.success());
}
