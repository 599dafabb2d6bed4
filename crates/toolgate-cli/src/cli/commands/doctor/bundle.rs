//! `toolgate doctor --bundle`: the report of the checks with what explains it, for a bug report, without secrets.

use super::{DoctorContext, Reporter, gateways, redaction::ReportRedaction};
use crate::timestamp::format_rfc3339;
use serde_json::{Value, json};
use std::{
    env,
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::Write as _,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::SystemTime,
};
use toolgate_core::visible;

/// Mode of the report: a person reads it before others do.
const FILE_MODE: u32 = 0o600;
/// Number of files of the data directory that the report lists.
const MAX_LISTED_FILES: usize = 200;
/// Environment variables whose values explain where files and programs are found.
const SHOWN_VARIABLES: &[&str] = &[
    "PATH",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "SHELL",
    "TERM",
    "LANG",
];

/// Writes the report to a new file, and returns its path.
///
/// # Errors
/// The file exists, or cannot be written.
pub(super) fn write(
    file: Option<&Path>,
    context: &DoctorContext,
    reporter: &Reporter,
) -> Result<PathBuf, String> {
    let file = file.map_or_else(default_file, Path::to_owned);
    let wrong = |error| {
        format!(
            "the report cannot be written to {}: {error}",
            file.display()
        )
    };
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(FILE_MODE);
    let mut out = options.open(&file).map_err(wrong)?;
    out.write_all(text(context, reporter).as_bytes())
        .map_err(wrong)?;
    Ok(file)
}

fn default_file() -> PathBuf {
    let time = format_rfc3339(SystemTime::now());
    let second = time.split('.').next().unwrap_or(&time);
    let digits: String = second.chars().filter(|c| !"-:".contains(*c)).collect();
    format!("toolgate-report-{digits}Z.md").into()
}

fn text(context: &DoctorContext, reporter: &Reporter) -> String {
    let redaction = ReportRedaction::new(context.config.as_ref().ok());
    let mut text = "# Toolgate report\n\n\
        Secrets of the config, values of servers' variables and headers, and the home directory are removed.\n\
        Names of servers, callers and files are not. Read the report before you share it.\n"
        .to_owned();
    let mut section = |title: &str, content: &str| {
        // A fence that the content cannot close.
        let content = visible(content.trim_end()).replace("````", "'```");
        let _ = write!(text, "\n## {title}\n\n````text\n{content}\n````\n");
    };
    section("Program", &redaction.text(&program()));
    section("Checks", &redaction.text(&reporter.report()));
    // Without the config, its secrets are unknown, and texts of servers may contain them.
    let status = match &context.config {
        Ok(_) => {
            let status = gateways::statuses(context).map_or(Value::Null, Value::Array);
            pretty(&redaction.json(&status))
        }
        Err(_) => "left out, because the config is invalid".to_owned(),
    };
    section("Running gateways", &status);
    section("Config", &config(context, &redaction));
    section("Data directory", &redaction.text(&data_files(context)));
    text
}

fn pretty(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        value => format!("{value:#}"),
    }
}

/// Describes the program and its system.
fn program() -> String {
    let system = rustix::system::uname();
    let path = env::current_exe().map_or_else(|e| e.to_string(), |path| path.display().to_string());
    let mut text = format!(
        "toolgate {}\nprogram {path}\nsystem {} {} {}\ntime {}\n",
        env!("TOOLGATE_VERSION"),
        system.sysname().to_string_lossy(),
        system.release().to_string_lossy(),
        system.machine().to_string_lossy(),
        format_rfc3339(SystemTime::now()),
    );
    for name in SHOWN_VARIABLES {
        if let Ok(value) = env::var(name) {
            let _ = writeln!(text, "{name}={value}");
        }
    }
    text
}

/// Returns the config without comments and secrets.
fn config(context: &DoctorContext, redaction: &ReportRedaction) -> String {
    let Some(file) = &context.file else {
        return "none; the gateway serves the demo server".to_owned();
    };
    let Ok(text) = fs::read_to_string(file) else {
        return "it cannot be read".to_owned();
    };
    let toml = toml::from_str::<Value>(&text).ok();
    match toml.or_else(|| serde_json::from_str(&text).ok()) {
        Some(value) => pretty(&json!({
            "file": redaction.text(&file.display().to_string()), "content": redaction.json(&value)
        })),
        None => "its text cannot be parsed, and is left out".to_owned(),
    }
}

/// Lists the files of the data directory, with their modes and sizes.
fn data_files(context: &DoctorContext) -> String {
    let Ok(data) = &context.data else {
        return "unknown".to_owned();
    };
    let mut text = format!("{}\n", data.display());
    let mut directories = vec![data.clone()];
    let mut count = 0;
    while let Some(directory) = directories.pop() {
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let Ok(meta) = path.symlink_metadata() else {
                continue;
            };
            count += 1;
            if count > MAX_LISTED_FILES {
                text.push_str("the list is cut here\n");
                return text;
            }
            let shown = path.strip_prefix(data).unwrap_or(&path).display();
            let _ = writeln!(text, "{:06o} {:>12} {shown}", meta.mode(), meta.len());
            if meta.is_dir() {
                directories.push(path);
            }
        }
    }
    text
}
