//! Start of children: the inherited environment, and the errors.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tokio::io::AsyncWriteExt;
use toolgate_guardian::{ChildExit, DEFAULT_ALLOWLIST, Error, Guardian, environment};

use crate::help::{all, guardian, program, shell, soon};

#[tokio::test]
async fn a_child_reads_writes_and_reports_its_exit() {
    let guardian = guardian();
    let mut child = guardian
        .spawn(shell("cat; echo trouble >&2; exit 42"))
        .await
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"hello").await.unwrap();
    drop(stdin);
    assert_eq!(all(&mut child.stdout).await, "hello");
    assert_eq!(all(&mut child.stderr).await, "trouble\n");
    assert_eq!(soon(child.exited()).await, ChildExit::Code(42));
    assert_eq!(
        soon(child.exited()).await,
        ChildExit::Code(42),
        "it is told again"
    );

    let child = guardian.spawn(shell("kill -9 $$")).await.unwrap();
    assert_eq!(soon(child.exited()).await, ChildExit::Signal(9));
}

#[tokio::test]
async fn the_environment_is_the_allow_list_exactly() {
    let extra = [("TOKEN".to_owned(), "a=b c\nd".to_owned())];
    let mut spawn = program("env", &["-0"]);
    spawn.env = environment(&[], &extra);
    let guardian = guardian();
    let mut child = guardian.spawn(spawn).await.unwrap();

    let mut wanted: BTreeMap<String, String> = extra.into();
    for name in DEFAULT_ALLOWLIST {
        if let Ok(value) = std::env::var(name) {
            wanted.insert((*name).to_owned(), value);
        }
    }
    assert!(
        std::env::vars_os().count() > wanted.len(),
        "there is more in our own"
    );
    let text = all(&mut child.stdout).await;
    let entries = text
        .split_terminator('\0')
        .map(|entry| entry.split_once('=').unwrap());
    assert_eq!(
        entries
            .map(|(n, v)| (n.into(), v.into()))
            .collect::<BTreeMap<_, _>>(),
        wanted
    );
}

#[tokio::test]
async fn arguments_and_working_directory_arrive_as_they_are() {
    let mut spawn = program(
        "sh",
        &["-c", "pwd; printf '[%s]' \"$@\"", "sh", "", "a b", "*", "é"],
    );
    spawn.cwd = Some(PathBuf::from("/"));
    let guardian = guardian();
    let mut child = guardian.spawn(spawn).await.unwrap();
    assert_eq!(all(&mut child.stdout).await, "/\n[][a b][*][é]");
}

#[tokio::test]
async fn what_cannot_start_is_told_clearly() {
    async fn tell(guardian: &Guardian, spawn: toolgate_guardian::SpawnCommand) -> String {
        match guardian.spawn(spawn).await {
            Err(Error::Refused(why)) => why,
            other => panic!("{other:?}"),
        }
    }
    let guardian = guardian();

    let mut spawn = program("no-such-program", &[]);
    spawn.env = vec![("PATH".into(), "/bin:/nowhere".into())];
    assert_eq!(
        tell(&guardian, spawn).await,
        "no program named no-such-program was found in PATH (/bin:/nowhere); \
         install it, or give its absolute path"
    );
    assert!(
        tell(&guardian, program("/etc/passwd", &[]))
            .await
            .contains("may not run it")
    );

    let mut spawn = shell("");
    spawn.cwd = Some("/no/such/directory".into());
    let why = tell(&guardian, spawn).await;
    assert!(
        why.contains("its working directory /no/such/directory does not exist"),
        "{why}"
    );

    let mut spawn = shell("");
    spawn.env.push(("A=B".into(), "c".into()));
    assert!(
        tell(&guardian, spawn)
            .await
            .contains("not a valid environment variable name")
    );
    assert!(
        tell(&guardian, shell("\0")).await.starts_with("/"),
        "names the program"
    );
    assert!(
        tell(&guardian, shell(&"x".repeat(5 << 20)))
            .await
            .contains("and the limit is")
    );
    assert!(
        tell(&guardian, shell(&"x".repeat(1 << 19)))
            .await
            .contains("too long in total")
    );

    let mut child = guardian.spawn(shell("echo fine")).await.unwrap();
    assert_eq!(
        all(&mut child.stdout).await,
        "fine\n",
        "the guardian goes on"
    );
}

#[tokio::test]
async fn a_script_without_its_interpreter_is_told_clearly() {
    use std::os::unix::fs::PermissionsExt;

    let path = std::env::temp_dir().join(format!("toolgate-script-{}", std::process::id()));
    std::fs::write(&path, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    let guardian = guardian();
    let answer = guardian.spawn(program(path.to_str().unwrap(), &[])).await;
    std::fs::remove_file(&path).unwrap();
    assert!(answer.unwrap_err().to_string().contains("interpreter"));
}

#[tokio::test]
async fn one_child_over_the_limit_is_refused() {
    let guardian = guardian();
    let mut children = Vec::new();
    for _ in 0..256 {
        let mut child = guardian.spawn(program("sleep", &["1000"])).await.unwrap();
        // Two hundred children would take too many descriptors of the test.
        (child.stdin, child.stdout, child.stderr) = (None, None, None);
        children.push(child);
    }
    let why = guardian
        .spawn(program("sleep", &["1000"]))
        .await
        .unwrap_err()
        .to_string();
    assert!(why.contains("256 programs are already running"), "{why}");

    soon(children.pop().unwrap().end()).await;
    soon(guardian.spawn(program("sleep", &["1000"])))
        .await
        .unwrap();

    // All of them at once take no longer than one does.
    let (died, begin) = (guardian.died(), std::time::Instant::now());
    drop(guardian);
    soon(died).await;
    eprintln!("256 children were gone after {:?}", begin.elapsed());
}

#[tokio::test]
async fn a_program_that_is_no_guardian_is_noticed() {
    let error = Guardian::start_with("/usr/bin/true".as_ref(), &[])
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "it exited at once; its standard error contains the reason"
    );
    assert!(Guardian::start_with("/no/such".as_ref(), &[]).is_err());
}
