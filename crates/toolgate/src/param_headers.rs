//! Tool arguments that are repeated as headers: `x-mcp-header`.
//!
//! Source: the pages on tools and on the transports of 2026-07-28.

use crate::header_value::encode_value;
use http::{HeaderName, HeaderValue};
use std::collections::HashSet;
use toolgate_core::SchemaViolation;
use toolgate_protocol::json::{Json, JsonKind};

/// Headers that repeat arguments of a call.
pub(crate) type ParamHeaderList = Vec<(HeaderName, HeaderValue)>;

const PARAM_HEADER_KEYWORD: &str = "x-mcp-header";
const PARAM_HEADER_PREFIX: &str = "mcp-param-";
/// Largest integer that is repeated: 2^53 - 1, the limit for exact doubles.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;
/// Expected range of a repeated number, for error messages.
pub(crate) const SAFE_RANGE: &str = "an integer from -(2^53-1) to 2^53-1, because \"x-mcp-header\" repeats the argument as a header";
/// Schema keywords that hold data, not schemas: `x-mcp-header` within them has no meaning.
const DATA_KEYWORDS: [&str; 5] = ["const", "default", "enum", "example", "examples"];
/// Schema keywords that hold schemas under names of the author.
const NAMED_SCHEMA_KEYWORDS: [&str; 5] = [
    "$defs",
    "definitions",
    "dependentSchemas",
    "patternProperties",
    "dependencies",
];

/// Argument that is repeated as a header.
#[derive(Debug, PartialEq)]
struct ParamHeader {
    path: Vec<String>,
    name: HeaderName,
}

impl ParamHeader {
    fn out_of_range(&self) -> SchemaViolation {
        let escaped = |key: &String| format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        SchemaViolation::new(
            self.path.iter().map(escaped).collect::<String>(),
            SAFE_RANGE,
            "a number outside this range",
        )
    }
}

/// Arguments of a tool that are repeated as headers.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ParamHeaders(Vec<ParamHeader>);

