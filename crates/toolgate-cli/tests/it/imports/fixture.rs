//! Fixtures of homes: one text file each, in which `-- PATH --` begins a file of the home or of the project.

use super::*;
use std::process::Command;

/// Rules for the server of [`Fixture::real`].
const REAL_RULES: &str = r#"[[rule]]
tools = ["*.add"]
action = "allow"

[[rule]]
tools = ["*.picture"]
action = "deny"

[[rule]]
tools = ["*.slow_count", "*.note"]
when = "args.steps > 3"
action = "deny"
"#;

/// Fixture as its file has it.
pub(crate) struct Fixture {
    pub(crate) name: String,
    /// Arguments of the import.
    pub(crate) args: Vec<String>,
    env: Vec<(String, String)>,
    files: Vec<(String, String)>,
}

/// Fixture in a directory of its own.
pub(crate) struct UnpackedHome {
    dir: TempDir,
    args: Vec<String>,
    env: Vec<(String, String)>,
}

/// Finished command.
pub(crate) struct ImportRun {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Fixture {
    fn directory() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/imports")
    }

    /// Returns all fixtures by name.
    pub(crate) fn all() -> impl Iterator<Item = Fixture> {
        let entries = fs::read_dir(Fixture::directory()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert!(names.len() >= 40);
        names
            .into_iter()
            .map(|name| Fixture::read(name.strip_suffix(".txtar").unwrap()))
    }

    pub(crate) fn read(name: &str) -> Fixture {
        let file = Fixture::directory().join(format!("{name}.txtar"));
        Fixture::parse(name, &fs::read_to_string(file).unwrap())
    }

    fn parse(name: &str, text: &str) -> Fixture {
        let (mut args, mut env) = (Vec::new(), Vec::new());
        let mut files: Vec<(String, String)> = Vec::new();
        for line in text.split_inclusive('\n') {
            let title = line
                .strip_prefix("-- ")
                .and_then(|line| line.strip_suffix(" --\n"));
            match (title, files.last_mut()) {
                (Some(path), _) => files.push((path.to_owned(), String::new())),
                (None, Some((_, text))) => text.push_str(line),
                (None, None) => {
                    if let Some(words) = line.strip_prefix("# args: ") {
                        // Words in quotes contain spaces.
                        args = words
                            .trim()
                            .split('"')
                            .enumerate()
                            .flat_map(split_unquoted)
                            .collect();
                    }
                    if let Some(pair) = line.strip_prefix("# env: ") {
                        let (name, value) = pair.trim().split_once('=').unwrap();
                        env.push((name.to_owned(), value.to_owned()));
                    }
                }
            }
        }
        Fixture {
            name: name.to_owned(),
            args,
            env,
            files,
        }
    }

    /// Returns a home with a real server, and one that ends at once.
    pub(crate) fn real() -> Fixture {
        let file = "home/.cursor/mcp.json".to_owned();
        let servers = "{ \"mcpServers\": {\n\
            \"demo\": { \"command\": \"{toolgate}\", \"args\": [\"demo-server\"] },\n\
            \"ends\": { \"command\": \"sh\", \"args\": [\"-c\", \"echo no such database >&2; exit 3\"] }\n} }\n";
        Fixture {
            name: "real".to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            files: vec![
                (file, servers.to_owned()),
                (
                    "home/.config/toolgate/toolgate.toml".to_owned(),
                    REAL_RULES.to_owned(),
                ),
            ],
        }
    }

    /// Writes the files.
    pub(crate) fn unpack(&self) -> UnpackedHome {
        let home = UnpackedHome {
            dir: TempDir::new("import"),
            args: self.args.clone(),
            env: self.env.clone(),
        };
        for directory in ["home", "project"] {
            fs::create_dir_all(home.path(directory)).unwrap();
        }
        for (path, text) in &self.files {
            let path = home.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, home.filled(text)).unwrap();
        }
        home
    }

    /// Writes the files, and sets a variable.
    pub(crate) fn unpack_with(&self, name: &str, value: &str) -> UnpackedHome {
        let mut home = self.unpack();
        home.env.push((name.to_owned(), value.to_owned()));
        home
    }

    /// Returns true if the home has the files of the fixture and no others.
    pub(crate) fn is_unchanged(&self, home: &UnpackedHome) -> bool {
        let same = |(path, text): &(String, String)| {
            fs::read_to_string(home.path(path)).is_ok_and(|now| now == home.filled(text))
        };
        self.files.iter().all(same) && count_files(home.dir.path()) == self.files.len()
    }
}

fn split_unquoted((at, part): (usize, &str)) -> Vec<String> {
    match at % 2 {
        1 => vec![part.to_owned()],
        _ => part.split_whitespace().map(str::to_owned).collect(),
    }
}

fn count_files(directory: &Path) -> usize {
    let entries = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .map(|path| if path.is_dir() { count_files(&path) } else { 1 })
        .sum()
}

impl UnpackedHome {
    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.file(name)
    }

    /// Returns the path of the config.
    pub(crate) fn config(&self) -> std::path::PathBuf {
        let moved = self.env.iter().find(|(name, _)| name == "XDG_CONFIG_HOME");
        let config = moved.map_or_else(
            || self.path("home/.config"),
            |(_, path)| self.filled(path).into(),
        );
        config.join("toolgate/toolgate.toml")
    }

    fn filled(&self, text: &str) -> String {
        text.replace("{home}", self.path("home").to_str().unwrap())
            .replace("{toolgate}", env!("CARGO_BIN_EXE_toolgate"))
    }

    fn prepare(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .current_dir(self.path("project"));
        for (name, value) in &self.env {
            command.env(name, self.filled(value));
        }
    }

    /// Runs a command of the program.
    pub(crate) fn run(&self, args: &[&str]) -> ImportRun {
        let mut run = toolgate();
        self.prepare(run.args(args));
        self.finish(&mut run)
    }

    /// Runs an import with the arguments of the fixture and these.
    pub(crate) fn import(&self, args: &[&str]) -> ImportRun {
        let words = self
            .args
            .iter()
            .map(String::as_str)
            .chain(args.iter().copied());
        self.run(&["import"].into_iter().chain(words).collect::<Vec<_>>())
    }

    /// Runs an import on a terminal, and types an answer.
    pub(crate) fn import_on_a_terminal(&self, answer: &str) -> ImportRun {
        let line = format!("{} import --no-start", env!("CARGO_BIN_EXE_toolgate"));
        let typed = self.dir.write("typed", &format!("{answer}\n"));
        let mut run = crate::help::command("script");
        self.prepare(run.args(["-qec", &line, "/dev/null"]));
        run.stdin(fs::File::open(typed).unwrap());
        self.finish(&mut run)
    }

    fn finish(&self, run: &mut Command) -> ImportRun {
        let out = output(run);
        let home = self.dir.path().to_str().unwrap();
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).unwrap().replace(home, "/tmp");
            text.replace(env!("CARGO_BIN_EXE_toolgate"), "/bin/toolgate")
        };
        ImportRun {
            code: out.status.code().unwrap(),
            stdout: text(out.stdout),
            stderr: text(out.stderr),
        }
    }
}

impl ImportRun {
    /// Returns everything that the operator sees.
    pub(crate) fn shown(&self) -> String {
        format!(
            "exit code {}\n-- stderr --\n{}-- stdout --\n{}",
            self.code, self.stderr, self.stdout
        )
    }
}
