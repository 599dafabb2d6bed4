//! Installs each artifact into an empty directory and uses it: version, demo server, and a call that needs approval.

mod gateway;

use std::path::{Path, PathBuf};

use super::{DistRelease, PLATFORMS, empty};
use crate::report::Report;
use crate::run::{command, must, output, which};

/// Installs an artifact into a directory, and returns the path of the program.
type Installer = fn(&DistRelease, &Path) -> Result<PathBuf, String>;

/// Checks the artifacts for this machine.
pub(super) fn all(report: &mut Report, release: &DistRelease) {
    // A short path: the addresses of Unix sockets below it have at most 108 bytes.
    let base = std::env::temp_dir().join(format!("toolgate-dist-{}", std::process::id()));
    let forms: [(&str, Installer); 4] = [
        ("archive", from_archive),
        ("deb", from_deb),
        ("wheel", from_wheel),
        ("npm", from_npm),
    ];
    for (name, install) in forms {
        report.step(&format!("{name}, installed and used"), || {
            let place = base.join(name);
            empty(&place)?;
            let program = install(release, &place)?;
            gateway::use_program(&program, &place.join("home"), &release.version)
        });
    }
    report.step("program is static", || is_static(&base.join("archive")));
    report.step("units", || check_units(&base.join("deb")));
    if let Err(error) = std::fs::remove_dir_all(&base) {
        println!("{} is left: {error}", base.display());
    }
}

/// Path of an artifact for this machine, whose name ends like this.
fn artifact(release: &DistRelease, is_it: impl Fn(&str) -> bool) -> Result<PathBuf, String> {
    let names = super::artifacts(&release.output)?;
    let name = names
        .into_iter()
        .find(|name| is_it(name))
        .ok_or("the artifact is missing")?;
    Ok(release.output.join(name))
}

fn host() -> Result<&'static super::DistPlatform, String> {
    let host = PLATFORMS.iter().find(|platform| platform.is_host());
    host.ok_or("no artifact is for this machine".to_owned())
}

fn from_archive(release: &DistRelease, place: &Path) -> Result<PathBuf, String> {
    let name = release.name(host()?);
    let archive = artifact(release, |file| file == format!("{name}.tar.gz"))?;
    must(command("tar").arg("-xzf").arg(archive).arg("-C").arg(place))?;
    Ok(place.join(name).join("toolgate"))
}

fn from_deb(release: &DistRelease, place: &Path) -> Result<PathBuf, String> {
    let end = format!("_{}.deb", host()?.deb);
    let package = artifact(release, |file| file.ends_with(&end))?;
    must(command("dpkg-deb").arg("--extract").arg(package).arg(place))?;
    Ok(place.join("usr/bin/toolgate"))
}

fn from_wheel(release: &DistRelease, place: &Path) -> Result<PathBuf, String> {
    let end = format!("-{}.whl", host()?.wheel);
    let wheel = artifact(release, |file| file.ends_with(&end))?;
    must(command("python3").args(["-m", "venv"]).arg(place))?;
    let quiet = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
    ];
    must(command(place.join("bin/python")).args(quiet).arg(wheel))?;
    Ok(place.join("bin/toolgate"))
}

fn from_npm(release: &DistRelease, place: &Path) -> Result<PathBuf, String> {
    let end = format!("toolgate-linux-{}-{}.tgz", host()?.npm_cpu, release.version);
    let platform = artifact(release, |file| file == end)?;
    let wrapper = artifact(release, |file| {
        file == format!("toolgate-{}.tgz", release.version)
    })?;
    let quiet = [
        "install",
        "--offline",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ];
    must(
        command("npm")
            .args(quiet)
            .args([platform, wrapper])
            .current_dir(place)
            .env("npm_config_cache", place.join("cache")),
    )?;
    Ok(place.join("node_modules/.bin/toolgate"))
}

/// A static program needs no interpreter and no shared library.
fn is_static(place: &Path) -> Result<(), String> {
    let readelf = which("readelf").ok_or("readelf is missing (Debian: binutils)")?;
    let found = output(
        command("find")
            .arg(place)
            .args(["-name", "toolgate", "-type", "f", "-perm", "-u=x"]),
    )?;
    let program = found.lines().next().ok_or("the archive was not unpacked")?;
    let headers =
        output(command(readelf).args(["--wide", "--program-headers", "--dynamic", program]))?;
    match headers
        .lines()
        .find(|line| line.contains("INTERP") || line.contains("(NEEDED)"))
    {
        Some(line) => Err(format!("the program is not static: {}", line.trim())),
        None => Ok(()),
    }
}

/// The units name `/usr/bin/toolgate`, which this machine need not have, so copies name the extracted program.
fn check_units(place: &Path) -> Result<(), String> {
    const UNITS: [(&str, &str); 2] = [
        ("--user", "usr/lib/systemd/user/toolgate.service"),
        (
            "--system",
            "usr/share/doc/toolgate/examples/toolgate.service",
        ),
    ];
    let analyze = which("systemd-analyze").ok_or("systemd-analyze is missing (Debian: systemd)")?;
    let program = place.join("usr/bin/toolgate").display().to_string();
    for (scope, unit) in UNITS {
        let text = super::read(&place.join(unit))?.replace("/usr/bin/toolgate", &program);
        let file = place.join(format!("units{scope}/toolgate.service"));
        super::write(&file, &text)?;
        must(
            command(&analyze)
                .args(["verify", scope, "--man=no", "--recursive-errors=no"])
                .arg(file)
                .env("XDG_RUNTIME_DIR", place),
        )?;
    }
    Ok(())
}
