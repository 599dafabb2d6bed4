//! A schema is compiled once, however often it is listed and used.

use super::COMPILED;
use crate::{Policy, SchemaBounds, SchemaSanitizer, check_item_schemas};
use serde_json::json;
use std::sync::Arc;
use toolgate_core::{
    BoxFuture, Call, Caller, Catalog, ChangeFilter, ChangeStream, Definition, Error, Item,
    ItemKind, Json, ListRequest, Op, Origin, Outcome, Output, Sanitizer, Service, UntrustedContent,
};

/// Returns a tool with two schemas that no other tool has.
fn tool(name: &str, number: usize) -> Item {
    let tool = json!({
        "name": name,
        "inputSchema": {"type": "object", "properties": {"once": {"maximum": number}}},
        "outputSchema": {"type": "object", "properties": {"once": {"minimum": number}}},
    });
    let origin = Origin {
        server: "demo".into(),
        trusted: true,
    };
    let tool = Definition::tool(Json::from_value(&tool)).unwrap();
    Item::new(origin, tool)
}

/// A server that lists its tools on each request: new items with equal definitions.
struct Forgetful;

impl Service for Forgetful {
    fn list(&self, _: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        let items = (0..TOOLS).map(|number| Arc::new(tool(&format!("t{number}"), number)));
        let catalog = Catalog::new(items.collect());
        Box::pin(async { Ok(catalog) })
    }

    fn call(&self, _: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        let output = Output::read(
            Op::Tool,
            &Json::from_value(&json!({"content": [], "structuredContent": {"once": 50}})),
        )
        .unwrap();
        Box::pin(async { Ok(Outcome::Done(output)) })
    }

    fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(std::future::pending())
    }
}

const TOOLS: usize = 50;
const TIMES: usize = 200;

#[tokio::test]
#[allow(clippy::print_stdout, reason = "the figures of the test")]
async fn a_schema_is_compiled_once() {
    let before = COMPILED.get();
    let pipeline = Policy::default().over(Arc::new(Forgetful));
    let caller = Caller::new("key:test");
    for time in 0..TIMES {
        let listed = pipeline
            .list(ListRequest::all(caller.clone(), ItemKind::Tool))
            .await
            .unwrap();
        assert_eq!(listed.items().len(), TOOLS);
        let arguments = Json::from_value(&json!({"once": 0}));
        let call = Call::tool(format!("c{time}"), caller.clone(), "t7", arguments);
        pipeline.call(call).await.unwrap();
    }
    let compiled = COMPILED.get() - before;
    println!("schemas: {compiled} compiled for {TOOLS} tools in {TIMES} lists and {TIMES} calls");
    assert_eq!(compiled, 2 * TOOLS);
}

#[test]
fn the_schemas_that_an_author_checked_are_not_compiled_again_for_the_list() {
    let before = COMPILED.get();
    let item = Arc::new(tool("checked", 1_000));
    check_item_schemas(&item, &SchemaBounds::default()).unwrap();
    assert_eq!(COMPILED.get() - before, 2);
    let mut listed = Arc::new(item.with_def(item.def.clone()));
    let content = UntrustedContent::Item(&mut listed);
    SchemaSanitizer::default()
        .sanitize(None, None, content)
        .unwrap();
    assert_eq!(COMPILED.get() - before, 2);
}
