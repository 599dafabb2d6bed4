//! Change notifications and their receivers.

use super::offer::{Hide, Offer, join, who};
use futures_util::FutureExt;
use std::{sync::Arc, time::Duration};
use toolgate::{
    Service,
    core::{
        ChangeCounters, ChangeFilter, ChangeSet, ChangeStream,
        ItemKind::{self, Prompt, Resource, Template, Tool},
        Pipeline,
    },
};

async fn hear(service: &dyn Service, lists: &[ItemKind], uris: &[&str]) -> ChangeStream {
    let mut want = ChangeFilter::all_lists(who());
    want.lists = lists.to_vec();
    want.uris = uris.iter().map(|uri| (*uri).to_owned()).collect();
    service.changes(want).await.unwrap()
}

async fn next(changes: &mut ChangeStream) -> ChangeSet {
    let next = tokio::time::timeout(Duration::from_secs(10), changes.next());
    next.await.expect("a change").expect("more to come")
}

#[tokio::test]
async fn a_subscription_goes_to_the_owner_and_ends_when_dropped() {
    let a = Arc::new(
        Offer::new("a")
            .with(Resource, &["t://one"])
            .with(Template, &["t://{x}"]),
    );
    let b = Arc::new(Offer::new("b").with(Resource, &["t://two", "t://one"]));
    let both = join(&[&a, &b]);
    let first = hear(&both, &[], &["t://one", "t://two", "u://nobody"]).await;
    assert_eq!(
        (a.heard(), b.heard()),
        (vec!["t://one".into()], vec!["t://two".into()])
    );
    let second = hear(&both, &[], &["t://two", "t://three"]).await;
    assert_eq!(a.heard(), ["t://one", "t://three"], "by its template");
    drop(first);
    assert_eq!(
        (a.heard(), b.heard()),
        (vec!["t://three".into()], vec!["t://two".into()])
    );
    drop(second);
    assert!(a.heard().is_empty() && b.heard().is_empty());
}

#[tokio::test]
async fn each_change_reaches_those_who_asked_and_nobody_else() {
    let a = Arc::new(Offer::new("a").with(Resource, &["t://one", "t://two"]));
    let one = join(&[&a]);
    let mut tools = hear(&one, &[Tool], &[]).await;
    let mut resources = hear(&one, &[Resource], &[]).await;
    let mut prompts = hear(&one, &[Prompt], &[]).await;
    let mut uri = hear(&one, &[], &["t://one"]).await;
    a.change(|stale| stale.count_update("t://one"));
    assert_eq!(*next(&mut uri).await.updated, ["t://one".into()]);
    a.change(|stale| stale.count_list_change(Prompt));
    assert_eq!(next(&mut prompts).await.lists, [Prompt]);
    a.change(|stale| stale.count_list_change(Template));
    assert_eq!(next(&mut resources).await.lists, [Resource]);
    a.change(|stale| stale.count_list_change(Tool));
    assert_eq!(next(&mut tools).await.lists, [Tool]);
    for others in [&mut tools, &mut resources, &mut prompts, &mut uri] {
        assert_eq!(others.next().now_or_never(), None);
    }
}

/// All listeners share one source, so what one of them may hear must not reach another.
#[tokio::test]
async fn nobody_hears_of_a_resource_that_is_hidden() {
    let a = Arc::new(Offer::new("a").with(Resource, &["t://secret"]));
    let b = Arc::new(Offer::new("b").with(Resource, &["t://open"]));
    let both: Arc<dyn Service> = Arc::new(join(&[&a, &b]));
    let shown = Pipeline::new()
        .resolve()
        .rule(Hide("a"))
        .service(both.clone());
    let mut insider = hear(&*both, &[], &["t://secret"]).await;
    let mut outsider = hear(&shown, &[], &["t://secret", "t://open"]).await;
    assert_eq!(outsider.filter().unwrap().uris, ["t://open"]);
    a.change(|stale: &mut ChangeCounters| stale.count_update("t://secret"));
    assert_eq!(*next(&mut insider).await.updated, ["t://secret".into()]);
    assert_eq!(outsider.next().now_or_never(), None);
    b.change(|stale: &mut ChangeCounters| stale.count_update("t://open"));
    assert_eq!(*next(&mut outsider).await.updated, ["t://open".into()]);
}

/// A URI belongs to one member: another that lists it too, or knows of it, cannot say that it changed.
#[tokio::test]
async fn only_the_owner_tells_that_a_resource_changed() {
    let a = Arc::new(Offer::new("a").with(Resource, &["t://one"]));
    let b = Arc::new(Offer::new("b").with(Resource, &["t://two", "t://one"]));
    let both = join(&[&a, &b]);
    let mut listener = hear(&both, &[Resource], &["t://one", "t://two"]).await;
    b.change(|stale| stale.count_update("t://one"));
    a.change(|stale| stale.count_update("t://two"));
    assert_eq!(listener.next().now_or_never(), None, "neither has it");
    a.change(|stale| stale.count_update("t://one"));
    assert_eq!(*next(&mut listener).await.updated, ["t://one".into()]);
    b.change(|stale| stale.count_update("t://two"));
    assert_eq!(*next(&mut listener).await.updated, ["t://two".into()]);
    b.change(|stale| stale.count_list_change(Resource));
    assert_eq!(next(&mut listener).await.lists, [Resource]);
}

/// The same over a service that tells everything to everybody.
#[tokio::test]
async fn the_pipeline_cuts_what_is_told() {
    let a = Arc::new(Offer::new("a").with(Resource, &["t://secret"]));
    let shown = Pipeline::new()
        .resolve()
        .rule(Hide("own"))
        .service(a.clone());
    let mut outsider = hear(&shown, &[Prompt], &["t://secret"]).await;
    assert!(outsider.filter().unwrap().uris.is_empty() && a.heard().is_empty());
    a.change(|stale| stale.count_update("t://secret"));
    a.change(|stale| stale.count_list_change(Tool));
    assert_eq!(outsider.next().now_or_never(), None);
    a.change(|stale| stale.count_list_change(Prompt));
    assert_eq!(next(&mut outsider).await.lists, [Prompt]);
}
