//! `toolgate doctor`, and what `check` says of servers that cannot start.

use crate::editing::Home;
use crate::help::{Setup, TempDir, output, toolgate};
use serde_json::Value;
use std::{net::TcpListener, os::unix::fs::PermissionsExt};

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolgate");

fn demo(more: &str) -> String {
    format!(
        "listen = \"127.0.0.1:0\"\n[server.demo]\ncommand = [{PROGRAM:?}, \"demo-server\"]\n{more}"
    )
}

/// Runs the doctor: its exit code, and the lines of its report.
fn doctor(home: &Home, args: &[&str]) -> (i32, Vec<String>) {
    let (code, out, err) = home.run(&[&["doctor"], args].concat());
    assert!(!err.contains("panicked"), "{err}");
    (code, out.lines().map(str::to_owned).collect())
}

#[track_caller]
fn has(lines: &[String], state: &str, check: &str, text: &str) {
    let begins = format!("{state:<8} {check:<8} ");
    let found = lines
        .iter()
        .any(|line| line.starts_with(&begins) && line.contains(text));
    assert!(found, "{begins}…{text} in {lines:#?}");
}

#[test]
fn a_sound_config_has_no_problems_and_its_servers_are_started() {
    let home = Home::new("doctor");
    home.write(&demo(
        "[server.off]\ncommand = [\"no-such-program\"]\nenabled = false\n",
    ));
    let (code, lines) = doctor(&home, &[]);
    assert_eq!(code, 0, "{lines:#?}");
    has(&lines, "ok", "config", "valid: 1 server, 0 rules");
    has(&lines, "ok", "config", "the server off is disabled");
    has(&lines, "ok", "program", "demo: ");
    has(&lines, "ok", "server", "demo: starts and offers 7 tools");
    has(&lines, "ok", "data", "does not exist yet");
    has(&lines, "ok", "gateway", "no gateway is running");
    assert_eq!(lines.last().unwrap(), "no problems");
    assert!(!home.data().exists(), "nothing is stored");
    let (_, lines) = doctor(&home, &["--no-start"]);
    has(&lines, "ok", "server", "were not started");
}

