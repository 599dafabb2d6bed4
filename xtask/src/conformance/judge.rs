//! Holds each scenario to the bar. The suite's own exit code is not asked: it lets too much pass.

use std::collections::BTreeMap;

use super::checks::Outcome;
use super::table::Bar;

/// Where giving up is the right answer, as the suite says too: whoever goes on is deceived, or asks for ever.
const GIVES_UP: [&str; 10] = [
    "auth/iss-normalized",
    "auth/iss-supported-missing",
    "auth/iss-unexpected",
    "auth/iss-wrong-issuer",
    "auth/metadata-issuer-mismatch",
    "auth/resource-mismatch",
    "auth/scope-retry-limit",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-frontmatter",
    "sep-2640-client-verify-size",
];

/// What became of one scenario.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) scenario: String,
    pub(crate) success: usize,
    pub(crate) least: usize,
    pub(crate) skipped: usize,
    /// Why it is below the bar; empty where it is not.
    pub(crate) why: Vec<String>,
    /// It passed only when it was run once more, alone.
    pub(crate) second: bool,
}

impl Verdict {
    pub(crate) fn passed(&self) -> bool {
        self.why.is_empty()
    }
}

/// Judges every scenario of the bar, and every one that is not in it.
pub(crate) fn judge(bars: &[Bar], found: &BTreeMap<String, Outcome>) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = bars
        .iter()
        .map(|bar| judge_one(bar, found.get(&bar.scenario)))
        .collect();
    let strange = |name: &&String| !bars.iter().any(|bar| bar.scenario == **name);
    verdicts.extend(found.keys().filter(strange).map(|name| unheard_of(name)));
    verdicts
}

/// Judges one scenario, which may not have run at all.
pub(crate) fn judge_one(bar: &Bar, outcome: Option<&Outcome>) -> Verdict {
    let mut verdict = Verdict {
        scenario: bar.scenario.clone(),
        success: 0,
        least: bar.least,
        skipped: 0,
        why: Vec::new(),
        second: false,
    };
    let Some(outcome) = outcome else {
        verdict.why.push("it did not run".to_owned());
        return verdict;
    };
    verdict.success = outcome.success;
    verdict.skipped = outcome.skipped;
    verdict.why.clone_from(&outcome.bad);
    let gave_up = outcome.gave_up.as_ref();
    if let Some(words) = gave_up.filter(|_| !GIVES_UP.contains(&bar.scenario.as_str())) {
        verdict.why.push(format!("the client gave up: {words}"));
    }
    if outcome.success < bar.least {
        let count = format!("{} successful checks of {}", outcome.success, bar.least);
        verdict.why.push(count);
    }
    verdict
}

fn unheard_of(name: &str) -> Verdict {
    Verdict {
        scenario: name.to_owned(),
        success: 0,
        least: 0,
        skipped: 0,
        why: vec!["it ran, but is not in the table of the bar".to_owned()],
        second: false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::checks::{Outcome, parse};
    use super::super::table::Bar;
    use super::{Verdict, judge, judge_one};
    use std::collections::BTreeMap;

    fn bar(least: usize) -> Bar {
        Bar {
            scenario: "ping".to_owned(),
            least,
        }
    }

    fn verdict(least: usize, checks: &str) -> Verdict {
        judge_one(&bar(least), Some(&parse(checks).unwrap()))
    }

    const GOOD: &str = r#"[{"id":"a","status":"SUCCESS"},{"id":"b","status":"SUCCESS"},{"id":"c","status":"INFO"}]"#;

    #[test]
    fn enough_successes_and_nothing_else_pass() {
        assert!(verdict(2, GOOD).passed());
        assert!(verdict(1, GOOD).passed());
    }

    #[test]
    fn a_failure_counts_even_where_enough_succeeded() {
        let checks = r#"[{"id":"a","status":"SUCCESS"},{"id":"b","status":"FAILURE","errorMessage":"no pong"}]"#;
        let verdict = verdict(1, checks);
        assert_eq!(verdict.why, ["FAILURE b: no pong"]);
        assert!(!verdict.passed());
    }

    #[test]
    fn a_warning_counts_as_a_failure() {
        let checks = r#"[{"id":"a","status":"SUCCESS"},{"id":"b","status":"WARNING"}]"#;
        assert_eq!(verdict(1, checks).why, ["WARNING b"]);
    }

    #[test]
    fn no_checks_at_all_are_no_pass() {
        assert_eq!(verdict(1, "[]").why, ["0 successful checks of 1"]);
        let skipped = r#"[{"id":"a","status":"SKIPPED"},{"id":"b","status":"INFO"}]"#;
        assert!(!verdict(1, skipped).passed());
    }

    #[test]
    fn one_check_too_few_is_no_pass() {
        assert_eq!(verdict(3, GOOD).why, ["2 successful checks of 3"]);
    }

    #[test]
    fn a_client_that_gave_up_has_not_passed() {
        let mut outcome = parse(GOOD).unwrap();
        outcome.gave_up = Some("no route".to_owned());
        let verdict = judge_one(&bar(2), Some(&outcome));
        assert_eq!(verdict.why, ["the client gave up: no route"]);
    }

    #[test]
    fn where_it_is_right_to_give_up_the_checks_alone_count() {
        let outcome = |checks| Outcome {
            gave_up: Some("another issuer".to_owned()),
            ..parse(checks).unwrap()
        };
        let bar = Bar {
            scenario: "auth/iss-unexpected".to_owned(),
            ..bar(2)
        };
        assert!(judge_one(&bar, Some(&outcome(GOOD))).passed());
        let deceived = r#"[{"id":"a","status":"SUCCESS"},{"id":"b","status":"FAILURE"}]"#;
        assert!(!judge_one(&bar, Some(&outcome(deceived))).passed());
    }

    #[test]
    fn what_did_not_run_counts_and_so_does_what_nobody_knows() {
        let found = BTreeMap::from([("new-one".to_owned(), Outcome::default())]);
        let verdicts = judge(&[bar(1)], &found);
        assert_eq!(verdicts[0].why, ["it did not run"]);
        assert_eq!(verdicts[1].scenario, "new-one");
        assert!(!verdicts.iter().any(Verdict::passed));
    }
}
