//! Config files and their permission checks: files that other users can change are rejected.

use std::{
    fs::{File, Metadata},
    io::Read,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Maximum size of a config file in bytes.
pub(super) const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// Maximum number of consecutive symbolic links.
const MAX_SYMLINKS: usize = 16;

/// Mode bits: writable by group or others.
const OTHERS_WRITE_BITS: u32 = 0o022;
/// Mode bits: any access by group or others.
const OTHERS_ACCESS_BITS: u32 = 0o077;
/// Mode bits: any access by others, or more than reading by the group.
const OTHERS_KEY_BITS: u32 = 0o037;
/// Sticky bit: only owners can remove or rename entries of the directory.
const STICKY_BIT: u32 = 0o1000;

/// Permissions that other users may have on a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FilePrivacy {
    /// Others may read the file but not write it.
    Config,
    /// Others may read the file but not write it.
    Certificate,
    /// Only the owner and the group may read the file, and only the owner may write it.
    PrivateKey,
    /// Only the owner may read or write the file.
    Secret,
}

/// Reads a UTF-8 file of at most `longest` bytes that only this user or root can have written.
///
/// # Errors
/// The message says that the file is unreadable, too long, not UTF-8, or writable by others.
pub(super) fn read(path: &Path, longest: u64, privacy: FilePrivacy) -> Result<String, String> {
    check_links(path)?;
    let seen = path.metadata().map_err(unreadable)?;
    if !seen.is_file() {
        return Err("is not a regular file; give the path of a regular file".to_owned());
    }
    let file = File::open(path).map_err(unreadable)?;
    // Check the open file descriptor: the path may lead to another file by now.
    let meta = file.metadata().map_err(unreadable)?;
    check_permissions(meta.uid(), meta.mode(), current_user(), privacy)?;
    contents(file, longest)
}

fn unreadable(error: std::io::Error) -> String {
    format!("cannot be read: {error}; check the path and its permissions")
}

fn contents(file: File, longest: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    file.take(longest + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > longest {
        return Err(format!(
            "is longer than {longest} bytes, which is the limit; shorten it"
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
            + 1;
        format!("is not UTF-8 text (line {line}); save it as UTF-8")
    })
}

fn current_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Checks the owner and mode of a file.
fn check_permissions(owner: u32, mode: u32, us: u32, privacy: FilePrivacy) -> Result<(), String> {
    if owner != us && owner != 0 {
        return Err(format!(
            "is refused: it belongs to user {owner}, who could change it; chown it to your user {us} or to root"
        ));
    }
    let shown = mode & 0o777;
    match privacy {
        FilePrivacy::Config if mode & OTHERS_WRITE_BITS != 0 => Err(format!(
            "is refused: its mode {shown:04o} lets others write to this file, which decides which programs are started; run chmod go-w on it"
        )),
        FilePrivacy::Certificate if mode & OTHERS_WRITE_BITS != 0 => Err(format!(
            "is refused: its mode {shown:04o} lets others write to this file, which decides whom clients trust; run chmod go-w on it"
        )),
        FilePrivacy::PrivateKey if mode & OTHERS_KEY_BITS != 0 => Err(format!(
            "is refused: its mode {shown:04o} lets others use the private key in it; run chmod 600 on it, or chmod 640 for a group that may read it"
        )),
        FilePrivacy::Secret if mode & OTHERS_ACCESS_BITS != 0 => Err(format!(
            "is refused: its mode {shown:04o} lets others read or write the secret in it; run chmod 600 on it"
        )),
        _ => Ok(()),
    }
}

/// Follows symbolic links and rejects a link that another user could have placed.
fn check_links(path: &Path) -> Result<(), String> {
    let mut path = path.to_owned();
    for _ in 0..MAX_SYMLINKS {
        let Ok(meta) = path.symlink_metadata() else {
            return Ok(());
        };
        if !meta.is_symlink() {
            return Ok(());
        }
        let directory = parent(&path);
        let around = directory
            .metadata()
            .map_err(|error| format!("cannot be read, because its directory {} is unreadable: {error}; check the path and its permissions", directory.display()))?;
        check_link(&path, &meta, &around, current_user())?;
        let target = path.read_link().map_err(unreadable)?;
        path = directory.join(target);
    }
    Err(format!(
        "is refused: it leads through more than {MAX_SYMLINKS} symbolic links; name the file itself"
    ))
}

fn check_link(path: &Path, link: &Metadata, directory: &Metadata, us: u32) -> Result<(), String> {
    let strange = |owner: u32| owner != us && owner != 0;
    let open = directory.mode() & OTHERS_WRITE_BITS != 0 && directory.mode() & STICKY_BIT == 0;
    if !strange(link.uid()) && !strange(directory.uid()) && !open {
        return Ok(());
    }
    let link = path.display();
    Err(format!(
        "is refused: {link} is a symbolic link in a directory where others could place one; name the file itself"
    ))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Returns the absolute directory of a config; relative paths in the config start there.
pub(super) fn config_directory(path: &Path) -> PathBuf {
    std::path::absolute(path)
        .ok()
        .and_then(|path| path.parent().map(Path::to_owned))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_and_modes() {
        use FilePrivacy::{Certificate, Config, PrivateKey, Secret};
        for (owner, mode, privacy, fine) in [
            (1000, 0o100644, Config, true),
            (0, 0o100644, Config, true),
            (1000, 0o100600, Config, true),
            (1001, 0o100644, Config, false),
            (1000, 0o100664, Config, false),
            (1000, 0o100646, Config, false),
            (1000, 0o100600, Secret, true),
            (1000, 0o100400, Secret, true),
            (1000, 0o100640, Secret, false),
            (1000, 0o100604, Secret, false),
            (1001, 0o100600, Secret, false),
            (1000, 0o100644, Certificate, true),
            (1000, 0o100664, Certificate, false),
            (0, 0o100640, PrivateKey, true),
            (1000, 0o100400, PrivateKey, true),
            (1000, 0o100660, PrivateKey, false),
            (1000, 0o100644, PrivateKey, false),
            (1001, 0o100600, PrivateKey, false),
        ] {
            assert_eq!(
                check_permissions(owner, mode, 1000, privacy).is_ok(),
                fine,
                "{owner} {mode:o} {privacy:?}"
            );
        }
    }
}
