//! Resources, templates and prompts of many members.

use super::offer::{Hide, Offer, all, call, join, names, use_it, who};
use std::{sync::Arc, time::Duration};
use toolgate::{
    Service,
    core::{
        ChangeFilter, ErrorKind,
        ItemKind::{Prompt, Resource, Template},
        ListRequest, Op, Pipeline,
    },
};

#[tokio::test]
async fn of_two_with_one_uri_the_first_has_it() {
    let a = Arc::new(Offer::new("a").with(Resource, &["t://one", "t://both"]));
    let b = Arc::new(Offer::new("b").with(Resource, &["t://both", "t://two"]));
    let both = join(&[&a, &b]);
    let listed = both.list(all(Resource)).await.unwrap();
    assert_eq!(names(&listed), ["t://one", "t://both", "t://two"]);
    let origin = |uri| listed.find(uri).unwrap().full_name();
    assert_eq!(origin("t://both"), "a.resource:t://both");
    assert_eq!(origin("t://two"), "b.resource:t://two");
    for (uri, member) in [("t://one", "a"), ("t://both", "a"), ("t://two", "b")] {
        assert_eq!(use_it(&both, Op::Resource, uri).await.unwrap(), member);
    }
    a.set(Resource, &["t://one"]);
    both.list(all(Resource)).await.unwrap();
    let next = use_it(&both, Op::Resource, "t://both").await.unwrap();
    assert_eq!(next, "b", "once the first has it no longer");
}

#[tokio::test]
async fn a_listed_uri_goes_before_a_template_that_fits() {
    let a = Arc::new(Offer::new("a").with(Template, &["t://{+any}"]));
    let b = Arc::new(
        Offer::new("b")
            .with(Resource, &["t://two"])
            .with(Template, &["t://{x}/b"]),
    );
    let both = join(&[&a, &b]);
    assert_eq!(use_it(&both, Op::Resource, "t://two").await.unwrap(), "b");
    assert_eq!(use_it(&both, Op::Resource, "t://1/b").await.unwrap(), "a");
    assert_eq!(use_it(&both, Op::Resource, "t://no").await.unwrap(), "a");
    // A template is completed where it is listed, though another one fits its text.
    let complete = Op::Complete(Template);
    assert_eq!(use_it(&both, complete, "t://{x}/b").await.unwrap(), "b");
    assert_eq!(use_it(&both, complete, "t://{+any}").await.unwrap(), "a");
}

#[tokio::test]
async fn a_uri_that_nobody_has_is_unknown() {
    let a = Arc::new(Offer::new("a").with(Resource, &["t://one"]));
    let one = join(&[&a]);
    let error = use_it(&one, Op::Resource, "t://two").await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::NotFound);
    assert!(a.called().is_empty());
    a.set(Resource, &["t://one", "t://two"]);
    assert_eq!(use_it(&one, Op::Resource, "t://two").await.unwrap(), "a");
}

