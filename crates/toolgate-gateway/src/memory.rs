//! How much memory the gateway takes at most, as it follows from the limits.
//!
//! The formula stands in `docs/limits.md`. It counts what can be held at the same time, each at its longest, and is far
//! above what is usual: nobody sends the longest of everything on every connection at once.

use crate::config::{Config, Limits};

/// The program itself: code, threads, tables, and what an allocator keeps.
const PROGRAM: u64 = 64 << 20;
/// What one value of a JSON text takes up once it is read.
const VALUE: u64 = 96;
/// A task with its timers, and a buffer for what is written.
const TASK: u64 = 64 << 10;
/// The console keeps so many calls, and so many events for a slow reader.
const BOARD: u64 = (200 + 256) * (64 << 10);
/// The ends of calls that wait for room in the queue of the record.
const LATE: u64 = 8192 * (8 << 10);
/// The longest link that is remembered.
const LINK: u64 = 8 << 10;
/// Kinds of lists: tools, resources, templates, prompts.
const KINDS: u64 = 4;
/// A list as it came, as it was read, and under the names of the whole.
const LISTED: u64 = 3;

/// One line of the sum.
pub(crate) struct Part {
    /// What takes it up.
    pub(crate) what: &'static str,
    /// From which limits that follows.
    pub(crate) from: &'static str,
    /// How much, in bytes.
    pub(crate) bytes: u64,
}

/// The lines of the sum.
pub(crate) fn parts(config: &Config) -> Vec<Part> {
    let limits = &config.limits;
    let servers = config.servers.len() as u64;
    let one = Sizes::of(limits);
    let part = |what, from, bytes| Part { what, from, bytes };
    vec![
        part("the program", "fixed", PROGRAM),
        part(
            "connections",
            "connections x (header_bytes + body_bytes)",
            times(
                limits.connections,
                one.head.saturating_add(one.body).saturating_add(TASK),
            ),
        ),
        part(
            "calls that run or wait",
            "(calls + waiting) x (2 body_bytes + elements)",
            times(limits.calls.saturating_add(limits.waiting), one.call),
        ),
        part(
            "results",
            "calls x (2 result_bytes + elements)",
            times(limits.calls, one.result),
        ),
        part(
            "streams and sessions",
            "(listen_streams + sessions + connections) x stream_bytes",
            times(
                limits
                    .listen_streams
                    .saturating_add(limits.sessions)
                    .saturating_add(limits.connections),
                (limits.stream_bytes as u64).saturating_add(TASK),
            ),
        ),
        part(
            "streams that a client may come back to",
            "resume_bytes",
            limits.resume_bytes as u64,
        ),
        part(
            "what servers send",
            "servers x 2 line_bytes",
            servers
                .saturating_mul(limits.line_bytes as u64)
                .saturating_mul(2),
        ),
        part(
            "lists of servers",
            "servers x 4 kinds x 3 list_bytes",
            servers
                .saturating_mul(KINDS * LISTED)
                .saturating_mul(limits.list_bytes as u64),
        ),
        part(
            "approvals",
            "approvals x 2 body_bytes",
            times(limits.approvals, one.body.saturating_mul(2)),
        ),
        part(
            "links",
            "link_callers x links_per_caller x 8 KiB",
            times(limits.link_callers, times(limits.links_per_caller, LINK)),
        ),
        part(
            "tasks",
            "2 task_bytes",
            (limits.task_bytes as u64).saturating_mul(2),
        ),
        part(
            "the record",
            "audit_queue_bytes",
            (limits.audit_queue_bytes as u64).saturating_add(LATE),
        ),
        part("the console", "fixed", BOARD),
    ]
}

struct Sizes {
    head: u64,
    body: u64,
    call: u64,
    result: u64,
}

impl Sizes {
    fn of(limits: &Limits) -> Sizes {
        let values = times(limits.elements, VALUE);
        let body = limits.body_bytes as u64;
        let result = limits.result_bytes as u64;
        Sizes {
            head: limits.header_bytes as u64,
            body,
            call: body.saturating_mul(2).saturating_add(values),
            result: result.saturating_mul(2).saturating_add(values),
        }
    }
}

fn times(count: usize, bytes: u64) -> u64 {
    (count as u64).saturating_mul(bytes)
}

/// The sum.
pub(crate) fn most(config: &Config) -> u64 {
    let add = |sum: u64, part: &Part| sum.saturating_add(part.bytes);
    parts(config).iter().fold(0, add)
}

/// The sum in one line.
pub(crate) fn line(config: &Config) -> String {
    format!(
        "at most {} by its limits; toolgate check --explain-memory shows the sum",
        size(most(config))
    )
}

/// Each line of the sum, the largest first.
pub(crate) fn explained(config: &Config) -> String {
    let mut parts = parts(config);
    parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    let line = |part: &Part| {
        format!(
            "{:>10}  {:<26} {}\n",
            size(part.bytes),
            part.what,
            part.from
        )
    };
    let lines: String = parts.iter().map(line).collect();
    format!("{lines}{:>10}  in all\n", size(most(config)))
}

/// `12.0 MiB`, `3.5 GiB`; rounded up.
fn size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    let (unit, name) = if bytes < 1024 * MIB {
        (MIB, "MiB")
    } else {
        (1024 * MIB, "GiB")
    };
    let tenths = bytes.saturating_mul(10).div_ceil(unit);
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_follows_from_the_limits() {
        let config = Config::demo().unwrap();
        let of = |change: &dyn Fn(&mut Limits)| {
            let mut config = config.clone();
            change(&mut config.limits);
            most(&config)
        };
        let before = most(&config);
        let body = config.limits.body_bytes as u64;
        let calls = of(&|limits| limits.waiting += 1) - before;
        assert_eq!(calls, 2 * body + config.limits.elements as u64 * VALUE);
        assert!(of(&|limits| limits.result_bytes += 1) > before);
        assert!(of(&|limits| limits.stream_bytes += 1) > before);
        assert!(of(&|limits| limits.list_bytes += 1) > before);
        assert!(of(&|limits| limits.connections += 1) > before);
        assert_eq!(of(&|limits| limits.call_seconds += 1), before);
        assert!(explained(&config).contains("in all"));
        assert_eq!(size(1), "0.1 MiB");
        assert_eq!(size(3 << 29), "1.5 GiB");
    }

    #[test]
    fn the_formula_stands_in_the_docs() {
        let docs = include_str!("../../../docs/limits.md");
        for part in parts(&Config::demo().unwrap()) {
            let row = format!("| {} | {} |", part.what, part.from);
            assert!(docs.contains(&row), "docs/limits.md lacks: {row}");
        }
    }
}
