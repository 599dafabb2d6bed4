//! A program with all that it starts, as one process group that ends when told and in time.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// A running program at the head of a process group of its own. Dropping it kills the group.
pub(crate) struct Group(Child);

impl Group {
    /// Starts it.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start(command: &mut Command) -> Result<Group, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.process_group(0).spawn();
        child
            .map(Group)
            .map_err(|error| format!("{name} could not be started: {error}"))
    }

    /// The head of the group.
    pub(crate) fn head(&mut self) -> &mut Child {
        &mut self.0
    }

    /// Waits for the head to end, no longer than `limit`. How it ended is not told: nobody here may believe it.
    ///
    /// # Errors
    /// It did not end in time. The group is killed when this is dropped.
    pub(crate) fn wait(&self, limit: Duration) -> Result<(), String> {
        let began = Instant::now();
        // It is only looked at, and reaped in `drop`: until then nobody else can get its number.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            match self.pid().map(|pid| waitid(WaitId::Pid(pid), look)) {
                Some(Ok(Some(_))) => return Ok(()),
                Some(Ok(None)) if began.elapsed() < limit => {
                    thread::sleep(Duration::from_millis(50));
                }
                Some(Ok(None)) => {
                    return Err(format!("it did not end within {} s", limit.as_secs()));
                }
                Some(Err(error)) => return Err(format!("it was lost: {error}")),
                None => return Err("it has no number".to_owned()),
            }
        }
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.0.id()).ok().and_then(Pid::from_raw)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.pid() {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::Group;
    use crate::run::command;
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;
    use std::time::Duration;

    #[test]
    fn dropping_it_ends_the_children_of_the_head_too() {
        let mut sh = command("sh");
        sh.args(["-c", "sleep 600 & echo ready; wait"])
            .stdout(Stdio::piped());
        let mut group = Group::start(&mut sh).unwrap();
        let mut out = BufReader::new(group.head().stdout.take().unwrap());
        out.read_line(&mut String::new()).unwrap();
        assert!(group.wait(Duration::from_millis(100)).is_err());
        drop(group);
        // The pipe ends only when the last of the group that holds it is gone.
        let mut rest = Vec::new();
        out.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty());
    }
}
