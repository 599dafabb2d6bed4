//! How many states a regular expression has, about.
//!
//! Its time is linear in the text, but for each character it may look at every state, and `(a{1,50}){1,50}` has some
//! thousand in a dozen characters.

/// The length of a pattern with its counted repetitions written out; never below 1.
pub(super) fn states(pattern: &str) -> u64 {
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
    let sum = open.into_iter().fold(0, u64::saturating_add);
    sum.max(1)
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
        assert_eq!(states(pattern), about, "{pattern}");
    }
}
