//! Independent verifier of the audit log, with a parser of its own and no code of the journal.
//!
//! It parses a record into a tree, serializes that tree in the canonical form, and compares: a line with another
//! spelling is invalid. The hash is computed over the tree without `h`. The journal's own verifier cuts the text
//! instead, so each verifier detects faults of the other. The only dependency is `ring`, for SHA-256 and Ed25519.

#[doc(hidden)]
#[path = "fuzz.rs"]
pub mod __fuzz;
mod approvals;
mod bounds;
mod chain;
mod checkpoints;
mod json;
mod log_directory;
mod passkey_list;
mod segment;

use approvals::SignedApprovals;
use bounds::StatedTerms;
use checkpoints::MirrorHeads;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Result of verifying one hash chain of an audit log.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ChainResult {
    /// Id of the hash chain.
    pub name: String,
    /// Sequence number of the last valid audit record of the chain.
    pub records: u64,
    /// Sequence number of the first audit record of the chain that still exists.
    pub first_record: u64,
    /// Sequence number of the last audit record that a signed checkpoint covers.
    pub signed: u64,
    /// Sequence number of the last audit record that a checkpoint of a mirror covers.
    pub mirrored: u64,
    /// Public keys that signed the chain's checkpoints.
    pub keys: BTreeSet<String>,
    /// Number of calls in the chain whose outcome was not recorded.
    pub open_calls: usize,
    /// Number of signed checkpoints in the chain.
    pub checkpoints: u64,
    /// Number of audit records after the last signed checkpoint.
    pub unsigned: u64,
    /// First damaged position of the chain; `None` if it is intact.
    pub first_bad: Option<BadPosition>,
    /// Missing evidence (keys, mirrors, segments) that could reveal damage of the chain.
    pub missing_evidence: Vec<String>,
    stated: StatedTerms,
    /// True if no signed record states how many records may follow the last checkpoint.
    unbounded: bool,
    /// True if a mirror has a checkpoint of the chain.
    covered: bool,
}

/// Result of verifying an audit log directory: its hash chains, keys and checkpoint mirrors.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LogResult {
    /// Results of the hash chains in the directory.
    pub chains: Vec<ChainResult>,
    /// Number of complete lines of the checkpoint mirrors that are not signed by the log's key.
    pub foreign_lines: u64,
    /// True if no chain states the existing `mac.key` (the key of digests in records), so that it was exchanged.
    pub mac_key_exchanged: bool,
    /// Number of approvals of single people that passkeys signed, as the records say.
    pub passkey_signatures: u64,
    /// True if the signatures were verified with a list of passkeys.
    pub passkeys_verified: bool,
    /// Reason for which the list of passkeys is not valid.
    pub invalid_passkeys: Option<String>,
    /// Approvals that too few passkeys signed, and calls that lack such an approval.
    pub unsigned_approvals: Vec<BadPosition>,
    /// Checkpoint mirrors that the audit log was compared with.
    pub mirrors: Vec<PathBuf>,
    /// Public keys that the checkpoints' signatures were compared with.
    pub keys: Vec<String>,
}

impl LogResult {
    /// Returns the exit code of the verification: 0 intact, 1 broken, 3 cannot tell.
    pub fn exit_code(&self) -> u8 {
        let bad = self.chains.iter().any(|chain| chain.first_bad.is_some());
        let unsigned = self.invalid_passkeys.is_some() || !self.unsigned_approvals.is_empty();
        if bad || unsigned || self.foreign_lines > 0 || self.mac_key_exchanged {
            1
        } else if self.chains.is_empty()
            || self.chains.iter().any(|c| !c.missing_evidence.is_empty())
        {
            3
        } else {
            0
        }
    }
}

/// Damaged position in an audit log: file, line and description of the damage.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct BadPosition {
    /// Segment file of the damage, or the directory of the chain.
    pub file: PathBuf,
    /// Line number of the damage, from 1; 0 if it concerns the whole file or chain.
    pub line: u64,
    /// Description of the damage at this position.
    pub why: String,
}

/// Options of verifying an audit log: public keys and checkpoint mirrors to compare it with.
#[derive(Clone, Debug, Default)]
pub struct VerifyOptions {
    /// Public keys that may have signed the checkpoints. Default: that of `checkpoint.key` in the directory.
    pub keys: Vec<String>,
    /// Checkpoint mirrors to compare the log with: files, or directories of files. Default: `checkpoints` beside the
    /// directory and those that the chains name.
    pub mirrors: Vec<PathBuf>,
    /// List of passkeys, as `toolgate passkeys export` prints it, to verify approvals with. It needs an anchor.
    pub passkeys: Option<PathBuf>,
    /// Digest of a change that the list of passkeys must contain: `anchor` in `[passkeys]` of the config.
    pub passkey_anchor: Option<String>,
    /// Tools whose calls must have approvals that passkeys signed: full names, or beginnings of names with `*` at the end.
    pub passkey_tools: Vec<String>,
    /// True if a process is writing the audit log now, so that the last line of a chain may be incomplete.
    pub live: bool,
}

