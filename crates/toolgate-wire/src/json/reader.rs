//! The reader: one pass, no tree, no recursion.

use super::{
    Limits, ReadError, ReadErrorKind,
    keys::Keys,
    places::Places,
    scan::{Looks, STEP, hits, is_space, over_blocks},
    text::{unescape, without_lone_surrogates},
};
use crate::room::{COPIES, OBJECT, VALUE};
use std::{borrow::Cow, ops::Range};

/// Longest number, in signs.
const NUMBER: usize = 400;

/// An integer of so many signs fits any machine type.
const SHORT: usize = 15;

/// What was read.
pub(super) struct Read {
    pub(super) text: String,
    /// Where the value is, without the white space around it.
    pub(super) range: Range<usize>,
    /// Where its members are.
    pub(super) places: Places,
    /// Whether all numbers are integers of so few digits that any machine type holds them.
    pub(super) short_numbers: bool,
    /// Whether a key that no object may have was left to whoever reads its item.
    pub(super) apart: bool,
    /// Whether there were lone surrogates.
    pub(super) repaired: bool,
    elements: usize,
    objects: usize,
}

impl Read {
    /// What it takes up with its copies and a tree of its values, in bytes.
    pub(super) fn weight(&self) -> u64 {
        let text = (self.text.capacity() as u64).saturating_mul(COPIES);
        let values = (self.elements as u64).saturating_mul(VALUE);
        let objects = (self.objects as u64).saturating_mul(OBJECT);
        text.saturating_add(values).saturating_add(objects)
    }
}

/// Texts up to here are held twice for a moment, in bytes: a copy, and what judges many bytes at once, take less time than
/// the standard library takes to judge them where they stand.
const HELD_TWICE: usize = 256 << 10;

/// Bytes that were not taken, and why.
pub(super) type Rejected = (ReadError, Vec<u8>);

/// The text that bytes are; a long one as it stands, so that it is not held twice.
pub(super) fn owned(mut bytes: Vec<u8>, limits: &Limits) -> Result<String, Rejected> {
    if bytes.len() <= HELD_TWICE {
        return copied(&bytes, limits).map_err(|error| (error, bytes));
    }
    if let Err(error) = fits(&bytes, limits) {
        return Err((error, bytes));
    }
    bytes.shrink_to_fit();
    String::from_utf8(bytes).map_err(|bad| {
        let error = ReadError {
            kind: ReadErrorKind::Utf8,
            offset: bad.utf8_error().valid_up_to(),
        };
        (error, bad.into_bytes())
    })
}

/// The text that bytes of somebody else are.
pub(super) fn copied(bytes: &[u8], limits: &Limits) -> Result<String, ReadError> {
    fits(bytes, limits)?;
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(ReadError {
            kind: ReadErrorKind::Utf8,
            offset: std::str::from_utf8(bytes).map_or_else(|bad| bad.valid_up_to(), str::len),
        }),
    }
}

fn fits(bytes: &[u8], limits: &Limits) -> Result<(), ReadError> {
    let error = |kind, offset| Err(ReadError { kind, offset });
    if bytes.len() > limits.bytes {
        return error(ReadErrorKind::TooLarge, limits.bytes);
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return error(ReadErrorKind::ByteOrderMark, 0);
    }
    Ok(())
}

/// What a reader lets pass that it refuses otherwise.
#[derive(Clone, Copy, Default)]
pub(super) struct Leniency {
    /// Keys that no object may have, within arrays; the outcome says whether there are some.
    pub(super) apart: bool,
    /// Lone surrogates, which become U+FFFD.
    pub(super) surrogates: bool,
}

/// Reads it.
pub(super) fn read(text: String, limits: &Limits, lenient: Leniency) -> Result<Read, Rejected> {
    let mut scan = Scan {
        text: &text,
        at: 0,
        limits,
        elements: 0,
        objects: 0,
        open: Vec::with_capacity(8),
        keys: Vec::with_capacity(16),
        arrays: 0,
        escaped: false,
        short_numbers: true,
        lenient,
        passed: false,
        lone: false,
        places: Places::default(),
    };
    let range = match scan.document() {
        Ok(range) => range,
        Err(kind) => {
            let offset = scan.at;
            return Err((ReadError { kind, offset }, text.into_bytes()));
        }
    };
    let (elements, objects, places) = (scan.elements, scan.objects, scan.places);
    let (short_numbers, apart, lone) = (scan.short_numbers, scan.passed, scan.lone);
    Ok(Read {
        // No byte moves, so all places stay.
        text: if lone {
            without_lone_surrogates(text)
        } else {
            text
        },
        range,
        places,
        short_numbers,
        apart,
        repaired: lone,
        elements,
        objects,
    })
}

