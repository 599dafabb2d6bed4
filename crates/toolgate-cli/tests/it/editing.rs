//! `toolgate init`, `add`, `remove`, `enable` and `disable`, with the built program.

use crate::help::{SOON, Setup, TempDir, command, output, toolgate, until};
use std::{
    io::{Read, Write},
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Stdio,
};

/// Output of a command: exit code, stdout and stderr.
pub(crate) type Said = (i32, String, String);

/// Home directory with its own config and data directories.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new(name: &str) -> Home {
        Home(TempDir::new(name))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.path().join("config/toolgate/toolgate.toml")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path().join("data/toolgate")
    }

    /// Writes the default config.
    pub(crate) fn write(&self, text: &str) -> PathBuf {
        let file = self.config();
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        file
    }

    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(self.config()).unwrap()
    }

    pub(crate) fn command(&self, args: &[&str]) -> std::process::Command {
        let mut run = toolgate();
        run.args(args)
            .current_dir(self.path())
            .env("HOME", self.path())
            .env("XDG_CONFIG_HOME", self.path().join("config"))
            .env("XDG_DATA_HOME", self.path().join("data"));
        run
    }

    pub(crate) fn run(&self, args: &[&str]) -> Said {
        said(output(&mut self.command(args)))
    }

    /// Runs a command with this standard input.
    fn run_with(&self, args: &[&str], input: &str) -> Said {
        let mut run = self.command(args);
        run.stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = run.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        said(child.wait_with_output().unwrap())
    }

    #[track_caller]
    pub(crate) fn well(&self, args: &[&str]) -> String {
        let (code, out, err) = self.run(args);
        assert_eq!(code, 0, "{args:?}: {out}{err}");
        out
    }
}

fn said(out: std::process::Output) -> Said {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        out.status.code().unwrap(),
        text(out.stdout),
        text(out.stderr),
    )
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolgate");

fn demo() -> String {
    format!(
        "# The demo\n[server.demo]\ncommand = [{PROGRAM:?}, \"demo-server\"]\ntrust_annotations = true\n"
    )
}

#[test]
fn init_writes_a_config_that_is_valid_and_refuses_to_replace_one() {
    let home = Home::new("init");
    let out = home.well(&["init"]);
    assert!(
        out.contains("1 server, 2 rules") && out.contains("toolgate doctor\n"),
        "{out}"
    );
    let (code, _, err) = home.run(&["check", "--strict"]);
    assert_eq!(code, 0, "{err}");
    let folder = home.config().parent().unwrap().to_owned();
    assert_eq!(home.config().metadata().unwrap().mode() & 0o777, 0o600);
    let schema = std::fs::read(folder.join("toolgate.schema.json")).unwrap();
    assert_eq!(schema, home.well(&["config", "schema"]).into_bytes());
    assert!(home.text().starts_with("#:schema ./toolgate.schema.json\n"));

    let mine = home.text() + "# mine\n";
    std::fs::write(home.config(), &mine).unwrap();
    let (code, _, err) = home.run(&["init"]);
    assert_eq!(code, 1);
    assert!(
        err.contains("exists already") && err.contains("`toolgate init --force`"),
        "{err}"
    );
    assert_eq!(home.text(), mine);
    home.well(&["init", "--force"]);
    let kept = std::fs::read_to_string(folder.join("toolgate.toml.bak")).unwrap();
    assert_eq!(kept, mine);
    assert!(!home.text().contains("# mine"));

    let other = home.path().join("deep/er/other.toml");
    let out = home.well(&["init", "--config", other.to_str().unwrap()]);
    assert!(
        other.exists() && out.contains(&format!("toolgate doctor --config {}", other.display())),
        "{out}"
    );
}

