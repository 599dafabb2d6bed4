//! Number tokens in their original spelling.

use super::lexer::{JsonLexer, JsonToken};
use std::borrow::Cow;

/// Maximum number of digits before the decimal point; more exceed a `u64`.
const MAX_INTEGER_DIGITS: i64 = 20;

/// Maximum length of tokens without exponent that `f64` always represents: at most fifteen digits.
const MAX_EXACT_F64_CHARS: usize = 16;

/// Returns the digits of a whole number in any spelling; `None` for other numbers and for numbers that are far too
/// large.
pub(super) fn whole_number(token: &str) -> Option<Cow<'_, str>> {
    if is_integer(token) && token != "-0" {
        return Some(Cow::Borrowed(token));
    }
    let number = NormalizedDecimal::of(token);
    let zeros = number.point - number.digits.len() as i64;
    if number.digits.is_empty() {
        return Some(Cow::Borrowed("0"));
    }
    if zeros < 0 || number.point > MAX_INTEGER_DIGITS {
        return None;
    }
    let sign = if number.negative { "-" } else { "" };
    let zeros = "0".repeat(zeros as usize);
    Some(Cow::Owned(format!("{sign}{}{zeros}", number.digits)))
}

/// Returns true for a number without decimal point and exponent.
pub(super) fn is_integer(token: &str) -> bool {
    !token.contains(['.', 'e', 'E'])
}

/// Returns true if a number in the text does not survive conversion to a machine type.
pub(super) fn lossy(text: &str) -> bool {
    JsonLexer::new(text).any(|(token, _)| matches!(token, JsonToken::Scalar(t) if is_lossy(t)))
}

/// Returns true if a number does not survive conversion to a machine type.
pub(super) fn is_lossy(token: &str) -> bool {
    if !token.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return false;
    }
    if is_integer(token) {
        return token.parse::<i64>().is_err() && token.parse::<u64>().is_err();
    }
    if token.len() <= MAX_EXACT_F64_CHARS && !token.contains(['e', 'E']) {
        return false;
    }
    match token.parse::<f64>() {
        Ok(n) if n.is_finite() => {
            NormalizedDecimal::of(token) != NormalizedDecimal::of(&format!("{n:e}"))
        }
        _ => true,
    }
}

/// Returns true if two numbers are exactly equal, in any spelling.
pub(super) fn same_number(a: &str, b: &str) -> bool {
    NormalizedDecimal::of(a) == NormalizedDecimal::of(b)
}

/// Normal form of a number: its digits without leading and trailing zeros, and the position of the decimal point
/// relative to the first digit. Zero has no digits.
#[derive(PartialEq)]
struct NormalizedDecimal {
    negative: bool,
    digits: String,
    point: i64,
}

