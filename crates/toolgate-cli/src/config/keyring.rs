//! Secrets in the keyring of the operating system, read and stored with the system's own tool.
//!
//! A library would bring a D-Bus stack into the process that faces the network. The guardian starts the tool like a
//! server: without a shell, with a timeout and a size limit.

use crate::{
    config::{ConfigValue, MAX_SECRET_FILE_BYTES},
    system_tool::{ToolOutput, run_tool},
};
use std::time::Duration;
use tokio::time::timeout;
use toolgate_auth::Secret;
use toolgate_guardian::{ChildExit, Guardian};

/// Service name of Toolgate's entries in the keyring.
const KEYRING_SERVICE: &str = "toolgate";

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
    let output = match timeout(
        within,
        run_keyring_tool(&command, input.as_bytes(), guardian),
    )
    .await
    {
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
    let deleted = timeout(within, run_keyring_tool(&command, b"", guardian)).await;
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

async fn run_keyring_tool(
    command: &[String],
    input: &[u8],
    guardian: &Guardian,
) -> Result<ToolOutput, String> {
    // One byte more than the limit shows that the value is too long.
    let output = MAX_SECRET_FILE_BYTES as u64 + 1;
    run_tool(command, (input, output), "accesses the keyring", guardian).await
}

async fn look_up(name: &str, guardian: &Guardian) -> Result<Secret, String> {
    let command = tool_command(KeyringAction::LookUp, name);
    let output = run_keyring_tool(&command, b"", guardian).await?;
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
