//! `toolgate-verify DIR` verifies an audit log. Exit codes: 0 intact, 1 broken, 2 wrong arguments, 3 cannot tell.

#![allow(clippy::print_stdout, reason = "its report is its output")]

use std::path::PathBuf;
use std::process::ExitCode;
use toolgate_verify::{LogResult, VerifyOptions, verify};

const USAGE: &str = "usage: toolgate-verify DIR [--key PUBLIC_KEY]... [--checkpoints PATH]... [--live]\n\
    \x20      [--passkeys FILE --passkey-anchor DIGEST [--passkey-tool NAME]...]\n\
    DIR is the directory `audit` in the data directory. Without --key, the key in DIR is used.\n\
    Without --checkpoints, DIR/../checkpoints and the mirrors that the log names are used.\n\
    --live: a gateway is writing the log now.\n\
    --passkeys FILE --passkey-anchor DIGEST: verifies approvals that passkeys signed. FILE has the output of\n\
    `toolgate passkeys export`, DIGEST is `anchor` in [passkeys] of the config.\n\
    --passkey-tool NAME: calls of this tool must have such an approval; NAME may end with *. May be repeated.\n\
    exit code: 0 intact, 1 broken, 2 wrong arguments, 3 cannot tell";

fn main() -> ExitCode {
    let Some((dir, against)) = arguments() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match verify(&dir, &against) {
        Ok(found) => report(&found),
        Err(e) => {
            eprintln!(
                "toolgate-verify: cannot read {} or a checkpoint mirror: {e}; check the paths and their permissions",
                dir.display()
            );
            ExitCode::from(3)
        }
    }
}

fn arguments() -> Option<(PathBuf, VerifyOptions)> {
    let (mut dir, mut against) = (None, VerifyOptions::default());
    let mut words = std::env::args_os().skip(1);
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--key") => against.keys.push(words.next()?.into_string().ok()?),
            Some("--checkpoints") => against.mirrors.push(words.next()?.into()),
            Some("--live") => against.live = true,
            Some("--passkeys") => against.passkeys = Some(words.next()?.into()),
            Some("--passkey-anchor") => {
                against.passkey_anchor = Some(words.next()?.into_string().ok()?);
            }
            Some("--passkey-tool") => {
                against
                    .passkey_tools
                    .push(words.next()?.into_string().ok()?);
            }
            Some(option) if option.starts_with('-') => return None,
            _ if dir.is_none() => dir = Some(PathBuf::from(word)),
            _ => return None,
        }
    }
    let has_anchor = against.passkey_anchor.is_some();
    let needs_list = has_anchor || !against.passkey_tools.is_empty();
    let is_whole = match against.passkeys {
        Some(_) => has_anchor,
        None => !needs_list,
    };
    Some((dir.filter(|_| is_whole)?, against))
}

/// Formats a count with its noun: `1 record`, `2 records`.
fn count_of(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

fn report(found: &LogResult) -> ExitCode {
    for chain in &found.chains {
        let (name, records) = (&chain.name, chain.records);
        match &chain.first_bad {
            None if chain.missing_evidence.is_empty() => {
                println!(
                    "{name}: intact, records {} to {records}",
                    chain.first_record
                );
            }
            None => println!(
                "{name}: CANNOT TELL, records {} to {records}",
                chain.first_record
            ),
            Some(bad) => println!(
                "{name}: BAD at {} line {}: {}; records up to {records} are good",
                bad.file.display(),
                bad.line,
                bad.why
            ),
        }
        println!(
            "  signed up to record {}, {} after the last checkpoint, mirrored up to record {}, {} without an outcome",
            chain.signed,
            count_of(chain.unsigned, "record"),
            chain.mirrored,
            count_of(chain.open_calls as u64, "call")
        );
        chain
            .missing_evidence
            .iter()
            .for_each(|doubt| println!("  {doubt}"));
        for key in chain.keys.iter().filter(|_| found.keys.is_empty()) {
            println!("  signed by {key}, which was not verified");
        }
    }
    if found.foreign_lines > 0 {
        println!(
            "{} in the checkpoint mirror {} not signed with the key of this log: {} to another log",
            count_of(found.foreign_lines, "line"),
            if found.foreign_lines == 1 {
                "is"
            } else {
                "are"
            },
            if found.foreign_lines == 1 {
                "it was changed, or belongs"
            } else {
                "they were changed, or belong"
            }
        );
    }
    report_passkeys(found);
    if found.mac_key_exchanged {
        println!("mac.key was replaced: the records name another key");
    }
    let signed: Vec<String> = found.chains.iter().map(|c| c.signed.to_string()).collect();
    match found.exit_code() {
        0 => println!(
            "intact: signed up to record {}; later records can be changed or cut off without detection",
            signed.join(", ")
        ),
        1 => println!("NOT INTACT"),
        _ if found.chains.is_empty() => println!("CANNOT TELL: there are no chains to verify"),
        _ => println!("CANNOT TELL"),
    }
    ExitCode::from(found.exit_code())
}

/// Reports approvals that passkeys signed.
fn report_passkeys(found: &LogResult) {
    if let Some(why) = &found.invalid_passkeys {
        println!("{why}");
    }
    for bad in &found.unsigned_approvals {
        println!(
            "BAD at {} line {}: {}",
            bad.file.display(),
            bad.line,
            bad.why
        );
    }
    let signatures = count_of(found.passkey_signatures, "signature");
    match (found.passkey_signatures, found.passkeys_verified) {
        (0, _) => {}
        (_, true) => println!("{signatures} of passkeys verified"),
        (_, false) if found.invalid_passkeys.is_some() => {}
        (_, false) => {
            println!("{signatures} of passkeys not verified; pass --passkeys and --passkey-anchor")
        }
    }
}
