//! Who is measured.

use crate::{bad, load::Load};
use std::{path::PathBuf, process::Command};

/// A program that serves.
pub struct Peer {
    /// How the page calls it.
    pub name: &'static str,
    /// The program, beside this one.
    program: &'static str,
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
        ours: false,
        audit: false,
    },
    Peer {
        name: "toolgate",
        program: "ours",
        ours: true,
        audit: false,
    },
    Peer {
        name: "toolgate, audit log on disk",
        program: "ours",
        ours: true,
        audit: true,
    },
    Peer {
        name: "rmcp 3.9",
        program: "rmcp_stdio",
        ours: false,
        audit: false,
    },
];

impl Peer {
    /// Whether it can do that.
    pub fn takes(&self, load: &Load) -> bool {
        // The log is made safe once for many calls; one call at a time measures the disk.
        !self.audit || load.audited
    }

    /// The command that starts it for so many calls.
    pub fn command(&self, load: &Load, calls: u64) -> Command {
        let here = std::env::current_exe().expect("this program has a path");
        let mut command = Command::new(here.with_file_name(self.program));
        if load.tools > 0 {
            command.args(["--tools", &load.tools.to_string()]);
        }
        if self.ours {
            command.args(["--quota", &(calls + bad::COUNTED).to_string()]);
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
