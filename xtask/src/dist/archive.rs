//! The `.tar.gz` of a platform.

use std::path::Path;

use super::DistRelease;
use crate::run::{command, must};

/// Packs a directory into an archive beside it.
pub(super) fn tar_gz(release: &DistRelease, folder: &Path) -> Result<(), String> {
    let name = folder.file_name().unwrap_or_default();
    let archive = folder.with_file_name(format!("{}.tar", name.to_string_lossy()));
    let mtime = format!("--mtime=@{}", release.epoch);
    must(
        command("tar")
            .args(["--create", "--format=ustar", "--sort=name", &mtime])
            .args([
                "--owner=0",
                "--group=0",
                "--numeric-owner",
                "--mode=u=rwX,go=rX",
            ])
            .arg("--file")
            .arg(&archive)
            .arg("--directory")
            .arg(folder.parent().unwrap_or(folder))
            .arg(name),
    )?;
    must(
        command("gzip")
            .args(["-9", "--no-name", "--force"])
            .arg(&archive),
    )
}
