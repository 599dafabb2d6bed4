//! `[audit]`: audit log settings.

use super::{
    audit_content::{ArgumentForm, AuditContentSettings, ResultForm},
    reader::{ConfigPath, IntRange, SettingError, SettingPath, Word},
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use toolgate_policy::{AuditContentForm, AuditDurability};

/// Settings of the audit log.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AuditSection {
    /// Size at which a segment is sealed.
    #[serde(with = "IntRange::<4096, 1_073_741_824>")]
    segment_bytes: u64,
    /// Age at which a segment is sealed.
    #[serde(with = "IntRange::<1, 8784>")]
    segment_hours: u64,
    /// Number of records after which a signed checkpoint follows.
    #[serde(with = "IntRange::<1, 10_000>")]
    checkpoint_records: u64,
    /// Seconds between signed checkpoints, if there are new records.
    #[serde(with = "IntRange::<1, 3600>")]
    checkpoint_seconds: u64,
    /// Checkpoint mirror: a file, or a folder with a file for each chain. A path that does not exist and has no
    /// extension such as `.jsonl` becomes a folder. The gateway creates a missing parent folder. Default: `checkpoints`
    /// in the data directory.
    checkpoints: Option<ConfigPath>,
    /// Age at which sealed segments are retired. Toolgate checks it when it seals a segment, and when it starts.
    /// Default: none: all is kept.
    #[serde(with = "IntRange::<1, 36_600>")]
    keep_days: Option<u64>,
    /// Size of a chain above which its oldest sealed segments are retired. A chain can briefly have up to two more
    /// segments. Default: none: all is kept.
    #[serde(with = "IntRange::<1_048_576, 1_125_899_906_842_624>")]
    keep_bytes: Option<u64>,
    /// True if retirement is suspended, and no contents can be erased. A file `hold` in `DATA/audit` does the same
    /// without a restart.
    hold: bool,
    /// Audit writes that a call waits for. With `strict`, `call.begin` is on the disk before the call leaves, and
    /// `call.end` before its answer does. With `end`, both are on the disk before the answer leaves. `auto` is `end`
    /// for tools that a server with `trust_annotations` marks as read-only, else `strict`. `audit_mode` of a server
    /// overrides it.
    #[serde(with = "Word::<AuditDurability>")]
    mode: AuditDurability,
    /// Contents of arguments in the audit log. Their length and a keyed digest are always recorded. `digest`: nothing
    /// else. `rules`: if a rule for that item reads arguments in its `when`, also these arguments, without secrets, and
    /// the names of the others; `toolgate explain --history` needs them to evaluate a new version of the rule.
    /// `redacted`: all arguments, without secrets. `audit_arguments` of a server overrides it.
    #[serde(with = "Word::<ArgumentForm>")]
    arguments: AuditContentForm,
    /// Contents of results in the audit log. Their length and a keyed digest are always recorded. `redacted`: also the
    /// results, without secrets. `audit_results` of a server overrides it.
    #[serde(with = "Word::<ResultForm>")]
    results: AuditContentForm,
    /// Maximum length of recorded arguments and results. Of longer ones, only the length and the digest are recorded.
    #[serde(with = "IntRange::<64, 49_152>")]
    contents_bytes: usize,
    /// True if the gateway encrypts recorded arguments and results, so that `toolgate audit erase` can make those of a
    /// caller or of a period unreadable. The keys are in the store. A record then has `args_enc` and `res_enc` instead
    /// of `args` and `res`.
    encrypt_contents: bool,
    /// Age in days at which encrypted contents become unreadable: the gateway destroys the key of each UTC day that is
    /// older. The records stay. It needs `encrypt_contents`. Default: none: contents are kept as long as their records.
    #[serde(with = "IntRange::<1, 36_600>")]
    keep_contents_days: Option<u64>,
    /// True if the gateway copies the segments of its audit log into the shared store, so that they survive the loss of
    /// its disk. `toolgate audit restore-copy` restores them. The database grows as fast as the log, and whoever can
    /// read it can read the recorded contents. It needs `url` in `[store]`.
    copy_segments: bool,
    /// Seconds between two copies of new records.
    #[serde(with = "IntRange::<1, 3600>")]
    copy_seconds: u64,
    /// Maximum number of bytes that are copied in a second.
    #[serde(with = "IntRange::<65_536, 1_073_741_824>")]
    copy_bytes_per_second: u64,
}

/// Settings of the copies of segments in the shared store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct AuditCopySettings {
    /// Interval of the copies of new records, from 1 s to 1 hour; default 5 s.
    pub(crate) interval: Duration,
    /// Maximum number of bytes that are copied in a second, from 64 KiB to 1 GiB; default 4 MiB.
    pub(crate) bytes_per_second: u64,
}

