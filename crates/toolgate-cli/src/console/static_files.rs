//! Static files of the console, embedded in the program and compressed when first requested.
//!
//! The page loads its scripts and styles below `/console/VERSION/`, where VERSION is a digest of all files. A browser keeps
//! these without asking again. The page itself, and files that have a fixed address, are asked for each time.

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use ring::digest::{Context, SHA256, digest};
use std::{
    io::Write,
    sync::{LazyLock, OnceLock},
};
use toolgate::edge::http::Body;
use toolgate_protocol::hex;

/// Embedded file, with what is computed from it at the first request.
struct StaticFile {
    name: &'static str,
    media_type: &'static str,
    text: &'static str,
    prepared: OnceLock<PreparedFile>,
}

/// File as it is sent, its compressed form, and its entity tag.
struct PreparedFile {
    text: Bytes,
    /// `None` if compression fails or does not help.
    gzip: Option<Bytes>,
    etag: String,
}

macro_rules! files {
    ($($name:literal: $kind:literal),* $(,)?) => {
        LazyLock::new(|| vec![$(StaticFile {
            name: $name,
            media_type: $kind,
            text: include_str!(concat!("assets/", $name)),
            prepared: OnceLock::new(),
        }),*])
    };
}

static STATIC_FILES: LazyLock<Vec<StaticFile>> = files! {
    "api.js": "text/javascript; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "arguments.js": "text/javascript; charset=utf-8",
    "call.js": "text/javascript; charset=utf-8",
    "calls.css": "text/css; charset=utf-8",
    "charts.js": "text/javascript; charset=utf-8",
    "config-change.js": "text/javascript; charset=utf-8",
    "decide.js": "text/javascript; charset=utf-8",
    "diff.js": "text/javascript; charset=utf-8",
    "dom.js": "text/javascript; charset=utf-8",
    "editor.js": "text/javascript; charset=utf-8",
    "forms.js": "text/javascript; charset=utf-8",
    "freeze.js": "text/javascript; charset=utf-8",
    "group.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "index.html": "text/html; charset=utf-8",
    "json.js": "text/javascript; charset=utf-8",
    "live.js": "text/javascript; charset=utf-8",
    "longtext.js": "text/javascript; charset=utf-8",
    "manifest.webmanifest": "application/manifest+json",
    "map.js": "text/javascript; charset=utf-8",
    "outcomes.js": "text/javascript; charset=utf-8",
    "own-sign-in.html": "text/html; charset=utf-8",
    "own-sign-in.js": "text/javascript; charset=utf-8",
    "pages.css": "text/css; charset=utf-8",
    "passkey.js": "text/javascript; charset=utf-8",
    "push.js": "text/javascript; charset=utf-8",
    "reports.css": "text/css; charset=utf-8",
    "request.js": "text/javascript; charset=utf-8",
    "result.js": "text/javascript; charset=utf-8",
    "sessions.js": "text/javascript; charset=utf-8",
    "sign-in-buttons.js": "text/javascript; charset=utf-8",
    "signed-in.html": "text/html; charset=utf-8",
    "signed-in.js": "text/javascript; charset=utf-8",
    "strip.js": "text/javascript; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "sw.js": "text/javascript; charset=utf-8",
    "time.js": "text/javascript; charset=utf-8",
    "view-audit.js": "text/javascript; charset=utf-8",
    "view-callers.js": "text/javascript; charset=utf-8",
    "view-calls.js": "text/javascript; charset=utf-8",
    "view-changes.js": "text/javascript; charset=utf-8",
    "view-grants.js": "text/javascript; charset=utf-8",
    "view-inbox.js": "text/javascript; charset=utf-8",
    "view-keys.js": "text/javascript; charset=utf-8",
    "view-notifications.js": "text/javascript; charset=utf-8",
    "view-overview.js": "text/javascript; charset=utf-8",
    "view-passkeys.js": "text/javascript; charset=utf-8",
    "view-rules.js": "text/javascript; charset=utf-8",
    "view-servers.js": "text/javascript; charset=utf-8",
    "view-settings.js": "text/javascript; charset=utf-8",
    "view-sign-ins.js": "text/javascript; charset=utf-8",
    "view-tasks.js": "text/javascript; charset=utf-8",
    "view-tools.js": "text/javascript; charset=utf-8",
    "virtual.js": "text/javascript; charset=utf-8",
};

/// Content security policy: only our own files, no frames, no form targets. Pictures and sounds of results are shown
/// through `blob:` addresses, which the page makes itself after the checks.
const CONSOLE_CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; \
                      media-src blob:; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Scripts that the page of the console does not load.
const SEPARATE_SCRIPTS: [&str; 3] = ["own-sign-in.js", "signed-in.js", "sw.js"];

/// Digest of all files, which is a part of the addresses of scripts and styles.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut context = Context::new(&SHA256);
    for file in STATIC_FILES.iter() {
        context.update(file.text.as_bytes());
    }
    hex::encode(&context.finish().as_ref()[..8])
});

impl StaticFile {
    fn prepared(&self) -> &PreparedFile {
        self.prepared.get_or_init(|| {
            let text = match self.name {
                "index.html" => Bytes::from(index_text(self.text)),
                _ => Bytes::from_static(self.text.as_bytes()),
            };
            let tag = digest(&SHA256, &text);
            PreparedFile {
                gzip: compress(&text),
                etag: format!("\"{}\"", hex::encode(&tag.as_ref()[..12])),
                text,
            }
        })
    }
}

