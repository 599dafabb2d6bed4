//! What a person decides: approvals, grants, freezes.

use super::{Result, all, one, print};
use crate::{
    board::millis,
    cli::{Approve, Freeze, Grants, Thaw, What},
    control::Gateways,
};
use serde_json::{Value, json};
use std::{path::Path, process::ExitCode, time::SystemTime};
use toolgate::visible_line;

/// `toolgate approve`.
pub(super) fn approve(data: &Path, approve: &Approve) -> Result<ExitCode> {
    let lasts = approve.lasts.map(|span| SystemTime::now() + span);
    let remember = approve.remember.then(|| {
        json!({
            "until": lasts.or(approve.until).map(millis), "uses": approve.uses, "when": approve.when,
            "all_callers": approve.all_callers,
        })
    });
    let with = json!({"id": approve.id, "edit": approve.edit, "remember": remember});
    let done = Gateways::find(data)?.ask_any("approve", &with)?;
    if done["more"] == true {
        eprintln!("your yes is noted; another person has to say yes too");
    }
    Ok(ExitCode::SUCCESS)
}

/// `toolgate grants`.
pub(super) fn grants(data: &Path, grants: &Grants) -> Result<ExitCode> {
    match grants {
        Grants::List => list(data),
        Grants::Revoke { id, all } => one(data, "grants/revoke", &json!({"id": id, "all": all})),
    }
}

/// `toolgate freeze`.
pub(super) fn freeze(data: &Path, freeze: &Freeze) -> Result<ExitCode> {
    match freeze.what() {
        Some(what) => one(
            data,
            "freeze",
            &json!({"what": what, "reason": freeze.reason()}),
        ),
        None => frozen(data),
    }
}

/// `toolgate thaw`.
pub(super) fn thaw(data: &Path, thaw: &Thaw) -> Result<ExitCode> {
    one(data, "thaw", &json!({"what": thaw.what()}))
}

fn list(data: &Path) -> Result<ExitCode> {
    let grants = distinct(all(&Gateways::find(data)?, "grants")?, "id");
    if grants.is_empty() {
        eprintln!("nothing is remembered");
    }
    print(&grants.iter().map(grant).collect::<String>())
}

fn grant(grant: &Value) -> String {
    let word = |key: &str| visible_line(grant[key].as_str().unwrap_or_default());
    let caller = match grant["caller"].as_str() {
        Some(caller) => visible_line(caller),
        None => "all callers".to_owned(),
    };
    let holds = match grant["over"].as_str() {
        Some(over) => over.to_owned(),
        None => format!("until {}", stamp(&grant["until"])),
    };
    let used = match (grant["used"].as_u64().unwrap_or(0), &grant["uses"]) {
        (used, Value::Null) => format!("used {used} times"),
        (used, most) => format!("used {used} of {most} times"),
    };
    let last = match &grant["last"] {
        Value::Null => String::new(),
        last => format!(", last {}", stamp(last)),
    };
    let when = match grant["when"].as_str() {
        Some(when) => format!(" when {}", visible_line(when)),
        None => String::new(),
    };
    let (server, tool) = (word("server"), word("tool"));
    format!(
        "{} {server}.{tool} for {caller}{when}; {holds}; {used}{last}; by {}\n",
        word("id"),
        word("by")
    )
}

fn frozen(data: &Path) -> Result<ExitCode> {
    let freezes = distinct(all(&Gateways::find(data)?, "freezes")?, "what");
    if freezes.is_empty() {
        eprintln!("nothing is frozen");
    }
    let line = |freeze: &Value| {
        let word = |key: &str| visible_line(freeze[key].as_str().unwrap_or_default());
        let since = stamp(&freeze["since"]);
        let line = format!(
            "{} since {since} by {}: {}",
            word("what"),
            word("by"),
            word("reason")
        );
        format!("{}\n", line.trim_end_matches([':', ' ']))
    };
    print(&freezes.iter().map(line).collect::<String>())
}

/// Each of them once: all processes of a data directory know the same.
pub(super) fn distinct(list: Vec<Value>, key: &str) -> Vec<Value> {
    let mut seen: Vec<Value> = Vec::new();
    for one in list {
        if !seen.iter().any(|other| other[key] == one[key]) {
            seen.push(one);
        }
    }
    seen
}

/// Milliseconds since 1970 as `2027-01-31 18:00 UTC`.
pub(super) fn stamp(millis: &Value) -> String {
    let minutes = millis.as_u64().unwrap_or(0) / 60_000;
    let (mut day, minutes) = (minutes / 1440, minutes % 1440);
    let leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let mut year = 1970;
    while day >= 365 + u64::from(leap(year)) && year < 9999 {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    let (hour, minute) = (minutes / 60, minutes % 60);
    format!("{year}-{month:02}-{:02} {hour:02}:{minute:02} UTC", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps() {
        for (seconds, text) in [
            (0_u64, "1970-01-01 00:00 UTC"),
            (951_868_799, "2000-02-29 23:59 UTC"),
            (951_868_800, "2000-03-01 00:00 UTC"),
            (1_801_418_400, "2027-01-31 18:00 UTC"),
            (1_830_297_599, "2027-12-31 23:59 UTC"),
        ] {
            assert_eq!(stamp(&json!(seconds * 1000)), text);
        }
    }
}
