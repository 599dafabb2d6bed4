//! Strict JSON: untrusted bytes enter only through [`Json::read`] and its variants.
//!
//! There are two canonical forms: [`Json::canonical`] for digests of definitions and arguments, and [`rfc8785`] for audit
//! records.

mod canonical;
mod deserialize;
mod edit;
mod keys;
mod lexer;
mod limits;
mod member_index;
mod member_positions;
mod number;
mod reader;
pub mod rfc8785;
mod scan;
mod serialize;
mod text;
mod value;
mod view;
mod write;

pub use edit::StringAt;
pub use limits::{JsonLimits, ReadError, ReadErrorKind};
pub use member_index::MemberIndex;
pub use text::write_string;
pub use view::JsonView;
pub use write::{ArrayWriter, ObjectWriter};

use crate::memory_budget::MemoryPermit;
use member_positions::{MemberIter, MemberPositions};
use reader::ReaderLeniency;
use std::{borrow::Cow, fmt, ops::Range, sync::Arc};

/// JSON value as text that has passed the strict reader. Cheap to clone; parts share the buffer of the whole and keep
/// it alive.
///
/// It can be a field of your own types: `serde_json` reads and writes the raw text.
///
/// ```
/// use toolgate_protocol::json::Json;
///
/// let text = r#"{"big":18446744073709551616,"exact":1.10}"#;
/// let json: Json = serde_json::from_str(text)?;
/// assert_eq!(serde_json::to_string(&json)?, text);
/// assert!(serde_json::from_str::<Json>(r#"{"a":1,"a":2}"#).is_err(), "the strict reader reads it");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone)]
pub struct Json {
    text: Arc<JsonText>,
    range: Range<usize>,
}

/// Text with the memory permit that covers it, if it is counted. Values derived from it share the permit.
struct JsonText {
    text: String,
    permit: Option<Arc<MemoryPermit>>,
    /// Positions of members, as far as the reader recorded them.
    positions: MemberPositions,
    /// True if the reader found no number that could be lossy.
    short_numbers: bool,
}

/// JSON text that a server sent, read with two repairs of invalid strings and keys.
#[derive(Debug)]
pub struct ServerText {
    /// JSON value of the server's text, after the repairs.
    pub json: Json,
    /// True if the text has a duplicate key, or a key with U+0000, that was accepted within an array.
    pub has_duplicate_keys: bool,
    /// True if lone surrogates in the text were replaced by U+FFFD.
    pub repaired: bool,
}

/// Type of a JSON value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum JsonKind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// A number.
    Number,
    /// `true` or `false`
    Bool,
    /// `null`
    Null,
}

impl JsonKind {
    /// Returns the type of the value that begins at a position of validated text.
    fn at(text: &str, start: usize) -> JsonKind {
        match text.as_bytes().get(start) {
            Some(b'{') => JsonKind::Object,
            Some(b'[') => JsonKind::Array,
            Some(b'"') => JsonKind::String,
            Some(b't' | b'f') => JsonKind::Bool,
            Some(b'n') | None => JsonKind::Null,
            Some(_) => JsonKind::Number,
        }
    }
}

impl Json {
    /// Reads untrusted bytes as strict JSON within size and depth limits. It accepts UTF-8 without byte order mark, no
    /// duplicate key at any depth, and no lone surrogate.
    ///
    /// # Errors
    /// Returns a [`ReadError`] with a reason and a position, without any of the bytes.
    pub fn read(bytes: Vec<u8>, limits: &JsonLimits) -> Result<Json, ReadError> {
        Json::read_with_permit(bytes, limits, MemoryPermit::default())
    }

    /// Reads untrusted bytes like [`Json::read`], and ties a memory permit to the text and all of its parts.
    ///
    /// # Errors
    /// Fails like [`Json::read`], and with [`ReadErrorKind::BudgetExceeded`] if the permit cannot cover the text and a tree of
    /// its values.
    pub fn read_with_permit(
        bytes: Vec<u8>,
        limits: &JsonLimits,
        permit: MemoryPermit,
    ) -> Result<Json, ReadError> {
        let text = reader::owned(bytes, limits).map_err(|(error, _)| error)?;
        Json::read_text(text, limits, permit)
    }

