//! Who is measured.

use crate::{bad, load::Load};
use std::{path::PathBuf, process::Command};

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
}

/// All of them; the first is the bare limit.
pub const PEERS: [Peer; 4] = [
    Peer {
        name: "bare",
        program: "bare_stdio",
        http: Some("bare_http"),
        ours: false,
        audit: false,
    },
    Peer {
        name: "toolgate",
        program: "ours",
        http: Some("ours"),
        ours: true,
        audit: false,
    },
    Peer {
        name: "toolgate, audit log on disk",
        program: "ours",
        http: Some("ours"),
        ours: true,
        audit: true,
    },
    Peer {
        name: "rmcp 3.9",
        program: "rmcp_stdio",
        http: None,
        ours: false,
        audit: false,
    },
];

impl Peer {
    /// Whether it can do that.
    pub fn takes(&self, load: &Load) -> bool {
        // The log is made safe once for many calls; one call at a time measures the disk.
        let logs = !self.audit || load.audited;
        // What is ours alone is beside bare only; the tools of rmcp are one.
        let fits = self.ours || self.name == "bare" || (load.tools == 0 && load.secrets);
        logs && fits && (!load.http || self.http.is_some())
    }

    /// The command that starts it for so many calls.
    pub fn command(&self, load: &Load, calls: u64) -> Command {
        let here = std::env::current_exe().expect("this program has a path");
        let http = self.http.filter(|_| load.http);
        let mut command = Command::new(here.with_file_name(http.unwrap_or(self.program)));
        if load.tools > 0 {
            command.args(["--tools", &load.tools.to_string()]);
        }
        if self.ours {
            command.args(["--quota", &(calls + bad::COUNTED).to_string()]);
            if load.http {
                command.arg("--http");
            }
            if !load.secrets {
                command.arg("--without-secrets");
            }
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
