//! Commands: some run in this process, others are sent to the running gateways.

mod audit;
mod call;
mod calls;
mod check;
mod confirm;
mod connect;
mod data_dir;
mod decisions;
mod disconnect;
mod doctor;
mod edit;
mod explain;
mod hook;
mod hook_setup;
mod import;
mod inbox;
mod inbox_watch;
mod items;
mod keys;
mod login;
mod logins;
mod offline;
pub(in crate::cli) mod outputs;
mod own_program;
mod passkeys;
mod pins;
mod reload;
mod replay;
mod schema;
mod server_logs;
mod service;
mod service_unit;
mod shell_files;
mod status;
mod store;
mod tasks;
mod unavailable;
mod uninstall;

use crate::{
    args::{Cli, CliCommand, ConfigCommand, ListenOptions},
    cli::{demo, host_tools, qr_code},
    config::{Config, ConfigError, schema::config_schema_text},
    event_log::{self, GatewayEvent},
    operator::{
        control::{ControlResponse, GatewaySockets},
        revoke_all_sessions,
    },
    serve::{self, GatewayTransport, StartOptions},
    timestamp::format_timestamp,
};
use data_dir::DataLocation;
use own_program::{lasting_program, own_program};
use serde_json::{Value, json};
use std::{
    io::{self, Write},
    path::Path,
    process::ExitCode,
    time::Duration,
};
use toolgate_core::{visible, visible_line};
use toolgate_protocol::plural::count_of;

/// Failure of a command.
pub(crate) enum CommandError {
    /// Wrong usage or invalid config: exit code 2.
    Usage(String),
    /// The command failed: exit code 1.
    Failure(String),
}

impl From<String> for CommandError {
    fn from(text: String) -> CommandError {
        CommandError::Failure(text)
    }
}

type Result<T> = std::result::Result<T, CommandError>;

/// Runs a command.
pub(crate) fn run(cli: Cli) -> ExitCode {
    match dispatch(cli) {
        Ok(code) => code,
        Err(CommandError::Usage(text)) => {
            eprintln!("toolgate: {}", escape_for_stderr(&text));
            ExitCode::from(2)
        }
        Err(CommandError::Failure(text)) => {
            eprintln!("toolgate: {}", escape_for_stderr(&text));
            ExitCode::FAILURE
        }
    }
}

/// Escapes a message that may contain untrusted text for stderr. Indented continuation lines cannot pass for our own.
fn escape_for_stderr(text: &str) -> String {
    visible(text).replace('\n', "\n  ")
}

