//! JSON reader: one pass, no tree, no recursion.

use super::{
    JsonLimits, ReadError, ReadErrorKind,
    keys::ObjectKeys,
    member_positions::MemberPositions,
    scan::{
        MIN_BYTES_BETWEEN_BLOCKS, SpecialBytes, is_space, skip_plain_blocks, special_byte_mask,
    },
    text::{unescape, without_lone_surrogates},
};
use crate::memory_budget::{BYTES_PER_OBJECT, BYTES_PER_VALUE, COPIES_PER_MESSAGE};
use std::{borrow::Cow, ops::Range};

/// Maximum length of a number, in characters.
const MAX_NUMBER_CHARS: usize = 400;

/// Maximum length of an integer that fits any machine type, in characters.
const MAX_SHORT_INTEGER_CHARS: usize = 15;

/// Result of the reader.
pub(super) struct ReadText {
    pub(super) text: String,
    /// Range of the value, without surrounding white space.
    pub(super) range: Range<usize>,
    /// Positions of its members.
    pub(super) positions: MemberPositions,
    /// True if all numbers are short integers, which any machine type holds.
    pub(super) short_numbers: bool,
    /// True if a duplicate key, or one with U+0000, was left to the reader of its item.
    pub(super) has_duplicate_keys: bool,
    /// True if there were lone surrogates.
    pub(super) repaired: bool,
    elements: usize,
    objects: usize,
}

impl ReadText {
    /// Memory of the text, its copies and a tree of its values, in bytes.
    pub(super) fn weight(&self) -> u64 {
        let text = (self.text.capacity() as u64).saturating_mul(COPIES_PER_MESSAGE);
        let values = (self.elements as u64).saturating_mul(BYTES_PER_VALUE);
        let objects = (self.objects as u64).saturating_mul(BYTES_PER_OBJECT);
        text.saturating_add(values).saturating_add(objects)
    }
}

/// Maximum size of texts that are copied, in bytes. A copy with SIMD validation takes less time than the standard
/// library's validation in place.
const MAX_COPIED_TEXT_BYTES: usize = 256 << 10;

/// Rejected bytes with the error.
pub(super) type RejectedBytes = (ReadError, Vec<u8>);

/// Converts bytes to text; a long one in place, so that it is not held twice.
pub(super) fn owned(mut bytes: Vec<u8>, limits: &JsonLimits) -> Result<String, RejectedBytes> {
    if bytes.len() <= MAX_COPIED_TEXT_BYTES {
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

/// Copies borrowed bytes to text.
pub(super) fn copied(bytes: &[u8], limits: &JsonLimits) -> Result<String, ReadError> {
    fits(bytes, limits)?;
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(ReadError {
            kind: ReadErrorKind::Utf8,
            offset: std::str::from_utf8(bytes).map_or_else(|bad| bad.valid_up_to(), str::len),
        }),
    }
}

fn fits(bytes: &[u8], limits: &JsonLimits) -> Result<(), ReadError> {
    let error = |kind, offset| Err(ReadError { kind, offset });
    if bytes.len() > limits.bytes {
        return error(ReadErrorKind::TooLarge, limits.bytes);
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return error(ReadErrorKind::ByteOrderMark, 0);
    }
    Ok(())
}

/// Leniency of the reader.
#[derive(Clone, Copy, Default)]
pub(super) struct ReaderLeniency {
    /// Accepts duplicate keys, and keys with U+0000, within arrays; [`ReadText::has_duplicate_keys`] reports them.
    pub(super) duplicate_keys: bool,
    /// Accepts keys with U+0000.
    pub(super) nul_keys: bool,
    /// Accepts lone surrogates, which become U+FFFD.
    pub(super) surrogates: bool,
}

/// Reads a text.
pub(super) fn read(
    text: String,
    limits: &JsonLimits,
    lenient: ReaderLeniency,
) -> Result<ReadText, RejectedBytes> {
    let mut scan = JsonScanner {
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
        has_duplicate_keys: false,
        has_lone_surrogates: false,
        positions: MemberPositions::default(),
    };
    let range = match scan.document() {
        Ok(range) => range,
        Err(kind) => {
            let offset = scan.at;
            return Err((ReadError { kind, offset }, text.into_bytes()));
        }
    };
    let (elements, objects, places) = (scan.elements, scan.objects, scan.positions);
    let (short_numbers, apart, lone) = (
        scan.short_numbers,
        scan.has_duplicate_keys,
        scan.has_lone_surrogates,
    );
    Ok(ReadText {
        // No byte moves, so all positions stay valid.
        text: if lone {
            without_lone_surrogates(text)
        } else {
            text
        },
        range,
        positions: places,
        short_numbers,
        has_duplicate_keys: apart,
        repaired: lone,
        elements,
        objects,
    })
}

type ScanResult<T> = Result<T, ReadErrorKind>;

/// Next state of the parser.
enum ScanState {
    /// A value follows.
    Value,
    /// The key of a member follows, then its value.
    Key,
    /// A comma or a closing bracket follows.
    After,
    /// The root value is complete.
    End,
}

/// Object or array that is not closed yet.
enum ScanFrame<'a> {
    /// Its keys, and the index entry of the current member.
    Object(ObjectKeys<'a>, Option<usize>),
    Array,
}

struct JsonScanner<'a> {
    text: &'a str,
    at: usize,
    limits: &'a JsonLimits,
    elements: usize,
    /// Number of objects with members. An empty object weighs no more than its value.
    objects: usize,
    open: Vec<ScanFrame<'a>>,
    /// Keys of all open objects, those of the innermost last.
    keys: Vec<Cow<'a, str>>,
    /// Number of open arrays.
    arrays: usize,
    /// True if the last string had escapes.
    escaped: bool,
    short_numbers: bool,
    lenient: ReaderLeniency,
    /// True if a duplicate key, or one with U+0000, was accepted.
    has_duplicate_keys: bool,
    /// True if a lone surrogate was accepted.
    has_lone_surrogates: bool,
    positions: MemberPositions,
}

