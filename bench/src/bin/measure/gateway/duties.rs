//! Cost of each check of a call: all that the config can turn off is off, and then each one is on alone.

use super::{page::table, trial::Trial};
use crate::{
    apart,
    page::{thousands, write_measured},
};
use std::{collections::BTreeMap, fs, io, os::unix::fs::PermissionsExt, time::Duration};

/// The longest that one measurement may take.
const MOST: Duration = Duration::from_secs(240);
/// Bytes of the text of a call, in each column.
pub const BYTES: [usize; 2] = [16, 4 << 10];
/// Runs of each figure, of which the median counts, unless the command line says how many.
const RUNS: u32 = 3;

/// A key of a section of the config, and its value.
type Setting = (&'static str, &'static str, &'static str);

/// All that the config can turn off, turned off.
const OFF: [Setting; 21] = [
    ("limits", "breaker_failures", "0"),
    ("limits", "ping_seconds", "0"),
    ("audit", "mode", "\"end\""),
    ("audit", "arguments", "\"digest\""),
    ("audit", "results", "\"digest\""),
    // A checkpoint now and then is no part of a call.
    ("audit", "checkpoint_seconds", "3600"),
    ("audit", "checkpoint_records", "10000"),
    ("pins", "change", "\"allow\""),
    ("telemetry", "metrics", "false"),
    ("server.bare", "url", "\"SERVER_URL\""),
    ("server.bare", "prefix", "\"\""),
    // Its tool is read-only, and then no rule has to allow it.
    ("server.bare", "trust_annotations", "true"),
    ("server.bare", "unknown_arguments", "\"allow\""),
    ("server.bare", "required_with_default", "\"required\""),
    ("server.bare", "output", "\"off\""),
    ("server.bare", "secrets", "\"off\""),
    ("server.bare", "outbound_secrets", "\"off\""),
    ("server.bare", "placeholders", "\"allow\""),
    ("server.bare", "media", "\"off\""),
    ("server.bare", "links", "\"off\""),
    ("server.bare", "roots", "false"),
];

/// A check that the config can turn on.
struct Duty {
    /// Name on the command line.
    name: &'static str,
    /// Name on the page.
    title: &'static str,
    /// The setting that turns it off, on the page.
    off: &'static str,
    /// The settings that turn it on.
    on: &'static [Setting],
    /// Further sections of the config.
    sections: &'static str,
    /// Name of the row that it is compared with.
    base: &'static str,
    /// True if the tool has an output schema.
    structured: bool,
    /// Bearer token of the client.
    token: Option<&'static str>,
}

/// Name of the row without any of them.
const NONE: &str = "none";

const DUTY: Duty = Duty {
    name: NONE,
    title: "nothing that the config can turn off",
    off: "",
    on: &[],
    sections: "",
    base: NONE,
    structured: false,
    token: None,
};

const DUTIES: [Duty; 23] = [
    DUTY,
    Duty {
        name: "token",
        title: "authentication with a bearer token",
        off: "no `token`",
        on: &[("", "token", "{ file = \"token\" }")],
        token: Some("0123456789abcdef0123456789abcdef"),
        ..DUTY
    },
    Duty {
        name: "rule",
        title: "a rule without a condition",
        off: "no `[[rule]]`",
        sections: "[[rule]]\ntools = [\"bare.*\"]\naction = \"allow\"\n",
        ..DUTY
    },
    Duty {
        name: "rule-caller",
        title: "a rule with a condition on the caller",
        off: "no `when`",
        sections: "[[rule]]\ntools = [\"bare.*\"]\nwhen = 'caller.name != \"key:ci\"'\naction = \"allow\"\n",
        base: "rule",
        ..DUTY
    },
    Duty {
        name: "rule-arguments",
        title: "a rule with a condition on an argument",
        off: "no `when`",
        sections: "[[rule]]\ntools = [\"bare.*\"]\nwhen = 'args.text != \"no\"'\naction = \"allow\"\n",
        base: "rule",
        ..DUTY
    },
    Duty {
        name: "rule-rate",
        title: "rate limit of a rule",
        off: "no `rate` of the rule",
        sections: "[[rule]]\ntools = [\"bare.*\"]\nrate = \"1000000/s\"\naction = \"allow\"\n",
        base: "rule",
        ..DUTY
    },
    Duty {
        name: "server-rate",
        title: "rate limit of the server",
        off: "no `rate` of the server",
        on: &[("server.bare", "rate", "\"1000000/s\"")],
        ..DUTY
    },
    Duty {
        name: "breaker",
        title: "circuit breaker",
        off: "`[limits] breaker_failures = 0`",
        on: &[("limits", "breaker_failures", "10")],
        ..DUTY
    },
    Duty {
        name: "pins",
        title: "changed definitions are hidden",
        off: "`[pins] change = \"allow\"`; the pins stay",
        on: &[("pins", "change", "\"hide\"")],
        ..DUTY
    },
    Duty {
        name: "unknown-arguments",
        title: "unknown arguments are refused",
        off: "`unknown_arguments = \"allow\"`; the rest of the input schema is always checked",
        on: &[("server.bare", "unknown_arguments", "\"refuse\"")],
        ..DUTY
    },
    Duty {
        name: "outbound-secrets",
        title: "search for secrets in arguments",
        off: "`outbound_secrets = \"off\"`",
        on: &[("server.bare", "outbound_secrets", "\"ask\"")],
        ..DUTY
    },
    Duty {
        name: "placeholders",
        title: "search for placeholders in arguments",
        off: "`placeholders = \"allow\"`",
        on: &[("server.bare", "placeholders", "\"ask\"")],
        ..DUTY
    },
    Duty {
        name: "secrets",
        title: "search for secrets in results",
        off: "`secrets = \"off\"`",
        on: &[("server.bare", "secrets", "\"redact\"")],
        ..DUTY
    },
    Duty {
        name: "links",
        title: "check of links",
        off: "`links = \"off\"`",
        on: &[("server.bare", "links", "\"check\"")],
        ..DUTY
    },
    Duty {
        name: "media",
        title: "check of images and audio (the result has none)",
        off: "`media = \"off\"`",
        on: &[("server.bare", "media", "\"check\"")],
        ..DUTY
    },
    Duty {
        name: "structured",
        title: "nothing, with a tool that has an output schema",
        off: "",
        structured: true,
        ..DUTY
    },
    Duty {
        name: "output",
        title: "check of the result against the output schema",
        off: "`output = \"off\"`",
        on: &[("server.bare", "output", "\"block\"")],
        structured: true,
        base: "structured",
        ..DUTY
    },
    Duty {
        name: "audit-strict",
        title: "`call.begin` is stored before the call leaves",
        off: "`[audit] mode = \"end\"`; both records stay",
        on: &[("audit", "mode", "\"strict\"")],
        ..DUTY
    },
    Duty {
        name: "audit-arguments",
        title: "arguments in the audit log",
        off: "`[audit] arguments = \"digest\"`",
        on: &[("audit", "arguments", "\"redacted\"")],
        ..DUTY
    },
    Duty {
        name: "audit-results",
        title: "results in the audit log",
        off: "`[audit] results = \"digest\"`",
        on: &[("audit", "results", "\"redacted\"")],
        ..DUTY
    },
    Duty {
        name: "metrics",
        title: "metrics of calls",
        off: "`[telemetry] metrics = false`",
        on: &[("telemetry", "metrics", "true")],
        ..DUTY
    },
    Duty {
        name: "traces",
        title: "metrics, and both spans of each call, encoded and sent over OTLP",
        off: "no collector",
        // The server rejects the exports, after they were encoded and sent.
        on: &[
            ("telemetry", "metrics", "true"),
            ("telemetry", "otlp_endpoint", "\"SERVER_URL\""),
        ],
        ..DUTY
    },
    Duty {
        name: "defaults",
        title: "all defaults of the config, with `[audit] mode = \"end\"`",
        off: "",
        ..DUTY
    },
];

impl Duty {
    fn trial(&self, bytes: usize) -> Trial {
        let mut trial = Trial::default();
        trial.load.bytes = bytes;
        trial.load.counted = 400;
        trial.structured = self.structured;
        trial.token = self.token;
        if let Some(token) = self.token {
            fs::create_dir_all(&trial.folder).expect("a folder");
            let file = trial.folder.join("token");
            fs::write(&file, token).expect("a token");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a private file");
        }
        let mut settings = BTreeMap::new();
        for (section, key, value) in self.settings() {
            let of_section: &mut BTreeMap<_, _> = settings.entry(*section).or_default();
            of_section.insert(*key, *value);
        }
        trial.sections.clear();
        for (section, keys) in settings {
            let lines: String = keys
                .iter()
                .map(|(key, value)| format!("{key} = {value}\n"))
                .collect();
            match section {
                "" => trial.top = lines,
                "limits" => trial.limits = lines,
                _ => trial.sections += &format!("[{section}]\n{lines}\n"),
            }
        }
        trial.sections += self.sections;
        trial
    }

    /// The settings; a later one replaces an earlier one.
    fn settings(&self) -> impl Iterator<Item = &Setting> {
        let is_kept = |(section, key, _): &&Setting| {
            let needed = ["url", "prefix", "trust_annotations"].contains(key);
            let quiet = *section == "audit" && !["arguments", "results"].contains(key);
            self.name != "defaults" || needed || quiet
        };
        OFF.iter().filter(is_kept).chain(self.on)
    }
}

/// Results of one check.
pub struct DutyRow {
    duty: &'static Duty,
    /// Instructions of a call in each column.
    instructions: [Vec<f64>; 2],
    failed: Option<String>,
}

/// Measures the checks whose name contains `only`, in rounds, and those that they are compared with.
pub fn rows(only: &str) -> Vec<DutyRow> {
    let chosen = |duty: &Duty| duty.name.contains(only);
    let compared = |duty: &Duty| {
        DUTIES
            .iter()
            .any(|other| chosen(other) && other.base == duty.name)
    };
    let duties = DUTIES.iter().filter(|duty| chosen(duty) || compared(duty));
    let mut rows: Vec<DutyRow> = duties
        .map(|duty| DutyRow {
            duty,
            instructions: Default::default(),
            failed: None,
        })
        .collect();
    let runs = toolgate_bench::number("--rounds").unwrap_or(RUNS);
    for run in 0..runs {
        eprintln!("checks: run {} of {runs}", run + 1);
        rows.iter_mut().for_each(DutyRow::count);
    }
    for row in &rows {
        println!("{}", row.line(&rows));
    }
    rows
}

impl DutyRow {
    fn count(&mut self) {
        for (column, bytes) in BYTES.iter().enumerate() {
            if self.failed.is_some() {
                return;
            }
            let words = ["gateway-duties-count", self.duty.name, &bytes.to_string()];
            match apart::measure(&words, MOST) {
                Ok(numbers) => self.instructions[column].extend(numbers.first()),
                Err(why) => {
                    eprintln!("        {}: {why}", self.duty.name);
                    self.failed = Some(why);
                }
            }
        }
    }

    /// The median of the runs.
    fn median(&self, column: usize) -> Option<f64> {
        let mut runs = self.instructions[column].clone();
        runs.sort_by(f64::total_cmp);
        runs.get(runs.len() / 2).copied()
    }

    fn line(&self, rows: &[DutyRow]) -> String {
        let base = rows.iter().find(|row| row.duty.name == self.duty.base);
        let base = base.filter(|base| base.duty.name != self.duty.name);
        let mut line = format!(
            "| {}: `{}` | {} |",
            self.duty.title, self.duty.name, self.duty.off
        );
        if let Some(why) = &self.failed {
            return format!("{line} failed: {why} | | | |");
        }
        for column in 0..BYTES.len() {
            let own = self.median(column);
            let more = own.zip(base.and_then(|base| base.median(column)));
            let more = more.map(|(own, base)| format!("{:+.1} k", (own - base) / 1e3));
            let own = own.map_or("–".to_owned(), thousands);
            line += &format!(" {own} | {} |", more.unwrap_or_default());
        }
        line
    }
}

/// Prints the instructions of a call.
pub fn count(duty: &str, bytes: &str) {
    let found = DUTIES.iter().find(|known| known.name == duty);
    let duty = found.unwrap_or_else(|| panic!("a check: {:?}", DUTIES.map(|duty| duty.name)));
    let instructions = duty
        .trial(bytes.parse().expect("a number of bytes"))
        .instructions();
    println!("{instructions:.0} instructions a call");
}

/// Returns a gateway with each check, whose calls have texts of so many bytes.
pub fn trials(bytes: usize) -> impl Iterator<Item = Trial> {
    DUTIES.iter().map(move |duty| duty.trial(bytes))
}

/// Columns of the table.
const HEAD: &str = "| on | off with | instructions, 16 bytes | more | instructions, 4 KiB | more |\n| --- | --- | --: | --: | --: | --: |";

/// Puts the table into the page.
pub fn write(path: &str, rows: &[DutyRow]) -> io::Result<()> {
    let lines: Vec<String> = rows.iter().map(|row| row.line(rows)).collect();
    write_measured(path, "measured checks", &table(HEAD, &lines))
}
