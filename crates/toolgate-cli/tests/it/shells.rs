//! Completions in real shells, and man pages in `man`.

use crate::help::{TempDir, command, output, tool, toolgate};
use std::path::{Path, PathBuf};

/// Writes the completions of a shell to a file. `None` if that shell is not installed.
fn completions(shell: &str, dir: &TempDir) -> Option<PathBuf> {
    tool(shell)?;
    let file = dir.file(&format!("toolgate.{shell}"));
    let out = output(toolgate().args(["completions", shell]));
    assert!(out.status.success(), "{out:?}");
    std::fs::write(&file, out.stdout).unwrap();
    Some(file)
}

/// Returns what a shell prints for a script, whose first argument is the file. The shell must print no error.
fn print_of(shell: &str, script: &str, file: &Path) -> String {
    let mut run = command(shell);
    match shell {
        "zsh" => run.arg("-f"),
        "bash" => run.args(["--norc", "--noprofile"]),
        _ => run.arg("--no-config"),
    };
    let words = match shell {
        "fish" => vec![],
        _ => vec!["shell"],
    };
    let out = output(run.args(["-c", script]).args(words).arg(file));
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && text.is_empty(), "{shell}: {text}");
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn bash_completes_a_command() {
    let dir = TempDir::new("bash");
    let Some(file) = completions("bash", &dir) else {
        return;
    };
    let script = "source \"$1\"; COMP_WORDS=(toolgate audit ve); COMP_CWORD=2; _toolgate toolgate ve audit; echo ${COMPREPLY[*]}";
    assert_eq!(print_of("bash", script, &file), "verify\n");
}

#[test]
fn zsh_loads_the_completions() {
    let dir = TempDir::new("zsh");
    let Some(file) = completions("zsh", &dir) else {
        return;
    };
    let script = "autoload -U compinit; compinit -D -u; source \"$1\"; echo $_comps[toolgate]; whence -w _toolgate";
    assert_eq!(
        print_of("zsh", script, &file),
        "_toolgate\n_toolgate: function\n"
    );
}

#[test]
fn fish_completes_a_command() {
    let dir = TempDir::new("fish");
    let Some(file) = completions("fish", &dir) else {
        return;
    };
    let script = "source $argv[1]; complete -C 'toolgate audit ve'";
    assert_eq!(
        print_of("fish", script, &file),
        "verify\tCheck that no record was changed or lost\n"
    );
}

#[test]
fn man_shows_the_page_of_each_command() {
    let dir = TempDir::new("man");
    let pages = dir.file("man1");
    let out = output(toolgate().arg("man").arg("--dir").arg(&pages));
    assert!(out.status.success(), "{out:?}");
    for name in ["toolgate", "toolgate-approve", "toolgate-audit-verify"] {
        let page = pages.join(format!("{name}.1"));
        assert!(page.is_file(), "{name}");
        if tool("man").is_none() {
            continue;
        }
        let out = output(
            command("man")
                .args(["--warnings", "-E", "UTF-8", "-P", "cat", "-l"])
                .arg(&page),
        );
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let wrong = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success() && wrong.is_empty(), "{name}: {wrong}");
        assert!(text.contains("SYNOPSIS") && text.contains(name), "{text}");
    }
    let out = output(toolgate().args(["man", "audit", "verfy"]));
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&out.stderr),
        "toolgate: there is no command \"audit verfy\"; `toolgate --help` lists the commands\n"
    );
}
