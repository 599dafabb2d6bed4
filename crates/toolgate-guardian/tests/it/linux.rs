//! Behavior that only Linux guarantees or shows.

use std::fs;
use std::task::Poll;

use toolgate_guardian::ChildExit;

use crate::help::{TERM, alive, eventually, guardian, numbers, program, shell, soon, stat};

#[tokio::test]
async fn a_child_has_three_descriptors_even_if_we_leak_one() {
    use rustix::io::{FdFlags, fcntl_setfd};

    let (leak, _other) = std::io::pipe().unwrap();
    fcntl_setfd(&leak, FdFlags::empty()).unwrap();
    let guardian = guardian();
    fcntl_setfd(&leak, FdFlags::CLOEXEC).unwrap();

    let child = guardian.spawn(program("sleep", &["1000"])).await.unwrap();
    let mut second = guardian.spawn(program("sleep", &["1000"])).await.unwrap();
    // A program that just began still opens its libraries, so it may take a moment.
    for pid in [child.pid(), second.pid()] {
        eventually("three pipes are all", || {
            descriptors(pid) == ["0 pipe", "1 pipe", "2 pipe"]
        })
        .await;
    }
    drop(child);
    soon(second.end()).await;
}

/// The descriptors of a process and what they lead to.
fn descriptors(pid: i32) -> Vec<String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let mut found: Vec<String> = entries
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            let to = std::fs::read_link(&path).ok()?;
            let kind = to.to_str()?.split(':').next()?.to_owned();
            Some(format!("{} {kind}", path.file_name()?.to_str()?))
        })
        .collect();
    found.sort();
    found
}

#[tokio::test]
async fn a_descendant_that_left_the_group_is_ended_too() {
    let script = "setsid sh -c 'echo $$; exec sleep 1000' & cat";
    let guardian = guardian();
    // Often, for the leader exits at once and must not be faster than the look for the others.
    for _ in 0..40 {
        let mut child = guardian.spawn(shell(script)).await.unwrap();
        child.set_steps(TERM);
        let pids = numbers(&mut child, 1).await;
        assert!(alive(pids[0]));
        soon(child.end()).await;
        assert!(!alive(pids[0]));
    }
}

#[tokio::test]
async fn a_child_whose_start_nobody_waits_for_is_ended() {
    let guardian = guardian();
    for _ in 0..10 {
        let mut start = Box::pin(guardian.spawn(program("sleep", &["1000"])));
        std::future::poll_fn(|context| {
            assert!(start.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
    }
    // Answered in order, so those before it have all been started.
    let last = guardian.spawn(program("sleep", &["1000"])).await.unwrap();
    let only = || {
        children(guardian.pid())
            .iter()
            .all(|(pid, _)| *pid == last.pid())
    };
    eventually("only the last child is left", only).await;
}

#[tokio::test]
async fn many_children_leave_no_zombie_and_no_descriptor() {
    let guardian = guardian();
    let open = || {
        std::fs::read_dir(format!("/proc/{}/fd", guardian.pid()))
            .unwrap()
            .count()
    };
    let before = open();
    for round in 0..200 {
        let mut child = guardian.spawn(program("true", &[])).await.unwrap();
        if round % 2 == 0 {
            assert_eq!(soon(child.end()).await, ChildExit::Code(0));
        } else {
            assert_eq!(soon(child.exited()).await, ChildExit::Code(0));
        }
    }
    eventually("no child is left", || children(guardian.pid()).is_empty()).await;
    eventually("no descriptor is left", || open() == before).await;
}

/// The children of a process with their states, from `/proc`.
fn children(parent: u32) -> Vec<(i32, String)> {
    let numbers = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    numbers
        .filter_map(|pid| {
            let (state, found) = stat(pid)?;
            (found == parent).then_some((pid, state))
        })
        .collect()
}
