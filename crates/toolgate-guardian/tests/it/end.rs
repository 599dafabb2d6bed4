//! How children end.

use std::task::Poll;

use rustix::process::Signal;
use toolgate_guardian::{Error, Exit};

use crate::help::{
    FOREVER, SHORT, TERM, alive, all, children, eventually, guardian, numbers, program, send,
    shell, soon,
};

#[tokio::test]
async fn a_child_that_leaves_at_the_end_of_its_input_is_not_signalled() {
    let script = "trap 'echo signalled; exit 9' TERM; echo $$; cat; echo left; exit 7";
    let guardian = guardian();
    let mut child = guardian.spawn(shell(script)).await.unwrap();
    child.set_steps(FOREVER);
    numbers(&mut child, 1).await;
    assert_eq!(soon(child.end()).await, Exit::Code(7));
    assert_eq!(all(&mut child.stdout).await, "left\n");
}

#[tokio::test]
async fn a_child_that_stays_gets_sigterm() {
    let guardian = guardian();
    let mut child = guardian.spawn(program("sleep", &["1000"])).await.unwrap();
    child.set_steps(TERM);
    assert_eq!(soon(child.end()).await, Exit::Signal(15));
}

#[tokio::test]
async fn a_child_that_ignores_sigterm_is_killed_with_its_group() {
    let script = "trap '' TERM; sleep 1000 & echo $$; echo $!; while :; do sleep 1000; done";
    let guardian = guardian();
    let mut child = guardian.spawn(shell(script)).await.unwrap();
    child.set_steps(SHORT);
    let pids = numbers(&mut child, 2).await;
    assert_eq!(soon(child.end()).await, Exit::Signal(9));
    assert!(
        !pids.into_iter().any(alive),
        "the end resolves when nothing is left"
    );
}

#[tokio::test]
async fn what_a_leader_leaves_behind_is_ended() {
    let guardian = guardian();
    let mut child = guardian
        .spawn(shell("sleep 1000 >/dev/null & echo $!; exit 3"))
        .await
        .unwrap();
    let pids = numbers(&mut child, 1).await;
    assert_eq!(soon(child.exited()).await, Exit::Code(3));
    eventually("the rest of the group is gone", || !alive(pids[0])).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_descendant_that_left_the_group_is_ended_too() {
    let script = "setsid sh -c 'echo $$; exec sleep 1000' & cat";
    let guardian = guardian();
    let mut child = guardian.spawn(shell(script)).await.unwrap();
    child.set_steps(TERM);
    let pids = numbers(&mut child, 1).await;
    assert!(alive(pids[0]));
    soon(child.end()).await;
    assert!(!alive(pids[0]));
}

#[tokio::test]
async fn a_dropped_child_is_ended() {
    let guardian = guardian();
    let mut child = guardian.spawn(program("sleep", &["1000"])).await.unwrap();
    child.set_steps(SHORT);
    let (pid, exited) = (child.pid(), child.exited());
    drop(child);
    assert_eq!(soon(exited).await, Exit::Signal(15));
    assert!(!alive(pid));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_child_whose_start_nobody_waits_for_is_ended() {
    let guardian = guardian();
    for _ in 0..10 {
        let mut start = Box::pin(guardian.spawn(program("cat", &[])));
        std::future::poll_fn(|context| {
            assert!(start.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
    }
    // Answered in order, so those before it have all been started.
    let last = guardian.spawn(program("cat", &[])).await.unwrap();
    let only = || {
        children(guardian.pid())
            .iter()
            .all(|(pid, _)| *pid == last.pid())
    };
    eventually("only the last child is left", only).await;
}

#[cfg(target_os = "linux")]
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
            assert_eq!(soon(child.end()).await, Exit::Code(0));
        } else {
            assert_eq!(soon(child.exited()).await, Exit::Code(0));
        }
    }
    eventually("no child is left", || children(guardian.pid()).is_empty()).await;
    eventually("no descriptor is left", || open() == before).await;
}

#[tokio::test]
async fn the_death_of_the_guardian_is_noticed_and_leaves_no_child() {
    let guardian = guardian();
    let child = guardian.spawn(program("sleep", &["1000"])).await.unwrap();
    let died = guardian.died();
    send(guardian.pid(), Signal::KILL);
    soon(died).await;
    soon(guardian.died()).await;
    assert_eq!(soon(child.exited()).await, Exit::Unknown);
    eventually("the child is dead", || !alive(child.pid())).await;
    assert_eq!(
        guardian.spawn(program("true", &[])).await.unwrap_err(),
        Error::Died
    );
}

#[tokio::test]
async fn the_guardian_outlives_signals_to_the_whole_service() {
    let guardian = guardian();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        send(guardian.pid(), signal);
    }
    // Children do not inherit that.
    let mut child = guardian.spawn(program("sleep", &["1000"])).await.unwrap();
    child.set_steps(TERM);
    assert_eq!(soon(child.end()).await, Exit::Signal(15));
}

#[tokio::test]
async fn the_last_handle_dropped_ends_everything() {
    let guardian = guardian();
    let child = guardian.spawn(program("sleep", &["1000"])).await.unwrap();
    let (exited, died) = (child.exited(), guardian.died());
    drop(guardian.clone());
    assert!(alive(child.pid()));
    drop(guardian);
    assert_eq!(soon(exited).await, Exit::Signal(15));
    soon(died).await;
}
