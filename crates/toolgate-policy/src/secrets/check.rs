//! Whether what a rule found is a secret at all, or only stands where one would.

/// What a secret must be besides fitting the pattern of its rule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Check {
    /// Nothing: the pattern says enough.
    None,
    /// No placeholder.
    Word,
    /// No placeholder, and letters with digits or signs.
    Mixed,
    /// No placeholder, and as many kinds of characters as chance would give.
    Random,
}

impl Check {
    pub(super) fn holds(self, found: &str) -> bool {
        // What was redacted before: cleaning twice changes nothing more.
        if is_redacted(found) {
            return false;
        }
        match self {
            Check::None => true,
            Check::Word => !placeholder(found),
            Check::Mixed => mixed(found) && !placeholder(found) && !code(found),
            Check::Random => entropy(found) > 3.0 && !placeholder(found),
        }
    }
}

fn is_redacted(text: &str) -> bool {
    let inner = text
        .strip_prefix(super::MARK)
        .and_then(|t| t.strip_suffix(']'));
    inner.is_some_and(|rule| {
        rule.bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    })
}

/// Words that people write where a secret belongs.
const STAND_INS: [&str; 19] = [
    "your",
    "example",
    "placeholder",
    "changeme",
    "change-me",
    "change_me",
    "xxxx",
    "****",
    "....",
    "dummy",
    "sample",
    "todo",
    "insert",
    "replace",
    "${",
    "{{",
    "%s",
    "[redacted",
    "redacted]",
];

/// Words that are no secret where they stand alone.
const PLAIN: [&str; 14] = [
    "password", "passwd", "pass", "pw", "pwd", "secret", "token", "user", "test", "foo", "bar",
    "null", "none", "x",
];

fn placeholder(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut bytes = lower.bytes();
    let first = bytes.next();
    PLAIN.contains(&lower.as_str())
        || text.starts_with(['$', '<', '%', '{', '*'])
        || bytes.all(|b| Some(b) == first)
        || STAND_INS.iter().any(|word| lower.contains(word))
}

/// Letters, and besides digits, or signs that prose does not end with.
fn mixed(text: &str) -> bool {
    let letter = text.bytes().any(|b| b.is_ascii_alphabetic());
    let other = |b: u8| b.is_ascii_digit() || matches!(b, b'!' | b'#' | b'@' | b'^' | b'~' | b'&');
    letter && text.bytes().any(other)
}

/// Words of a program: a path of names such as `process.env.KEY_2`, or a name in one piece such as `read_token_2`.
fn code(text: &str) -> bool {
    let name = |part: &str| {
        let mut chars = part.bytes();
        chars
            .next()
            .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
            && chars.all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let parts: Vec<&str> = text.split(['.', '-']).collect();
    let long = parts
        .iter()
        .any(|part| part.len() > 16 && entropy(part) > 3.5);
    let upper = text
        .bytes()
        .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    (parts.len() > 1 && !long && parts.iter().all(|part| name(part)))
        || (upper && text.contains('_'))
        || (text.contains("::") && !long)
}

/// Bits of a character, by how often each comes.
fn entropy(text: &str) -> f64 {
    let mut seen = [0_u32; 256];
    text.bytes().for_each(|b| seen[usize::from(b)] += 1);
    let all = text.len().max(1) as f64;
    let bits = seen.iter().filter(|n| **n > 0).map(|n| {
        let share = f64::from(*n) / all;
        -share * share.log2()
    });
    bits.sum()
}
