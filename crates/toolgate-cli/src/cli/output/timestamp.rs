//! Times in outputs.

use crate::timestamp::{format_rfc3339, format_timestamp, millis};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;
use std::{
    borrow::Cow,
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Time in an output: milliseconds since 1970 in the answers of gateways, RFC 3339 in UTC in JSON, and with minutes for
/// people.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(transparent)]
pub(crate) struct OutputTime(u64);

impl OutputTime {
    pub(crate) fn from_millis(millis: u64) -> OutputTime {
        OutputTime(millis)
    }

    pub(crate) fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the time that is left until then.
    pub(crate) fn time_left(self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(millis(SystemTime::now())))
    }
}

impl From<SystemTime> for OutputTime {
    fn from(time: SystemTime) -> OutputTime {
        OutputTime(millis(time))
    }
}

impl fmt::Display for OutputTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_timestamp(&json!(self.0)))
    }
}

impl Serialize for OutputTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let time = UNIX_EPOCH.checked_add(Duration::from_millis(self.0));
        serializer.serialize_str(&format_rfc3339(time.unwrap_or(UNIX_EPOCH)))
    }
}

impl JsonSchema for OutputTime {
    fn schema_name() -> Cow<'static, str> {
        "OutputTime".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}
