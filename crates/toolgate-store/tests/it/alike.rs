//! The store in memory and the one in a database behave alike.

use serde_json::json;
use toolgate_policy::{MemoryStateStore, StateStore, WriteOutcome, WritePrecondition};
use toolgate_store::{DatabaseStore, StoreLimits};

pub(crate) async fn once(store: &dyn StateStore) {
    let mut changed = store.changed();
    changed.mark_unchanged();
    let put = |value, expect| store.write("grants", "g-1", value, expect);
    let WriteOutcome::Done(first) = put(Some(json!(1)), WritePrecondition::Absent)
        .await
        .unwrap()
    else {
        panic!("it was not there");
    };
    assert!(changed.has_changed().unwrap());
    assert_eq!(
        put(Some(json!(2)), WritePrecondition::Absent)
            .await
            .unwrap(),
        WriteOutcome::Conflict
    );
    assert_eq!(store.entries("grants")[0].value, json!(1));
    assert_eq!(store.versions("grants"), [("g-1".to_owned(), first)]);
    assert_eq!(store.row("grants", "g-1"), store.entries("grants").pop());
    assert_eq!(
        (store.row("grants", "g"), store.row("pins", "g-1")),
        (None, None)
    );
    assert_eq!(store.entries("pins"), []);
    let second = put(Some(json!(2)), WritePrecondition::Version(first))
        .await
        .unwrap();
    assert!(matches!(second, WriteOutcome::Done(n) if n > first));
    assert_eq!(
        put(None, WritePrecondition::Version(first)).await.unwrap(),
        WriteOutcome::Conflict
    );
    put(None, WritePrecondition::Any).await.unwrap();
    assert_eq!(store.entries("grants"), []);
}

#[tokio::test]
async fn both_stores_handle_conflicts_alike() {
    once(&MemoryStateStore::new()).await;
    let dir = std::env::temp_dir().join(format!("toolgate-stores-{}", std::process::id()));
    once(&DatabaseStore::open(&dir, StoreLimits::default()).unwrap()).await;
    std::fs::remove_dir_all(dir).unwrap();
}
