//! Checkpoint mirror, which may be on another disk or be read by another party.

use crate::chain;
use crate::disk::{SegmentDisk, open_private};
use crate::error::Error;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Number of bytes at the end of a mirror file that are searched for the last checkpoint of a chain.
const MIRROR_TAIL_BYTES: u64 = 1024 * 1024;

/// Checkpoint mirror file, to which checkpoints are appended.
#[derive(Debug)]
pub(crate) struct CheckpointMirror {
    path: PathBuf,
    file: File,
}

impl CheckpointMirror {
    /// Opens the mirror file of a chain: the configured file, or the file of the chain in a directory.
    pub(crate) fn open(place: &Path, chain: &str, disk: &dyn SegmentDisk) -> Result<Self, Error> {
        let path = mirror_file(place, chain);
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        chain::make_dir(parent, disk)?;
        let mut new = false;
        let file = match open_private(&path, true) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => open_private(&path, false),
            other => {
                new = true;
                other
            }
        };
        let file = file.map_err(|e| Error::open("open the checkpoint mirror", &path, e))?;
        if new {
            disk.sync_dir(parent)
                .map_err(|e| Error::open("sync the directory", parent, e))?;
        }
        Ok(Self { path, file })
    }

    /// Appends a line and syncs it. Uses a single write, so that lines of concurrent processes do not mix.
    pub(crate) fn append(&mut self, line: &str) -> io::Result<()> {
        let mut text = String::new();
        if !ends_with_newline(&self.path)? {
            text.push('\n');
        }
        text.push_str(line);
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()
    }
}

/// Returns the mirror file of a chain. A directory has one file per chain; a path that does not exist and has no
/// extension becomes a directory.
pub fn mirror_file(place: &Path, chain: &str) -> PathBuf {
    let folder = place.is_dir() || (!place.exists() && place.extension().is_none());
    if folder {
        place.join(format!("{chain}.jsonl"))
    } else {
        place.to_owned()
    }
}

/// Returns the last lines of the mirror of a chain, up to 1 MiB; none if there is no file.
pub(crate) fn last_lines(place: &Path, chain: &str) -> io::Result<Vec<Vec<u8>>> {
    let mut file = match File::open(mirror_file(place, chain)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let start = file.metadata()?.len().saturating_sub(MIRROR_TAIL_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(2 * MIRROR_TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect())
}

/// Returns the last lines of a mirror about chains that are not in `ids`; of a single file, the lines of all chains.
pub(crate) fn lines_of_others(place: &Path, ids: &[String]) -> io::Result<Vec<Vec<u8>>> {
    if !place.is_dir() {
        return last_lines(place, "");
    }
    let mut lines = Vec::new();
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        let ending = path.extension().is_some_and(|ending| ending == "jsonl");
        let name = path.file_stem().and_then(|name| name.to_str());
        if let Some(name) = name.filter(|name| ending && chain::is_id(name))
            && !ids.iter().any(|id| id == name)
        {
            lines.append(&mut last_lines(&path, name)?);
        }
    }
    Ok(lines)
}

/// Returns the files of a checkpoint mirror: the files `*.jsonl` of a directory, or the file itself.
///
/// # Errors
/// The directory cannot be read.
pub fn mirror_files(place: &Path) -> io::Result<Vec<PathBuf>> {
    if !place.is_dir() {
        return Ok(vec![place.to_owned()]);
    }
    let paths = fs::read_dir(place)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<io::Result<Vec<PathBuf>>>()?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    Ok(paths)
}

/// Returns whether a file ends with a complete line. A crash may leave a partial one.
fn ends_with_newline(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    if fs::metadata(path)?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
