//! The command line. Its names are a contract.
//!
//! Exit codes: 0 fine, 1 failed, 2 wrong usage or config. stdout carries only what was asked for.

use clap::{Args, CommandFactory, Parser, Subcommand, error::ErrorKind};
use std::{ffi::OsString, net::SocketAddr, path::PathBuf, time::Duration};

mod decide;
mod keys;

pub(crate) use decide::{Approve, Freeze, Grants, Thaw, What};
pub(crate) use keys::Keys;

/// A gate for MCP tools: policy, approval and a record for every call
#[derive(Debug, Parser)]
#[command(name = "toolgate", version, max_term_width = 100)]
pub(crate) struct Cli {
    /// Where the record, approvals and sockets are kept
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// A toolgate.toml, or the mcpServers JSON of a host
    ///
    /// Without it: toolgate/toolgate.toml in XDG_CONFIG_HOME or ~/.config, else the demo server. A file in the current
    /// directory is never taken by itself. It also says where the data is, unless --data does.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    serve: Serve,
    /// What is to be done; to serve where it is absent.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the configured servers (this is what happens without a command)
    Serve(Serve),
    /// Serve one server without a config
    Run(Run),
    /// Tell how the running gateways stand; fails where one cannot write its record
    Status,
    /// List the tools of the running gateways
    Tools,
    /// List the resources and resource templates of the running gateways
    Resources,
    /// List the prompts of the running gateways
    Prompts,
    /// Call a tool of a running gateway
    Call {
        /// Which tool
        #[arg(value_name = "SERVER.TOOL", value_parser = tool)]
        tool: String,
        /// Its arguments, a JSON object
        #[arg(value_name = "JSON", value_parser = object)]
        arguments: Option<String>,
    },
    /// Tell what would become of a call, step by step; nothing is called
    ///
    /// A running gateway answers. Where none runs, or a config is given with --config, the config and the stored definitions answer:
    /// then the servers are not asked, and it is not known how much of a rate is used up.
    Explain(Explain),
    /// List the newest calls, and what they do
    Calls,
    /// List the calls that wait for a person
    Inbox,
    /// Allow a waiting call
    Approve(Approve),
    /// Refuse a waiting call
    Deny {
        /// Which call, as `toolgate inbox` shows it
        id: String,
        /// Why; the model reads it
        #[arg(short, long, value_name = "REASON")]
        message: String,
    },
    /// Stop a running call
    Stop {
        /// Which call, as `toolgate calls` shows it
        id: String,
    },
    /// List or withdraw the approvals that are remembered
    #[command(subcommand)]
    Grants(Grants),
    /// Stop a caller, a server or everything, and refuse what comes
    #[command(subcommand)]
    Freeze(Freeze),
    /// Let a caller, a server or everything go on
    #[command(subcommand)]
    Thaw(Thaw),
    /// Make, renew, list or revoke the keys by which callers over HTTP say who they are
    #[command(subcommand)]
    Keys(Keys),
    /// Have the running gateways read their configs again
    Reload,
    /// See and settle definitions that are new or changed
    #[command(subcommand)]
    Pins(PinsCommand),
    /// See and stop calls that go on after their answer
    #[command(subcommand)]
    Tasks(TasksCommand),
    /// Sign in at a server that wants to know who calls
    ///
    /// The address of the page where you sign in is printed, and opened where there is a browser. What you grant is kept
    /// sealed in the data directory, used by every gateway on it, and renewed.
    Login(Login),
    /// Forget what was granted for a server, and give it back where that is taken
    Logout(Logout),
    /// List where somebody signed in, for whom, and what was granted
    Logins {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Print a fresh link to the console
    Console {
        /// Whom the link is for: what is decided with it is decided by that person
        #[arg(long = "as", value_name = "NAME", default_value = "")]
        name: String,
        /// End all browser sessions of the data directory instead, and remove links that nobody opened
        #[arg(long, conflicts_with = "name")]
        revoke: bool,
    },
    /// Read or verify the record
    #[command(subcommand)]
    Audit(Audit),
    /// Be the demo server over standard input and output
    DemoServer,
    /// Check the config and stop
    ///
    /// It also tells of rules that never decide, and of rules that fit nothing that the servers offer. Exit code 0: the
    /// config can be used. 2: it is wrong. 1: a server could not be asked, or --strict found something to tell.
    Check(Check),
}

/// `toolgate login`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Login {
    /// Which server, as it is called in the config
    pub(crate) server: String,
    /// For which caller alone, such as key:NAME, where each has a sign-in of its own
    #[arg(long, value_name = "NAME")]
    pub(crate) caller: Option<String>,
    /// Only print the address
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Have the browser come back to this port of 127.0.0.1, such as behind ssh -L N:127.0.0.1:N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
}

