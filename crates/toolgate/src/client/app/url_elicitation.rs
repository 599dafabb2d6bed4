//! URL elicitation.

use toolgate_core::Json;

/// URL elicitation: a page that a server asks the user to open, for data that must not pass through the application.
///
/// Show the complete URL with [`UrlElicitation::host`] highlighted, say which server asks, and open the page only after the user
/// agreed. Use a browser that neither the application nor the model can observe. Never prefetch the page. Warn the user
/// if [`UrlElicitation::has_lookalike_host`] says that the host can resemble another one.
///
/// Specification: [safe URL handling](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#safe-url-handling).
///
/// ```no_run
/// use toolgate::{Client, client::UrlElicitation, handlers::ask::Reply};
///
/// /// Shows the page to the user, who decides.
/// async fn open(page: UrlElicitation) -> Reply<()> {
///     println!("{} asks you to open {} on {}: {}", page.server, page.url, page.host(), page.message);
///     if page.has_lookalike_host() {
///         println!("warning: its name has letters that can resemble others");
///     }
///     Reply::Declined // a real program asks, and opens the browser
/// }
///
/// # async fn f() -> Result<(), toolgate::Error> {
/// let client = Client::builder()
///     .on_elicit_url(open)
///     .on_elicitation_complete(|id| println!("{id} is complete"))
///     .spawn(["shop-server"])
///     .await?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UrlElicitation {
    /// Id of the server that asks for the page to be opened, as set on this client.
    pub server: String,
    /// Message to the user that explains why to open the page. Untrusted text: sanitized, not verified.
    pub message: String,
    /// URL of the page: `https`, or `http` on a loopback address.
    /// [`InputRequestPolicy`](toolgate_policy::InputRequestPolicy) can allow others.
    pub url: String,
    /// Elicitation id, with which the server later reports that the elicitation is complete (2025-11-25).
    pub id: Option<String>,
}

impl UrlElicitation {
    /// Reads the parameters of `elicitation/create`; `None` for a URL that no browser should open.
    pub(super) fn read(server: &str, params: &Json) -> Option<UrlElicitation> {
        let text = |key: &str| params.get(key).and_then(|v| v.string());
        let page = UrlElicitation {
            server: server.to_owned(),
            message: text("message")?,
            url: text("url")?,
            id: text("elicitationId"),
        };
        let uri: http::Uri = page.url.parse().ok()?;
        let web = matches!(uri.scheme_str(), Some("https" | "http"));
        let plain = !uri.authority()?.as_str().contains('@');
        (web && plain && !page.host().is_empty()).then_some(page)
    }

    /// Returns the host of the page's URL, to show to the user.
    pub fn host(&self) -> String {
        let uri = self.url.parse::<http::Uri>().ok();
        uri.and_then(|uri| uri.host().map(str::to_owned))
            .unwrap_or_default()
    }

    /// Returns whether the page's host may resemble another one: a label is Punycode, so it has letters beyond ASCII.
    pub fn has_lookalike_host(&self) -> bool {
        let host = self.host().to_ascii_lowercase();
        host.split('.').any(|label| label.starts_with("xn--"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(url: &str) -> Option<UrlElicitation> {
        let params = json!({"mode": "url", "message": "m", "url": url});
        UrlElicitation::read("s", &Json::from_value(&params))
    }

    /// Holds: ELIC-16.
    #[test]
    fn only_pages_of_the_web_are_opened() {
        let plain = read("https://a.example/x?y=1#z").unwrap();
        assert_eq!(plain.host(), "a.example");
        assert_eq!(plain.url, "https://a.example/x?y=1#z", "all of it");
        assert!(!plain.has_lookalike_host());
        for odd in [
            "https://xn--bnk-5cd.example/",
            "https://in.XN--bnk-5cd.example:1/",
        ] {
            assert!(read(odd).unwrap().has_lookalike_host(), "{odd}");
        }
        for bad in [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "https://bank.example@evil.example/",
            "/x",
            "",
        ] {
            assert!(read(bad).is_none(), "{bad}");
        }
    }
}
