//! The page of a sign-in, and the program that opens it: one word, one argument, no shell.

use crate::help::{Family, SOON, TempDir, output, send, toolgate, until};
use serde_json::json;
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

/// A server whose authorization server has its page at an address of our choice; its port.
fn server(page: impl Fn(u16) -> String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let origin = format!("http://127.0.0.1:{port}");
    let resource = json!({"resource": format!("{origin}/mcp"), "authorization_servers": [&origin]});
    let issuer = json!({
        "issuer": &origin,
        "authorization_endpoint": page(port),
        "token_endpoint": format!("{origin}/token"),
        "registration_endpoint": format!("{origin}/register"),
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
    });
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = vec![0; 8192];
            let read = stream.read(&mut head).unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            let target = head.split(' ').nth(1).unwrap_or_default();
            let (status, body) = match target {
                "/.well-known/oauth-protected-resource/mcp" => (200, resource.to_string()),
                "/.well-known/oauth-authorization-server" => (200, issuer.to_string()),
                "/register" => (201, json!({"client_id": "me"}).to_string()),
                _ => (401, String::new()),
            };
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status} x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

/// A program that notes each of its arguments on a line, and lives as long as who started it.
fn opener(folder: &TempDir, name: &str) -> PathBuf {
    let notes = folder.file("given");
    let text = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > {notes:?}.new\nmv {notes:?}.new {notes:?}\nexec tail --pid=$PPID -f /dev/null\n"
    );
    let program = folder.write(name, &text);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

fn login(folder: &TempDir, port: u16, args: &[&str], env: &[(&str, String)]) -> Command {
    let config = format!("[server.far]\nurl = \"http://127.0.0.1:{port}/mcp\"\n");
    let config = folder.write("toolgate.toml", &config);
    let mut login = toolgate();
    for name in ["BROWSER", "DISPLAY", "WAYLAND_DISPLAY"] {
        login.env_remove(name);
    }
    login
        .args(["login", "far"])
        .args(args)
        .arg("--config")
        .arg(config)
        .arg("--data")
        .arg(folder.file("state"))
        .current_dir(folder.path())
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    login
}

/// A sign-in that waits for its answer: what was opened for it was started before.
struct Waiting {
    child: Child,
    page: String,
    /// Number of started programs.
    started: usize,
}

impl Waiting {
    fn new(mut login: Command) -> Waiting {
        let mut child = login.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let page = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("  ").map(str::to_owned));
        let page = page.expect("the page is printed");
        let back = page.split("redirect_uri=http%3A%2F%2F127.0.0.1%3A").nth(1);
        let port = back.unwrap().split('%').next().unwrap().parse().unwrap();
        // A stray request is turned away by who waits already.
        assert_eq!(send(port, "GET", "/callback?state=x", &[], b"").status, 400);
        let started = Family::of(child.id()).len();
        Waiting {
            child,
            page,
            started,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn given(folder: &TempDir) -> Vec<String> {
    let text = until("the program was started", SOON, || {
        fs::read_to_string(folder.file("given")).ok()
    });
    text.lines().map(str::to_owned).collect()
}

/// A page with all that a shell would read, as far as an address can have it.
fn page(port: u16) -> String {
    format!("http://127.0.0.1:{port}/a'b;touch$IFS'shell'?x=$(touch%20shell)&y=*~!(z);touch,shell")
}

/// Holds: SEC-05
#[test]
fn t37_a_page_is_opened_by_one_program_with_one_argument_and_no_shell() {
    let port = server(page);
    let opened = |env: &dyn Fn(&Path) -> Vec<(&'static str, String)>| {
        let folder = TempDir::new("opening");
        let program = opener(&folder, "opener");
        let waiting = Waiting::new(login(&folder, port, &[], &env(&program)));
        assert!(waiting.started > 0);
        assert!(waiting.page.starts_with(&page(port)), "{}", waiting.page);
        assert_eq!(given(&folder).join("\n"), waiting.page);
        assert!(!folder.file("shell").exists());
    };
    opened(&|program| vec![("BROWSER", program.display().to_string())]);
    // What the system has, where it can show anything.
    for display in ["DISPLAY", "WAYLAND_DISPLAY"] {
        opened(&|program| {
            let folder = program.parent().unwrap();
            for usual in ["xdg-open", "open"] {
                fs::copy(program, folder.join(usual)).unwrap();
            }
            let path = std::env::var("PATH").unwrap();
            let path = format!("{}:{path}", folder.display());
            vec![(display, ":0".to_owned()), ("PATH", path)]
        });
    }
}

/// Holds: SEC-05
#[test]
fn t37_a_browser_that_is_no_one_word_is_not_started() {
    let port = server(|port| format!("http://127.0.0.1:{port}/authorize"));
    let not_opened = |args: &[&str], browser: &dyn Fn(&str) -> String| {
        let folder = TempDir::new("opening");
        let program = opener(&folder, "opener");
        let browser = browser(&program.display().to_string());
        let waiting = Waiting::new(login(&folder, port, args, &[("BROWSER", browser.clone())]));
        assert_eq!(waiting.started, 0, "{browser}");
        drop(waiting);
        assert!(!folder.file("given").exists() && !folder.file("shell").exists());
    };
    for browser in [
        "PROGRAM --new-window",
        "PROGRAM %s",
        "PROGRAM:PROGRAM",
        "PROGRAM%s",
        "PROGRAM;PROGRAM",
        "PROGRAM&&PROGRAM",
        "$(PROGRAM)",
        "touch shell",
        "",
    ] {
        not_opened(&[], &|program| browser.replace("PROGRAM", program));
    }
    not_opened(&["--no-browser"], &str::to_owned);
}

/// Holds: SEC-04
#[test]
fn t37_a_hostile_page_is_neither_printed_nor_opened() {
    for page in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "vbscript:x",
        "data:text/html,x",
        "http://hostile.example/authorize",
        "ftp://hostile.example/",
        "--new-window",
        "-x",
        "x-app://hostile",
        "https://hostile.example/ --flag",
        "https://hostile.example/\r\n/x",
        "https://hostile.example/`x`",
        "https://hostile.example/\u{1b}[2J",
        "https://user:hostile@a.example/",
        "https://a.example/#hostile",
        "",
    ] {
        let folder = TempDir::new("opening");
        let program = opener(&folder, "opener").display().to_string();
        let port = server(|_| page.to_owned());
        let done = output(&mut login(&folder, port, &[], &[("BROWSER", program)]));
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{page}: {said}");
        assert!(page.is_empty() || !said.contains(page), "{page}: {said}");
        assert!(
            !said.contains("to sign in, open this URL"),
            "{page}: {said}"
        );
        assert!(!folder.file("given").exists(), "{page}");
    }
}