/// Returns the page of the console with the addresses of its files. It names all scripts, so a browser fetches them at
/// once, and not as each script imports the next ones.
fn index_text(template: &str) -> String {
    let scripts = STATIC_FILES.iter().map(|file| file.name);
    let scripts = scripts.filter(|name| name.ends_with(".js") && !SEPARATE_SCRIPTS.contains(name));
    let preloads: Vec<String> = scripts
        .map(|name| format!("<link rel=\"modulepreload\" href=\"/console/{{version}}/{name}\">"))
        .collect();
    template
        .replace("{modules}", &preloads.join("\n"))
        .replace("{version}", &VERSION)
}

fn compress(bytes: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).ok()?;
    let packed = encoder.finish().ok()?;
    (packed.len() < bytes.len()).then(|| packed.into())
}

/// Returns the response to a request of a static file by name, or by version and name.
pub(crate) fn find_file(name: &str, request: &HeaderMap) -> Option<Response<Body>> {
    let (name, caching) = match name.split_once('/') {
        Some((version, name)) if *version == *VERSION => {
            (name, "public, max-age=31536000, immutable")
        }
        // The page of another version of the gateway must not mix its scripts with these.
        Some(_) => return None,
        None => (name, "no-cache"),
    };
    let file = STATIC_FILES.iter().find(|file| file.name == name)?;
    let prepared = file.prepared();
    let gzip = prepared.gzip.as_ref().filter(|_| accepts_gzip(request));
    let known = request.get(header::IF_NONE_MATCH);
    let unchanged = known.is_some_and(|known| known.as_bytes() == prepared.etag.as_bytes());
    let body = match (unchanged, gzip) {
        (true, _) => Body::full(""),
        (false, Some(gzip)) => Body::full(gzip.clone()),
        (false, None) => Body::full(prepared.text.clone()),
    };
    let mut response = Response::new(body);
    if unchanged {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_TYPE, file.media_type),
        (header::CONTENT_SECURITY_POLICY, CONSOLE_CSP),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, caching),
        (header::VARY, "accept-encoding"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(etag) = HeaderValue::from_str(&prepared.etag) {
        headers.insert(header::ETAG, etag);
    }
    if gzip.is_some() && !unchanged {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Some(response)
}

fn accepts_gzip(request: &HeaderMap) -> bool {
    let accepted = request.get_all(header::ACCEPT_ENCODING).iter();
    let mut codings = accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    codings.any(|coding| coding.trim() == "gzip")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    /// Maximum size of all files together as a browser gets them, in bytes.
    const MAX_COMPRESSED_BYTES: usize = 250_000;

    fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn all_files_together_are_small() {
        let packed = STATIC_FILES
            .iter()
            .map(|file| file.prepared().gzip.as_ref().unwrap().len());
        let sum: usize = packed.sum();
        eprintln!("{sum} bytes in {} files", STATIC_FILES.len());
        assert!(sum <= MAX_COMPRESSED_BYTES, "{sum}");
    }

    #[tokio::test]
    async fn a_browser_gets_a_file_compressed_and_only_once() {
        let accept = headers(&[(header::ACCEPT_ENCODING, "br, gzip")]);
        let first = find_file("app.js", &accept).unwrap();
        assert_eq!(first.headers()[header::CONTENT_ENCODING], "gzip");
        let etag = first.headers()[header::ETAG].to_str().unwrap().to_owned();
        let packed = first.into_body().collect().await.unwrap().to_bytes();
        assert!(packed.starts_with(&[0x1f, 0x8b]));
        let again = headers(&[
            (header::ACCEPT_ENCODING, "gzip"),
            (header::IF_NONE_MATCH, &etag),
        ]);
        let second = find_file("app.js", &again).unwrap();
        assert_eq!(second.status(), StatusCode::NOT_MODIFIED);
        assert!(
            second
                .headers()
                .contains_key(header::CONTENT_SECURITY_POLICY)
        );
        let plain = find_file("app.js", &HeaderMap::new()).unwrap();
        assert!(!plain.headers().contains_key(header::CONTENT_ENCODING));
        let text = plain.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(text, include_str!("assets/app.js"));
    }

    #[test]
    fn a_browser_keeps_scripts_of_this_version_and_gets_none_of_another() {
        let cached = |name: &str| {
            let response = find_file(name, &HeaderMap::new())?;
            Some(
                response.headers()[header::CACHE_CONTROL]
                    .to_str()
                    .unwrap()
                    .to_owned(),
            )
        };
        let page = index_text(include_str!("assets/index.html"));
        assert!(!page.contains('{'), "{page}");
        let loaded: Vec<&str> = page
            .split('"')
            .filter_map(|part| part.strip_prefix("/console/"))
            .filter(|name| name.contains('/'))
            .collect();
        assert!(loaded.len() > 40, "{loaded:?}");
        for name in loaded {
            assert!(cached(name).unwrap().contains("immutable"), "{name}");
        }
        assert_eq!(cached("index.html").unwrap(), "no-cache");
        assert_eq!(cached("sw.js").unwrap(), "no-cache");
        assert_eq!(cached("0123456789abcdef/app.js"), None);
    }

    /// Files that the page loads have to be in the table, or a part of the console is missing.
    #[test]
    fn every_imported_file_is_served() {
        let names: Vec<&str> = STATIC_FILES.iter().map(|file| file.name).collect();
        for file in STATIC_FILES.iter() {
            let quoted = file.text.split('"').filter(|part| {
                let own = part.strip_prefix("./").or(part.strip_prefix("/console/"));
                own.is_some_and(|name| name.ends_with(".js") || name.ends_with(".css"))
            });
            for part in quoted {
                let name = part.rsplit('/').next().unwrap();
                assert!(names.contains(&name), "{} loads {part}", file.name);
            }
        }
    }
}
