//! Tools, prompts, resources and templates as methods of one type, in several blocks, and as functions.

#![deny(
    missing_debug_implementations,
    missing_docs,
    unreachable_pub,
    clippy::pedantic
)]
#![allow(
    clippy::needless_pass_by_value,
    clippy::similar_names,
    clippy::unused_async,
    reason = "the methods stay as they are written, and here nothing is waited for"
)]

use super::peer::{NEWEST_REVISION, Peer};
use serde::Serialize;
use serde_json::{Value, json};
use std::{
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};
use toolgate::{
    Cx, Server, Structured, ToolError,
    handlers::{ItemSet, ResourceContents},
    resource, template, tools,
};

/// Shelf that implements only `FromStr`.
#[derive(Debug, PartialEq)]
struct Shelf(char);

impl FromStr for Shelf {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Shelf, &'static str> {
        let mut letters = text.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => Ok(Shelf(letter)),
            _ => Err("expected one letter"),
        }
    }
}

#[derive(Serialize)]
struct Book {
    shelf: String,
    place: u8,
}

#[derive(Default)]
struct Library<T> {
    loans: AtomicU32,
    _more: T,
}

#[tools]
impl<T: Send + Sync + 'static> Library<T> {
    /// Lends a book.
    #[tool]
    fn lend(&self) -> String {
        (self.loans.fetch_add(1, Ordering::Relaxed) + 1).to_string()
    }

    /// Asks for a book.
    #[prompt(title = "Ask")]
    async fn ask(&self, place: u8) -> String {
        format!("{} loans, place {place}", self.count())
    }

    /// Number of loans.
    #[resource("library:///loans", mime = "text/plain", title = "Loans")]
    async fn loans(&self, cx: Cx) -> Result<String, ToolError> {
        match self.count() {
            0 => Err(ToolError::not_found(format!(
                "no loans for {}",
                cx.caller()
            ))),
            loans => Ok(loans.to_string()),
        }
    }

    /// Book at a place.
    #[template("library:///{shelf}/{place}{?count}")]
    fn volume(&self, place: u8, count: Option<u32>, shelf: Shelf) -> Structured<Book> {
        let text = format!("{} {:?} {}", shelf.0, count, self.count());
        Structured(Book { shelf: text, place })
    }

    #[cfg(any())]
    #[resource("library:///none")]
    fn not_there(&self) -> Nothing {}

    fn count(&self) -> u32 {
        self.loans.load(Ordering::Relaxed)
    }
}

mod covers {
    use super::{Library, Ordering};
    use toolgate::tools;

    #[tools(pub(super) fn covers)]
    impl<T: Send + Sync + 'static> Library<T> {
        /// Picture on a cover.
        #[template("cover:///{+path}", name = "cover", mime = "image/png")]
        async fn picture(&self, path: String) -> Vec<u8> {
            let loans = u8::try_from(self.loans.load(Ordering::Relaxed)).unwrap();
            path.bytes().chain([loans]).collect()
        }

        /// Forgets all loans.
        #[tool(idempotent)]
        fn forget(&self) {
            self.loans.store(0, Ordering::Relaxed);
        }
    }
}

/// Terms of the library.
#[resource("library:///terms")]
fn terms() -> &'static str {
    "Be quiet."
}

/// Part of the terms.
#[template("library:///terms/part/{part.name}", description = "One part.")]
async fn part(#[serde(rename = "part.name")] kind: String) -> ResourceContents {
    ResourceContents::text(kind).mime("text/markdown")
}

async fn peer() -> Peer {
    let library = Arc::new(Library::<()>::default());
    let server = Server::new("library", "1")
        .tools(library.clone())
        .tools(library.covers())
        .tools(ItemSet::new().resource(terms))
        .template(part);
    Peer::open(&server.build().unwrap(), NEWEST_REVISION, json!({})).await
}

async fn read(peer: &mut Peer, uri: &str) -> Value {
    let result = peer.result("resources/read", json!({"uri": uri})).await;
    result["contents"].clone()
}

