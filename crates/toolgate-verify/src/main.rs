//! `toolgate-verify DIR`: checks an audit log; exit code 0 if it is intact, 1 if not, 2 if it cannot be read.

#![allow(clippy::print_stdout, reason = "its report is its output")]

use std::path::PathBuf;
use std::process::ExitCode;
use toolgate_verify::{Against, Chain, verify};

const USAGE: &str = "usage: toolgate-verify DIR [--key PUBLIC_KEY]... [--checkpoints PATH]... [--live]\n\
    DIR is the folder `audit` of the data directory. Without --key, who signed is only printed.\n\
    Without --checkpoints, a cut end cannot be seen. --live: a gateway is writing it now.";

fn main() -> ExitCode {
    let Some((dir, against)) = arguments() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match verify(&dir, &against) {
        Ok((chains, foreign)) => report(&chains, foreign, &against),
        Err(e) => {
            eprintln!(
                "toolgate-verify: cannot read {} or a place of checkpoints: {e}",
                dir.display()
            );
            ExitCode::from(2)
        }
    }
}

fn arguments() -> Option<(PathBuf, Against)> {
    let (mut dir, mut against) = (None, Against::default());
    let mut words = std::env::args_os().skip(1);
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--key") => against.keys.push(words.next()?.into_string().ok()?),
            Some("--checkpoints") => against.places.push(words.next()?.into()),
            Some("--live") => against.live = true,
            Some(option) if option.starts_with('-') => return None,
            _ if dir.is_none() => dir = Some(PathBuf::from(word)),
            _ => return None,
        }
    }
    Some((dir?, against))
}

fn report(chains: &[Chain], foreign: u64, against: &Against) -> ExitCode {
    for chain in chains {
        let (name, records) = (&chain.name, chain.records);
        match &chain.bad {
            None => println!("{name}: intact, records {} to {records}", chain.first),
            Some(bad) => println!(
                "{name}: BAD at {} line {}: {}; good up to record {records}",
                bad.file.display(),
                bad.line,
                bad.why
            ),
        }
        println!(
            "  signed up to {}, covered elsewhere up to {}, {} calls without an outcome",
            chain.signed, chain.kept, chain.open
        );
        for key in chain.keys.iter().filter(|_| against.keys.is_empty()) {
            println!("  signed by {key}, which was not compared");
        }
    }
    if foreign > 0 {
        println!("{foreign} lines kept elsewhere are not signed by the key");
    }
    let intact = foreign == 0 && chains.iter().all(|chain| chain.bad.is_none());
    println!("{}", if intact { "intact" } else { "NOT INTACT" });
    ExitCode::from(u8::from(!intact))
}
