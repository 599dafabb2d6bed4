//! CPU time and context switches of a process, read from `/proc`.

use std::{fs, ops::Sub, path::PathBuf};

/// Nanoseconds of one clock tick of `/proc/PID/stat`.
const TICK_NANOS: f64 = 1e7;

/// Consumption of a process and its threads so far.
#[derive(Clone, Copy, Default)]
pub struct Usage {
    /// Nanoseconds of CPU time in user space.
    pub user: f64,
    /// Nanoseconds of CPU time in the kernel.
    pub system: f64,
    /// Context switches, voluntary or not.
    pub switches: f64,
}

impl Usage {
    /// Reads the usage of a process.
    pub fn of(pid: u32) -> Usage {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let stat = fs::read_to_string(process.join("stat")).expect("the process runs");
        // The name of the program may contain spaces; the fields after it do not.
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
        let tick = |at: usize| fields.split(' ').nth(at).and_then(|n| n.parse().ok());
        let (user, system): (f64, f64) = (tick(11).unwrap_or(0.0), tick(12).unwrap_or(0.0));
        let (mut exact, mut switches) = (0.0, 0.0);
        for thread in fs::read_dir(process.join("task")).into_iter().flatten() {
            let Ok(thread) = thread else { continue };
            let read =
                |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            exact += first_number(&read("schedstat"));
            switches += read("status")
                .lines()
                .filter_map(|line| line.split_once("ctxt_switches:"))
                .map(|(_, count)| first_number(count))
                .sum::<f64>();
        }
        // Ticks give the parts, the scheduler gives the exact sum.
        let ticks = (user + system).max(1.0);
        let total = if exact > 0.0 {
            exact
        } else {
            ticks * TICK_NANOS
        };
        Usage {
            user: total * user / ticks,
            system: total * system / ticks,
            switches,
        }
    }

    /// Returns the usage of one of so many calls.
    pub fn per_call(self, calls: u64) -> Usage {
        let calls = calls as f64;
        Usage {
            user: self.user / calls,
            system: self.system / calls,
            switches: self.switches / calls,
        }
    }

    /// CPU time in microseconds.
    pub fn micros(self) -> f64 {
        (self.user + self.system) / 1e3
    }
}

impl Sub for Usage {
    type Output = Usage;

    fn sub(self, before: Usage) -> Usage {
        Usage {
            user: self.user - before.user,
            system: self.system - before.system,
            switches: self.switches - before.switches,
        }
    }
}

fn first_number(text: &str) -> f64 {
    let word = text.split_whitespace().next();
    word.and_then(|n| n.parse().ok()).unwrap_or(0.0)
}
