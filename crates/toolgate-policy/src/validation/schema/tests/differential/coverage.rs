//! Coverage of a run: a test that rejects or accepts nearly everything, or lacks a keyword, shows little.

use super::{super::FAST_PATH_KEYWORDS, each_schema};
use serde_json::Value;
use std::{collections::BTreeMap, fmt};

/// Figures of a run.
#[derive(Default)]
pub(super) struct Coverage {
    /// Generated schemas, with and without a fast path.
    pub(super) schemas: u64,
    /// Schemas with a fast path.
    plain: u64,
    /// Pairs of a schema with a fast path and an instance.
    pub(super) cases: u64,
    valid: u64,
    /// Number of uses of each keyword in schemas with a fast path.
    keywords: BTreeMap<String, u64>,
}

impl Coverage {
    pub(super) fn add_schema(&mut self, schema: &Value) {
        self.plain += 1;
        each_schema(schema, &mut |part| {
            for key in part.keys() {
                *self.keywords.entry(key.clone()).or_default() += 1;
            }
        });
    }

    pub(super) fn add_result(&mut self, valid: bool) {
        self.cases += 1;
        self.valid += u64::from(valid);
    }

    /// Checks that both results are frequent, that most schemas have a fast path, and that every keyword occurs.
    pub(super) fn check(&self) {
        let fifth = self.cases / 5;
        assert!(self.valid >= fifth, "few valid instances: {self}");
        assert!(
            self.cases - self.valid >= fifth,
            "few invalid instances: {self}"
        );
        assert!(self.plain * 2 > self.schemas, "few plain schemas: {self}");
        for key in FAST_PATH_KEYWORDS.iter().chain(&["$schema"]) {
            let uses = self.keywords.get(*key).copied().unwrap_or_default();
            assert!(uses * 200 >= self.plain, "{key} is in {uses} of {self}");
        }
        for key in self.keywords.keys() {
            let known = FAST_PATH_KEYWORDS.contains(&key.as_str()) || key == "$schema";
            assert!(known, "{key} is plain, and this test does not know it");
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (plain, schemas, cases, valid) = (self.plain, self.schemas, self.cases, self.valid);
        let percent = valid * 100 / cases.max(1);
        write!(
            f,
            "{cases} cases, {percent} % valid, {plain} plain of {schemas} schemas"
        )
    }
}
