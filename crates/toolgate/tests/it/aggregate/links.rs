//! Links that were given in results.

use super::offer::{Hide, Offer, all, join, use_it, who};
use serde_json::json;
use std::sync::Arc;
use toolgate::{
    Call, Caller, Json, Service,
    aggregate::LinkLimits,
    core::{
        ChangeFilter, ErrorKind,
        ItemKind::{Resource, Template, Tool},
        Op, Pipeline,
    },
};

/// Calls a tool that answers with a link.
async fn given(service: &dyn Service, who: &str, tool: &str, uri: &str) {
    let arguments = Json::from_value(&json!({"link": uri}));
    let call = Call::tool("c1", Caller::new(who), tool, arguments);
    service.call(call).await.unwrap();
}

fn two() -> [Arc<Offer>; 2] {
    let a = Offer::new("a")
        .with(Tool, &["t"])
        .with(Resource, &["t://a"]);
    let b = Offer::new("b")
        .with(Tool, &["t"])
        .with(Template, &["t://b/{x}"]);
    [Arc::new(a), Arc::new(b)]
}

#[tokio::test]
async fn a_link_can_be_read_where_it_came_from_though_no_list_shows_it() {
    let [a, b] = two();
    let both = Arc::new(join(&[&a, &b]));
    let shown = Pipeline::new().resolve().service(both.clone());
    let services: [&dyn Service; 2] = [&*both, &shown];
    for (service, uri) in services.into_iter().zip(["l://1", "l://2"]) {
        let error = use_it(service, Op::Resource, uri).await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::NotFound, "before it was given");
        given(service, "test", "b_t", uri).await;
        assert_eq!(use_it(service, Op::Resource, uri).await.unwrap(), "b");
        for kind in [Resource, Template] {
            let listed = service.list(all(kind)).await.unwrap();
            assert!(listed.find(uri).is_none());
        }
    }
    let mut want = ChangeFilter::all_lists(who());
    want.uris = vec!["l://1".to_owned()];
    let _changes = shown.changes(want).await.unwrap();
    assert_eq!((a.heard().len(), b.heard()), (0, vec!["l://1".to_owned()]));
}

#[tokio::test]
async fn another_caller_cannot_read_it() {
    let [a, b] = two();
    let shown = Pipeline::new().resolve().service(Arc::new(join(&[&a, &b])));
    given(&shown, "somebody else", "b_t", "l://1").await;
    let error = use_it(&shown, Op::Resource, "l://1").await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::NotFound);
    assert_eq!(b.called(), ["t"]);
}

#[tokio::test]
async fn a_link_takes_nothing_from_those_who_list_the_uri() {
    let [a, b] = two();
    let shown = Pipeline::new().resolve().service(Arc::new(join(&[&a, &b])));
    given(&shown, "test", "b_t", "t://a").await;
    assert_eq!(use_it(&shown, Op::Resource, "t://a").await.unwrap(), "a");
    given(&shown, "test", "a_t", "t://b/1").await;
    assert_eq!(use_it(&shown, Op::Resource, "t://b/1").await.unwrap(), "b");
}

/// A hidden resource stays hidden, even if a result links to it.
#[tokio::test]
async fn hidden_servers_stay_hidden() {
    let [a, b] = two();
    let both: Arc<dyn Service> = Arc::new(join(&[&a, &b]));
    given(&*both, "test", "b_t", "l://1").await;
    let shown = Pipeline::new().resolve().rule(Hide("b")).service(both);
    let error = use_it(&shown, Op::Resource, "l://1").await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::NotFound);
    assert_eq!(b.called(), ["t"]);
}

#[tokio::test]
async fn the_limits_can_be_set() {
    let [a, b] = two();
    let mut limits = LinkLimits::default();
    limits.per_caller = 1;
    let both = join(&[&a, &b]).links(limits);
    given(&both, "test", "b_t", "l://1").await;
    given(&both, "test", "b_t", "l://2").await;
    assert!(
        use_it(&both, Op::Resource, "l://1").await.is_err(),
        "one over"
    );
    assert_eq!(use_it(&both, Op::Resource, "l://2").await.unwrap(), "b");
}
