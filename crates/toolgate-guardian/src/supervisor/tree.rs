//! Process tree from `/proc`, for descendants that left their process group.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};

/// Process, distinguished by its start time from a later one with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DescendantProcess {
    pub(super) pid: Pid,
    /// Process group at the time of reading.
    pub(super) group: Pid,
    started: u64,
}

impl DescendantProcess {
    /// Returns whether the process still runs; a zombie does not.
    pub(super) fn is_alive(&self) -> bool {
        read(self.pid).is_some_and(|now| !now.dead && now.process.started == self.started)
    }

    pub(super) fn signal(&self, signal: Signal) {
        if self.is_alive() {
            let _ = kill_process(self.pid, signal);
        }
    }
}

/// Makes this process the subreaper: it adopts every orphaned descendant, so that none escapes. If the kernel refuses,
/// only process groups are known.
pub(super) fn adopt_orphans() {
    let _ = set_child_subreaper(Some(getpid()));
}

/// Returns every living descendant of the roots, without the roots.
pub(super) fn descendants(roots: &[Pid]) -> Vec<DescendantProcess> {
    if !Path::new("/proc/thread-self/children").exists() {
        return descendants_by_parent(roots);
    }
    let mut known: HashSet<Pid> = roots.iter().copied().collect();
    let mut next = roots.to_vec();
    let mut found = Vec::new();
    while let Some(parent) = next.pop() {
        for child in children(parent).filter(|child| known.insert(*child)) {
            next.push(child);
            found.extend(
                read(child)
                    .filter(|line| !line.dead)
                    .map(|line| line.process),
            );
        }
    }
    found
}

/// Returns the children of a process, thread by thread. The cost depends on their number. A scan of all processes of
/// the machine would repeat its full cost for each of many concurrent shutdowns.
fn children(parent: Pid) -> impl Iterator<Item = Pid> {
    let threads = fs::read_dir(format!("/proc/{}/task", parent.as_raw_nonzero()));
    let lists = threads
        .into_iter()
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    let numbers: Vec<i32> = lists
        .flat_map(|list| {
            list.split_ascii_whitespace()
                .filter_map(|n| n.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect();
    numbers.into_iter().filter_map(Pid::from_raw)
}

/// Returns the descendants by the parents of all processes, for a kernel that does not list children.
fn descendants_by_parent(roots: &[Pid]) -> Vec<DescendantProcess> {
    let all = all_processes();
    let mut known: HashSet<Pid> = roots.iter().copied().collect();
    let mut found = Vec::new();
    loop {
        let before = found.len();
        for line in &all {
            if line.parent.is_some_and(|parent| known.contains(&parent))
                && known.insert(line.process.pid)
            {
                found.push(line);
            }
        }
        if found.len() == before {
            return found
                .iter()
                .filter(|line| !line.dead)
                .map(|line| line.process)
                .collect();
        }
    }
}

struct ProcessStat {
    process: DescendantProcess,
    parent: Option<Pid>,
    dead: bool,
}

fn all_processes() -> Vec<ProcessStat> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|number| read(Pid::from_raw(number)?))
        .collect()
}

fn read(pid: Pid) -> Option<ProcessStat> {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    parse(pid, &String::from_utf8_lossy(&fs::read(path).ok()?))
}

/// Parses `/proc/PID/stat`. The program name in parentheses may contain parentheses and spaces, so the fields are
/// counted from the last parenthesis.
fn parse(pid: Pid, stat: &str) -> Option<ProcessStat> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<i32>().ok();
    let started = fields.get(19)?.parse().ok()?;
    Some(ProcessStat {
        process: DescendantProcess {
            pid,
            group: Pid::from_raw(number(2)?).unwrap_or(pid),
            started,
        },
        parent: Pid::from_raw(number(1)?),
        dead: matches!(*fields.first()?, "Z" | "X"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_a_name_with_parentheses() {
        let pid = Pid::from_raw(7).unwrap();
        let stat = "7 (a) S 9 (b) Z 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 4242 0";
        let line = parse(pid, stat).unwrap();
        assert_eq!(
            (line.parent, line.process.group),
            (Pid::from_raw(5), Pid::from_raw(6).unwrap())
        );
        assert_eq!(line.process.started, 4242);
        assert!(line.dead);
        assert!(parse(pid, "7 (cut").is_none());
    }

    #[test]
    fn finds_this_process_below_its_parent() {
        let parent = rustix::process::getppid().unwrap();
        for found in [descendants(&[parent]), descendants_by_parent(&[parent])] {
            assert!(found.iter().any(|process| process.pid == getpid()));
        }
        assert!(descendants(&[]).is_empty());
    }
}
