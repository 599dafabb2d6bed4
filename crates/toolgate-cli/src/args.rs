//! Command line. Its commands and options are a stable interface.
//!
//! Exit codes: 0 success, 1 failure, 2 wrong usage or invalid config; `audit verify` also returns 3. stdout carries only the requested output.

use clap::{Args, FromArgMatches, Parser, Subcommand, error::ErrorKind};
use std::{ffi::OsString, net::SocketAddr, path::PathBuf, time::Duration};

mod attributes;
mod connect;
mod decisions;
mod edit;
mod examples;
mod help;
mod json;
mod keys;
mod log;
mod passkeys;
mod store;
mod uninstall;

pub(crate) use attributes::AttributeOptions;
pub(crate) use connect::{ConnectOptions, DisconnectOptions, HookOptions, HookUnavailable};
pub(crate) use decisions::{
    ApproveOptions, FreezeCommand, FreezeTarget, GrantsCommand, InboxOptions, ThawCommand,
};
pub(crate) use edit::{AddOptions, DoctorOptions, InitOptions, ServerNames};
pub(crate) use help::command as command_line;
pub(crate) use json::{JsonOption, SchemaOptions};
pub(crate) use keys::KeysCommand;
pub(crate) use log::{LogOptions, LogsOptions};
pub(crate) use passkeys::PasskeysCommand;
pub(crate) use store::StoreCommand;
pub(crate) use uninstall::{UninstallOptions, UninstallPart};

/// MCP gateway with policy, approvals and an audit log for every call
#[derive(Debug, Parser)]
#[command(name = "toolgate", version = env!("TOOLGATE_VERSION"))]
pub(crate) struct Cli {
    #[command(flatten, next_help_heading = "Options of serve, the default command")]
    serve: ServeOptions,
    /// Config: a toolgate.toml, or the mcpServers JSON of a host
    ///
    /// Default: toolgate/toolgate.toml in $XDG_CONFIG_HOME or ~/.config, else the demo server. A file in the current
    /// directory is never loaded by default.
    #[arg(long, global = true, value_name = "FILE", help_heading = help::GLOBAL_OPTIONS_HEADING)]
    pub(crate) config: Option<PathBuf>,
    /// Data directory: audit log, approvals and sockets
    ///
    /// Default: `data` in the config, else toolgate in $XDG_DATA_HOME or ~/.local/share, or
    /// ~/Library/Application Support/toolgate on macOS.
    #[arg(long, global = true, value_name = "DIR", help_heading = help::GLOBAL_OPTIONS_HEADING)]
    pub(crate) data: Option<PathBuf>,
    /// Command; the default is `serve`.
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

/// Commands of `toolgate config`.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the JSON Schema of a toolgate.toml, for editors
    ///
    /// An editor with TOML support checks and completes a config whose first line names the schema:
    /// #:schema ./toolgate.schema.json
    Schema,
}

/// Commands of `toolgate service`.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum ServiceCommand {
    /// Write the unit of the service, enable the service and start it
    ///
    /// The service runs `toolgate serve` for your account, with the --config and --data of this command, and with the
    /// PATH of this shell, so that it finds npx and uvx.
    Install {
        /// For the whole system instead, under the account `toolgate`; needs root and --config
        #[arg(long)]
        system: bool,
        /// Print the unit without writing it
        #[arg(long)]
        dry_run: bool,
    },
    /// Show the status of the service
    Status {
        /// The service of the whole system
        #[arg(long)]
        system: bool,
        #[command(flatten)]
        json: JsonOption,
    },
    /// Stop the service and delete its unit
    Uninstall {
        /// The service of the whole system
        #[arg(long)]
        system: bool,
    },
}