#[tokio::test]
async fn prompts_are_renamed_and_completed_under_their_own_name() {
    let a = Arc::new(Offer::new("a").with(Prompt, &["greet", "b_greet"]));
    let b = Arc::new(Offer::new("b").with(Prompt, &["greet", "x.y"]));
    let both = join(&[&a, &b]);
    let listed = both.list(all(Prompt)).await.unwrap();
    assert_eq!(names(&listed)[..3], ["a_greet", "a_b_greet", "b_greet"]);
    assert_eq!(
        listed.find("b_greet").unwrap().full_name(),
        "b.prompt:greet"
    );
    for name in names(&listed) {
        for op in [Op::Prompt, Op::Complete(Prompt)] {
            assert_eq!(use_it(&both, op, name).await.unwrap(), name[..1]);
        }
    }
    assert_eq!(a.called(), ["greet", "greet", "b_greet", "b_greet"]);
    assert_eq!(b.called(), ["greet", "greet", "x.y", "x.y"]);
    let error = use_it(&both, Op::Prompt, "greet").await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::NotFound);
    let error = use_it(&both, Op::Tool, "a_greet").await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::NotFound, "a prompt is no tool");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_is_down_keeps_nobody_from_the_others() {
    let a = Arc::new(
        Offer::new("a")
            .with(Resource, &["t://one"])
            .with(Template, &["u://{x}"]),
    );
    let mut slow = Offer::new("slow");
    slow.slow = true;
    let slow = Arc::new(slow);
    let both = join(&[&a, &slow]).list_timeout(Duration::from_secs(3));
    let listed = both.list(all(Resource)).await.unwrap();
    assert_eq!(
        (names(&listed), listed.missing_servers()),
        (vec!["t://one"], &["slow".to_owned()][..])
    );
    both.list(all(Template)).await.unwrap();
    let before = tokio::time::Instant::now();
    for (uri, kind) in [
        ("t://one", Resource),
        ("u://1", Resource),
        ("u://1", Template),
    ] {
        both.list(ListRequest::one(who(), kind, uri)).await.unwrap();
        assert_eq!(use_it(&both, Op::Resource, uri).await.unwrap(), "a");
    }
    assert_eq!(before.elapsed(), Duration::ZERO);
    a.go_down();
    let last = both
        .list(ListRequest::one(who(), Resource, "t://one"))
        .await
        .unwrap();
    assert!(
        last.find("t://one").is_some(),
        "its last list answers for it"
    );
}

/// The evaluated item is the one that is read, even if another member has the same URI.
#[tokio::test]
async fn a_hidden_member_is_never_reached_by_a_template_of_another() {
    let a = Arc::new(
        Offer::new("a")
            .with(Resource, &["t://secret"])
            .with(Template, &["t://a/{x}"]),
    );
    let b = Arc::new(Offer::new("b").with(Template, &["t://{+any}"]));
    let both: Arc<dyn Service> = Arc::new(join(&[&a, &b]));
    let shown = Pipeline::new()
        .resolve()
        .rule(Hide("a"))
        .service(both.clone());
    for uri in ["t://secret", "t://a/1"] {
        assert_eq!(use_it(&*both, Op::Resource, uri).await.unwrap(), "a");
        assert_eq!(use_it(&shown, Op::Resource, uri).await.unwrap(), "b");
    }
    let mut want = ChangeFilter::all_lists(who());
    want.uris = vec!["t://secret".into(), "t://a/1".into(), "t://b".into()];
    let changes = shown.changes(want).await.unwrap();
    assert_eq!(changes.filter().unwrap().uris.len(), 3);
    assert!(a.heard().is_empty());
    assert_eq!(b.heard(), ["t://a/1", "t://b", "t://secret"]);
}

#[tokio::test]
async fn what_is_hidden_is_unknown_in_every_way() {
    let a = Arc::new(
        Offer::new("a")
            .with(Resource, &["t://secret"])
            .with(Template, &["t://a/{x}"])
            .with(Prompt, &["greet"]),
    );
    let shown = Pipeline::new()
        .resolve()
        .rule(Hide("a"))
        .service(Arc::new(join(&[&a])));
    for kind in [Resource, Template, Prompt] {
        let listed = shown.list(all(kind)).await.unwrap();
        assert!(listed.items().is_empty(), "{kind:?}");
    }
    let uses = [
        (Op::Resource, "t://secret"),
        (Op::Resource, "t://a/1"),
        (Op::Prompt, "a_greet"),
        (Op::Complete(Prompt), "a_greet"),
        (Op::Complete(Template), "t://a/{x}"),
    ];
    for (op, name) in uses {
        let error = shown.call(call(op, name)).await.unwrap_err();
        let nothing = call(op, "nothing").unknown_item_error();
        assert_eq!(error.kind(), nothing.kind());
        let expected = nothing.public_message().replace("nothing", name);
        assert_eq!(error.public_message(), expected, "as if it were not there");
    }
    assert!(a.called().is_empty());
}
