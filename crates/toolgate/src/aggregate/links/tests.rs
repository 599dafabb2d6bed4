use super::*;
use toolgate_core::{
    BoxFuture, Call, Catalog, ChangeFilter, ChangeStream, Error, ListRequest, ToolResult,
};

struct Nobody;

impl Service for Nobody {
    fn list(&self, _: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        Box::pin(async { Ok(Catalog::default()) })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move { Err(call.unknown_item_error()) })
    }

    fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(std::future::pending())
    }
}

fn result(uris: &[&str]) -> Outcome {
    Outcome::Done(Output::Tool(ToolResult {
        content: uris.iter().map(|uri| Content::link(uri, "n")).collect(),
        ..ToolResult::default()
    }))
}

fn origin() -> Origin {
    Origin {
        server: "a".into(),
        trusted: true,
    }
}

fn links(per_caller: usize, callers: usize) -> ResourceLinkMemory {
    let limits = LinkLimits {
        per_caller,
        callers,
        max_uri_bytes: 10,
    };
    ResourceLinkMemory {
        limits,
        ..ResourceLinkMemory::default()
    }
}

fn note(links: &ResourceLinkMemory, who: &str, uris: &[&str]) {
    let of: Arc<dyn Service> = Arc::new(Nobody);
    links.remember(&Caller::new(who), &of, &origin(), &result(uris));
}

fn has(links: &ResourceLinkMemory, who: &str, uri: &str) -> bool {
    links.find(&Caller::new(who), uri).is_some()
}

#[test]
fn one_link_too_many_forgets_the_oldest() {
    let links = links(2, 9);
    note(&links, "one", &["t:1", "t:2"]);
    note(&links, "one", &["t:1"]);
    note(&links, "one", &["t:3"]);
    assert!(has(&links, "one", "t:1") && has(&links, "one", "t:3"));
    assert!(!has(&links, "one", "t:2"), "given again, it counts anew");
}

#[test]
fn one_caller_too_many_forgets_the_oldest() {
    let links = links(9, 2);
    for who in ["one", "two", "one", "three"] {
        note(&links, who, &["t:1"]);
    }
    assert!(has(&links, "one", "t:1") && has(&links, "three", "t:1"));
    assert!(!has(&links, "two", "t:1"));
}

#[test]
fn a_uri_that_is_too_long_is_not_kept() {
    let links = links(9, 9);
    note(&links, "one", &["t:90123456", "t:901234567"]);
    assert!(has(&links, "one", "t:90123456") && !has(&links, "one", "t:901234567"));
}

#[test]
fn nothing_is_kept_where_nothing_may_be() {
    let links = links(0, 9);
    note(&links, "one", &["t:1"]);
    assert!(!has(&links, "one", "t:1"));
}

#[test]
fn a_link_is_of_the_service_that_gave_it() {
    let of: Arc<dyn Service> = Arc::new(Nobody);
    let links = links(2, 9);
    links.remember(&Caller::new("one"), &of, &origin(), &result(&["t:1"]));
    let mut after = ResourceLinkMemory::default();
    after.share_memory(&links);
    let link = after.find(&Caller::new("one"), "t:1").unwrap();
    assert!(link.is_from(&of));
    assert!(!link.is_from(&(Arc::new(Nobody) as Arc<dyn Service>)));
}
