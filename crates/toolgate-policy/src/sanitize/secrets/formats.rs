//! Tests that published formats, filled with random characters, are found and text of real packages is left alone.

#![allow(clippy::print_stdout, reason = "figures for people")]

use super::{SecretRedactor, find};
use ::base64::{Engine, engine::general_purpose::STANDARD};
use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

/// Number of random samples of each format.
const SAMPLES_PER_FORMAT: usize = 8;
/// Minimum number of formats in the list.
const MIN_FORMATS: usize = 100;

/// Deterministic random numbers: the same in every run.
struct SampleGenerator(u64);

impl SampleGenerator {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn of(&mut self, letters: &str, count: usize) -> String {
        let letters = letters.as_bytes();
        let one = |_| char::from(letters[self.below(letters.len())]);
        (0..count).map(one).collect()
    }

    /// Generates text for `kind` or `kind:count`.
    fn fill(&mut self, what: &str) -> String {
        const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
        const DIGITS: &str = "0123456789";
        let (kind, count) = what.split_once(':').unwrap_or((what, "0"));
        let count = count.parse().unwrap();
        let all = [UPPER, LOWER, DIGITS].concat();
        let letters = match kind {
            "hex" => "0123456789abcdef".to_owned(),
            "09" => DIGITS.to_owned(),
            "an" => all,
            "alpha" => [UPPER, LOWER].concat(),
            "lo" => [LOWER, DIGITS].concat(),
            "up" => [UPPER, DIGITS].concat(),
            "b32" => [UPPER, "234567"].concat(),
            "b64" => [&all, "+/"].concat(),
            "bech" => "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L".to_owned(),
            "url" => [&all, "_-"].concat(),
            "crypt" => [&all, "./"].concat(),
            "uuid" => {
                return [8, 4, 4, 4, 12]
                    .map(|n| self.fill(&format!("hex:{n}")))
                    .join("-");
            }
            "basic" => {
                let plain = format!("robot:{}", self.fill("an:14"));
                return STANDARD.encode(plain);
            }
            "snow" => {
                let id = format!("1{}", self.fill("09:17"));
                return STANDARD.encode(id).trim_end_matches('=').to_owned();
            }
            other => panic!("{other}"),
        };
        self.of(&letters, count)
    }

    /// Generates a text from a template. Returns it with the lines of its secret.
    fn sample(&mut self, template: &str) -> (String, Vec<String>) {
        let template = template.replace('¦', "");
        let (mut text, mut rest) = (String::new(), template.as_str());
        while let Some(at) = rest.find('{') {
            let end = rest[at..].find('}').unwrap() + at;
            text.push_str(&rest[..at]);
            let what = &rest[at + 1..end];
            let known = what.split(':').next().is_some_and(|kind| {
                let kinds = [
                    "hex", "09", "an", "alpha", "lo", "up", "b32", "b64", "bech", "url", "crypt",
                    "uuid", "basic", "snow",
                ];
                kinds.contains(&kind)
            });
            match known {
                true => text.push_str(&self.fill(what)),
                false => {
                    text.push('{');
                    rest = &rest[at + 1..];
                    continue;
                }
            }
            rest = &rest[end + 1..];
        }
        text.push_str(rest);
        let secret = text
            .split_once('‹')
            .and_then(|(_, rest)| rest.split_once('›'))
            .unwrap()
            .0;
        let lines = secret.lines().map(str::to_owned).collect();
        (text.replace(['‹', '›'], ""), lines)
    }
}

#[test]
fn finds_every_published_format() {
    let formats: BTreeMap<String, Vec<String>> =
        toml::from_str(include_str!("formats.toml")).unwrap();
    let (mut random, mut wrong, mut count) = (SampleGenerator(20), Vec::new(), 0);
    for (rule, templates) in &formats {
        for template in templates {
            count += 1;
            for _ in 0..SAMPLES_PER_FORMAT {
                let (text, secrets) = random.sample(template);
                let redacted = SecretRedactor::redact_text(&text);
                let found = find::find(&text);
                let named = found.iter().any(|found| *found.rule == **rule);
                if !named
                    || secrets
                        .iter()
                        .any(|secret| redacted.contains(secret.as_str()))
                {
                    let found: Vec<_> = found.iter().map(|found| &found.rule).collect();
                    wrong.push(format!("{rule} misses {text:?}: {found:?}"));
                }
                assert_eq!(SecretRedactor::redact_text(&redacted), redacted, "{rule}");
            }
        }
    }
    println!(
        "{count} formats of {} rules, {SAMPLES_PER_FORMAT} samples each, {} missed",
        formats.len(),
        wrong.len()
    );
    assert!(
        wrong.is_empty() && count >= MIN_FORMATS,
        "{}",
        wrong.join("\n")
    );
}