impl Default for AuditCopySettings {
    fn default() -> AuditCopySettings {
        AuditCopySettings {
            interval: Duration::from_secs(5),
            bytes_per_second: 4 * 1024 * 1024,
        }
    }
}

/// Audit log settings.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct AuditSettings {
    /// Segment size in bytes at which a segment is sealed, from 4 KiB to 1 GiB; default 64 MiB.
    pub(crate) segment_bytes: u64,
    /// Segment age in hours at which a segment is sealed; default 24.
    pub(crate) segment_hours: u64,
    /// Records between two checkpoints, at most 10,000; default 1,000.
    pub(crate) checkpoint_records: u64,
    /// Seconds between two checkpoints while records are written, at most 3,600; default 5.
    pub(crate) checkpoint_seconds: u64,
    /// Checkpoint mirror; by default `checkpoints` in the data directory.
    pub(crate) checkpoints: Option<PathBuf>,
    /// Retention of sealed segments in days; by default unlimited.
    pub(crate) keep_days: Option<u64>,
    /// Maximum size of a chain in bytes; above it, the oldest sealed segments are deleted. By default unlimited.
    pub(crate) keep_bytes: Option<u64>,
    /// True suspends retention: no segment is deleted.
    pub(crate) hold: bool,
    /// Age in days at which the keys of encrypted contents are destroyed; by default unlimited. A reload applies changes.
    pub(crate) keep_contents_days: Option<u64>,
    /// Copies of segments in the shared store; by default none.
    pub(crate) copies: Option<AuditCopySettings>,
    /// Call contents in audit records; a reload applies changes.
    pub(crate) content: AuditContentSettings,
}

impl Default for AuditSettings {
    fn default() -> AuditSettings {
        AuditSettings {
            segment_bytes: 64 * 1024 * 1024,
            segment_hours: 24,
            checkpoint_records: 1000,
            checkpoint_seconds: 5,
            checkpoints: None,
            keep_days: None,
            keep_bytes: None,
            hold: false,
            keep_contents_days: None,
            copies: None,
            content: AuditContentSettings::default(),
        }
    }
}

impl Default for AuditSection {
    fn default() -> AuditSection {
        let (audit, copies) = (AuditSettings::default(), AuditCopySettings::default());
        AuditSection {
            segment_bytes: audit.segment_bytes,
            segment_hours: audit.segment_hours,
            checkpoint_records: audit.checkpoint_records,
            checkpoint_seconds: audit.checkpoint_seconds,
            checkpoints: None,
            keep_days: audit.keep_days,
            keep_bytes: audit.keep_bytes,
            hold: audit.hold,
            mode: audit.content.durability,
            arguments: audit.content.arguments,
            results: audit.content.results,
            contents_bytes: audit.content.max_content_bytes,
            encrypt_contents: audit.content.encrypt,
            keep_contents_days: audit.keep_contents_days,
            copy_segments: audit.copies.is_some(),
            copy_seconds: copies.interval.as_secs(),
            copy_bytes_per_second: copies.bytes_per_second,
        }
    }
}

impl AuditSettings {
    /// Checks `[audit]`.
    pub(super) fn check(
        section: AuditSection,
        has_shared_store: bool,
    ) -> Result<AuditSettings, SettingError> {
        if section.keep_contents_days.is_some() && !section.encrypt_contents {
            return Err(SettingError::about(
                SettingPath::new(&["audit", "keep_contents_days"]),
                "needs encrypt_contents = true, because only encrypted contents can be erased without their records; set it too, or use keep_days to delete whole segments",
            ));
        }
        if section.copy_segments && !has_shared_store {
            return Err(SettingError::about(
                SettingPath::new(&["audit", "copy_segments"]),
                "needs a shared store, because the copies go into its database; set url in [store]",
            ));
        }
        let copies = AuditCopySettings {
            interval: Duration::from_secs(section.copy_seconds),
            bytes_per_second: section.copy_bytes_per_second,
        };
        Ok(AuditSettings {
            segment_bytes: section.segment_bytes,
            segment_hours: section.segment_hours,
            checkpoint_records: section.checkpoint_records,
            checkpoint_seconds: section.checkpoint_seconds,
            checkpoints: section.checkpoints.map(PathBuf::from),
            keep_days: section.keep_days,
            keep_bytes: section.keep_bytes,
            hold: section.hold,
            keep_contents_days: section.keep_contents_days,
            copies: section.copy_segments.then_some(copies),
            content: AuditContentSettings {
                durability: section.mode,
                arguments: section.arguments,
                results: section.results,
                max_content_bytes: section.contents_bytes,
                encrypt: section.encrypt_contents,
            },
        })
    }

