//! `cargo xtask dist`: the release artifacts of the program for Linux, built from the commit that is checked out.
//!
//! The artifacts are reproducible: two builds of one commit with the same compilers and the same profile have equal bytes.
//! `--verify` builds a second time in another directory and compares; `--check` installs each artifact and uses it.

mod archive;
mod build;
mod check;
mod contents;
mod deb;
mod npm;
mod reproducible;
mod sbom;
#[cfg(test)]
mod tests;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use crate::pgo;
use crate::report::Report;
use crate::run::{command, must, output, root, target};

/// A target of the compiler, and its names in the package formats.
pub(crate) struct DistPlatform {
    target: &'static str,
    zig: &'static str,
    arch: &'static str,
    deb: &'static str,
    npm_cpu: &'static str,
    wheel: &'static str,
}

/// The targets that can be built on Debian. The binaries are static, so that they run on each distribution.
const PLATFORMS: [DistPlatform; 2] = [
    DistPlatform {
        target: "x86_64-unknown-linux-musl",
        zig: "x86_64-linux-musl",
        arch: "x86_64",
        deb: "amd64",
        npm_cpu: "x64",
        wheel: "py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64",
    },
    DistPlatform {
        target: "aarch64-unknown-linux-musl",
        zig: "aarch64-linux-musl",
        arch: "aarch64",
        deb: "arm64",
        npm_cpu: "arm64",
        wheel: "py3-none-manylinux_2_17_aarch64.musllinux_1_1_aarch64",
    },
];

/// The page of the program in registries, whose links lead to no other file.
const README: &str = "crates/toolgate-cli/README.md";

/// A commit to release, its sources, and the directory of the artifacts.
pub(crate) struct DistRelease {
    version: String,
    /// Time of the commit, in seconds since 1970: the time of all files in the artifacts.
    epoch: String,
    /// A clone of the commit, so that uncommitted changes stay out.
    source: PathBuf,
    /// Directory that cargo builds into.
    build: PathBuf,
    /// Profile of the program for this machine, for profile-guided optimization.
    profile: Option<PathBuf>,
    output: PathBuf,
}

/// Options of the command line.
#[derive(Debug, Default)]
pub(crate) struct DistOptions {
    verify: bool,
    check: bool,
    host_only: bool,
    /// Profile of another build, instead of one that is recorded.
    profile: Option<PathBuf>,
}

impl DistOptions {
    /// Reads the options behind `dist`.
    pub(crate) fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--verify" => options.verify = true,
                "--check" => options.check = true,
                "--host-only" => options.host_only = true,
                "--profile" => {
                    let file = words.next().ok_or("--profile needs the path of a file")?;
                    let file =
                        fs::canonicalize(&file).map_err(|error| format!("{file}: {error}"))?;
                    options.profile = Some(file);
                }
                _ => return Err(format!("unknown option: {word}")),
            }
        }
        Ok(options)
    }
}

/// Builds the artifacts, then verifies and checks them if the options say so.
pub(crate) fn all(report: &mut Report, options: DistOptions) {
    let work = target().join("dist-work");
    let mut release = match DistRelease::clone_head(&root(), &work, &target().join("dist")) {
        Ok(release) => release,
        Err(why) => return report.step("sources", || Err(why)),
    };
    let platforms = available(report, &options);
    release.profile = profile(report, &release, &platforms, &options);
    let mut made = false;
    report.step("artifacts", || {
        make(&release, &platforms)?;
        made = true;
        Ok(())
    });
    if !made {
        return;
    }
    if options.verify {
        report.step("second build", || {
            reproducible::verify(&release, &platforms)
        });
    }
    if options.check {
        check::all(report, &release);
    }
}

/// Platforms whose tools can be had; the one of this machine comes first, because its program writes the man pages.
fn available(report: &mut Report, options: &DistOptions) -> Vec<&'static DistPlatform> {
    let mut platforms: Vec<&DistPlatform> = PLATFORMS.iter().collect();
    platforms.sort_by_key(|platform| !platform.is_host());
    platforms.retain(|platform| {
        if options.host_only && !platform.is_host() {
            return false;
        }
        match build::add_tools(platform) {
            Ok(()) => true,
            Err(why) => {
                report.skip(&format!("artifacts for {}: {why}", platform.target));
                false
            }
        }
    });
    platforms
}

/// Returns the profile of the program for this machine: a given one, or a new one. Programs for other architectures
/// cannot run here, so they have none.
fn profile(
    report: &mut Report,
    release: &DistRelease,
    platforms: &[&DistPlatform],
    options: &DistOptions,
) -> Option<PathBuf> {
    let host = platforms.iter().find(|platform| platform.is_host())?;
    let folder = target().join("dist-work/profile");
    let found = match &options.profile {
        Some(given) => {
            let file = folder.join("given.profdata");
            copy(given, &file).and_then(|()| pgo::named_by_content(&file))
        }
        None => pgo::record(&folder, |flags| build::build(release, host, flags)),
    };
    found
        .inspect_err(|why| {
            report.skip(&format!(
                "profile-guided optimization for {}: {why}",
                host.target
            ))
        })
        .ok()
}

