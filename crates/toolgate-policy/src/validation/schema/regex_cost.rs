//! Cost estimate of a regular expression, per byte of text.
//!
//! The engine takes linear time, but may visit every state for each character. `(a{1,50}){1,50}` has some thousand
//! states in a dozen characters.

/// Worst-case nanoseconds for one state and one byte in a release build: a repetition in a repetition.
const NANOS_PER_STATE_BYTE: u64 = 80;
/// Maximum number of states for which all combinations fit into the engine's cached DFA.
const MAX_CACHED_DFA_STATES: u64 = 10;

/// Returns the worst-case nanoseconds for one byte of text.
pub(super) fn cost(pattern: &str) -> u64 {
    let size = size(pattern);
    if size.states <= MAX_CACHED_DFA_STATES && ascii(pattern) {
        return 5;
    }
    size.alive.saturating_mul(NANOS_PER_STATE_BYTE)
}

/// Returns whether the pattern has no Unicode or predefined class: such a class needs many states of its own.
fn ascii(pattern: &str) -> bool {
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if !c.is_ascii() || c == '\\' && chars.next().is_none_or(|c| c.is_ascii_alphabetic()) {
            return false;
        }
    }
    true
}

/// The size of a regular expression.
#[derive(Debug, Eq, PartialEq)]
struct RegexSize {
    /// Its length with counted repetitions expanded; at least 1.
    states: u64,
    /// Maximum number of states that are active for one character.
    alive: u64,
}

fn size(pattern: &str) -> RegexSize {
    // The largest repetition count.
    let mut longest = 0_u64;
    // For each open group, the sum so far; then the size of the last element in it.
    let mut open = vec![0_u64];
    let mut last = 0_u64;
    let mut rest = pattern.chars().peekable();
    let mut class = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                rest.next();
                last = 1;
            }
            '[' if !class => {
                class = true;
                last = 1;
            }
            ']' if class => {
                class = false;
                last = 1;
            }
            _ if class => continue,
            '(' => {
                open.push(0);
                last = 0;
                continue;
            }
            ')' if open.len() > 1 => last = open.pop().unwrap_or(1),
            '{' => {
                let count = largest(&mut rest);
                longest = longest.max(count);
                last = last.saturating_mul(count.saturating_sub(1));
            }
            _ => last = 1,
        }
        if class {
            continue;
        }
        if let Some(sum) = open.last_mut() {
            *sum = sum.saturating_add(last);
        }
        if c == '{' {
            last = 0;
        }
    }
    let states = open.into_iter().fold(0, u64::saturating_add).max(1);
    // An anchored sequence without groups: in its longest repetition only one state is active.
    let row = pattern.starts_with('^') && !pattern.contains(['(', '|']);
    let alive = match row {
        true => states.saturating_sub(longest).saturating_add(1),
        false => states,
    };
    RegexSize { states, alive }
}

/// Returns the larger number of `{1,50}`, after the brace; at least 1.
fn largest(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> u64 {
    let (mut most, mut number) = (1, 0_u64);
    while let Some(c) = rest.next_if(|c| c.is_ascii_digit() || *c == ',') {
        match c.to_digit(10) {
            Some(digit) => number = number.saturating_mul(10).saturating_add(digit.into()),
            None => number = 0,
        }
        most = most.max(number);
    }
    rest.next_if_eq(&'}');
    most
}

#[test]
fn counts() {
    for (pattern, about) in [
        ("", 1),
        ("abc", 3),
        ("a{10}", 10),
        ("a{2,10}b", 11),
        ("a{,7}", 7),
        ("a{3,}", 3),
        ("[a-z0-9]{5}", 5),
        ("\\d{4}-\\d{2}", 7),
        ("(ab){10}", 20),
        ("(a{1,50}){1,50}c", 2501),
        ("((a{1,10}){1,10}){1,10}c", 1001),
        ("(aa|a){500}c", 2001),
        ("\\{3", 2),
        ("a)b", 3),
        ("((((", 1),
        ("(a{99999999999999999999}){99999999999999999999}", u64::MAX),
    ] {
        assert_eq!(size(pattern).states, about, "{pattern}");
    }
}

#[test]
fn anchored_sequences_are_cheap() {
    for (pattern, alive) in [
        ("^.{1,5000}$", 3),
        ("^[a-z]{1,64}-[a-z]{1,60}$", 64),
        ("[a-z]{1,64}", 64),
        ("^(a{1,50}){1,50}", 2501),
        ("^a|[ab]{50}", 53),
    ] {
        assert_eq!(size(pattern).alive, alive, "{pattern}");
    }
    assert_eq!(cost("^[A-Za-z0-9+/]*={0,2}$"), 5);
    assert!(cost("\\w*\\d\\w{5}") > 500);
}