/// Command of the program.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Serve the configured servers (the default command)
    Serve(ServeOptions),
    /// Serve one server without a config
    Run(RunOptions),
    /// Write a config with comments, examples and rules to start with
    ///
    /// Also writes the JSON Schema for editors beside it.
    Init(InitOptions),
    /// Add a server to the config: a program or a URL
    ///
    /// Comments and the layout of the config stay. A config that does not exist is created.
    Add(AddOptions),
    /// Remove servers from the config
    Remove(ServerNames),
    /// Enable servers that are disabled in the config
    Enable(ServerNames),
    /// Disable servers in the config, and keep their settings
    Disable(ServerNames),
    /// Find problems with the config, servers and gateways, and say what to do
    ///
    /// Starts each server once unless you pass --no-start. Exit code: 0 no problem, 1 a problem.
    Doctor(DoctorOptions),
    /// Show the status of the running gateways; fails if a server is down
    ///
    /// A server that only starts is not down; one that needs a sign-in is. Also fails if a gateway cannot write its
    /// audit log, and while damage to an audit log is not acknowledged.
    Status(StatusOptions),
    /// List the tools of the running gateways
    Tools(JsonOption),
    /// List the resources and resource templates of the running gateways
    Resources(JsonOption),
    /// List the prompts of the running gateways
    Prompts(JsonOption),
    /// Call a tool of a running gateway
    ///
    /// The result is printed as JSON. If the rules deny the call, the message names the rule.
    Call {
        /// Name of the tool
        #[arg(value_name = "SERVER.TOOL", value_parser = tool)]
        tool: String,
        /// Arguments: key=value words, a JSON object, `@FILE` with one, or `-` to read one from standard input
        ///
        /// The input schema of the tool types the values of key=value words: a text stays as it is written, and a
        /// number, boolean, array or object is JSON. Where the schema names no single type, a value is JSON if it
        /// parses, and otherwise text.
        #[arg(value_name = "ARGUMENTS", value_parser = call_argument)]
        arguments: Vec<String>,
    },
    /// Explain how the rules decide a call, without running it
    ///
    /// A running gateway answers. If none runs, or if you pass --config, the answer comes from the config and the
    /// stored definitions. Then the servers are not contacted, and the current use of rate limits is unknown.
    Explain(ExplainOptions),
    /// Judge the tool calls of past sessions by the config, and propose rules
    ///
    /// Reads the transcripts of Claude Code and Codex, or with --audit the audit log. Counts which of their tool calls
    /// would be allowed, would need an approval or would be denied, and proposes rules that would have made approvals
    /// unnecessary. Nothing is called. `toolgate explain --history` shows which recorded decisions would change.
    Replay(ReplayOptions),
    /// Print what a server wrote to its standard error
    ///
    /// The lines are stored in the data directory, so the command also works when no gateway runs.
    Logs(LogsOptions),
    /// List the newest calls and their state
    Calls(JsonOption),
    /// List the pending approvals
    ///
    /// With --watch and a terminal, decide them with single keys. Without a terminal, --watch prints a line when a request
    /// arrives, when its caller stops waiting, and when it is decided or expires.
    Inbox(InboxOptions),
    /// Approve a pending call
    Approve(ApproveOptions),
    /// Deny a pending call
    Deny {
        /// ID of the pending approval, as `toolgate inbox` shows it
        #[arg(value_name = "APPROVAL_ID")]
        id: String,
        /// Reason, which the model receives
        #[arg(short, long, value_name = "REASON")]
        message: String,
    },
    /// Cancel a running call
    Stop {
        /// ID of the call, as `toolgate calls` shows it
        #[arg(value_name = "CALL_ID")]
        id: String,
    },
    /// List or revoke remembered approvals
    #[command(subcommand)]
    Grants(GrantsCommand),
    /// Cancel and reject the calls by a caller, the calls to a server, or all calls
    #[command(subcommand)]
    Freeze(FreezeCommand),
    /// Lift the freeze on a caller, a server or everything
    #[command(subcommand)]
    Thaw(ThawCommand),
    /// Create, rotate, extend, list or revoke the API keys of HTTP callers
    #[command(subcommand)]
    Keys(KeysCommand),
    /// List or export the passkeys with which approvers sign calls
    #[command(subcommand)]
    Passkeys(PasskeysCommand),
    /// Make the running gateways reload their configs
    Reload,
    /// Describe the settings of the config
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Review new and changed definitions
    #[command(subcommand)]
    Pins(PinsCommand),
    /// List and cancel tasks
    #[command(subcommand)]
    Tasks(TasksCommand),
    /// Sign in to an upstream server with OAuth
    ///
    /// Prints the sign-in URL, and opens it if a browser is available. The credentials are stored encrypted in the data
    /// directory. Every gateway with that data directory uses and refreshes them.
    Login(LoginOptions),
    /// Delete a server's stored credentials and revoke them
    Logout(LogoutOptions),
    /// List the stored credentials: server, caller and scopes
    Logins(JsonOption),
    /// Print a new sign-in link for the console
    Console {
        /// Name of the person who uses the link; decisions in that session are recorded under this name
        #[arg(
            long = "as",
            value_name = "NAME",
            default_value = "",
            hide_default_value = true
        )]
        name: String,
        /// Print the link as a QR code as well, for the camera of a phone
        #[arg(long)]
        qr: bool,
        /// End all console sessions of the data directory instead, and invalidate unused links
        #[arg(long, conflicts_with_all = ["name", "qr"])]
        revoke: bool,
        /// List the console sessions of the data directory instead
        #[arg(long, conflicts_with_all = ["name", "qr", "revoke"])]
        sessions: bool,
        /// End the console session with this id of the list instead
        #[arg(long, value_name = "ID", conflicts_with_all = ["name", "qr", "revoke", "sessions"])]
        end: Option<String>,
    },
    /// Read or verify the audit log
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Put the gateway into the config of a host, such as Claude Code or Cursor
    ///
    /// Without HOST, lists the known hosts and whether they are connected. The host then starts the gateway, or with
    /// --http connects to the one that runs. `toolgate disconnect` restores the file.
    Connect(ConnectOptions),
    /// Remove the gateway from the config of a host
    ///
    /// Restores the file as it was if nothing else changed it since. Otherwise removes only the gateway's entry and puts
    /// the replaced servers back.
    Disconnect(DisconnectOptions),
    /// Run the gateway as a service of systemd or launchd
    #[command(subcommand)]
    Service(ServiceCommand),
    /// Check, export, import or repair the stored state
    ///
    /// The stored state has API keys, approvals, grants, pins, freezes and tasks.
    #[command(subcommand)]
    Store(StoreCommand),
    /// List Toolgate's files, or remove the parts that you name
    ///
    /// Asks before it removes anything. Without a part, it only lists. Remove the program itself with the tool that
    /// installed it.
    Uninstall(UninstallOptions),
    /// Print the JSON Schema of what a command prints with --json
    ///
    /// Without COMMAND, lists the commands that have --json.
    Schema(SchemaOptions),
    /// Print the completions of a shell
    ///
    /// The shell then completes the commands and options of toolgate. The examples show where each shell looks for them.
    Completions {
        /// Shell
        #[arg(value_enum, value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Print the man page of a command, or write all man pages into a directory
    Man {
        /// Command, such as `audit tail` [default: toolgate itself]
        #[arg(value_name = "COMMAND", conflicts_with = "dir")]
        command: Vec<String>,
        /// Write all man pages into this directory
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Decide about a tool of a host itself; the hooks of hosts run this
    ///
    /// Reads the input of the hook from standard input, and sends it through the rules, approvals and the audit log of
    /// the running gateway, as a call of host.bash, host.edit, host.write, host.read, host.fetch, host.search or
    /// host.other. `toolgate connect HOST --hooks` sets it up.
    Hook(HookOptions),
    /// Run the server of the hosts' own tools over standard input and output
    HostTools,
    /// Run the demo server over standard input and output
    DemoServer,
    /// Import the MCP servers of hosts into the config
    ///
    /// Without a file, reads the files of all known hosts: those of the user, and those of the project in the current
    /// directory. Adds what the config lacks, shows the changes and asks before writing. Then it starts the imported
    /// servers once, pins their definitions, and shows how the rules decide about their tools.
    Import(ImportOptions),
    /// Check the config and exit
    ///
    /// Also reports programs and secrets that are missing, rules that never decide, and rules that match nothing that
    /// the servers offer. Exit code: 0 the config is valid, 1 a server cannot start or is unavailable, or --strict
    /// found something to report, 2 the config is invalid.
    Check(CheckOptions),
}

/// Options of `toolgate login`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LoginOptions {
    /// Name of the server in the config
    pub(crate) server: String,
    /// Only for this caller, such as key:NAME, if each caller has separate credentials
    #[arg(long, value_name = "CALLER")]
    pub(crate) caller: Option<String>,
    /// Print the URL without opening a browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Use this port of 127.0.0.1 for the redirect, for example behind ssh -L PORT:127.0.0.1:PORT
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
}

