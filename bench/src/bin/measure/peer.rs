//! Who is measured.

use crate::{bad, load::Load};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// A program that serves.
pub struct Peer {
    /// How the page calls it.
    pub name: &'static str,
    /// The program over stdio, beside this one.
    program: &'static str,
    /// The one over HTTP, where there is one.
    http: Option<&'static str>,
    /// Whether it is ours, and so has to refuse.
    pub ours: bool,
    /// Whether its record goes to the disk.
    pub audit: bool,
    /// What runs it, and its file in `interop/servers`, where it is a script: `cargo xtask install` installs what it needs.
    pub script: Option<(&'static str, &'static str)>,
}

/// The workloads that scripts are measured with.
const OF_SCRIPTS: [&str; 3] = ["echo", "echo-64", "http"];

/// All of them; the first is the bare limit.
pub const PEERS: [Peer; 6] = [
    Peer {
        name: "bare",
        program: "bare_stdio",
        http: Some("bare_http"),
        ours: false,
        audit: false,
        script: None,
    },
    Peer {
        name: "toolgate",
        program: "ours",
        http: Some("ours"),
        ours: true,
        audit: false,
        script: None,
    },
    Peer {
        name: "toolgate, audit log on disk",
        program: "ours",
        http: Some("ours"),
        ours: true,
        audit: true,
        script: None,
    },
    Peer {
        name: "rmcp 3.9",
        program: "rmcp_stdio",
        http: Some("rmcp_stdio"),
        ours: false,
        audit: false,
        script: None,
    },
    Peer {
        name: "TypeScript SDK 2",
        program: "node",
        http: Some("node"),
        ours: false,
        audit: false,
        script: Some(("node", "ts2.mjs")),
    },
    Peer {
        name: "Python SDK 2",
        program: "python3",
        http: None,
        ours: false,
        audit: false,
        script: Some(("venv/bin/python", "py_server.py")),
    },
];

impl Peer {
    /// Whether it can do that.
    pub fn takes(&self, load: &Load) -> bool {
        if self.script.is_some() {
            let fits = OF_SCRIPTS.contains(&load.name) && (!load.http || self.http.is_some());
            return fits && self.is_installed();
        }
        // The log is made safe once for many calls; one call at a time measures the disk.
        let logs = !self.audit || load.audited;
        // What is ours alone is beside bare only; the tools of rmcp are one.
        let fits = self.ours || self.name == "bare" || (load.tools == 0 && load.secrets);
        logs && fits && (!load.http || self.http.is_some())
    }

    /// Whether what a script needs is there.
    fn is_installed(&self) -> bool {
        let here = installed();
        let found = match self.script {
            Some(("node", _)) => here.join("node/node_modules/@modelcontextprotocol/server"),
            Some((program, _)) => here.join(program),
            None => return true,
        };
        found.exists()
    }

    /// The command of a script.
    fn interpreted(load: &Load, (program, file): (&str, &str)) -> Command {
        let here = installed();
        let program = match program {
            "node" => PathBuf::from(program),
            program => here.join(program),
        };
        let mut command = Command::new(program);
        command.arg(root().join("interop/servers").join(file));
        let package = "@modelcontextprotocol/server";
        let setting = serde_json::json!({"interop": here, "package": package, "http": load.http});
        command.arg(setting.to_string());
        command
    }

    /// The command that starts it for so many calls.
    pub fn command(&self, load: &Load, calls: u64) -> Command {
        if let Some(script) = self.script {
            return Peer::interpreted(load, script);
        }
        let here = std::env::current_exe().expect("this program has a path");
        let http = self.http.filter(|_| load.http);
        let mut command = Command::new(here.with_file_name(http.unwrap_or(self.program)));
        if load.tools > 0 {
            command.args(["--tools", &load.tools.to_string()]);
        }
        if self.ours {
            command.args(["--quota", &(calls + bad::COUNTED).to_string()]);
            if !load.secrets {
                command.arg("--without-secrets");
            }
        }
        if load.http && self.http == Some(self.program) {
            command.arg("--http");
        }
        if self.audit {
            command.arg("--audit").arg(self.folder());
        }
        command
    }

    /// Where its log goes; emptied.
    fn folder(&self) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("toolgate-bench-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }
}

/// The folder of the project.
fn root() -> PathBuf {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
    bench.parent().unwrap_or(bench).to_owned()
}

/// Where the SDKs of others are.
fn installed() -> PathBuf {
    let given = std::env::var_os("TOOLGATE_INTEROP").map(PathBuf::from);
    given.unwrap_or_else(|| root().join("target/interop"))
}