impl ParamHeaders {
    /// Reads the `x-mcp-header` marks of an input schema.
    ///
    /// # Errors
    /// The rule that the schema breaks; the tool must not be used over HTTP.
    pub(crate) fn read(schema: &Json) -> Result<ParamHeaders, &'static str> {
        let mut marks = ParamHeaders::default();
        if schema.as_str().contains("mcp-header") || schema.as_str().contains('\\') {
            marks.walk(schema, &mut Vec::new(), true)?;
        }
        let mut names = HashSet::new();
        if marks.0.iter().all(|mark| names.insert(&mark.name)) {
            Ok(marks)
        } else {
            Err("two of its arguments have the same \"x-mcp-header\"")
        }
    }

    /// Returns the headers that repeat these arguments. An argument that is absent or `null` has none.
    ///
    /// # Errors
    /// The [`SchemaViolation`] of the first number outside ±([`MAX_SAFE_INTEGER`]), which must not be sent: an intermediary
    /// that compares header and body as doubles would confuse it with another number.
    pub(crate) fn headers_for(&self, arguments: &Json) -> Result<ParamHeaderList, SchemaViolation> {
        let header = |mark: &ParamHeader| {
            let found = mark
                .path
                .iter()
                .try_fold(arguments.clone(), |at, key| at.get(key))?;
            if !is_safe(&found) {
                return Some(Err(mark.out_of_range()));
            }
            let value = encode_value(&text(&found)?);
            Some(Ok((mark.name.clone(), value)))
        };
        self.0.iter().filter_map(header).collect()
    }

    /// Walks the schema. `plain` is true while only `properties` led here.
    fn walk(
        &mut self,
        schema: &Json,
        path: &mut Vec<String>,
        plain: bool,
    ) -> Result<(), &'static str> {
        for (key, value) in schema.members() {
            match &*key {
                PARAM_HEADER_KEYWORD => self.add_param(schema, &value, path, plain)?,
                "properties" => {
                    for (name, property) in value.members() {
                        path.push(name.into_owned());
                        self.walk(&property, path, plain)?;
                        path.pop();
                    }
                }
                key if DATA_KEYWORDS.contains(&key) => {}
                key if NAMED_SCHEMA_KEYWORDS.contains(&key) => {
                    for (_, schema) in value.members() {
                        self.walk(&schema, path, false)?;
                    }
                }
                _ => {
                    self.walk(&value, path, false)?;
                    for schema in value.items() {
                        self.walk(&schema, path, false)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn add_param(
        &mut self,
        schema: &Json,
        value: &Json,
        path: &[String],
        plain: bool,
    ) -> Result<(), &'static str> {
        if !plain || path.is_empty() {
            return Err(
                "\"x-mcp-header\" is only allowed on a property that is reachable through \"properties\" alone",
            );
        }
        let Some(label) = value.string().filter(|label| !label.is_empty()) else {
            return Err("an \"x-mcp-header\" is empty or not a string");
        };
        let name = HeaderName::from_bytes(format!("{PARAM_HEADER_PREFIX}{label}").as_bytes())
            .map_err(|_| "an \"x-mcp-header\" is not a valid header name")?;
        let kind = schema.get("type").and_then(|kind| kind.string());
        if !matches!(kind.as_deref(), Some("string" | "integer" | "boolean")) {
            return Err(
                "an \"x-mcp-header\" is set on a type other than string, integer or boolean",
            );
        }
        self.0.push(ParamHeader {
            path: path.to_vec(),
            name,
        });
        Ok(())
    }
}

/// Returns whether a value may be repeated as a header: a number only within ±[`MAX_SAFE_INTEGER`].
pub(crate) fn is_safe(value: &Json) -> bool {
    let rounded = || {
        value
            .f64()
            .is_some_and(|n| n.abs() <= MAX_SAFE_INTEGER as f64)
    };
    match value.kind() {
        JsonKind::Number => value
            .i64()
            .map_or_else(rounded, |n| n.unsigned_abs() <= MAX_SAFE_INTEGER),
        _ => true,
    }
}

/// Returns the text of a value, without conversion to a float.
fn text(value: &Json) -> Option<String> {
    match value.kind() {
        JsonKind::String => value.string(),
        JsonKind::Number => Some(
            value
                .i64()
                .map_or_else(|| value.as_str().to_owned(), |n| n.to_string()),
        ),
        JsonKind::Bool => Some(value.as_str().to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_protocol::json::JsonLimits;

    fn json(text: &str) -> Json {
        Json::read(text.as_bytes().to_vec(), &JsonLimits::default()).unwrap()
    }

    fn properties(inner: &str) -> Json {
        json(&format!(r#"{{"type":"object","properties":{{{inner}}}}}"#))
    }

    /// Holds: TOOL-30, TOOL-31, TOOL-32, TOOL-33.
    #[test]
    fn a_schema_that_breaks_a_rule_is_refused() {
        let refused = |inner: &str| {
            assert!(ParamHeaders::read(&properties(inner)).is_err(), "{inner}");
        };
        refused(r#""a":{"type":"string","x-mcp-header":""}"#);
        refused(r#""a":{"type":"string","x-mcp-header":7}"#);
        refused(r#""a":{"type":"string","x-mcp-header":"a b"}"#);
        refused(r#""a":{"type":"string","x-mcp-header":"a:b"}"#);
        refused(r#""a":{"type":"string","x-mcp-header":"é"}"#);
        refused(r#""a":{"type":"string","x-mcp-header":"a\r\nb"}"#);
        refused(r#""a":{"type":"string","x-mcp-he\u0061der":""}"#);
        refused(r#""a":{"type":"number","x-mcp-header":"a"}"#);
        refused(r#""a":{"type":"object","x-mcp-header":"a"}"#);
        refused(r#""a":{"type":"array","x-mcp-header":"a"}"#);
        refused(r#""a":{"type":"null","x-mcp-header":"a"}"#);
        refused(r#""a":{"x-mcp-header":"a"}"#);
        refused(
            r#""a":{"type":"string","x-mcp-header":"X"},"b":{"type":"string","x-mcp-header":"x"}"#,
        );
        refused(r#""a":{"type":"array","items":{"type":"string","x-mcp-header":"x"}}"#);
        refused(r#""a":{"anyOf":[{"type":"string","x-mcp-header":"x"}]}"#);
        let elsewhere = r#"{"type":"object","$defs":{"s":{"type":"string","x-mcp-header":"x"}}}"#;
        assert!(ParamHeaders::read(&json(elsewhere)).is_err());
        assert!(ParamHeaders::read(&json(r#"{"type":"object","x-mcp-header":"x"}"#)).is_err());
    }

    #[test]
    fn what_only_looks_like_a_mark_is_none() {
        let schema = properties(
            r#""x-mcp-header":{"type":"number"},"b":{"default":{"x-mcp-header":""},"enum":[{"x-mcp-header":1}]}"#,
        );
        assert_eq!(ParamHeaders::read(&schema), Ok(ParamHeaders::default()));
    }

    /// Holds: HTTPM-26, HTTPM-28, HTTPM-29.
    #[test]
    fn arguments_are_repeated_to_the_letter() {
        let schema = properties(
            r#""s":{"type":"string","x-mcp-header":"S"},"i":{"type":"integer","x-mcp-header":"I"},
            "b":{"type":"boolean","x-mcp-header":"B"},"n":{"type":"string","x-mcp-header":"N"},
            "o":{"type":"object","properties":{"s":{"type":"string","x-mcp-header":"Deep"}}},"p":{"type":"string"}"#,
        );
        let marks = ParamHeaders::read(&schema).unwrap();
        let check = |arguments: &str, expected: &[(&str, &str)]| {
            let made = marks.headers_for(&json(arguments)).unwrap();
            let made: Vec<(&str, &str)> = made
                .iter()
                .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
                .collect();
            assert_eq!(made, expected, "{arguments}");
        };
        check(
            r#"{"s":"a\u0041","i":-9007199254740991,"b":false,"n":null,"p":"no"}"#,
            &[
                ("mcp-param-s", "aA"),
                ("mcp-param-i", "-9007199254740991"),
                ("mcp-param-b", "false"),
            ],
        );
        check(r#"{"i":4.2e1}"#, &[("mcp-param-i", "42")]);
        check(
            r#"{"o":{"s":" é"}}"#,
            &[("mcp-param-deep", "=?base64?IMOp?=")],
        );
        check(r#"{"o":"s","s":{"s":1}}"#, &[]);
        check("{}", &[]);
    }

    /// Holds: TOOL-32, HTTPM-28.
    #[test]
    fn a_number_that_no_double_holds_exactly_is_not_repeated() {
        let schema = properties(
            r#""a/b":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},"free":{"type":"integer"}"#,
        );
        let marks = ParamHeaders::read(&schema).unwrap();
        let of =
            |n: &str| marks.headers_for(&json(&format!(r#"{{"a/b":{{"n":{n}}},"free":{n}}}"#)));
        for good in [
            "9007199254740991",
            "-9007199254740991",
            "9.007199254740991e15",
        ] {
            assert_eq!(of(good).map(|made| made.len()), Ok(1), "{good}");
        }
        for bad in [
            "9007199254740992",
            "-9007199254740992",
            "9223372036854775807",
            "18446744073709551616",
            "1e300",
            "1e400",
        ] {
            assert_eq!(of(bad).unwrap_err().path, "/a~1b/n", "{bad}");
        }
    }

    /// Holds: HTTPM-27.
    #[test]
    fn a_value_is_read_where_its_property_stands_and_nowhere_else() {
        let text = r#"{"type":"string","x-mcp-header":"X"}"#;
        let at = |path: &str| {
            let schema = path.rsplit(' ').fold(text.to_owned(), |inner, key| {
                let key = key.replace('~', " ");
                format!(r#"{{"type":"object","properties":{{"{key}":{inner}}}}}"#)
            });
            ParamHeaders::read(&json(&schema)).unwrap()
        };
        let check = |path: &str, arguments: &str, expected: Option<&str>| {
            let made = at(path).headers_for(&json(arguments)).unwrap();
            let found = made.first().map(|(_, value)| value.to_str().unwrap());
            assert_eq!(
                (found, made.len()),
                (expected, usize::from(expected.is_some())),
                "{path} of {arguments}"
            );
        };
        check("a", r#"{"a":"v"}"#, Some("v"));
        check("a b c", r#"{"a":{"b":{"c":"v"}}}"#, Some("v"));
        check("a.b", r#"{"a.b":"v","a":{"b":"w"}}"#, Some("v"));
        check("a/b", r#"{"a/b":"v"}"#, Some("v"));
        check("a~b", r#"{"a b":"v"}"#, Some("v"));
        check("a b", r#"{"b":"v","a":{"c":{"b":"v"}}}"#, None);
        check("a b", r#"{"a.b":"v","a/b":"v"}"#, None);
        check("a.b", r#"{"a":{"b":"v"}}"#, None);
        check("a", r#"{"A":"v","b":{"a":"v"}}"#, None);
        check("a b", r#"{"a":[{"b":"v"}]}"#, None);
        check("a b", r#"{"a":"{\"b\":\"v\"}"}"#, None);
        for nothing in [r#"{"a":null}"#, "{}", r#"{"a":{"b":null}}"#, r#"{"a":{}}"#] {
            check("a b", nothing, None);
        }
        check("a", r#"{"a":null}"#, None);
    }
}
