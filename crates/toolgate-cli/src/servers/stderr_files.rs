//! Files with the stderr of servers, which `toolgate logs` prints, also after a crash of the gateway.

use crate::{
    event_log::{AppendingFile, BackgroundWriter},
    timestamp::format_rfc3339,
};
use std::{
    collections::HashMap,
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

/// Lines that wait for a slow disk. More are dropped and counted.
const MAX_QUEUED_LINES: usize = 512;
/// Time for the last lines when the gateway ends.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// Files with the stderr of all servers, `DATA/logs/SERVER.log`, each with its predecessor `SERVER.log.1`.
pub(crate) struct StderrFiles(BackgroundWriter<StderrLine>);

struct StderrLine {
    server: Arc<str>,
    at: SystemTime,
    text: String,
}

impl StderrFiles {
    /// Creates the directory, and starts the thread that writes. A server gets at most two files of `max_bytes`.
    ///
    /// # Errors
    /// The directory or the thread cannot be created.
    pub(crate) fn open(data: &Path, max_bytes: u64) -> io::Result<StderrFiles> {
        let directory = directory(data);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)?;
        let mut files: HashMap<Arc<str>, AppendingFile> = HashMap::new();
        let writer = BackgroundWriter::start(
            "server stderr",
            MAX_QUEUED_LINES,
            move |line: StderrLine, dropped| {
                let time = format_rfc3339(line.at);
                let mut text = format!("{time} {}\n", line.text);
                if dropped > 0 {
                    text = format!(
                        "{time} [toolgate: {dropped} lines of the servers were not stored]\n{text}"
                    );
                }
                let path = || stderr_path(&directory, &line.server);
                let file = files
                    .entry(line.server.clone())
                    .or_insert_with(|| AppendingFile::new(path(), Some(max_bytes)));
                // A full disk also stops the audit log, which reports it. The console still has the last lines.
                let _ = file.append(text.as_bytes());
            },
        )?;
        Ok(StderrFiles(writer))
    }

    /// Stores a line of a server, without waiting.
    pub(super) fn add(&self, server: &Arc<str>, text: &str) {
        self.0.send(StderrLine {
            server: server.clone(),
            at: SystemTime::now(),
            text: text.to_owned(),
        });
    }

    /// Waits a moment until all lines are written.
    pub(super) fn flush(&self) {
        self.0.flush(FLUSH_TIMEOUT);
    }
}

/// Returns the directory of the files.
pub(crate) fn directory(data: &Path) -> PathBuf {
    data.join("logs")
}

/// Returns the file of a server. The ids of servers are plain file names.
pub(crate) fn stderr_path(directory: &Path, server: &str) -> PathBuf {
    directory.join(format!("{server}.log"))
}