/// Options of `toolgate logout`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LogoutOptions {
    /// Name of the server, in the config or as `toolgate logins` shows it
    pub(crate) server: Option<String>,
    /// Only for this caller, such as key:NAME, if each caller has separate credentials
    #[arg(long, value_name = "CALLER", conflicts_with = "all")]
    pub(crate) caller: Option<String>,
    /// For all callers; without a server, delete all stored credentials
    #[arg(long)]
    pub(crate) all: bool,
}

/// Options of `toolgate import`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ImportOptions {
    /// Files of hosts to read, instead of those of all known hosts
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Show the changes without writing them
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Print JSON; `toolgate schema` describes it
    #[arg(long, requires = "dry_run")]
    pub(crate) json: bool,
    /// Write the changes without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Store secrets in the keyring of the operating system, instead of files beside the config
    #[arg(long)]
    pub(crate) keyring: bool,
    /// Do not start the imported servers
    #[arg(long)]
    pub(crate) no_start: bool,
}

/// Options of `toolgate check`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CheckOptions {
    /// Start the servers briefly and list their items, instead of using stored definitions
    #[arg(long)]
    pub(crate) servers: bool,
    /// Exit with code 1 if there is something to report
    #[arg(long)]
    pub(crate) strict: bool,
    /// Show how much memory the limits allow, and for what
    #[arg(long)]
    pub(crate) explain_memory: bool,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

