//! How long a regular expression takes for each byte of a text.
//!
//! Its time is linear in the text, but for each character it may look at every state, and `(a{1,50}){1,50}` has some
//! thousand in a dozen characters.

/// Nanoseconds for one state and one byte in a release build, at worst: a repetition in a repetition.
const STATE: u64 = 80;
/// States of which all combinations fit into the table that an expression may make for itself.
const FEW: u64 = 10;

/// Nanoseconds for one byte of text, at worst.
pub(super) fn cost(pattern: &str) -> u64 {
    let size = size(pattern);
    if size.states <= FEW && ascii(pattern) {
        return 5;
    }
    size.alive.saturating_mul(STATE)
}

/// Whether it has no class of many characters: such a class has a table of its own for each state.
fn ascii(pattern: &str) -> bool {
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if !c.is_ascii() || c == '\\' && chars.next().is_none_or(|c| c.is_ascii_alphabetic()) {
            return false;
        }
    }
    true
}

/// How large an expression is.
#[derive(Debug, Eq, PartialEq)]
struct Size {
    /// Its length with its counted repetitions written out; never below 1.
    states: u64,
    /// How many of them may be looked at for one character.
    alive: u64,
}

fn size(pattern: &str) -> Size {
    // The longest single thing that is repeated.
    let mut longest = 0_u64;
    // Of each open group, the sum so far; and what the last thing in it counts.
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
    // From the start of the text on, one thing after the other: in the longest of them one place is looked at.
    let row = pattern.starts_with('^') && !pattern.contains(['(', '|']);
    let alive = match row {
        true => states.saturating_sub(longest).saturating_add(1),
        false => states,
    };
    Size { states, alive }
}

/// The larger number of `{1,50}`, after the brace; at least 1.
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
fn what_stands_in_a_row_is_cheap() {
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
