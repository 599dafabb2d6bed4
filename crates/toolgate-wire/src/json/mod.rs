//! Strict JSON: foreign bytes come in through [`Json::read`] or not at all.

mod canonical;
mod edit;
mod keys;
mod lex;
mod limits;
mod members;
mod number;
mod places;
mod reader;
mod scan;
mod text;
mod value;
mod view;
mod write;

pub use edit::StringAt;
pub use limits::{Limits, ReadError, ReadErrorKind};
pub use members::Members;
pub use text::write_string;
pub use view::View;
pub use write::{ArrayWriter, ObjectWriter};

use crate::room::Claim;
use places::{Found, Places};
use reader::Leniency;
use std::{borrow::Cow, fmt, ops::Range, sync::Arc};

/// One JSON value as text that has passed the strict reader. Cheap to clone; parts share the buffer of the whole, and
/// keep it alive.
#[derive(Clone)]
pub struct Json {
    text: Arc<Text>,
    range: Range<usize>,
}

/// A text, and the room that it takes up, where it is counted. What is made of it shares the claim.
struct Text {
    text: String,
    claim: Option<Arc<Claim>>,
    /// Where members are, as far as the reader took them down.
    places: Places,
    /// Whether the reader saw that none of its numbers is lossy.
    short_numbers: bool,
}

/// What a server wrote, as JSON.
#[derive(Debug)]
pub struct ServerText {
    /// The value.
    pub json: Json,
    /// Whether a key that no object may have was passed over within arrays.
    pub apart: bool,
    /// Whether lone surrogates were replaced.
    pub repaired: bool,
}

/// What a JSON value is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
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

impl Kind {
    fn of(text: &str) -> Kind {
        match text.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') | None => Kind::Null,
            Some(_) => Kind::Number,
        }
    }
}

impl Json {
    /// Reads foreign bytes: UTF-8, no byte order mark, strict grammar, no key twice in one object at any depth, no
    /// lone surrogate, depth and sizes within the limits.
    ///
    /// # Errors
    /// [`ReadError`] says what is wrong and where, without any of the bytes.
    pub fn read(bytes: Vec<u8>, limits: &Limits) -> Result<Json, ReadError> {
        Json::read_for(bytes, limits, Claim::default())
    }

    /// The same, with a claim that is held as long as any part of the text is.
    ///
    /// # Errors
    /// The same, and [`ReadErrorKind::NoRoom`] where the claim cannot cover the text with a tree of its values.
    pub fn read_for(bytes: Vec<u8>, limits: &Limits, claim: Claim) -> Result<Json, ReadError> {
        let text = reader::owned(bytes, limits).map_err(|(error, _)| error)?;
        Json::read_text(text, limits, claim)
    }

    /// The same of bytes that stand in a buffer, where they stay.
    ///
    /// # Errors
    /// The same.
    pub fn read_part_for(bytes: &[u8], limits: &Limits, claim: Claim) -> Result<Json, ReadError> {
        Json::read_text(reader::copied(bytes, limits)?, limits, claim)
    }

    /// The same of what a server wrote, with two repairs.
    ///
    /// - Lone surrogates become U+FFFD, as in most readers.
    /// - Where it `lists`, a key that stands twice, or has a U+0000, is passed over within arrays. Whoever reads such a list
    ///   has to read each of its items with [`Json::read`], so that one bad item does not hide the others.
    ///
    /// # Errors
    /// The same, with the bytes, so that it can be found out what they were meant to be.
    pub fn read_server_for(
        bytes: Vec<u8>,
        limits: &Limits,
        claim: Claim,
        lists: bool,
    ) -> Result<ServerText, (ReadError, Vec<u8>)> {
        let lenient = Leniency {
            apart: lists,
            surrogates: true,
        };
        let read = reader::read(reader::owned(bytes, limits)?, limits, lenient)?;
        let (apart, repaired) = (read.apart, read.repaired);
        Ok(ServerText {
            json: Json::of(read, claim)?,
            apart,
            repaired,
        })
    }

