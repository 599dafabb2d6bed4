//! The static program of one target, with the same bytes wherever the checkout is.

use std::path::PathBuf;

use super::{DistPlatform, DistRelease};
use crate::first_use::tool_home;
use crate::run::{cargo, must, sysroot, target};
use crate::{pgo, platforms, zig};

/// Installs the standard library and the C compiler of a target.
pub(super) fn add_tools(platform: &DistPlatform) -> Result<(), String> {
    platforms::add_target(platform.target)?;
    compiler(platform).map(drop)
}

/// Builds `toolgate` with the profile `dist` and more compiler options, and returns the path of the program.
pub(super) fn build(
    release: &DistRelease,
    platform: &DistPlatform,
    more: &[String],
) -> Result<PathBuf, String> {
    let mut options = compiler_options(release)?;
    options.extend_from_slice(more);
    let mut build = cargo();
    build
        .args([
            "build",
            "--locked",
            "--profile",
            "dist",
            "-p",
            "toolgate-cli",
        ])
        .args(["--target", platform.target])
        .arg("--target-dir")
        .arg(&release.build)
        .current_dir(&release.source)
        .envs(compiler(platform)?)
        .env("SOURCE_DATE_EPOCH", &release.epoch)
        .env("CARGO_ENCODED_RUSTFLAGS", options.join("\x1f"));
    // The linker of the toolchain has the same version on all machines, and links for other architectures too.
    let name = platform.target.replace('-', "_").to_uppercase();
    must(build.env(format!("CARGO_TARGET_{name}_LINKER"), "rust-lld"))?;
    let program = release.build.join(platform.target).join("dist/toolgate");
    Ok(program)
}

fn compiler(platform: &DistPlatform) -> Result<zig::CompilerVariables, String> {
    let folder = target().join("dist-work/zig").join(platform.target);
    zig::compiler(platform.target, platform.zig, &folder)
}

/// Options that replace the directories of this machine in the messages of panics, remove the symbols, and pack the
/// relocations, which saves 0.5 MB.
fn compiler_options(release: &DistRelease) -> Result<Vec<String>, String> {
    let library = sysroot(&release.source)?.join("lib/rustlib/src/rust");
    let folders = [
        (library, "/rust"),
        (tool_home("CARGO_HOME", ".cargo"), "/cargo"),
        (release.source.clone(), "/toolgate"),
        (release.build.clone(), "/target"),
    ];
    let option =
        |(from, to): (PathBuf, &str)| format!("--remap-path-prefix={}={to}", from.display());
    let mut options: Vec<String> = folders.into_iter().map(option).collect();
    options.push("-Clink-arg=--pack-dyn-relocs=relr".to_owned());
    options.push(pgo::STRIP.to_owned());
    Ok(options)
}
