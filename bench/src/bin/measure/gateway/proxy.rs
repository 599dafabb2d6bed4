//! Gateways that are measured, and the servers behind them.

use super::{
    GatewayLoad,
    process::{self, wrapped},
    registry::RegistryProxy,
};
use crate::{http::Http, peer::Peer, wire::Wire};
use std::{fs, path::PathBuf, process::Command};

/// What stands between the client and the server.
pub struct Proxy {
    /// Name in the table and on the command line.
    pub name: &'static str,
    /// Its program.
    kind: Kind,
    /// It is timed with this part of the calls, if it is slow.
    pub share: u64,
}

enum Kind {
    /// Nothing: the client calls the server.
    Direct,
    /// A hyper proxy that reads nothing of the messages.
    Bare,
    /// The gateway.
    Toolgate {
        /// `mode` of `[audit]`.
        audit: &'static str,
        /// True if the data directory is on a disk; otherwise it is in memory (tmpfs).
        disk: bool,
    },
    /// A proxy of others, in front of our server.
    Registry(RegistryProxy),
}

/// All of them; the second one is the anchor.
pub const PROXIES: [Proxy; 8] = [
    Proxy {
        name: "direct",
        kind: Kind::Direct,
        share: 1,
    },
    Proxy {
        name: "bare proxy",
        kind: Kind::Bare,
        share: 1,
    },
    toolgate("toolgate, tmpfs, end", "end", false),
    toolgate("toolgate, tmpfs, strict", "strict", false),
    toolgate("toolgate, disk, end", "end", true),
    toolgate("toolgate, disk, strict", "strict", true),
    Proxy {
        name: "mcp-proxy 6.7 (server: `ours`)",
        kind: Kind::Registry(RegistryProxy::McpProxy),
        share: 8,
    },
    Proxy {
        name: "FastMCP 4.1 proxy (server: `ours`)",
        kind: Kind::Registry(RegistryProxy::FastMcp),
        share: 100,
    },
];

const fn toolgate(name: &'static str, audit: &'static str, disk: bool) -> Proxy {
    let kind = Kind::Toolgate { audit, disk };
    Proxy {
        name,
        kind,
        share: 1,
    }
}

/// A gateway that runs, with the server behind it.
pub struct Running {
    /// The connections to it.
    pub wire: Wire,
    /// Process whose usage counts.
    pub pid: u32,
    upstream: Option<Http>,
    data: Option<PathBuf>,
}

impl Proxy {
    /// Returns whether it can stand in front of the server of this workload.
    pub fn takes(&self, load: &GatewayLoad) -> bool {
        match &self.kind {
            Kind::Direct | Kind::Bare => !load.stdio,
            Kind::Toolgate { .. } => true,
            Kind::Registry(proxy) => proxy.takes(load),
        }
    }

    /// Returns whether callgrind counts its instructions: the disk makes no difference to them, and those of a script are
    /// its interpreter's.
    pub fn is_counted(&self) -> bool {
        matches!(self.kind, Kind::Bare | Kind::Toolgate { disk: false, .. })
    }

    /// Returns the command of the server, unless the gateway starts it.
    fn server(&self, load: &GatewayLoad) -> Option<Command> {
        match &self.kind {
            Kind::Registry(proxy) => proxy.server(load),
            _ => (!load.stdio).then(|| upstream(load, "bare_http")),
        }
    }

    /// Starts the server, and this gateway in front of it. `enter` is called between the two, and `wrap` stands before the
    /// command of the gateway.
    pub fn start(
        &self,
        load: &GatewayLoad,
        wrap: Option<Command>,
        enter: impl FnOnce(),
    ) -> Running {
        let upstream = self.server(load).map(Http::start);
        enter();
        let url = upstream.as_ref().map(Http::url);
        let (http, data) = match (&self.kind, url) {
            (Kind::Direct, _) => {
                let http = upstream.expect("a server over HTTP");
                let (pid, wire) = (http.pid(), Wire::Http(http));
                let (upstream, data) = (None, None);
                return Running {
                    wire,
                    pid,
                    upstream,
                    data,
                };
            }
            (Kind::Bare, url) => {
                let mut command = Peer::beside("bare_proxy");
                command.arg("--url").arg(url.expect("a server over HTTP"));
                (Http::start(wrapped(command, wrap)), None)
            }
            (Kind::Toolgate { audit, disk }, url) => {
                let folder = process::new_folder(*disk);
                let http = process::start(&config(load, audit, url), &folder, wrap);
                (http, Some(folder))
            }
            (Kind::Registry(proxy), url) => {
                let command = proxy.command(load, url);
                (Http::start(wrapped(command, wrap)), None)
            }
        };
        let (pid, wire) = (http.pid(), Wire::Http(http));
        Running {
            wire,
            pid,
            upstream,
            data,
        }
    }
}

impl Running {
    /// Ends both, the gateway with SIGTERM.
    pub fn terminate(self) {
        self.wire.terminate();
        Running::end_server(self.upstream, self.data);
    }

    /// Ends both.
    pub fn end(self) {
        self.wire.end();
        Running::end_server(self.upstream, self.data);
    }

    fn end_server(upstream: Option<Http>, data: Option<PathBuf>) {
        if let Some(upstream) = upstream {
            upstream.end();
        }
        if let Some(data) = data {
            let _ = fs::remove_dir_all(data);
        }
    }
}

/// The command of the server: a bare one that describes its tool.
fn upstream(load: &GatewayLoad, program: &str) -> Command {
    let mut command = Peer::beside(program);
    command.args(["--breaking", "--tools", &load.tools.to_string()]);
    command
}

/// The config of the gateway.
fn config(load: &GatewayLoad, audit: &str, url: Option<String>) -> String {
    let server = match url {
        Some(url) => format!("url = {url:?}\n"),
        None => {
            let command = upstream(load, "bare_stdio");
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            format!("command = {:?}\n", words.collect::<Vec<_>>())
        }
    };
    format!(
        "{MOST}\n[audit]\nmode = \"{audit}\"\n\n[server.bare]\nprefix = \"\"\n{server}\n[[rule]]\ntools = [\"bare.*\"]\naction = \"allow\"\n"
    )
}

/// Limits that no workload reaches; all of them stay on.
pub const MOST: &str = "[limits]\nrate = \"1000000/s\"\nsessions = 4096\ncalls_per_caller = 512\ncalls_per_tool = 512\nconnections_per_address = 1024\n";
