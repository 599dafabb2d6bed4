use super::{ApiKeyError, ApiKeyRejection, ApiKeys, KeyEndReason};
use crate::{
    ApprovalChannel, Approver, AuditRecorder, MemoryStateStore, StateStore, WritePrecondition,
};
use futures_util::FutureExt;
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use toolgate_core::Caller;

/// Maximum number of keys in these tests.
const MAX_KEYS: usize = 3;

fn keys_in_memory() -> (Arc<MemoryStateStore>, Arc<ApiKeys>) {
    let store = Arc::new(MemoryStateStore::new());
    let keys = ApiKeys::new(Arc::new(AuditRecorder::log()), store.clone());
    (store, Arc::new(keys))
}

fn who() -> Approver {
    Approver::named(ApprovalChannel::Terminal, "ann")
}

#[tokio::test]
async fn a_key_opens_until_it_is_revoked_and_its_text_is_kept_nowhere() {
    let (store, keys) = keys_in_memory();
    let key = keys.create("ci", None, &who(), MAX_KEYS).await.unwrap();
    let pass = keys.verify(key.reveal()).unwrap();
    assert_eq!(pass.caller().name(), "key:ci");
    assert_eq!(keys.rejection_reason(&pass.caller()), None);
    let kept = format!("{:?}", store.entries("keys"));
    let secret = key.reveal().strip_prefix("tg_").unwrap();
    assert!(secret.len() == 64 && !kept.contains(secret), "{kept}");
    let taken = keys.create("ci", None, &who(), MAX_KEYS).await;
    assert!(matches!(taken, Err(ApiKeyError::NameInUse)));

    let ended = keys.clone().invalidated(pass.clone());
    let (_, revoked) = {
        let who = who();
        tokio::join!(ended, keys.revoke("ci", &who))
    };
    revoked.unwrap();
    let over = ApiKeyRejection::Ended("ci".to_owned(), KeyEndReason::Revoked);
    assert_eq!(keys.verify(key.reveal()).unwrap_err(), over);
    assert!(
        keys.rejection_reason(&pass.caller())
            .unwrap()
            .contains("revoked")
    );
    assert!(matches!(
        keys.revoke("ci", &who()).await,
        Err(ApiKeyError::Unknown)
    ));

    // The name is free again. Proofs of the old key do not become valid with the new key.
    let second = keys.create("ci", None, &who(), MAX_KEYS).await.unwrap();
    assert_eq!(
        keys.verify(key.reveal()).unwrap_err(),
        ApiKeyRejection::Unknown,
        "the old text names nobody"
    );
    let other = keys.verify(second.reveal()).unwrap();
    assert_eq!(keys.rejection_reason(&other.caller()), None);
    assert!(other.caller() == pass.caller() && !other.caller().same_principal(&pass.caller()));
    // This check runs after the name was reused, so it never saw the name free.
    assert!(
        keys.rejection_reason(&pass.caller())
            .unwrap()
            .contains("was deleted")
    );
    keys.clone().invalidated(pass).await;
}

#[tokio::test]
async fn what_is_no_key_opens_nothing() {
    let (store, keys) = keys_in_memory();
    let key = keys.create("a", None, &who(), MAX_KEYS).await.unwrap();
    let text = key.reveal().to_owned();
    let mut wrong = vec![
        String::new(),
        "tg_".to_owned(),
        format!("{text} "),
        format!("{text}0"),
        text[..text.len() - 1].to_owned(),
        text.to_uppercase(),
        text.trim_start_matches("tg_").to_owned(),
    ];
    // One changed character at each position.
    wrong.extend((0..text.len()).map(|at| {
        let other = if &text[at..=at] == "0" { "1" } else { "0" };
        format!("{}{other}{}", &text[..at], &text[at + 1..])
    }));
    for wrong in wrong {
        assert_eq!(keys.verify(&wrong).unwrap_err(), ApiKeyRejection::Unknown);
    }
    for name in ["", "a b", "a/b", "a*", "é", &"a".repeat(65)] {
        assert!(
            matches!(
                keys.create(name, None, &who(), MAX_KEYS).await,
                Err(ApiKeyError::InvalidName)
            ),
            "{name}"
        );
    }
    // A corrupted row.
    let bad = Some(json!({"sha256": "00", "created": 1}));
    store
        .write("keys", "a", bad, WritePrecondition::Any)
        .await
        .unwrap();
    assert_eq!(keys.verify(&text).unwrap_err(), ApiKeyRejection::Unknown);
}

