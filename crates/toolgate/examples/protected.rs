//! A server that takes tokens: its callers show one that an authorization server gave out for it, and have notes of their
//! own.
//!
//! `cargo run --example protected -- ISSUER [PORT]` serves on this machine and prints where. `ISSUER` is the address of the
//! authorization server, as its tokens name it. The example `sign_in` is a client for it.

#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use http::{Request, Response, StatusCode};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{
    collections::HashMap,
    convert::Infallible,
    env,
    error::Error,
    net::Ipv4Addr,
    sync::{Mutex, PoisonError},
};
use tokio::{net::TcpListener, task::JoinSet};
use toolgate::{
    Cx, HandlerExit, Http, Server,
    auth::{
        Url,
        resource::{ResourceServer, TrustedIssuer},
    },
    edge::http::Body,
    policy::{GlobPattern, RequiredScopes, ScopeRule},
    tools,
};

/// Most callers who have notes, and most notes of one.
const MOST: usize = 100;
/// Most connections at the same time.
const CONNECTIONS: usize = 100;

/// Notes, by the caller whose they are.
#[derive(Default)]
struct Notes(Mutex<HashMap<String, Vec<String>>>);

#[tools]
impl Notes {
    /// Reads your notes.
    #[tool(read_only, open_world = false)]
    async fn read(&self, cx: Cx) -> String {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // ISSUER:SUBJECT, as the token says.
        let own = all.get(cx.caller().name());
        own.map(|notes| notes.join("\n")).unwrap_or_default()
    }

    /// Writes a note.
    #[tool(destructive = false, open_world = false)]
    async fn write(
        &self,
        cx: Cx,
        /// What it says.
        text: String,
    ) -> Result<String, HandlerExit> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = cx.caller().name();
        let room = all.len() < MOST || all.contains_key(name);
        match room.then(|| all.entry(name.to_owned()).or_default()) {
            Some(own) if own.len() < MOST => own.push(text),
            _ => return Err(HandlerExit::new("there is no room for another note")),
        }
        Ok(format!("kept for {name}"))
    }
}

/// What a token has to be good for.
fn scopes() -> RequiredScopes {
    let needs = |tool: &str, scope: &str| {
        ScopeRule::new(vec![GlobPattern::new(tool)], vec![scope.to_owned()])
    };
    RequiredScopes::new(vec![
        needs("*.read", "notes:read"),
        needs("*.write", "notes:write"),
    ])
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let (issuer, port) = match words.as_slice() {
        [issuer] => (issuer, 0),
        [issuer, port] => (issuer, port.parse()?),
        _ => return Err("usage: protected ISSUER [PORT]".into()),
    };
    let issuer = Url::parse(issuer)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    // Tokens have to be for this address, to the letter: behind a proxy it is the one that clients use.
    let address = format!("http://{}/mcp", listener.local_addr()?);
    let resource = ResourceServer::new(Url::parse(&address)?)
        .issuer(TrustedIssuer::new("demo", issuer))
        .scopes(scopes().all());
    let metadata = resource.metadata_path();
    let server = Server::new("notes", "1.0.0")
        .tools(Notes::default())
        .scopes(scopes());
    let service = toolgate::http(server)?.protected(resource);
    println!("serves at {address}");
    serve(&listener, &service, &metadata).await
}

/// What a router would do: the server at its path, and its metadata where clients look for it.
async fn route(http: &Http, metadata: &str, request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path();
    if path == "/mcp" || path == metadata {
        return http.handle(request).await;
    }
    let mut response = Response::new(Body::full("nothing is here\n"));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

async fn serve(listener: &TcpListener, http: &Http, metadata: &str) -> Result<(), Box<dyn Error>> {
    let mut connections = JoinSet::new();
    loop {
        if connections.len() >= CONNECTIONS {
            connections.join_next().await;
        }
        let (stream, _) = listener.accept().await?;
        while connections.try_join_next().is_some() {}
        let (http, metadata) = (http.clone(), metadata.to_owned());
        connections.spawn(async move {
            let answer = service_fn(|request| async {
                Ok::<_, Infallible>(route(&http, &metadata, request).await)
            });
            // A connection that breaks is its client's affair.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}
