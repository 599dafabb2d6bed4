//! Loopback redirect: a browser sign-in whose redirect arrives at a temporary port of this machine.
//!
//! Source: RFC 8252, sections 7.3 and 8.3.

use super::{AuthError, AuthErrorKind, PendingSignIn, SignIn};
use crate::{Secret, Url};
use futures_util::future::{BoxFuture, select_all};
use std::{
    future::pending,
    io,
    net::{Ipv4Addr, SocketAddr},
    pin::Pin,
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::yield_now,
    time::{sleep, timeout},
};

const CALLBACK_PATH: &str = "/callback";
/// Maximum size of a request head in bytes.
const MAX_REQUEST_HEAD_BYTES: usize = 16 << 10;
/// Timeout of one redirect request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of concurrent connections.
const MAX_CONNECTIONS: usize = 64;
/// Delay after a failed `accept`.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

type OpenUrlFn = dyn Fn(&Url) + Send + Sync;
type ReportIssuerFn = dyn Fn(&str) + Send + Sync;

/// Browser sign-in with a loopback redirect: opens a URL and receives the redirect at a local port. The port is open
/// only meanwhile. Requests without the `state` of this sign-in are rejected and change nothing.
#[derive(Clone)]
pub struct LoopbackBrowser {
    open: Arc<OpenUrlFn>,
    report_issuer: Arc<ReportIssuerFn>,
    timeout: Duration,
    port: Option<u16>,
}

impl LoopbackBrowser {
    /// Creates a browser sign-in from a function that opens or shows the authorization URL. The URL is `https`, or
    /// `http` on this machine, and has no character that a terminal or a shell interprets. Pass it to a program as one
    /// argument, without a shell.
    pub fn new(open: impl Fn(&Url) + Send + Sync + 'static) -> LoopbackBrowser {
        LoopbackBrowser {
            open: Arc::new(open),
            report_issuer: Arc::new(|_| ()),
            timeout: Duration::from_secs(5 * 60),
            port: None,
        }
    }

    /// Sets a function that gets the issuer identifier of the authorization server before the URL opens. The URL may be
    /// on another host. The identifier comes from the network.
    #[must_use]
    pub fn on_issuer(self, report: impl Fn(&str) + Send + Sync + 'static) -> LoopbackBrowser {
        let report = Arc::new(report);
        LoopbackBrowser {
            report_issuer: report,
            ..self
        }
    }

    /// Sets the loopback port of the redirect URI; a free port by default. Use it behind a tunnel, or if the
    /// authorization server knows only one redirect URI.
    #[must_use]
    pub fn port(self, port: u16) -> LoopbackBrowser {
        let port = Some(port);
        LoopbackBrowser { port, ..self }
    }

    /// Sets the timeout of the browser sign-in; 5 minutes by default.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> LoopbackBrowser {
        LoopbackBrowser { timeout, ..self }
    }
}

impl SignIn for LoopbackBrowser {
    fn begin<'a>(
        &'a self,
        wanted: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn PendingSignIn>, AuthError>> {
        Box::pin(async move {
            let listener = listen(wanted, self.port).await.map_err(|error| {
                let words = match self.port {
                    Some(port) => format!(
                        "port {port} of this machine cannot be opened for the redirect: {error}; free the port, or configure another one"
                    ),
                    None => format!(
                        "no port on this machine can be opened for the redirect: {error}; sign in on another machine"
                    ),
                };
                AuthError::new(AuthErrorKind::Unsupported, words)
            })?;
            let (listener, address) = listener;
            Ok(Box::new(LoopbackRedirect {
                redirect: format!("http://{address}{CALLBACK_PATH}"),
                listener,
                browser: self.clone(),
            }) as Box<dyn PendingSignIn>)
        })
    }
}