/// Options of `toolgate status`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct StatusOptions {
    /// Only fail if a gateway cannot serve calls, and print why; for health checks of containers
    #[arg(long, conflicts_with = "json")]
    pub(crate) ready: bool,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

/// Options of `toolgate serve`.
#[derive(Args, Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ServeOptions {
    #[command(flatten)]
    pub(crate) options: ListenOptions,
    /// Upgrade: take over the listener and the sessions of the running gateway, which completes its calls and ends
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) take_over: bool,
}

/// Options of `toolgate run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunOptions {
    #[command(flatten)]
    pub(crate) options: ListenOptions,
    /// Name of the server in rules and the audit log [default: that of the package or program]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Program of the server and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<String>,
}

/// Options of `toolgate explain`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExplainOptions {
    /// Evaluate the recorded calls of this last period again, such as 7d, and count the decisions that would change
    ///
    /// Uses the config of --config, else the default config. A tool and --caller limit the calls.
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "arguments")]
    pub(crate) history: Option<Duration>,
    /// Name of the tool, resource or prompt
    #[arg(value_name = "SERVER.ITEM", value_parser = tool, required_unless_present = "history")]
    pub(crate) tool: Option<String>,
    /// Name of the caller, such as key:NAME [default: an anonymous caller]
    #[arg(long, value_name = "CALLER")]
    pub(crate) caller: Option<String>,
    /// View at whose endpoint the caller is [default: none]
    #[arg(long, value_name = "VIEW", conflicts_with = "history")]
    pub(crate) view: Option<String>,
    #[command(flatten)]
    pub(crate) attributes: AttributeOptions,
    /// Arguments: a JSON object
    #[arg(value_name = "JSON", value_parser = object)]
    pub(crate) arguments: Option<String>,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

/// Options of `toolgate replay`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReplayOptions {
    /// Transcript, or directory with transcripts (*.jsonl) [default: ~/.claude/projects and ~/.codex/sessions]
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Judge the calls of this last period of the audit log instead, such as 30d
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "files")]
    pub(crate) audit: Option<Duration>,
    /// Name of the caller, such as key:NAME [default: local@stdio, or hook@HOST for the host's own tools]
    #[arg(long, value_name = "CALLER")]
    pub(crate) caller: Option<String>,
    #[command(flatten)]
    pub(crate) json: JsonOption,
}

/// Listen options of the gateway.
#[derive(Args, Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ListenOptions {
    /// Serve HTTP on this IP address and port [default: `listen` in the config, else 127.0.0.1:8665]
    #[arg(long, value_name = "IP:PORT", conflicts_with = "stdio")]
    pub(crate) listen: Option<SocketAddr>,
    /// Serve the parent process over standard input and output
    #[arg(long)]
    pub(crate) stdio: bool,
    #[command(flatten)]
    pub(crate) log: LogOptions,
}

