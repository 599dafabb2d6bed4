//! What the reader takes, and how it says no.

use std::fmt;

/// What is taken of one message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Bytes of the whole text; 4 MiB unless set.
    pub bytes: usize,
    /// Levels that objects and arrays may nest; 64 unless set. More than [`Limits::DEEPEST`] counts as that.
    pub depth: usize,
    /// Members of one object; 4096 unless set.
    pub keys: usize,
    /// Values in all, those inside others too, keys not; 100 000 unless set.
    pub elements: usize,
}

impl Limits {
    /// Levels that no setting goes beyond: trees of others are built and dropped by recursion.
    pub const DEEPEST: usize = 128;
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            bytes: 4 << 20,
            depth: 64,
            keys: 4096,
            elements: 100_000,
        }
    }
}

/// Why bytes are not taken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReadError {
    pub(super) kind: ReadErrorKind,
    pub(super) offset: usize,
}

/// The kinds of [`ReadError`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReadErrorKind {
    /// Nothing is there.
    Empty,
    /// It is no UTF-8.
    Utf8,
    /// It begins with a byte order mark.
    ByteOrderMark,
    /// It breaks the grammar.
    Syntax,
    /// A number of more than 400 signs.
    Number,
    /// Half a pair of surrogates.
    LoneSurrogate,
    /// More than one value.
    TrailingBytes,
    /// One key twice in an object, or a key with U+0000.
    DuplicateKey,
    /// Over [`Limits::depth`].
    TooDeep,
    /// Over [`Limits::bytes`].
    TooLarge,
    /// Over [`Limits::keys`].
    TooManyKeys,
    /// Over [`Limits::elements`].
    TooManyElements,
    /// There is no room for it right now.
    NoRoom,
}

impl ReadError {
    /// What is wrong.
    pub fn kind(&self) -> ReadErrorKind {
        self.kind
    }

    /// Where, in bytes from the start: the sign that breaks the grammar, the start of the number, object or array that
    /// is not taken, or the end of such a key.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the limit that the text exceeds, by the name of its setting, and the limit itself.
    pub fn exceeded(&self, limits: &Limits) -> Option<(&'static str, usize)> {
        Some(match self.kind {
            ReadErrorKind::TooDeep => ("depth", limits.depth.min(Limits::DEEPEST)),
            ReadErrorKind::TooLarge => ("bytes", limits.bytes),
            ReadErrorKind::TooManyKeys => ("keys", limits.keys),
            ReadErrorKind::TooManyElements => ("elements", limits.elements),
            _ => return None,
        })
    }

    /// Whether the text is no JSON at all; else it is JSON that is not taken.
    pub fn is_syntax(&self) -> bool {
        use ReadErrorKind as K;
        matches!(
            self.kind,
            K::Empty | K::Utf8 | K::ByteOrderMark | K::Syntax | K::TrailingBytes | K::LoneSurrogate
        )
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            ReadErrorKind::Empty => "there is no JSON value",
            ReadErrorKind::Utf8 => "the text is not UTF-8",
            ReadErrorKind::ByteOrderMark => "the text begins with a byte order mark",
            ReadErrorKind::Syntax => "the text is not JSON",
            ReadErrorKind::Number => "a number is too long",
            ReadErrorKind::LoneSurrogate => "a string has half a surrogate pair",
            ReadErrorKind::TrailingBytes => "something follows the JSON value",
            ReadErrorKind::DuplicateKey => "a key stands twice in one object, or has a U+0000",
            ReadErrorKind::TooDeep => "the JSON is nested too deep",
            ReadErrorKind::TooLarge => "the JSON is too large",
            ReadErrorKind::TooManyKeys => "an object has too many members",
            ReadErrorKind::TooManyElements => "the JSON has too many values",
            ReadErrorKind::NoRoom => "too many bytes are in flight for it; try again later",
        };
        write!(f, "{what} (at byte {})", self.offset)
    }
}

impl std::error::Error for ReadError {}
