//! What the suite wrote about each scenario: one folder each, with a `checks.json`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::table::Side;

/// The line by which our client says that it ended badly; the suite keeps no exit code in its files.
const CLIENT_FAILED: &str = "conformance-client: failed: ";
/// `-2026-11-21T08-22-15-093Z`, which the suite puts behind the name of each folder.
const STAMP: usize = 25;

/// One scenario as it went.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) success: usize,
    pub(crate) skipped: usize,
    /// The checks that say FAILURE or WARNING, or something that we do not know.
    pub(crate) bad: Vec<String>,
    /// Why our client gave up, in its own words.
    pub(crate) gave_up: Option<String>,
}

/// Every scenario found in the folder of one run, by name.
///
/// # Errors
/// The folder, or one of its files, cannot be read.
pub(crate) fn read_all(side: Side, folder: &Path) -> Result<BTreeMap<String, Outcome>, String> {
    let mut found = BTreeMap::new();
    read_folder(side, folder, "", &mut found)?;
    Ok(found)
}

fn read_folder(
    side: Side,
    folder: &Path,
    above: &str,
    found: &mut BTreeMap<String, Outcome>,
) -> Result<(), String> {
    let entries = fs::read_dir(folder)
        .map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        if !path.is_dir() {
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.join("checks.json").is_file() {
            let scenario = format!("{above}{}", scenario(side, &name));
            found.insert(scenario, read_one(&path)?);
        } else {
            read_folder(side, &path, &format!("{above}{name}/"), found)?;
        }
    }
    Ok(())
}

fn scenario(side: Side, folder: &str) -> &str {
    let cut = folder.len().saturating_sub(STAMP);
    let name = folder.get(..cut).unwrap_or(folder);
    match side {
        Side::Server | Side::Gateway | Side::GatewayHttp => {
            name.strip_prefix("server-").unwrap_or(name)
        }
        Side::Client => name,
    }
}

fn read_one(folder: &Path) -> Result<Outcome, String> {
    let file = folder.join("checks.json");
    let text = fs::read_to_string(&file)
        .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let mut outcome = parse(&text).map_err(|why| format!("{}: {why}", file.display()))?;
    let stderr = fs::read(folder.join("stderr.txt")).unwrap_or_default();
    outcome.gave_up = String::from_utf8_lossy(&stderr)
        .lines()
        .find_map(|line| line.strip_prefix(CLIENT_FAILED).map(str::to_owned));
    Ok(outcome)
}

/// Reads the text of one `checks.json`.
///
/// # Errors
/// It is no list of checks.
pub(crate) fn parse(text: &str) -> Result<Outcome, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
    let checks = value.as_array().ok_or("not a list of checks")?;
    let mut outcome = Outcome::default();
    for check in checks {
        match check["status"].as_str() {
            Some("SUCCESS") => outcome.success += 1,
            Some("SKIPPED") => outcome.skipped += 1,
            Some("INFO") => {}
            status => outcome
                .bad
                .push(words(check, status.unwrap_or("no status"))),
        }
    }
    Ok(outcome)
}

fn words(check: &Value, status: &str) -> String {
    let id = check["id"].as_str().unwrap_or("no id");
    match check["errorMessage"].as_str() {
        Some(why) => format!("{status} {id}: {}", why.replace('\n', " ")),
        None => format!("{status} {id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Side, parse, read_all, scenario};
    use std::fs;

    #[test]
    fn each_status_is_counted_once() {
        let text = r#"[{"id":"a","status":"SUCCESS"},{"id":"b","status":"SKIPPED"},{"id":"c","status":"INFO"},
            {"id":"d","status":"FAILURE","errorMessage":"no"},{"id":"e","status":"WARNING"},{"id":"f"}]"#;
        let outcome = parse(text).unwrap();
        assert_eq!((outcome.success, outcome.skipped), (1, 1));
        assert_eq!(outcome.bad, ["FAILURE d: no", "WARNING e", "no status f"]);
    }

    #[test]
    fn text_that_is_no_list_of_checks_is_an_error() {
        assert!(parse("").is_err());
        assert!(parse("{}").is_err());
    }

    #[test]
    fn the_name_is_what_stands_before_the_time() {
        let stamp = "-2026-11-21T08-22-15-093Z";
        let folder = format!("server-server-stateless{stamp}");
        assert_eq!(scenario(Side::Server, &folder), "server-stateless");
        assert_eq!(
            scenario(Side::Client, &format!("sse-retry{stamp}")),
            "sse-retry"
        );
    }

    #[test]
    fn folders_are_read_with_what_the_client_said() {
        let folder = crate::run::target().join("conformance/test-of-checks");
        let _ = fs::remove_dir_all(&folder);
        let one = folder.join("auth/iss-supported-2026-11-21T08-22-15-093Z");
        fs::create_dir_all(&one).unwrap();
        fs::write(one.join("checks.json"), r#"[{"status":"SUCCESS"}]"#).unwrap();
        fs::write(
            one.join("stderr.txt"),
            "a line\nconformance-client: failed: no route\n",
        )
        .unwrap();
        let found = read_all(Side::Client, &folder).unwrap();
        let outcome = &found["auth/iss-supported"];
        assert_eq!(outcome.success, 1);
        assert_eq!(outcome.gave_up.as_deref(), Some("no route"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
