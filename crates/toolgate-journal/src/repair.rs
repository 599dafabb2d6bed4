//! Going on after the disk failed, without a restart.
//!
//! A full disk has written nothing wrong: once there is room, the segment is read back, mended, sealed, and the next
//! one begun. After a failed sync nobody knows what the system still has, so that chain ends there, and a new one says
//! after which record of which chain it comes, and closes its calls.

use crate::chain::{self, Chain};
use crate::contents::{Contents, OpenCalls};
use crate::disk::private;
use crate::entry::{Entry, Event, Ready};
use crate::error::Error;
use crate::journal::introduce;
use crate::left::Left;
use crate::notice;
use crate::place::Place;
use crate::record::{Tip, utc_us};
use crate::recover::{self, Attempt};
use crate::writer::Writer;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Room that has to be there before anything is tried.
const ROOM: usize = 256 * 1024;

/// Ends of calls that are kept for later at most.
const MOST_OWED: usize = 8192;

/// What failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Trouble {
    /// There was no room.
    Full,
    /// The file is not to be used again.
    Final,
    /// The path does not lead to the file any more.
    Displaced,
}

impl Trouble {
    /// What an error of a write means. `FileTooLarge` is a limit of the one file.
    pub(crate) fn of(cause: &io::Error) -> Self {
        match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Final,
        }
    }
}

impl Writer {
    /// Keeps the end of a call that found no place: the call happened, whatever its caller was told.
    pub(crate) fn owe(&mut self, record: Ready) {
        let end = matches!(record.event, Event::CALL_END | Event::CALL_UNKNOWN);
        if end && self.owed.len() < MOST_OWED {
            self.owed.push(record);
        }
    }

    /// Tries to go on. Where that fails, everything is refused as before, until the next try.
    pub(crate) fn repair(&mut self) {
        let (Some(trouble), Some(reason)) = (self.trouble, self.shared.failed()) else {
            return;
        };
        if trouble == Trouble::Displaced && self.restore_folder().is_err() {
            return;
        }
        if has_room(&self.chain.dir).is_err() {
            return;
        }
        self.trouble = None;
        let gone_on = match trouble {
            Trouble::Full => self.resume(&reason),
            Trouble::Final => self.start_anew(&reason),
            Trouble::Displaced => match self.restore_segment(&reason) {
                Err(e) if Trouble::of(&e) == Trouble::Full => Err(Error::Failed(reason.clone())),
                Err(e) => self.leave_displaced(&format!("{reason}; {e}")),
                Ok(()) => self.resume(&reason),
            },
        };
        match gone_on {
            Ok(()) => self.shared.set_failed(None),
            Err(_) => self.trouble = self.trouble.or(Some(trouble)),
        }
        self.publish();
    }

    /// Reads the segment back, mends it, says so, and begins the next one.
    fn resume(&mut self, reason: &str) -> Result<(), Error> {
        let options = &self.options;
        let (disk, place) = (options.disk.as_ref(), options.checkpoints.as_deref());
        let key = &self.marks.signer.public;
        let attempt = recover::take_over(&self.chain, disk, key, place)?;
        let Attempt::Ready(found) = attempt else {
            return self.start_anew(reason);
        };
        let found = *found;
        self.tip = found.tip;
        self.segment = found.segment;
        self.file = found.file;
        self.open = found.open;
        if found.sealed {
            self.begin_segment()?;
        }
        let recovered = Entry::new(Event::RECOVERED)
            .with("bytes", found.torn)
            .with("calls", 0)
            .with("cause", reason);
        self.say(recovered)?;
        self.pay(true)?;
        self.rotate()?;
        self.write(std::iter::empty()).map(drop)
    }

    /// Begins another chain where the records of a displaced segment could not be written back.
    fn leave_displaced(&mut self, reason: &str) -> Result<(), Error> {
        // Calls go on either way; the next chain states the reason as well.
        let _ = notice::put(&self.options.dir, &self.chain.id, reason);
        self.start_anew(reason)
    }

    /// Leaves the chain as it is and begins another one, in which its open calls go on.
    fn start_anew(&mut self, reason: &str) -> Result<(), Error> {
        let disk = self.options.disk.clone();
        let chain = Chain::begin(&self.options.dir, disk.as_ref())?;
        let place = self.options.checkpoints.as_deref();
        let place = place.map(|place| Place::open(place, &chain.id, disk.as_ref()));
        self.marks.moved(place.transpose()?);
        self.segment = recover::open_first(&chain, disk.as_ref())?;
        self.tip = Tip::new(&chain.id, 1, None);
        self.file = Contents::new(1, utc_us());
        self.open = OpenCalls::default();
        let before = std::mem::replace(&mut self.chain, chain);
        // A chain that was begun here and failed at once has nothing of its own.
        let key = &self.marks.signer.public;
        let left = match self.left.take() {
            Some(left) => {
                chain::mark_closed(&before.dir);
                left
            }
            None => Left::read(before, key),
        };
        let gone_on = self.go_on_after(&left, reason);
        match gone_on {
            Ok(()) => left.is_closed(),
            Err(_) => self.left = Some(left),
        }
        gone_on
    }

    fn go_on_after(&mut self, left: &Left, reason: &str) -> Result<(), Error> {
        self.say(left.genesis().with("cause", reason))?;
        let limit = crate::options::LARGEST_RECORD;
        let begins = left.begins().map(|entry| Ready::build(entry, limit));
        let begins: Vec<Ready> = begins.collect::<Result<_, _>>()?;
        for chunk in begins.chunks(self.options.batch.max(1)) {
            self.write(chunk.iter())?;
        }
        self.pay(false)
    }

    fn say(&mut self, entry: Entry) -> Result<(), Error> {
        let entry = introduce(entry, &self.options, &self.mac_key)
            .with("checkpoint_key", self.marks.signer.public.as_str());
        let record = Ready::build(entry, crate::options::LARGEST_RECORD)?;
        self.marks.wanted = true;
        self.write(std::iter::once(&record)).map(drop)
    }

    /// Writes the ends that are owed; of those in the same chain only what is not there yet.
    fn pay(&mut self, same_chain: bool) -> Result<(), Error> {
        let mut owed = std::mem::take(&mut self.owed);
        if same_chain {
            owed.retain(|record| self.open.has(record));
        }
        let chunks = owed.chunks(self.options.batch.max(1));
        let mut written = Ok(());
        for chunk in chunks {
            written = written.and_then(|()| self.write(chunk.iter()).map(drop));
        }
        if written.is_err() {
            self.owed = owed;
        }
        written
    }
}

/// Whether something can be written and synced.
fn has_room(dir: &Path) -> io::Result<()> {
    let path = dir.join("room");
    let _ = fs::remove_file(&path);
    let tried = private(&path, true).and_then(|mut file| {
        file.write_all(&[b'.'; ROOM])?;
        file.sync_data()
    });
    let _ = fs::remove_file(&path);
    tried
}
