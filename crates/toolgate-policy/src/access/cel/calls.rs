//! Calls in CEL expressions: functions, methods, and macros over lists.

use super::{
    lex::CelError,
    parse::CelParser,
    tree::{CelExpr, CelFunction, CelMacro},
};
use regex::{Regex, RegexBuilder};
use toolgate_protocol::plural::count_of;

/// Name, whether it is a method (`value.name()`), number of arguments besides the receiver, and function.
const FUNCTIONS: &[(&str, bool, usize, CelFunction)] = &[
    ("size", false, 1, CelFunction::Size),
    ("size", true, 0, CelFunction::Size),
    ("startsWith", true, 1, CelFunction::StartsWith),
    ("endsWith", true, 1, CelFunction::EndsWith),
    ("contains", true, 1, CelFunction::Contains),
    ("lowerAscii", true, 0, CelFunction::LowerAscii),
    ("int", false, 1, CelFunction::Int),
    ("string", false, 1, CelFunction::Text),
];

const MACROS: &[(&str, CelMacro)] = &[
    ("all", CelMacro::All),
    ("exists", CelMacro::Exists),
    ("exists_one", CelMacro::ExistsOne),
    ("filter", CelMacro::Filter),
    ("map", CelMacro::Map),
];

/// Maximum compiled size of one regular expression, in bytes.
const MAX_PATTERN_BYTES: usize = 256 * 1024;

/// Parses `value.name(…)` after its opening parenthesis.
pub(super) fn method(
    parser: &mut CelParser,
    of: CelExpr,
    name: &str,
    at: usize,
) -> Result<CelExpr, CelError> {
    if let Some((_, each)) = MACROS.iter().find(|(known, _)| *known == name) {
        return for_each(parser, *each, of);
    }
    if name == "matches" {
        let argument = parser.at();
        let mut parts = parser.list(")")?;
        return match (parts.pop(), parts.is_empty()) {
            (Some(CelExpr::Text(pattern)), true) => {
                let regex = pattern_of(&pattern).map_err(|wrong| (argument, wrong))?;
                Ok(CelExpr::Matches(Box::new(of), regex))
            }
            _ => Err((
                argument,
                "matches() takes one pattern, written as a string literal".to_owned(),
            )),
        };
    }
    let function = known(name, true, at)?;
    let mut parts = vec![of];
    parts.extend(parser.list(")")?);
    checked(name, function, parts, 1, at)
}

/// Parses `name(…)` after its opening parenthesis.
pub(super) fn function(parser: &mut CelParser, name: &str, at: usize) -> Result<CelExpr, CelError> {
    if name == "has" {
        let argument = parser.at();
        let of = parser.expression()?;
        parser.expect(")")?;
        return match of {
            CelExpr::Select(of, field) => Ok(CelExpr::Has(of, field)),
            _ => Err((
                argument,
                "has() takes a field, as in has(args.path)".to_owned(),
            )),
        };
    }
    let function = known(name, false, at)?;
    let parts = parser.list(")")?;
    checked(name, function, parts, 0, at)
}

fn for_each(parser: &mut CelParser, each: CelMacro, of: CelExpr) -> Result<CelExpr, CelError> {
    let at = parser.at();
    let name = parser.name("a name for the item")?;
    let taken = ["args", "caller", "server", "time", "tool"];
    if taken.contains(&name.as_str()) || parser.names.contains(&name) {
        return Err((
            at,
            format!("{name} is already defined; choose another name"),
        ));
    }
    parser.expect(",")?;
    parser.names.push(name.clone());
    let body = parser.expression();
    parser.names.pop();
    let body = body?;
    parser.expect(")")?;
    Ok(CelExpr::Each(each, Box::new(of), name, Box::new(body)))
}

type FunctionSignature = (usize, CelFunction);

fn known(name: &str, method: bool, at: usize) -> Result<FunctionSignature, CelError> {
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
        return Err((at, format!("{name}() must be written as {how}")));
    }
    let names = FUNCTIONS.iter().map(|f| f.0);
    let names = names
        .chain(MACROS.iter().map(|e| e.0))
        .chain(["has", "matches"]);
    Err((at, unknown_name_message("function", name, names)))
}

fn checked(
    name: &str,
    (count, function): FunctionSignature,
    parts: Vec<CelExpr>,
    before: usize,
    at: usize,
) -> Result<CelExpr, CelError> {
    let given = parts.len() - before;
    if given != count {
        return Err((
            at,
            format!(
                "{name}() takes {}, not {given}",
                count_of(count as u64, "argument")
            ),
        ));
    }
    Ok(CelExpr::Call(function, parts))
}

fn pattern_of(text: &str) -> Result<Regex, String> {
    let made = RegexBuilder::new(text)
        .size_limit(MAX_PATTERN_BYTES)
        .build();
    made.map_err(|wrong| match wrong {
        regex::Error::CompiledTooBig(_) => {
            format!("the pattern of matches() needs more than {MAX_PATTERN_BYTES} bytes once compiled; write a shorter one")
        }
        wrong => {
            let wrong = wrong.to_string();
            let last = wrong.lines().last().unwrap_or_default();
            format!(
                "the pattern of matches() is not a valid regular expression: {}",
                last.trim_start_matches("error: ")
            )
        }
    })
}

/// Returns the message for an unknown name, with a suggestion or the known names.
pub(super) fn unknown_name_message<'a>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> String {
    let mut known: Vec<&str> = known.collect();
    // A function and a method may share a name.
    known.dedup();
    let near = known
        .iter()
        .map(|k| (strsim::damerau_levenshtein(k, name), k));
    match near.min().filter(|(far, _)| *far <= 2 && *far < name.len()) {
        Some((_, near)) => format!("unknown {what} {name}; did you mean {near}?"),
        None => format!("unknown {what} {name}; use one of {}", known.join(", ")),
    }
}