#[tokio::test]
async fn declares_resources_and_templates_of_all_blocks() {
    let mut peer = peer().await;
    let listed = peer.result("resources/list", json!({})).await;
    assert_eq!(
        listed["resources"],
        json!([
            {"uri": "library:///loans", "name": "loans", "title": "Loans", "description": "Number of loans.", "mimeType": "text/plain"},
            {"uri": "library:///terms", "name": "terms", "description": "Terms of the library."},
        ])
    );
    let listed = peer.result("resources/templates/list", json!({})).await;
    assert_eq!(
        listed["resourceTemplates"],
        json!([
            {"uriTemplate": "library:///{shelf}/{place}{?count}", "name": "volume", "description": "Book at a place.", "mimeType": "application/json"},
            {"uriTemplate": "cover:///{+path}", "name": "cover", "description": "Picture on a cover.", "mimeType": "image/png"},
            {"uriTemplate": "library:///terms/part/{part.name}", "name": "part", "description": "One part."},
        ])
    );
    let listed = peer.result("tools/list", json!({})).await;
    let names = listed["tools"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["lend", "forget"]);
    let listed = peer.result("prompts/list", json!({})).await;
    assert_eq!(listed["prompts"][0]["title"], "Ask");
}

#[tokio::test]
async fn methods_of_all_blocks_share_one_state() {
    let mut peer = peer().await;
    for _ in 0..3 {
        peer.result("tools/call", json!({"name": "lend"})).await;
    }
    let loans = json!([{"uri": "library:///loans", "mimeType": "text/plain", "text": "3"}]);
    assert_eq!(read(&mut peer, "library:///loans").await, loans);
    let book = json!([{"uri": "library:///a/7", "mimeType": "application/json",
        "text": r#"{"shelf":"a None 3","place":7}"#}]);
    assert_eq!(read(&mut peer, "library:///a/7").await, book);
    let asked = json!({"name": "ask", "arguments": {"place": "9"}});
    let asked = peer.result("prompts/get", asked).await;
    let text = &asked["messages"][0]["content"]["text"];
    assert_eq!(text, "3 loans, place 9");
    let picture = json!([{"uri": "cover:///x/y", "mimeType": "image/png", "blob": "eC95Aw=="}]);
    assert_eq!(read(&mut peer, "cover:///x/y").await, picture);
}

#[tokio::test]
async fn reads_functions_as_resources() {
    let mut peer = peer().await;
    let terms = json!([{"uri": "library:///terms", "text": "Be quiet."}]);
    assert_eq!(read(&mut peer, "library:///terms").await, terms);
    let uri = "library:///terms/part/a%20b";
    let part = json!([{"uri": uri, "mimeType": "text/markdown", "text": "a%20b"}]);
    assert_eq!(read(&mut peer, uri).await, part, "not decoded");
}

#[tokio::test]
async fn variables_have_the_types_of_their_parameters() {
    let mut peer = peer().await;
    let contents = read(&mut peer, "library:///e/255?count=12").await;
    let text = contents[0]["text"].as_str().unwrap();
    assert_eq!(text, r#"{"shelf":"e Some(12) 0","place":255}"#);
    for (uri, reason) in [
        (
            "library:///a/256",
            "variable `place`: expected a whole number from 0 to 255",
        ),
        ("library:///ab/1", "variable `shelf`: expected one letter"),
        (
            "library:///a/1?count=x",
            "variable `count`: expected a whole number from 0 to 4294967295",
        ),
    ] {
        let error = peer.error("resources/read", json!({"uri": uri})).await;
        let message = error["message"].as_str().unwrap();
        assert_eq!(message, format!("unknown resource: {uri}: {reason}"));
    }
}

#[tokio::test]
async fn errors_of_resources_keep_their_kind() {
    let mut peer = peer().await;
    let uri = json!({"uri": "library:///loans"});
    let error = peer.error("resources/read", uri).await;
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("no loans for "), "{message}");
}
