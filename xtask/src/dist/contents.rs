//! The files of a release beside the program: texts, completions, man pages and units.

use std::path::{Path, PathBuf};

use super::{DistPlatform, DistRelease, copy, write};
use crate::run::{command, must, output};

/// Shells, and the names under which each looks for completions.
const SHELLS: [(&str, &str); 4] = [
    ("bash", "toolgate.bash"),
    ("fish", "toolgate.fish"),
    ("powershell", "toolgate.ps1"),
    ("zsh", "_toolgate"),
];

/// Where a package installs the program; the units start it there.
const INSTALLED_PROGRAM: &str = "/usr/bin/toolgate";
const SYSTEM_CONFIG: &str = "/etc/toolgate/toolgate.toml";

/// Files that the program itself writes. They are the same for all platforms.
pub(super) struct Extras(PathBuf);

impl Extras {
    /// Runs the program, which has to be one for this machine.
    pub(super) fn write(release: &DistRelease, program: &Path) -> Result<Self, String> {
        let folder = release.staging("extras")?;
        let run = |words: &[&str]| output(bare(program, &folder).args(words));
        for (shell, file) in SHELLS {
            write(
                &folder.join("completions").join(file),
                &run(&["completions", shell])?,
            )?;
        }
        must(
            bare(program, &folder)
                .args(["man", "--dir"])
                .arg(folder.join("man")),
        )?;

        let config = folder.join("service.toml");
        // `service install` reads the config, and accepts none without a server.
        write(&config, "[server.demo]\ncommand = [\"true\"]\n")?;
        let config = config.display().to_string();
        let unit = |words: &[&str]| {
            let text = run(words)?;
            // The first line names the file that `service install` would write.
            let (_, text) = text.split_once('\n').unwrap_or_default();
            let text = text.replace(&program.display().to_string(), INSTALLED_PROGRAM);
            let text = text.replace(&config, SYSTEM_CONFIG);
            match text.contains(&format!("ExecStart={INSTALLED_PROGRAM} serve")) {
                true => Ok(text),
                false => Err(format!(
                    "the unit does not start {INSTALLED_PROGRAM}:\n{text}"
                )),
            }
        };
        let user = unit(&["service", "install", "--dry-run"])?;
        write(&folder.join("systemd/user/toolgate.service"), &user)?;
        let words = [
            "service",
            "install",
            "--system",
            "--dry-run",
            "--config",
            &config,
        ];
        write(
            &folder.join("systemd/system/toolgate.service"),
            &unit(&words)?,
        )?;
        Ok(Self(folder))
    }
}

/// The program with an environment that says nothing of this machine.
fn bare(program: &Path, home: &Path) -> std::process::Command {
    let mut bare = command(program);
    bare.env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin");
    bare
}

/// Puts all files of a platform into one directory, which is also the content of its archive.
pub(super) fn stage(
    release: &DistRelease,
    platform: &DistPlatform,
    program: &Path,
    extras: &Extras,
) -> Result<PathBuf, String> {
    let folder = release.output.join(release.name(platform));
    copy(program, &folder.join("toolgate"))?;
    for file in ["LICENSE", "README.md", "CHANGELOG.md"] {
        copy(&release.source.join(file), &folder.join(file))?;
    }
    let schema = "toolgate.schema.json";
    copy(
        &release.source.join("docs/reference").join(schema),
        &folder.join(schema),
    )?;
    for part in ["completions", "man", "systemd"] {
        copy(&extras.0.join(part), &folder.join(part))?;
    }
    Ok(folder)
}
