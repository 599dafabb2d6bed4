//! The control socket: how the commands of a terminal reach the running gateways of the same data directory.
//!
//! One socket per gateway, in a directory that only its owner can enter. A request is one line of JSON,
//! `{"do": ACTION, "with": {…}}`; the answer is a line `{"heard": true}` before anything is done, any number of lines
//! `{"note": TEXT}`, and then one line with `ok` or `error`.

mod client;
pub(crate) mod person;
mod server;

pub(crate) use client::{Gateways, Reached};
pub(crate) use server::Control;

/// The longest line either way, in bytes.
const LINE: u64 = 32 * 1024 * 1024;

use std::{
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

/// The longest directory whose sockets still fit into a socket address.
const LONGEST: usize = 80;

/// The directory of the sockets for a data directory, made where it is missing.
///
/// # Errors
/// It cannot be made, or belongs to somebody else.
pub(crate) fn directory(data: &Path) -> io::Result<PathBuf> {
    let own = data.join("run");
    let path = if own.as_os_str().len() <= LONGEST {
        own
    } else {
        elsewhere(data)?
    };
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&path)?;
    let meta = std::fs::symlink_metadata(&path)?;
    let ours = meta.uid() == rustix::process::getuid().as_raw();
    if !meta.is_dir() || !ours || meta.mode() & 0o077 != 0 {
        let text = format!(
            "{} must be a directory that only you can enter (mode 0700)",
            path.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(path)
}

/// Socket addresses are short; a data directory with a long path has its sockets in the temporary directory.
fn elsewhere(data: &Path) -> io::Result<PathBuf> {
    let data = std::path::absolute(data)?;
    let digest = ring::digest::digest(&ring::digest::SHA256, data.as_os_str().as_encoded_bytes());
    let name: String = digest
        .as_ref()
        .iter()
        .take(8)
        .map(|b| format!("{b:02x}"))
        .collect();
    Ok(std::env::temp_dir().join(format!(
        "toolgate-{}-{name}",
        rustix::process::getuid().as_raw()
    )))
}
