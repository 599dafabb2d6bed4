//! The npm packages: one with the program for each platform, and `toolgate`, which starts the one that npm installed.
//!
//! npm installs the optional dependency whose `os` and `cpu` match, so no script runs at installation and nothing is
//! downloaded from elsewhere.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{DistPlatform, DistRelease, README, copy, write};
use crate::run::{command, must};

const SHIM: &str = include_str!("npm/toolgate.js");

/// Packs the package that carries the program of one platform.
pub(super) fn pack_platform(
    release: &DistRelease,
    platform: &DistPlatform,
    files: &Path,
) -> Result<(), String> {
    let folder = release.staging(&format!("npm-linux-{}", platform.npm_cpu))?;
    copy(&files.join("toolgate"), &folder.join("bin/toolgate"))?;
    copy(&files.join("LICENSE"), &folder.join("LICENSE"))?;
    let about = "The program of the package `toolgate` for one platform. Install `toolgate`.\n";
    write(&folder.join("README.md"), about)?;
    let mut manifest = manifest(release, &package_name(platform));
    manifest.extend([
        ("os".to_owned(), json!(["linux"])),
        ("cpu".to_owned(), json!([platform.npm_cpu])),
        ("files".to_owned(), json!(["bin/toolgate"])),
        ("preferUnplugged".to_owned(), json!(true)),
    ]);
    pack(release, &folder, manifest)
}

/// Packs `toolgate`, whose version is also that of the packages of the platforms.
pub(super) fn pack_wrapper(
    release: &DistRelease,
    platforms: &[&DistPlatform],
) -> Result<(), String> {
    let folder = release.staging("npm")?;
    write(&folder.join("bin/toolgate.js"), SHIM)?;
    copy(&release.source.join("LICENSE"), &folder.join("LICENSE"))?;
    copy(&release.source.join(README), &folder.join("README.md"))?;
    let optional: Map<String, Value> = platforms
        .iter()
        .map(|platform| (package_name(platform), json!(release.version)))
        .collect();
    let mut manifest = manifest(release, "toolgate");
    manifest.extend([
        ("bin".to_owned(), json!({ "toolgate": "bin/toolgate.js" })),
        ("files".to_owned(), json!(["bin/toolgate.js"])),
        ("engines".to_owned(), json!({ "node": ">=18" })),
        ("optionalDependencies".to_owned(), optional.into()),
    ]);
    pack(release, &folder, manifest)
}

fn package_name(platform: &DistPlatform) -> String {
    format!("@toolgate/linux-{}", platform.npm_cpu)
}

fn manifest(release: &DistRelease, name: &str) -> Map<String, Value> {
    let fields = [
        ("name", json!(name)),
        ("version", json!(release.version)),
        (
            "description",
            json!("MCP gateway with policy, approvals and an audit log"),
        ),
        ("homepage", json!("https://example.com/toolgate")),
        (
            "repository",
            json!({ "type": "git", "url": "https://example.com/toolgate" }),
        ),
        ("license", json!("Apache-2.0")),
    ];
    fields
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

/// npm sets the time and owner of all entries itself.
fn pack(release: &DistRelease, folder: &Path, manifest: Map<String, Value>) -> Result<(), String> {
    let text = format!("{:#}\n", Value::from(manifest));
    write(&folder.join("package.json"), &text)?;
    must(command("chmod").args(["-R", "u=rwX,go=rX"]).arg(folder))?;
    must(
        command("npm")
            .args(["pack", "--silent", "--ignore-scripts", "--pack-destination"])
            .arg(&release.output)
            .current_dir(folder),
    )
}
