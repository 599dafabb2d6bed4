//! Termination of children.

use rustix::process::Signal;
use toolgate_guardian::{ChildExit, Error};

use crate::help::{
    FOREVER, SHORT, TERM, alive, all, eventually, guardian, numbers, program, send, shell, soon,
};

/// Holds: STDIO-13, LIFE-15
#[tokio::test]
async fn a_child_that_leaves_at_the_end_of_its_input_is_not_signalled() {
    let script = "trap 'echo signalled; exit 9' TERM; echo $$; cat; sleep 0.2; echo left; exit 7";
    let guardian = guardian();
    let mut child = guardian.spawn(shell(script)).await.unwrap();
    child.set_steps(FOREVER);
    numbers(&mut child, 1).await;
    assert_eq!(soon(child.end()).await, ChildExit::Code(7));
    assert_eq!(all(&mut child.stdout).await, "left\n");
}

/// Holds: LIFE-15, STDIO-13
#[tokio::test]
async fn a_child_that_stays_gets_sigterm() {
    let guardian = guardian();
    let mut child = guardian.spawn(program("sleep", &["1000"])).await.unwrap();
    child.set_steps(TERM);
    assert_eq!(soon(child.end()).await, ChildExit::Signal(15));
}

/// Holds: LIFE-15
#[tokio::test]
async fn a_child_that_ignores_sigterm_is_killed_with_its_group() {
    let script = "trap '' TERM; sleep 1000 & echo $$; echo $!; while :; do sleep 1000; done";
    let guardian = guardian();
    let mut child = guardian.spawn(shell(script)).await.unwrap();
    child.set_steps(SHORT);
    let pids = numbers(&mut child, 2).await;
    assert_eq!(soon(child.end()).await, ChildExit::Signal(9));
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
    assert_eq!(soon(child.exited()).await, ChildExit::Code(3));
    eventually("the rest of the group is gone", || !alive(pids[0])).await;
}

#[tokio::test]
async fn a_dropped_child_is_ended() {
    let guardian = guardian();
    let mut child = guardian.spawn(program("sleep", &["1000"])).await.unwrap();
    child.set_steps(SHORT);
    let (pid, exited) = (child.pid(), child.exited());
    drop(child);
    assert_eq!(soon(exited).await, ChildExit::Signal(15));
    assert!(!alive(pid));
}

#[tokio::test]
async fn the_death_of_the_guardian_is_noticed_and_leaves_no_child() {
    let guardian = guardian();
    let child = guardian.spawn(program("sleep", &["1000"])).await.unwrap();
    let died = guardian.died();
    send(guardian.pid(), Signal::KILL);
    soon(died).await;
    soon(guardian.died()).await;
    assert_eq!(soon(child.exited()).await, ChildExit::Unknown);
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
    assert_eq!(soon(child.end()).await, ChildExit::Signal(15));
}

#[tokio::test]
async fn the_last_handle_dropped_ends_everything() {
    let guardian = guardian();
    let child = guardian.spawn(program("sleep", &["1000"])).await.unwrap();
    let (exited, died) = (child.exited(), guardian.died());
    drop(guardian.clone());
    assert!(alive(child.pid()));
    drop(guardian);
    assert_eq!(soon(exited).await, ChildExit::Signal(15));
    soon(died).await;
    assert!(!alive(child.pid()));
}

#[tokio::test]
async fn children_that_exit_at_once_are_told_apart() {
    let guardian = guardian();
    let mut running = tokio::task::JoinSet::new();
    for code in 0..60 {
        let guardian = guardian.clone();
        running.spawn(async move {
            let child = guardian
                .spawn(shell(&format!("exit {code}")))
                .await
                .unwrap();
            (code, soon(child.exited()).await)
        });
    }
    while let Some(ended) = running.join_next().await {
        let (code, exit) = ended.unwrap();
        assert_eq!(exit, ChildExit::Code(code));
    }
}
