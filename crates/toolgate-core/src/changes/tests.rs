use super::*;
use crate::Caller;
use futures_util::FutureExt;

fn interest(lists: &[ItemKind], uris: &[&str]) -> ChangeFilter {
    ChangeFilter {
        lists: lists.to_vec(),
        uris: uris.iter().map(|uri| (*uri).to_owned()).collect(),
        ..ChangeFilter::lists(Caller::new("test"))
    }
}

fn heard(changes: &mut ChangeStream) -> Option<ChangeSet> {
    changes.next().now_or_never().flatten()
}

#[test]
fn each_kind_is_told_to_those_who_want_it() {
    let all = [ItemKind::Tool, ItemKind::Resource, ItemKind::Prompt];
    for wanted in all {
        let sender = watch::Sender::new(ChangeCounters::default());
        let mut changes = ChangeStream::new(sender.subscribe()).only(&interest(&[wanted], &[]));
        for changed in all.into_iter().filter(|kind| *kind != wanted) {
            sender.send_modify(|stale| stale.list(changed));
            sender.send_modify(|stale| stale.update("test://a"));
            assert_eq!(heard(&mut changes), None, "{wanted:?} {changed:?}");
        }
        sender.send_modify(|stale| stale.list(wanted));
        assert_eq!(heard(&mut changes).unwrap().lists, [wanted]);
    }
}

#[test]
fn templates_change_with_the_resources() {
    let sender = watch::Sender::new(ChangeCounters::default());
    let mut changes =
        ChangeStream::new(sender.subscribe()).only(&interest(&[ItemKind::Template], &[]));
    sender.send_modify(|stale| stale.list(ItemKind::Resource));
    assert_eq!(heard(&mut changes).unwrap().lists, [ItemKind::Resource]);
    sender.send_modify(|stale| stale.list(ItemKind::Template));
    assert_eq!(heard(&mut changes).unwrap().lists, [ItemKind::Resource]);
}

#[test]
fn said_twice_it_tells_what_both_name() {
    let sender = watch::Sender::new(ChangeCounters::default());
    let mut changes = ChangeStream::new(sender.subscribe())
        .only(&interest(&[ItemKind::Tool], &["test://a"]))
        .only(&interest(&[ItemKind::Prompt], &["test://a", "test://b"]));
    let told = changes.told().unwrap();
    assert!(told.lists.is_empty() && told.uris == ["test://a"]);
    sender.send_modify(|stale| stale.update("test://b"));
    assert_eq!(heard(&mut changes), None);
    sender.send_modify(|stale| stale.update("test://a"));
    assert_eq!(*heard(&mut changes).unwrap().updated, ["test://a".into()]);
}

#[test]
fn one_resource_too_many_forgets_the_oldest_change() {
    let mut stale = ChangeCounters::default();
    stale.update("z");
    stale.update("a");
    for at in 2..ChangeCounters::MAX_UPDATED_RESOURCES {
        stale.update(&format!("m{at:05}"));
    }
    stale.update("z");
    assert_eq!(stale.updated.len(), ChangeCounters::MAX_UPDATED_RESOURCES);
    stale.update("one more");
    assert_eq!(stale.updated.len(), ChangeCounters::MAX_UPDATED_RESOURCES);
    assert!(!stale.updated.contains_key("a") && stale.updated.contains_key("z"));
}

#[test]
fn a_forgotten_resource_that_changes_again_is_told() {
    let mut stale = ChangeCounters::default();
    stale.update("a");
    let before = stale.clone();
    for at in 0..ChangeCounters::MAX_UPDATED_RESOURCES {
        stale.update(&format!("m{at:05}"));
    }
    assert!(!stale.updated.contains_key("a"));
    stale.update("a");
    assert!(stale.since(&before).updated.contains(&"a".into()));
}
