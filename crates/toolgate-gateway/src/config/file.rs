//! Reads files that decide which programs are started, and refuses those that others can change.

use super::{error::ConfigError, section::Field};
use std::{
    fs::{File, Metadata},
    io::Read,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The longest config, in bytes.
pub(super) const LONGEST: u64 = 1024 * 1024;

/// Said of a path that only a shell would understand.
pub(super) const TILDE: &str =
    "begins with ~, which only a shell understands; write the whole path";

/// How many symbolic links in a row are followed.
const LINKS: usize = 16;

/// Write by the group or by everybody.
const WRITE: u32 = 0o022;
/// Anything by the group or by everybody.
const ANY: u32 = 0o077;
/// In such a directory one removes and renames only what is one's own.
const STICKY: u32 = 0o1000;

/// Who besides its owner may do what with a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Privacy {
    /// Others may read it.
    Config,
    /// Nobody else may read it.
    Secret,
}

/// Reads a text file of at most `longest` bytes that nobody but us and root could have written.
///
/// # Errors
/// In words: it cannot be read, is too long, is no text, or others can change it.
pub(super) fn read(path: &Path, longest: u64, privacy: Privacy) -> Result<String, String> {
    check_links(path)?;
    let seen = path
        .metadata()
        .map_err(|error| format!("cannot be read: {error}"))?;
    if !seen.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let file = File::open(path).map_err(|error| format!("cannot be read: {error}"))?;
    // The open file itself is judged, whatever its path leads to by now.
    let meta = file
        .metadata()
        .map_err(|error| format!("cannot be read: {error}"))?;
    judge(meta.uid(), meta.mode(), us(), privacy)?;
    contents(file, longest)
}

fn contents(file: File, longest: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    file.take(longest + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > longest {
        return Err(format!("is longer than {longest} bytes"));
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

fn us() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Says why a file of that owner and mode is refused.
fn judge(owner: u32, mode: u32, us: u32, privacy: Privacy) -> Result<(), String> {
    if owner != us && owner != 0 {
        return Err(format!(
            "is refused: it belongs to user {owner}, not to you (user {us}) or root, and could be changed by them; chown it"
        ));
    }
    let shown = mode & 0o777;
    match privacy {
        Privacy::Config if mode & WRITE != 0 => Err(format!(
            "is refused: its mode {shown:04o} lets others write to it, and it decides which programs are started; chmod go-w it"
        )),
        Privacy::Secret if mode & ANY != 0 => Err(format!(
            "is refused: its mode {shown:04o} lets others read or write the secret in it; chmod 600 it"
        )),
        _ => Ok(()),
    }
}

/// Follows symbolic links, each of which has to stand where only we and root could have put it.
fn check_links(path: &Path) -> Result<(), String> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Ok(meta) = path.symlink_metadata() else {
            return Ok(());
        };
        if !meta.is_symlink() {
            return Ok(());
        }
        let directory = parent(&path);
        let around = directory
            .metadata()
            .map_err(|error| format!("cannot be read: {}: {error}", directory.display()))?;
        judge_link(&path, &meta, &around, us())?;
        let target = path
            .read_link()
            .map_err(|error| format!("cannot be read: {error}"))?;
        path = directory.join(target);
    }
    Err(format!(
        "is refused: it leads through more than {LINKS} symbolic links"
    ))
}

fn judge_link(path: &Path, link: &Metadata, directory: &Metadata, us: u32) -> Result<(), String> {
    let strange = |owner: u32| owner != us && owner != 0;
    let open = directory.mode() & WRITE != 0 && directory.mode() & STICKY == 0;
    if !strange(link.uid()) && !strange(directory.uid()) && !open {
        return Ok(());
    }
    let link = path.display();
    Err(format!(
        "is refused: {link} is a symbolic link where others could put one; name the file itself"
    ))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The directory of a config, whole; paths in the config start there.
pub(super) fn base(path: &Path) -> PathBuf {
    std::path::absolute(path)
        .ok()
        .and_then(|path| path.parent().map(Path::to_owned))
        .unwrap_or_default()
}

/// A path of the config, which starts at `base` where it is relative.
pub(super) fn resolve(field: &Field<'_>, base: &Path) -> Result<PathBuf, ConfigError> {
    match field.text()? {
        "" => Err(field.is("is empty; write a path or leave it out")),
        path if path == "~" || path.starts_with("~/") => Err(field.is(TILDE)),
        path => Ok(base.join(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_and_modes() {
        use Privacy::{Config, Secret};
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
        ] {
            assert_eq!(
                judge(owner, mode, 1000, privacy).is_ok(),
                fine,
                "{owner} {mode:o} {privacy:?}"
            );
        }
    }
}
