//! Control socket: connects the commands in a terminal to the running gateways of the same data directory.
//!
//! Each gateway has one socket, in a directory that only its owner can enter. A request is one line of JSON, `{"do":
//! ACTION, "with": {…}}`. The response begins with a line `{"heard": true}` before anything is executed. Any number
//! of lines `{"note": TEXT}` follow, then one line with `ok` or `error`.

mod client;
pub(crate) mod person;
mod server;

pub(crate) use client::{ControlResponse, GatewaySockets, connect, read_message};
pub(crate) use server::{ControlSocket, SuccessorHandler, other_gateway};

/// Action by which a new process asks for the listeners of the gateway.
pub(crate) const TAKE_OVER_ACTION: &str = "take-over";

/// Maximum length of a line in either direction, in bytes.
const MAX_CONTROL_LINE_BYTES: u64 = 32 * 1024 * 1024;

use std::{
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

/// Maximum length of a directory whose sockets still fit into a socket address, in bytes.
const MAX_SOCKET_DIRECTORY_BYTES: usize = 80;

/// Returns the directory of the sockets of a data directory, and creates it if necessary.
///
/// # Errors
/// The directory cannot be created, or belongs to another user.
pub(crate) fn socket_directory(data: &Path) -> io::Result<PathBuf> {
    let own = data.join("run");
    let path = if own.as_os_str().len() <= MAX_SOCKET_DIRECTORY_BYTES {
        own
    } else {
        temporary_directory(data)?
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

/// Returns a directory in the temporary directory, for a data directory whose path is too long for a socket address.
fn temporary_directory(data: &Path) -> io::Result<PathBuf> {
    let data = std::path::absolute(data)?;
    let digest = ring::digest::digest(&ring::digest::SHA256, data.as_os_str().as_encoded_bytes());
    let name = toolgate_protocol::hex::encode(&digest.as_ref()[..8]);
    Ok(std::env::temp_dir().join(format!(
        "toolgate-{}-{name}",
        rustix::process::getuid().as_raw()
    )))
}
