//! What a tool gave back.

use serde::de::DeserializeOwned;
use toolgate_core::{Content, ContentKind, Error, Json, Kind, ToolResult};

/// What a tool gave back. A failure of the tool itself is a result too: [`CallResult::is_error`]; give it to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResult(pub(super) ToolResult);

impl CallResult {
    /// The blocks that a model reads.
    pub fn content(&self) -> &[Content] {
        &self.0.content
    }

    /// All blocks of text, one under the other.
    pub fn text(&self) -> String {
        let texts = self.0.content.iter().filter_map(|block| match block.kind {
            ContentKind::Text => block.json.get("text")?.string(),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Whether the tool itself failed.
    pub fn is_error(&self) -> bool {
        self.0.is_error
    }

    /// What a program reads, to the byte as it came.
    pub fn value(&self) -> Option<&Json> {
        self.0.structured.as_ref()
    }

    /// What a program reads, as a type. Where the revision has no structured results, the text is read instead, in
    /// which servers repeat them.
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
    /// The tool failed, has no such result, or its result is of another type.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, Error> {
        if self.0.is_error {
            return Err(Error::new(
                Kind::Upstream,
                format!("the tool failed: {}", self.text()),
            ));
        }
        let read = match &self.0.structured {
            Some(structured) => serde_json::from_str(structured.as_str()),
            None => serde_json::from_str(&self.text()),
        };
        read.map_err(|error| {
            let text = format!("the result of the tool is of another type: {error}");
            Error::new(Kind::Upstream, text).because(error)
        })
    }

    /// The `_meta` of the result.
    pub fn meta(&self) -> Option<&Json> {
        self.0.meta.as_ref()
    }

    /// The result as the rest of the crate knows it.
    pub fn into_inner(self) -> ToolResult {
        self.0
    }
}