type Step<T> = Result<T, ReadErrorKind>;

/// What comes next.
enum Then {
    /// A value.
    Value,
    /// The key of a member, and then its value.
    Key,
    /// What follows a value.
    After,
    /// Nothing: all that was opened is closed.
    End,
}

/// An object or array that is not closed yet.
enum Open<'a> {
    /// With its keys, and the place of the member that is being read.
    Object(Keys<'a>, Option<usize>),
    Array,
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    limits: &'a Limits,
    elements: usize,
    /// Objects with members: an empty one takes up no more than its value.
    objects: usize,
    open: Vec<Open<'a>>,
    /// The keys of all open objects, the innermost last.
    keys: Vec<Cow<'a, str>>,
    /// How many of those that are open are arrays.
    arrays: usize,
    /// Whether the last string had escapes.
    escaped: bool,
    short_numbers: bool,
    lenient: Leniency,
    /// Whether a key that no object may have was passed over.
    passed: bool,
    /// Whether a lone surrogate was.
    lone: bool,
    places: Places,
}

impl<'a> Scan<'a> {
    fn document(&mut self) -> Step<Range<usize>> {
        self.space();
        let start = self.at;
        if self.peek().is_none() {
            return Err(ReadErrorKind::Empty);
        }
        self.places = Places::new(start, self.text.len());
        self.values()?;
        let end = self.at;
        self.space();
        if self.peek().is_some() {
            return Err(ReadErrorKind::TrailingBytes);
        }
        Ok(start..end)
    }

    /// Reads values until all that was opened is closed.
    fn values(&mut self) -> Step<()> {
        loop {
            let mut then = self.value()?;
            while let Then::After = then {
                then = self.after()?;
            }
            match then {
                Then::Key => self.key()?,
                Then::Value | Then::After => {}
                Then::End => return Ok(()),
            }
        }
    }

    /// Reads a scalar, or opens an object or array.
    #[inline(always)]
    fn value(&mut self) -> Step<Then> {
        self.space();
        self.elements += 1;
        if self.elements > self.limits.elements {
            return Err(ReadErrorKind::TooManyElements);
        }
        match self.peek() {
            Some(b'{') => self.begin(b'}'),
            Some(b'[') => self.begin(b']'),
            Some(b'"') => self.string().map(|_| Then::After),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(ReadErrorKind::Syntax),
        }
    }

    /// Opens an object or array, which ends with that sign.
    fn begin(&mut self, end: u8) -> Step<Then> {
        if self.open.len() >= self.limits.depth.min(Limits::DEEPEST) {
            return Err(ReadErrorKind::TooDeep);
        }
        self.at += 1;
        self.space();
        if self.peek() == Some(end) {
            self.at += 1;
            return Ok(Then::After);
        }
        if end == b'}' {
            self.open.push(Open::Object(Keys::new(&self.keys), None));
            self.objects += 1;
            Ok(Then::Key)
        } else {
            self.open.push(Open::Array);
            self.arrays += 1;
            Ok(Then::Value)
        }
    }

    /// What follows a value: a comma, or the end of what is open.
    #[inline(always)]
    fn after(&mut self) -> Step<Then> {
        let object = match self.open.last_mut() {
            None => return Ok(Then::End),
            Some(Open::Array) => false,
            Some(Open::Object(_, place)) => {
                if let Some(place) = place.take() {
                    self.places.end(place, self.at);
                }
                true
            }
        };
        self.space();
        match (self.peek(), object) {
            (Some(b','), true) => {
                self.at += 1;
                self.space();
                Ok(Then::Key)
            }
            (Some(b','), false) => {
                self.at += 1;
                Ok(Then::Value)
            }
            (Some(b'}'), true) | (Some(b']'), false) => {
                self.at += 1;
                match self.open.pop() {
                    Some(Open::Object(keys, _)) => keys.end(&mut self.keys),
                    _ => self.arrays -= 1,
                }
                Ok(Then::After)
            }
            _ => Err(ReadErrorKind::Syntax),
        }
    }

    #[inline(always)]
    fn key(&mut self) -> Step<()> {
        if self.peek() != Some(b'"') {
            return Err(ReadErrorKind::Syntax);
        }
        let range = self.string()?;
        let inner = self.text.get(range.clone()).unwrap_or_default();
        let plain = !self.escaped;
        let key = match plain {
            true => Cow::Borrowed(inner),
            false => unescape(inner),
        };
        // Only the innermost object has keys now.
        let depth = self.open.len();
        let Some(Open::Object(keys, place)) = self.open.last_mut() else {
            return Err(ReadErrorKind::Syntax);
        };
        match keys.add(&mut self.keys, key, self.limits.keys) {
            Err(ReadErrorKind::DuplicateKey) if self.lenient.apart && self.arrays > 0 => {
                self.passed = true;
            }
            added => added?,
        }
        let bytes = self.text.as_bytes();
        self.at += spaces(bytes, self.at);
        if bytes.get(self.at) != Some(&b':') {
            return Err(ReadErrorKind::Syntax);
        }
        self.at += 1;
        self.at += spaces(bytes, self.at);
        if self.arrays == 0 {
            *place = self.places.begin(&range, plain, self.at, depth);
        }
        Ok(())
    }

