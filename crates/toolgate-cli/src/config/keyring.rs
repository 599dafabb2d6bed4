//! Secrets in the keyring of the operating system, read and stored with the system's own tool.
//!
//! A library would bring a D-Bus stack into the process that faces the network. The guardian starts the tool like a
//! server: without a shell, with a timeout and a size limit.

use crate::config::{ConfigValue, MAX_SECRET_FILE_BYTES};
use std::time::Duration;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    time::timeout,
};
use toolgate_auth::Secret;
use toolgate_guardian::{ChildExit, ChildProcess, Guardian, SpawnCommand, environment};
use toolgate_policy::SecretRedactor;

/// Service name of Toolgate's entries in the keyring.
const KEYRING_SERVICE: &str = "toolgate";
/// Environment variables that the tool needs beyond the default allowlist: to reach the keyring, and to prompt for
/// its password.
const KEYRING_VARIABLES: [&str; 5] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
];
/// Maximum size of the tool's error output in a message, in bytes.
const MAX_TOOL_ERROR_BYTES: u64 = 512;

/// Reads a secret from its configured source, including the keyring.
///
/// # Errors
/// The secret cannot be read within that time. The message never contains it.
pub(crate) async fn read_secret(
    given: &ConfigValue,
    guardian: &Guardian,
    within: Duration,
) -> Result<Secret, String> {
    let ConfigValue::Keyring(name) = given else {
        return given.read();
    };
    let wrong = |why: String| format!("the keyring entry {name:?} cannot be read: {why}");
    match timeout(within, look_up(name, guardian)).await {
        Ok(found) => found.map_err(wrong),
        Err(_) => Err(wrong(format!(
            "{} did not respond within {within:?}; unlock the keyring",
            tool_command(KeyringAction::LookUp, name)[0]
        ))),
    }
}

/// Stores a secret in the keyring. An entry of that name is replaced.
///
/// # Errors
/// The keyring does not accept it within that time. The message never contains the secret.
pub(crate) async fn store_secret(
    name: &str,
    value: &str,
    guardian: &Guardian,
    within: Duration,
) -> Result<(), String> {
    let wrong = |why: String| format!("the keyring entry {name:?} cannot be stored: {why}");
    let (words, input) = match cfg!(target_os = "macos") {
        // The secret must not be an argument, which other users could see.
        true => (
            vec!["security", "-i"],
            format!(
                "add-generic-password -U -s {KEYRING_SERVICE} -a {name} -X {}\n",
                toolgate_protocol::hex::encode(value.as_bytes())
            ),
        ),
        false => (
            vec![
                "secret-tool",
                "store",
                "--label=toolgate",
                "service",
                KEYRING_SERVICE,
                "account",
                name,
            ],
            value.to_owned(),
        ),
    };
    let command: Vec<String> = words.into_iter().map(str::to_owned).collect();
    let output = match timeout(within, run_tool(&command, input.as_bytes(), guardian)).await {
        Ok(output) => output.map_err(wrong)?,
        Err(_) => {
            return Err(wrong(format!(
                "{} did not respond within {within:?}; unlock the keyring",
                command[0]
            )));
        }
    };
    match output.exit {
        ChildExit::Code(0) => Ok(()),
        _ => Err(wrong(match output.error_line() {
            Some(line) => format!("{} reports: {line}", command[0]),
            None => format!("{} failed; unlock the keyring", command[0]),
        })),
    }
}

/// Action of the keyring's tool on one entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum KeyringAction {
    LookUp,
    Delete,
}

