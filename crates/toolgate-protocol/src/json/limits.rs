//! Limits of the JSON reader, and its errors.

use std::fmt;

/// Limits of the JSON reader for one text: size, nesting depth, members and values.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JsonLimits {
    /// Maximum size of the JSON text in bytes; default 4 MiB.
    pub bytes: usize,
    /// Maximum nesting depth of objects and arrays; default 64, at most [`JsonLimits::MAX_DEPTH`].
    pub depth: usize,
    /// Maximum number of members of one object; default 4096.
    pub keys: usize,
    /// Maximum number of values in one text, including nested ones but not keys; default 100 000.
    pub elements: usize,
}

impl JsonLimits {
    /// Upper bound of [`JsonLimits::depth`]: `serde_json` trees are built and dropped recursively.
    pub const MAX_DEPTH: usize = 128;
}

impl Default for JsonLimits {
    fn default() -> JsonLimits {
        JsonLimits {
            bytes: 4 << 20,
            depth: 64,
            keys: 4096,
            elements: 100_000,
        }
    }
}

/// Error of the strict JSON reader: a reason and a position.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReadError {
    pub(super) kind: ReadErrorKind,
    pub(super) offset: usize,
}

/// Kind of a [`ReadError`]: the violated rule or limit of the JSON reader.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReadErrorKind {
    /// The text is empty.
    Empty,
    /// The text is not UTF-8.
    Utf8,
    /// The text begins with a byte order mark.
    ByteOrderMark,
    /// The text violates the JSON grammar.
    Syntax,
    /// A number has more than 400 characters.
    Number,
    /// A string has a lone surrogate.
    LoneSurrogate,
    /// Other text follows the JSON value.
    TrailingBytes,
    /// An object has a duplicate key, or a key with U+0000.
    DuplicateKey,
    /// The nesting exceeds [`JsonLimits::depth`].
    TooDeep,
    /// The size exceeds [`JsonLimits::bytes`].
    TooLarge,
    /// An object exceeds [`JsonLimits::keys`].
    TooManyKeys,
    /// The number of values exceeds [`JsonLimits::elements`].
    TooManyElements,
    /// The memory budget for messages is exhausted; the sender may retry.
    BudgetExceeded,
}

impl ReadError {
    /// Returns the kind of the error: the violated rule or limit.
    pub fn kind(&self) -> ReadErrorKind {
        self.kind
    }

    /// Returns the byte offset of the error in the JSON text. It is the character that violates the grammar, the start
    /// of a rejected number, object or array, or the end of a rejected key.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the exceeded limit of the JSON reader: the name of its setting, and its value.
    pub fn exceeded(&self, limits: &JsonLimits) -> Option<(&'static str, usize)> {
        Some(match self.kind {
            ReadErrorKind::TooDeep => ("depth", limits.depth.min(JsonLimits::MAX_DEPTH)),
            ReadErrorKind::TooLarge => ("bytes", limits.bytes),
            ReadErrorKind::TooManyKeys => ("keys", limits.keys),
            ReadErrorKind::TooManyElements => ("elements", limits.elements),
            _ => return None,
        })
    }

    /// Returns true if the text is not JSON at all; false if it is JSON that the limits or stricter rules reject.
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
            ReadErrorKind::Empty => "the text is empty",
            ReadErrorKind::Utf8 => "the text is not UTF-8",
            ReadErrorKind::ByteOrderMark => "the text begins with a byte order mark",
            ReadErrorKind::Syntax => "the text is not JSON",
            ReadErrorKind::Number => "a number is longer than 400 characters",
            ReadErrorKind::LoneSurrogate => "a string has a lone surrogate",
            ReadErrorKind::TrailingBytes => "other text follows the JSON value",
            ReadErrorKind::DuplicateKey => "an object has a duplicate key, or a key with U+0000",
            ReadErrorKind::TooDeep => "the JSON is nested too deeply",
            ReadErrorKind::TooLarge => "the JSON is too large",
            ReadErrorKind::TooManyKeys => "an object has too many members",
            ReadErrorKind::TooManyElements => "the JSON has too many values",
            ReadErrorKind::BudgetExceeded => "too many bytes are in flight; try again later",
        };
        write!(f, "{what} (at byte {})", self.offset)
    }
}

impl std::error::Error for ReadError {}
