//! Packages of a stub in place of the program, which takes minutes to build.

use super::*;
use crate::run::which;

/// Packs a stub into a directory, from files with the given time and umask.
fn packed(name: &str, time: &str, mode: &str) -> PathBuf {
    let output = target().join("dist-test").join(name);
    empty(&output).unwrap();
    let release = DistRelease {
        version: "1.2.3".to_owned(),
        epoch: "1700000000".to_owned(),
        source: root(),
        build: PathBuf::new(),
        profile: None,
        output: output.clone(),
    };
    let platform = &PLATFORMS[0];
    let files = output.join(release.name(platform));
    for file in [
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "completions/_toolgate",
        "completions/toolgate.bash",
        "completions/toolgate.fish",
        "man/toolgate.1",
        "systemd/system/toolgate.service",
        "systemd/user/toolgate.service",
        "toolgate",
        "toolgate.schema.json",
    ] {
        write(&files.join(file), &format!("{file}\n")).unwrap();
        must(command("touch").args(["-d", time]).arg(files.join(file))).unwrap();
    }
    must(command("chmod").args(["-R", mode]).arg(&files)).unwrap();
    must(command("chmod").arg("u+x").arg(files.join("toolgate"))).unwrap();
    archive::tar_gz(&release, &files).unwrap();
    wheel::pack(&release, platform, &files).unwrap();
    if which("dpkg-deb").is_some() {
        deb::pack(&release, platform, &files).unwrap();
    }
    if which("npm").is_some() {
        npm::pack_platform(&release, platform, &files).unwrap();
        npm::pack_wrapper(&release, &[platform]).unwrap();
    }
    checksums(&output).unwrap();
    output
}

#[test]
fn packages_of_equal_files_have_equal_bytes() {
    let first = packed("first", "@1750000000", "go=rX");
    let second = packed("second", "@1760000000", "go=");
    let sums = |folder: &Path| read(&folder.join("SHA256SUMS")).unwrap();
    assert_eq!(sums(&first), sums(&second));
    assert!(sums(&first).contains("toolgate-1.2.3-x86_64-unknown-linux-musl.tar.gz"));
}

#[test]
fn the_workspace_version_is_read_from_the_manifest() {
    let manifest = "[workspace]\n\n[workspace.package]\nversion = \"0.4.2\"\n";
    assert_eq!(workspace_version(manifest).as_deref(), Some("0.4.2"));
}

#[test]
fn an_unknown_option_is_an_error() {
    let words = ["--verify".to_owned(), "--fast".to_owned()];
    assert!(DistOptions::read(words.into_iter()).is_err());
}

#[test]
fn the_command_line_may_name_a_profile() {
    let read = |words: &[&str]| DistOptions::read(words.iter().map(|word| (*word).to_owned()));
    let options = read(&["--host-only", "--profile", "Cargo.toml"]).unwrap();
    assert!(options.host_only);
    assert!(options.profile.unwrap().is_absolute());
    for wrong in [&["--profile"][..], &["--profile", "no-such-file"]] {
        assert!(read(wrong).is_err());
    }
}