impl<'a> JsonScanner<'a> {
    fn document(&mut self) -> ScanResult<Range<usize>> {
        self.skip_space();
        let start = self.at;
        if self.peek().is_none() {
            return Err(ReadErrorKind::Empty);
        }
        self.positions = MemberPositions::new(start, self.text.len());
        self.values()?;
        let end = self.at;
        self.skip_space();
        if self.peek().is_some() {
            return Err(ReadErrorKind::TrailingBytes);
        }
        Ok(start..end)
    }

    /// Reads values until the root value is complete.
    fn values(&mut self) -> ScanResult<()> {
        loop {
            let mut then = self.value()?;
            while let ScanState::After = then {
                then = self.after()?;
            }
            match then {
                ScanState::Key => self.key()?,
                ScanState::Value | ScanState::After => {}
                ScanState::End => return Ok(()),
            }
        }
    }

    /// Reads a scalar, or opens an object or array.
    #[inline(always)]
    fn value(&mut self) -> ScanResult<ScanState> {
        self.skip_space();
        self.elements += 1;
        if self.elements > self.limits.elements {
            return Err(ReadErrorKind::TooManyElements);
        }
        match self.peek() {
            Some(b'{') => self.begin(b'}'),
            Some(b'[') => self.begin(b']'),
            Some(b'"') => self.string().map(|_| ScanState::After),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(ReadErrorKind::Syntax),
        }
    }

    /// Opens an object or array that ends with this bracket.
    fn begin(&mut self, end: u8) -> ScanResult<ScanState> {
        if self.open.len() >= self.limits.depth.min(JsonLimits::MAX_DEPTH) {
            return Err(ReadErrorKind::TooDeep);
        }
        let start = self.at;
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(end) {
            self.at += 1;
            return Ok(ScanState::After);
        }
        if end == b'}' {
            if matches!(self.open.last(), Some(ScanFrame::Array)) {
                self.positions.begin_element(start, self.open.len());
            }
            self.open
                .push(ScanFrame::Object(ObjectKeys::new(&self.keys), None));
            self.objects += 1;
            Ok(ScanState::Key)
        } else {
            if self.arrays == 0 {
                self.positions.begin_array();
            }
            self.open.push(ScanFrame::Array);
            self.arrays += 1;
            Ok(ScanState::Value)
        }
    }

    /// Reads the comma after a value, or closes the innermost object or array.
    #[inline(always)]
    fn after(&mut self) -> ScanResult<ScanState> {
        let object = match self.open.last_mut() {
            None => return Ok(ScanState::End),
            Some(ScanFrame::Array) => false,
            Some(ScanFrame::Object(_, place)) => {
                if let Some(place) = place.take() {
                    self.positions.end_member(place, self.at);
                }
                true
            }
        };
        self.skip_space();
        match (self.peek(), object) {
            (Some(b','), true) => {
                self.at += 1;
                self.skip_space();
                Ok(ScanState::Key)
            }
            (Some(b','), false) => {
                self.at += 1;
                Ok(ScanState::Value)
            }
            (Some(b'}'), true) | (Some(b']'), false) => {
                self.at += 1;
                match self.open.pop() {
                    Some(ScanFrame::Object(keys, _)) => keys.end(&mut self.keys),
                    _ => self.arrays -= 1,
                }
                Ok(ScanState::After)
            }
            _ => Err(ReadErrorKind::Syntax),
        }
    }

