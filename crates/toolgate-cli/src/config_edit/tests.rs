use super::*;
use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    sync::atomic::{AtomicU32, Ordering},
};

/// New directory of a test, removed at its end.
struct TestDirectory(PathBuf);

impl TestDirectory {
    fn new(name: &str) -> TestDirectory {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = format!("toolgate-edit-{name}-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(path);
        fs::create_dir_all(&path).unwrap();
        TestDirectory(path)
    }

    fn write(&self, text: &str) -> PathBuf {
        let path = self.0.join("toolgate.toml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        path
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn program(words: &[&str]) -> ServerEntry {
    ServerEntry {
        command: words.iter().map(|word| (*word).to_owned()).collect(),
        ..ServerEntry::default()
    }
}

/// Applies an edit to a text and returns the text after it, unsaved.
#[track_caller]
fn edited(text: &str, edit: impl FnOnce(&mut ConfigDocument) -> Result<()>) -> String {
    let directory = TestDirectory::new("text");
    let mut config = ConfigDocument::open(&directory.write(text)).unwrap();
    edit(&mut config).unwrap();
    config.text().to_owned()
}

const CONFIG: &str = r#"#:schema ./toolgate.schema.json
# Servers of the team

listen   =   "127.0.0.1:8665"   # odd spacing stays

# Files, read only
[server.files]  # the first
command = ["npx", "server"]
# env = { A = "1" }

[server.files.tools.read]
title = "Read"

# Git
[server.git]
command = [
    "uvx",   # a runner
    "mcp-server-git",
]

# The rules
[[rule]]
tools = ["git.*"]
action = "allow"

[limits]
calls = 7
# end
"#;

#[test]
fn adds_a_server_after_the_others_and_keeps_every_other_byte() {
    let after = edited(CONFIG, |config| {
        config.add_server("time", &program(&["uvx", "mcp-server-time"]))
    });
    let section = "[server.time]\ncommand = [\"uvx\", \"mcp-server-time\"]\n\n";
    assert_eq!(
        after,
        CONFIG.replace("# The rules\n", &format!("{section}# The rules\n"))
    );
}

#[test]
fn removes_a_server_with_its_comment_and_subsections_alone() {
    let after = edited(CONFIG, |config| config.remove_server("files"));
    let (start, end) = (
        CONFIG.find("# Files").unwrap(),
        CONFIG.find("# Git").unwrap(),
    );
    assert_eq!(after, format!("{}{}", &CONFIG[..start], &CONFIG[end..]));
    let after = edited(CONFIG, |config| config.remove_server("git"));
    let (start, end) = (
        CONFIG.find("# Git").unwrap(),
        CONFIG.find("# The rules").unwrap(),
    );
    assert_eq!(after, format!("{}{}", &CONFIG[..start], &CONFIG[end..]));
}

#[test]
fn keeps_the_comment_at_the_top_of_the_file() {
    let text = "#:schema ./toolgate.schema.json\n[server.a]\ncommand = [\"x\"]\n\n[server.b]\ncommand = [\"y\"]\n";
    assert_eq!(
        edited(text, |config| config.remove_server("a")),
        "#:schema ./toolgate.schema.json\n[server.b]\ncommand = [\"y\"]\n"
    );
    assert_eq!(
        edited(text, |config| config.remove_server("b")),
        "#:schema ./toolgate.schema.json\n[server.a]\ncommand = [\"x\"]\n"
    );
}

/// Layouts of two servers, a and b, with and without the last newline, with LF and CRLF.
const LAYOUTS: &[&str] = &[
    "[server.a]\ncommand = [\"x\"]\n\n[server.b]\ncommand = [\"y\"]\n",
    "[ server . a ]\ncommand = [\"x\"]\n[ server . \"b\" ]\ncommand = [\"y\"]",
    "server.a.command = [\"x\"] # one\nserver.b.command = [\"y\"] # two\n\n[limits]\ncalls = 7\n",
    "[server]\na.command = [\"x\"]\na.env.A = \"1\"\nb.command = [\"y\"]\n\n[[rule]]\ntools = [\"*\"]\naction = \"allow\"\n",
    "[server]\na = { command = [\"x\"] } # one\n  b = { command = [\"y\"], env = { B = \"2\" } }\n",
    "server = { a = { command = [\"x\"] }, b = { command = [\"y\"] } }\nlisten = \"127.0.0.1:1\"\n",
    "server = {\n  # one\n  a = { command = [\"x\"] },\n  b = { command = [\"y\"] },\n}\n",
    "[[rule]]\ntools = [\"*\"]\naction = \"allow\"\n[server.a]\ncommand = [\"x\"]\n[[rule]]\ntools = [\"a.*\"]\naction = \"allow\"\n[server.b]\ncommand = [\"y\"]\n[server.a.env]\nA = \"1\"\n",
    "\u{feff}[server.a]\ncommand = [\"x\"]\nenv = { A = '''\n1\n''' }\n[server.b]\ncommand = [\"y\"]\n# end",
];

#[test]
fn edits_every_layout_and_keeps_other_lines() {
    for text in LAYOUTS {
        for text in [
            (*text).to_owned(),
            text.trim_end().to_owned(),
            text.replace('\n', "\r\n"),
        ] {
            let names = |text: &str| {
                let layout = Layout::parse(text).unwrap();
                let mut names = layout.server_names();
                names.sort();
                names.join(" ")
            };
            let added = edited(&text, |config| config.add_server("c", &program(&["z"])));
            assert_eq!(names(&added), "a b c", "{text:?} became {added:?}");
            let removed = edited(&text, |config| config.remove_server("a"));
            assert_eq!(names(&removed), "b", "{text:?} became {removed:?}");
            let disabled = edited(&text, |config| config.set_enabled("a", false).map(|_| ()));
            assert!(
                !Layout::parse(&disabled).unwrap().is_enabled("a"),
                "{disabled:?}"
            );
            let enabled = edited(&disabled, |config| {
                config.set_enabled("a", true).map(|_| ())
            });
            assert_eq!(enabled, text, "after {disabled:?}");
            for after in [&added, &removed, &disabled] {
                let mixed = after.contains("\r\n") && after.replace("\r\n", "").contains('\n');
                assert!(!mixed, "{text:?} became {after:?}");
                let lines = |text: &str| {
                    text.trim_start_matches('\u{feff}')
                        .lines()
                        .map(str::to_owned)
                        .collect::<Vec<_>>()
                };
                let other = lines(&text).into_iter().filter(|line| {
                    !line.is_empty()
                        && !line.contains("one")
                        && !line.contains(['a', 'A', '1', '\'', '}'])
                });
                for line in other {
                    assert!(
                        lines(after).contains(&line),
                        "{line:?} is missing in {after:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn disables_with_one_line_and_keeps_a_comment_on_it() {
    let text = "[server.a] # first\ncommand = [\"x\"]\n";
    assert_eq!(
        edited(text, |config| config.set_enabled("a", false).map(|_| ())),
        "[server.a] # first\nenabled = false\ncommand = [\"x\"]\n"
    );
    let text = "[server.a]\ncommand = [\"x\"]\nenabled = false # until May\n";
    assert_eq!(
        edited(text, |config| config.set_enabled("a", true).map(|_| ())),
        "[server.a]\ncommand = [\"x\"]\nenabled = true # until May\n"
    );
    let text = "[server.a]\ncommand = [\"x\"]\nenabled = true\n";
    assert_eq!(
        edited(text, |config| config.set_enabled("a", false).map(|_| ())),
        "[server.a]\ncommand = [\"x\"]\nenabled = false\n"
    );
}

#[test]
fn writes_each_part_of_an_entry() {
    let pair = |name: &str, value| (name.to_owned(), value);
    let entry = ServerEntry {
        cwd: Some("/srv/a b".to_owned()),
        disabled: true,
        env: vec![
            pair("Z", EntryValue::Text("a \"quoted\" \\ text".to_owned())),
            pair("A_KEY", EntryValue::Env("A_KEY".to_owned())),
        ],
        ..program(&["/opt/x", "--root", "/srv"])
    };
    let text = edited("", |config| config.add_server("x", &entry));
    assert_eq!(
        text,
        "[server.x]\ncommand = [\"/opt/x\", \"--root\", \"/srv\"]\ncwd = \"/srv/a b\"\nenabled = false\n\
         env = { Z = 'a \"quoted\" \\ text', A_KEY = { env = \"A_KEY\" } }\n"
    );
    let remote = ServerEntry {
        url: Some("https://mcp.example.com/mcp".to_owned()),
        headers: vec![
            pair("X-Api-Key", EntryValue::File("x.key".to_owned())),
            pair("X-Other-Key", EntryValue::Env("OTHER".to_owned())),
            pair("X-Tenant", EntryValue::Text("t".repeat(60))),
        ],
        ..ServerEntry::default()
    };
    let text = edited("", |config| config.add_server("x", &remote));
    assert_eq!(
        text,
        format!(
            "[server.x]\nurl = \"https://mcp.example.com/mcp\"\n\n[server.x.headers]\nX-Api-Key = {{ file = \"x.key\" }}\n\
             X-Other-Key = {{ env = \"OTHER\" }}\nX-Tenant = \"{}\"\n",
            "t".repeat(60)
        )
    );
}

#[test]
fn rejects_what_it_cannot_edit_and_writes_nothing_invalid() {
    let directory = TestDirectory::new("rejects");
    let path = directory.write(
        "[server.a]\ncommand = [\"x\"]\n\n[[rule]]\ntools = [\"a.*\"]\naction = \"allow\"\n",
    );
    let open = || ConfigDocument::open(&path).unwrap();
    let text = |error: EditError| String::from(error);
    let twice = text(open().add_server("a", &program(&["y"])).unwrap_err());
    assert!(
        twice.ends_with(
            "already has a server \"a\"; choose another name, or replace it with --replace"
        ),
        "{twice}"
    );
    let unknown = text(open().remove_server("aa").unwrap_err());
    assert!(
        unknown.ends_with("has no server \"aa\"; expected one of: a"),
        "{unknown}"
    );
    let before = fs::read(&path).unwrap();
    let mut config = open();
    config.add_server("Bad Name", &program(&["y"])).unwrap();
    let invalid = config.save().unwrap_err();
    assert!(
        matches!(&invalid, EditError::Config(text) if text.contains("would be invalid") && text.contains("[server.bad-name]")),
        "{invalid:?}"
    );
    assert_eq!(fs::read(&path).unwrap(), before);
    fs::write(&path, "[server.a]\ncomand = [\"x\"]\n").unwrap();
    let mut config = open();
    config.add_server("b", &program(&["y"])).unwrap();
    let invalid = text(config.save().unwrap_err());
    assert!(
        invalid.contains("invalid as it is") && invalid.contains(":2:1: unknown key \"comand\""),
        "{invalid}"
    );
    fs::write(&path, "[server.a\n").unwrap();
    let broken = text(ConfigDocument::open(&path).map(drop).unwrap_err());
    assert!(
        broken.contains("correct it first") && broken.contains(":1:"),
        "{broken}"
    );
    fs::write(&path, "{\"mcpServers\": {}}").unwrap();
    let json = text(ConfigDocument::open(&path).map(drop).unwrap_err());
    assert!(json.contains("`toolgate import`"), "{json}");
}

#[test]
fn replaces_the_target_of_a_link_and_keeps_its_mode() {
    let directory = TestDirectory::new("link");
    let path = directory.write("[server.a]\ncommand = [\"x\"]\n");
    let link = directory.0.join("link.toml");
    symlink("toolgate.toml", &link).unwrap();
    let inode = fs::metadata(&path).unwrap().ino();
    let mut config = ConfigDocument::open(&link).unwrap();
    config.add_server("b", &program(&["y"])).unwrap();
    let saved = config.save().unwrap();
    assert_eq!(saved.servers.len(), 2);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    let meta = fs::metadata(&path).unwrap();
    assert_eq!(meta.mode() & 0o777, 0o640);
    assert_ne!(meta.ino(), inode, "the file is replaced, not overwritten");
    assert_eq!(
        fs::read_dir(&directory.0).unwrap().count(),
        2,
        "no temporary file stays"
    );
}

#[test]
fn creates_a_private_file_and_sees_a_change_by_another_program() {
    let directory = TestDirectory::new("new");
    let path = directory.0.join("deep/toolgate.toml");
    let mut config = ConfigDocument::open_or_create(&path, "# Mine\n").unwrap();
    assert!(config.is_new());
    config.add_server("a", &program(&["x"])).unwrap();
    config.save().unwrap();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "# Mine\n\n[server.a]\ncommand = [\"x\"]\n"
    );
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert_eq!(
        fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777,
        0o700
    );
    let mut config = ConfigDocument::open_or_create(&path, "").unwrap();
    config.add_server("b", &program(&["x"])).unwrap();
    fs::write(&path, "[server.z]\ncommand = [\"x\"]\n").unwrap();
    let changed = String::from(config.save().map(drop).unwrap_err());
    assert!(changed.contains("run the command again"), "{changed}");
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "[server.z]\ncommand = [\"x\"]\n"
    );
}