/// Writes all artifacts of the platforms, and their checksums.
fn make(release: &DistRelease, platforms: &[&DistPlatform]) -> Result<(), String> {
    empty(&release.output)?;
    let programs = platforms
        .iter()
        .map(|platform| {
            let profile = release.profile.as_deref().filter(|_| platform.is_host());
            let flags: Vec<String> = profile.map(pgo::use_option).into_iter().collect();
            Ok((*platform, build::build(release, platform, &flags)?))
        })
        .collect::<Result<Vec<_>, String>>()?;
    let Some((host, program)) = programs.iter().find(|(platform, _)| platform.is_host()) else {
        return Err(
            "no platform is that of this machine, so no program can write the man pages".to_owned(),
        );
    };
    let extras = contents::Extras::write(release, program)?;
    for (platform, program) in &programs {
        let files = contents::stage(release, platform, program, &extras)?;
        archive::tar_gz(release, &files)?;
        deb::pack(release, platform, &files)?;
        npm::pack_platform(release, platform, &files)?;
        wheel::pack(release, platform, &files)?;
        sbom::write_bom(release, platform)?;
    }
    if let Some(profile) = &release.profile {
        let name = format!("{}.profdata", release.name(host));
        copy(profile, &release.output.join(name))?;
    }
    npm::pack_wrapper(release, platforms)?;
    let _ = fs::remove_dir_all(release.output.join("staging"));
    checksums(&release.output)?;
    list(&release.output)
}

impl DistPlatform {
    fn is_host(&self) -> bool {
        self.arch == std::env::consts::ARCH
    }
}

impl DistRelease {
    /// Clones the commit that is checked out in `repository` into `work`, unless that was done before.
    fn clone_head(repository: &Path, work: &Path, artifacts: &Path) -> Result<Self, String> {
        let source = work.join("source");
        let git = |folder: &Path, words: &[&str]| {
            let text = output(command("git").arg("-C").arg(folder).args(words))?;
            Ok::<_, String>(text.trim().to_owned())
        };
        let head = git(repository, &["rev-parse", "HEAD"])?;
        if !git(repository, &["status", "--porcelain"])?.is_empty() {
            println!("the artifacts are built from commit {head}, without the uncommitted changes");
        }
        if !source.exists() || git(&source, &["rev-parse", "HEAD"])? != head {
            empty(&source)?;
            let from = format!("file://{}", repository.display());
            must(
                command("git")
                    .args(["clone", "--quiet", "--depth", "1", &from])
                    .arg(&source),
            )?;
        }
        let manifest = read(&source.join("Cargo.toml"))?;
        Ok(Self {
            version: workspace_version(&manifest)
                .ok_or("Cargo.toml: the workspace has no version")?,
            epoch: git(&source, &["log", "-1", "--format=%ct"])?,
            source,
            build: work.join("build"),
            profile: None,
            output: artifacts.to_path_buf(),
        })
    }

    /// Name of the directory in an archive, and the beginning of the names of files.
    fn name(&self, platform: &DistPlatform) -> String {
        format!("toolgate-{}-{}", self.version, platform.target)
    }

    /// Empty directory in which one package is put together.
    fn staging(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.output.join("staging").join(name);
        empty(&folder)?;
        Ok(folder)
    }
}

fn workspace_version(manifest: &str) -> Option<String> {
    let line = manifest
        .lines()
        .find(|line| line.starts_with("version = "))?;
    line.split('"').nth(1).map(str::to_owned)
}

/// Writes `SHA256SUMS` for the files in a directory.
fn checksums(folder: &Path) -> Result<(), String> {
    let sums = output(
        command("sha256sum")
            .args(artifacts(folder)?)
            .current_dir(folder),
    )?;
    write(&folder.join("SHA256SUMS"), &sums)
}

fn list(folder: &Path) -> Result<(), String> {
    for name in artifacts(folder)? {
        let bytes = fs::metadata(folder.join(&name))
            .map_err(|error| format!("{name}: {error}"))?
            .len();
        println!("{bytes:>10}  {name}");
    }
    Ok(())
}

/// Names of the files in the directory of artifacts, sorted.
fn artifacts(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

fn empty(folder: &Path) -> Result<(), String> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))
}

/// Writes a file, and makes its directory.
fn write(file: &Path, text: &str) -> Result<(), String> {
    let folder = file.parent().unwrap_or(file);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(file, text))
        .map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// Copies a file or a directory, and makes the directory above.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    must(command("cp").arg("-R").arg(from).arg(to))
}
