//! `cargo xtask platforms`: the library crates, checked for Windows, macOS and WebAssembly.
//!
//! Nothing is linked, so a target needs the standard library of rustup and, for the C of `ring`, a compiler: MinGW for
//! Windows, and Zig from PyPI for macOS. A target whose tools cannot be had is skipped with a note.

use std::path::PathBuf;

use crate::report::Report;
use crate::run::{cargo, command, must, output, target, which};
use crate::zig::{self, CompilerVariables};

/// A target, the crates that are checked for it, and its C compiler.
struct Platform {
    target: &'static str,
    crates: &'static [&'static str],
    compiler: fn() -> Result<CompilerVariables, String>,
}

const PLATFORMS: [Platform; 3] = [
    Platform {
        target: "x86_64-pc-windows-gnu",
        crates: &["toolgate", "toolgate-verify"],
        compiler: mingw,
    },
    Platform {
        target: "aarch64-apple-darwin",
        crates: &["toolgate", "toolgate-verify"],
        compiler: || {
            let folder = target().join("platforms/zig");
            zig::compiler("aarch64-apple-darwin", "aarch64-macos", &folder)
        },
    },
    Platform {
        target: "wasm32-unknown-unknown",
        crates: &["toolgate-protocol"],
        compiler: || Ok(Vec::new()),
    },
];

/// Checks each platform.
pub(crate) fn check(report: &mut Report) {
    for platform in PLATFORMS {
        let tools = add_target(platform.target).and_then(|()| (platform.compiler)());
        match tools {
            Ok(tools) => report.step(&format!("crates for {}", platform.target), || {
                check_crates(&platform, &tools)
            }),
            Err(why) => report.skip(&format!("crates for {}: {why}", platform.target)),
        }
    }
}

fn check_crates(platform: &Platform, tools: &[(String, PathBuf)]) -> Result<(), String> {
    let mut check = cargo();
    check.args(["check", "--locked", "--quiet", "--target", platform.target]);
    for name in platform.crates {
        check.args(["-p", name]);
    }
    check.arg("--target-dir").arg(target().join("platforms"));
    must(check.envs(tools.iter().map(|(name, path)| (name, path))))
}

/// Installs the standard library of a target, if it is missing.
pub(crate) fn add_target(name: &str) -> Result<(), String> {
    let rustup = which("rustup").ok_or("rustup is missing")?;
    let installed = output(command(&rustup).args(["target", "list", "--installed"]))?;
    match installed.lines().any(|line| line == name) {
        true => Ok(()),
        false => must(command(&rustup).args(["target", "add", name])),
    }
}

fn mingw() -> Result<CompilerVariables, String> {
    match which("x86_64-w64-mingw32-gcc") {
        Some(gcc) => Ok(vec![("CC_x86_64_pc_windows_gnu".to_owned(), gcc)]),
        None => Err("x86_64-w64-mingw32-gcc is missing (Debian: gcc-mingw-w64-x86-64)".to_owned()),
    }
}