    /// Reads untrusted bytes like [`Json::read_with_permit`], copying them from a borrowed buffer.
    ///
    /// # Errors
    /// Fails like [`Json::read_with_permit`].
    pub fn read_slice_with_permit(
        bytes: &[u8],
        limits: &JsonLimits,
        permit: MemoryPermit,
    ) -> Result<Json, ReadError> {
        Json::read_text(reader::copied(bytes, limits)?, limits, permit)
    }

    /// Reads untrusted bytes of a server like [`Json::read_with_permit`], with two repairs.
    ///
    /// - Lone surrogates become U+FFFD, as in most JSON readers.
    /// - If it `lists`, a duplicate key, or one with U+0000, is accepted within arrays. The caller must read each item
    ///   of the list with [`Json::read`], so that one bad item does not hide the others.
    ///
    /// # Errors
    /// Fails like [`Json::read_with_permit`], and returns the bytes for classification.
    pub fn read_server_text(
        bytes: Vec<u8>,
        limits: &JsonLimits,
        permit: MemoryPermit,
        lists: bool,
    ) -> Result<ServerText, (ReadError, Vec<u8>)> {
        let lenient = ReaderLeniency {
            duplicate_keys: lists,
            nul_keys: false,
            surrogates: true,
        };
        let read = reader::read(reader::owned(bytes, limits)?, limits, lenient)?;
        let (apart, repaired) = (read.has_duplicate_keys, read.repaired);
        Ok(ServerText {
            json: Json::of(read, permit)?,
            has_duplicate_keys: apart,
            repaired,
        })
    }

    fn read_text(
        text: String,
        limits: &JsonLimits,
        claim: MemoryPermit,
    ) -> Result<Json, ReadError> {
        let read = reader::read(text, limits, ReaderLeniency::default());
        let json = read.and_then(|read| Json::of(read, claim));
        json.map_err(|(error, _)| error)
    }

    fn of(read: reader::ReadText, mut claim: MemoryPermit) -> Result<Json, (ReadError, Vec<u8>)> {
        if claim.cover_if_large(read.weight()).is_err() {
            let error = ReadError {
                kind: ReadErrorKind::BudgetExceeded,
                offset: 0,
            };
            return Err((error, read.text.into_bytes()));
        }
        let claim = (!claim.is_empty()).then(|| Arc::new(claim));
        Ok(Json {
            text: Arc::new(JsonText {
                text: read.text,
                permit: claim,
                positions: read.positions,
                short_numbers: read.short_numbers,
            }),
            range: read.range,
        })
    }

    /// Returns the memory permit that the JSON text holds; `None` if it is small or not counted.
    pub fn permit(&self) -> Option<Arc<MemoryPermit>> {
        self.text.permit.clone()
    }

    /// Returns the same JSON text, holding this memory permit until its last clone is dropped.
    pub fn with_permit(mut self, permit: Option<Arc<MemoryPermit>>) -> Json {
        if permit.is_none() {
            return self;
        }
        match Arc::get_mut(&mut self.text) {
            Some(text) => {
                text.permit = permit;
                self
            }
            None => Json::from_parts(self.as_str().to_owned(), permit),
        }
    }

    /// Creates a [`Json`] from a `serde_json` value.
    pub fn from_value(value: &serde_json::Value) -> Json {
        // `Display` goes through a formatter, which `to_string` avoids.
        let text = serde_json::to_string(value);
        Json::from_trusted_text(text.unwrap_or_else(|_| value.to_string()))
    }

    /// Wraps text that this program wrote.
    pub(crate) fn from_trusted_text(text: String) -> Json {
        Json::from_parts(text, None)
    }

