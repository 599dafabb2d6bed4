//! The package for Debian and Ubuntu.

use std::fs;
use std::path::Path;

use super::{DistPlatform, DistRelease, copy, write};
use crate::run::{command, must};

/// Files of the archive, and where the package installs them.
const FILES: [(&str, &str); 9] = [
    ("toolgate", "usr/bin/toolgate"),
    (
        "completions/toolgate.bash",
        "usr/share/bash-completion/completions/toolgate",
    ),
    (
        "completions/_toolgate",
        "usr/share/zsh/vendor-completions/_toolgate",
    ),
    (
        "completions/toolgate.fish",
        "usr/share/fish/vendor_completions.d/toolgate.fish",
    ),
    (
        "systemd/user/toolgate.service",
        "usr/lib/systemd/user/toolgate.service",
    ),
    (
        "systemd/system/toolgate.service",
        "usr/share/doc/toolgate/examples/toolgate.service",
    ),
    (
        "toolgate.schema.json",
        "usr/share/toolgate/toolgate.schema.json",
    ),
    ("README.md", "usr/share/doc/toolgate/README.md"),
    ("CHANGELOG.md", "usr/share/doc/toolgate/CHANGELOG.md"),
];

/// Packs the files of a platform. The program is static, so the package depends on nothing.
pub(super) fn pack(
    release: &DistRelease,
    platform: &DistPlatform,
    files: &Path,
) -> Result<(), String> {
    let folder = release.staging(&format!("deb-{}", platform.deb))?;
    for (from, to) in FILES {
        copy(&files.join(from), &folder.join(to))?;
    }
    copy(&files.join("man"), &folder.join("usr/share/man/man1"))?;
    for page in fs::read_dir(folder.join("usr/share/man/man1"))
        .into_iter()
        .flatten()
        .flatten()
    {
        must(command("gzip").args(["-9", "--no-name"]).arg(page.path()))?;
    }
    write(&folder.join("usr/share/doc/toolgate/copyright"), COPYRIGHT)?;
    let control = format!(
        "Package: toolgate\nVersion: {}\nArchitecture: {}\nMaintainer: The Toolgate authors <toolgate@example.com>\n\
         Section: net\nPriority: optional\nHomepage: https://example.com/toolgate\n\
         Description: MCP gateway with policy, approvals and an audit log\n \
         Toolgate sits between a language model and the Model Context Protocol (MCP)\n \
         servers whose tools the model calls. It validates the arguments of every\n \
         call, asks a person before a risky one, and writes a tamper-evident audit\n \
         log.\n",
        release.version, platform.deb,
    );
    write(&folder.join("DEBIAN/control"), &control)?;
    must(command("chmod").args(["-R", "u=rwX,go=rX"]).arg(&folder))?;
    let package = format!("toolgate_{}_{}.deb", release.version, platform.deb);
    must(
        command("dpkg-deb")
            .args(["--root-owner-group", "-Zxz", "--threads-max=1", "--build"])
            .arg(&folder)
            .arg(release.output.join(package))
            .env("SOURCE_DATE_EPOCH", &release.epoch),
    )
}

const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: toolgate
Source: https://example.com/toolgate

Files: *
Copyright: The Toolgate authors
License: Apache-2.0
 On Debian systems, the full text of the Apache License, Version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
";
