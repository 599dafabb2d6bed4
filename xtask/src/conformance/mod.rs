//! The official MCP conformance suite against our own server, the same behind our gateway, and our client.
//!
//! - `plan`: the runs. `table`: what each scenario must give, and what is not held to it yet.
//! - `suite`, `group`: the suite in its pinned form, and a bounded run of it.
//! - `subject`: our programs. `checks`, `judge`, `show`: what came of it.

mod checks;
mod group;
mod judge;
mod plan;
mod show;
mod subject;
mod suite;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::run::target;
use judge::Verdict;
use plan::{RUNS, Run};
use subject::Subject;
use suite::Suite;
use table::Side;

pub(crate) use suite::install;

/// How long one whole run may take; it takes ten seconds.
const RUN: Duration = Duration::from_secs(120);
/// How long one scenario alone may take.
const ONE: Duration = Duration::from_secs(90);

/// What was asked for on the command line.
#[derive(Default)]
pub(crate) struct Options {
    skip_install: bool,
    /// Only runs whose name starts with one of these; all where there are none.
    only: Vec<String>,
    /// A server of somebody else.
    url: Option<String>,
    /// A client of somebody else.
    client: Option<String>,
}

impl Options {
    /// Reads the words after `conformance`.
    ///
    /// # Errors
    /// A word that is not known, or the name of no run.
    pub(crate) fn read(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options::default();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--skip-install" => options.skip_install = true,
                "--url" => options.url = Some(value()?),
                "--client" => options.client = Some(value()?),
                name if RUNS.iter().any(|run| run.name().starts_with(name)) => {
                    options.only.push(word)
                }
                _ => return Err(format!("{word} is no option and no run")),
            }
        }
        Ok(options)
    }

    fn wants(&self, run: &Run) -> bool {
        let name = run.name();
        self.only.is_empty() || self.only.iter().any(|start| name.starts_with(start))
    }

    fn subject(&self, side: Side) -> Result<Subject, String> {
        let given = match side {
            Side::Server | Side::Gateway | Side::GatewayHttp => &self.url,
            Side::Client => &self.client,
        };
        given
            .as_deref()
            .map_or_else(|| Subject::own(side), |words| Ok(Subject::given(words)))
    }
}

/// Installs the suite, runs it, judges, and prints.
///
/// # Errors
/// The suite cannot be had, or scenarios are below the bar.
pub(crate) fn all(options: &Options) -> Result<(), String> {
    if !options.skip_install {
        suite::install()?;
    }
    let suite = Suite::installed()?;
    subject::build()?;
    let mut verdicts = Vec::new();
    for run in RUNS.iter().filter(|run| options.wants(run)) {
        let judged = one(&suite, run, options)?;
        show::run(&run.name(), &judged);
        verdicts.extend(judged);
    }
    println!("\nevery check is in {}", folder().display());
    if show::finish(&verdicts) {
        Ok(())
    } else {
        Err("scenarios are below the bar".to_owned())
    }
}

fn folder() -> PathBuf {
    target().join("conformance/out")
}

/// One run. What goes wrong with the run as a whole stands against every scenario of it.
fn one(suite: &Suite, run: &Run, options: &Options) -> Result<Vec<Verdict>, String> {
    let bars = table::bar(run.side, run.revision)?;
    let out = folder().join(run.name());
    let _ = fs::remove_dir_all(&out);
    let found = options.subject(run.side).and_then(|subject| {
        if !run.is_one_by_one() {
            suite.run(&run.words(&subject.words), &out, RUN)?;
            return checks::read_all(run.side, &out);
        }
        let mut found = BTreeMap::new();
        for bar in &bars {
            let (words, own) = (&subject.words, out.join(&bar.scenario));
            suite.run(&run.words_for_one(words, &bar.scenario), &own, ONE)?;
            found.extend(checks::read_all(run.side, &own)?);
        }
        Ok(found)
    });
    let found = found.unwrap_or_else(|why| {
        println!("{}: {why}", run.name());
        Default::default()
    });
    if found.is_empty() && !bars.is_empty() {
        let log = out.join("suite.log");
        println!(
            "{}: no result; the suite's words: {}",
            run.name(),
            log.display()
        );
    }
    let mut verdicts = judge::judge(&bars, &found);
    if run.side == Side::Client && !found.is_empty() {
        for verdict in verdicts.iter_mut().filter(|verdict| !verdict.passed()) {
            once_more(suite, run, options, verdict)?;
        }
    }
    Ok(verdicts)
}

/// All clients of a run start at the same moment, and some scenarios measure time: one that is below the bar is run
/// alone before it counts.
fn once_more(
    suite: &Suite,
    run: &Run,
    options: &Options,
    verdict: &mut Verdict,
) -> Result<(), String> {
    let bars = table::bar(run.side, run.revision)?;
    let Some(bar) = bars.iter().find(|bar| bar.scenario == verdict.scenario) else {
        return Ok(());
    };
    let subject = options.subject(run.side)?;
    let out = folder()
        .join(format!("{}-alone", run.name()))
        .join(verdict.scenario.replace('/', "-"));
    let _ = fs::remove_dir_all(&out);
    let words = run.words_for_one(&subject.words, &verdict.scenario);
    let found = suite
        .run(&words, &out, ONE)
        .and_then(|()| checks::read_all(run.side, &out));
    match found {
        Ok(found) => {
            let again = judge::judge_one(bar, found.get(&bar.scenario));
            let second = again.passed();
            *verdict = Verdict { second, ..again };
        }
        Err(why) => verdict.why.push(format!("alone: {why}")),
    }
    Ok(())
}

/// Whether the suite has a scenario of that name that is held to a bar.
pub(crate) fn is_scenario(name: &str) -> bool {
    table::held().any(|held| held == name)
}

#[cfg(test)]
mod tests {
    use super::{Options, RUNS};

    fn read(words: &[&str]) -> Result<Options, String> {
        Options::read(words.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn the_words_of_the_command_line_are_read() {
        let options = read(&["server-2026-07-28", "--skip-install", "--url", "http://x"]).unwrap();
        assert!(options.skip_install);
        let wanted = RUNS.iter().filter(|run| options.wants(run));
        assert_eq!(wanted.count(), 1);
        assert_eq!(options.url.as_deref(), Some("http://x"));
        assert!(read(&["client"]).is_ok());
    }

    #[test]
    fn a_slip_is_an_error() {
        assert!(read(&["sever"]).is_err());
        assert!(read(&["--url"]).is_err());
    }
}