    fn from_parts(text: String, claim: Option<Arc<MemoryPermit>>) -> Json {
        let range = 0..text.len();
        Json {
            text: Arc::new(JsonText {
                text,
                permit: claim,
                positions: MemberPositions::default(),
                short_numbers: false,
            }),
            range,
        }
    }

    /// Wraps text that was derived from this one, sharing its memory permit.
    fn derived(&self, text: String) -> Json {
        Json::from_parts(text, self.permit())
    }

    /// Converts the value to a `serde_json` tree. A number without a machine type becomes the nearest `f64`, or a
    /// string beyond the range of `f64`; see [`Json::is_lossy`]. Values that this program nested deeper than
    /// [`JsonLimits::MAX_DEPTH`] become strings of their JSON text.
    pub fn to_value(&self) -> serde_json::Value {
        self.to_value_and_loss().0
    }

    /// Converts the value to a `serde_json` tree; also returns [`Json::is_lossy`], in one pass.
    pub fn to_value_and_loss(&self) -> (serde_json::Value, bool) {
        // With known members, the ends of their values need no scan.
        if let MemberIter::Indexed { .. } = self.members_in()
            && self.kind() == JsonKind::Object
        {
            let mut lossy = false;
            let members = self.members().map(|(key, member)| {
                let (value, loss) = value::read(member.as_str());
                lossy |= loss;
                (key.into_owned(), value)
            });
            let tree = members.collect();
            return (tree, lossy);
        }
        value::read(self.as_str())
    }

    /// Returns the value as JSON text.
    pub fn as_str(&self) -> &str {
        self.text.text.get(self.range.clone()).unwrap_or("null")
    }

    fn slice(&self, range: Range<usize>) -> Json {
        Json {
            text: self.text.clone(),
            range: self.range.start + range.start..self.range.start + range.end,
        }
    }

    /// Returns whether both values are the same part of the same text in memory, and thus equal.
    #[doc(hidden)]
    pub fn is_same_text(&self, other: &Json) -> bool {
        Arc::ptr_eq(&self.text, &other.text) && self.range == other.range
    }

    /// Returns the place of this value in the text of a value that contains it.
    #[doc(hidden)]
    pub fn range_in(&self, whole: &Json) -> Option<Range<usize>> {
        let is_inside = Arc::ptr_eq(&self.text, &whole.text)
            && whole.range.start <= self.range.start
            && self.range.end <= whole.range.end;
        let from = |place: usize| place - whole.range.start;
        is_inside.then(|| from(self.range.start)..from(self.range.end))
    }

    /// Returns the type of the JSON value: object, array, string, number, boolean or null.
    pub fn kind(&self) -> JsonKind {
        JsonKind::at(&self.text.text, self.range.start)
    }

    /// Returns the members of a JSON object as key and value, in their order; none for other values.
    pub fn members(&self) -> impl Iterator<Item = (Cow<'_, str>, Json)> {
        self.members_in()
            .map(|m| (m.unescaped_key(), self.slice(m.value)))
    }

    /// Returns the items of a JSON array; none for other values.
    pub fn items(&self) -> impl Iterator<Item = Json> {
        lexer::items(self.as_str()).map(|item| self.slice(item))
    }

    /// Returns an index of a JSON object's members, for many lookups.
    pub fn index(&self) -> MemberIndex {
        MemberIndex::of(self)
    }

    /// Returns the value of the object's member with this key.
    pub fn get(&self, key: &str) -> Option<Json> {
        let known = self.text.positions.find(&self.text.text, &self.range, key);
        let value = known.unwrap_or_else(|()| {
            let mut members = lexer::members(self.as_str());
            Some(members.find(|m| lexer::key_equals(m.key, key))?.value)
        });
        value.map(|value| self.slice(value))
    }

