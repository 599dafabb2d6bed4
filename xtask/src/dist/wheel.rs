//! The wheel for PyPI: the program as a script, so that `pip` and `uv` put it on the `PATH`.

use std::path::Path;

use super::{DistPlatform, DistRelease, README};
use crate::run::{command, must};

/// Python writes the zip file: it is at hand wherever wheels are, and a crate would only serve this.
const PACKER: &str = include_str!("wheel.py");

/// Packs the program of a platform.
pub(super) fn pack(
    release: &DistRelease,
    platform: &DistPlatform,
    files: &Path,
) -> Result<(), String> {
    must(
        command("python3")
            .args(["-I", "-c", PACKER, &release.version, platform.wheel])
            .arg(files)
            .arg(release.source.join(README))
            .arg(&release.output)
            .env("SOURCE_DATE_EPOCH", &release.epoch),
    )
}
