//! Decryption of recorded contents for commands that print records.

use super::super::{CommandError, DataLocation, Result, offline};
use std::{
    cell::{Cell, OnceCell},
    path::Path,
    thread,
    time::{Duration, SystemTime},
};
use toolgate_core::visible;
use toolgate_journal::read::SegmentLine;
use toolgate_policy::ContentReader;

/// Age up to which a record may have a key that this process has not read from the store yet.
const NEW_RECORD_AGE: Duration = Duration::from_secs(10);
/// Time in which a new key of another process appears.
const NEW_KEY_WAIT: Duration = Duration::from_millis(1200);

/// Decrypts the contents of records. It opens the store at the first encrypted content.
pub(super) struct ContentDecryption<'a> {
    place: &'a DataLocation<'a>,
    data: &'a Path,
    reader: OnceCell<Option<ContentReader>>,
    /// Time up to which the keys of all records have been read.
    waited_until: Cell<SystemTime>,
}

impl<'a> ContentDecryption<'a> {
    pub(super) fn new(place: &'a DataLocation<'a>, data: &'a Path) -> ContentDecryption<'a> {
        ContentDecryption {
            place,
            data,
            reader: OnceCell::new(),
            waited_until: Cell::new(SystemTime::UNIX_EPOCH),
        }
    }

    /// Adds the decrypted contents to a record. Without a store, they stay encrypted, with one note about it.
    pub(super) fn reveal(&self, line: &mut SegmentLine) {
        if !ContentReader::is_encrypted(&line.fields) {
            return;
        }
        let Some(reader) = self.reader.get_or_init(|| self.open()) else {
            return;
        };
        reader.reveal(&mut line.fields);
        if ContentReader::has_erased(&line.fields) && self.may_have_new_key(line) {
            let now = SystemTime::now();
            thread::sleep(NEW_KEY_WAIT);
            self.waited_until.set(now);
            reader.reveal(&mut line.fields);
        }
        line.raw = serde_json::Value::Object(line.fields.clone()).to_string();
    }

    /// Returns whether a record was written a moment ago, and after the last wait for keys.
    fn may_have_new_key(&self, line: &SegmentLine) -> bool {
        let at = SystemTime::UNIX_EPOCH + Duration::from_micros(line.ts);
        at > self.waited_until.get() && at.elapsed().is_ok_and(|age| age < NEW_RECORD_AGE)
    }

    fn open(&self) -> Option<ContentReader> {
        match self.open_store() {
            Ok(reader) => Some(reader),
            Err(CommandError::Usage(why) | CommandError::Failure(why)) => {
                eprintln!(
                    "toolgate: recorded contents stay encrypted: {}",
                    visible(&why)
                );
                None
            }
        }
    }

    fn open_store(&self) -> Result<ContentReader> {
        let location = offline::location(self.place, self.data)?;
        if !location.exists() {
            let why = "the data directory has no store with their keys";
            return Err(CommandError::Failure(why.to_owned()));
        }
        Ok(ContentReader::new(offline::state(&location)?))
    }
}
