//! Tool results.

use serde::de::DeserializeOwned;
use toolgate_core::{Content, Error, ErrorKind, Json, ToolResult};

/// Result of a tool call (`tools/call`) of a client. A failure of the tool itself is also a result: see
/// [`CallResult::is_error`], and give it to the model.
///
/// Specification: [tool result](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result).
///
/// ```
/// use toolgate::CallResult;
///
/// /// Shows a result to a person.
/// fn show(result: &CallResult) -> String {
///     match result.structured_content() {
///         _ if result.is_error() => format!("failed: {}", result.text()),
///         Some(json) => json.as_str().to_owned(),
///         None => result.text(),
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CallResult(pub(super) ToolResult);

impl CallResult {
    /// Returns the result's content blocks (text, images and so on) for the model.
    pub fn content(&self) -> &[Content] {
        &self.0.content
    }

    /// Returns all text content blocks of the result, joined with newlines.
    pub fn text(&self) -> String {
        let texts = self.0.content.iter().filter_map(Content::as_text);
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns whether the tool reported an error (`isError` of the result).
    pub fn is_error(&self) -> bool {
        self.0.is_error
    }

    /// Returns the result's structured content (`structuredContent`), byte for byte.
    pub fn structured_content(&self) -> Option<&Json> {
        self.0.structured.as_ref()
    }

    /// Deserializes the result's structured content (`structuredContent`) to a type of yours. If there is none, as in
    /// older revisions, the text is parsed instead, in which servers repeat it.
    ///
    /// ```
    /// # async fn f(weather: toolgate::Client) -> Result<(), toolgate::Error> {
    /// #[derive(serde::Deserialize)]
    /// struct Forecast {
    ///     degrees: f64,
    /// }
    /// let place = serde_json::json!({"place": "Oslo"});
    /// let forecast: Forecast = weather.call("forecast", place).await?.structured()?;
    /// # let _ = forecast.degrees;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The tool failed, the result has no JSON, or it does not match the type.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, Error> {
        if self.0.is_error {
            return Err(Error::new(
                ErrorKind::Upstream,
                format!("the tool failed: {}", self.text()),
            ));
        }
        let read = match &self.0.structured {
            Some(structured) => serde_json::from_str(structured.as_str()),
            None => serde_json::from_str(&self.text()),
        };
        read.map_err(|error| {
            let text = format!(
                "the result of the tool does not match the type: {error}; use a type that does"
            );
            Error::new(ErrorKind::Upstream, text).with_source(error)
        })
    }

    /// Returns the `_meta` of the tool result.
    pub fn meta(&self) -> Option<&Json> {
        self.0.meta.as_ref()
    }

    pub(super) fn inner(&self) -> &ToolResult {
        &self.0
    }

    /// Returns the tool result as [`ToolResult`], the type that services use.
    pub fn into_inner(self) -> ToolResult {
        self.0
    }
}

impl From<ToolResult> for CallResult {
    fn from(result: ToolResult) -> CallResult {
        CallResult(result)
    }
}
