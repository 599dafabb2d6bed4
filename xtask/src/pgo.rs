//! `cargo xtask pgo`: the program with profile-guided optimization (PGO), for this machine.
//!
//! `bench/` makes calls through an instrumented program, which counts what it executes. The compiler then optimizes the
//! code that ran often, and places it apart from the rest.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::run::{cargo, command, must, output, root, sysroot, target, which};

/// Compiler option that removes all symbols. Cargo does not pass the `strip` of a profile on to a package that has a
/// setting of its own in this profile, and `toolgate-cli` has one.
pub(crate) const STRIP: &str = "-Cstrip=symbols";

/// Builds the program with the profile `dist` and profile-guided optimization, and returns its path.
pub(crate) fn build_for_host() -> Result<PathBuf, String> {
    let folder = target().join("pgo");
    let host = compiler_field("host: ")?;
    // With a target, cargo does not instrument build scripts and macros.
    let build = |options: &[String]| {
        let options = [&[STRIP.to_owned()], options].concat();
        let mut build = cargo();
        build.args(["build", "--locked", "--profile", "dist"]);
        build.args(["-p", "toolgate-cli", "--target", &host, "--target-dir"]);
        build.arg(folder.join("build"));
        must(build.env("CARGO_ENCODED_RUSTFLAGS", options.join("\x1f")))?;
        Ok(folder.join("build").join(&host).join("dist/toolgate"))
    };
    let profile = record(&folder, build)?;
    let program = folder.join("toolgate");
    let built = build(&[use_option(&profile)])?;
    fs::copy(&built, &program).map_err(|error| format!("{}: {error}", program.display()))?;
    println!("{}", program.display());
    Ok(program)
}

/// Records a profile in the folder and returns its path. `build` builds the program with compiler options.
///
/// Names of functions depend on the target and on the Cargo profile, so both must be those of the final build.
pub(crate) fn record(
    folder: &Path,
    build: impl Fn(&[String]) -> Result<PathBuf, String>,
) -> Result<PathBuf, String> {
    let merge = merge_tool()?;
    let counts = folder.join("counts");
    let _ = fs::remove_dir_all(&counts);
    let instrumented = build(&[
        format!("-Cprofile-generate={}", counts.display()),
        // With the default of 1, the counters for the targets of indirect calls run out.
        "-Cllvm-args=-vp-counters-per-site=4".to_owned(),
    ])?;
    build_bench()?;
    let mut train = command(root().join("bench/target/release/measure"));
    train.arg("gateway-train");
    train.env("TOOLGATE_PROGRAM", &instrumented);
    must(train.env("LLVM_PROFILE_FILE", counts.join("%m.profraw")))?;
    let merged = folder.join("toolgate.profdata");
    let mut merging = command(merge);
    merging.args(["merge", "--sparse", "-o"]).arg(&merged);
    must(merging.arg(&counts))?;
    named_by_content(&merged)
}

/// Builds the programs of `bench/`, which are a workspace of their own, into its target directory, whatever
/// `CARGO_TARGET_DIR` says.
pub(crate) fn build_bench() -> Result<(), String> {
    let mut build = cargo();
    build.args(["build", "--release", "--locked", "--target-dir", "target"]);
    must(build.current_dir(root().join("bench")))
}

/// Returns the compiler option of a build with a profile.
pub(crate) fn use_option(profile: &Path) -> String {
    format!("-Cprofile-use={}", profile.display())
}

/// Moves a profile to a name that depends on its content. Cargo does not rebuild when the content of a file
/// changes that a compiler option names.
pub(crate) fn named_by_content(profile: &Path) -> Result<PathBuf, String> {
    let failed = |error| format!("{}: {error}", profile.display());
    let mut hasher = DefaultHasher::new();
    fs::read(profile).map_err(failed)?.hash(&mut hasher);
    let named = profile.with_file_name(format!("{:016x}.profdata", hasher.finish()));
    fs::rename(profile, &named).map_err(failed)?;
    Ok(named)
}

/// Returns the program that merges counts. Its LLVM version must match that of the compiler.
fn merge_tool() -> Result<PathBuf, String> {
    let own = sysroot(&root())?
        .join("lib/rustlib")
        .join(compiler_field("host: ")?)
        .join("bin/llvm-profdata");
    if own.is_file() {
        return Ok(own);
    }
    let version = compiler_field("LLVM version: ")?;
    let major = version.split('.').next().unwrap_or(&version);
    which(&format!("llvm-profdata-{major}")).ok_or_else(|| {
        format!(
            "llvm-profdata of LLVM {major} is missing; install it with `rustup component add llvm-tools`, \
             or as the package llvm-{major} of a Linux distribution"
        )
    })
}

/// Returns a field of `rustc -vV`.
fn compiler_field(name: &str) -> Result<String, String> {
    let about = output(command("rustc").arg("-vV"))?;
    let value = about.lines().find_map(|line| line.strip_prefix(name));
    value
        .map(str::to_owned)
        .ok_or_else(|| format!("`rustc -vV` has no line {name:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_profile_depends_on_its_content() {
        let folder = target().join("pgo-test");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let named = |content: &str| {
            let file = folder.join("toolgate.profdata");
            fs::write(&file, content).unwrap();
            named_by_content(&file).unwrap()
        };
        let first = named("1");
        assert_eq!(fs::read_to_string(&first).unwrap(), "1");
        assert_ne!(named("2"), first);
        assert_eq!(named("1"), first);
    }

    #[test]
    fn the_compiler_names_its_target_and_its_llvm() {
        let host = compiler_field("host: ").unwrap();
        assert!(host.starts_with(std::env::consts::ARCH), "{host}");
        let llvm = compiler_field("LLVM version: ").unwrap();
        assert!(llvm.starts_with(|first: char| first.is_ascii_digit()));
        compiler_field("no such field: ").unwrap_err();
    }
}
