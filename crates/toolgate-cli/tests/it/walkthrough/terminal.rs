//! A terminal that is typed into, as a reader of the page would.

use super::page::Step;
use crate::help::{SOON, command, kill_hard, lines, within};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError};

/// One terminal of the reader. Each block runs in a shell of its own that stops at the first command that fails.
pub(super) struct Terminal {
    home: PathBuf,
    path: String,
    running: Option<Running>,
}

struct Running {
    shell: Child,
    lines: Receiver<String>,
    printed: String,
    /// Its line on the page.
    line: usize,
    fails: bool,
    stays: bool,
}

impl Terminal {
    /// One with nothing in its environment but a home and a path.
    pub(super) fn open(home: &Path, path: &str) -> Terminal {
        Terminal {
            home: home.to_owned(),
            path: path.to_owned(),
            running: None,
        }
    }

    /// Types a block, when the one before has ended.
    pub(super) fn type_in(&mut self, step: &Step) {
        self.end();
        let mut shell = command("bash")
            .args(["--noprofile", "--norc", "-e", "-o", "pipefail", "-c"])
            .arg(format!("exec 2>&1\n{}", step.text))
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", &self.path)
            .current_dir(&self.home)
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        self.running = Some(Running {
            lines: lines(shell.stdout.take().unwrap()),
            shell,
            printed: String::new(),
            line: step.line,
            fails: step.is("fails"),
            stays: step.is("stays"),
        });
    }

    /// Waits until the block has ended, as it should.
    pub(super) fn end(&mut self) {
        let Some(running) = &mut self.running else {
            return;
        };
        let line = running.line;
        assert!(!running.stays, "the block of line {line} has to stay");
        let code = within(SOON, || running.ended());
        let text = &running.printed;
        let code = code.unwrap_or_else(|| panic!("line {line} does not end: {text}"));
        let fails = running.fails;
        assert_eq!(code != 0, fails, "line {line} ended with {code}: {text}");
    }

    /// Returns the output of the block, once it is good or the block has ended.
    pub(super) fn printed(&mut self, good: impl Fn(&str) -> bool) -> String {
        let Some(running) = &mut self.running else {
            return String::new();
        };
        within(SOON, || {
            let ended = running.ended();
            (ended.is_some() || good(&running.printed)).then_some(())
        });
        running.printed.clone()
    }

    /// Returns whether it ends by itself.
    pub(super) fn ends(&self) -> bool {
        self.running.as_ref().is_some_and(|running| !running.stays)
    }
}

impl Running {
    /// Its exit code, if it has one and all that it printed was read.
    fn ended(&mut self) -> Option<i32> {
        loop {
            match self.lines.try_recv() {
                Ok(line) => self.printed += &(line + "\n"),
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => break,
            }
        }
        Some(self.shell.try_wait().unwrap()?.code().unwrap_or(-1))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = format!("-{}", self.shell.id());
        if self.shell.try_wait().is_ok_and(|status| status.is_none()) {
            let _ = command("kill").args(["-TERM", "--", &group]).status();
            within(crate::help::SOON, || self.shell.try_wait().unwrap());
        }
        kill_hard(&mut self.shell);
    }
}