/// `toolgate logout`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Logout {
    /// Which server, as it is called in the config, or as `toolgate logins` shows it
    pub(crate) server: Option<String>,
    /// For which caller alone, such as key:NAME, where each has a sign-in of its own
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub(crate) caller: Option<String>,
    /// For all callers; without a server, everything that was granted
    #[arg(long)]
    pub(crate) all: bool,
}

/// `toolgate check`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Check {
    /// Start the servers for a moment and ask what they offer, rather than believe what a gateway saw of them
    #[arg(long)]
    pub(crate) servers: bool,
    /// End with exit code 1 where there is something to tell
    #[arg(long)]
    pub(crate) strict: bool,
    /// Show how much memory the limits allow, and to what
    #[arg(long)]
    pub(crate) explain_memory: bool,
}

/// `toolgate serve`.
#[derive(Args, Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) options: Options,
}

/// `toolgate run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) options: Options,
    /// Program and arguments of the server
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

/// `toolgate explain`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Explain {
    /// Judge the recorded calls of this time once more, such as 7d, and count what would be decided otherwise
    ///
    /// By the given config, else by the usual one. A tool and a caller narrow it down.
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "arguments")]
    pub(crate) history: Option<Duration>,
    /// Which tool, resource or prompt
    #[arg(value_name = "SERVER.TOOL", value_parser = tool, required_unless_present = "history")]
    pub(crate) tool: Option<String>,
    /// Who would call; without it, a caller without a name
    #[arg(long, value_name = "NAME")]
    pub(crate) caller: Option<String>,
    /// Its arguments, a JSON object
    #[arg(value_name = "JSON", value_parser = object)]
    pub(crate) arguments: Option<String>,
}

/// How the gateway is reached.
#[derive(Args, Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Options {
    /// Serve HTTP on this IP address and port
    #[arg(long, value_name = "ADDR", conflicts_with = "stdio")]
    pub(crate) listen: Option<SocketAddr>,
    /// Serve the client that started this program, over standard input and output
    #[arg(long)]
    pub(crate) stdio: bool,
}

/// What is to be done with tasks.
#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// List the tasks that run, and those whose results are kept
    List,
    /// End a task
    Stop {
        /// Which call it is, as `toolgate tasks list` shows it
        id: String,
    },
}

/// What is to be done with pins.
#[derive(Debug, Subcommand)]
pub(crate) enum PinsCommand {
    /// List the pinned definitions and how they stand
    List {
        /// Of this server only
        #[arg(value_name = "SERVER")]
        server: Option<String>,
    },
    /// Show what differs from what was accepted
    Diff {
        /// Which definition, as `toolgate pins list` shows it
        #[arg(value_name = "SERVER.TOOL", value_parser = tool)]
        name: String,
    },
    /// Accept a definition as it is now
    Accept {
        /// Which definition, as `toolgate pins list` shows it
        #[arg(value_name = "SERVER.TOOL", value_parser = tool, required_unless_present = "server")]
        name: Option<String>,
        /// Only if what came still has a digest that begins so, of at least 8 digits
        #[arg(long, value_name = "SHA256", requires = "name")]
        digest: Option<String>,
        /// All that waits of this server
        #[arg(long, value_name = "ID", conflicts_with = "name")]
        server: Option<String>,
    },
    /// Keep a definition hidden until it changes again
    Reject {
        /// Which definition, as `toolgate pins list` shows it
        #[arg(value_name = "SERVER.TOOL", value_parser = tool)]
        name: String,
        /// Only if what came still has a digest that begins so, of at least 8 digits
        #[arg(long, value_name = "SHA256")]
        digest: Option<String>,
    },
    /// Forget a pin: what comes next is seen for the first time
    Forget {
        /// Which definition, as `toolgate pins list` shows it
        #[arg(value_name = "SERVER.TOOL", value_parser = tool)]
        name: String,
    },
}

/// What is to be done with the record.
#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Print the last records
    Tail {
        /// How many
        #[arg(short = 'n', long = "lines", value_name = "N", default_value_t = 20)]
        count: usize,
        /// Go on as records come
        #[arg(short, long)]
        follow: bool,
        /// The records as they stand, one JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Print the records that fit, oldest first
    Search(Wanted),
    /// Print the record in the form of another system
    Export {
        /// The form; ocsf and cef have one line for each call that ended or was refused
        #[arg(long, value_enum, default_value_t = Form::Jsonl)]
        format: Form,
        /// Only what is not older, such as 30m, 12h or 7d
        #[arg(long, value_name = "TIME", value_parser = time)]
        since: Option<Duration>,
        /// A file that remembers where the export ended; the next one goes on from there
        #[arg(long, value_name = "FILE")]
        cursor: Option<PathBuf>,
    },
    /// Check that no record was changed or lost
    ///
    /// Exit code: 0 intact, 1 broken, 2 wrong arguments, 3 cannot tell.
    Verify {
        /// The public key that signed the checkpoints, as `toolgate audit key` printed it; can be given more than once
        ///
        /// Without it, the key that lies beside the record counts. Who could change the record could change that, too.
        #[arg(long, value_name = "KEY", value_parser = public_key)]
        key: Vec<String>,
        /// A checkpoint mirror, file or folder; else `checkpoints` in the data directory and the mirrors that the log names
        #[arg(long, value_name = "PATH")]
        checkpoints: Vec<PathBuf>,
    },
    /// Acknowledge damage to the audit log that a start or a checkpoint found, so that `toolgate status` succeeds again
    Acknowledge,
    /// Print the public key that verifies the signed checkpoints
    Key,
}