/// Verifies every hash chain of an audit log directory, and its signed checkpoints.
///
/// # Errors
/// The directory or a mirror cannot be read.
pub fn verify(dir: &Path, options: &VerifyOptions) -> io::Result<LogResult> {
    let mut options = options.clone();
    if options.keys.is_empty() {
        options.keys.extend(log_directory::public_key(dir));
    }
    let given = !options.mirrors.is_empty();
    if given {
        options.mirrors = options
            .mirrors
            .iter()
            .map(|p| log_directory::resolved(p))
            .collect();
    } else {
        options.mirrors = log_directory::mirrors(dir, &chain_directories(dir, &[])?);
    }
    loop {
        let found = compare(dir, &options)?;
        let mut more = false;
        for mirror in found
            .chains
            .iter()
            .filter_map(|chain| chain.stated.mirror.as_ref())
        {
            more |= !given && log_directory::add(&mut options.mirrors, mirror);
        }
        if !more {
            return Ok(found);
        }
    }
}

fn compare(dir: &Path, against: &VerifyOptions) -> io::Result<LogResult> {
    let mut kept = MirrorHeads::read(&against.mirrors, &against.keys)?;
    let mut found = LogResult {
        mirrors: against.mirrors.clone(),
        keys: against.keys.clone(),
        ..LogResult::default()
    };
    let mut approvals = SignedApprovals::new(against).unwrap_or_else(|why| {
        found.invalid_passkeys = Some(why);
        SignedApprovals::default()
    });
    for home in chain_directories(dir, &against.mirrors)? {
        let marks = kept.of(&home.file_name().unwrap_or_default().to_string_lossy());
        let mut chain = chain::read(&home, against, &marks, &mut approvals);
        if chain.first_bad.is_none() {
            chain.missing_evidence = doubts(&chain, against);
        }
        found.chains.push(chain);
    }
    found.passkey_signatures = approvals.signatures;
    found.passkeys_verified = approvals.is_verified();
    found.unsigned_approvals = approvals.problems();
    if let Some(digest) = log_directory::mac_key(dir) {
        let stated = found
            .chains
            .iter()
            .filter_map(|c| c.stated.mac_key.as_deref());
        let stated: Vec<&str> = stated.collect();
        found.mac_key_exchanged =
            !stated.is_empty() && !stated.iter().any(|one| digest.starts_with(one));
    }
    found
        .chains
        .extend(kept.rest().map(|(name, last)| ChainResult {
            first_bad: Some(BadPosition {
                file: dir.join(&name),
                line: 0,
                why: format!(
                    "the chain was removed; a checkpoint in a mirror covers {last} records"
                ),
            }),
            name,
            ..ChainResult::default()
        }));
    found.foreign_lines = kept.foreign;
    Ok(found)
}

/// Returns the directories of the chains.
fn chain_directories(dir: &Path, mirrors: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut homes = BTreeSet::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && !mirrors.contains(&log_directory::resolved(&entry.path()))
        {
            homes.insert(entry.path());
        }
    }
    Ok(homes.into_iter().collect())
}

/// Formats a count with its noun: `1 record`, `2 records`.
fn count_of(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

fn doubts(chain: &ChainResult, against: &VerifyOptions) -> Vec<String> {
    let mut doubts = Vec::new();
    if against.keys.is_empty() {
        doubts.push(
            "there is no public key to verify the signatures with; pass one with --key".to_owned(),
        );
    }
    if chain.unbounded {
        doubts.push(format!(
            "{} after the last checkpoint {} no signature, and the log does not state how many may lack one, so checkpoints may have been removed",
            count_of(chain.unsigned, "record"),
            if chain.unsigned == 1 { "has" } else { "have" }
        ));
    }
    let expected = match &chain.stated.mirror {
        Some(_) => true,
        None => !chain.stated.is_new() && !against.mirrors.is_empty(),
    };
    // The mirror is read before the chains, so it lacks the first checkpoint of a chain that starts in between.
    let begins = against.live && chain.checkpoints <= 1;
    if expected && !chain.covered && !begins && chain.records > 0 {
        let named = chain.stated.mirror.as_ref();
        let named = named.map_or(String::new(), |path| format!(" {}", path.display()));
        doubts.push(format!(
            "the chain names a checkpoint mirror{named}, but no mirror has a checkpoint of the chain: the mirror was removed, or it is elsewhere; pass its path with --checkpoints"
        ));
    }
    doubts
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
