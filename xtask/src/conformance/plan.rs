//! The runs: which program, at which revision, with which words for the suite.

use super::table::{SKILLS, Side};

/// One run of the suite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) side: Side,
    pub(crate) revision: &'static str,
    /// The frozen set of that revision, with what is run beside it. Otherwise all that the suite has for it.
    set: bool,
}

/// Every run, quick ones first.
pub(crate) const RUNS: [Run; 18] = [
    run(Side::Server, "2025-03-26", false),
    run(Side::Server, "2025-06-18", false),
    run(Side::Server, "2025-11-25", true),
    run(Side::Server, "2026-07-28", true),
    run(Side::Gateway, "2025-06-18", false),
    run(Side::Gateway, "2025-11-25", true),
    run(Side::Gateway, "2026-07-28", true),
    run(Side::GatewayHttp, "2025-06-18", false),
    run(Side::GatewayHttp, "2025-11-25", true),
    run(Side::GatewayHttp, "2026-07-28", true),
    run(Side::Client, "2025-03-26", false),
    run(Side::Client, "2025-06-18", false),
    run(Side::Client, "2025-11-25", true),
    run(Side::Client, "2026-07-28", true),
    run(Side::Server, SKILLS, false),
    run(Side::Gateway, SKILLS, false),
    run(Side::GatewayHttp, SKILLS, false),
    run(Side::Client, SKILLS, false),
];

const fn run(side: Side, revision: &'static str, set: bool) -> Run {
    Run {
        side,
        revision,
        set,
    }
}

impl Run {
    /// `server-2025-11-25`: the name of its folder, and the word that picks it on the command line.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.side.name(), self.revision)
    }

    /// The words for the suite. `target` is the URL of a server or the command of a client.
    pub(crate) fn words(&self, target: &str) -> Vec<String> {
        let which: &[&str] = if self.set {
            &["--requirements", self.revision]
        } else {
            &["--suite", "all", "--spec-version", self.revision]
        };
        self.words_with(target, which)
    }

    /// Whether its scenarios are in no set, so that each is asked for by its name.
    pub(crate) fn is_one_by_one(&self) -> bool {
        self.revision == SKILLS
    }

    /// The words for one scenario alone.
    pub(crate) fn words_for_one(&self, target: &str, scenario: &str) -> Vec<String> {
        let which = ["--scenario", scenario, "--spec-version", self.revision];
        // A scenario of an extension runs at the revision of the extension where none is named.
        let which = match self.is_one_by_one() {
            true => &which[..2],
            false => &which[..],
        };
        self.words_with(target, which)
    }

    fn words_with(&self, target: &str, which: &[&str]) -> Vec<String> {
        let target_flag = match self.side {
            Side::Server | Side::Gateway | Side::GatewayHttp => "--url",
            Side::Client => "--command",
        };
        let words = [self.side.word(), target_flag, target];
        let words = words.iter().chain(which);
        words.map(|word| (*word).to_owned()).collect()
    }
}
