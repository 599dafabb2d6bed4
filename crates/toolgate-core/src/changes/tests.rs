use super::*;
use crate::Caller;
use futures_util::FutureExt;

fn change_filter(lists: &[ItemKind], uris: &[&str]) -> ChangeFilter {
    ChangeFilter {
        lists: lists.to_vec(),
        uris: uris.iter().map(|uri| (*uri).to_owned()).collect(),
        ..ChangeFilter::all_lists(Caller::new("test"))
    }
}

fn next_change(changes: &mut ChangeStream) -> Option<ChangeSet> {
    changes.next().now_or_never().flatten()
}

#[test]
fn reports_only_the_kinds_of_the_filter() {
    let all = [ItemKind::Tool, ItemKind::Resource, ItemKind::Prompt];
    for wanted in all {
        let sender = watch::Sender::new(ChangeCounters::default());
        let mut changes =
            ChangeStream::new(sender.subscribe()).filtered(&change_filter(&[wanted], &[]));
        for changed in all.into_iter().filter(|kind| *kind != wanted) {
            sender.send_modify(|stale| stale.count_list_change(changed));
            sender.send_modify(|stale| stale.count_update("test://a"));
            assert_eq!(next_change(&mut changes), None, "{wanted:?} {changed:?}");
        }
        sender.send_modify(|stale| stale.count_list_change(wanted));
        assert_eq!(next_change(&mut changes).unwrap().lists, [wanted]);
    }
}

#[test]
fn templates_change_with_the_resources() {
    let sender = watch::Sender::new(ChangeCounters::default());
    let mut changes =
        ChangeStream::new(sender.subscribe()).filtered(&change_filter(&[ItemKind::Template], &[]));
    sender.send_modify(|stale| stale.count_list_change(ItemKind::Resource));
    assert_eq!(
        next_change(&mut changes).unwrap().lists,
        [ItemKind::Resource]
    );
    sender.send_modify(|stale| stale.count_list_change(ItemKind::Template));
    assert_eq!(
        next_change(&mut changes).unwrap().lists,
        [ItemKind::Resource]
    );
}

#[test]
fn repeated_filters_intersect() {
    let sender = watch::Sender::new(ChangeCounters::default());
    let mut changes = ChangeStream::new(sender.subscribe())
        .filtered(&change_filter(&[ItemKind::Tool], &["test://a"]))
        .filtered(&change_filter(
            &[ItemKind::Prompt],
            &["test://a", "test://b"],
        ));
    let told = changes.filter().unwrap();
    assert!(told.lists.is_empty() && told.uris == ["test://a"]);
    sender.send_modify(|stale| stale.count_update("test://b"));
    assert_eq!(next_change(&mut changes), None);
    sender.send_modify(|stale| stale.count_update("test://a"));
    assert_eq!(
        *next_change(&mut changes).unwrap().updated,
        ["test://a".into()]
    );
}

#[test]
fn evicts_the_least_recently_updated_resource() {
    let mut stale = ChangeCounters::default();
    stale.count_update("z");
    stale.count_update("a");
    for at in 2..ChangeCounters::MAX_UPDATED_RESOURCES {
        stale.count_update(&format!("m{at:05}"));
    }
    stale.count_update("z");
    assert_eq!(stale.updated.len(), ChangeCounters::MAX_UPDATED_RESOURCES);
    stale.count_update("one more");
    assert_eq!(stale.updated.len(), ChangeCounters::MAX_UPDATED_RESOURCES);
    assert!(!stale.updated.contains_key("a") && stale.updated.contains_key("z"));
}

#[test]
fn reports_an_evicted_resource_that_changes_again() {
    let mut stale = ChangeCounters::default();
    stale.count_update("a");
    let before = stale.clone();
    for at in 0..ChangeCounters::MAX_UPDATED_RESOURCES {
        stale.count_update(&format!("m{at:05}"));
    }
    assert!(!stale.updated.contains_key("a"));
    stale.count_update("a");
    assert!(stale.changes_since(&before).updated.contains(&"a".into()));
}
