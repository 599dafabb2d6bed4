//! Frontmatter of a `SKILL.md`: YAML between two lines of `---`, converted to JSON.
//!
//! Anchors, aliases, tags and merge keys are rejected: they can expand a short text to a huge one, and parsers disagree
//! on them. Plain scalars follow the core schema of YAML 1.2.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

/// Maximum size of the frontmatter, in bytes.
const MAX_FRONTMATTER_BYTES: usize = 64 << 10;
/// Maximum nesting depth.
const MAX_FRONTMATTER_DEPTH: usize = 32;

/// Parses the YAML frontmatter of a `SKILL.md` and returns it as a JSON object.
///
/// # Errors
/// Returns the reason if the frontmatter is invalid.
pub fn read_frontmatter(text: &str) -> Result<Value, &'static str> {
    let value = parse_yaml(frontmatter_text(text)?)?;
    match value {
        Value::Object(_) => Ok(value),
        _ => Err("the frontmatter is not a YAML mapping (key: value)"),
    }
}

/// Returns true if two skill frontmatters are equal. Numbers are compared by value, not by spelling.
pub fn equal_values(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => {
            one == two || (!(one.is_i64() && two.is_i64()) && one.as_f64() == two.as_f64())
        }
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| equal_values(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            let has = |(key, value)| two.get(key).is_some_and(|other| equal_values(value, other));
            one.len() == two.len() && one.iter().all(has)
        }
        (one, two) => one == two,
    }
}

/// Returns the text between the first line, `---`, and the next line of `---`.
fn frontmatter_text(text: &str) -> Result<&str, &'static str> {
    let none = "SKILL.md does not begin with frontmatter between two lines of ---";
    let is_mark = |line: &str| line.trim_end_matches(['\r', '\n', ' ', '\t']) == "---";
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| is_mark(line)).ok_or(none)?;
    let mut end = first.len();
    for line in lines {
        if is_mark(line) {
            return Ok(&text[first.len()..end]);
        }
        end += line.len();
        if end > MAX_FRONTMATTER_BYTES {
            return Err("the frontmatter is longer than 64 KiB");
        }
    }
    Err(none)
}

/// List or object that is being read.
enum YamlFrame {
    List(Vec<Value>),
    Object(Map<String, Value>, Option<String>),
}

const NOT_YAML: &str = "the frontmatter is not valid YAML";
const ANCHOR_OR_TAG: &str =
    "the frontmatter has a YAML anchor (&name) or a YAML tag (!name), which is not supported";

fn parse_yaml(yaml: &str) -> Result<Value, &'static str> {
    let (mut open, mut whole) = (Vec::<YamlFrame>::new(), None);
    for event in Parser::new_from_str(yaml) {
        let (event, _) = event.map_err(|_| NOT_YAML)?;
        let value = match event {
            Event::Alias(_) => {
                return Err("the frontmatter has a YAML alias (*name), which is not supported");
            }
            Event::Scalar(.., anchor, tag) if anchor != 0 || tag.is_some() => {
                return Err(ANCHOR_OR_TAG);
            }
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag)
                if anchor != 0 || tag.is_some() =>
            {
                return Err(ANCHOR_OR_TAG);
            }
            Event::SequenceStart(..) | Event::MappingStart(..)
                if open.len() >= MAX_FRONTMATTER_DEPTH =>
            {
                return Err("the frontmatter is nested more than 32 levels deep");
            }
            Event::SequenceStart(..) => {
                open.push(YamlFrame::List(Vec::new()));
                continue;
            }
            Event::MappingStart(..) => {
                open.push(YamlFrame::Object(Map::new(), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(YamlFrame::List(list)) => Value::Array(list),
                Some(YamlFrame::Object(object, _)) => Value::Object(object),
                None => return Err(NOT_YAML),
            },
            Event::Scalar(text, style, ..) => {
                if let Some(YamlFrame::Object(object, key @ None)) = open.last_mut() {
                    if object.contains_key(&*text) || text == "<<" {
                        return Err(match &*text {
                            "<<" => {
                                "the frontmatter has a YAML merge key (<<), which is not supported"
                            }
                            _ => "the frontmatter has a duplicate key",
                        });
                    }
                    *key = Some(text.into_owned());
                    continue;
                }
                match style {
                    ScalarStyle::Plain => plain_scalar(&text)?,
                    _ => Value::String(text.into_owned()),
                }
            }
            _ => continue,
        };
        match open.last_mut() {
            Some(YamlFrame::List(list)) => list.push(value),
            Some(YamlFrame::Object(object, key)) => {
                let key = key
                    .take()
                    .ok_or("the frontmatter has a key that is not a string")?;
                object.insert(key, value);
            }
            None if whole.is_none() => whole = Some(value),
            None => return Err("the frontmatter has more than one YAML document"),
        }
    }
    whole.ok_or("the frontmatter is empty")
}

