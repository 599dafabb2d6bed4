//! Starting programs, and what became of their families.

use super::{SOON, until};
use std::ffi::OsStr;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::{fs, thread};

/// A program to be started, with nothing to read and nothing inherited from an outer Toolgate.
#[allow(
    clippy::disallowed_methods,
    reason = "a test drives real programs; the ban is for the gateway"
)]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let known = ["TOOLGATE_INTEROP", "TOOLGATE_SKIPS", "TOOLGATE_CHROMIUM"];
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("TOOLGATE_") && !known.contains(&name.as_str()) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a program to its end, which must come soon, and gives what it printed.
#[track_caller]
pub(crate) fn output(command: &mut Command) -> Output {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (out, err) = (whole(child.stdout.take()), whole(child.stderr.take()));
    let ended = super::within(SOON, || child.try_wait().unwrap());
    if ended.is_none() {
        kill_hard(&mut child);
    }
    let (stdout, stderr) = (out.join().unwrap(), err.join().unwrap());
    let said = String::from_utf8_lossy(&stderr).into_owned();
    let status = ended.unwrap_or_else(|| panic!("{command:?} did not end: {said}"));
    Output {
        status,
        stdout,
        stderr,
    }
}

fn whole(from: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut all = Vec::new();
        if let Some(mut from) = from {
            let _ = from.read_to_end(&mut all);
        }
        all
    })
}

/// Asks a child that we started to end, and waits until it did.
pub(crate) fn end_politely(child: &mut Child) -> ExitStatus {
    if let Some(status) = child.try_wait().unwrap() {
        return status;
    }
    let sent = command("kill")
        .args(["-TERM", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    let ended = super::within(SOON, || child.try_wait().unwrap());
    ended.unwrap_or_else(|| {
        kill_hard(child);
        panic!("the program did not end on SIGTERM")
    })
}

/// Ends a child that we started, without asking.
pub(crate) fn kill_hard(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// The processes that descend from one, as they were when asked; told apart from later bearers of the same number.
#[derive(Debug)]
pub(crate) struct Family(Vec<Member>);

#[derive(Clone, Debug, PartialEq)]
struct Member {
    pid: u32,
    started: String,
    name: String,
}

impl Family {
    /// All descendants of `root`, without it.
    pub(crate) fn of(root: u32) -> Family {
        let all: Vec<(Member, u32)> = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(stat)
            .collect();
        let (mut found, mut look) = (Vec::new(), vec![root]);
        while let Some(parent) = look.pop() {
            for (member, _) in all.iter().filter(|(_, of)| *of == parent) {
                look.push(member.pid);
                found.push(member.clone());
            }
        }
        Family(found)
    }

    /// Returns the number of processes in both.
    pub(crate) fn in_common(&self, other: &Family) -> usize {
        self.0.iter().filter(|one| other.0.contains(one)).count()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The names in the environment of the one that was started with this argument.
    pub(crate) fn variables_of(&self, argument: &str) -> Option<Vec<String>> {
        let words = |pid: u32, file: &str| -> Vec<String> {
            let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let words = bytes
                .split(|byte| *byte == 0)
                .filter(|word| !word.is_empty());
            words
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect()
        };
        let started = |member: &&Member| words(member.pid, "cmdline").iter().any(|w| w == argument);
        let member = self.0.iter().find(started)?;
        let variables = words(member.pid, "environ").into_iter();
        let name = |variable: String| variable.split('=').next().map(str::to_owned);
        Some(variables.filter_map(name).collect())
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|member| member.name.as_str()).collect()
    }

    /// Waits until none of them lives; a zombie that nobody fetched does not live.
    #[track_caller]
    pub(crate) fn is_gone(&self) {
        until(&format!("the processes {:?} end", self.0), SOON, || {
            self.alive().is_empty().then_some(())
        });
    }

    fn alive(&self) -> Vec<&Member> {
        let lives = |member: &&Member| stat(member.pid).is_some_and(|(now, _)| now == **member);
        self.0.iter().filter(lives).collect()
    }
}

/// Returns a process that is no zombie, and its parent, as the kernel reports them.
fn stat(pid: u32) -> Option<(Member, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, tail) = text.rsplit_once(')')?;
    let words: Vec<&str> = tail.split_whitespace().collect();
    if matches!(words.first(), Some(&"Z" | &"X")) {
        return None;
    }
    let name = head.split_once('(')?.1.to_owned();
    Some((
        Member {
            pid,
            started: (*words.get(19)?).to_owned(),
            name,
        },
        words.get(1)?.parse().ok()?,
    ))
}

/// Reads lines on a thread of its own, so that the writer never waits for us.
pub(crate) fn lines(
    from: impl std::io::Read + Send + 'static,
) -> std::sync::mpsc::Receiver<String> {
    let (send, lines) = std::sync::mpsc::sync_channel(10_000);
    thread::spawn(move || {
        use std::io::BufRead;
        for line in std::io::BufReader::new(from)
            .split(b'\n')
            .map_while(Result::ok)
        {
            if send
                .send(String::from_utf8_lossy(&line).trim_end().to_owned())
                .is_err()
            {
                return;
            }
        }
    });
    lines
}

/// Returns a port of the loopback that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
