//! Where a person comes back to: one page on this machine, open as long as a sign-in lasts.
//!
//! Source: RFC 8252, sections 7.3 and 8.3.

use super::{AuthError, AuthErrorKind, SignIn, Visit};
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

const PATH: &str = "/callback";
/// Longest request that is read.
const HEAD: usize = 16 << 10;
/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(5);
/// Most connections that are read at the same time.
const AT_ONCE: usize = 64;
/// How long is waited where none can be taken.
const PAUSE: Duration = Duration::from_millis(100);

type Open = dyn Fn(&Url) + Send + Sync;
type Tell = dyn Fn(&str) + Send + Sync;

/// Signs a person in by a browser: an address is shown or opened, and the answer comes to a port on loopback that is
/// open only meanwhile. What does not carry the state of this sign-in is turned away and changes nothing.
#[derive(Clone)]
pub struct Browser {
    open: Arc<Open>,
    tell: Arc<Tell>,
    wait: Duration,
    port: Option<u16>,
}

impl Browser {
    /// One that calls a function with the address. It is `https`, or `http` on this machine, and has no sign that a
    /// terminal or a shell would read. A function that starts a program gives it as one argument, and to no shell.
    pub fn new(open: impl Fn(&Url) + Send + Sync + 'static) -> Browser {
        Browser {
            open: Arc::new(open),
            tell: Arc::new(|_| ()),
            wait: Duration::from_secs(5 * 60),
            port: None,
        }
    }

    /// The same, which first tells which authorization server it is, as that names itself: the address may be elsewhere.
    /// What it is told comes from the network.
    #[must_use]
    pub fn telling(self, tell: impl Fn(&str) + Send + Sync + 'static) -> Browser {
        let tell = Arc::new(tell);
        Browser { tell, ..self }
    }

    /// The same with the answer at this port, and at no other: for who comes from another machine through a tunnel, and
    /// where the authorization server knows one address only.
    #[must_use]
    pub fn port(self, port: u16) -> Browser {
        let port = Some(port);
        Browser { port, ..self }
    }

    /// The same with another time that the person has; 5 minutes unless set.
    #[must_use]
    pub fn wait(self, wait: Duration) -> Browser {
        Browser { wait, ..self }
    }
}

impl SignIn for Browser {
    fn begin<'a>(
        &'a self,
        wanted: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn Visit>, AuthError>> {
        Box::pin(async move {
            let listener = listen(wanted, self.port).await.map_err(|error| {
                let port = match self.port {
                    Some(port) => format!("the port {port} of this machine cannot"),
                    None => "no port on this machine can".to_owned(),
                };
                let words = format!("{port} be opened for the answer: {error}");
                AuthError::new(AuthErrorKind::Unsupported, words)
            })?;
            let (listener, address) = listener;
            Ok(Box::new(Waiting {
                redirect: format!("http://{address}{PATH}"),
                listener,
                browser: self.clone(),
            }) as Box<dyn Visit>)
        })
    }
}

/// The port that was asked for; else the one that was used before, where it is free: some authorization servers know one
/// address only.
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

struct Waiting {
    listener: TcpListener,
    redirect: String,
    browser: Browser,
}

impl Visit for Waiting {
    fn redirect(&self) -> &str {
        &self.redirect
    }

    fn issuer(&mut self, issuer: &str) {
        (self.browser.tell)(issuer);
    }

    fn go(self: Box<Self>, url: Url) -> BoxFuture<'static, Result<String, AuthError>> {
        Box::pin(async move {
            let host = self
                .redirect
                .trim_start_matches("http://")
                .trim_end_matches(PATH);
            let query = form_urlencoded::parse(url.query().unwrap_or_default().as_bytes());
            let state = query.into_iter().find(|(key, _)| key == "state");
            let state = state.map(|(_, value)| Secret::new(value.into_owned()));
            (self.browser.open)(&url);
            match timeout(
                self.browser.wait,
                hear(&self.listener, host, state.as_ref()),
            )
            .await
            {
                Ok(query) => Ok(query),
                Err(_) => Err(AuthError::new(
                    AuthErrorKind::NeedsSignIn,
                    format!("nobody signed in within {:?}; try again", self.browser.wait),
                )),
            }
        })
    }
}

/// Waits for the one request. All that is connected is read at the same time: browsers open connections in advance, and
/// whoever says nothing must not be waited for. How many strangers come does not count, as none can guess a state.
async fn hear(listener: &TcpListener, host: &str, state: Option<&Secret>) -> String {
    let mut visitors: Vec<Pin<Box<dyn Future<Output = Option<String>> + Send + '_>>> = Vec::new();
    loop {
        tokio::select! {
            biased;
            (query, at) = next(&mut visitors) => {
                drop(visitors.remove(at));
                if let Some(query) = query {
                    return query;
                }
            }
            visitor = listener.accept() => match visitor {
                Ok((stream, _)) => {
                    if visitors.len() >= AT_ONCE {
                        // The one that has said nothing for the longest time.
                        drop(visitors.remove(0));
                    }
                    visitors.push(Box::pin(visit(stream, host, state)));
                    // What it said already is read before it can be the oldest.
                    yield_now().await;
                }
                // As where there are too many open files.
                Err(_) => sleep(PAUSE).await,
            },
        }
    }
}

/// The next visitor who is through, and at which place.
async fn next<F: Future + Unpin>(visitors: &mut [F]) -> (F::Output, usize) {
    if visitors.is_empty() {
        return pending().await;
    }
    let (done, at, _) = select_all(visitors.iter_mut()).await;
    (done, at)
}

/// One connection: its query, where it is the one that is waited for.
async fn visit(mut stream: TcpStream, host: &str, state: Option<&Secret>) -> Option<String> {
    let head = timeout(REQUEST, head(&mut stream)).await.ok().flatten();
    let query = head.as_deref().and_then(|head| asked(head, host));
    let ours = query.filter(|query| {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let sent = pairs.find(|(key, _)| key == "state");
        matches!((sent, state), (Some((_, sent)), Some(state)) if state.is(&sent))
    });
    let page = match ours {
        Some(_) => ("200 OK", "The answer has arrived. You can close this page."),
        None => (
            "400 Bad Request",
            "This is not the answer that is waited for.",
        ),
    };
    if head.is_some() {
        let _ = timeout(REQUEST, stream.write_all(answer(page).as_bytes())).await;
    }
    let _ = stream.shutdown().await;
    ours.map(str::to_owned)
}

/// The head of a request.
async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut part = [0; 2048];
        let read = stream.read(&mut part).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&part[..read]);
        if bytes.len() > HEAD {
            return None;
        }
    }
    String::from_utf8(bytes).ok()
}

/// The query of a request for our page, under our name.
fn asked<'a>(head: &'a str, host: &str) -> Option<&'a str> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let (path, query) = target.split_once('?')?;
    // A page of another name that leads here is not ours.
    let named = lines.filter_map(|line| line.split_once(':'));
    let mut named = named.filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    let ours =
        named.next().is_some_and(|(_, value)| value.trim() == host) && named.next().is_none();
    (method == "GET" && path == PATH && ours).then_some(query)
}

fn answer((status, words): (&str, &str)) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{words}",
        words.len()
    )
}
