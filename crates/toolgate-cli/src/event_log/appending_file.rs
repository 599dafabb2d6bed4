//! Log file that is appended to, and opened again when it was rotated.

use std::{
    fs::{File, Metadata, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// Append-only log file with mode 0600. If another program renames or removes it, the next write creates a new one.
#[derive(Debug)]
pub(crate) struct AppendingFile {
    path: PathBuf,
    /// Size above which the file is renamed to `NAME.1`; `None` if only other programs rotate it.
    max_bytes: Option<u64>,
    file: Option<File>,
}

impl AppendingFile {
    /// Creates the log file at a path. It is opened by the first write.
    pub(crate) fn new(path: PathBuf, max_bytes: Option<u64>) -> AppendingFile {
        AppendingFile {
            path,
            max_bytes,
            file: None,
        }
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file, so that a wrong path is reported at the start.
    ///
    /// # Errors
    /// It cannot be opened or created.
    pub(crate) fn open(&mut self) -> io::Result<()> {
        self.current().map(drop)
    }

    /// Appends bytes in one write.
    ///
    /// # Errors
    /// The file cannot be opened, written or renamed.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let max_bytes = self.max_bytes;
        let mut file = self.current()?;
        file.write_all(bytes)?;
        if let Some(max) = max_bytes
            && file.metadata()?.len() > max
        {
            self.file = None;
            std::fs::rename(&self.path, rotated_path(&self.path))?;
        }
        Ok(())
    }

    /// Returns the open file, which is still the one at the path.
    fn current(&mut self) -> io::Result<&File> {
        let named = self.path.metadata().ok();
        let open = self.file.as_ref().and_then(|file| file.metadata().ok());
        let same = match (&named, &open) {
            (Some(named), Some(open)) => is_same_file(named, open),
            _ => false,
        };
        if !same {
            let mut options = OpenOptions::new();
            options.append(true).create(true).mode(0o600);
            self.file = Some(options.open(&self.path)?);
        }
        self.file
            .as_ref()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Returns whether both are the metadata of one file.
pub(crate) fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Returns the path to which a file is renamed when it is too large.
pub(crate) fn rotated_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotates_at_its_size_and_opens_a_replaced_file_again() {
        let folder = std::env::temp_dir().join(format!("toolgate-append-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.log");
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        let mut file = AppendingFile::new(path.clone(), Some(10));
        file.append(b"12345\n").unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        file.append(b"67890\n").unwrap();
        file.append(b"next\n").unwrap();
        assert_eq!(read(&rotated_path(&path)), "12345\n67890\n");
        assert_eq!(read(&path), "next\n");
        std::fs::rename(&path, folder.join("moved")).unwrap();
        file.append(b"new\n").unwrap();
        assert_eq!(read(&folder.join("moved")), "next\n");
        assert_eq!(read(&path), "new\n");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