    fn members_in(&self) -> MemberIter<'_> {
        MemberIter::of(&self.text.positions, &self.text.text, self.range.clone())
    }

    /// Returns the unescaped text of a JSON string; `None` for other values.
    pub fn string(&self) -> Option<String> {
        self.str_cow().map(Cow::into_owned)
    }

    /// Returns the beginning of a JSON string's unescaped text: at most `max_bytes` bytes, in whole characters. Copies
    /// no more than that.
    pub fn string_up_to(&self, max_bytes: usize) -> Option<String> {
        text::string_up_to(self.as_str(), max_bytes)
    }

    /// Returns a copy of the JSON value that neither keeps the shared buffer alive nor holds its memory permit. Use it
    /// to store a small part of a large text.
    pub fn detached(&self) -> Json {
        Json::from_trusted_text(self.as_str().to_owned())
    }

    /// Returns the unescaped text of a JSON string, borrowed if it has no escapes; `None` for other values.
    pub fn str_cow(&self) -> Option<Cow<'_, str>> {
        text::of_string(self.as_str())
    }

    /// Returns the value of a JSON boolean; `None` for other values.
    pub fn bool(&self) -> Option<bool> {
        self.as_str().parse().ok()
    }

    /// Returns the value of a JSON integer, even if written with a zero fraction or an exponent.
    pub fn i64(&self) -> Option<i64> {
        // Most integers have neither.
        let plain = self.as_str().parse().ok();
        plain.or_else(|| self.whole_number()?.parse().ok())
    }

    /// Returns the value of a non-negative JSON integer, with the spellings of [`Json::i64`].
    pub fn u64(&self) -> Option<u64> {
        self.whole_number()?.parse().ok()
    }

    fn whole_number(&self) -> Option<Cow<'_, str>> {
        if self.kind() != JsonKind::Number {
            return None;
        }
        number::whole_number(self.as_str())
    }

    /// Returns the value of a JSON number, rounded to `f64`; `None` beyond its range.
    pub fn f64(&self) -> Option<f64> {
        if self.kind() != JsonKind::Number {
            return None;
        }
        self.as_str().parse().ok().filter(|n: &f64| n.is_finite())
    }

    /// Returns true if both values are JSON numbers and exactly equal, for example `42` and `4.2e1`.
    pub fn same_number(&self, other: &Json) -> bool {
        self.kind() == JsonKind::Number
            && other.kind() == JsonKind::Number
            && number::same_number(self.as_str(), other.as_str())
    }

    /// Returns true if the JSON value is `null`.
    pub fn is_null(&self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// Returns true if [`Json::to_value`] cannot represent some number of the value exactly. Such a number is an
    /// integer beyond `i64` and `u64`, or has a fraction or exponent and a shortest `f64` form of another value.
    pub fn is_lossy(&self) -> bool {
        !self.text.short_numbers && number::lossy(self.as_str())
    }

    /// Returns the canonical JSON of the value, in the form for digests of definitions (`toolgate-json-1`). It has no
    /// white space, members sorted by the bytes of their keys, strings with minimal escapes, and numbers unchanged.
    pub fn canonical(&self) -> String {
        canonical::canonical(self.as_str())
    }

    /// Replaces strings and object keys, at any depth, by the results of `f`; `f` returns `None` to keep one. All other
    /// bytes stay. Returns `None` if nothing changed.
    ///
    /// Keys that `f` makes equal both stay, so a caller that changes keys must read the result again.
    pub fn map_strings(&self, f: &mut dyn FnMut(StringAt<'_>) -> Option<String>) -> Option<Json> {
        edit::map_strings(self.as_str(), f).map(|text| self.derived(text))
    }

    /// Returns the object without the member of this key; all other bytes stay. Other values stay unchanged.
    pub fn without(&self, key: &str) -> Json {
        edit::without(self.as_str(), key).map_or_else(|| self.clone(), |text| self.derived(text))
    }

    /// Returns the object with this member replaced, or appended at its end; all other bytes stay. Other values become
    /// an object of this member.
    pub fn with(&self, key: &str, value: &Json) -> Json {
        self.derived(edit::with(self.as_str(), key, value))
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Json) -> bool {
        self.as_str() == other.as_str()
    }
}

impl fmt::Debug for Json {
    /// Writes type and length, never the text, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({:?}, {} bytes)", self.kind(), self.as_str().len())
    }
}