    /// Reads a string; what is between its quotes.
    #[inline(always)]
    fn string(&mut self) -> Step<Range<usize>> {
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let mut at = start;
        // Most have no escape, and something behind them.
        while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
            let hits = hits(u64::from_le_bytes(*eight));
            if hits == 0 {
                at += 8;
                continue;
            }
            at += hits.trailing_zeros() as usize / 8;
            if bytes.get(at) != Some(&b'"') {
                break;
            }
            self.escaped = false;
            self.at = at + 1;
            return Ok(start..at);
        }
        self.rest_of_string(start, at)
    }

    /// Reads the string that begins at `start`, where nothing needs a look before `at`.
    #[inline(never)]
    fn rest_of_string(&mut self, start: usize, at: usize) -> Step<Range<usize>> {
        let bytes = self.text.as_bytes();
        let mut looks = Looks::new(bytes, at);
        let mut blocks = start + STEP;
        self.escaped = false;
        loop {
            self.at = looks.next();
            match bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    self.escaped = true;
                    if self.at >= blocks {
                        let end = over_blocks(bytes, self.at);
                        blocks = end + STEP;
                        if end > self.at {
                            looks = Looks::new(bytes, end);
                            continue;
                        }
                    }
                    match bytes.get(self.at + 1) {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                            self.at += 2
                        }
                        _ => self.unicode()?,
                    }
                    looks.go_on(self.at);
                }
                _ => return Err(ReadErrorKind::Syntax),
            }
        }
        self.at += 1;
        Ok(start..self.at - 1)
    }

    /// An escape of four digits, or two of them for one sign.
    fn unicode(&mut self) -> Step<()> {
        self.at += 1;
        if self.peek() != Some(b'u') {
            return Err(ReadErrorKind::Syntax);
        }
        match self.hex()? {
            0xd800..=0xdbff => {
                let high = self.at;
                let low = self.text.as_bytes().get(self.at..self.at + 2) == Some(b"\\u");
                self.at += usize::from(low);
                if !low || !(0xdc00..=0xdfff).contains(&self.hex()?) {
                    self.lone_surrogate()?;
                    // What follows it is an escape of its own.
                    self.at = high;
                }
            }
            0xdc00..=0xdfff => self.lone_surrogate()?,
            _ => {}
        }
        Ok(())
    }

    fn lone_surrogate(&mut self) -> Step<()> {
        self.lone = true;
        match self.lenient.surrogates {
            true => Ok(()),
            false => Err(ReadErrorKind::LoneSurrogate),
        }
    }

    fn hex(&mut self) -> Step<u32> {
        let digits = self
            .text
            .as_bytes()
            .get(self.at + 1..self.at + 5)
            .ok_or(ReadErrorKind::Syntax)?;
        let mut unit = 0;
        for digit in digits {
            unit = unit * 16 + (*digit as char).to_digit(16).ok_or(ReadErrorKind::Syntax)?;
        }
        self.at += 5;
        Ok(unit)
    }

    fn number(&mut self) -> Step<Then> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(ReadErrorKind::Syntax),
        }
        self.short_numbers &= self.at - start <= SHORT;
        if self.peek() == Some(b'.') {
            self.short_numbers = false;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.short_numbers = false;
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        if self.at - start > NUMBER {
            self.at = start;
            return Err(ReadErrorKind::Number);
        }
        Ok(Then::After)
    }

    fn digits(&mut self) -> Step<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            Err(ReadErrorKind::Syntax)
        } else {
            Ok(())
        }
    }

    fn word(&mut self, word: &str) -> Step<Then> {
        if !self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(word))
        {
            return Err(ReadErrorKind::Syntax);
        }
        self.at += word.len();
        Ok(Then::After)
    }

    #[inline(always)]
    fn space(&mut self) {
        self.at += spaces(self.text.as_bytes(), self.at);
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// How many bytes of white space are there.
#[inline(always)]
fn spaces(bytes: &[u8], at: usize) -> usize {
    let mut end = at;
    while bytes.get(end).is_some_and(|b| is_space(*b)) {
        end += 1;
    }
    end - at
}
