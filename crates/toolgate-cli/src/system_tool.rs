//! Tools of the operating system, such as that of its keyring. The guardian starts them like servers: without a shell, with a
//! bounded output.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use toolgate_guardian::{ChildExit, ChildProcess, Guardian, SpawnCommand, environment};
use toolgate_policy::SecretRedactor;

/// Environment variables that tools need beyond the default allowlist: to reach the session of the user.
const SESSION_VARIABLES: [&str; 5] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
];
/// Maximum size of the tool's error output in a message, in bytes.
const MAX_TOOL_ERROR_BYTES: u64 = 512;

/// Output of a tool.
pub(crate) struct ToolOutput {
    pub(crate) stdout: Vec<u8>,
    stderr: Vec<u8>,
    pub(crate) exit: ChildExit,
}

impl ToolOutput {
    /// Returns the first line of the error output, if there is one.
    pub(crate) fn error_line(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.stderr);
        let line = text.lines().next()?.trim();
        (!line.is_empty()).then(|| SecretRedactor::redact_for_display(line).into())
    }
}

/// Runs a tool with this input, and returns at most `max_output_bytes` of its output.
///
/// # Errors
/// The tool cannot be started; the message says what it is for.
pub(crate) async fn run_tool(
    command: &[String],
    (input, max_output_bytes): (&[u8], u64),
    purpose: &str,
    guardian: &Guardian,
) -> Result<ToolOutput, String> {
    let spawn = SpawnCommand {
        program: command[0].as_str().into(),
        args: command.iter().skip(1).map(Into::into).collect(),
        env: environment(&SESSION_VARIABLES, &[]),
        cwd: None,
    };
    let mut child: ChildProcess = guardian.spawn(spawn).await.map_err(|error| {
        format!(
            "{}, which {purpose}, cannot be started ({error}); install it in a directory of PATH",
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
        read_limited(out, max_output_bytes),
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