    fn read_text(text: String, limits: &Limits, claim: Claim) -> Result<Json, ReadError> {
        let read = reader::read(text, limits, Leniency::default());
        let json = read.and_then(|read| Json::of(read, claim));
        json.map_err(|(error, _)| error)
    }

    fn of(read: reader::Read, mut claim: Claim) -> Result<Json, (ReadError, Vec<u8>)> {
        if claim.cover(read.weight()).is_err() {
            let error = ReadError {
                kind: ReadErrorKind::NoRoom,
                offset: 0,
            };
            return Err((error, read.text.into_bytes()));
        }
        let claim = (!claim.is_empty()).then(|| Arc::new(claim));
        Ok(Json {
            text: Arc::new(Text {
                text: read.text,
                claim,
                places: read.places,
                short_numbers: read.short_numbers,
            }),
            range: read.range,
        })
    }

    /// The claim that is held for it, where it is counted and not small.
    pub fn claim(&self) -> Option<Arc<Claim>> {
        self.text.claim.clone()
    }

    /// The same text, which holds this claim.
    pub fn holding(mut self, claim: Option<Arc<Claim>>) -> Json {
        if claim.is_none() {
            return self;
        }
        match Arc::get_mut(&mut self.text) {
            Some(text) => {
                text.claim = claim;
                self
            }
            None => Json::made(self.as_str().to_owned(), claim),
        }
    }

    /// A value of our own.
    pub fn from_value(value: &serde_json::Value) -> Json {
        // Its `Display` goes through a formatter; this does not.
        let text = serde_json::to_string(value);
        Json::own(text.unwrap_or_else(|_| value.to_string()))
    }

    /// Text that this program wrote itself.
    pub(crate) fn own(text: String) -> Json {
        Json::made(text, None)
    }

    fn made(text: String, claim: Option<Arc<Claim>>) -> Json {
        let range = 0..text.len();
        Json {
            text: Arc::new(Text {
                text,
                claim,
                places: Places::default(),
                short_numbers: false,
            }),
            range,
        }
    }

    /// Text that was made of this one.
    fn after(&self, text: String) -> Json {
        Json::made(text, self.claim())
    }

    /// A tree of it. A number that no machine type holds becomes the nearest `f64`, or its text as a string where it is
    /// beyond all; [`Json::lossy`] tells. What a program nested deeper than [`Limits::DEEPEST`] becomes its text.
    pub fn to_value(&self) -> serde_json::Value {
        self.to_value_and_loss().0
    }

    /// The same, and whether it is [`Json::lossy`], in one pass.
    pub fn to_value_and_loss(&self) -> (serde_json::Value, bool) {
        // Where the members are known, their ends need not be looked for.
        if let Found::Known { .. } = self.found()
            && self.kind() == Kind::Object
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

    /// The text.
    pub fn as_str(&self) -> &str {
        self.text.text.get(self.range.clone()).unwrap_or("null")
    }

    fn part(&self, range: Range<usize>) -> Json {
        Json {
            text: self.text.clone(),
            range: self.range.start + range.start..self.range.start + range.end,
        }
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        Kind::of(self.as_str())
    }

    /// The members of an object, in their order; none for anything else.
    pub fn members(&self) -> impl Iterator<Item = (Cow<'_, str>, Json)> {
        self.found().map(|m| (m.said(), self.part(m.value)))
    }

    /// The items of an array; none for anything else.
    pub fn items(&self) -> impl Iterator<Item = Json> {
        lex::items(self.as_str()).map(|item| self.part(item))
    }

    /// The members of an object, found once: for who asks for many of them.
    pub fn index(&self) -> Members {
        Members::of(self)
    }

    /// A member of an object.
    pub fn get(&self, key: &str) -> Option<Json> {
        let known = self.text.places.find(&self.text.text, &self.range, key);
        let value = known.unwrap_or_else(|()| {
            let mut members = lex::members(self.as_str());
            Some(members.find(|m| lex::says(m.key, key))?.value)
        });
        value.map(|value| self.part(value))
    }

    fn found(&self) -> Found<'_> {
        Found::of(&self.text.places, &self.text.text, self.range.clone())
    }

