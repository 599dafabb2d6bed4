//! Notifications of the desktop on which the gateway runs, by the system's own tool.

use super::message::{Notification, escape_markup};
use crate::system_tool::run_tool;
use std::time::Duration;
use tokio::time::timeout;
use toolgate_guardian::{ChildExit, Guardian};

/// Maximum time for the tool.
const TOOL_TIMEOUT: Duration = Duration::from_secs(10);

/// Shows a message on the desktop.
///
/// # Errors
/// The tool is missing, or there is no desktop session.
pub(super) async fn show(notification: &Notification, guardian: &Guardian) -> Result<(), String> {
    let (title, text) = (notification.title(), notification.text());
    let text = format!("{text}\n{}", notification.link());
    let command: Vec<String> = match cfg!(target_os = "macos") {
        true => vec![
            "osascript".to_owned(),
            "-e".to_owned(),
            "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run".to_owned(),
            title,
            text,
        ],
        false => [
            "notify-send",
            "--app-name=Toolgate",
            "--urgency=critical",
            "--category=im.received",
            "--",
        ]
        .map(str::to_owned)
        .into_iter()
        .chain([title, escape_markup(&text)])
        .collect(),
    };
    let shown = timeout(
        TOOL_TIMEOUT,
        run_tool(&command, (b"", 0), "shows notifications", guardian),
    )
    .await;
    let output = shown.map_err(|_| format!("{} did not end in time", command[0]))??;
    match output.exit {
        ChildExit::Code(0) => Ok(()),
        _ => Err(match output.error_line() {
            Some(line) => format!("{} reports: {line}", command[0]),
            None => format!(
                "{} failed; start the gateway in a desktop session",
                command[0]
            ),
        }),
    }
}
