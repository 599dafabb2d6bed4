//! Plain lines and JSON lines of the event log.

use super::{
    event::{EventLevel, GatewayEvent},
    local_time::LocalClock,
};
use crate::timestamp::format_rfc3339;
use serde_json::{Value, json};
use std::time::SystemTime;
use toolgate_core::{visible, visible_line};
use toolgate_policy::SecretRedactor;

/// Format of the lines.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// A line for people, with the local time of day
    #[default]
    Plain,
    /// One JSON object per line, with the UTC time
    Json,
}

/// Terminal codes of a plain line.
struct LineStyle {
    time: &'static str,
    message: &'static str,
    reset: &'static str,
}

const COLORLESS: LineStyle = LineStyle {
    time: "",
    message: "",
    reset: "",
};

/// Formats an event as a plain line, with its details on indented lines.
pub(super) fn plain(
    event: &GatewayEvent,
    at: SystemTime,
    clock: &mut LocalClock,
    color: bool,
) -> String {
    let style = match color {
        true => style(event),
        false => COLORLESS,
    };
    let LineStyle {
        time,
        message,
        reset,
    } = style;
    let text = redact(&event.message());
    let mut out = format!(
        "{time}{}{reset} {message}{}{reset}\n",
        clock.time_of_day(at),
        // A message of a config error has several lines. Indented ones cannot pass for events.
        visible(&text).replace('\n', "\n         ")
    );
    for line in event.details() {
        out.push_str(&format!("         | {}\n", visible_line(&redact(line))));
    }
    out
}

fn style(event: &GatewayEvent) -> LineStyle {
    let message = match event {
        GatewayEvent::ApprovalRequested { .. } => "\x1b[33m",
        event if event.level() == EventLevel::Failure => "\x1b[31m",
        _ => "",
    };
    LineStyle {
        time: "\x1b[2m",
        message,
        reset: "\x1b[0m",
    }
}

/// Formats an event as one line of JSON.
pub(super) fn json_line(event: &GatewayEvent, at: SystemTime) -> String {
    let mut line = json!({
        "time": format_rfc3339(at), "level": event.level().as_str(), "event": event.name(),
        "message": event.message(),
    });
    if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), event.fields()) {
        line.extend(fields);
    }
    redact_strings(&mut line);
    format!("{}\n", visible(&line.to_string()))
}

fn redact(text: &str) -> String {
    SecretRedactor::redact_for_display(text).into_owned()
}

fn redact_strings(value: &mut Value) {
    match value {
        Value::String(text) => *text = redact(text),
        Value::Array(list) => list.iter_mut().for_each(redact_strings),
        Value::Object(map) => map.values_mut().for_each(redact_strings),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