/// Commands of `toolgate tasks`.
#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// List running tasks, and finished tasks with stored results
    List(JsonOption),
    /// Cancel a task
    Stop {
        /// ID of the call, as `toolgate tasks list` shows it
        #[arg(value_name = "CALL_ID")]
        id: String,
    },
}

/// Commands of `toolgate pins`.
#[derive(Debug, Subcommand)]
pub(crate) enum PinsCommand {
    /// List the pinned definitions and their state
    List {
        /// Only definitions from this server
        #[arg(value_name = "SERVER")]
        server: Option<String>,
        #[command(flatten)]
        json: JsonOption,
    },
    /// Show the differences from the accepted definition
    Diff {
        /// Name of the definition, as `toolgate pins list` shows it
        #[arg(value_name = "SERVER.ITEM", value_parser = tool)]
        name: String,
        #[command(flatten)]
        json: JsonOption,
    },
    /// Accept the current definition
    Accept {
        /// Name of the definition, as `toolgate pins list` shows it
        #[arg(value_name = "SERVER.ITEM", value_parser = tool, required_unless_present = "server")]
        name: Option<String>,
        /// Only if the digest of the current definition begins with these digits (at least 8)
        #[arg(long, value_name = "DIGEST", requires = "name")]
        digest: Option<String>,
        /// Accept all pending definitions from this server
        #[arg(long, value_name = "SERVER", conflicts_with = "name")]
        server: Option<String>,
    },
    /// Keep a definition hidden until it changes again
    Reject {
        /// Name of the definition, as `toolgate pins list` shows it
        #[arg(value_name = "SERVER.ITEM", value_parser = tool)]
        name: String,
        /// Only if the digest of the current definition begins with these digits (at least 8)
        #[arg(long, value_name = "DIGEST")]
        digest: Option<String>,
    },
    /// Delete a pin; the next definition counts as new
    Forget {
        /// Name of the definition, as `toolgate pins list` shows it
        #[arg(value_name = "SERVER.ITEM", value_parser = tool)]
        name: String,
    },
}

/// Commands of `toolgate audit`.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Print the last records
    Tail {
        /// Number of records
        #[arg(short = 'n', long = "lines", value_name = "N", default_value_t = 20)]
        count: usize,
        /// Keep printing new records
        #[arg(short, long)]
        follow: bool,
        /// Print the raw records, one JSON object per line; `toolgate schema` describes them
        #[arg(long)]
        json: bool,
    },
    /// Print the matching records, oldest first
    Search(AuditSearchOptions),
    /// Export the audit log in the format of another system
    Export {
        /// Output format; ocsf and cef have one line for each completed or rejected call
        #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
        format: ExportFormat,
        /// Only records from this last period, such as 30m, 12h or 7d
        #[arg(long, value_name = "TIME", value_parser = time)]
        since: Option<Duration>,
        /// File that stores the position of the last export; the next export continues there
        #[arg(long, value_name = "FILE")]
        cursor: Option<PathBuf>,
    },
    /// Check that no record was changed or lost
    ///
    /// Exit code: 0 intact, 1 broken, 2 wrong arguments, 3 cannot tell.
    Verify {
        /// Public key of the checkpoints, as `toolgate audit key` printed it; can be repeated
        ///
        /// Default: the key stored with the audit log. Anyone who can change the log can also replace that key.
        #[arg(long, value_name = "KEY", value_parser = public_key)]
        key: Vec<String>,
        /// Checkpoint mirror, a file or directory; can be repeated
        ///
        /// Default: `checkpoints` in the data directory, and the mirrors that the audit log names.
        #[arg(long, value_name = "PATH")]
        checkpoints: Vec<PathBuf>,
        /// Verify the logs of all gateways that share a store
        ///
        /// Each gateway copies its checkpoints into the store. A chain that is in none of the logs is reported. FILE is
        /// what `toolgate audit checkpoints` printed, before the logs were copied; without it, the store of the config
        /// is read. Its copies of segments then stand in for logs whose directory is not given.
        #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
        fleet: Option<Option<PathBuf>>,
        /// Data directory of another gateway, or a copy of it; can be repeated
        #[arg(long, value_name = "DATA", requires = "fleet")]
        log: Vec<PathBuf>,
        #[command(flatten)]
        json: JsonOption,
    },
    /// Print the last checkpoint of each chain of all gateways that share the store, as lines of JSON
    Checkpoints,
    /// List the copies of audit logs in the shared store
    ///
    /// A gateway with `copy_segments = true` in `[audit]` copies its log there.
    Copies {
        #[command(flatten)]
        json: JsonOption,
    },
    /// Write the copy of a gateway's audit log to a new directory, and verify it
    ///
    /// Exit code: 0 intact, 1 broken, 2 wrong arguments, 3 cannot tell.
    RestoreCopy(RestoreCopyOptions),
    /// Remove the copies of old segments that the audit logs have retired
    ///
    /// A gateway never removes a copy. Segments are retired with `keep_days` or `keep_bytes` in `[audit]`.
    PruneCopies(PruneCopiesOptions),
    /// Make encrypted contents unreadable for good, and keep their records
    ///
    /// Needs `encrypt_contents = true` in `[audit]`. It destroys the keys of the contents, in the store. Works beside a
    /// running gateway. It cannot reach backups and exports of the store.
    Erase(AuditEraseOptions),
    /// Acknowledge damage to the audit log
    ///
    /// Damage that the start or a checkpoint found makes `toolgate status` fail until you acknowledge it.
    Acknowledge,
    /// Print the public key that verifies the signed checkpoints
    Key,
}

