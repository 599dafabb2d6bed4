//! T58: the example that serves a folder reads and writes nothing outside of it.
#![allow(clippy::print_stdout, reason = "the figures of the test")]

use serde_json::json;
use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};
use toolgate::Client;

/// Contents of a file outside, which must be neither read nor changed.
const CANARY: &str = "the canary sings outside";

/// Names and paths that lead out, or look so to somebody.
fn escapes(outside: &Path) -> Vec<String> {
    let ups = [
        "..", "%2e%2e", "..%2f..", ".%2e", "\u{2025}", "..\\..", "....", "link", "a.txt/..", ".",
    ];
    let mids = [
        "/", "//", "%2f", "%252f", "\\", "/./", "%5c", ";/", "\u{2215}", "%c0%af",
    ];
    let outside = outside.to_string_lossy().into_owned();
    let ends = [
        "canary",
        "outside/canary",
        "etc/passwd",
        "canary%00",
        "canary.txt",
        "CANARY",
    ];
    let mut all = vec![outside.clone(), format!("file://{outside}"), String::new()];
    for times in 1..=5 {
        for up in ups {
            for mid in mids {
                let climb = format!("{up}{mid}").repeat(times);
                all.extend(ends.map(|end| format!("{climb}{end}")));
            }
        }
    }
    all
}

async fn tried(files: &Client, name: &str) {
    if let Ok(read) = files.read(&format!("folder:///{name}")).await {
        let text = format!("{:?}", read.contents);
        assert!(!text.contains(CANARY), "{name:?} read what lies outside");
    }
    let _ = files
        .call("write", json!({"name": name, "text": "escaped"}))
        .await;
}

/// Puts a link in the place of a file, and the file back, as fast as it goes.
fn swap(inside: &Path, canary: &Path, stop: &AtomicBool) -> usize {
    let (name, file, link) = (
        inside.join("a.txt"),
        inside.join(".file"),
        inside.join(".link"),
    );
    let mut swaps = 0;
    while !stop.load(Ordering::Relaxed) {
        let _ = symlink(canary, &link);
        fs::rename(&link, &name).unwrap();
        fs::write(&file, "inside").unwrap();
        fs::rename(&file, &name).unwrap();
        swaps += 2;
    }
    swaps
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t58_no_path_leads_out_of_the_folder() {
    let root = std::env::temp_dir().join(format!("toolgate-t58-{}", std::process::id()));
    let (inside, outside) = (root.join("inside"), root.join("outside"));
    fs::create_dir_all(&inside).unwrap();
    fs::create_dir_all(&outside).unwrap();
    let canary = outside.join("canary");
    fs::write(&canary, CANARY).unwrap();
    fs::write(inside.join("a.txt"), "inside").unwrap();
    symlink(&outside, inside.join("link")).unwrap();
    symlink(&canary, inside.join("canary.txt")).unwrap();
    let command = [
        super::examples::program("files"),
        inside.to_string_lossy().into_owned(),
    ];
    let files = Client::spawn(command).await.unwrap();
    let paths = escapes(&canary);
    for path in &paths {
        tried(&files, path).await;
    }
    assert!(paths.len() >= 3000, "{}", paths.len());

    let stop = std::sync::Arc::new(AtomicBool::new(false));
    let (there, bird, end) = (inside.clone(), canary.clone(), stop.clone());
    let swaps = std::thread::spawn(move || swap(&there, &bird, &end));
    let long = std::env::var_os("TOOLGATE_LONG").is_some();
    let until = Instant::now() + Duration::from_secs(if long { 60 } else { 2 });
    let mut tries = 0;
    while Instant::now() < until {
        tried(&files, "a.txt").await;
        tries += 1;
    }
    stop.store(true, Ordering::Relaxed);
    let swaps = swaps.join().unwrap();
    assert_eq!(fs::read_to_string(&canary).unwrap(), CANARY);
    let names: Vec<_> = fs::read_dir(&outside).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    println!(
        "T58: {} paths and {tries} reads and writes over {swaps} swaps with a link, 0 outside",
        paths.len()
    );
    fs::remove_dir_all(&root).unwrap();
}
