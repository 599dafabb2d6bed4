//! The table of a run, and the last words.

use super::judge::Verdict;

/// How much of one reason is shown; the whole of it is in the folder of the run.
const REASON: usize = 300;

/// Prints one run as a table.
pub(crate) fn run(name: &str, verdicts: &[Verdict]) {
    let held = verdicts.iter().filter(|verdict| verdict.known.is_none());
    let (passed, below): (Vec<_>, Vec<_>) = held.partition(|verdict| verdict.passed());
    println!(
        "\n{name}: {} of {}",
        passed.len(),
        passed.len() + below.len()
    );
    for verdict in verdicts {
        println!("{}", line(verdict));
        for why in verdict.why.iter().filter(|_| verdict.known.is_none()) {
            println!(
                "           {}",
                why.chars().take(REASON).collect::<String>()
            );
        }
    }
}

fn line(verdict: &Verdict) -> String {
    let word = match (verdict.passed(), verdict.known) {
        (true, None) => "ok",
        (false, None) => "BELOW",
        (true, Some(_)) => "ok (not counted)",
        (false, Some(_)) => "not counted",
    };
    let mut notes = Vec::new();
    if let Some(issue) = verdict.known {
        notes.push(format!("until {issue}"));
    }
    if verdict.second {
        notes.push("passed when run once more, alone".to_owned());
    }
    if verdict.skipped > 0 {
        notes.push(format!("{} skipped", verdict.skipped));
    }
    format!(
        "  {word:<16} {:<46} {:>3} of {:<3} {}",
        verdict.scenario,
        verdict.success,
        verdict.least,
        notes.join(", ")
    )
    .trim_end()
    .to_owned()
}

/// Prints what is not held to the bar, and the last line. True if nothing is below the bar.
pub(crate) fn finish(verdicts: &[Verdict]) -> bool {
    let mut issues: Vec<&str> = verdicts
        .iter()
        .filter_map(|verdict| verdict.known)
        .collect();
    issues.sort_unstable();
    issues.dedup();
    for issue in issues {
        let all = verdicts
            .iter()
            .filter(|verdict| verdict.known == Some(issue));
        let (passed, below): (Vec<_>, Vec<_>) = all.partition(|verdict| verdict.passed());
        println!(
            "not counted until {issue} lands: {} scenarios, {} of them at the bar",
            passed.len() + below.len(),
            passed.len()
        );
    }
    let second = verdicts.iter().filter(|verdict| verdict.second).count();
    if second > 0 {
        println!("{second} passed only when run once more, alone");
    }
    let held = verdicts
        .iter()
        .filter(|verdict| verdict.known.is_none())
        .count();
    let below = verdicts
        .iter()
        .filter(|verdict| verdict.counts_against())
        .count();
    println!("conformance: {} of {held} scenarios", held - below);
    below == 0 && held > 0
}