/// Filters of `toolgate audit search`; a record must match all of them.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AuditSearchOptions {
    /// Name of the tool, resource or prompt, as recorded
    #[arg(long, value_name = "SERVER.ITEM")]
    pub(crate) tool: Option<String>,
    /// Name of the caller, such as key:NAME
    #[arg(long, value_name = "CALLER")]
    pub(crate) caller: Option<String>,
    /// Name of the server in the config; only records of calls, approvals and input requests contain it
    #[arg(long)]
    pub(crate) server: Option<String>,
    /// Decision about a call, an input request or a pin
    #[arg(long, value_parser = ["allow", "deny", "accept", "reject", "forget"])]
    pub(crate) decision: Option<String>,
    /// Text that the record contains
    #[arg(long)]
    pub(crate) text: Option<String>,
    /// Only records from this last period, such as 30m, 12h or 7d
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) since: Option<Duration>,
    /// Read all segments without the index, which could be tampered with to hide a record
    #[arg(long)]
    pub(crate) no_index: bool,
    /// Print the raw records, one JSON object per line; `toolgate schema` describes them
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of `toolgate audit restore-copy`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RestoreCopyOptions {
    /// Gateway whose log to restore, as `toolgate audit copies` lists it
    #[arg(long, value_name = "NAME")]
    pub(crate) gateway: String,
    /// New or empty directory for the log
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// Public key of the checkpoints, as `toolgate audit key` printed it at that gateway; can be repeated
    ///
    /// Default: the keys that the copy names. Whoever can write the database can replace those.
    #[arg(long, value_name = "KEY", value_parser = public_key)]
    pub(crate) key: Vec<String>,
}

/// Options of `toolgate audit prune-copies`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PruneCopiesOptions {
    /// Only segments that were copied before this UTC day, such as 2026-11-30
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub(crate) before: String,
    /// Remove without asking
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Options of `toolgate audit erase`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AuditEraseOptions {
    /// Erase the contents of all calls of this caller so far, named as in the records, such as key:NAME
    #[arg(
        long,
        value_name = "CALLER",
        required_unless_present = "before",
        conflicts_with = "before"
    )]
    pub(crate) caller: Option<String>,
    /// Erase the contents of all calls before this UTC day, such as 2026-11-30
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub(crate) before: Option<String>,
    /// Only print how many records would become unreadable
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Erase without asking
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Output format of `toolgate audit export`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    /// The raw records
    Jsonl,
    /// OpenTelemetry log export requests in JSON
    Otlp,
    /// OCSF API Activity
    Ocsf,
    /// CEF
    Cef,
}