fn dispatch(cli: Cli) -> Result<ExitCode> {
    let place = DataLocation {
        data: cli.data.as_deref(),
        config: cli.config.as_deref(),
    };
    let data = || place.data();
    match &cli.command {
        None | Some(CliCommand::Serve(_)) => {
            let serve = cli.serve_options();
            let options = &serve.options;
            let named = place
                .config
                .map(|c| vec!["--config".to_owned(), absolute(c)]);
            let words = named.unwrap_or_default();
            with_event_log(options, || {
                let options = (options, serve.take_over);
                start(place.config()?, options, place.data, words, &[])
            })
        }
        Some(CliCommand::Run(run)) => with_event_log(&run.options, || {
            let name = run.name.as_deref();
            let config = Config::for_command(name, run.command.clone()).map_err(usage)?;
            let named = name.into_iter().flat_map(|name| ["--name", name]);
            let words = ["run"].into_iter().chain(named).map(str::to_owned);
            start(
                config,
                (&run.options, false),
                place.data,
                words.collect(),
                &run.command,
            )
        }),
        Some(CliCommand::DemoServer) => run_server(demo::run()),
        Some(CliCommand::HostTools) => run_server(host_tools::run()),
        Some(CliCommand::Hook(wanted)) => hook::run(&place, wanted),
        Some(CliCommand::Connect(wanted)) => connect::run(&place, wanted),
        Some(CliCommand::Disconnect(wanted)) => disconnect::run(&place, wanted),
        Some(CliCommand::Store(command)) => store::run(&place, command),
        Some(CliCommand::Uninstall(wanted)) => uninstall::run(&place, wanted),
        Some(CliCommand::Service(command)) => service::run(&place, *command),
        Some(CliCommand::Schema(wanted)) => schema::run(wanted),
        Some(CliCommand::Completions { shell }) => shell_files::completions(*shell),
        Some(CliCommand::Man { command, dir }) => shell_files::man(command, dir.as_deref()),
        Some(CliCommand::Check(wanted)) => check::run(&place, wanted),
        Some(CliCommand::Init(wanted)) => edit::init(&place, wanted),
        Some(CliCommand::Add(wanted)) => edit::add(&place, wanted),
        Some(CliCommand::Remove(wanted)) => edit::remove(&place, wanted),
        Some(CliCommand::Enable(wanted)) => edit::enable(&place, wanted, true),
        Some(CliCommand::Disable(wanted)) => edit::enable(&place, wanted, false),
        Some(CliCommand::Doctor(wanted)) => doctor::run(&place, wanted),
        Some(CliCommand::Import(wanted)) => import::run(&place, wanted),
        Some(CliCommand::Audit(wanted)) => audit::run(&place, &data()?, wanted),
        Some(CliCommand::Status(output)) => status::run(
            &GatewaySockets::find(&data()?)?,
            output.ready,
            output.json.json,
        ),
        Some(CliCommand::Logs(wanted)) => server_logs::run(&place, wanted),
        Some(CliCommand::Tools(output)) => {
            items::run(&GatewaySockets::find(&data()?)?, "tools", output.json)
        }
        Some(CliCommand::Resources(output)) => {
            items::run(&GatewaySockets::find(&data()?)?, "resources", output.json)
        }
        Some(CliCommand::Prompts(output)) => {
            items::run(&GatewaySockets::find(&data()?)?, "prompts", output.json)
        }
        Some(CliCommand::Calls(output)) => {
            calls::run(&GatewaySockets::find(&data()?)?, output.json)
        }
        Some(CliCommand::Inbox(wanted)) if wanted.watch => inbox_watch::run(&place),
        Some(CliCommand::Inbox(wanted)) => {
            inbox::run(&GatewaySockets::find(&data()?)?, wanted.output.json)
        }
        Some(CliCommand::Reload) => reload::run(&GatewaySockets::find(&data()?)?),
        Some(CliCommand::Config(ConfigCommand::Schema)) => print(&config_schema_text()),
        Some(CliCommand::Keys(wanted)) => keys::run(&place, wanted),
        Some(CliCommand::Passkeys(wanted)) => passkeys::run(&data()?, wanted),
        Some(CliCommand::Pins(command)) => pins::run(&data()?, command),
        Some(CliCommand::Tasks(command)) => tasks::run(&data()?, command),
        Some(CliCommand::Login(wanted)) => login::run(&place, wanted),
        Some(CliCommand::Logout(wanted)) => logins::sign_out(&place, wanted),
        Some(CliCommand::Logins(output)) => logins::list(&place, output.json),
        Some(CliCommand::Console { revoke: true, .. }) => revoke_console(&place, &data()?),
        Some(CliCommand::Console { sessions: true, .. }) => {
            list_sessions(&GatewaySockets::find(&data()?)?)
        }
        Some(CliCommand::Console { end: Some(id), .. }) => {
            let gateways = GatewaySockets::find(&data()?)?;
            let ended = gateways.request_any("console/end", &json!({"id": id}))?;
            let who = visible_line(ended["ended"].as_str().unwrap_or_default());
            print(&format!("ended the session of {who}\n"))
        }
        Some(CliCommand::Console { name, qr, .. }) => {
            console(&GatewaySockets::find(&data()?)?, name, *qr)
        }
        Some(CliCommand::Approve(approve)) => decisions::approve(&data()?, approve),
        Some(CliCommand::Grants(grants)) => decisions::grants(&data()?, grants),
        Some(CliCommand::Freeze(freeze)) => decisions::freeze(&data()?, freeze),
        Some(CliCommand::Thaw(thaw)) => decisions::thaw(&data()?, thaw),
        Some(CliCommand::Deny { id, message }) => decisions::deny(&data()?, id, message),
        Some(CliCommand::Stop { id }) => send_by_id(&data()?, "stop", &json!({"id": id})),
        Some(CliCommand::Replay(wanted)) => replay::run(&place, wanted),
        Some(CliCommand::Explain(wanted)) => explain::run(&place, wanted),
        Some(CliCommand::Call { tool, arguments }) => call::run(&data()?, tool, arguments),
    }
}

fn usage(error: ConfigError) -> CommandError {
    CommandError::Usage(error.to_string())
}

/// Runs the gateway with its event log, which also gets the failure that ends it.
fn with_event_log(
    options: &ListenOptions,
    run: impl FnOnce() -> Result<ExitCode>,
) -> Result<ExitCode> {
    event_log::start(options.log.settings())?;
    let done = run().or_else(|error| {
        let (CommandError::Usage(why) | CommandError::Failure(why)) = &error;
        if event_log::has_own_failure_lines() {
            event_log::emit(GatewayEvent::Failed { why: why.clone() });
        }
        match (event_log::is_json_on_stderr(), &error) {
            (true, CommandError::Usage(_)) => Ok(ExitCode::from(2)),
            (true, CommandError::Failure(_)) => Ok(ExitCode::FAILURE),
            (false, _) => Err(error),
        }
    });
    event_log::flush();
    done
}

