//! Event log of the gateway: one line on standard error, or in a file, for each event that matters to an operator.
//!
//! - [`GatewayEvent`]: the events.
//! - `format`: plain lines and JSON lines.
//! - [`BackgroundWriter`]: the thread that writes, so that a slow terminal blocks nothing.
//! - [`AppendingFile`]: a log file that can be rotated.

mod appending_file;
mod background_writer;
mod event;
mod format;
mod local_time;

pub(crate) use appending_file::{AppendingFile, is_same_file, rotated_path};
pub(crate) use background_writer::BackgroundWriter;
pub(crate) use event::{EventLevel, GatewayEvent, last_stderr_lines};
pub(crate) use format::LogFormat;
pub(crate) use local_time::LocalClock;

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::OnceLock,
    time::{Duration, SystemTime},
};
use toolgate_core::visible;

/// Lines that wait for a slow terminal. More are dropped and counted.
const MAX_QUEUED_LINES: usize = 1024;
/// Time for the last lines when the gateway ends.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// Settings of the event log.
#[derive(Clone, Debug)]
pub(crate) struct EventLogSettings {
    /// Least important level that is printed.
    pub(crate) level: EventLevel,
    pub(crate) format: LogFormat,
    /// File that gets the lines instead of standard error.
    pub(crate) file: Option<PathBuf>,
}

/// Event log of this process.
struct EventLog {
    settings: EventLogSettings,
    writer: BackgroundWriter<LogMessage>,
}

enum LogMessage {
    Event(SystemTime, Box<GatewayEvent>),
    /// Text for standard error, such as the banner.
    Text(String),
}

/// The one event log, like the one standard error.
static EVENT_LOG: OnceLock<EventLog> = OnceLock::new();

/// Starts the event log of this process. Later calls have no effect.
///
/// # Errors
/// The log file cannot be opened; the message says why.
pub(crate) fn start(settings: EventLogSettings) -> Result<(), String> {
    let mut file = settings
        .file
        .clone()
        .map(|path| AppendingFile::new(path, None));
    if let Some(file) = &mut file {
        file.open().map_err(|e| {
            format!(
                "cannot open the log file {}: {e}; check the path of --log-file and its permissions",
                file.path().display()
            )
        })?;
    }
    let mut lines = LineWriter {
        format: settings.format,
        color: file.is_none() && crate::terminal::wants_color(&io::stderr()),
        file,
        clock: LocalClock::default(),
        file_failed: false,
    };
    let writer = BackgroundWriter::start("event log", MAX_QUEUED_LINES, move |message, dropped| {
        if dropped > 0 {
            lines.write_event(
                SystemTime::now(),
                &GatewayEvent::LinesDropped { count: dropped },
            );
        }
        match message {
            LogMessage::Event(at, event) => lines.write_event(at, &event),
            LogMessage::Text(text) => write_to_stderr(&text),
        }
    });
    let writer = writer.map_err(|e| {
        format!(
            "cannot start the thread of the log: {e}; raise the limit on processes of this user"
        )
    })?;
    let _ = EVENT_LOG.set(EventLog { settings, writer });
    Ok(())
}

/// Returns whether events of this level are printed. Building another event is wasted work.
pub(crate) fn prints(level: EventLevel) -> bool {
    EVENT_LOG
        .get()
        .is_none_or(|log| level <= log.settings.level)
}

/// Returns whether the banner fits on standard error: it is text, and no failure.
pub(crate) fn has_banner() -> bool {
    EVENT_LOG.get().is_none_or(|log| {
        let is_text = log.settings.format == LogFormat::Plain || log.settings.file.is_some();
        is_text && log.settings.level >= EventLevel::Notice
    })
}

/// Prints the event of the start, unless the banner is in its place.
pub(crate) fn emit_besides_banner(event: GatewayEvent) {
    let replaced = |log: &EventLog| has_banner() && log.settings.file.is_none();
    if !EVENT_LOG.get().is_some_and(replaced) {
        emit(event);
    }
}

/// Returns whether a failure of the gateway goes to standard error as JSON.
pub(crate) fn is_json_on_stderr() -> bool {
    let is_json =
        |log: &EventLog| log.settings.format == LogFormat::Json && log.settings.file.is_none();
    EVENT_LOG.get().is_some_and(is_json)
}

/// Returns whether the failure that ends the gateway is an event too, besides the message of the command on standard
/// error.
pub(crate) fn has_own_failure_lines() -> bool {
    let has_file = |log: &EventLog| log.settings.file.is_some();
    is_json_on_stderr() || EVENT_LOG.get().is_some_and(has_file)
}

/// Prints an event. Never blocks: if the terminal or file is too slow, the event is dropped and counted. A command
/// without an event log prints the message only.
pub(crate) fn emit(event: GatewayEvent) {
    match EVENT_LOG.get() {
        Some(log) if event.level() <= log.settings.level => log
            .writer
            .send(LogMessage::Event(SystemTime::now(), Box::new(event))),
        Some(_) => {}
        None => write_to_stderr(&format!("toolgate: {}\n", visible(&event.message()))),
    }
}

/// Formats an event as a line without colors, for a command that prints events itself.
pub(crate) fn plain_line(event: &GatewayEvent, clock: &mut LocalClock) -> String {
    format::plain(event, SystemTime::now(), clock, false)
}

/// Prints text on standard error, after the events before it.
pub(crate) fn print_text(text: String) {
    match EVENT_LOG.get() {
        Some(log) => log.writer.send(LogMessage::Text(text)),
        None => write_to_stderr(&text),
    }
}

/// Waits a moment until all events are printed.
pub(crate) fn flush() {
    if let Some(log) = EVENT_LOG.get() {
        log.writer.flush(FLUSH_TIMEOUT);
    }
}

/// Writes lines to the file or to standard error.
struct LineWriter {
    format: LogFormat,
    color: bool,
    file: Option<AppendingFile>,
    clock: LocalClock,
    /// True if the last write to the file failed.
    file_failed: bool,
}

impl LineWriter {
    fn write_event(&mut self, at: SystemTime, event: &GatewayEvent) {
        let line = match self.format {
            LogFormat::Plain => format::plain(event, at, &mut self.clock, self.color),
            LogFormat::Json => format::json_line(event, at),
        };
        let Some(file) = &mut self.file else {
            return write_to_stderr(&line);
        };
        let written = file.append(line.as_bytes());
        if let Err(error) = &written
            && !self.file_failed
        {
            let path = file.path().display();
            write_to_stderr(&format!(
                "toolgate: cannot write the log file {path}: {error}; its lines are lost until that is corrected\n"
            ));
        }
        self.file_failed = written.is_err();
    }
}

/// Writes text to standard error. A closed terminal is no reason to end, as `eprintln` would.
fn write_to_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
