//! Random spellings of a JSON value: white space, escapes, and forms of numbers.

use super::random::Random;
use serde_json::Value;

/// Returns a value as text. Some numbers change, to ones that no machine type holds.
pub(super) fn spell(random: &Random, value: &Value) -> String {
    let mut out = String::new();
    write(random, &mut out, value);
    out
}

fn write(random: &Random, out: &mut String, value: &Value) {
    space(random, out);
    match value {
        Value::Number(number) => write_number(random, out, &number.to_string()),
        Value::String(text) => write_string(random, out, text),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write(random, out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                space(random, out);
                write_string(random, out, name);
                out.push(':');
                write(random, out, value);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
    space(random, out);
}

fn space(random: &Random, out: &mut String) {
    if random.one_in(16) {
        out.push(random.pick(&[' ', '\n', '\t', '\r']));
    }
}

/// Writes a number in another form, or, rarely, one that no machine type holds.
fn write_number(random: &Random, out: &mut String, number: &str) {
    const BEYOND: [&str; 6] = [
        "1e400",
        "-1e400",
        "1e-400",
        "18446744073709551616",
        "-9223372036854775809",
        "0.10000000000000000001",
    ];
    let whole = number
        .trim_start_matches('-')
        .bytes()
        .all(|b| b.is_ascii_digit());
    match random.below(24) {
        0 => out.push_str(random.pick(&BEYOND)),
        1 if number == "0" => out.push_str(random.pick(&["-0", "-0.0", "0e9", "0E-9"])),
        1 if whole => out.push_str(&format!("{number}.0")),
        2 if whole => out.push_str(&format!("{number}e0")),
        3 if whole && number != "0" => out.push_str(&format!("{number}0E-1")),
        4 if whole => out.push_str(&format!("{number}.00e+00")),
        _ => out.push_str(number),
    }
}

fn write_string(random: &Random, out: &mut String, text: &str) {
    out.push('"');
    for sign in text.chars() {
        if matches!(sign, '"' | '\\' | '\0'..='\u{1f}') || random.one_in(12) {
            let mut units = [0; 2];
            for unit in sign.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(sign);
        }
    }
    out.push('"');
}
