//! Input of an operator's action: values of a JSON object, as a page or a command sent them.

use serde_json::Value;

/// Input of an action. A member of another type counts as absent.
#[derive(Clone, Copy)]
pub(super) struct ActionInput<'a>(pub(super) &'a Value);

impl<'a> ActionInput<'a> {
    /// Returns a number.
    pub(super) fn number(self, key: &str) -> Option<u64> {
        self.0.get(key).and_then(Value::as_u64)
    }

    /// Returns a text; empty if it is absent.
    pub(super) fn text(self, key: &str) -> &'a str {
        self.0.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the text of a filter; `None` if it is absent or empty, so that everything matches.
    pub(super) fn filter(self, key: &str) -> Option<String> {
        Some(self.text(key).to_owned()).filter(|text| !text.is_empty())
    }

    /// Returns the begin and the end of a time in microseconds since 1970, from `from` and `to` in milliseconds. Without
    /// them, it is all time.
    pub(super) fn period(self) -> (u64, u64) {
        let micros = |key: &str| self.number(key).map(|ms| ms.saturating_mul(1000));
        (
            micros("from").unwrap_or_default(),
            micros("to").unwrap_or(u64::MAX),
        )
    }

    /// Returns the maximum number of rows that the request asks for, up to a limit.
    pub(super) fn most(self, limit: u64) -> usize {
        let most = self.number("most").unwrap_or(limit).min(limit);
        usize::try_from(most).unwrap_or_default()
    }
}