impl NormalizedDecimal {
    fn of(token: &str) -> NormalizedDecimal {
        let (mantissa, exponent) = token.split_once(['e', 'E']).unwrap_or((token, "0"));
        let unsigned = mantissa.trim_start_matches('-');
        let (int, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let all = [int, fraction].concat();
        let led = all.trim_start_matches('0');
        let digits = led.trim_end_matches('0');
        if digits.is_empty() {
            return NormalizedDecimal {
                negative: false,
                digits: String::new(),
                point: 0,
            };
        }
        NormalizedDecimal {
            negative: mantissa.starts_with('-'),
            digits: digits.to_owned(),
            point: exponent_of(exponent) + int.len() as i64 - (all.len() - led.len()) as i64,
        }
    }
}

/// Parses an exponent; one beyond `i64` is clamped.
fn exponent_of(text: &str) -> i64 {
    const MAX_EXPONENT: i64 = i64::MAX / 4;
    match text.parse::<i64>() {
        Ok(n) => n.clamp(-MAX_EXPONENT, MAX_EXPONENT),
        Err(_) if text.starts_with('-') => -MAX_EXPONENT,
        Err(_) => MAX_EXPONENT,
    }
}

/// Converts a number for a tree: to the machine type that holds it, to the nearest `f64`, or to a string beyond its
/// range.
pub(super) fn to_value(token: &str) -> serde_json::Value {
    use serde_json::{Number, Value};
    // `-0` becomes a float, or it would lose its sign.
    if is_integer(token) && token != "-0" {
        if let Ok(n) = token.parse::<i64>() {
            return n.into();
        }
        if let Ok(n) = token.parse::<u64>() {
            return n.into();
        }
    }
    let nearest = token.parse().ok().and_then(Number::from_f64);
    nearest.map_or_else(|| Value::String(token.to_owned()), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::{NormalizedDecimal, is_lossy, same_number, whole_number};

    #[test]
    fn the_same_number_is_found_in_every_spelling() {
        let check = |a: &str, b: &str, expected: bool| {
            assert_eq!(same_number(a, b), expected, "{a} {b}");
            assert_eq!(same_number(b, a), expected, "{b} {a}");
        };
        check("42", "42.0", true);
        check("42", "4.2e1", true);
        check("42", "420E-1", true);
        check("0", "-0.0e9", true);
        check("0.5", "5e-1", true);
        check("9007199254740993", "9007199254740993.0", true);
        check("9007199254740993", "9007199254740992", false);
        check("18446744073709551617", "18446744073709551616", false);
        check("0.1", "0.10000000000000001", false);
        check("42", "-42", false);
        check("42", "4.2", false);
    }

    #[test]
    fn a_whole_number_is_found_in_every_spelling() {
        for token in [
            "120",
            "120.0",
            "12e1",
            "1.2E+2",
            "1200e-1",
            "0.12e3",
            "120.000e0",
        ] {
            assert_eq!(whole_number(token).as_deref(), Some("120"), "{token}");
        }
        for token in ["0", "-0", "0.0", "-0.0e5", "0e99999999999999999999", "0e-7"] {
            assert_eq!(whole_number(token).as_deref(), Some("0"), "{token}");
        }
        assert_eq!(
            whole_number("-1.8446744073709551615e19").as_deref(),
            Some("-18446744073709551615")
        );
        for token in [
            "1.5",
            "1e-1",
            "1e21",
            "1e99999999999999999999",
            "1e-99999999999999999999",
        ] {
            assert_eq!(whole_number(token), None, "{token}");
        }
    }

    #[test]
    fn detects_lossy_numbers() {
        for token in [
            "0",
            "-0",
            "-0.0",
            "0e99999999999999999999",
            "1e300",
            "1E+20",
            "0.1",
            "0.10",
            "1.50e1",
            "-9223372036854775808",
            "18446744073709551615",
            "9007199254740993",
            "9007199254740992.0",
            "5e-324",
            "0.30000000000000004",
            "true",
            "null",
        ] {
            assert!(!is_lossy(token), "{token}");
        }
        for token in [
            "18446744073709551616",
            "-9223372036854775809",
            "100000000000000000000",
            "9007199254740993.0",
            "9007199254740993e0",
            "1e400",
            "-1e400",
            "1e-400",
            "4.9e-324",
            "0.1000000000000000055511151231257827",
            "1e99999999999999999999",
            "1e-99999999999999999999",
        ] {
            assert!(is_lossy(token), "{token}");
        }
    }

    #[test]
    fn fifteen_digits_always_survive() {
        let mut seed = 1_u64;
        for _ in 0..20_000 {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let digits = format!("{:015}", (seed >> 11) % 1_000_000_000_000_000);
            let (int, fraction) = digits.split_at(1 + (seed >> 60) as usize % 14);
            let token = format!("{}.{fraction}", int.parse::<u64>().unwrap());
            let n: f64 = token.parse().unwrap();
            assert!(
                NormalizedDecimal::of(&token) == NormalizedDecimal::of(&format!("{n:e}")),
                "{token}"
            );
        }
    }
}
