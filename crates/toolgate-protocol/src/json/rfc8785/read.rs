//! Reader that accepts only the canonical form.

use super::{MAX_INTEGER, compare_keys, write_string};
use crate::json::{
    Json, JsonKind, JsonLimits, ReadError, ReadErrorKind,
    lexer::{JsonLexer, JsonToken},
    reader::{self, ReaderLeniency},
    scan::is_space,
    text::unescape,
};
use std::borrow::Cow;

/// Maximum nesting depth of a record that is read.
pub(super) const MAX_RECORD_DEPTH: usize = 64;

/// Reason why a JSON text is not a canonical audit record.
pub type JsonFlaw = &'static str;

const NOT_JSON: JsonFlaw = "it is not valid JSON";
const NOT_OBJECT: JsonFlaw = "it is not an object";
const WHITE_SPACE: JsonFlaw = "it has white space outside of strings";
const UNSORTED: JsonFlaw = "the keys of an object are unsorted, or one occurs twice";
pub(super) const TOO_DEEP: JsonFlaw = "it is nested too deeply";
const TRAILING: JsonFlaw = "other text follows the object";
const ODD_ESCAPE: JsonFlaw = "a string has an escape that is not canonical";
const ODD_SCALAR: JsonFlaw = "a value is null, or a number that is not a canonical integer";

/// Reads a JSON object that is already in canonical form, byte for byte.
///
/// # Errors
/// The bytes are not JSON, not an object, or another spelling of it.
pub fn read_object(bytes: &[u8]) -> Result<Json, JsonFlaw> {
    let json = Json::read_stored(bytes).map_err(|error| match error.kind() {
        ReadErrorKind::Utf8 => "it is not UTF-8",
        ReadErrorKind::DuplicateKey => UNSORTED,
        ReadErrorKind::TooDeep => TOO_DEEP,
        ReadErrorKind::TrailingBytes => TRAILING,
        ReadErrorKind::LoneSurrogate => ODD_ESCAPE,
        ReadErrorKind::Number => ODD_SCALAR,
        _ => NOT_JSON,
    })?;
    if !bytes.starts_with(b"{") {
        return Err(match json.kind() {
            JsonKind::Object => WHITE_SPACE,
            _ => NOT_OBJECT,
        });
    }
    if json.as_str().len() != bytes.len() {
        return Err(TRAILING);
    }
    check_spelling(json.as_str())?;
    Ok(json)
}

/// Checks that valid text is spelled canonically.
fn check_spelling(text: &str) -> Result<(), JsonFlaw> {
    // The last key of each open object.
    let mut open: Vec<Option<Cow<'_, str>>> = Vec::new();
    let mut end = 0;
    for (token, range) in JsonLexer::new(text) {
        // Between the tokens of valid text are separators and white space.
        let gap = text.as_bytes().get(end..range.start).unwrap_or_default();
        if gap.iter().any(|byte| is_space(*byte)) {
            return Err(WHITE_SPACE);
        }
        end = range.end;
        match token {
            JsonToken::Close => {
                open.pop();
                continue;
            }
            JsonToken::Key(inner) => {
                check_escapes(inner)?;
                check_order(open.last_mut(), unescape(inner))?;
                continue;
            }
            JsonToken::String(inner) => check_escapes(inner)?,
            JsonToken::Scalar(word) => check_scalar(word)?,
            JsonToken::Open(_) => {}
        }
        if open.len() >= MAX_RECORD_DEPTH {
            return Err(TOO_DEEP);
        }
        if let JsonToken::Open(_) = token {
            open.push(None);
        }
    }
    Ok(())
}

fn check_order<'a>(
    last: Option<&mut Option<Cow<'a, str>>>,
    key: Cow<'a, str>,
) -> Result<(), JsonFlaw> {
    let Some(last) = last else { return Ok(()) };
    if last
        .as_ref()
        .is_some_and(|last| compare_keys(last, &key).is_ge())
    {
        return Err(UNSORTED);
    }
    *last = Some(key);
    Ok(())
}

fn check_escapes(inner: &str) -> Result<(), JsonFlaw> {
    let Cow::Owned(text) = unescape(inner) else {
        return Ok(());
    };
    let mut canonical = String::with_capacity(inner.len() + 2);
    write_string(&mut canonical, &text);
    let same = canonical.get(1..canonical.len() - 1) == Some(inner);
    if same { Ok(()) } else { Err(ODD_ESCAPE) }
}

fn check_scalar(word: &str) -> Result<(), JsonFlaw> {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let small = digits.parse::<u64>().is_ok_and(|size| size <= MAX_INTEGER);
    match word {
        "true" | "false" => Ok(()),
        _ if small && word != "-0" => Ok(()),
        _ => Err(ODD_SCALAR),
    }
}

impl Json {
    /// Reads JSON text that this program stored, like [`Json::read`], without configurable limits. The depth is at most
    /// [`JsonLimits::MAX_DEPTH`], and keys may contain U+0000.
    ///
    /// # Errors
    /// Fails like [`Json::read`].
    pub fn read_stored(bytes: &[u8]) -> Result<Json, ReadError> {
        let limits = JsonLimits {
            bytes: usize::MAX,
            depth: JsonLimits::MAX_DEPTH,
            keys: usize::MAX,
            elements: usize::MAX,
        };
        let lenient = ReaderLeniency {
            nul_keys: true,
            ..ReaderLeniency::default()
        };
        let read = reader::read(reader::copied(bytes, &limits)?, &limits, lenient);
        let json = read.and_then(|read| Json::of(read, Default::default()));
        json.map_err(|(error, _)| error)
    }
}