#[test]
fn every_problem_is_found_and_says_what_to_do() {
    let home = Home::new("doctor-bad");
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = held.local_addr().unwrap();
    home.write(&format!(
        "listen = \"{address}\"\n\
         [server.gone]\ncommand = [\"no-such-program\"]\n\
         [server.away]\ncommand = [{PROGRAM:?}, \"demo-server\"]\ncwd = \"nowhere\"\n\
         [server.unset]\ncommand = [{PROGRAM:?}, \"demo-server\"]\nenv = {{ A_KEY = {{ env = \"NO_SUCH_KEY\" }} }}\nenv_pass = [\"NO_SUCH_VARIABLE\"]\n\
         [server.nofile]\ncommand = [{PROGRAM:?}, \"demo-server\"]\nenv = {{ A_KEY = {{ file = \"no.secret\" }} }}\n\
         [server.open]\ncommand = [{PROGRAM:?}, \"demo-server\"]\nenv = {{ A_KEY = {{ file = \"open.secret\" }} }}\n\
         [server.ends]\ncommand = [\"sh\", \"-c\", \"echo no database >&2; echo second >&2; exit 3\"]\n\
         [server.silent]\ncommand = [\"sleep\", \"60\"]\nstart_seconds = 1\n"
    ));
    let open = home.config().with_file_name("open.secret");
    std::fs::write(&open, "x\n").unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::create_dir_all(home.data()).unwrap();
    std::fs::set_permissions(home.data(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (code, lines) = doctor(&home, &[]);
    assert_eq!(code, 1, "{lines:#?}");
    has(
        &lines,
        "problem",
        "program",
        "gone: no program named no-such-program was found in PATH",
    );
    has(
        &lines,
        "problem",
        "program",
        "nowhere does not exist or is not a directory; correct the path",
    );
    has(
        &lines,
        "problem",
        "secret",
        "unset: the value for its environment variable A_KEY cannot be read: the environment variable NO_SUCH_KEY is not set; set it",
    );
    has(
        &lines,
        "warning",
        "secret",
        "unset: NO_SUCH_VARIABLE of its env_pass is not set",
    );
    has(&lines, "problem", "secret", "nofile: ");
    has(&lines, "problem", "secret", "run chmod 600 on it");
    has(&lines, "warning", "data", "run chmod 700");
    has(&lines, "problem", "listen", "another program listens on");
    has(&lines, "problem", "server", "ends: ");
    has(
        &lines,
        "problem",
        "server",
        "silent: it did not respond in time; raise start_seconds",
    );
    let at = lines
        .iter()
        .position(|line| line.contains("server   ends:"))
        .unwrap();
    let pad = " ".repeat(18);
    assert_eq!(
        lines[at + 1..at + 3],
        [format!("{pad}| no database"), format!("{pad}| second")]
    );
    assert!(
        !lines.iter().any(|line| line.contains("server   gone")),
        "reported once: {lines:#?}"
    );
    assert!(
        lines.last().unwrap().ends_with("problems, 2 warnings"),
        "{lines:#?}"
    );

    // The same as one object.
    let (code, out, _) = home.run(&["doctor", "--json", "--no-start"]);
    assert_eq!(code, 1);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["ok"], false);
    assert_eq!(report["config"], home.config().to_str().unwrap());
    assert_eq!(report["data"], home.data().to_str().unwrap());
    let checks = report["checks"].as_array().unwrap();
    let gone = checks
        .iter()
        .find(|one| one["check"] == "program" && one["subject"] == "gone")
        .unwrap();
    assert_eq!(gone["state"], "problem");
    assert!(
        gone["message"].as_str().unwrap().contains("install it"),
        "{gone}"
    );
    assert_eq!(gone["lines"], Value::Array(Vec::new()));
}

#[test]
fn a_config_that_cannot_be_read_is_a_problem_and_the_rest_is_checked() {
    let home = Home::new("doctor-invalid");
    home.write("[server.a]\ncomand = [\"x\"]\n");
    let (code, lines) = doctor(&home, &[]);
    assert_eq!(code, 1);
    has(
        &lines,
        "problem",
        "config",
        ":2:1: unknown key \"comand\" in [server.a]; did you mean \"command\"?",
    );
    has(&lines, "ok", "data", "free");
    std::fs::set_permissions(home.config(), std::fs::Permissions::from_mode(0o666)).unwrap();
    let (_, lines) = doctor(&home, &[]);
    has(&lines, "problem", "config", "run chmod go-w on it");
    // Without a config, the demo server is served.
    let (code, lines) = doctor(&Home::new("doctor-none"), &["--no-start"]);
    has(&lines, "ok", "config", "create one with `toolgate init`");
    assert!(
        code == 0
            || lines
                .iter()
                .any(|line| line.contains("another program listens")),
        "{lines:#?}"
    );
}

#[test]
fn running_gateways_are_shown_and_hold_their_port() {
    let gate = Setup::config(demo("")).start();
    let file = gate.data.file("toolgate.toml");
    let text = demo("").replace("127.0.0.1:0", &format!("127.0.0.1:{}", gate.port));
    let same = gate.data.write("same.toml", &text);
    let out = gate.cli(&["doctor", "--config", same.to_str().unwrap()]);
    assert!(
        out.contains(&format!(
            "ok       listen   the running gateway listens on 127.0.0.1:{}",
            gate.port
        )),
        "{out}"
    );
    assert!(
        out.contains(&format!(
            "ok       gateway  {}: the gateway is running",
            gate.endpoint
        )),
        "{out}"
    );
    gate.configure("[server.demo]\ncomand = []\n");
    crate::help::until("the gateway rejects the config", crate::help::SOON, || {
        let out = gate.run(&["doctor", "--no-start", "--config", same.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        let found =
            said.contains("problem  gateway") && said.contains("a newer config was rejected");
        (found && out.status.code() == Some(1)).then_some(())
    });
    drop(file);
    gate.stop();
}

#[test]
fn hooks_of_hosts_need_their_program_their_server_and_a_gateway() {
    let home = Home::new("doctor-hooks");
    home.write(&demo(""));
    let (_, lines) = doctor(&home, &["--no-start"]);
    assert!(
        !lines.iter().any(|line| line.contains(" hook ")),
        "{lines:#?}"
    );
    assert_eq!(home.run(&["connect", "codex", "--hooks"]).0, 0);
    let (code, lines) = doctor(&home, &["--no-start"]);
    has(
        &lines,
        "problem",
        "hook",
        "is not trusted yet, so Codex skips it",
    );
    assert_eq!(code, 1);
    assert_eq!(home.run(&["disconnect", "codex", "--hooks"]).0, 0);
    let settings = home.path().join(".claude/settings.json");
    assert_eq!(home.run(&["connect", "claude-code", "--hooks"]).0, 0);
    let (code, lines) = doctor(&home, &["--no-start"]);
    has(
        &lines,
        "warning",
        "hook",
        "needs a gateway, and none is running",
    );
    assert_eq!(code, 0, "{lines:#?}");

    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, text.replace(PROGRAM, "/no/such/toolgate")).unwrap();
    let (code, lines) = doctor(&home, &["--no-start"]);
    has(
        &lines,
        "problem",
        "hook",
        "runs /no/such/toolgate, which does not exist; run `toolgate connect claude-code --hooks` again",
    );
    assert_eq!(code, 1);
    assert_eq!(home.run(&["connect", "claude-code", "--hooks"]).0, 0);
    assert_eq!(
        std::fs::read_to_string(&settings).unwrap(),
        text,
        "the hook is replaced"
    );

    home.write(&demo(""));
    let (_, lines) = doctor(&home, &["--no-start"]);
    has(
        &lines,
        "problem",
        "hook",
        "needs the server \"host\", which the config does not have",
    );
}

/// Plants secrets at each place that the report draws from.
#[test]
fn the_report_for_a_bug_report_has_no_secrets() {
    let home = Home::new("doctor-bundle");
    let secrets = [
        "file-secret-7481",
        "variable-secret-2207",
        "header-value-9713",
        "literal-value-5520",
        "comment-secret-3311",
        "query-secret-8080",
        "ghp_0123456789abcdefABCDEF0123456789abcd",
    ];
    let token = home.path().join("token");
    std::fs::write(&token, secrets[6]).unwrap();
    let config = home.write(&format!(
        "# comment-secret-3311\n\
         listen = \"127.0.0.1:0\"\n\
         [server.ends]\n\
         command = [\"sh\", \"-c\", \"echo $FROM_FILE and $LITERAL with $(cat {}) in $HOME >&2; exit 3\"]\n\
         env = {{ FROM_FILE = {{ file = \"one.secret\" }}, LITERAL = \"literal-value-5520\" }}\n\
         [server.far]\nurl = \"http://127.0.0.1:9/mcp\"\nheaders = {{ X-Mode = \"header-value-9713\", X-Key = {{ env = \"THE_VARIABLE\" }} }}\n",
        token.display()
    ));
    let file = config.with_file_name("one.secret");
    std::fs::write(&file, secrets[0]).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let report = home.path().join("report.md");
    let mut run = home.command(&["doctor", "--bundle", "report.md"]);
    let out = output(run.env("THE_VARIABLE", secrets[1]));
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(
        said.contains("report.md; read it before you share it"),
        "{said}"
    );
    let text = std::fs::read_to_string(&report).unwrap();
    for secret in secrets {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    let home_path = home.path().to_str().unwrap();
    assert!(!text.contains(home_path), "{home_path} in {text}");
    for kept in [
        "| [removed] and [removed] with [redacted:",
        "in ~",
        "\"file\": \"one.secret\"",
        "\"env\": \"THE_VARIABLE\"",
        "http://127.0.0.1:9/[removed]",
        env!("CARGO_PKG_VERSION"),
        "problem  server   ends: ",
    ] {
        assert!(text.contains(kept), "{kept} in {text}");
    }
    let mode = std::fs::metadata(&report).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // An existing file stays, and a config that cannot be parsed is left out.
    let (code, _, said) = home.run(&["doctor", "--no-start", "--bundle", "report.md"]);
    assert_eq!(code, 1);
    assert!(
        said.contains("cannot be written to report.md: File exists"),
        "{said}"
    );
    std::fs::write(&config, "token = \"query-secret-8080").unwrap();
    home.run(&["doctor", "--no-start", "--bundle"]);
    let files = std::fs::read_dir(home.path()).unwrap().flatten();
    let named: Vec<_> = files
        .map(|file| file.path())
        .filter(|path| path.to_string_lossy().contains("toolgate-report-"))
        .collect();
    let text = std::fs::read_to_string(&named[0]).unwrap();
    assert!(text.contains("cannot be parsed, and is left out"), "{text}");
    assert!(!text.contains(secrets[5]), "{text}");
}

/// Holds for `check` without `--servers`: a server that cannot start is as bad as one that does not answer.
#[test]
fn check_fails_for_a_program_that_is_missing_and_a_variable_that_is_unset() {
    let home = TempDir::new("check-unmet");
    let check = |text: &str, args: &[&str]| {
        let file = home.write("toolgate.toml", text);
        let mut run = toolgate();
        run.arg("check").args(args).arg("--config").arg(&file);
        let out = output(run.arg("--data").arg(home.path().join("state")));
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            out.status.code().unwrap(),
            text(out.stdout),
            text(out.stderr),
        )
    };
    let (code, out, err) = check("[server.a]\ncommand = [\"no-such-program\"]\n", &[]);
    assert_eq!(code, 1);
    assert!(out.starts_with("valid: 1 server"), "{out}");
    assert!(
        err.contains(
            "the server a cannot be used: no program named no-such-program was found in PATH ("
        ),
        "{err}"
    );
    assert!(
        err.contains("install it, or give its absolute path"),
        "{err}"
    );
    let (code, _, err) = check(&demo("env = { K = { env = \"NO_SUCH_KEY\" } }\n"), &[]);
    assert_eq!(code, 1);
    assert!(
        err.contains("the environment variable NO_SUCH_KEY is not set; set it"),
        "{err}"
    );
    // The server starts without a variable that it would only get if it were set.
    let passed = demo("env_pass = [\"NO_SUCH_KEY\"]\n");
    let (code, _, err) = check(&passed, &[]);
    assert_eq!(code, 0, "{err}");
    assert!(
        err.contains("does not get NO_SUCH_KEY of its env_pass"),
        "{err}"
    );
    assert_eq!(check(&passed, &["--strict"]).0, 1);
    // PATH of the server decides, and a disabled server needs nothing.
    let own = "[server.a]\ncommand = [\"tool\"]\nenv = { PATH = \"DIR\" }\n"
        .replace("DIR", home.path().to_str().unwrap());
    assert_eq!(check(&own, &[]).0, 1);
    let tool = home.write("tool", "#!/bin/sh\n");
    std::fs::set_permissions(tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(check(&own, &[]).0, 0);
    let off = demo("[server.a]\ncommand = [\"no-such-program\"]\nenabled = false\n");
    let (code, out, err) = check(&off, &["--strict"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("valid: 1 server, 0 rules"), "{out}");
    assert!(
        err.contains("the server a is disabled; enable it with `toolgate enable a`"),
        "{err}"
    );
}