#[tokio::test]
async fn a_key_ends_by_itself() {
    let (store, keys) = keys_in_memory();
    let past = Some(SystemTime::now() - Duration::from_secs(1));
    assert!(matches!(
        keys.create("a", past, &who(), MAX_KEYS).await,
        Err(ApiKeyError::ExpiryInPast)
    ));
    let soon = SystemTime::now() + Duration::from_secs(3600);
    let key = keys
        .create("a", Some(soon), &who(), MAX_KEYS)
        .await
        .unwrap();
    let pass = keys.verify(key.reveal()).unwrap();
    let mut row = store.row("keys", "a").unwrap();
    row.value["expires"] = json!(1);
    let write = store.write("keys", "a", Some(row.value), WritePrecondition::Any);
    let (_, written) = tokio::join!(keys.clone().invalidated(pass.clone()), write);
    written.unwrap();
    let over = ApiKeyRejection::Ended("a".to_owned(), KeyEndReason::Expired);
    assert_eq!(keys.verify(key.reveal()).unwrap_err(), over);
    // Calls in flight complete.
    assert_eq!(keys.rejection_reason(&Caller::new("key:a")), None);
    assert_eq!(keys.clone().revoked(pass.clone()).now_or_never(), None);
    let ann = who();
    let (_, revoked) = tokio::join!(keys.clone().revoked(pass), keys.revoke("a", &ann));
    revoked.unwrap();
    assert!(keys.rejection_reason(&Caller::new("key:a")).is_some());
    assert_eq!(keys.rejection_reason(&Caller::new("key:b")), None);
    let mut row = store.row("keys", "a").unwrap();
    row.value["revoked"] = json!(1);
    let write = store.write("keys", "a", Some(row.value), WritePrecondition::Any);
    write.await.unwrap();
    // Revoked long ago, so it is deleted and its name is free.
    keys.create("b", None, &who(), MAX_KEYS).await.unwrap();
    assert_eq!(keys.list().len(), 1);
}

#[tokio::test]
async fn one_key_too_many_is_not_made() {
    let (store, keys) = keys_in_memory();
    for n in 0..MAX_KEYS {
        let row = json!({"sha256": "00".repeat(32), "created": 1});
        store
            .write("keys", &format!("k{n}"), Some(row), WritePrecondition::Any)
            .await
            .unwrap();
    }
    assert!(matches!(
        keys.create("one-over", None, &who(), MAX_KEYS).await,
        Err(ApiKeyError::LimitReached(MAX_KEYS))
    ));
}

/// Returns the last use of a name as another process of the store lists it.
fn used(store: &Arc<MemoryStateStore>, name: &str) -> Option<SystemTime> {
    let keys = ApiKeys::new(Arc::new(AuditRecorder::log()), store.clone());
    let view = keys.list().into_iter().find(|view| view.name == name);
    view.unwrap().last_used
}

/// A store whose next write fails.
struct FailingOnce(Arc<MemoryStateStore>, std::sync::atomic::AtomicBool);

impl StateStore for FailingOnce {
    fn entries(&self, table: &str) -> Vec<crate::StateRow> {
        self.0.entries(table)
    }

    fn write(
        &self,
        table: &str,
        key: &str,
        value: Option<serde_json::Value>,
        expect: WritePrecondition,
    ) -> toolgate_core::BoxFuture<'static, Result<crate::WriteOutcome, toolgate_core::Error>> {
        match self.1.swap(false, std::sync::atomic::Ordering::SeqCst) {
            true => Box::pin(async {
                let kind = toolgate_core::ErrorKind::Bug;
                Err(toolgate_core::Error::new(kind, "the disk is full"))
            }),
            false => self.0.write(table, key, value, expect),
        }
    }

    fn changed(&self) -> tokio::sync::watch::Receiver<u64> {
        self.0.changed()
    }

    fn clock(&self) -> &Arc<crate::StateClock> {
        self.0.clock()
    }
}

