//! Measured peers.

use crate::{bad, load::Load};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// A program that serves, or uses the bare server.
pub struct Peer {
    /// Name on the page.
    pub name: &'static str,
    /// True for a client.
    pub client: bool,
    /// The program over stdio, beside this one.
    program: &'static str,
    /// The one over HTTP, where there is one.
    http: Option<&'static str>,
    /// True if it is ours and has to reject bad calls.
    pub ours: bool,
    /// True if its audit log is on disk.
    pub audit: bool,
    /// True if it asks the application before each call.
    confirm: bool,
    /// Interpreter and file of a script; `cargo xtask install` installs its dependencies.
    pub script: Option<(&'static str, &'static str)>,
    /// It is timed with this part of the calls, where it is slow.
    pub share: u64,
}

/// The workloads that scripts are measured with.
const OF_SCRIPTS: [&str; 6] = [
    "echo",
    "echo-64",
    "http",
    "client-echo",
    "client-echo-64",
    "client-http",
];

/// The bare server; the others say what is different.
const BARE: Peer = Peer {
    name: "bare",
    client: false,
    program: "bare_stdio",
    http: Some("bare_http"),
    ours: false,
    audit: false,
    confirm: false,
    script: None,
    share: 1,
};

/// The bare client.
const CLIENT: Peer = Peer {
    client: true,
    program: "bare_client",
    http: Some("bare_client"),
    ..BARE
};

/// Our server.
const OURS: Peer = Peer {
    name: "toolgate",
    program: "ours",
    http: Some("ours"),
    ours: true,
    ..BARE
};

/// Our client.
const OUR_CLIENT: Peer = Peer {
    client: true,
    program: "our_client",
    http: Some("our_client"),
    ..OURS
};

/// All of them; the first of each role is the bare limit.
pub const PEERS: [Peer; 13] = [
    BARE,
    OURS,
    Peer {
        name: "toolgate, audit log on disk",
        audit: true,
        ..OURS
    },
    Peer {
        name: "rmcp 3.9",
        program: "rmcp_stdio",
        http: Some("rmcp_stdio"),
        ..BARE
    },
    Peer {
        name: "TypeScript SDK 2",
        program: "node",
        http: Some("node"),
        script: Some(("node", "interop/servers/ts2.mjs")),
        share: 8,
        ..BARE
    },
    Peer {
        name: "Python SDK 2",
        program: "python3",
        http: Some("python3"),
        script: Some(("venv/bin/python", "interop/servers/py_server.py")),
        share: 40,
        ..BARE
    },
    CLIENT,
    OUR_CLIENT,
    Peer {
        name: "toolgate, asks before each call",
        confirm: true,
        ..OUR_CLIENT
    },
    Peer {
        name: "toolgate, audit log on disk",
        audit: true,
        ..OUR_CLIENT
    },
    Peer {
        name: "rmcp 3.9",
        program: "rmcp_client",
        http: Some("rmcp_client"),
        ..CLIENT
    },
    Peer {
        name: "TypeScript SDK 2",
        script: Some(("node", "bench/clients/ts2.mjs")),
        share: 8,
        ..CLIENT
    },
    Peer {
        name: "Python SDK 2",
        script: Some(("venv/bin/python", "bench/clients/py.py")),
        share: 40,
        ..CLIENT
    },
];

impl Peer {
    /// Returns our server, or our client, with the default settings.
    pub const fn ours(client: bool) -> &'static Peer {
        if client { &OUR_CLIENT } else { &OURS }
    }

    /// Returns whether it is ours with the default settings.
    pub fn is_standard(&self) -> bool {
        self.ours && !self.audit && !self.confirm
    }

    /// Returns whether it is the minimal implementation, with which the others are compared.
    pub fn is_bare(&self) -> bool {
        self.name == BARE.name
    }

    /// Returns whether it supports a load.
    pub fn takes(&self, load: &Load) -> bool {
        if self.client != load.client || (self.confirm && load.name != "client-echo") {
            return false;
        }
        if self.script.is_some() {
            let fits = OF_SCRIPTS.contains(&load.name) && (!load.http || self.http.is_some());
            return fits && self.is_installed();
        }
        // The log is made safe once for many calls; one call at a time measures the disk.
        let logs = !self.audit || load.audited;
        // What is ours alone is beside bare only; the tools of the server of rmcp are one.
        let standard = load.tools == 0 && load.secrets && load.layers == 0;
        let fits = self.ours || self.client || self.is_bare() || standard;
        logs && fits && (!load.http || self.http.is_some())
    }

    /// Returns whether the dependencies of the script are installed.
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
    fn interpreted((program, file): (&str, &str)) -> Command {
        let mut command = Command::new(match program {
            "node" => PathBuf::from(program),
            program => installed().join(program),
        });
        command.arg(root().join(file));
        command
    }

    /// The setting of a server that is a script.
    fn setting(load: &Load) -> String {
        let package = "@modelcontextprotocol/server";
        let setting =
            serde_json::json!({"interop": installed(), "package": package, "http": load.http});
        setting.to_string()
    }

    /// The command that starts it for so many calls.
    pub fn command(&self, load: &Load, calls: u64) -> Command {
        if self.client {
            return self.using(load, calls);
        }
        if let Some(script) = self.script {
            let mut command = Peer::interpreted(script);
            command.arg(Peer::setting(load));
            return command;
        }
        let http = self.http.filter(|_| load.http);
        let mut command = Peer::beside(http.unwrap_or(self.program));
        if load.tools > 0 {
            command.args(["--tools", &load.tools.to_string()]);
        }
        if self.ours {
            command.args(["--quota", &(load.flight + calls + bad::COUNTED).to_string()]);
            if load.layers > 0 {
                command.args(["--layers", &load.layers.to_string()]);
            }
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

    /// The same of a client.
    fn using(&self, load: &Load, calls: u64) -> Command {
        let mut command = match self.script {
            Some(script) => {
                let mut command = Peer::interpreted(script);
                let server = Peer::beside("bare_stdio");
                command.arg(installed());
                command.arg("--server").arg(server.get_program());
                command
            }
            None => Peer::beside(self.program),
        };
        let numbers = [
            ("--calls", calls),
            ("--flight", load.flight),
            ("--tools", load.tools as u64),
        ];
        for (option, number) in numbers {
            command.args([option, &number.to_string()]);
        }
        let options = [("--lists", load.lists), ("--confirm", self.confirm)];
        for (option, _) in options.iter().filter(|(_, set)| *set) {
            command.arg(option);
        }
        if self.audit {
            command.arg("--audit").arg(self.folder());
        }
        command
    }

    /// A program that was built with this one.
    pub fn beside(program: &str) -> Command {
        let here = std::env::current_exe().expect("this program has a path");
        Command::new(here.with_file_name(program))
    }

    /// Returns the empty directory for its log.
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

/// Returns the directory of the installed SDKs.
fn installed() -> PathBuf {
    let given = std::env::var_os("TOOLGATE_INTEROP").map(PathBuf::from);
    given.unwrap_or_else(|| root().join("target/interop"))
}