/// Which records are wanted: those that fit everything that is given.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// SERVER.TOOL, as it stands in the record
    #[arg(long)]
    pub(crate) tool: Option<String>,
    /// Who called
    #[arg(long)]
    pub(crate) caller: Option<String>,
    /// The server in the config; `call.begin` has it
    #[arg(long)]
    pub(crate) server: Option<String>,
    /// What was decided
    #[arg(long, value_parser = ["allow", "deny", "accept", "reject", "forget"])]
    pub(crate) decision: Option<String>,
    /// Text that stands in the line
    #[arg(long)]
    pub(crate) text: Option<String>,
    /// Only what is not older, such as 30m, 12h or 7d
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) since: Option<Duration>,
    /// Read all segments; the index could be made to hide a record
    #[arg(long)]
    pub(crate) no_index: bool,
    /// The records as they stand, one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// A form of another system.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum Form {
    /// The records as they stand
    Jsonl,
    /// Export requests of OpenTelemetry logs in JSON
    Otlp,
    /// API Activity of OCSF
    Ocsf,
    /// CEF
    Cef,
}

/// The command line of this process. A wrong one ends it with exit code 2, `--help` and `--version` with 0.
pub(crate) fn parse() -> Cli {
    Cli::of(std::env::args_os()).unwrap_or_else(|error| error.exit())
}

impl Cli {
    /// A command line, the name of the program first.
    ///
    /// # Errors
    /// It is wrong, or asks for help or the version.
    fn of<T: Into<OsString> + Clone>(
        words: impl IntoIterator<Item = T>,
    ) -> Result<Cli, clap::Error> {
        let cli = Cli::try_parse_from(words)?;
        let conflict = |text| Err(Cli::command().error(ErrorKind::ArgumentConflict, text));
        match &cli.command {
            // `toolgate --stdio inbox` would drop the option without a word.
            Some(_) if cli.serve != Serve::default() => conflict(
                "--listen and --stdio stand before a command; write them after it, as in: toolgate serve --stdio",
            ),
            Some(Command::Run(_) | Command::DemoServer) if cli.config.is_some() => {
                conflict("--config is given, and this command serves one server without a config")
            }
            _ => Ok(cli),
        }
    }

    /// The options of `serve`, with the word or without it.
    pub(crate) fn serve_options(&self) -> &Serve {
        match &self.command {
            Some(Command::Serve(serve)) => serve,
            _ => &self.serve,
        }
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time; write a number and s, m, h or d, such as 7d");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 24 * 3600,
        _ => return Err(wrong()),
    };
    let count = text.strip_suffix(unit).and_then(|n| n.parse::<u32>().ok());
    let count = count.ok_or_else(wrong)?;
    Ok(Duration::from_secs(u64::from(count) * seconds))
}

fn public_key(text: &str) -> Result<String, String> {
    let digits = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    match text.len() == 64 && text.bytes().all(digits) {
        true => Ok(text.to_owned()),
        false => {
            Err("a public key is 64 hexadecimal digits; `toolgate audit key` prints it".to_owned())
        }
    }
}

fn tool(text: &str) -> Result<String, String> {
    match text.split_once('.') {
        Some((server, tool)) if !server.is_empty() && !tool.is_empty() => Ok(text.to_owned()),
        _ => Err("tools are named SERVER.TOOL; `toolgate tools` lists them".to_owned()),
    }
}

/// The text stays as it is: numbers and the order of keys reach the tool unchanged.
fn object(text: &str) -> Result<String, String> {
    let parsed: Result<&serde_json::value::RawValue, _> = serde_json::from_str(text);
    match parsed {
        Ok(_) if text.trim_start().starts_with('{') => Ok(text.to_owned()),
        Ok(_) => Err("the arguments are no object; write {\"name\": \"value\"}".to_owned()),
        Err(error) => Err(format!("the arguments are not JSON: {error}")),
    }
}

#[cfg(test)]
mod tests;
