//! URLs that must be `https`, or `http` on loopback.

use super::reader::{ExpandedText, inline_schema};
use schemars::json_schema;
use serde::Deserialize;
use toolgate::auth::Url;

/// URL with `https`, or with `http` on loopback.
#[derive(Clone, Deserialize)]
#[serde(try_from = "ExpandedText")]
pub(super) struct HttpsUrl {
    /// Parsed URL.
    pub(super) url: Url,
    /// Expanded text, for identifiers that are compared exactly.
    pub(super) text: String,
}

inline_schema!(
    HttpsUrl,
    |_| json_schema!({"type": "string", "title": "URL"})
);

impl TryFrom<ExpandedText> for HttpsUrl {
    type Error = String;

    fn try_from(expanded: ExpandedText) -> Result<HttpsUrl, String> {
        let text = expanded.text;
        let url = Url::parse(&text).map_err(|bad| {
            format!("cannot be used: {bad}; write a URL such as \"https://login.example.com\"")
        })?;
        match url.is_https() || url.is_loopback() {
            true => Ok(HttpsUrl { url, text }),
            false => Err("cannot be used: http:// is allowed only for this machine, because anyone on the network path could read and change the traffic; write a URL that begins with https://".to_owned()),
        }
    }
}
