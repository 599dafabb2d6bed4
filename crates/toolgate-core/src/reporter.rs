//! Reporter: sends progress and log messages of a call to its caller.

use std::{fmt, sync::Arc};
use toolgate_protocol::{json::Json, method::notifications::Progress};

/// Event during a call: a progress or log message notification. Exhaustive on purpose: a new kind breaks the build of
/// every sanitizer.
#[derive(Clone, Debug, PartialEq)]
pub enum ReporterEvent {
    /// Progress of the call.
    Progress(Progress),
    /// Log message of the upstream server.
    Log(LogMessage),
}

/// Log message of an upstream server (`notifications/message`).
///
/// Specification: [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LogMessage {
    /// Severity, as in the protocol, for example `warning`.
    pub level: String,
    /// Name of the server's logger.
    pub logger: Option<String>,
    /// Content of the log message, any JSON.
    pub data: Json,
}

impl LogMessage {
    /// Creates a log message without the name of a logger.
    pub fn new(level: impl Into<String>, data: Json) -> LogMessage {
        LogMessage {
            level: level.into(),
            logger: None,
            data,
        }
    }
}

/// Receiver of the events of one call. It must not block, and may drop progress that has no listener.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use serde_json::json;
/// use toolgate_core::{CallReporter, EventSink, Json, LogMessage, Progress, ReporterEvent};
///
/// /// Keeps all events.
/// #[derive(Default)]
/// struct Kept(Mutex<Vec<ReporterEvent>>);
///
/// impl EventSink for Kept {
///     fn report(&self, event: ReporterEvent) {
///         self.0.lock().unwrap().push(event);
///     }
/// }
///
/// let kept = Arc::new(Kept::default());
/// let reporter = CallReporter::new(kept.clone()).with_min_log_level(Some("info"));
/// reporter.send(ReporterEvent::Progress(Progress { progress: 1.0, total: Some(2.0), message: None }));
/// let mut log = LogMessage::new("warning", Json::from_value(&json!("half of it is missing")));
/// log.logger = Some("reader".to_owned());
/// reporter.send(ReporterEvent::Log(log));
/// assert_eq!(kept.0.lock().unwrap().len(), 2);
/// ```
pub trait EventSink: Send + Sync + 'static {
    /// Handles an event of the call.
    fn report(&self, event: ReporterEvent);
}

/// Channel for progress and log messages of a call to its caller, before the outcome. Without a listener it does
/// nothing.
#[derive(Clone, Default)]
pub struct CallReporter {
    sink: Option<Arc<dyn EventSink>>,
    /// True if a listener reads the content of events.
    reads_content: bool,
    min_log_level: Option<&'static str>,
}

impl CallReporter {
    /// Creates a reporter that sends all events of a call to this sink.
    pub fn new(sink: Arc<dyn EventSink>) -> CallReporter {
        CallReporter {
            sink: Some(sink),
            reads_content: true,
            min_log_level: None,
        }
    }

    /// Returns the same reporter with the minimum severity of the log messages that its caller requests. Upstream
    /// servers are asked for log messages only if a caller requested them.
    pub fn with_min_log_level(mut self, min_level: Option<&'static str>) -> CallReporter {
        self.min_log_level = min_level;
        self
    }

    /// Returns a reporter that sends all events to another sink. Use it in a layer that observes events without reading
    /// their content. The requested log level and the content flag stay the same.
    pub fn with_sink(&self, sink: Arc<dyn EventSink>) -> CallReporter {
        CallReporter {
            sink: Some(sink),
            ..*self
        }
    }

    /// Sends a progress or log event to the caller.
    pub fn send(&self, event: ReporterEvent) {
        if let Some(to) = &self.sink {
            to.report(event);
        }
    }

    /// Returns true if there is a listener for events. Without one, creating an event is wasted work.
    pub fn has_listener(&self) -> bool {
        self.sink.is_some()
    }

    /// Returns true if a listener reads the content of events, and does not only count them. A layer that only counts
    /// events listens without reading, and unread content needs no sanitizing.
    pub fn reads_content(&self) -> bool {
        self.reads_content
    }

    /// Returns the minimum severity of requested log messages; `None` if none are requested.
    pub fn min_log_level(&self) -> Option<&'static str> {
        self.min_log_level
    }
}

impl fmt::Debug for CallReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "CallReporter({})",
            if self.has_listener() {
                "listening"
            } else {
                "off"
            }
        )
    }
}