/// Size of a chunk of text, in bytes: about a screen or two.
const CHUNK_BYTES: usize = 6 * 1024;
/// Minimum number of chunks for a meaningful result; with less text on a machine nothing is measured.
const MIN_CHUNKS: usize = 500;
/// Number of chunks in the default run; `TOOLGATE_CHUNKS` overrides it.
const DEFAULT_CHUNKS: usize = 1500;
/// At most one in this many chunks may be redacted.
const ONE_IN: usize = 200;

/// Returns the folders with third-party text that a machine with a Rust workspace has.
fn packages() -> Vec<PathBuf> {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cargo = env::var_os("CARGO_HOME").map_or(home.join(".cargo"), PathBuf::from);
    let mut folders = vec![cargo.join("registry/src"), "/usr/share/doc".into()];
    for lib in ["/usr/lib", "/usr/local/lib"] {
        let python =
            |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("python3");
        let inside = fs::read_dir(lib).into_iter().flatten().flatten();
        folders.extend(inside.filter(python).map(|entry| entry.path()));
    }
    folders
}

/// Collects the files below a folder, in order, of 512 bytes to 512 KiB. Leaves out the packages of this workspace, which
/// contain examples of secrets; `cargo xtask package` puts them beside those of others.
fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    let is_own = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("toolgate")
    };
    for path in entries.into_iter().filter(|path| !is_own(path)) {
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => files(&path, into),
            Ok(meta) if meta.is_file() && (512..512 * 1024).contains(&meta.len()) => {
                into.push(path)
            }
            _ => {}
        }
    }
}

/// Returns chunks of text, spread over the files of all packages.
fn chunks(most: usize) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for folder in packages() {
        files(&folder, &mut all);
    }
    let step = (all.len() / most.max(1)).max(1);
    let mut chunks = Vec::new();
    for path in all.into_iter().step_by(step) {
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        // One chunk of each file, so that large files do not dominate.
        let mut end = CHUNK_BYTES.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let begin = (text.len() - end) / 2;
        let begin = (begin..text.len())
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        let last = (begin + end).min(text.len());
        let last = (last..=text.len())
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(begin);
        chunks.push((path, text[begin..last].to_owned()));
        if chunks.len() >= most {
            break;
        }
    }
    chunks
}

#[test]
fn leaves_text_of_real_packages_alone() {
    let most = env::var("TOOLGATE_CHUNKS").ok();
    let most = most.map_or(DEFAULT_CHUNKS, |most| most.parse().unwrap());
    let chunks = chunks(most);
    if chunks.len() < MIN_CHUNKS {
        println!(
            "only {} chunks of text on this machine: nothing is measured",
            chunks.len()
        );
        return;
    }
    let (mut wrong, mut by_rule) = (Vec::new(), BTreeMap::<_, usize>::new());
    for (path, text) in &chunks {
        let found = find::find(text);
        if found.is_empty() {
            continue;
        }
        found
            .iter()
            .for_each(|found| *by_rule.entry(found.rule.clone()).or_default() += 1);
        let shown = found
            .iter()
            .map(|found| format!("{} {:?}", found.rule, &text[found.range.clone()]));
        wrong.push(format!(
            "{}: {}",
            path.display(),
            shown.collect::<Vec<_>>().join(", ")
        ));
    }
    let share = wrong.len() as f64 * 100.0 / chunks.len() as f64;
    println!(
        "{} of {} chunks are redacted, {share:.2} %: {by_rule:?}",
        wrong.len(),
        chunks.len()
    );
    assert!(wrong.len() * ONE_IN <= chunks.len(), "{}", wrong.join("\n"));
}
