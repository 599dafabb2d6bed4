//! Fallback for systems without `/proc`, where only process groups are known.

use rustix::process::{Pid, Signal};

/// Descendant that left its process group; never found here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DescendantProcess {
    pub(super) pid: Pid,
    pub(super) group: Pid,
}

impl DescendantProcess {
    pub(super) fn is_alive(&self) -> bool {
        false
    }

    pub(super) fn signal(&self, _: Signal) {}
}

pub(super) fn adopt_orphans() {}

pub(super) fn descendants(_: &[Pid]) -> Vec<DescendantProcess> {
    Vec::new()
}
