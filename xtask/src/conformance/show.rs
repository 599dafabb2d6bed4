//! The table of a run, and the last words.

use super::judge::Verdict;

/// How much of one reason is shown; the whole of it is in the folder of the run.
const REASON: usize = 300;

/// Prints one run as a table.
pub(crate) fn run(name: &str, verdicts: &[Verdict]) {
    let passed = verdicts.iter().filter(|verdict| verdict.passed()).count();
    println!("\n{name}: {passed} of {}", verdicts.len());
    for verdict in verdicts {
        println!("{}", line(verdict));
        for why in &verdict.why {
            println!(
                "           {}",
                why.chars().take(REASON).collect::<String>()
            );
        }
    }
}

fn line(verdict: &Verdict) -> String {
    let word = match verdict.passed() {
        true => "ok",
        false => "BELOW",
    };
    let mut notes = Vec::new();
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

/// Prints the last lines. True if nothing is below the bar.
pub(crate) fn finish(verdicts: &[Verdict]) -> bool {
    let second = verdicts.iter().filter(|verdict| verdict.second).count();
    if second > 0 {
        println!("{second} passed only when run once more, alone");
    }
    let passed = verdicts.iter().filter(|verdict| verdict.passed()).count();
    println!("conformance: {passed} of {} scenarios", verdicts.len());
    passed == verdicts.len() && passed > 0
}