/// Returns the command line of the tool.
fn tool_command(action: KeyringAction, name: &str) -> Vec<String> {
    let macos = cfg!(target_os = "macos");
    let words: &[&str] = match (action, macos) {
        (KeyringAction::LookUp, true) => &["security", "find-generic-password", "-w"],
        (KeyringAction::Delete, true) => &["security", "delete-generic-password"],
        (KeyringAction::LookUp, false) => &["secret-tool", "lookup"],
        (KeyringAction::Delete, false) => &["secret-tool", "clear"],
    };
    let entry: [&str; 4] = match macos {
        true => ["-s", KEYRING_SERVICE, "-a", name],
        false => ["service", KEYRING_SERVICE, "account", name],
    };
    words
        .iter()
        .chain(&entry)
        .map(ToString::to_string)
        .collect()
}

/// Deletes an entry of the keyring.
///
/// # Errors
/// The keyring does not delete it within that time.
pub(crate) async fn delete_secret(
    name: &str,
    guardian: &Guardian,
    within: Duration,
) -> Result<(), String> {
    let command = tool_command(KeyringAction::Delete, name);
    let deleted = timeout(within, run_tool(&command, b"", guardian)).await;
    let why = match deleted {
        Ok(Ok(output)) if output.exit == ChildExit::Code(0) => return Ok(()),
        Ok(Ok(output)) => output.error_line().unwrap_or("unlock the keyring".into()),
        Ok(Err(why)) => why,
        Err(_) => format!("{} did not respond within {within:?}", command[0]),
    };
    Err(format!(
        "the keyring entry {name:?} cannot be deleted: {why}"
    ))
}

async fn look_up(name: &str, guardian: &Guardian) -> Result<Secret, String> {
    let command = tool_command(KeyringAction::LookUp, name);
    let output = run_tool(&command, b"", guardian).await?;
    let error_line = output.error_line();
    let text = String::from_utf8(output.stdout)
        .map_err(|_| "it is not UTF-8 text; store it as UTF-8".to_owned())?;
    let text = text.trim_end_matches(['\r', '\n']);
    match output.exit {
        _ if text.len() > MAX_SECRET_FILE_BYTES => Err(format!(
            "it is longer than {MAX_SECRET_FILE_BYTES} bytes, which is the limit; store a shorter value"
        )),
        ChildExit::Code(0) if !text.is_empty() => Ok(Secret::new(text)),
        _ => Err(match error_line {
            Some(line) => format!("{} reports: {line}", command[0]),
            None => {
                format!("it does not exist for the service {KEYRING_SERVICE}; store it first")
            }
        }),
    }
}

/// Output of the tool.
struct ToolOutput {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    exit: ChildExit,
}

impl ToolOutput {
    /// Returns the first line of the error output, if there is one.
    fn error_line(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.stderr);
        let line = text.lines().next()?.trim();
        (!line.is_empty()).then(|| SecretRedactor::redact_for_display(line).into())
    }
}

async fn run_tool(
    command: &[String],
    input: &[u8],
    guardian: &Guardian,
) -> Result<ToolOutput, String> {
    let spawn = SpawnCommand {
        program: command[0].as_str().into(),
        args: command.iter().skip(1).map(Into::into).collect(),
        env: environment(&KEYRING_VARIABLES, &[]),
        cwd: None,
    };
    let mut child: ChildProcess = guardian.spawn(spawn).await.map_err(|error| {
        format!(
            "{}, which accesses the keyring, cannot be started ({error}); install it in a directory of PATH",
            command[0]
        )
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // A tool that ends before it reads everything reports why.
        let _ = stdin.write_all(input).await;
        let _ = stdin.shutdown().await;
    }
    let (out, said) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = tokio::join!(
        read_limited(out, MAX_SECRET_FILE_BYTES as u64 + 1),
        read_limited(said, MAX_TOOL_ERROR_BYTES)
    );
    let exit = child.exited().await;
    Ok(ToolOutput {
        stdout,
        stderr,
        exit,
    })
}

/// Reads at most that many bytes, and discards the rest so that the tool can exit.
async fn read_limited(from: Option<impl AsyncRead + Unpin>, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        // A broken pipe counts as the end of the output. The exit status decides.
        let _ = (&mut from).take(most).read_to_end(&mut bytes).await;
        let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    }
    bytes
}