/// Starts the gateway, which takes over from a running one if `take_over` is set. `words` and `command` are the command
/// line for a host that starts the same gateway over stdio.
fn start(
    mut config: Config,
    (options, take_over): (&ListenOptions, bool),
    data: Option<&Path>,
    mut words: Vec<String>,
    command: &[String],
) -> Result<ExitCode> {
    let said = config.listen;
    if let Some(listen) = options.listen {
        config.listen = listen;
        // The listen address of the command line may also be one of the servers.
        config.remove_own_entries().map_err(usage)?;
    }
    if !options.stdio {
        config.check_listen().map_err(usage)?;
    }
    crate::runtime::nesting::check(&config.source).map_err(CommandError::Usage)?;
    // As in `check`: a missing environment variable makes the config invalid.
    config.check_tokens().map_err(usage)?;
    config.overrides().map_err(usage)?;
    for note in &config.notes {
        event_log::emit(GatewayEvent::Note { text: note.clone() });
    }
    words.push("--stdio".to_owned());
    if let Some(data) = data {
        words.extend(["--data".to_owned(), absolute(data)]);
    }
    if !command.is_empty() {
        words.push("--".to_owned());
        words.extend(command.iter().cloned());
    }
    let data = data_dir::absolute_or_default(data.or(config.data.as_deref()))?;
    let reach = if options.stdio {
        GatewayTransport::Stdio
    } else {
        GatewayTransport::Http(config.listen)
    };
    serve::run(StartOptions {
        config,
        config_listen: said,
        data,
        transport: reach,
        take_over,
        stdio: words,
    })?;
    Ok(ExitCode::SUCCESS)
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path)
        .unwrap_or_else(|_| path.to_owned())
        .display()
        .to_string()
}

/// Runs a server of this program until its standard input ends.
fn run_server(server: impl Future<Output = ExitCode>) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    let code = runtime.block_on(server);
    runtime.shutdown_timeout(Duration::from_millis(100));
    Ok(code)
}

/// Sends an action on one id to the gateway that knows it.
fn send_by_id(data: &Path, action: &str, with: &Value) -> Result<ExitCode> {
    GatewaySockets::find(data)?.request_any(action, with)?;
    Ok(ExitCode::SUCCESS)
}

fn console(gateways: &GatewaySockets, name: &str, qr: bool) -> Result<ExitCode> {
    let link = gateways.request_any("console", &json!({"as": name}))?;
    let link = link["link"].as_str().unwrap_or_default();
    if !qr {
        return print(&format!("{link}\n"));
    }
    if is_local(link) {
        eprintln!(
            "this link works on this machine only; set console_url in the config to an address that the phone can reach"
        );
    }
    print(&format!("{}\n{link}\n", qr_code::render(link)?))
}

/// Lists the console sessions of the data directory.
fn list_sessions(gateways: &GatewaySockets) -> Result<ExitCode> {
    let sessions = gateways.request_any("console/sessions", &json!({}))?;
    let sessions = sessions.as_array().map(Vec::as_slice).unwrap_or_default();
    if sessions.is_empty() {
        return print("no console session; `toolgate console` prints a link\n");
    }
    let lines = sessions.iter().map(|one| {
        let text = |key: &str| visible_line(one[key].as_str().unwrap_or_default());
        let issuer = match text("issuer").as_str() {
            "" => "link".to_owned(),
            issuer => issuer.to_owned(),
        };
        let (since, end) = (
            format_timestamp(&one["since"]),
            format_timestamp(&one["expires"]),
        );
        format!(
            "{}  {}  {issuer}  since {since}, ends {end}\n",
            text("id"),
            text("who")
        )
    });
    print(&lines.collect::<String>())
}

/// Returns whether a link leads to this machine, whichever machine opens it.
fn is_local(link: &str) -> bool {
    ["http://127.", "http://localhost", "http://[::1]"]
        .iter()
        .any(|local| link.starts_with(local))
}

/// Ends all console sessions, through the gateways or, if none runs, directly in the stored state.
fn revoke_console(place: &DataLocation<'_>, data: &Path) -> Result<ExitCode> {
    let Ok(gateways) = GatewaySockets::find(data) else {
        let state = offline::state(&offline::location(place, data)?)?;
        let revoked = explain::runtime()?.block_on(revoke_all_sessions(state.as_ref()));
        return print(&revoked_text(revoked.map_err(CommandError::Failure)? as u64));
    };
    let mut revoked = 0;
    for answer in gateways.request_all("console/revoke", &json!({}))? {
        match answer {
            ControlResponse::Ok(answer) => {
                revoked += answer["revoked"].as_u64().unwrap_or_default()
            }
            ControlResponse::Unknown(why) | ControlResponse::Refused(why) => {
                return Err(CommandError::Failure(why));
            }
        }
    }
    print(&revoked_text(revoked))
}

fn revoked_text(sessions: u64) -> String {
    let ended = count_of(sessions, "console session");
    format!("ended {ended}; `toolgate console` prints a new link\n")
}

/// Joins the lists of all gateways.
fn collect_lists(gateways: &GatewaySockets, action: &str) -> Result<Vec<Value>> {
    let answers = gateways.request_all(action, &json!({}))?;
    let lists = answers.into_iter().map(|answer| match answer {
        ControlResponse::Ok(Value::Array(list)) => Ok(list),
        ControlResponse::Ok(_) => Ok(Vec::new()),
        ControlResponse::Unknown(why) | ControlResponse::Refused(why) => {
            Err(CommandError::Failure(why))
        }
    });
    Ok(lists.collect::<Result<Vec<_>>>()?.concat())
}

/// Writes output to stdout. A closed pipe is not an error.
pub(in crate::cli) fn print(text: &str) -> Result<ExitCode> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CommandError::Failure(
            format!("cannot write to stdout: {error}"),
        )),
        Err(_) => std::process::exit(0),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}
