//! Static files of the console, embedded in the program.

use http::{HeaderValue, Response, header};
use toolgate::edge::http::Body;

macro_rules! files {
    ($($name:literal: $kind:literal),* $(,)?) => {
        &[$(($name, $kind, include_str!(concat!("assets/", $name)))),*]
    };
}

const STATIC_FILES: &[(&str, &str, &str)] = files! {
    "index.html": "text/html; charset=utf-8",
    "signed-in.html": "text/html; charset=utf-8",
    "signed-in.js": "text/javascript; charset=utf-8",
    "own-sign-in.html": "text/html; charset=utf-8",
    "own-sign-in.js": "text/javascript; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "api.js": "text/javascript; charset=utf-8",
    "diff.js": "text/javascript; charset=utf-8",
    "dom.js": "text/javascript; charset=utf-8",
    "json.js": "text/javascript; charset=utf-8",
    "view-calls.js": "text/javascript; charset=utf-8",
    "view-decide.js": "text/javascript; charset=utf-8",
    "view-grants.js": "text/javascript; charset=utf-8",
    "view-inbox.js": "text/javascript; charset=utf-8",
    "view-pins.js": "text/javascript; charset=utf-8",
    "view-tasks.js": "text/javascript; charset=utf-8",
    "view-servers.js": "text/javascript; charset=utf-8",
    "view-tools.js": "text/javascript; charset=utf-8",
};

/// Content security policy: only our own files, no frames, no form targets.
const CONSOLE_CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns a static file by name.
pub(crate) fn find_file(name: &str) -> Option<Response<Body>> {
    let (_, kind, text) = STATIC_FILES.iter().find(|(file, _, _)| *file == name)?;
    let mut response = Response::new(Body::full(*text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(CONSOLE_CSP),
    );
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Some(response)
}
