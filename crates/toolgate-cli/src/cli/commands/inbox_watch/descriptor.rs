//! Waits for a descriptor, and notices that its other end is gone.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{os::fd::AsFd, time::Duration};

/// Waits until the descriptor has input, or the time is over. Returns whether its other end is gone: the terminal was
/// closed, or nothing reads the pipe.
pub(super) fn is_gone_within(descriptor: &impl AsFd, wait: Duration) -> bool {
    let mut watched = [PollFd::new(descriptor, PollFlags::IN)];
    let wait = Timespec {
        tv_sec: wait.as_secs().cast_signed(),
        tv_nsec: wait.subsec_nanos().into(),
    };
    // A signal interrupts the wait; the caller asks again.
    let is_ready = poll(&mut watched, Some(&wait)).is_ok();
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    is_ready && watched[0].revents().intersects(gone)
}
