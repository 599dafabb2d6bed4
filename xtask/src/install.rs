//! Puts the real clients and servers, and cargo-deny, into `target/interop`, and the conformance suite beside it.
//!
//! Each part has a stamp made of the files that pin it: a warm run does nothing. The ordinary clients of npm and
//! Python do the work.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::conformance;
use crate::run::{command, must, root, target, which};

/// Where everything of the real clients is.
pub(crate) fn folder() -> PathBuf {
    target().join("interop")
}

/// The licence checker, where it was installed or where the machine has it.
pub(crate) fn cargo_deny() -> Option<PathBuf> {
    let own = folder().join("tools/bin/cargo-deny");
    if own.is_file() {
        Some(own)
    } else {
        which("cargo-deny")
    }
}

/// Installs the C compiler for macOS, and gives the Python that runs it.
pub(crate) fn zig() -> Result<PathBuf, String> {
    venv("zig", "requirements-zig.txt")?;
    Ok(folder().join("zig/bin/python"))
}

/// Installs uv, and gives the directory of `uvx`.
pub(crate) fn uv() -> Result<PathBuf, String> {
    venv("uv", "requirements-uv.txt")?;
    Ok(folder().join("uv/bin"))
}

/// The browser of the console tests.
pub(crate) fn chromium() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("TOOLGATE_CHROMIUM") {
        return Some(given.into());
    }
    ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find_map(which)
}

/// Installs every part and gives what could not be had, and why.
pub(crate) fn all() -> Vec<String> {
    let parts = [
        (
            "the TypeScript clients, the npm servers and the browser driver",
            node(),
        ),
        (
            "the Python client and server",
            venv("venv", "requirements-clients.txt"),
        ),
        (
            "the Python SDK 1.x",
            venv("venv1", "requirements-python1.txt"),
        ),
        ("FastMCP", venv("venv-fastmcp", "requirements-fastmcp.txt")),
        (
            "the check of licences, bans and sources",
            venv("tools", "requirements-tools.txt"),
        ),
        ("the JSON Schema Test Suite", suite()),
        ("the conformance suite", conformance::install()),
    ];
    parts
        .into_iter()
        .filter_map(|(what, outcome)| outcome.err().map(|why| format!("{what}: {why}")))
        .collect()
}

fn node() -> Result<(), String> {
    npm(&root().join("interop"), &folder().join("node"))
}

/// Where the published servers are.
pub(crate) fn published_folder() -> PathBuf {
    folder().join("published")
}

/// Installs the published servers that are compared with themselves behind the gateway: one folder of npm packages,
/// and one Python environment for each set of packages that fit together.
pub(crate) fn published() -> Result<(), String> {
    let (source, here) = (root().join("interop/published"), published_folder());
    npm(&source, &here.join("node"))?;
    ["python1", "python2", "fastmcp2"]
        .into_iter()
        .try_for_each(|set| {
            let pins = format!("requirements-{set}.txt");
            environment(&source, &here.join(set), &pins)
        })
}

/// Installs the proxies that the gateway is measured beside.
pub(crate) fn proxies() -> Result<(), String> {
    let (source, here) = (
        root().join("bench/proxies"),
        root().join("bench/target/proxies"),
    );
    npm(&source, &here.join("node"))?;
    environment(
        &root().join("interop"),
        &here.join("fastmcp"),
        "requirements-fastmcp.txt",
    )
}

/// Puts into `here` what the manifest and the lock file in `source` pin.
pub(crate) fn npm(source: &Path, here: &Path) -> Result<(), String> {
    let pins = ["package.json", "package-lock.json", ".npmrc"];
    once(source, here, &pins, || {
        for file in pins {
            let (from, to) = (source.join(file), here.join(file));
            fs::copy(&from, &to)
                .map_err(|error| format!("cannot copy {}: {error}", from.display()))?;
        }
        must(
            command("npm")
                .args(["ci", "--loglevel=error"])
                .current_dir(here),
        )
    })
}

fn venv(name: &str, pins: &str) -> Result<(), String> {
    environment(&root().join("interop"), &folder().join(name), pins)
}

/// Puts into the Python environment `here` what a file in `source` pins.
fn environment(source: &Path, here: &Path, pins: &str) -> Result<(), String> {
    once(source, here, &[pins], || {
        must(command("python3").args(["-m", "venv"]).arg(here))?;
        let pip = here.join("bin/python");
        let quiet = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "-r",
        ];
        must(command(pip).args(quiet).arg(source.join(pins)))
    })
}

/// Unpacks a source package; nothing of it is installed.
fn suite() -> Result<(), String> {
    const PINS: &str = "requirements-suite.txt";
    let (source, here) = (root().join("interop"), folder().join("suite"));
    once(&source, &here, &[PINS], || {
        let words =
            "-m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: -r";
        let mut download = command("python3");
        download.args(words.split(' ')).arg(source.join(PINS));
        must(download.arg("--dest").arg(&here))?;
        let packed = fs::read_dir(&here).map_err(|error| error.to_string())?;
        let packed = packed.filter_map(|entry| Some(entry.ok()?.path()));
        packed
            .filter(|file| file.extension().is_some_and(|end| end == "gz"))
            .try_for_each(|file| {
                let mut unpack = command("python3");
                must(unpack.args(["-m", "tarfile", "-e"]).arg(file).arg(&here))
            })
    })
}

/// Fills `here` anew unless its stamp says that it was filled from the same pins.
fn once(
    source: &Path,
    here: &Path,
    pins: &[&str],
    fill: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let mut hasher = DefaultHasher::new();
    here.hash(&mut hasher);
    for pin in pins {
        let file = source.join(pin);
        fs::read(&file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?
            .hash(&mut hasher);
    }
    let stamp = format!("{:016x}", hasher.finish());
    let mark = here.join("toolgate-stamp");
    if fs::read_to_string(&mark).is_ok_and(|found| found == stamp) {
        return Ok(());
    }
    if here.exists() {
        fs::remove_dir_all(here)
            .map_err(|error| format!("cannot empty {}: {error}", here.display()))?;
    }
    fs::create_dir_all(here).map_err(|error| format!("cannot make {}: {error}", here.display()))?;
    fill()?;
    fs::write(&mark, stamp).map_err(|error| format!("cannot write {}: {error}", mark.display()))
}