    #[inline(always)]
    fn key(&mut self) -> ScanResult<()> {
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
        // Only the innermost object is receiving keys.
        let depth = self.open.len();
        let Some(ScanFrame::Object(keys, place)) = self.open.last_mut() else {
            return Err(ReadErrorKind::Syntax);
        };
        // C libraries end a key at U+0000, which only an escape can produce here.
        let cut = !plain && !self.lenient.nul_keys && key.contains('\0');
        let added = match cut {
            true => Err(ReadErrorKind::DuplicateKey),
            false => keys.add(&mut self.keys, key, self.limits.keys),
        };
        match added {
            Err(ReadErrorKind::DuplicateKey) if self.lenient.duplicate_keys && self.arrays > 0 => {
                self.has_duplicate_keys = true;
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
        let in_array = self.arrays > 0;
        *place = self
            .positions
            .begin_member(&range, plain, self.at, depth, in_array);
        Ok(())
    }

    /// Reads a string. Returns the range between its quotes.
    #[inline(always)]
    fn string(&mut self) -> ScanResult<Range<usize>> {
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let mut at = start;
        // Most strings have no escape, and other text follows them.
        while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
            let hits = special_byte_mask(u64::from_le_bytes(*eight));
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

    /// Reads the string that begins at `start`, continuing at `at`. No byte before `at` needs special treatment.
    #[inline(never)]
    fn rest_of_string(&mut self, start: usize, at: usize) -> ScanResult<Range<usize>> {
        let bytes = self.text.as_bytes();
        let mut looks = SpecialBytes::new(bytes, at);
        let mut blocks = start + MIN_BYTES_BETWEEN_BLOCKS;
        self.escaped = false;
        loop {
            self.at = looks.next();
            match bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    self.escaped = true;
                    if self.at >= blocks {
                        let end = skip_plain_blocks(bytes, self.at);
                        blocks = end + MIN_BYTES_BETWEEN_BLOCKS;
                        if end > self.at {
                            looks = SpecialBytes::new(bytes, end);
                            continue;
                        }
                    }
                    match bytes.get(self.at + 1) {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                            self.at += 2
                        }
                        _ => self.unicode()?,
                    }
                    looks.skip_to(self.at);
                }
                _ => return Err(ReadErrorKind::Syntax),
            }
        }
        self.at += 1;
        Ok(start..self.at - 1)
    }

    /// Reads a `\uXXXX` escape, or a surrogate pair of two.
    fn unicode(&mut self) -> ScanResult<()> {
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
                    // The escape that follows stands on its own.
                    self.at = high;
                }
            }
            0xdc00..=0xdfff => self.lone_surrogate()?,
            _ => {}
        }
        Ok(())
    }

    fn lone_surrogate(&mut self) -> ScanResult<()> {
        self.has_lone_surrogates = true;
        match self.lenient.surrogates {
            true => Ok(()),
            false => Err(ReadErrorKind::LoneSurrogate),
        }
    }

    fn hex(&mut self) -> ScanResult<u32> {
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

    fn number(&mut self) -> ScanResult<ScanState> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(ReadErrorKind::Syntax),
        }
        self.short_numbers &= self.at - start <= MAX_SHORT_INTEGER_CHARS;
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
        if self.at - start > MAX_NUMBER_CHARS {
            self.at = start;
            return Err(ReadErrorKind::Number);
        }
        Ok(ScanState::After)
    }

    fn digits(&mut self) -> ScanResult<()> {
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

    fn literal(&mut self, word: &str) -> ScanResult<ScanState> {
        if !self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(word))
        {
            return Err(ReadErrorKind::Syntax);
        }
        self.at += word.len();
        Ok(ScanState::After)
    }

    #[inline(always)]
    fn skip_space(&mut self) {
        self.at += spaces(self.text.as_bytes(), self.at);
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// Number of white space bytes at `at`.
#[inline(always)]
fn spaces(bytes: &[u8], at: usize) -> usize {
    let mut end = at;
    while bytes.get(end).is_some_and(|b| is_space(*b)) {
        end += 1;
    }
    end - at
}
