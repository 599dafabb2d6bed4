use super::{KeyError, KeyRefused, Keys, Over};
use crate::{By, Expect, Memory, Recorder, Store, Who};
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use toolgate_core::Caller;

/// As many as there may be.
const MOST: usize = 3;

fn book() -> (Arc<Memory>, Arc<Keys>) {
    let store = Arc::new(Memory::new());
    let keys = Keys::new(Arc::new(Recorder::log()), store.clone());
    (store, Arc::new(keys))
}

fn who() -> Who {
    Who::named(By::Terminal, "ann")
}

#[tokio::test]
async fn a_key_opens_until_it_is_revoked_and_its_text_is_kept_nowhere() {
    let (store, keys) = book();
    let key = keys.create("ci", None, &who(), MOST).await.unwrap();
    let pass = keys.open(key.reveal()).unwrap();
    assert_eq!(pass.caller().name(), "key:ci");
    assert_eq!(keys.gone(&pass.caller()), None);
    let kept = format!("{:?}", store.entries("keys"));
    let secret = key.reveal().strip_prefix("tg_").unwrap();
    assert!(secret.len() == 64 && !kept.contains(secret), "{kept}");
    let taken = keys.create("ci", None, &who(), MOST).await;
    assert!(matches!(taken, Err(KeyError::Taken)));

    let ended = keys.clone().ended(pass.clone());
    let (_, revoked) = {
        let who = who();
        tokio::join!(ended, keys.revoke("ci", &who))
    };
    revoked.unwrap();
    let over = KeyRefused::Over("ci".to_owned(), Over::Revoked);
    assert_eq!(keys.open(key.reveal()).unwrap_err(), over);
    assert!(keys.gone(&pass.caller()).unwrap().contains("revoked"));
    assert!(matches!(
        keys.revoke("ci", &who()).await,
        Err(KeyError::Unknown)
    ));

    // The name is free again; what the old key opened does not live on with the new one.
    let second = keys.create("ci", None, &who(), MOST).await.unwrap();
    assert_eq!(keys.gone(&pass.caller()), None);
    assert_eq!(
        keys.open(key.reveal()).unwrap_err(),
        KeyRefused::Unknown,
        "the old text names nobody"
    );
    assert!(keys.open(second.reveal()).is_ok());
    keys.clone().ended(pass).await;
}

#[tokio::test]
async fn what_is_no_key_opens_nothing() {
    let (store, keys) = book();
    let key = keys.create("a", None, &who(), MOST).await.unwrap();
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
    // One changed character at each place.
    wrong.extend((0..text.len()).map(|at| {
        let other = if &text[at..=at] == "0" { "1" } else { "0" };
        format!("{}{other}{}", &text[..at], &text[at + 1..])
    }));
    for wrong in wrong {
        assert_eq!(keys.open(&wrong).unwrap_err(), KeyRefused::Unknown);
    }
    for name in ["", "a b", "a/b", "a*", "é", &"a".repeat(65)] {
        assert!(
            matches!(
                keys.create(name, None, &who(), MOST).await,
                Err(KeyError::Name)
            ),
            "{name}"
        );
    }
    // A line that somebody spoilt.
    let bad = Some(json!({"sha256": "00", "created": 1}));
    store.write("keys", "a", bad, Expect::Any).await.unwrap();
    assert_eq!(keys.open(&text).unwrap_err(), KeyRefused::Unknown);
}

#[tokio::test]
async fn a_key_ends_by_itself() {
    let (store, keys) = book();
    let past = Some(SystemTime::now() - Duration::from_secs(1));
    assert!(matches!(
        keys.create("a", past, &who(), MOST).await,
        Err(KeyError::Past)
    ));
    let soon = SystemTime::now() + Duration::from_secs(3600);
    let key = keys.create("a", Some(soon), &who(), MOST).await.unwrap();
    let pass = keys.open(key.reveal()).unwrap();
    let mut row = store.row("keys", "a").unwrap();
    row.value["expires"] = json!(1);
    let write = store.write("keys", "a", Some(row.value), Expect::Any);
    let (_, written) = tokio::join!(keys.clone().ended(pass), write);
    written.unwrap();
    let over = KeyRefused::Over("a".to_owned(), Over::Expired);
    assert_eq!(keys.open(key.reveal()).unwrap_err(), over);
    assert!(keys.gone(&Caller::new("key:a")).is_some());
    assert_eq!(keys.gone(&Caller::new("key:b")), None);
    // Long ago, so it is forgotten, and its name is free.
    keys.create("b", None, &who(), MOST).await.unwrap();
    assert_eq!(keys.list().len(), 1);
}

#[tokio::test]
async fn one_key_too_many_is_not_made() {
    let (store, keys) = book();
    for n in 0..MOST {
        let row = json!({"sha256": "00".repeat(32), "created": 1});
        store
            .write("keys", &format!("k{n}"), Some(row), Expect::Any)
            .await
            .unwrap();
    }
    assert!(matches!(
        keys.create("one-over", None, &who(), MOST).await,
        Err(KeyError::Full(MOST))
    ));
}
