//! `toolgate call`: calls a tool of a running gateway.

use super::{CommandError, Result, print, unavailable};
use crate::{args::object, operator::control::GatewaySockets};
use serde_json::{Value, json};
use std::{
    io::{self, Read},
    path::Path,
    process::ExitCode,
};

/// Calls the tool, and prints its result as JSON.
pub(super) fn run(data: &Path, tool: &str, words: &[String]) -> Result<ExitCode> {
    let with = request(tool, words)?;
    let gateways = GatewaySockets::find(data)?;
    let result = gateways.request_any("call", &with);
    if result.is_err() {
        unavailable::print_unavailable(&unavailable::statuses(&gateways), |id| {
            let rest = tool.strip_prefix(id);
            rest.is_some_and(|rest| rest.starts_with(['.', '_']))
        });
    }
    let result = result?;
    let failed = result.get("isError").and_then(Value::as_bool);
    print(&format!("{result}\n"))?;
    Ok(match failed {
        Some(true) => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

/// Builds the request. The gateway knows the schema of the tool, so it types the values of pairs.
fn request(tool: &str, words: &[String]) -> Result<Value> {
    let text = match words {
        [] => "{}".to_owned(),
        [one] if one == "-" => {
            let mut text = String::new();
            let read = io::stdin().lock().read_to_string(&mut text);
            read.map_err(|e| {
                CommandError::Failure(format!(
                    "cannot read the arguments from standard input: {e}"
                ))
            })?;
            checked(text, "standard input")?
        }
        [one] if one.starts_with('@') => {
            let file = &one[1..];
            let text = std::fs::read_to_string(file).map_err(|e| {
                CommandError::Failure(format!("cannot read the arguments from {file}: {e}"))
            })?;
            checked(text, file)?
        }
        [one] if one.trim_start().starts_with('{') => one.clone(),
        words => {
            let pairs: Option<Vec<_>> = words.iter().map(|word| word.split_once('=')).collect();
            let pairs = pairs.ok_or_else(|| {
                CommandError::Usage(
                    "the arguments are one JSON object, one -, one @FILE, or key=value words; do not mix them".to_owned(),
                )
            })?;
            return Ok(json!({"tool": tool, "pairs": pairs}));
        }
    };
    Ok(json!({"tool": tool, "text": text}))
}

fn checked(text: String, from: &str) -> Result<String> {
    object(&text).map_err(|why| CommandError::Usage(format!("{from}: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn accepts_an_object_or_pairs() {
        let of = |given: &[&str]| request("a.b", &words(given)).ok();
        assert_eq!(of(&[]).unwrap()["text"], "{}");
        assert_eq!(of(&["{\"a\":1}"]).unwrap()["text"], "{\"a\":1}");
        let pairs = of(&["a=1", "b=c=d", "e="]).unwrap();
        assert_eq!(pairs["pairs"], json!([["a", "1"], ["b", "c=d"], ["e", ""]]));
        assert!(of(&["a=1", "-"]).is_none());
        assert!(of(&["{}", "a=1"]).is_none());
        assert!(of(&["@/nowhere/x.json"]).is_none());
    }
}
