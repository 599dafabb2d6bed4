//! An axum application with an MCP endpoint under `/mcp`: shared state, authentication as middleware, and a graceful
//! shutdown.
//!
//! `cargo run --example axum_app` prints its address and serves until Ctrl-C or SIGTERM. Clients of every protocol
//! revision connect to `/mcp`; those of 2024-11-05 connect to `/mcp/sse`.
#![allow(clippy::print_stdout, reason = "the output of the program")]

use axum::{
    Router,
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use std::{
    collections::HashMap,
    net::Ipv4Addr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{net::TcpListener, sync::Notify};
use toolgate::{Cx, Http, Server, core::Caller, tools};

/// State that the routes of the application and the tools share.
#[derive(Clone)]
struct App {
    /// Names of the callers by their API keys.
    keys: Arc<HashMap<String, String>>,
    notes: Arc<Mutex<Vec<String>>>,
    stopping: Arc<Notify>,
}

impl App {
    fn notes(&self) -> MutexGuard<'_, Vec<String>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Notes(App);

#[tools]
impl Notes {
    /// Adds a note, signed with your name.
    #[tool(destructive = false, open_world = false)]
    fn add(&self, text: String, cx: Cx) -> String {
        let note = format!("{}: {text}", cx.caller().name());
        self.0.notes().push(note.clone());
        note
    }

    /// Collects notes until the application stops, then returns their number.
    #[tool(read_only, open_world = false)]
    async fn collect(&self, cx: Cx) -> String {
        let stopping = self.0.stopping.notified();
        cx.progress(0.0, None, "collecting");
        stopping.await;
        self.0.notes().len().to_string()
    }
}

/// Response to a request without a known API key, with the scheme that a client has to use.
fn unauthorized() -> Response {
    let scheme = [(header::WWW_AUTHENTICATE, "Bearer")];
    let text = "send a valid API key as bearer token\n";
    (StatusCode::UNAUTHORIZED, scheme, text).into_response()
}

/// Middleware that rejects requests without a known API key, and tells the MCP server who calls.
async fn authenticate(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let header = request.headers().get(header::AUTHORIZATION);
    let key = header.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let Some(name) = key.and_then(|key| app.keys.get(key)) else {
        return unauthorized();
    };
    request.extensions_mut().insert(Caller::new(name.as_str()));
    next.run(request).await
}

/// A route beside the MCP endpoint: the number of notes.
async fn count(State(app): State<App>) -> String {
    app.notes().len().to_string()
}

fn router(app: App, mcp: Http) -> Router {
    Router::new()
        .nest_service("/mcp", mcp)
        .route_layer(middleware::from_fn_with_state(app.clone(), authenticate))
        // Routes after the layer need no key.
        .route("/count", get(count))
        .with_state(app)
}

/// Waits for Ctrl-C or SIGTERM, then ends notification streams, which would keep their connections open.
async fn shutdown(app: App, mcp: Http) {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let terminate = signal(SignalKind::terminate());
        let terminate = async {
            match terminate {
                Ok(mut terminate) => terminate.recv().await,
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate => {}
        }
    }
    #[cfg(not(unix))]
    let _ = tokio::signal::ctrl_c().await;
    mcp.shut_down();
    app.stopping.notify_waiters();
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keys = [("key-of-anna", "anna"), ("key-of-ben", "ben")];
    let app = App {
        keys: Arc::new(keys.map(|(key, name)| (key.into(), name.into())).into()),
        notes: Arc::default(),
        stopping: Arc::default(),
    };
    let mcp = toolgate::http(Server::new("notes", "1.0.0").tools(Notes(app.clone())))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("serves at http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, router(app.clone(), mcp.clone()))
        .with_graceful_shutdown(shutdown(app, mcp))
        .await?;
    Ok(())
}
