//! Calls in CEL expressions: functions, methods, and macros over lists.

use super::{
    lex::Wrong,
    parse::Parser,
    tree::{Each, Expr, Function},
};
use regex::{Regex, RegexBuilder};

/// Name, whether it is a method (`value.name()`), number of arguments besides the receiver, and function.
const FUNCTIONS: &[(&str, bool, usize, Function)] = &[
    ("size", false, 1, Function::Size),
    ("size", true, 0, Function::Size),
    ("startsWith", true, 1, Function::StartsWith),
    ("endsWith", true, 1, Function::EndsWith),
    ("contains", true, 1, Function::Contains),
    ("lowerAscii", true, 0, Function::LowerAscii),
    ("int", false, 1, Function::Int),
    ("string", false, 1, Function::Text),
];

const EACH: &[(&str, Each)] = &[
    ("all", Each::All),
    ("exists", Each::Exists),
    ("exists_one", Each::ExistsOne),
    ("filter", Each::Filter),
    ("map", Each::Map),
];

/// Maximum compiled size of one regular expression, in bytes.
const PATTERN_BYTES: usize = 256 * 1024;

/// Parses `value.name(…)` after its opening parenthesis.
pub(super) fn method(parser: &mut Parser, of: Expr, name: &str, at: usize) -> Result<Expr, Wrong> {
    if let Some((_, each)) = EACH.iter().find(|(known, _)| *known == name) {
        return for_each(parser, *each, of);
    }
    if name == "matches" {
        let argument = parser.at();
        let mut parts = parser.list(")")?;
        return match (parts.pop(), parts.is_empty()) {
            (Some(Expr::Text(pattern)), true) => {
                let regex = pattern_of(&pattern).map_err(|wrong| (argument, wrong))?;
                Ok(Expr::Matches(Box::new(of), regex))
            }
            _ => Err((
                argument,
                "matches needs one pattern, written as a string literal".to_owned(),
            )),
        };
    }
    let function = known(name, true, at)?;
    let mut parts = vec![of];
    parts.extend(parser.list(")")?);
    checked(name, function, parts, 1, at)
}

/// Parses `name(…)` after its opening parenthesis.
pub(super) fn function(parser: &mut Parser, name: &str, at: usize) -> Result<Expr, Wrong> {
    if name == "has" {
        let argument = parser.at();
        let of = parser.expression()?;
        parser.needs(")")?;
        return match of {
            Expr::Select(of, field) => Ok(Expr::Has(of, field)),
            _ => Err((
                argument,
                "has needs a field, as in has(args.path)".to_owned(),
            )),
        };
    }
    let function = known(name, false, at)?;
    let parts = parser.list(")")?;
    checked(name, function, parts, 0, at)
}

fn for_each(parser: &mut Parser, each: Each, of: Expr) -> Result<Expr, Wrong> {
    let at = parser.at();
    let name = parser.name("a name for each item")?;
    let taken = ["args", "caller", "server", "time", "tool"];
    if taken.contains(&name.as_str()) || parser.names.contains(&name) {
        return Err((
            at,
            format!("{name} is already defined; choose another name"),
        ));
    }
    parser.needs(",")?;
    parser.names.push(name.clone());
    let body = parser.expression();
    parser.names.pop();
    let body = body?;
    parser.needs(")")?;
    Ok(Expr::Each(each, Box::new(of), name, Box::new(body)))
}

type Known = (usize, Function);

fn known(name: &str, method: bool, at: usize) -> Result<Known, Wrong> {
    let found = FUNCTIONS.iter().find(|f| f.0 == name && f.1 == method);
    if let Some((_, _, count, function)) = found {
        return Ok((*count, *function));
    }
    if FUNCTIONS.iter().any(|f| f.0 == name) || name == "matches" {
        let how = if method {
            format!("{name}(value)")
        } else {
            format!("value.{name}(…)")
        };
        return Err((at, format!("{name} must be written as {how}")));
    }
    let names = FUNCTIONS.iter().map(|f| f.0);
    let names = names
        .chain(EACH.iter().map(|e| e.0))
        .chain(["has", "matches"]);
    Err((at, unknown("function", name, names)))
}

fn checked(
    name: &str,
    (count, function): Known,
    parts: Vec<Expr>,
    before: usize,
    at: usize,
) -> Result<Expr, Wrong> {
    let given = parts.len() - before;
    if given != count {
        return Err((
            at,
            format!("the number of arguments of {name} must be {count}, not {given}"),
        ));
    }
    Ok(Expr::Call(function, parts))
}

fn pattern_of(text: &str) -> Result<Regex, String> {
    let made = RegexBuilder::new(text).size_limit(PATTERN_BYTES).build();
    made.map_err(|wrong| match wrong {
        regex::Error::CompiledTooBig(_) => {
            format!("this pattern needs more than {PATTERN_BYTES} bytes")
        }
        wrong => {
            let wrong = wrong.to_string();
            let last = wrong.lines().last().unwrap_or_default();
            format!(
                "this pattern is invalid: {}",
                last.trim_start_matches("error: ")
            )
        }
    })
}

/// Returns the message for an unknown name, with a suggestion or the known names.
pub(super) fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let near = known
        .iter()
        .map(|k| (strsim::damerau_levenshtein(k, name), k));
    match near.min().filter(|(far, _)| *far <= 2 && *far < name.len()) {
        Some((_, near)) => format!("unknown {what} {name}; do you mean {near}?"),
        None => format!("unknown {what} {name}; there are {}", known.join(", ")),
    }
}
