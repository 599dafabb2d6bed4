use super::*;

fn of(words: &str) -> Result<Cli, clap::Error> {
    Cli::from_args(std::iter::once("toolgate").chain(words.split_whitespace()))
}

fn command(words: &str) -> CliCommand {
    of(words)
        .unwrap_or_else(|error| panic!("{words}: {error}"))
        .command
        .unwrap()
}

#[test]
fn the_definition_is_sound() {
    help::command().debug_assert();
}

/// Scripts and the configs of hosts contain these command lines; a change breaks them.
#[test]
fn accepts_the_documented_command_lines() {
    for words in [
        "",
        "--config f.toml",
        "--stdio",
        "--listen 127.0.0.1:8665",
        "--data d",
        "serve --config f.toml --listen [::1]:0 --data d",
        "serve --stdio --config f.json",
        "run -- npx -y server --flag",
        "run --stdio -- server",
        "run --listen 127.0.0.1:0 --data d -- server",
        "status",
        "tools",
        "resources",
        "prompts",
        "call demo.add",
        "call demo.add {\"a\":1,\"b\":2}",
        "inbox --data d",
        "--data d inbox",
        "--config f inbox",
        "inbox --config f",
        "keys create ci --config f",
        "freeze all --config f",
        "audit verify --config f",
        "approve ab12",
        "approve ab12 --remember",
        "deny ab12 -m no",
        "stop ab12",
        "console",
        "console --revoke",
        "keys create ci --expires 90d",
        "keys create ci --until 2027-01-31 --data d",
        "keys list",
        "keys list --json",
        "keys rotate ci",
        "keys rotate ci --keep-old 1h --expires 90d",
        "keys extend ci --expires 90d",
        "keys extend ci --until 2027-01-31",
        "login github",
        "login github --config f.toml --no-browser --data d",
        "logout github --config f.toml",
        "logout github --all",
        "logout --all",
        "logins",
        "logins --json --data d",
        "keys revoke ci",
        "audit tail",
        "audit tail -n 5 -f",
        "audit tail --json",
        "audit verify --data d",
        "audit key",
        "audit acknowledge",
        "audit search --tool a.b --since 7d",
        "audit search --tool a.b --no-index",
        "audit search --json",
        "audit export --format ocsf --since 30m --cursor f",
        "demo-server",
        "check --config f.toml",
        "check",
        "check --servers --strict",
        "run --name docs -- server --name x",
        "init",
        "init --force --config f",
        "add -- npx -y server --flag",
        "add files -e A=1 --env B -- server -e C",
        "add https://mcp.example.com/mcp",
        "add far https://mcp.example.com/mcp -H A=1 --header B --secret C --replace --disabled",
        "add --cwd d --config f -- server",
        "remove a b",
        "enable a",
        "disable a --config f",
        "doctor",
        "doctor --no-start --json --config f --data d",
        "explain demo.add --caller a --config f {}",
        "explain --history 7d --config f",
        "explain --history 7d demo.add --caller a",
    ] {
        assert!(of(words).is_ok(), "{words}");
    }
}

#[test]
fn wrong_usage_is_exit_code_2() {
    for words in [
        "serv",
        "--confg f",
        "--listen localhost:1",
        "--stdio --listen 127.0.0.1:1",
        "--stdio inbox",
        "run --config f -- server",
        "--config f demo-server",
        "run",
        "run --",
        "run server",
        "call",
        "call add",
        "call .add",
        "call demo.",
        "call demo.add [1]",
        "call demo.add {",
        "approve",
        "deny ab12",
        "stop",
        "tasks",
        "tasks stop",
        "audit",
        "audit tail -n -1",
        "explain",
        "explain --history 7x",
        "keys extend ci",
        "audit search --decision bad",
        "logout github --all --caller key:ci",
        "keys rotate ci --keep-old 1x",
        "keys rotate ci --expires 1d --until 2027-01-31",
        "explain --history 7d demo.add {}",
        "check --server",
        "run --name",
        "add files -y",
        "add --env",
        "remove",
        "enable",
        "disable",
        "init x",
        "doctor --start",
    ] {
        let error = of(words).expect_err(words);
        assert_eq!(
            (error.exit_code(), error.use_stderr()),
            (2, true),
            "{words}"
        );
    }
}

#[test]
fn help_and_version_are_asked_for() {
    for words in ["--help", "--version", "help run", "audit --help"] {
        let error = of(words).expect_err(words);
        assert_eq!(
            (error.exit_code(), error.use_stderr()),
            (0, false),
            "{words}"
        );
    }
}

#[test]
fn serve_is_the_default_command() {
    let serve = ServeOptions {
        options: ListenOptions {
            stdio: true,
            ..ListenOptions::default()
        },
        take_over: false,
    };
    for words in ["--config f --stdio", "serve --config f --stdio"] {
        let cli = of(words).unwrap();
        assert_eq!(*cli.serve_options(), serve);
        assert_eq!(cli.config, Some("f".into()));
    }
}

#[test]
fn passes_arguments_after_the_dashes_to_the_server() {
    let CliCommand::Run(run) = command("run --stdio -- server --listen x --data y") else {
        panic!("not run")
    };
    assert_eq!(run.command, ["server", "--listen", "x", "--data", "y"]);
    assert_eq!(
        run.options,
        ListenOptions {
            stdio: true,
            ..ListenOptions::default()
        }
    );
}

#[test]
fn arguments_stay_as_they_are() {
    let text = "{\"b\":1e400,\"a\":12345678901234567890123}";
    let CliCommand::Call { tool, arguments } = command(&format!("call demo.a.b {text}")) else {
        panic!("not call")
    };
    assert_eq!(
        (tool.as_str(), arguments.as_slice()),
        ("demo.a.b", [text.to_owned()].as_slice())
    );
}

#[test]
fn parses_audit_and_deny_options() {
    let CliCommand::Audit(AuditCommand::Tail {
        count,
        follow,
        json,
    }) = command("audit tail -n 5 -f")
    else {
        panic!("not tail")
    };
    assert_eq!((count, follow, json), (5, true, false));
    let CliCommand::Deny { id, message } = command("deny ab12 -m why") else {
        panic!("not deny")
    };
    assert_eq!((id.as_str(), message.as_str()), ("ab12", "why"));
}
