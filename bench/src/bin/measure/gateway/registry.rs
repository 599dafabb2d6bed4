//! Proxies from package registries, which `cargo xtask bench gateway` installs.
//!
//! The bare server is not a compliant server for them, so the program `ours` stands behind them.

use super::GatewayLoad;
use crate::{load::cores, peer::Peer};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// A proxy from a registry.
pub enum RegistryProxy {
    /// `mcp-proxy` of npm: HTTP to a child over stdio.
    McpProxy,
    /// The proxy of FastMCP, of PyPI: HTTP to HTTP.
    FastMcp,
}

/// Workloads that they are measured with.
const LOADS: [&str; 3] = ["session", "session-32", "http-64k"];

impl RegistryProxy {
    /// Returns whether it is installed and takes part in the workload.
    pub fn takes(&self, load: &GatewayLoad) -> bool {
        if !LOADS.contains(&load.load.name) {
            return false;
        }
        let installed = self.package().exists();
        if !installed {
            eprintln!("left out: {} is not there", self.package().display());
        }
        installed
    }

    /// Returns the command of the server over HTTP, unless the proxy starts the server itself.
    pub fn server(&self, load: &GatewayLoad) -> Option<Command> {
        match self {
            RegistryProxy::McpProxy => None,
            RegistryProxy::FastMcp => {
                let mut server = ours(load);
                server.arg("--http");
                Some(server)
            }
        }
    }

    /// Returns the command of the proxy.
    pub fn command(&self, load: &GatewayLoad, url: Option<String>) -> Command {
        match self {
            RegistryProxy::McpProxy => {
                let server = ours(load);
                let mut command = Command::new("node");
                command.arg(bench().join("proxies/mcp_proxy.mjs"));
                command.arg(installed().join("node"));
                command.arg(server.get_program()).args(server.get_args());
                command
            }
            RegistryProxy::FastMcp => {
                let mut command = Command::new(self.package());
                command.arg(bench().join("proxies/fastmcp_proxy.py"));
                command.arg("--url").arg(url.expect("a server over HTTP"));
                command
            }
        }
    }

    /// Returns a path that exists once the proxy is installed.
    fn package(&self) -> PathBuf {
        installed().join(match self {
            RegistryProxy::McpProxy => "node/node_modules/mcp-proxy",
            RegistryProxy::FastMcp => "fastmcp/bin/python",
        })
    }
}

/// The command of our server, which stays on the core of the client.
fn ours(load: &GatewayLoad) -> Command {
    let mut server = Peer::beside("ours");
    server.args(["--tools", &load.tools.to_string()]);
    server.args(["--core", &cores()[0].to_string()]);
    server
}

fn bench() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the directory of the installed proxies.
fn installed() -> PathBuf {
    bench().join("target/proxies")
}
