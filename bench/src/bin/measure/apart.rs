//! One measurement in a process of its own, so that it can fail or hang alone.

use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    os::unix::process::CommandExt,
    process::{Command, Output, Stdio},
    sync::mpsc::sync_channel,
    thread,
    time::Duration,
};

/// The longest words of a failure that a row has.
const LONGEST: usize = 100;

/// Has this program measure what the words say, with all that it starts in a process group of its own, which ends with the
/// bound. The numbers that it said.
///
/// # Errors
/// Why there are none, in words for the page.
pub fn measure(words: &[&str], bound: Duration) -> Result<Vec<f64>, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(this);
    command.args(words).stdin(Stdio::null()).process_group(0);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| error.to_string())?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (tell, told) = sync_channel(1);
    thread::spawn(move || tell.send(child.wait_with_output()));
    let output = told.recv_timeout(bound).map_err(|_| {
        // It was not waited for, so the number is still its own.
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        format!("not done within {bound:?}")
    })?;
    numbers(&output.map_err(|error| error.to_string())?)
}

fn numbers(output: &Output) -> Result<Vec<f64>, String> {
    if !output.status.success() {
        return Err(reason(&output.stderr).unwrap_or_else(|| output.status.to_string()));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(said
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect())
}

/// Reads the reason that [`tell`] wrote.
fn reason(stderr: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().rev().find_map(|line| line.strip_prefix(OWN))?;
    let plain = |c: char| if matches!(c, '|' | '<' | '`') { ' ' } else { c };
    Some(line.chars().map(plain).take(LONGEST).collect())
}

/// Prefix of the line of a failure.
const OWN: &str = "measure: ";

/// Failures are told in one line.
pub fn tell() {
    std::panic::set_hook(Box::new(|info| {
        let words = info.payload();
        let words = words.downcast_ref::<String>().map(String::as_str);
        let fixed = info.payload().downcast_ref::<&str>().copied();
        let words = words.or(fixed).unwrap_or("it failed");
        eprintln!("{OWN}{}", words.replace('\n', " "));
    }));
}