#[test]
fn add_creates_a_config_and_names_a_server_after_its_package() {
    let home = Home::new("add");
    let out = home.well(&[
        "add",
        "--",
        "npx",
        "-y",
        "@modelcontextprotocol/server-filesystem@1.2",
        "/x",
    ]);
    assert!(out.starts_with("added the server filesystem to "), "{out}");
    assert!(
        out.contains("(a new file)") && out.ends_with("start the gateway with: toolgate\n"),
        "{out}"
    );
    home.well(&[
        "add",
        "https://mcp.linear.app/mcp",
        "-H",
        "X-Tenant=acme",
        "--header",
        "X-Api-Key=${LINEAR}",
    ]);
    home.well(&[
        "add",
        "mine",
        "-e",
        "LEVEL=debug",
        "--env",
        "API_KEY",
        "--cwd",
        "work",
        "--disabled",
        "--",
        "./bin/mine",
        "-e",
        "x",
    ]);
    let text = home.text();
    let sections = text.split_once("\n\n").unwrap().1;
    let folder = home.path().display();
    assert_eq!(
        sections,
        format!(
            "[server.filesystem]\ncommand = [\"npx\", \"-y\", \"@modelcontextprotocol/server-filesystem@1.2\", \"/x\"]\n\n\
             [server.linear]\nurl = \"https://mcp.linear.app/mcp\"\n\
             headers = {{ X-Tenant = \"acme\", X-Api-Key = {{ env = \"LINEAR\" }} }}\n\n\
             [server.mine]\ncommand = [\"{folder}/work/bin/mine\", \"-e\", \"x\"]\ncwd = \"{folder}/work\"\nenabled = false\n\
             env = {{ LEVEL = \"debug\", API_KEY = {{ env = \"API_KEY\" }} }}\n"
        )
    );
    let (code, _, err) = home.run(&["add", "linear", "https://mcp.example.com/mcp"]);
    assert_eq!(code, 1);
    assert!(
        err.contains("already has a server \"linear\"") && err.contains("--replace"),
        "{err}"
    );
    home.well(&["add", "linear", "https://mcp.example.com/mcp", "--replace"]);
    assert!(
        home.text()
            .contains("[server.linear]\nurl = \"https://mcp.example.com/mcp\"\n")
    );
    assert_eq!(home.text().matches("[server.linear]").count(), 1);
}

#[test]
fn a_secret_is_stored_in_a_file_of_its_own_and_never_in_the_config() {
    let home = Home::new("secret");
    let secret = "canary-3Kd9Wm2Q";
    let args = [
        "add",
        "github",
        "--secret",
        "GITHUB_TOKEN",
        "--secret",
        "OTHER_KEY",
        "--",
        PROGRAM,
        "demo-server",
    ];
    let (code, out, err) = home.run_with(&args, &format!("{secret}\nsecond\n"));
    assert_eq!(code, 0, "{out}{err}");
    assert!(!(out + &err + &home.text()).contains(secret));
    let folder = home.config().parent().unwrap().to_owned();
    let file = folder.join("github.GITHUB_TOKEN.secret");
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        format!("{secret}\n")
    );
    assert_eq!(
        std::fs::read_to_string(folder.join("github.OTHER_KEY.secret")).unwrap(),
        "second\n"
    );
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
    assert!(
        home.text()
            .contains("GITHUB_TOKEN = { file = \"github.GITHUB_TOKEN.secret\" }"),
        "{}",
        home.text()
    );
    let (code, _, err) = home.run(&["check"]);
    assert_eq!(code, 0, "{err}");
    // A literal is refused as the reader refuses it, with what to write instead.
    let literal = format!("A_TOKEN={secret}");
    let (code, out, err) = home.run(&["add", "two", "--env", &literal, "--", PROGRAM]);
    assert_eq!(code, 2, "{out}");
    assert!(
        err.contains("would be in plaintext in the config; pass it with --secret A_TOKEN"),
        "{err}"
    );
    assert!(
        !err.contains(secret) && !home.text().contains("server.two"),
        "{err}"
    );
    let (code, _, err) = home.run_with(&["add", "two", "--secret", "A_TOKEN", "--", PROGRAM], "\n");
    assert_eq!(code, 1);
    assert!(
        err.contains("it is empty") && !home.text().contains("server.two"),
        "{err}"
    );
    // What is left behind is named.
    home.well(&["add", "--", PROGRAM, "demo-server"]);
    let out = home.well(&["remove", "github"]);
    assert!(
        out.contains("no server uses the file") && out.contains("github.GITHUB_TOKEN.secret now"),
        "{out}"
    );
}