    /// The text of a string.
    pub fn string(&self) -> Option<String> {
        self.str_cow().map(Cow::into_owned)
    }

    /// The beginning of the text of a string: at most so many bytes, in whole characters. No more of it is copied.
    pub fn string_up_to(&self, max_bytes: usize) -> Option<String> {
        text::up_to(self.as_str(), max_bytes)
    }

    /// A copy that keeps nothing alive but itself, and holds no claim: for a small part of a large text that is kept.
    pub fn detached(&self) -> Json {
        Json::own(self.as_str().to_owned())
    }

    /// The text of a string, without a copy where it has no escapes.
    pub fn str_cow(&self) -> Option<Cow<'_, str>> {
        text::of_string(self.as_str())
    }

    /// `true` or `false`.
    pub fn bool(&self) -> Option<bool> {
        self.as_str().parse().ok()
    }

    /// An integer, also one that is written with a fraction of nought or an exponent.
    pub fn i64(&self) -> Option<i64> {
        // Most are written without either.
        let plain = self.as_str().parse().ok();
        plain.or_else(|| self.whole()?.parse().ok())
    }

    /// The same for those that are not negative.
    pub fn u64(&self) -> Option<u64> {
        self.whole()?.parse().ok()
    }

    fn whole(&self) -> Option<Cow<'_, str>> {
        if self.kind() != Kind::Number {
            return None;
        }
        number::whole(self.as_str())
    }

    /// A number, rounded to what the type holds; `None` beyond its range.
    pub fn f64(&self) -> Option<f64> {
        if self.kind() != Kind::Number {
            return None;
        }
        self.as_str().parse().ok().filter(|n: &f64| n.is_finite())
    }

    /// Whether both are numbers, and the same one to the last digit: `42` and `4.2e1` are.
    pub fn same_number(&self, other: &Json) -> bool {
        self.kind() == Kind::Number
            && other.kind() == Kind::Number
            && number::same(self.as_str(), other.as_str())
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.kind() == Kind::Null
    }

    /// Whether some number in it does not survive [`Json::to_value`]: an integer beyond `i64` and `u64`, or one with a
    /// point or an exponent whose shortest `f64` form has another value.
    pub fn lossy(&self) -> bool {
        !self.text.short_numbers && number::lossy(self.as_str())
    }

    /// The form of ours that digests are made of, `toolgate-json-1`: no white space, members sorted by the bytes of
    /// their keys, strings escaped as little as possible, numbers to the letter.
    pub fn canonical(&self) -> String {
        canonical::canonical(self.as_str())
    }

    /// Lets `f` see every string and every key, and puts what it returns in their place. All other bytes stay.
    /// `None` when nothing changed.
    ///
    /// Keys that `f` makes equal stay, both of them: who lets it change keys reads the outcome again.
    pub fn map_strings(&self, f: &mut dyn FnMut(StringAt<'_>) -> Option<String>) -> Option<Json> {
        edit::map_strings(self.as_str(), f).map(|text| self.after(text))
    }

    /// The object without a member; all other bytes stay. Anything else stays as it is.
    pub fn without(&self, key: &str) -> Json {
        edit::without(self.as_str(), key).map_or_else(|| self.clone(), |text| self.after(text))
    }

    /// The object with a member replaced in its place, or added at its end; all other bytes stay. Anything else becomes
    /// an object of this member.
    pub fn with(&self, key: &str, value: &Json) -> Json {
        self.after(edit::with(self.as_str(), key, value))
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Json) -> bool {
        self.as_str() == other.as_str()
    }
}

impl fmt::Debug for Json {
    /// Kind and length, never the text: it may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({:?}, {} bytes)", self.kind(), self.as_str().len())
    }
}