    /// Returns the journal options for a data directory.
    pub(crate) fn journal_options(&self, data: &Path) -> toolgate_journal::JournalOptions {
        let mut options = toolgate_journal::JournalOptions::new(data.join("audit"));
        options.segment_bytes = self.segment_bytes;
        options.segment_age = Duration::from_secs(self.segment_hours * 3600);
        options.checkpoint_records = self.checkpoint_records;
        options.checkpoint_interval = Duration::from_secs(self.checkpoint_seconds);
        let days = |days| Duration::from_secs(days * 24 * 3600);
        options.retain_age = self.keep_days.map(days);
        options.retain_bytes = self.keep_bytes;
        options.suspend_retention = self.hold;
        options.checkpoint_mirror = Some(self.checkpoint_mirror(data));
        options
    }

    /// Returns whether nothing may be deleted: neither segments nor the keys of contents.
    pub(crate) fn is_on_hold(&self, data: &Path) -> bool {
        self.hold || toolgate_journal::has_hold_file(&data.join("audit"))
    }

    /// Returns the checkpoint mirror of a data directory.
    pub(crate) fn checkpoint_mirror(&self, data: &Path) -> PathBuf {
        let place = self.checkpoints.clone();
        place.unwrap_or_else(|| data.join("checkpoints"))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use std::path::Path;
    use toolgate_policy::{AuditContentForm, AuditDurability};

    fn read(text: &str) -> Result<Config, String> {
        let text = format!("{text}\n[server.a]\ncommand = [\"a\"]\n");
        Config::parse(Path::new("/etc/t.toml"), &text).map_err(|error| error.to_string())
    }

    #[test]
    fn every_key_is_read() {
        let config = read(
            "[audit]\nsegment_bytes = 4096\nsegment_hours = 2\ncheckpoint_records = 3\ncheckpoint_seconds = 4\ncheckpoints = \"c.jsonl\"\nkeep_days = 1\nkeep_bytes = 1048576\nhold = true\nmode = \"end\"\narguments = \"redacted\"\nresults = \"redacted\"\ncontents_bytes = 64\nencrypt_contents = true\nkeep_contents_days = 30",
        );
        let audit = config.unwrap().audit;
        assert_eq!(
            (
                audit.content.arguments,
                audit.content.results,
                audit.content.max_content_bytes
            ),
            (AuditContentForm::Redacted, AuditContentForm::Redacted, 64)
        );
        assert_eq!(
            (audit.content.encrypt, audit.keep_contents_days),
            (true, Some(30))
        );
        assert_eq!(audit.copies, None);
        assert_eq!(audit.content.durability, AuditDurability::End);
        let options = audit.journal_options(Path::new("/data"));
        assert_eq!(
            (options.segment_bytes, options.checkpoint_records),
            (4096, 3)
        );
        assert_eq!(options.segment_age.as_secs(), 7200);
        assert_eq!(
            options.retain_age,
            Some(std::time::Duration::from_secs(86_400))
        );
        assert_eq!(
            (options.retain_bytes, options.suspend_retention),
            (Some(1_048_576), true)
        );
        assert_eq!(options.checkpoint_interval.as_secs(), 4);
        assert_eq!(
            options.checkpoint_mirror.as_deref(),
            Some(Path::new("/etc/c.jsonl"))
        );
    }

    #[test]
    fn copies_need_a_shared_store_and_have_an_interval_and_a_rate() {
        let config = read(
            "[store]\nurl = \"postgres://t@localhost/t\"\n[audit]\ncopy_segments = true\ncopy_seconds = 2\ncopy_bytes_per_second = 65536",
        );
        let copies = config.unwrap().audit.copies.unwrap();
        assert_eq!(
            (copies.interval.as_secs(), copies.bytes_per_second),
            (2, 65_536)
        );
    }

    #[test]
    fn rejects_values_out_of_range() {
        for wrong in [
            "segment_bytes = 4095",
            "segment_bytes = 1073741825",
            "segment_hours = 0",
            "segment_hours = 8785",
            "checkpoint_records = 10001",
            "checkpoint_seconds = 3601",
            "checkpoint = 1",
            "keep_days = 0",
            "keep_days = 36601",
            "keep_bytes = 1048575",
            "hold = 1",
            "mode = \"async\"",
            "arguments = true",
            "arguments = \"all\"",
            "results = \"plain\"",
            "contents_bytes = 63",
            "contents_bytes = 49153",
            "encrypt_contents = 1",
            "keep_contents_days = 0",
            "keep_contents_days = 30",
            "copy_segments = true",
            "copy_seconds = 0",
            "copy_bytes_per_second = 1",
        ] {
            let error = read(&format!("[audit]\n{wrong}")).unwrap_err();
            assert!(error.contains("/etc/t.toml:2:"), "{error}");
        }
    }
}