#[tokio::test]
async fn a_use_that_could_not_be_stored_is_stored_later() {
    let memory = Arc::new(MemoryStateStore::new());
    let store = Arc::new(FailingOnce(memory.clone(), false.into()));
    let keys = ApiKeys::new(Arc::new(AuditRecorder::log()), store.clone());
    let key = keys.create("ci", None, &who(), MAX_KEYS).await.unwrap();
    keys.verify(key.reveal()).unwrap();
    store.1.store(true, std::sync::atomic::Ordering::SeqCst);
    keys.store_uses().await;
    assert_eq!(used(&memory, "ci"), None, "the write failed");
    keys.store_uses().await;
    assert!(used(&memory, "ci").is_some());
    // Once it is stored, the same use is not written again.
    let version = memory.row("key_uses", "ci").unwrap().version;
    keys.store_uses().await;
    assert_eq!(memory.row("key_uses", "ci").unwrap().version, version);
}

#[tokio::test]
async fn a_key_that_is_made_again_was_never_used() {
    let (store, keys) = keys_in_memory();
    let key = keys.create("ci", None, &who(), MAX_KEYS).await.unwrap();
    let late = ApiKeys::new(Arc::new(AuditRecorder::log()), store.clone());
    for keys in [&*keys, &late] {
        keys.verify(key.reveal()).unwrap();
    }
    keys.store_uses().await;
    assert!(used(&store, "ci").is_some() && keys.list()[0].last_used.is_some());

    keys.revoke("ci", &who()).await.unwrap();
    let second = keys.create("ci", None, &who(), MAX_KEYS).await.unwrap();
    assert_eq!((used(&store, "ci"), keys.list()[0].last_used), (None, None));
    // A slow process stores the last use of the deleted key.
    late.store_uses().await;
    assert_eq!((used(&store, "ci"), late.list()[0].last_used), (None, None));
    keys.verify(second.reveal()).unwrap();
    keys.store_uses().await;
    assert!(used(&store, "ci").is_some());
    // Format of older versions.
    let old = Some(json!({"at": 1}));
    store
        .write("key_uses", "ci", old, WritePrecondition::Any)
        .await
        .unwrap();
    assert_eq!(used(&store, "ci"), None);
}

#[tokio::test]
async fn another_key_of_a_name_takes_the_place_of_the_first_at_once_or_after_a_while() {
    let (store, keys) = keys_in_memory();
    let first = keys.create("ci", None, &who(), MAX_KEYS).await.unwrap();
    let pass = keys.verify(first.reveal()).unwrap();
    let hour = Duration::from_secs(3600);
    let second = keys.rotate("ci", None, hour, &who()).await.unwrap();
    let other = keys.verify(second.reveal()).unwrap();
    // Both are valid for the same generation, and calls in flight continue.
    assert!(keys.verify(first.reveal()).is_ok());
    assert!(other.caller().same_principal(&pass.caller()));
    assert_eq!(keys.rejection_reason(&pass.caller()), None);
    let left = keys.list()[0]
        .old_valid_until
        .unwrap()
        .duration_since(SystemTime::now());
    assert!(left.unwrap() <= hour);

    // At most two keys are valid; the proof of the first one ends.
    let ended = keys.clone().invalidated(pass.clone());
    let mine = who();
    let (_, third) = tokio::join!(ended, keys.rotate("ci", None, hour, &mine));
    let third = third.unwrap();
    assert_eq!(
        keys.verify(first.reveal()).unwrap_err(),
        ApiKeyRejection::Unknown
    );
    for key in [&second, &third] {
        assert!(keys.verify(key.reveal()).is_ok());
    }
    // The grace period ends.
    let mut row = store.row("keys", "ci").unwrap();
    row.value["old"]["until"] = json!(1);
    let write = store.write("keys", "ci", Some(row.value), WritePrecondition::Any);
    let (_, written) = tokio::join!(keys.clone().invalidated(other), write);
    written.unwrap();
    let over = ApiKeyRejection::Ended("ci".to_owned(), KeyEndReason::Replaced);
    assert_eq!(keys.verify(second.reveal()).unwrap_err(), over);
    // A grace period of zero ends immediately. Calls in flight continue, as the generation is the same.
    let begun = keys.verify(third.reveal()).unwrap();
    let fourth = keys.rotate("ci", None, Duration::ZERO, &who()).await;
    assert_eq!(
        keys.clone().invalidated(begun.clone()).now_or_never(),
        Some(())
    );
    for begun in [&pass, &begun] {
        let withdrawn = keys.clone().revoked(begun.clone());
        assert_eq!(withdrawn.now_or_never(), None);
        assert_eq!(keys.rejection_reason(&begun.caller()), None);
    }
    assert_eq!(keys.verify(third.reveal()).unwrap_err(), over);
    assert_eq!(keys.list()[0].old_valid_until, None);
    keys.revoke("ci", &who()).await.unwrap();
    let over = ApiKeyRejection::Ended("ci".to_owned(), KeyEndReason::Revoked);
    assert_eq!(keys.verify(fourth.unwrap().reveal()).unwrap_err(), over);
    keys.clone().revoked(pass).await;
    let gone = keys.rotate("ci", None, hour, &who()).await;
    assert!(matches!(gone, Err(ApiKeyError::Unknown)));
}