/// Converts a plain scalar by the core schema.
fn plain_scalar(text: &str) -> Result<Value, &'static str> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let number = digits
        .strip_prefix('.')
        .unwrap_or(digits)
        .starts_with(|c: char| c.is_ascii_digit());
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ if matches!(digits, ".inf" | ".Inf" | ".INF")
            || matches!(text, ".nan" | ".NaN" | ".NAN") =>
        {
            return Err(
                "the frontmatter has an infinite number or NaN, which JSON cannot represent",
            );
        }
        _ if number => numeric(text).unwrap_or_else(|| Value::String(text.to_owned())),
        _ => Value::String(text.to_owned()),
    })
}

fn numeric(text: &str) -> Option<Value> {
    let of_base = |mark, base| {
        let digits = text.strip_prefix(mark)?;
        let good = !digits.starts_with(['-', '+']);
        u64::from_str_radix(digits, base).ok().filter(|_| good)
    };
    if let Some(number) = of_base("0x", 16).or_else(|| of_base("0o", 8)) {
        return Some(number.into());
    }
    if let Ok(number) = text.parse::<i64>() {
        return Some(number.into());
    }
    if !text
        .bytes()
        .all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b))
    {
        return None;
    }
    let number = text.parse::<f64>().ok()?;
    Number::from_f64(number).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_frontmatter_as_yaml() {
        let text = "---\r\nname: pdf\ndescription: >-\n  Reads\n  forms: all\nlicense: 'MIT'\nmetadata:\n  version: 1.50\n  on: yes\n  n: 7\n  date: 2026-01-02\n  v: 1.2.3\n  none:\nlist: [a, \"1\", true, 0x1f]\n---\n\n# Body\n---\n";
        let head = read_frontmatter(text).unwrap();
        assert_eq!(
            head,
            json!({
                "name": "pdf", "description": "Reads forms: all", "license": "MIT",
                "metadata": {"version": 1.5, "on": "yes", "n": 7, "date": "2026-01-02", "v": "1.2.3", "none": null},
                "list": ["a", "1", true, 31],
            })
        );
        assert!(equal_values(&head, &head));
        assert!(equal_values(&json!({"a": [1]}), &json!({"a": [1.0]})));
        assert!(!equal_values(&json!({"a": 1}), &json!({"a": 1, "b": null})));
        assert!(!equal_values(&json!({"a": "1"}), &json!({"a": 1})));
    }

    #[test]
    fn rejects_ambiguous_yaml() {
        let deep = format!("---\na: {}{}\n---\n", "[".repeat(40), "]".repeat(40));
        let long = format!(
            "---\na: {}\n---\n",
            "x\n  ".repeat(MAX_FRONTMATTER_BYTES / 4)
        );
        for text in [
            "",
            "name: a\n",
            "---\nname: a\n",
            "---\n---\n",
            "---\n- a\n---\n",
            "---\na: 1\na: 2\n---\n",
            "---\na: &x 1\nb: *x\n---\n",
            "---\na: !!str 1\n---\n",
            "---\n<<: {a: 1}\n---\n",
            "---\na: .inf\n---\n",
            "---\n{a: 1}: b\n---\n",
            "---\na: 1\n...\nb: 2\n---\n",
            "---\na: [1\n---\n",
            &deep,
            &long,
        ] {
            assert!(
                read_frontmatter(text).is_err(),
                "{:?}",
                &text[..text.len().min(60)]
            );
        }
    }
}
