//! Default locations of checkpoint mirrors.

use super::record_line::RecordLine;
use super::segment_files;
use super::terms::ChainTerms;
use crate::chain;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// File name of the default mirror beside an audit log directory.
const DEFAULT_MIRROR: &str = "checkpoints";

/// Maximum size in bytes of the first record that is read for the mirror it names.
const MAX_FIRST_RECORD_BYTES: u64 = 1024 * 1024;

/// Checkpoint mirrors to compare with, without duplicates.
pub(super) struct MirrorPaths {
    pub(super) paths: Vec<PathBuf>,
}

impl MirrorPaths {
    /// Returns the given mirrors; without any, the default mirror and those that the chains name, if they exist.
    pub(super) fn of(dir: &Path, given: &[PathBuf]) -> Self {
        let mut all = Self { paths: Vec::new() };
        if !given.is_empty() {
            all.paths
                .extend(given.iter().map(|path| canonical_path(path)));
            return all;
        }
        all.add([dir.join("..").join(DEFAULT_MIRROR)].into_iter());
        let chains = chain::ids(dir).unwrap_or_default();
        all.add(chains.iter().filter_map(|chain| named(&dir.join(chain))));
        all
    }

    /// Adds existing mirrors. Returns whether there was a new one.
    pub(super) fn add(&mut self, mirrors: impl Iterator<Item = PathBuf>) -> bool {
        let before = self.paths.len();
        for mirror in mirrors {
            let is_there = mirror.is_dir() || mirror.is_file();
            let mirror = canonical_path(&mirror);
            if is_there && !self.paths.contains(&mirror) {
                self.paths.push(mirror);
            }
        }
        self.paths.len() > before
    }
}

/// Returns the mirror that the first record of a chain names.
fn named(home: &Path) -> Option<PathBuf> {
    let (_, file) = segment_files(home).ok()?.into_iter().next()?;
    let mut line = Vec::new();
    let mut input = BufReader::new(File::open(file).ok()?).take(MAX_FIRST_RECORD_BYTES);
    input.read_until(b'\n', &mut line).ok()?;
    let record = RecordLine::parse(line.strip_suffix(b"\n")?).ok()?;
    ChainTerms::parse(&record).mirror
}

/// Returns the canonical path, so that two spellings count as one.
pub(super) fn canonical_path(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