impl ExportFormat {
    /// Reads the name of a format.
    pub(crate) fn read(name: &str) -> Option<ExportFormat> {
        <ExportFormat as clap::ValueEnum>::from_str(name, false).ok()
    }
}

/// Parses a day, such as `2026-11-30`.
fn date(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split('-').collect();
    let number = |at: usize, digits: usize| {
        let part = parts.get(at).filter(|part| part.len() == digits)?;
        part.bytes().all(|b| b.is_ascii_digit()).then_some(())?;
        part.parse::<u32>().ok()
    };
    let in_range = |at, most| number(at, 2).is_some_and(|n| (1..=most).contains(&n));
    let fits = parts.len() == 3 && number(0, 4).is_some() && in_range(1, 12) && in_range(2, 31);
    fits.then(|| text.to_owned()).ok_or_else(|| {
        format!("{text:?} is not a day; write year, month and day, such as 2026-11-30")
    })
}

/// Parses the command line of this process. Wrong usage exits with code 2, `--help` and `--version` with 0.
pub(crate) fn parse() -> Cli {
    Cli::from_args(std::env::args_os()).unwrap_or_else(|error| error.exit())
}

impl Cli {
    /// Parses a command line, the name of the program first.
    ///
    /// # Errors
    /// The usage is wrong, or it asks for help or the version.
    fn from_args<T: Into<OsString> + Clone>(
        words: impl IntoIterator<Item = T>,
    ) -> Result<Cli, clap::Error> {
        let mut command = help::command();
        let matches = command.try_get_matches_from_mut(words)?;
        let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        let mut conflict = |text| Err(command.error(ErrorKind::ArgumentConflict, text));
        match &cli.command {
            // Without this check, `toolgate --stdio inbox` would silently ignore the option.
            Some(_) if cli.serve != ServeOptions::default() => conflict(
                "the options of serve, such as --listen and --stdio, must follow the command, as in: toolgate serve --stdio",
            ),
            Some(CliCommand::Run(_) | CliCommand::DemoServer | CliCommand::HostTools)
                if cli.config.is_some() =>
            {
                conflict(
                    "--config cannot be used with `toolgate run`, `toolgate demo-server` or `toolgate host-tools`, which use no config; remove it",
                )
            }
            _ => Ok(cli),
        }
    }

    /// Returns the options of `serve`, also if the command is omitted.
    pub(crate) fn serve_options(&self) -> &ServeOptions {
        match &self.command {
            Some(CliCommand::Serve(serve)) => serve,
            _ => &self.serve,
        }
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("{text:?} is not a duration; write a whole number and s, m, h or d, such as 7d");
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
        false => Err(
            "a public key is 64 lowercase hexadecimal digits; copy it from `toolgate audit key`"
                .to_owned(),
        ),
    }
}

fn tool(text: &str) -> Result<String, String> {
    match text.split_once('.') {
        Some((server, tool)) if !server.is_empty() && !tool.is_empty() => Ok(text.to_owned()),
        _ => Err("the name must begin with the server, as in files.read_file; `toolgate tools`, `resources` and `prompts` list the names".to_owned()),
    }
}

/// Checks an argument of `toolgate call`.
fn call_argument(text: &str) -> Result<String, String> {
    let is_pair = !text.trim_start().starts_with(['{', '[', '"']) && text.contains('=');
    match is_pair || text == "-" || text.starts_with('@') {
        true => Ok(text.to_owned()),
        false => object(text),
    }
}

/// Checks that the text is a JSON object. It is passed on unchanged, so numbers and the order of keys are preserved.
pub(crate) fn object(text: &str) -> Result<String, String> {
    let parsed: Result<&serde_json::value::RawValue, _> = serde_json::from_str(text);
    match parsed {
        Ok(_) if text.trim_start().starts_with('{') => Ok(text.to_owned()),
        Ok(_) => Err(
            "the arguments are not a JSON object; write one such as {\"path\": \"/tmp\"}"
                .to_owned(),
        ),
        Err(error) => Err(format!(
            "the arguments are not valid JSON: {error}; write an object such as {{\"path\": \"/tmp\"}}"
        )),
    }
}

#[cfg(test)]
mod tests;
