//! Program lookup and start, with errors that contain the remedy.

use std::env::split_paths;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf, absolute};
use std::process::{Child, Stdio};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::guardian::SpawnCommand;
use crate::message::WireCommand;

/// Search path if the environment of the child contains no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Starts the program. Returns its process id and our ends of its stdin, stdout and stderr.
///
/// The child leads a process group of its own, has exactly the given environment, and no file descriptors except the
/// three pipes.
pub(super) fn launch(command: &WireCommand) -> Result<(Pid, [OwnedFd; 3]), String> {
    check_environment(command)?;
    let directory = directory(command)?;
    let program = find(command, directory.as_deref())?;
    let child = start(command, &program, directory.as_deref())
        .map_err(|error| explain(&program, &error))?;
    take_pipes(child).ok_or_else(|| {
        format!(
            "{} was not started: its stdin, stdout or stderr could not be opened",
            program.display()
        )
    })
}

/// Finds the file that the guardian would start for a command, without starting it.
///
/// # Errors
/// The program or its working directory does not exist, or the program cannot be executed; with the remedy.
pub fn find_program(command: SpawnCommand) -> Result<PathBuf, String> {
    find_file(&WireCommand::from(command))
}

fn find_file(command: &WireCommand) -> Result<PathBuf, String> {
    check_environment(command)?;
    let directory = directory(command)?;
    find(command, directory.as_deref())
}

/// Explains why a program did not start that was started without the guardian: program, reason and remedy.
///
/// It looks the program up again, because the error of the system does not name the missing file.
pub fn explain_start_error(command: SpawnCommand, error: &io::Error) -> String {
    let command = WireCommand::from(command);
    find_file(&command).map_or_else(|why| why, |program| explain(&program, error))
}

fn start(command: &WireCommand, program: &Path, directory: Option<&Path>) -> io::Result<Child> {
    #[allow(
        clippy::disallowed_methods,
        reason = "the guardian is who starts processes"
    )]
    let mut child = std::process::Command::new(program);
    if let Some(directory) = directory {
        child.current_dir(directory);
    }
    child
        .args(&command.args)
        .env_clear()
        .envs(command.env.iter().map(|(name, value)| (name, value)))
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

fn take_pipes(mut child: Child) -> Option<(Pid, [OwnedFd; 3])> {
    let pid = Pid::from_raw(i32::try_from(child.id()).ok()?)?;
    let pipes = [
        child.stdin.take()?.into(),
        child.stdout.take()?.into(),
        child.stderr.take()?.into(),
    ];
    Some((pid, pipes))
}

fn check_environment(command: &WireCommand) -> Result<(), String> {
    for (name, _) in &command.env {
        let bytes = name.as_encoded_bytes();
        if bytes.is_empty() || bytes.contains(&b'=') {
            return Err(format!(
                "{} was not started: {:?} is not a valid environment variable name; \
                 use a name that is not empty and contains no =",
                command.program.display(),
                name
            ));
        }
    }
    Ok(())
}

/// Returns the absolute working directory, if one is requested.
fn directory(command: &WireCommand) -> Result<Option<PathBuf>, String> {
    let Some(asked) = &command.cwd else {
        return Ok(None);
    };
    match absolute(asked) {
        Ok(path) if path.is_dir() => Ok(Some(path)),
        _ => Err(format!(
            "{} was not started: its working directory {} does not exist or is not a directory; \
             correct the path",
            command.program.display(),
            asked.display()
        )),
    }
}

/// Returns the file to run: a path as given (relative to the working directory), or a name from the `PATH` of the
/// child.
fn find(command: &WireCommand, directory: Option<&Path>) -> Result<PathBuf, String> {
    let program = command.program.as_os_str();
    if program.is_empty() {
        return Err("no program is given; give a name or an absolute path".to_owned());
    }
    if program.as_encoded_bytes().contains(&b'/') {
        at_path(Path::new(program), directory)
    } else {
        in_search_path(program, search_path(command))
    }
}

fn at_path(program: &Path, directory: Option<&Path>) -> Result<PathBuf, String> {
    let path = match directory {
        Some(directory) => directory.join(program),
        None => absolute(program).map_err(|error| explain(program, &error))?,
    };
    if path.is_file() {
        return may_run(&path).map(|()| path.clone());
    }
    let what = match fs::metadata(&path) {
        Ok(found) if found.is_dir() => "it is a directory".to_owned(),
        Ok(_) => "it is not a regular file".to_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            "the file does not exist".to_owned()
        }
        Err(error) => format!("the file cannot be accessed: {error}"),
    };
    Err(format!(
        "{} was not started: {what}; correct the path",
        path.display()
    ))
}

fn in_search_path(name: &OsStr, path: &OsStr) -> Result<PathBuf, String> {
    // A relative entry would let the working directory choose the program.
    let files = || {
        split_paths(path)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join(name))
            .filter(|file| file.is_file())
    };
    match files()
        .find(|file| may_run(file).is_ok())
        .or_else(|| files().next())
    {
        Some(file) => may_run(&file).map(|()| file.clone()),
        None => Err(format!(
            "no program named {} was found in PATH ({}); install it, or give its absolute path",
            name.display(),
            path.display()
        )),
    }
}

fn search_path(command: &WireCommand) -> &OsStr {
    let entry = command.env.iter().rfind(|(name, _)| name == "PATH");
    entry.map_or(OsStr::new(DEFAULT_PATH), |(_, value)| value)
}

fn may_run(file: &Path) -> Result<(), String> {
    access(file, Access::EXEC_OK).map_err(|error| explain(file, &error.into()))
}

fn explain(program: &Path, error: &io::Error) -> String {
    let why = match Errno::from_io_error(error) {
        Some(Errno::ACCESS) => {
            "this user may not run it; make the file executable for this user (chmod +x)".to_owned()
        }
        Some(Errno::NOENT) => {
            "its interpreter (named in the first line of a script) was not found; \
             install it or correct the line"
                .to_owned()
        }
        Some(Errno::NOEXEC) => {
            "this system cannot run this file format; a script needs a first line like #!/bin/sh"
                .to_owned()
        }
        Some(Errno::TOOBIG) => {
            "its arguments and environment are too long in total; shorten them".to_owned()
        }
        _ => error.to_string(),
    };
    format!("{} was not started: {why}", program.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(program: &str, path: &str) -> WireCommand {
        WireCommand {
            program: program.into(),
            args: Vec::new(),
            env: vec![("PATH".into(), path.into())],
            cwd: None,
        }
    }

    #[test]
    fn searches_only_absolute_path_entries() {
        assert_eq!(
            find(&command("sh", "/nowhere:/bin"), None),
            Ok("/bin/sh".into())
        );
        assert!(find(&command("sh", "bin:.:"), Some(Path::new("/"))).is_err());
    }

    #[test]
    fn resolves_relative_paths_from_the_working_directory() {
        assert_eq!(
            find(&command("bin/sh", ""), Some(Path::new("/"))),
            Ok("/bin/sh".into())
        );
    }

    #[test]
    fn every_error_contains_a_remedy() {
        let tell = |program: &str| find(&command(program, "/nowhere"), None).unwrap_err();
        assert_eq!(
            tell("nothing"),
            "no program named nothing was found in PATH (/nowhere); install it, or give its absolute path"
        );
        assert_eq!(
            tell("/no/such"),
            "/no/such was not started: the file does not exist; correct the path"
        );
        assert_eq!(
            tell("/etc"),
            "/etc was not started: it is a directory; correct the path"
        );
        assert!(tell("/etc/passwd").contains("may not run it"));
        assert!(tell("").contains("no program is given"));
    }
}