#[test]
fn a_terminal_is_asked_for_a_secret_without_echo() {
    let Some(script) = crate::help::tool("script") else {
        return;
    };
    let home = Home::new("prompt");
    let mut run = command(script);
    let line = format!("{PROGRAM} add a --secret A_TOKEN -- {PROGRAM} demo-server");
    run.args(["-qec", &line, "/dev/null"])
        .current_dir(home.path())
        .env("HOME", home.path())
        .env("XDG_CONFIG_HOME", home.path().join("config"))
        .env("XDG_DATA_HOME", home.path().join("data"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = run.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut shown = Vec::new();
    // The echo is off once the prompt is there.
    while !shown.ends_with(b"not shown): ") {
        let mut byte = [0];
        assert_eq!(
            out.read(&mut byte).unwrap(),
            1,
            "{}",
            String::from_utf8_lossy(&shown)
        );
        shown.push(byte[0]);
    }
    // The last letter is typed wrong and corrected.
    input.write_all(b"canary-7Pq1\x7f2\r").unwrap();
    out.read_to_end(&mut shown).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    let shown = String::from_utf8(shown).unwrap();
    assert!(!shown.contains("canary"), "{shown}");
    let file = home.config().with_file_name("a.A_TOKEN.secret");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "canary-7Pq2\n");
}

#[test]
fn remove_enable_and_disable_change_the_lines_of_their_server_alone() {
    let home = Home::new("remove");
    let text = format!(
        "# Top\n\n{}\n# Other\n[server.other]\ncommand = [{PROGRAM:?}]\n\n[[rule]]\ntools = [\"demo.*\"]\naction = \"allow\" # odd\n",
        demo()
    );
    let text = text.replace('\n', "\r\n");
    home.write(&text);
    let out = home.well(&["disable", "other", "demo", "demo"]);
    assert!(
        out.starts_with("disabled the server other\ndisabled the server demo\n"),
        "{out}"
    );
    assert_eq!(home.text().matches("enabled = false\r\n").count(), 2);
    assert_eq!(
        home.well(&["disable", "demo"]),
        "the server demo is disabled already\n"
    );
    home.well(&["enable", "other", "demo"]);
    assert_eq!(home.text(), text, "enable undoes disable");
    home.well(&["remove", "other"]);
    let (before, rest) = text.split_once("# Other").unwrap();
    assert_eq!(
        home.text(),
        format!("{before}{}", &rest[rest.find("[[rule]]").unwrap()..])
    );

    // A rule that names a removed server would silently match nothing.
    let now = home.text();
    home.well(&["add", "last", "--", PROGRAM]);
    let (code, _, err) = home.run(&["remove", "demo"]);
    assert_eq!(code, 1);
    assert!(
        err.contains("rule 1 (line 11)") && err.contains("`toolgate disable demo`"),
        "{err}"
    );
    home.well(&["remove", "last"]);
    assert_eq!(home.text(), now);
    for command in ["remove", "enable", "disable"] {
        let (code, _, err) = home.run(&[command, "dmo"]);
        assert_eq!(code, 1);
        assert!(
            err.contains("has no server \"dmo\"; did you mean \"demo\"?"),
            "{err}"
        );
    }
    assert_eq!(home.text(), now);
}

#[test]
fn edits_follow_a_link_and_keep_the_mode() {
    let home = Home::new("links");
    let target = home.path().join("dotfiles.toml");
    std::fs::write(&target, demo()).unwrap();
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::create_dir_all(home.config().parent().unwrap()).unwrap();
    symlink(&target, home.config()).unwrap();
    home.well(&["add", "two", "--", PROGRAM]);
    assert!(home.config().symlink_metadata().unwrap().is_symlink());
    assert_eq!(target.metadata().unwrap().mode() & 0o777, 0o644);
    assert!(
        std::fs::read_to_string(&target)
            .unwrap()
            .contains("[server.two]")
    );
}

/// Edits of the same file at the same time wait for each other, so none is lost.
#[test]
fn parallel_edits_are_all_in_the_file() {
    let home = Home::new("parallel");
    home.write(&demo());
    let children: Vec<_> = (0..8)
        .map(|n| {
            let mut run = home.command(&["add", &format!("s{n}"), "--", PROGRAM]);
            run.stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(
        home.text().matches("[server.s").count(),
        8,
        "{}",
        home.text()
    );
}

#[test]
fn a_running_gateway_starts_and_stops_servers_as_the_config_says() {
    let gate = Setup::config(demo()).start();
    let file = gate.data.file("toolgate.toml");
    let file = file.to_str().unwrap();
    let servers = || {
        let status = gate.cli(&["status"]);
        let lines = status
            .lines()
            .filter_map(|line| line.trim().strip_prefix("server "));
        lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    let data = gate.data.path().join("state");
    let data = data.to_str().unwrap();
    let args = [
        "--config",
        file,
        "--data",
        data,
        "--",
        PROGRAM,
        "demo-server",
    ];
    let out = Home::new("running").well(&[&["add", "two"][..], &args].concat());
    assert!(
        out.contains(&format!(
            "the running gateway ({}) reloads the config by itself",
            gate.endpoint
        )),
        "{out}"
    );
    until("the new server runs", SOON, || {
        servers()
            .iter()
            .any(|line| line.starts_with("two running"))
            .then_some(())
    });
    gate.cli(&["disable", "two", "--config", file]);
    until("the server is disabled", SOON, || {
        servers().contains(&"two disabled".to_owned()).then_some(())
    });
    assert!(!gate.cli(&["tools"]).contains("two."));
    let out = gate.run(&["call", "two.add", "{}"]);
    let err = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        err.contains("the server two is disabled; enable it with `toolgate enable two`"),
        "{err}"
    );
    // A gateway whose servers are all disabled goes on, and offers nothing.
    gate.cli(&["disable", "demo", "--config", file]);
    until("nothing is offered", SOON, || {
        gate.cli(&["tools"]).is_empty().then_some(())
    });
    gate.cli(&["enable", "demo", "two", "--config", file]);
    until("both are offered again", SOON, || {
        let tools = gate.cli(&["tools"]);
        (tools.contains("demo.add") && tools.contains("two.add")).then_some(())
    });
    gate.stop();
}

#[test]
fn a_gateway_without_this_config_has_to_be_started_again() {
    let gate = Setup::demo().start();
    let home = Home::new("restart");
    let data = gate.data.path().join("state");
    let out = home.well(&[
        "add",
        "--data",
        data.to_str().unwrap(),
        "--",
        PROGRAM,
        "demo-server",
    ]);
    assert!(
        out.contains("was started without a config; stop it, and start it again: toolgate --data "),
        "{out}"
    );
    gate.stop();
}

#[test]
fn run_names_its_server_after_the_package_or_as_told() {
    let home = Home::new("run-name");
    let listen = ["--listen", "127.0.0.1:0"];
    for (args, id) in [
        (&["run"][..], "toolgate"),
        (&["run", "--name", "docs"], "docs"),
    ] {
        let data = home.path().join(id);
        let all = [
            args,
            &listen,
            &[
                "--data",
                data.to_str().unwrap(),
                "--",
                PROGRAM,
                "demo-server",
            ],
        ]
        .concat();
        let mut run = home.command(&all);
        let mut child = run
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let listed = until("the tools are listed", SOON, || {
            let (code, out, _) = home.run(&["tools", "--data", data.to_str().unwrap()]);
            (code == 0 && !out.is_empty()).then_some(out)
        });
        crate::help::end_politely(&mut child);
        assert!(listed.contains(&format!("{id}.add")), "{listed}");
    }
    let (code, _, err) = home.run(&["run", "--name", "My Docs", "--", PROGRAM]);
    assert_eq!(code, 2);
    assert!(err.contains("write for example my-docs"), "{err}");
}