#[tokio::test]
async fn a_key_lives_on_where_its_end_is_put_off() {
    let (_, keys) = keys_in_memory();
    let days = |n: u64| SystemTime::now() + Duration::from_secs(n * 86_400);
    let first = keys.create("ci", Some(days(1)), &who(), MAX_KEYS).await;
    let pass = keys.verify(first.unwrap().reveal()).unwrap();
    keys.extend("ci", days(90), &who()).await.unwrap();
    assert!(keys.list()[0].expires_at.unwrap() > days(89));
    assert_eq!(keys.rejection_reason(&pass.caller()), None);
    let past = keys.extend("ci", SystemTime::UNIX_EPOCH, &who()).await;
    assert!(matches!(past, Err(ApiKeyError::ExpiryInPast)));
    let none = keys.extend("b", days(1), &who()).await;
    assert!(matches!(none, Err(ApiKeyError::Unknown)));
    // The old key keeps its expiry.
    let month = Duration::from_secs(30 * 86_400);
    let soon = Some(days(2));
    keys.create("d", soon, &who(), MAX_KEYS).await.unwrap();
    let far = Some(days(90));
    let made = keys.rotate("d", far, month, &who()).await.unwrap();
    let view = &keys.list()[1];
    assert!(made.old_valid_until().unwrap() < days(3) && view.expires_at.unwrap() > days(89));
    // It never outlives the new key.
    let made = keys.rotate("d", soon, month, &who()).await.unwrap();
    assert_eq!(made.old_valid_until(), soon);
}

#[tokio::test]
async fn an_end_is_put_off_and_not_too_far() {
    let (store, keys) = keys_in_memory();
    let days = |n: u64| SystemTime::now() + Duration::from_secs(n * 86_400);
    let far = keys.create("a", Some(days(36_600)), &who(), MAX_KEYS).await;
    assert!(matches!(far, Err(ApiKeyError::ExpiryTooFar)));
    keys.create("a", Some(days(9)), &who(), MAX_KEYS)
        .await
        .unwrap();
    keys.create("b", None, &who(), MAX_KEYS).await.unwrap();
    let far = keys.extend("a", days(36_600), &who()).await;
    assert!(matches!(far, Err(ApiKeyError::ExpiryTooFar)));
    for name in ["a", "b"] {
        let earlier = keys.extend(name, days(8), &who()).await;
        assert!(
            matches!(earlier, Err(ApiKeyError::ExpiresLater(..))),
            "{name}"
        );
    }
    assert!(keys.list()[0].expires_at.unwrap() > days(8) && keys.list()[1].expires_at.is_none());
    let mut row = store.row("keys", "a").unwrap();
    row.value["expires"] = json!(1000);
    let write = store.write("keys", "a", Some(row.value), WritePrecondition::Any);
    write.await.unwrap();
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    let late = keys.extend("a", days(9), &who()).await.unwrap_err();
    assert!(matches!(&late, ApiKeyError::Expired(name, at) if name == "a" && *at == end));
    assert!(late.to_string().contains("keys create a"));
    let late = keys.rotate("a", None, Duration::ZERO, &who()).await;
    assert!(matches!(late, Err(ApiKeyError::Expired(..))));
}