/// Binds the requested port, else the previous one if it is free (some authorization servers accept only one redirect
/// URI), else any free port.
async fn listen(wanted: Option<&str>, port: Option<u16>) -> io::Result<(TcpListener, SocketAddr)> {
    if let Some(port) = port {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        return Ok((listener, address));
    }
    let port = wanted.and_then(|wanted| Url::parse(wanted).ok());
    let port = port
        .filter(|url| url.host() == "127.0.0.1")
        .map(|url| url.port());
    if let Some(port) = port
        && let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
    {
        let address = listener.local_addr()?;
        return Ok((listener, address));
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

struct LoopbackRedirect {
    listener: TcpListener,
    redirect: String,
    browser: LoopbackBrowser,
}

impl PendingSignIn for LoopbackRedirect {
    fn redirect_uri(&self) -> &str {
        &self.redirect
    }

    fn announce_issuer(&mut self, issuer: &str) {
        (self.browser.report_issuer)(issuer);
    }

    fn open_and_wait(self: Box<Self>, url: Url) -> BoxFuture<'static, Result<String, AuthError>> {
        Box::pin(async move {
            let host = self
                .redirect
                .trim_start_matches("http://")
                .trim_end_matches(CALLBACK_PATH);
            let query = form_urlencoded::parse(url.query().unwrap_or_default().as_bytes());
            let state = query.into_iter().find(|(key, _)| key == "state");
            let state = state.map(|(_, value)| Secret::new(value.into_owned()));
            (self.browser.open)(&url);
            match timeout(
                self.browser.timeout,
                wait_for_redirect(&self.listener, host, state.as_ref()),
            )
            .await
            {
                Ok(query) => Ok(query),
                Err(_) => Err(AuthError::new(
                    AuthErrorKind::NeedsSignIn,
                    format!(
                        "the sign-in was not completed within {} s; try again",
                        self.browser.timeout.as_secs_f64()
                    ),
                )),
            }
        })
    }
}

/// Waits for the redirect. Reads all connections concurrently: browsers open connections in advance, and an idle
/// connection must not block. The number of foreign requests is unlimited because none can guess the `state`.
async fn wait_for_redirect(listener: &TcpListener, host: &str, state: Option<&Secret>) -> String {
    let mut visitors: Vec<Pin<Box<dyn Future<Output = Option<String>> + Send + '_>>> = Vec::new();
    loop {
        tokio::select! {
            biased;
            (query, at) = next_finished(&mut visitors) => {
                drop(visitors.remove(at));
                if let Some(query) = query {
                    return query;
                }
            }
            visitor = listener.accept() => match visitor {
                Ok((stream, _)) => {
                    if visitors.len() >= MAX_CONNECTIONS {
                        // The oldest idle connection is evicted.
                        drop(visitors.remove(0));
                    }
                    visitors.push(Box::pin(serve_connection(stream, host, state)));
                    // Reads what the connection already sent before it can become the oldest.
                    yield_now().await;
                }
                // For example with too many open files.
                Err(_) => sleep(ACCEPT_RETRY_DELAY).await,
            },
        }
    }
}

/// Returns the output of the next finished future and its index.
async fn next_finished<F: Future + Unpin>(visitors: &mut [F]) -> (F::Output, usize) {
    if visitors.is_empty() {
        return pending().await;
    }
    let (done, at, _) = select_all(visitors.iter_mut()).await;
    (done, at)
}

/// Serves one connection. Returns the query if it is the redirect of this sign-in.
async fn serve_connection(
    mut stream: TcpStream,
    host: &str,
    state: Option<&Secret>,
) -> Option<String> {
    let head = timeout(REQUEST_TIMEOUT, read_head(&mut stream))
        .await
        .ok()
        .flatten();
    let query = head.as_deref().and_then(|head| callback_query(head, host));
    let ours = query.filter(|query| {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let sent = pairs.find(|(key, _)| key == "state");
        matches!((sent, state), (Some((_, sent)), Some(state)) if state.matches(&sent))
    });
    let page = match ours {
        Some(_) => (
            "200 OK",
            "The response to the sign-in has arrived. You can close this page.",
        ),
        None => (
            "400 Bad Request",
            "This is not the expected response to the sign-in. Close this page and start the sign-in again.",
        ),
    };
    if head.is_some() {
        let _ = timeout(
            REQUEST_TIMEOUT,
            stream.write_all(http_response(page).as_bytes()),
        )
        .await;
    }
    let _ = stream.shutdown().await;
    ours.map(str::to_owned)
}

/// Reads the head of a request.
async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut part = [0; 2048];
        let read = stream.read(&mut part).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&part[..read]);
        if bytes.len() > MAX_REQUEST_HEAD_BYTES {
            return None;
        }
    }
    String::from_utf8(bytes).ok()
}

/// Returns the query of a `GET` request for the callback path with our `Host`.
fn callback_query<'a>(head: &'a str, host: &str) -> Option<&'a str> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let (path, query) = target.split_once('?')?;
    // DNS rebinding: a page under another name that leads to this port is rejected.
    let named = lines.filter_map(|line| line.split_once(':'));
    let mut named = named.filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    let ours =
        named.next().is_some_and(|(_, value)| value.trim() == host) && named.next().is_none();
    (method == "GET" && path == CALLBACK_PATH && ours).then_some(query)
}

fn http_response((status, words): (&str, &str)) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{words}",
        words.len()
    )
}
